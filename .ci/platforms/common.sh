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
