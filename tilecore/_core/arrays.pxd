cimport numpy as cnp

from tilecore._core.write.results cimport tile_or_none  # for the dialects too


cpdef tile_plain(cnp.ndarray array, reps, out=*, axis=*, threads=*)
