cimport numpy as cnp

from tilecore._core.write.results cimport tile_or_none  # for the dialects and replacement.pyx: they know no other layer


cpdef tile_plain(cnp.ndarray array, reps, out=*, axis=*, threads=*)
