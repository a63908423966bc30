#!/bin/bash
# tools/check.sh -- everything that must hold before a change goes in.
#
# Installs what is missing, builds with gcc and with clang, warnings being
# errors, and runs every test; all of them again under the address and undefined
# behaviour sanitizers, and the concurrent ones under the thread sanitizer. Looks
# at 100,000 crash states, and at every mutant. Stops at the first failure.
#
# JOBS=N: build and test with N at a time, instead of one for each processor.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
jobs=${JOBS:-$(nproc)}
started=$SECONDS

# shellcheck source=tools/install.sh
. "$root/tools/install.sh"
check_packages=("${build_packages[@]}" git clang libclang-rt-dev llvm
    # Whom stele-bench compares with, and what draws its pictures.
    libsqlite3-dev librocksdb-dev libleveldb-dev libwiredtiger-dev libdb-dev
    libhiredis-dev redis-server gnuplot-nox)

# Tests write gigabytes and sync: on the disk that holds the checkout, and not in
# a /tmp that may be in memory.
mkdir -p build
export TMPDIR=$root/build/check-tmp
rm -rf "$TMPDIR"
mkdir -p "$TMPDIR"
trap 'rm -rf "$TMPDIR"' EXIT

# stage NAME COMMAND...
stage() {
    local name=$1 before=$SECONDS
    shift
    echo "==== $name"
    "$@" || {
        echo "==== FAILED: $name, after $((SECONDS - before)) s" >&2
        exit 1
    }
    echo "==== $name: $((SECONDS - before)) s"
}

# quietly COMMAND...: its output only if it fails.
quietly() {
    "$@" >"$TMPDIR/output" 2>&1 || {
        tail -n 100 "$TMPDIR/output"
        return 1
    }
}

build_preset() {
    quietly cmake --preset "$1" && quietly cmake --build "build/$1" -j "$jobs"
}

build_with_clang() {
    quietly cmake -S . -B build/clang -G Ninja -DCMAKE_C_COMPILER=clang \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSTELE_WERROR=ON &&
        quietly cmake --build build/clang -j "$jobs"
}

# The sanitizers of clang 14 need the addresses where they expect them, and newer
# kernels randomize more than that.
fixed_addresses=()
if setarch "$(uname -m)" -R true 2>/dev/null; then
    fixed_addresses=(setarch "$(uname -m)" -R)
fi

# run_tests PRESET [CTEST_OPTION...]: that there are none is a failure too.
run_tests() {
    local preset=$1
    shift
    "${fixed_addresses[@]}" ctest --test-dir "build/$preset" \
        --no-tests=error --output-on-failure --timeout 900 -j "$jobs" "$@"
}

stage "install packages" install_missing "${check_packages[@]}"
stage "build: gcc, debug" build_preset dev
stage "test: gcc, debug" run_tests dev
stage "build: gcc, optimized" build_preset release
stage "100,000 crash states" build/release/bin/stele-crash --states 100000
stage "mutants" build/release/bin/stele-crash --mutants
stage "build: clang, optimized" build_with_clang
stage "build: address and undefined behaviour sanitizers" build_preset asan
stage "test: address and undefined behaviour sanitizers" run_tests asan
stage "build: thread sanitizer" build_preset tsan
stage "test: thread sanitizer, concurrent tests" \
    run_tests tsan -L concurrent
echo "==== All checks passed: $((SECONDS - started)) s"
