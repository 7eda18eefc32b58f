import sys

from Cython.Build import cythonize
from setuptools import Extension, setup

# No include path is needed: `cimport tilecore` finds the installed package.
flags = ["-Wall", "-Wextra", "-Werror"]
# What Cython itself writes does not keep to these two.
flags += ["-Wno-unused-parameter", "-Wno-missing-field-initializers"]
# For prange. Without it, as with macOS' own compiler, the loop runs in one thread.
openmp = ["-fopenmp"] if sys.platform == "linux" else []
extension = Extension("cython_consumer", ["consumer.pyx"], extra_compile_args=flags + openmp, extra_link_args=openmp)
setup(ext_modules=cythonize([extension]))
