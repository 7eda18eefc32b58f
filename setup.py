"""Build logic, and the project's links; the other metadata stands in pyproject.toml."""

import copy
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from Cython.Build.Dependencies import default_create_extension
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

# The repository's address on GitHub stands here and nowhere else. While it is empty, distributions have no links,
# and wheels.yml publishes nothing.
REPOSITORY = ""
VERSION = re.search('"(.+)"', Path("tilecore/_version.py").read_text())[1]  # the one place

SOURCES = sorted(Path("tilecore").rglob("*.pyx"))
CORE = Path("tilecore/_core")
INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
# C that modules are linked with. What has state belongs to one: a second would have workers, or memory, of its own.
# `pages` has none, and that of `system` is a module's, so both are in two.
LINKED = {
    "mapped.pyx": "pages",
    "memory.pyx": "arena pages system",
    "processor.pyx": "kernels",
    "stores.pyx": "learn_stores",
    "tiling.pyx": "workers learn_threads system",
}
if sys.platform == "win32":
    OPTIONS, THREADS = ["/O2"], []
else:
    # A loop of a few stores takes up to twice as long if it crosses a cache line. Most Pythons were built with -g,
    # and debug information is four fifths of a module. CFLAGS is repeated because later options win.
    OPTIONS = ["-O3", "-falign-loops=64", "-g0", "-fvisibility=hidden", *shlex.split(os.environ.get("CFLAGS", ""))]
    THREADS = ["-pthread"]


class build_py_with_headers(build_py):
    """Copies the C headers, and the files by which builds find them, into the package: see `get_include()`."""

    def run(self):
        super().run()
        if not self.editable_mode:  # get_include() falls back to the checkout's own folder
            folder = Path(self.build_lib, "tilecore", "include")
            shutil.copytree("include", folder, ignore=shutil.ignore_patterns("*.in"), dirs_exist_ok=True)


class build_ext_apart(build_ext):
    """Compiles each module in a folder of its own: modules that are built at once are linked with the same C files."""

    def build_extension(self, ext):
        apart = copy.copy(self)
        apart.build_temp = os.path.join(self.build_temp, ext.name)
        build_ext.build_extension(apart, ext)


def extension(source):
    return Extension(
        ".".join(source.with_suffix("").parts),
        [str(source), *(str(*CORE.glob(f"*/{name}.c")) for name in LINKED.get(source.name, "").split())],
        include_dirs=["include", "tilecore/_core", numpy.get_include()],
        define_macros=[("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"), ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION")],
        extra_compile_args=OPTIONS + THREADS,
        extra_link_args=THREADS,
    )


def with_headers(template, options):
    """Cython's own `depends`, the headers of `cdef extern from`, and all that these and linked C files include."""
    module, metadata = default_create_extension(template, options)
    new, found = {*module.depends, *module.sources[1:]}, set()
    while new:
        found |= new
        paths = {Path(path).parent / name for path in new for name in INCLUDE.findall(Path(path).read_text())}
        new = {str(path) for path in paths if not path.is_absolute()} - found  # those are NumPy's
    module.depends = sorted(found)
    return module, metadata


def links():
    """The project's URLs, and the README with absolute links, for pages outside the repository."""
    readme = {"long_description": Path("README.md").read_text(encoding="utf-8")}
    readme["long_description_content_type"] = "text/markdown"
    if not REPOSITORY:
        return readme

    def absolute(link):
        return f"{link[1]}{REPOSITORY}/{'raw' if link[1][0] == '!' else 'blob'}/v{VERSION}/"

    readme["long_description"] = re.sub(r"(!?\[[^]]*\]\()(?![a-z]+:|#)", absolute, readme["long_description"])
    owner, name = REPOSITORY.split("/")[-2:]
    urls = {"Source": REPOSITORY, "Documentation": f"https://{owner}.github.io/{name}/"}
    urls |= {"Changelog": f"{REPOSITORY}/blob/HEAD/CHANGELOG.md", "Issues": f"{REPOSITORY}/issues"}
    return readme | {"project_urls": urls}


for template in Path("include").glob("*.in"):  # for pkg-config and CMake
    template.with_suffix("").write_text(template.read_text().replace("@VERSION@", VERSION))

jobs = re.search(r"(?:-j|--jobs=) *(\d+)", os.environ.get("MAKEFLAGS", ""))  # what a packager allows
modules = cythonize(
    [extension(source) for source in SOURCES],
    build_dir="build/cython",
    create_extension=with_headers,
    # No index is negative or out of bounds, no divisor is 0, and `%` is C's.
    # Without the GIL too: each module with state explains why that is safe.
    compiler_directives={
        "boundscheck": False,
        "wraparound": False,
        "cdivision": True,
        "freethreading_compatible": True,
    },
)
setup(
    **links(),
    ext_modules=modules,
    cmdclass={"build_py": build_py_with_headers, "build_ext": build_ext_apart},
    options={"build": {"parallel": int(jobs[1]) if jobs else True}},  # a module on each processor
)
