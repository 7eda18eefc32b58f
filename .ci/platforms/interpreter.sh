# shellcheck shell=bash disable=SC2154,SC2164 # common.sh has $work, and ends where a command fails
# For the platforms that are a Python: source "$(dirname "$0")/interpreter.sh", after common.sh.

# interpreter VERSION [OPTION...]: $interpreter is the Python that PYTHON names, else one of that version,
# built with these options of configure from the sources that Debian holds, as their authors released them.
interpreter() {
    local version=$1 debian=http://deb.debian.org/debian newest patch archive
    shift
    interpreter=${PYTHON-}
    [ -z "$interpreter" ] || return 0
    needs curl gcc libc6-dev libffi-dev libssl-dev make xz-utils zlib1g-dev
    # The unstable suite lists every version of Python that Debian has; a mirror may lag behind its own list.
    newest=$(curl --silent --show-error --fail --location "$debian/dists/sid/main/source/Sources.xz" | xz --decompress |
        grep --only-matching --perl-regexp "python${version}_$version\.\K\d+(?=\.orig\.tar\.xz)" | sort --numeric-sort | tail --lines 1)
    for ((patch = newest; patch >= 0; patch--)); do
        archive=$debian/pool/main/p/python$version/python${version}_$version.$patch.orig.tar.xz
        ! curl --silent --fail --location --output "$work/archive" "$archive" || break
    done
    says "building Python $version.$patch $*"
    mkdir "$work/cpython"
    tar --extract --xz --strip-components 1 --directory "$work/cpython" --file "$work/archive"
    (
        cd "$work/cpython"
        quietly ./configure --prefix="$work/python" "$@" CFLAGS=-O2
        quietly make --jobs="$(nproc)"
        quietly make install
    )
    rm -r "$work/cpython" "$work/archive"
    interpreter=$work/python/bin/python$version
}
