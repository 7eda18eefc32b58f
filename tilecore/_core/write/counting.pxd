"""References in the memory of arrays, counted while other threads may be replacing them.

With the GIL no other thread can replace one meanwhile: it is read, and counted. Without the GIL, NumPy's own
assignments `a[i] = x` take no lock that this code could take too. So an object may die after its reference was
read, and before it is counted. CPython has the same problem in its lists, and this code solves it as CPython does:

    tries       A count is only raised where it is not zero. That is safe, for the memory of a dead object
                keeps its count until every thread has passed a point where it holds no such pointer, and
                this thread passes none here. Objects of this thread, immortal ones, and those of which
                CPython notes that others may try (`PyUnstable_EnableTryIncRef`) can be tried.
    stopped     Where that cannot be, the world is stopped, as it is to collect garbage: then no other thread
                is in the midst of an assignment, as under the GIL. Each object that is counted there is
                noted as one that may be tried, so that it happens once for each at most.

An object whose count is zero is dying, and code that runs as it dies has led here, or has been stopped: NumPy
lets go of an object before it puts another in its place. It is read as NULL, which NumPy reads as None.
"""

from cpython.object cimport PyObject


cdef extern from *:
    """
    /* References may lie anywhere, in a packed structure. */
    static PyObject *tilecore_load(const char *at)
    {
        PyObject *object;
        memcpy(&object, at, sizeof object);
        return object;
    }

    /* Puts a counted reference in the place of another, which it returns: that is the caller's, and nobody
     * else's who exchanges so. */
    static PyObject *tilecore_exchange(char *at, PyObject *object)
    {
        PyObject *before;
    #ifdef Py_GIL_DISABLED
        if ((uintptr_t)at % sizeof object == 0) return (PyObject *)_Py_atomic_exchange_ptr(at, object);
    #endif
        before = tilecore_load(at);
        memcpy(at, &object, sizeof object);
        return before;
    }

    /* The reference, counted. With the GIL, or the world stopped. */
    static PyObject *tilecore_count(const char *at)
    {
        PyObject *object = tilecore_load(at);
        if (object == NULL || Py_REFCNT(object) == 0) return NULL;
        Py_INCREF(object);
        return object;
    }

    typedef int (*tilecore_work)(PyObject *nobody, void *argument);
    #ifndef Py_GIL_DISABLED
    #define TILECORE_FREE_THREADED 0
    static void tilecore_enable(PyObject *object) { (void)object; }
    static int tilecore_try(PyObject *object) { (void)object; return 0; }
    static void tilecore_stop_for(tilecore_work work, void *argument) { work(NULL, argument); }
    #else
    #define TILECORE_FREE_THREADED 1
    /* Works while no other thread is in the midst of anything. Visiting the garbage collector's objects stops
     * the world, and is the one way to it that CPython offers; the first object ends it. */
    static void tilecore_stop_for(tilecore_work work, void *argument) { PyUnstable_GC_VisitObjects(work, argument); }

    #if PY_VERSION_HEX >= 0x030E0000
    static void tilecore_enable(PyObject *object) { PyUnstable_EnableTryIncRef(object); }

    /* One reference more, unless the object is dead or nobody may try. */
    static int tilecore_try(PyObject *object) { return Py_REFCNT(object) > 0 && PyUnstable_TryIncRef(object); }
    #else /* Python 3.13 has no such functions for others; what they do stands in its headers */
    static void tilecore_enable(PyObject *object)
    {
        Py_ssize_t shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
        while (!_Py_IsImmortal(object) && (shared & _Py_REF_SHARED_FLAG_MASK) == 0)
            if (_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared | _Py_REF_MAYBE_WEAKREF))
                return;
    }

    static int tilecore_try(PyObject *object)
    {
        const Py_ssize_t one = 1 << _Py_REF_SHARED_SHIFT;
        Py_ssize_t shared;
        uint32_t local = _Py_atomic_load_uint32_relaxed(&object->ob_ref_local);
        if (_Py_IsImmortal(object) || (local != 0 && _Py_IsOwnedByCurrentThread(object))) {
            Py_INCREF(object);
            return 1;
        }
        shared = _Py_atomic_load_ssize_relaxed(&object->ob_ref_shared);
        while (shared != 0 && shared != _Py_REF_MERGED)
            if (_Py_atomic_compare_exchange_ssize(&object->ob_ref_shared, &shared, shared + one))
                return 1;
        return 0;
    }
    #endif
    #endif

    /* n references more (or less, where the object keeps some) to what `at` points to; the steps that it took.
     * Counting one by one costs as much as the copies do. Where counts are traced, or might reach the range
     * that means immortal, one by one. */
    static Py_ssize_t tilecore_add_references(const char *at, Py_ssize_t n)
    {
        PyObject *object = tilecore_load(at);
        if (object == NULL) return 1;
    #if SIZEOF_VOID_P >= 8 && !defined(Py_REF_DEBUG) && defined(Py_GIL_DISABLED)
        if (_Py_IsImmortal(object)) return 1;
        uint32_t local = _Py_atomic_load_uint32_relaxed(&object->ob_ref_local);
        if (n < (1 << 28) && local < (1 << 28) && _Py_IsOwnedByCurrentThread(object))
            _Py_atomic_store_uint32_relaxed(&object->ob_ref_local, local + (uint32_t)n);
        else
            _Py_atomic_add_ssize(&object->ob_ref_shared, n * (1 << _Py_REF_SHARED_SHIFT));
        return 1;
    #elif SIZEOF_VOID_P >= 8 && !defined(Py_REF_DEBUG)
        if (n < (1 << 28) && Py_REFCNT(object) < (1 << 28)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) + n);
            return 1;
        }
    #endif
        for (Py_ssize_t i = 0; i < n; i++) Py_INCREF(object);
        return n;
    }
    static void tilecore_remove_references(const char *at, Py_ssize_t n)
    {
        PyObject *object = tilecore_load(at);
        if (object == NULL) return;
    #if SIZEOF_VOID_P >= 8 && !defined(Py_REF_DEBUG) && !defined(Py_GIL_DISABLED)
        if (n < (1 << 28) && Py_REFCNT(object) < (1 << 28)) {
            Py_SET_REFCNT(object, Py_REFCNT(object) - n);
            return;
        }
    #endif
        for (Py_ssize_t i = 0; i < n; i++) Py_DECREF(object);
    }

    /* Items that are references and no more, at rest, each counted `more` times more; those that they replace come
     * into `old`, unless NULL. */
    static void tilecore_copy_references(char *to, Py_ssize_t to_step, const char *at, Py_ssize_t step, Py_ssize_t n,
                                         Py_ssize_t more, PyObject **old)
    {
        for (Py_ssize_t i = 0; i < n; i++, to += to_step, at += step) {
            PyObject *object = tilecore_count(at);
            if (more) tilecore_add_references((const char *)&object, more);
            if (old) old[i] = tilecore_load(to);
            memcpy(to, &object, sizeof object);
        }
    }
    """
    bint TILECORE_FREE_THREADED
    PyObject *tilecore_load(const char *at) noexcept
    PyObject *tilecore_exchange(char *at, PyObject *object) noexcept
    PyObject *tilecore_count(const char *at) noexcept
    void tilecore_enable(PyObject *object) noexcept
    bint tilecore_try(PyObject *object) noexcept
    ctypedef int (*tilecore_work)(PyObject *nobody, void *argument) noexcept
    void tilecore_stop_for(tilecore_work work, void *argument) noexcept
    Py_ssize_t tilecore_add_references(const char *at, Py_ssize_t n) noexcept
    void tilecore_remove_references(const char *at, Py_ssize_t n) noexcept
    void tilecore_copy_references(char *to, Py_ssize_t to_step, const char *at, Py_ssize_t step, Py_ssize_t n,
                                  Py_ssize_t more, PyObject **old) noexcept
