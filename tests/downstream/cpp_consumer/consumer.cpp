// A module that builds upon tilecore in C++17. Of its two source files this one imports tilecore.
#define PY_SSIZE_T_CLEAN
#define TILECORE_UNIQUE_SYMBOL cpp_consumer_tilecore
#include <tilecore/tilecore.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

PyObject *tile_any(PyObject *, PyObject *args);  // arrays.cpp

namespace {

struct Free {
    void operator()(tilecore_plan *plan) const { tilecore_plan_free(plan); }
};
using Plan = std::unique_ptr<tilecore_plan, Free>;

// One call for vectors of anything that is plain bytes. It needs no GIL.
template <typename T>
std::vector<T> tile(const std::vector<T> &source, const std::vector<ptrdiff_t> &shape,
                    const std::vector<ptrdiff_t> &repeats)
{
    const int ndim = static_cast<int>(shape.size()), nreps = static_cast<int>(repeats.size());
    ptrdiff_t nbytes = 0;
    const int status =
        tilecore_output_shape(ndim, shape.data(), nreps, repeats.data(), sizeof(T), nullptr, &nbytes);
    if (status != TILECORE_OK) throw std::invalid_argument(tilecore_status_text(status));
    std::vector<T> result(static_cast<size_t>(nbytes) / sizeof(T));
    tilecore_tile(ndim, shape.data(), nullptr, nreps, repeats.data(), sizeof(T), source.data(), result.data(),
                  nullptr, 1);
    return result;
}

std::vector<char> tile_by_plan(const std::vector<char> &source, ptrdiff_t repeats)
{
    const auto length = static_cast<ptrdiff_t>(source.size());
    int status;
    const Plan plan(tilecore_plan_make(1, &length, &repeats, 1, &status));
    if (!plan) throw std::invalid_argument(tilecore_status_text(status));
    std::vector<char> result(static_cast<size_t>(tilecore_plan_nbytes(plan.get())));
    tilecore_plan_execute(plan.get(), source.data(), nullptr, result.data(), nullptr, 1);
    return result;
}

// tile_in_threads(parts: list of bytes, repeats: int) -> list of bytes, each by a thread that Python does not
// know. The GIL is held meanwhile: no thread asks for it.
PyObject *tile_in_threads(PyObject *, PyObject *args)
{
    PyObject *parts;
    Py_ssize_t repeats;
    if (!PyArg_ParseTuple(args, "O!n", &PyList_Type, &parts, &repeats)) return nullptr;
    std::vector<std::vector<char>> sources, results(static_cast<size_t>(PyList_GET_SIZE(parts)));
    std::vector<std::string> errors(results.size());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parts); i++) {
        char *bytes;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyList_GET_ITEM(parts, i), &bytes, &length) < 0) return nullptr;
        sources.emplace_back(bytes, bytes + length);
    }
    std::vector<std::thread> threads;
    for (size_t i = 0; i < results.size(); i++)
        threads.emplace_back([&, i]() noexcept {
            try {
                const auto length = static_cast<ptrdiff_t>(sources[i].size());
                results[i] = i % 2 ? tile(sources[i], {length}, {repeats}) : tile_by_plan(sources[i], repeats);
            } catch (const std::exception &error) {
                errors[i] = error.what();
            }
        });
    for (std::thread &thread : threads) thread.join();
    for (const std::string &error : errors)
        if (!error.empty()) PyErr_SetString(PyExc_ValueError, error.c_str());
    if (PyErr_Occurred()) return nullptr;  // the last part's
    PyObject *list = PyList_New(0);
    for (const std::vector<char> &result : results) {
        PyObject *bytes = PyBytes_FromStringAndSize(result.data(), static_cast<Py_ssize_t>(result.size()));
        const bool kept = list != nullptr && bytes != nullptr && PyList_Append(list, bytes) == 0;
        Py_XDECREF(bytes);
        if (!kept) Py_CLEAR(list);
    }
    return list;
}

// tile_rows(source: bytes, rows: int, repeats: int) -> bytes. Each of the source's `rows` rows is repeated.
PyObject *tile_rows(PyObject *, PyObject *args)
{
    const char *source;
    Py_ssize_t length, rows, repeats;
    if (!PyArg_ParseTuple(args, "y#nn", &source, &length, &rows, &repeats)) return nullptr;
    const ptrdiff_t shape[] = {rows, rows > 0 ? length / rows : 0}, counts[] = {1, repeats};
    const Plan plan(tilecore_plan_new(2, shape, counts, 1));
    if (!plan) return nullptr;  // a ValueError of tilecore's
    PyObject *result = PyBytes_FromStringAndSize(nullptr, tilecore_plan_nbytes(plan.get()));
    if (result == nullptr) return nullptr;
    char *target = PyBytes_AS_STRING(result);
    Py_BEGIN_ALLOW_THREADS
    tilecore_plan_execute(plan.get(), source, nullptr, target, nullptr, 0);
    Py_END_ALLOW_THREADS
    return result;
}

PyMethodDef methods[] = {
    {"tile_rows", tile_rows, METH_VARARGS, nullptr},
    {"tile_any", tile_any, METH_VARARGS, nullptr},
    {"tile_in_threads", tile_in_threads, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "cpp_consumer", nullptr, -1, methods,
                          nullptr,               nullptr,        nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_cpp_consumer()
{
    if (import_tilecore() < 0) return nullptr;
    return PyModule_Create(&definition);
}
