# tests/lib/cli.sh -- what the tests of the program `stele` have in common.
#
#     . "$(dirname "$0")/lib/cli.sh"    with BIN_DIR as $1
#
# Goes to an empty directory of its own, which is removed at the end.
set -eu
export LC_ALL=C.UTF-8

stele=$(cd "$1" && pwd)/stele
tests=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
cd "$work"
passed=0

fail() {
    echo "FAILED: $1"
    echo "  code $code"
    echo "  stdout: $(head -c 2000 out)"
    echo "  stderr: $(head -c 2000 err)"
    exit 1
}

pass() {
    passed=$((passed + 1))
    echo "ok $passed - $1"
}

# run ARGUMENT...: the program, its exit code in $code, its words in out and err.
run() {
    code=0
    "$stele" "$@" >out 2>err || code=$?
}

# does SENTENCE CODE ARGUMENT...
does() {
    sentence=$1
    local wanted=$2
    shift 2
    run "$@"
    [ "$code" = "$wanted" ] || fail "$sentence: exit code, not $wanted"
    pass "$sentence"
}

# After `does`: stderr contains this.
says() {
    grep -qF -- "$1" err || fail "$sentence: does not say: $1"
}

# state DIR: every key and value with the lsn that put it.
state() {
    "$stele" list "$1" --values --json
}
