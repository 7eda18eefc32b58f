cimport numpy as cnp


cpdef tile_array(cnp.ndarray array, reps, out=*, axis=*, threads=*)
