"""What `cimport tilecore` gives. No import call is needed; tilecore.h describes the functions."""

from tilecore.capi cimport *
