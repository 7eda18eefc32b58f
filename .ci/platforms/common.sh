# shellcheck shell=bash
# What the platforms' scripts, sanitize and fuzz share. A platform's begins with: source "$(dirname "$0")/common.sh"
# They work in the folder $work, which goes when they end, however that is. A command that fails ends them.
set -euo pipefail
shopt -s globstar

SOURCES=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
cd "$work"

# says WORDS...: what is done next.
says() { printf '\n== %s\n' "$*"; }

# needs PACKAGE...: Debian's packages; those that are missing are installed, by root alone.
needs() {
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>&1)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    says "installing ${missing[*]}"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}" > /dev/null
}

# tree FOLDER: a copy of the sources there, without what is built or ignored; and goes into it.
tree() {
    mkdir -p "$1"
    git -C "$SOURCES" ls-files -z --cached --others --exclude-standard |
        tar --create --directory "$SOURCES" --null --files-from - | tar --extract --directory "$1"
    cd "$1"
}

# environment PYTHON: a virtual environment of that interpreter, which is then used.
environment() {
    "$1" -m venv "$work/environment"
    # shellcheck disable=SC1091
    source "$work/environment/bin/activate"
}

# quietly COMMAND...: what it printed is shown only where it fails.
quietly() {
    "$@" > "$work/log" 2>&1 && return
    cat "$work/log" >&2
    return 1
}

# built_with [OPTION...] PACKAGE...: the sources, built and installed with these packages; without optimization, for time.
built_with() {
    tree "$work/tilecore"
    quietly pip install "$@" tqdm
    pip list | grep --ignore-case --extended-regexp '^(numpy|cython|setuptools|pytest|hypothesis|ml_dtypes) '
    CFLAGS=-O0 quietly pip install --no-build-isolation --no-deps .
}

# tests [ARGUMENT...]: pytest with these arguments, else the quick and the process tier.
tests() {
    [ $# -gt 0 ] || set -- -m "quick or process"
    pytest -p no:cacheprovider "$@"
}

# mirror: the address of the Debian mirror that apt is set up with.
mirror() {
    local uris
    # shellcheck disable=SC2016 # apt's own variable
    uris=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian')
    [ -n "$uris" ] || { echo "apt lists no mirror of Debian: run apt-get update, on a Debian system" >&2; return 1; }
    head --lines 1 <<< "$uris"
}

# ---------------------------------------------------------------- another processor's Linux

# debian SUITE ARCHITECTURE PACKAGE...: these packages of Debian's and what they need, unpacked in
# $work/root. Nothing in there is run or set up: a chroot, or an emulator's prefix, is enough.
debian() {
    local suite=$1 architecture=$2 package mirror
    shift 2
    mirror=$(mirror)
    says "Debian $suite for $architecture: $*"
    quietly debootstrap --force-check-gpg --download-only --arch="$architecture" --variant=minbase \
        --include="$(IFS=, && echo "$*")" "$suite" "$work/root" "$mirror"
    for package in "$work"/root/var/cache/apt/archives/*.deb; do dpkg --extract "$package" "$work/root"; done
    rm -r "$work"/root/var/cache/apt/archives
}

# emulator QEMU [OPTION...]: into the array $emulated, what runs the programs in $work/root. It looks there
# first for every name, so the empty folders that stand for the system's own go.
emulator() {
    rm -r "$work"/root/{dev,tmp}
    # shellcheck disable=SC2034 # used there
    emulated=("$@" -L "$work/root")
}

# modules COMPILER TRIPLET NUMPY: the compiled modules, by this compiler and for the Python 3.13 in
# $work/root, beside their sources in the current folder; NUMPY is the package that they shall use.
modules() {
    local compiler="$1 --sysroot=$work/root"
    says "building with $1"
    environment "${PYTHON:-python3}"
    pip install --quiet 'setuptools>=77' 'Cython>=3.1' 'numpy>=2.0'
    # What this compiler warns of, and later ones refuse, is an error.
    SETUPTOOLS_EXT_SUFFIX=.cpython-313-$2.so CC=$compiler LDSHARED="$compiler -shared" \
        CFLAGS="-DNDEBUG -fwrapv -Werror=incompatible-pointer-types -I$work/root/usr/include/python3.13 -I$3/_core/include" \
        quietly python setup.py build_ext --inplace
}

# without MODULE: into the array $options, pytest's that leave out the tests whose files import it.
without() {
    local file
    options=()
    while read -r file; do options+=("--ignore=$file"); done < <(grep -lE "^(import|from) $1\b" tests/test_*.py)
}

# programs COMPILER RUNNER...: the engine's own tests, C programs, compiled and run; fewer cases of the kernels, for time.
# FORKS says how many forks the workers must bear. Under qemu-user none: its own threads are counted, and miss in the child.
programs() {
    local compiler=$1 core=tilecore/_core/kernels program
    local flags=(-std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -pthread -static -Itilecore/_core -DMOST_ROWS=40)
    shift
    says "the kernels, the workers and the page code, by themselves"
    $compiler "${flags[@]}" tests/kernels.c $core/kernels.c -o kernels.exe # the name that Windows demands
    for program in workers pages; do $compiler "${flags[@]}" tests/$program.c -o $program.exe; done
    "$@" ./kernels.exe
    "$@" ./pages.exe
    "$@" ./workers.exe run 1 20000 "${FORKS-60}"
    "$@" ./workers.exe run 8 20000 "${FORKS-60}"
    for program in parked return _exit; do "$@" ./workers.exe exit "$program"; done
}

# ---------------------------------------------------------------- compiled by zig's clang, with that system's headers

# zig: clang with the headers and libraries of many systems, from PyPI; and the modules' C, made by Cython.
zig() {
    environment "${PYTHON:-python3}"
    says "zig, and the modules' C"
    pip install --quiet ziglang 'Cython>=3.1' 'numpy>=2.0'
    export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
    cython --directive boundscheck=False,wraparound=False,cdivision=True tilecore/**/*.pyx # as setup.py
}

# compiles TARGET PYTHON WHEEL: the engine as C11 and C++17, and every module, without a warning. PYTHON is the
# folder of the headers of Python, WHEEL the name of the platform in NumPy's wheel.
compiles() {
    local core=tilecore/_core/kernels module header
    local warnings=(-Wall -Wextra -Wpedantic -Werror)
    says "compiling for $1"
    quietly python -m pip download --no-deps --only-binary :all: --python-version 3.13 --platform "$3" --dest "$work/$3" numpy
    python -m zipfile --extract "$work/$3"/numpy-*.whl "$work/$3"
    for header in "$core"/*.h; do echo "#include \"kernels/$(basename "$header")\""; done > headers.c
    for module in $core/kernels.c headers.c; do
        python -m ziglang cc -target "$1" -std=c11 -D_GNU_SOURCE -O2 "${warnings[@]}" -Itilecore/_core -c "$module" -o "$work/o"
        python -m ziglang c++ -target "$1" -std=c++17 -D_GNU_SOURCE -O2 "${warnings[@]}" -Itilecore/_core -x c++ -c "$module" \
            -o "$work/o"
    done
    local modules=(tilecore/**/*.pyx)
    for module in "${modules[@]/%.pyx/.c}"; do
        # -isystem: Python's and NumPy's headers are others' to mend.
        python -m ziglang cc -target "$1" -O0 -Wall -Wextra -Werror -isystem "$2" -isystem "$work/$3/numpy/_core/include" \
            -Iinclude -Itilecore/_core -DNPY_NO_DEPRECATED_API=NPY_2_0_API_VERSION \
            -DNPY_TARGET_VERSION=NPY_2_0_API_VERSION -c "$module" -o "$work/o"
    done
    echo "the engine and ${#modules[@]} modules"
}

# fetch SUITE PACKAGE, fetch SUITE source PACKAGE: a package of Debian's, unpacked in $work/root, or the sources as
# their authors released them, in $work/sources. apt checks the suite's signature, and by it every file.
fetch() {
    local apt=$work/apt archive mirror
    mirror=$(mirror)
    local options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$apt/lists")
    says "Debian $*"
    mkdir -p "$apt/lists/partial" "$work/root" "$work/sources"
    printf "%s [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror %s main\\n" deb "$1" deb-src "$1" \
        > "$apt/sources.list"
    quietly apt-get "${options[@]}" update
    cd "$apt"
    if [ "$2" = source ]; then
        quietly apt-get "${options[@]}" source --download-only "$3"
        for archive in "$3"_*.orig.tar.*z; do tar --extract --strip-components 1 --directory "$work/sources" --file "$archive"; done
    else
        quietly apt-get "${options[@]}" download "$2"
        for archive in "$2"_*.deb; do dpkg --extract "$archive" "$work/root"; done
    fi
    cd "$work"
}
