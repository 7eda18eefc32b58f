from setuptools import Extension, setup

import tilecore

flags = ["-std=c++17", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
setup(
    ext_modules=[
        Extension(
            "cpp_consumer",
            ["consumer.cpp", "arrays.cpp"],
            include_dirs=[tilecore.get_include()],
            extra_compile_args=flags,
        )
    ]
)
