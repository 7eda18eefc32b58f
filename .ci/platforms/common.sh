# shellcheck shell=bash
# What the platforms' scripts share. Each begins with: source "$(dirname "$0")/common.sh"
# They work in the folder $work, which goes when they end, however that is. A command that fails ends them.
set -euo pipefail

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

# ---------------------------------------------------------------- another processor's Linux

# debian SUITE ARCHITECTURE PACKAGE...: these packages of Debian's and what they need, unpacked in
# $work/root. Nothing in there is run or set up: a chroot, or an emulator's prefix, is enough.
debian() {
    local suite=$1 architecture=$2 package
    shift 2
    says "Debian $suite for $architecture: $*"
    quietly debootstrap --download-only --arch="$architecture" --variant=minbase \
        --include="$(IFS=, && echo "$*")" "$suite" "$work/root" http://deb.debian.org/debian
    for package in "$work"/root/var/cache/apt/archives/*.deb; do dpkg --extract "$package" "$work/root"; done
    rm -r "$work"/root/var/cache/apt/archives
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

# programs COMPILER RUNNER...: the engine's own tests, C programs, compiled and run.
# FORKS says how many forks the workers must bear; qemu-user bears none, for its own threads miss in the child.
programs() {
    local compiler=$1 core=tilecore/_core/kernels program
    local flags=(-std=c11 -O2 -Wall -Wextra -Wpedantic -Werror -pthread -static -Itilecore/_core)
    shift
    says "the kernels, the workers and the page code, by themselves"
    $compiler "${flags[@]}" tests/kernels.c $core/kernels.c -o kernels
    for program in workers pages; do $compiler "${flags[@]}" tests/$program.c -o $program; done
    "$@" ./kernels
    "$@" ./pages
    "$@" ./workers run 1 20000 "${FORKS-60}"
    "$@" ./workers run 8 20000 "${FORKS-60}"
    for program in parked return _exit; do "$@" ./workers exit "$program"; done
}
