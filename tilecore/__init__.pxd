"""The names for `cimport tilecore`. No import call is needed; tilecore.h describes the functions."""

from tilecore.capi cimport *
