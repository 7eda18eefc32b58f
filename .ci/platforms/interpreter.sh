# shellcheck shell=bash disable=SC2154,SC2164 # common.sh has $work, and ends where a command fails
# For the platforms that are a Python: source "$(dirname "$0")/interpreter.sh", after common.sh.

# interpreter VERSION [OPTION...]: $interpreter is the Python that PYTHON names, else one of that version,
# built with these options of configure from the sources that Debian holds, as their authors released them.
interpreter() {
    local version=$1 debian=http://deb.debian.org/debian archive
    shift
    interpreter=${PYTHON-}
    [ -z "$interpreter" ] || return 0
    needs curl gcc libc6-dev libffi-dev libssl-dev make xz-utils zlib1g-dev
    # The unstable suite has every version of Python that Debian has.
    archive=$(curl --silent --show-error --fail --location "$debian/dists/sid/main/source/Sources.xz" | xz --decompress |
        grep --only-matching "python${version}_[0-9.]*\.orig\.tar\.xz" | sort --version-sort --unique | tail --lines 1)
    says "building ${archive%.orig.tar.xz} $*"
    mkdir "$work/cpython"
    curl --silent --show-error --fail --location "$debian/pool/main/p/python$version/$archive" |
        tar --extract --xz --strip-components 1 --directory "$work/cpython"
    (
        cd "$work/cpython"
        quietly ./configure --prefix="$work/python" "$@" CFLAGS=-O2
        quietly make --jobs="$(nproc)"
        quietly make install
    )
    rm -r "$work/cpython"
    interpreter=$work/python/bin/python$version
}
