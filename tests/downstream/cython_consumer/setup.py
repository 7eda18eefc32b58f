from Cython.Build import cythonize
from setuptools import Extension, setup

# No include path is needed: `cimport tilecore` finds the installed package.
flags = ["-Wall", "-Wextra", "-Werror"]
# What Cython itself writes does not keep to these two.
flags += ["-Wno-unused-parameter", "-Wno-missing-field-initializers"]
setup(
    ext_modules=cythonize(
        [Extension("cython_consumer", ["consumer.pyx"], extra_compile_args=flags)]
    )
)
