"""Results with repeats that share pages, each page until it is written to.

Most repeats are never changed. So their bytes are written once, to a file in memory, and the file is mapped privately
once for each group of repeats: the addresses are the array's, the pages are shared. The system copies a page when it is
written to.

    nest of 1 MiB repeated 1000 times:        file of 2 MiB (two repeats grouped), mapped 500 times
    nest of 3000 bytes repeated 10**6 times:  1024 repeats make 750 pages; 977 mappings, the last shorter

The repeats of the outermost loop share pages. They are grouped into whole pages, and into larger groups if a larger
file costs less than more mappings. A group is made in scratch, and then written to the file. The result's last mapping
is rounded up to a page, and shows a little more of the file.

The system limits the mappings of a process (vm.max_map_count): all living results share a quarter of them. If these do
not suffice, or the system refuses one, there is no mapped result, and the caller copies.
"""

from tilecore._core.resources.machine import physical_memory, read_text

cimport cython
cimport numpy as cnp
from libc.stdlib cimport free, malloc

from tilecore._core.atomic cimport tilecore_atomic_add, tilecore_atomic_load
from tilecore._core.config cimport TILECORE_CHECK_BYTES
from tilecore._core.numpy_api cimport NPY_ARRAY_CARRAY, PY_SSIZE_T_MAX, array_upon
from tilecore._core.plan.nest cimport Loop, Nest, nest_init, nest_push
from tilecore._core.plan.plan cimport Plan, has_input_shape
from tilecore._core.resources.memory cimport check_size
from tilecore._core.strided_arrays cimport StridedArray, locate_array
from tilecore._core.write.tiling cimport WriteOptions, check_signals, read_options, check_status, write_nest

cnp.import_array()


cdef enum:
    # Costs, in bytes of an ordinary result that are written in the same time, at 8 GB/s
    MAPPING_COST = 32768        # of a mapping: 4 us
    FILE_COST = 6               # of a byte of the file, which is written at 1.1 to 2.4 GB/s
    MIN_GAIN = 2                # the least that makes sharing worth it, below LARGE_BYTES
    LARGE_BYTES = 1 << 24       # from here on memory counts, not time: MAX_WAIT times that of the ordinary result
    MAX_WAIT = 2                # so the file takes at most MAX_WAIT / FILE_COST, a third, of the result's bytes


cdef extern from "runtime/pages.h" nogil:
    Py_ssize_t TILECORE_HUGE_BYTES
    Py_ssize_t tilecore_page_bytes()
    void tilecore_pages_free(void *at, Py_ssize_t bytes)
    int tilecore_file_new(Py_ssize_t bytes)
    void tilecore_file_free(int file)
    int tilecore_file_write(int file, const char *src, Py_ssize_t bytes, Py_ssize_t offset)
    char *tilecore_addresses_new(Py_ssize_t bytes)
    void tilecore_addresses_advise(char *at, Py_ssize_t bytes, bint huge)
    int tilecore_file_map(int file, char *at, Py_ssize_t bytes)


cdef Py_ssize_t page = tilecore_page_bytes()
cdef Py_ssize_t memory          # of the machine; if a block and its file take more, Linux kills a process
cdef Py_ssize_t most_mappings   # limit for all living results
cdef Py_ssize_t mappings        # of all living results; changed only by atomic additions


cdef Py_ssize_t choose_file_bytes(const Loop *outermost, Py_ssize_t nbytes) noexcept nogil:
    """Return the size of the file, whole repeats, that costs least; 0 if none is possible, or it costs too much."""
    cdef Py_ssize_t best = nbytes * MAX_WAIT if nbytes >= LARGE_BYTES else nbytes // MIN_GAIN, chosen = 0
    cdef Py_ssize_t left = most_mappings - tilecore_atomic_load(&mappings)
    cdef Py_ssize_t grouped, count, cost, block
    if outermost.src_step != 0 or nbytes > PY_SSIZE_T_MAX // MAX_WAIT - page:
        return 0
    # As many repeats as make whole pages. A page is a power of two.
    grouped = page // min(outermost.dst_step & -outermost.dst_step, page)
    while grouped < outermost.count and outermost.dst_step * grouped <= best // FILE_COST:
        block = outermost.dst_step * grouped
        count = (nbytes - 1) // block + 1
        if count <= left and block <= memory // 2:
            cost = count * MAPPING_COST + block * FILE_COST
            if cost < best:
                best, chosen = cost, block
        grouped *= 2
    return chosen


cdef int write_file(int file, const Nest *nest, const char *src, Py_ssize_t nbytes,
                    WriteOptions *options) noexcept nogil:
    """Write the block to the file: made in scratch, unless it is the source's bytes as they are.

    Return 0, or 1 if the system refuses, or -1 if a signal handler raised.
    """
    cdef Py_ssize_t offset = 0, chunk
    cdef void *scratch = NULL
    cdef int status = 0
    if nest.n > 1:
        scratch = malloc(nbytes)
        if scratch == NULL:
            return 1
        if nbytes > TILECORE_HUGE_BYTES:
            tilecore_addresses_advise(<char *>round_to_pages(<Py_ssize_t>scratch), nbytes - page, True)
        status = write_nest(nest, <char *>scratch, src, nbytes, options)
        src = <const char *>scratch
    while status == 0 and offset < nbytes:
        chunk = min(nbytes - offset, TILECORE_CHECK_BYTES)
        if tilecore_file_write(file, src + offset, chunk, offset) < 0:
            status = 1
        else:
            status = check_signals(options, chunk)
        offset += chunk
    free(scratch)
    return status


cdef int map_file(int file, Py_ssize_t file_bytes, char *at, Py_ssize_t nbytes) noexcept nogil:
    """Map the file for every group of repeats; return 0, or -1 if the system refuses."""
    cdef Py_ssize_t offset = 0
    while offset < nbytes:  # whole pages, except at the result's end
        if tilecore_file_map(file, at + offset, round_to_pages(min(file_bytes, nbytes - offset))) < 0:
            return -1
        offset += file_bytes
    return 0


cdef Py_ssize_t round_to_pages(Py_ssize_t bytes) noexcept nogil:
    return (bytes + page - 1) & -page


@cython.final
@cython.auto_pickle(False)
cdef class Mapping:
    """The base of a mapped result: unmaps its addresses when the last view is deallocated."""
    cdef char *at
    cdef Py_ssize_t bytes
    cdef Py_ssize_t count   # the result's part of `mappings`

    def __dealloc__(self):
        if self.at != NULL:
            tilecore_pages_free(self.at, self.bytes)
        tilecore_atomic_add(&mappings, -self.count)


cdef int write_and_map(Mapping mapping, Py_ssize_t file_bytes, const Nest *nest, const char *src,
                       WriteOptions *options) noexcept nogil:
    """Write the file and map it; return as write_file. `mapping` then unmaps all, also after an error."""
    cdef const Loop *outermost = &nest.loop[nest.n - 1]
    cdef Nest loops = nest[0]
    cdef int status, file = tilecore_file_new(file_bytes)
    if file < 0:
        return 1
    loops.n -= 1
    nest_push(&loops, file_bytes // outermost.dst_step, 0, outermost.dst_step)
    status = write_file(file, &loops, src, file_bytes, options)
    if status == 0:
        mapping.at = tilecore_addresses_new(mapping.bytes)
        if mapping.at == NULL or map_file(file, file_bytes, mapping.at, mapping.bytes) < 0:
            status = 1
    tilecore_file_free(file)  # the mappings keep its pages
    return status


cdef cnp.ndarray map_repeats(const Plan *plan, cnp.ndarray array):
    """The tiling of an array of plain items; None if its shape changed, sharing does not pay, or the system refuses."""
    cdef Nest nest
    cdef StridedArray source, target
    cdef Mapping mapping
    cdef WriteOptions options
    cdef cnp.dtype dtype = array.descr
    cdef Py_ssize_t file_bytes
    cdef int status
    read_options(&options, plan.nbytes, 0, False, False)
    if not has_input_shape(array, plan):
        return None
    locate_array(&source, array)
    target.contiguous = True
    nest_init(plan, &source, &target, &nest)
    file_bytes = choose_file_bytes(&nest.loop[nest.n - 1], plan.nbytes)
    if file_bytes == 0:
        return None
    check_size(file_bytes, "the block that its repeats share")
    mapping = Mapping.__new__(Mapping)
    mapping.count = (plan.nbytes - 1) // file_bytes + 1
    mapping.bytes = round_to_pages(plan.nbytes)
    if tilecore_atomic_add(&mappings, mapping.count) > most_mappings - mapping.count:
        return None
    with nogil:
        status = write_and_map(mapping, file_bytes, &nest, source.data, &options)
    if check_status(status) > 0:
        return None
    return array_upon(mapping, plan.ndim, plan.output_shape, NULL, dtype, mapping.at, NPY_ARRAY_CARRAY)


memory = physical_memory()
most_mappings = int(read_text("/proc/sys/vm/max_map_count") or 65530) // 4
