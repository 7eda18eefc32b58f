# shellcheck shell=bash
# What run, platform, sanitize, fuzz and wheels share. They begin with: source "$(dirname "$0")/common.sh"
# They work in the folder $work, which is removed when they end. A command that fails ends them.
set -euo pipefail
shopt -s globstar

SOURCES=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
cd "$work"

# says WORDS...: what is done next.
says() { printf '\n== %s\n' "$*"; }

# tree FOLDER: copies the sources there, without ignored files, and changes into it.
tree() {
    mkdir -p "$1"
    git -C "$SOURCES" ls-files -z --cached --others --exclude-standard |
        tar --create --directory "$SOURCES" --null --files-from - | tar --extract --directory "$1"
    cd "$1"
}

# environment PYTHON: makes and activates a fresh virtual environment of that interpreter, not of the one before.
environment() {
    ! declare -F deactivate > /dev/null || deactivate
    "$1" -m venv --clear "$work/environment"
    # shellcheck disable=SC1091
    source "$work/environment/bin/activate"
}

# quietly COMMAND...: shows what it printed only if it fails.
quietly() {
    "$@" > "$work/log" 2>&1 && return
    cat "$work/log" >&2
    return 1
}

# tests [ARGUMENT...]: pytest with these arguments, else the quick and the process tier.
tests() {
    [ $# -gt 0 ] || set -- -m "quick or process"
    pytest -p no:cacheprovider "$@"
}
