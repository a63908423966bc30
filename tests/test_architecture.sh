#!/bin/sh
# tests/test_architecture.sh -- the shape of the program, checked by machine.
#
#     test_architecture.sh BUILD_DIR SOURCE_DIR
#
# Who may include whom; the three doors; what the library exports; nothing left
# to do; nothing in the texts that holds on one machine only. Prints every
# finding and exits 1 if there was one.
set -u
LC_ALL=C
export LC_ALL

if [ $# -ne 2 ]; then
    echo "usage: $0 BUILD_DIR SOURCE_DIR" >&2
    exit 2
fi
build=$1
cd "$2" || exit 2

# complain WHAT: a finding for every line on the standard input.
complain() {
    while IFS= read -r line; do
        echo "$1: $line"
        echo x >>"$findings"
    done
}
findings=$(mktemp) || exit 2
trap 'rm -f "$findings"' EXIT

# sources DIR...: the C files below these directories that exist.
sources() {
    for dir in "$@"; do
        [ -d "$dir" ] && find "$dir" -name '*.[ch]'
    done
}

# ---- Include direction -----------------------------------------------------------
#
#     base <- wal     base <- snapshot     base, wal, snapshot <- engine <- tools

# may_include DIR ALLOWED...: quoted includes of DIR name only these directories.
may_include() {
    layer=$1
    shift
    allowed=$(echo "$@" | tr ' ' '|')
    grep -n '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
        $(sources "$layer") /dev/null | grep -v -E "\"($allowed)/" |
        complain "$layer/ includes what it must not"
}
may_include base base
may_include wal base wal
may_include snapshot base snapshot
may_include engine base wal snapshot engine
may_include tools base wal snapshot engine tools

# The public headers stand alone: the C standard's, and each other.
for header in engine/stele.h base/status.h; do
    grep -n '^[[:space:]]*#[[:space:]]*include' "$header" |
        grep -v -E '<(stdbool|stddef|stdint)\.h>|"base/status\.h"' |
        sed "s|^|$header:|"
done | complain 'a public header includes what it must not'

# ---- The three doors ----------------------------------------------------------------

# only_in HEADER FILE...: nobody but these files includes HEADER.
only_in() {
    header=$1
    shift
    owners=$(echo "$@" | tr ' ' '|')
    grep -n "include[[:space:]]*<$header>" \
        $(sources base wal snapshot engine tools tests fuzz) |
        grep -v -E "^($owners):" | complain "<$header> belongs into $* alone"
}
# LMDB is also one of those whom the benchmark compares with.
only_in lmdb.h engine/index_lmdb.c tools/bench/lmdb_env.h
only_in xxhash.h base/checksum.c
only_in sqlite3.h tools/bench/peers/peer_sqlite.c
only_in rocksdb/c.h tools/bench/peers/peer_rocksdb.c
only_in leveldb/c.h tools/bench/peers/peer_leveldb.c
only_in wiredtiger.h tools/bench/peers/peer_wiredtiger.c
only_in db.h tools/bench/peers/peer_berkeley.c
only_in hiredis/hiredis.h tools/bench/peers/peer_redis.c

# Calls of the kernel's file system, clock and randomness. A name of ours that
# ends in one of these (io_file_open) is not one; nor is a member (calls->open).
calls='open|openat|creat|close|read|write|pread|pwrite|preadv|pwritev|lseek'
calls="$calls|fopen|fclose|fread|fwrite|fsync|fdatasync|sync|syncfs|msync"
calls="$calls|rename|renameat|unlink|unlinkat|link|linkat|symlink|remove"
calls="$calls|mkdir|mkdirat|rmdir|opendir|fdopendir|readdir|stat|fstat|lstat"
calls="$calls|fstatat|statx|statfs|fstatfs|truncate|ftruncate|fallocate"
calls="$calls|posix_fallocate|posix_fadvise|mmap|munmap|flock|fcntl|lockf"
calls="$calls|ioctl|access|chmod|fchmod|chown|dup|dup2|pipe|time|gettimeofday"
calls="$calls|rand|random|srand|getrandom|getentropy|sleep|usleep|nanosleep"
calls="$calls|syscall|fork|exec[lv]p*e*|system|abort|exit"

# stripped FILE...: "file:line:text" without comments and strings. (A comment
# to the end of the line does not occur.)
stripped() {
    awk '
    FNR == 1 { inside = 0 }
    {
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
        out = ""
        while (line != "") {
            at = index(line, inside ? "*/" : "/*")
            if (at == 0) {
                out = inside ? out : out line
                break
            }
            out = inside ? out : out substr(line, 1, at - 1)
            line = substr(line, at + 2)
            inside = !inside
        }
        if (out != "") { print FILENAME ":" FNR ":" out }
    }' "$@"
}
# futex(2) has no other way in; and a descriptor that LMDB opened is made
# close-on-exec where it was opened.
stripped $(sources base wal snapshot engine) |
    grep -E "[^A-Za-z0-9_>.]($calls)[[:space:]]*\(" |
    grep -v -e '^base/io_posix\.c:' -e '^base/park\.c:.*syscall(' \
        -e '^engine/index_lmdb\.c:.*fcntl(' |
    complain 'a system call outside base/io_posix.c'

# ---- What the library exports ----------------------------------------------------------

library=$build/libstele.so
if [ -e "$library" ]; then
    exported=$(mktemp) || exit 2
    declared=$(mktemp) || exit 2
    # A sanitizer adds symbols of its own.
    nm -D --defined-only "$library" | awk '{ print $3 }' |
        grep -v -E '^(__(a|ub|t|l|m|s)[a-z]*san|_?_?asan|_init$|_fini$)' |
        grep -v '^__odr_asan' | sort -u >"$exported"
    stripped engine/stele.h | cut -d: -f3- | tr '\n' ' ' | tr ';' '\n' |
        grep 'STELE_API ' | grep -v 'define STELE_API' |
        sed 's/.*STELE_API //' |
        grep -o -E '\*?stele_[a-z0-9_]+[[:space:]]*\(' | tr -d '*( ' |
        sort -u >"$declared"
    grep -v '^stele_' "$exported" |
        complain 'exported without the prefix stele_'
    comm -23 "$exported" "$declared" | complain 'exported but not declared'
    comm -13 "$exported" "$declared" | complain 'declared but not exported'
    [ -s "$declared" ] || echo none | complain 'STELE_API declarations'
    rm -f "$exported" "$declared"
else
    echo "$library" | complain 'no such library'
fi

# ---- Nothing left to do ------------------------------------------------------------------

grep -n -E '\b(TODO|FIXME|XXX|HACK)\b' \
    $(sources base wal snapshot engine tools tests fuzz) \
    $(ls ./*.md 2>/dev/null) | complain 'left to do'

# ---- Nothing that holds on one machine only -------------------------------------------------

for text in README.md DESIGN.md; do
    [ -e "$text" ] && grep -n -o -E \
        '(^|[[:space:](`"'\''])/(home|root|work|Users|mnt|media|opt|srv|var|tmp)/[A-Za-z0-9._/-]*' \
        "$text" | sed "s|^|$text:|"
done | complain 'an absolute path of some machine'

if [ -s "$findings" ]; then
    echo "$(wc -l <"$findings") findings"
    exit 1
fi
echo 'the architecture holds'
