# shellcheck shell=bash
# tools/install.sh -- sourced by demo.sh and check.sh: Debian packages.

# shellcheck disable=SC2034
# All that building takes; check.sh adds what testing takes.
build_packages=(gcc libc6-dev cmake ninja-build pkg-config patch
    liblmdb-dev libxxhash-dev libcmocka-dev libjansson-dev)

# missing_packages PACKAGE...: those that are not installed, one a line.
missing_packages() {
    local package
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null |
            grep -x installed >/dev/null || echo "$package"
    done
}

# install_missing PACKAGE...: asks for nothing, and does nothing if all is there.
install_missing() {
    local missing as_root=()

    if ! command -v dpkg-query >/dev/null; then
        echo "Not Debian: assuming that these are installed, by whatever name:"
        echo "    $*"
        return
    fi
    mapfile -t missing < <(missing_packages "$@")
    if [ "${#missing[@]}" = 0 ]; then
        return
    fi
    if [ "$(id -u)" != 0 ]; then
        if ! command -v sudo >/dev/null; then
            echo "Missing packages, and neither root nor sudo to install them:" >&2
            echo "    apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
    fi
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    echo "Installing: ${missing[*]}"
    # The lists of a fresh machine are empty or old: then update, once.
    "${as_root[@]}" apt-get install -qq -y --no-install-recommends \
        "${missing[@]}" >/dev/null 2>&1 ||
        { "${as_root[@]}" apt-get update -qq &&
            "${as_root[@]}" apt-get install -qq -y --no-install-recommends \
                "${missing[@]}" >/dev/null; }
    mapfile -t missing < <(missing_packages "$@")
    if [ "${#missing[@]}" != 0 ]; then
        echo "Not installed: ${missing[*]}" >&2
        return 1
    fi
}
