# shellcheck shell=bash disable=SC2154,SC2164 # common.sh has $work, and ends where a command fails
# For the platforms that are a Python: source "$(dirname "$0")/interpreter.sh", after common.sh.

# interpreter VERSION [OPTION...]: $interpreter is the Python that PYTHON names, else one of that version,
# built with these options of configure from the sources in Debian's unstable suite, as their authors released them.
interpreter() {
    local version=$1
    shift
    interpreter=${PYTHON-}
    [ -z "$interpreter" ] || return 0
    needs gcc libc6-dev libffi-dev libssl-dev make xz-utils zlib1g-dev
    fetch sid source "python$version"
    says "building Python $version $*"
    (
        cd "$work/sources"
        quietly ./configure --prefix="$work/python" "$@" CFLAGS=-O2
        quietly make --jobs="$(nproc)"
        quietly make install
    )
    rm -r "$work/sources"
    interpreter=$work/python/bin/python$version
}
