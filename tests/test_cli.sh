#!/bin/bash
# tests/test_cli.sh BIN_DIR -- the program `stele`: every verb, every exit code
# that can be reached from outside, and bad input of every kind, with the state
# compared before and after.
set -eu

# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/lib/cli.sh"
compared=

# ---- Vocabulary -------------------------------------------------------------

# As in the library; what was compared before is of no use any more.
run() {
    code=0
    compared=
    "$stele" "$@" >out 2>err || code=$?
}

# After `does`: stdout is exactly this.
prints() {
    printf '%s\n' "$1" | cmp -s - out || fail "$sentence: prints not: $1"
}

# refuses SENTENCE CODE MESSAGE ARGUMENT...: as `does`, and nothing changed.
refuses() {
    local message=$3
    # What the refusal just before this one was compared with still holds.
    [ "$compared" = "$store" ] || state "$store" >before
    does "$1" "$2" "${@:4}"
    says "$message"
    state "$store" >after
    cmp -s before after || fail "$sentence: the state changed"
    compared=$store
}

# repeated COUNT CHARACTER
repeated() {
    head -c "$1" /dev/zero | tr '\0' "$2"
}

# ---- Help and usage ---------------------------------------------------------

verbs="init put get delete apply list tables diff stat log verify rebuild snapshot
backup restore import export"
does "help is printed" 0 --help
for verb in $verbs; do
    grep -q "^  $verb " out || fail "help names $verb"
done
for verb in $verbs; do
    does "$verb --help" 0 "$verb" --help
    [ "$(sed -n '/^Examples:/,$p' out | grep -c '^  stele\|| *stele\|^      stele')" -ge 2 ] ||
        fail "$verb --help has two examples"
done
does "the version is printed" 0 --version
grep -Eq '^stele [0-9]+\.[0-9]+\.[0-9]+$' out || fail "version"
does "no verb is a usage error" 2
does "an unknown verb is a usage error" 2 frobnicate store
says "frobnicate: no such verb"
does "too few arguments are a usage error" 2 get store topics
does "too many arguments are a usage error" 2 get store topics key more
does "an unknown option is a usage error" 2 list store --frobnicate
says "--frobnicate: no such option"
does "a missing option value is a usage error" 2 list store --limit
does "a number that is none is a usage error" 2 list store --limit 1x
does "a number that is too large is a usage error" 2 \
    list store --limit 99999999999999999999
does "an unknown short option is a usage error" 2 put store t k -1
says '--'

# ---- init -------------------------------------------------------------------

store=store
does "init makes a store" 0 init store --json
grep -Eq '^\{"dir":"store","uuid":"[0-9a-f]{32}"\}$' out || fail "init --json"
does "init does not touch an existing store" 1 init store
says "stele: init: store: a store exists already"
does "a segment that is too small is refused" 2 \
    init small --segment-bytes 1044480
does "a segment that is no multiple of 4096 is refused" 2 \
    init small --segment-bytes 1048577
does "a segment that is too large is refused" 2 \
    init small --segment-bytes 1073745920
does "init takes a segment length" 0 init small --segment-bytes 1048576
does "stat prints it" 0 stat small --json
grep -q '"segment_bytes":1048576' out || fail "segment_bytes in stat"

# ---- The kind of file system ------------------------------------------------

warning="the store is on a file system in memory: nothing of it outlives the machine"
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] && [ -w /dev/shm ]; then
    volatile=$(mktemp -d /dev/shm/stele-test-XXXXXX)
    trap 'rm -rf "$work" "$volatile"' EXIT
    for verb in init "put t k v" "delete t k" stat; do
        read -r name rest <<<"$verb"
        # shellcheck disable=SC2086
        does "$name on a tmpfs warns" 0 "$name" "$volatile/store" $rest
        says "stele: $name: note: $warning"
        [ "$(wc -l <err)" = 1 ] || fail "$name warns once"
    done
    does "get on a tmpfs does not warn" 1 get "$volatile/store" t k
    ! grep -q note err || fail "a note of get"
    does "stat --json has the warning as a field" 0 stat "$volatile/store" --json
    grep -qF "\"fs_warning\":\"$warning\"" out || fail "fs_warning"
    [ ! -s err ] || fail "and not on stderr"
fi
if [ "$(stat -f -c %T .)" = ext2/ext3 ] || [ "$(stat -f -c %T .)" = xfs ]; then
    does "stat on a disk has no warning" 0 stat store --json
    grep -qF '"fs_warning":null' out || fail "no fs_warning"
fi

does "an empty store has no tables" 0 tables store
[ ! -s out ] || fail "no tables"
does "an empty store lists nothing" 0 list store
[ ! -s out ] || fail "nothing listed"

# ---- put, get ---------------------------------------------------------------

does "put sets a key" 0 put store topics orders '{"perm":6}' --json
grep -Eq '^\{"lsn":[0-9]+,"ops":1\}$' out || fail "put --json"
does "get prints the value" 0 get store topics orders
prints '{"perm":6}'
does "get --json prints an object" 0 get store topics orders --json
grep -Eq '^\{"table":"topics","key":"orders","value":"\{\\"perm\\":6\}","lsn":[0-9]+\}$' out ||
    fail "get --json"
does "get --hex takes and prints hex" 0 get store topics 6f7264657273 --hex
prints 7b227065726d223a367d
does "get of a missing key" 1 get store topics nope
says "stele: get: topics: no such key"
does "get from a missing table" 1 get store nope nope
does "a value may begin with a dash" 0 put store offsets -- a@b@0 -1
does "and comes back" 0 get store offsets a@b@0
prints -1
does "a value may be empty" 0 put store topics empty ''
does "get prints an empty value" 0 get store topics empty
prints ''

printf 'a\0b\n\377\302\205\\"\303\274' >binary
does "put - takes standard input" 0 put store blobs bin - <binary
does "get --raw gives the same bytes" 0 get store blobs bin --raw
cmp -s binary out || fail "raw bytes"
does "get escapes" 0 get store blobs bin
prints 'a\u0000b\n\xff\u0085\\"ü'
does "get --json gives hex for what is not UTF-8" 0 get store blobs bin --json
grep -qF '"value_hex":"6100620affc2855c22c3bc"' out || fail "value_hex"
does "put --hex takes bytes" 0 put store blobs 00ff 0A --hex
does "a binary key is listed escaped" 0 list store blobs --values --limit 1
prints '\u0000\xff	\n'
does "a binary key is hex in JSON" 0 list store blobs --values --limit 1 --json
grep -q '^{"table":"blobs","key_hex":"00ff","value":"\\n","lsn":' out ||
    fail "key_hex"
does "list --hex" 0 list store blobs --values --limit 1 --hex
prints '00ff	0a'
does "put --hex from standard input" 0 put store blobs 01 - --hex <<<0a0b
does "and one newline is not part of it" 0 get store blobs 01 --hex
prints 0a0b

# ---- list, tables -----------------------------------------------------------

for key in b a c ab; do run put store letters "$key" "value of $key"; done
does "list is in key order" 0 list store letters
prints $'a\nab\nb\nc'
does "list --prefix" 0 list store letters --prefix a
prints $'a\nab'
does "list --prefix --hex" 0 list store letters --prefix 61 --hex
prints $'61\n6162'
does "list --limit" 0 list store letters --limit 2 --values
prints $'a\tvalue of a\nab\tvalue of ab'
does "list of all tables names them" 0 list store --prefix a
prints $'letters\ta\nletters\tab\noffsets\ta@b@0'
does "list of a missing table" 1 list store nope
says "nope: no such table"
does "list of a malformed table name" 2 list store 'no/pe'
does "tables prints counts" 0 tables store
cut -f 1,2 out | cmp -s - <(printf 'blobs\t3\nletters\t4\noffsets\t1\ntopics\t2\n') ||
    fail "tables"
does "tables --json" 0 tables store --json
grep -Eq '^\{"table":"letters","count":4,"lsn":[0-9]+\}$' out || fail "tables --json"

# ---- delete -----------------------------------------------------------------

does "delete takes several keys" 0 delete store letters a b nope --json
grep -Eq '^\{"lsn":[0-9]+,"ops":3\}$' out || fail "delete --json"
does "they are gone" 0 list store letters
prints $'ab\nc'
does "delete --prefix" 0 delete store letters --prefix a
does "what began with it is gone" 0 list store letters
prints c
for key in x ' y ' 'z\r'; do run put store letters "$key" v; done
printf 'x\n y \nz\\r' >keys
does "delete --from-file strips nothing but the newline" 0 \
    delete store letters --from-file keys
does "those keys are gone" 0 list store letters
prints c
does "delete --from-file - --hex" 0 \
    delete store letters --from-file - --hex <<<63
does "the table is empty but there" 0 list store letters
[ ! -s out ] || fail "empty table"

refuses "delete of nothing" 2 "which keys?" delete store topics
refuses "delete with keys and a prefix" 2 "exclude each other" \
    delete store topics k --prefix p
: >empty
refuses "delete from an empty file" 2 "nothing to delete" \
    delete store topics --from-file empty
printf 'orders\n\nempty\n' >gap
refuses "delete with an empty line" 2 "gap: line 2: an empty line" \
    delete store topics --from-file gap
refuses "delete from a file that is missing" 4 "missing: open" \
    delete store topics --from-file missing
refuses "delete from a directory" 4 "read" delete store topics --from-file .
printf '6f72\n6g\n' >bad_hex
refuses "delete with a line that is not hex" 2 "bad_hex: line 2: hex" \
    delete store topics --from-file bad_hex --hex
refuses "an odd number of hex digits" 2 "odd number" \
    delete store topics abc --hex
refuses "an empty key" 2 "" delete store topics ''
refuses "an empty key among others" 2 "key 2" delete store topics orders ''
refuses "an empty prefix" 2 "" delete store topics --prefix ''

# ---- Limits -----------------------------------------------------------------

name_63=$(repeated 63 t)
key_504=$(repeated 504 k)
does "a table name of 63 bytes" 0 put store "$name_63" k v
refuses "a table name of 64 bytes" 2 "" put store "${name_63}t" k v
refuses "an empty table name" 2 "" put store '' k v
for name in 'a b' 'a/b' 'ä' '%' $'a\nb'; do
    refuses "the table name '$name'" 2 "" put store "$name" k v
done
does "a table name with all that is allowed" 0 put store 'Az09._-' k v
does "table and key of 510 bytes" 0 put store topics "$key_504" v
refuses "table and key of 511 bytes" 2 "" put store topics "${key_504}k" v
refuses "a prefix of 511 bytes" 2 "" delete store topics --prefix "${key_504}k"
refuses "an empty key in put" 2 "" put store topics '' v
repeated 1048576 v >value_max
repeated 1048577 v >value_over
does "a value of 1 MiB" 0 put store topics big - <value_max
does "comes back whole" 0 get store topics big --raw
cmp -s value_max out || fail "1 MiB value"
refuses "a value of 1 MiB and a byte" 2 "" put store topics big - <value_over
does "and is deleted: it would make every listing long" 0 \
    delete store topics big
seq 1 1000001 >many
refuses "a batch of 1,000,001 operations" 2 "" \
    delete store numbers --from-file many
head -n 1000000 many >million
does "a batch of 1,000,000 operations" 0 \
    delete store numbers --from-file million --json
grep -q '"ops":1000000}' out || fail "1,000,000 operations"
store=small
run put small t k v
head -c 1040000 value_max >value_fits
does "a batch that fits into a small segment" 0 put small t fits - <value_fits
refuses "a batch that does not" 2 "" put small t big - <value_max
store=store

# ---- apply ------------------------------------------------------------------

cat >changes <<'END'
{"op":"clear","table":"applied"}
{"op":"put","table":"applied","key":"a","value":"1"}
{"op":"put","table":"applied","key":"ab","value":"2"}
{ "value":"ü\u0000\n", "key":"b", "table":"applied", "op":"put" }
{"op":"put","table":"applied","key_hex":"00FF","value_hex":""}
{"op":"put","table":"applied","key":"c","value":"3"}
{"op":"delete","table":"applied","key":"c"}
{"op":"put","table":"other","key":"x1","value":"4"}
{"op":"put","table":"other","key":"y","value":"5"}
{"op":"delete_prefix","table":"other","key":"x"}
END
does "apply is one batch" 0 apply store changes --json
grep -Eq '^\{"lsn":[0-9]+,"ops":10\}$' out || fail "apply --json"
lsn=$(grep -Eo '[0-9]+' out | head -n 1)
does "its operations are done in order" 0 list store applied --values
prints $'\\u0000\\xff\t\na\t1\nab\t2\nb\tü\\u0000\\n'
does "in all tables, at one lsn" 0 tables store
grep -q "^other	1	$lsn\$" out || fail "other at lsn $lsn"
grep -q "^applied	4	$lsn\$" out || fail "applied at lsn $lsn"
does "apply takes standard input" 0 apply store - <<'END'
{"op":"clear","table":"other"}
END
prints_lsn=$(grep -c '^lsn [0-9]*, 1 operation$' out)
[ "$prints_lsn" = 1 ] || fail "apply prints its lsn"
does "apply --batch-size makes several batches" 0 \
    apply store changes --batch-size 4 --json
[ "$(grep -Eo '"ops":[0-9]+' out | tr '\n' ' ')" = '"ops":4 "ops":4 "ops":2 ' ] ||
    fail "batches of 4, 4, 2"

# Each bad line is tried behind a good one, as one batch and as several.
bad_line() {
    local name=$1 message=$2
    {
        echo '{"op":"put","table":"applied","key":"good","value":"v"}'
        cat
    } >lines
    refuses "apply: $name" 2 "lines: line 2: $message" apply store lines
    refuses "apply --batch-size 1: $name" 2 "lines: line 2: $message" \
        apply store lines --batch-size 1
}
bad_line "no JSON" "column" <<<'delete topics'
bad_line "an empty line" "column" <<<''
bad_line "a blank line" "column" <<<'   '
bad_line "a line that is cut off" "column" <<<'{"op":"put","table":"applied","ke'
bad_line "trailing text" "column" <<<'{"op":"clear","table":"applied"} x'
bad_line "two objects" "column" <<<'{"op":"clear","table":"a"}{"op":"clear","table":"b"}'
bad_line "an array" "not an object" <<<'["op","clear"]'
bad_line "null" "not an object" <<<'null'
bad_line "no op" '"op" is missing' <<<'{"table":"applied","key":"k"}'
bad_line "no table" '"table" is missing' <<<'{"op":"clear"}'
bad_line "no key" 'delete needs "key"' <<<'{"op":"delete","table":"applied"}'
bad_line "no prefix" 'delete_prefix needs "key"' <<<'{"op":"delete_prefix","table":"applied"}'
bad_line "no value" 'put needs "value"' <<<'{"op":"put","table":"applied","key":"k"}'
bad_line "a key too many" 'clear takes no "key"' <<<'{"op":"clear","table":"applied","key":"k"}'
bad_line "a value too many" 'delete takes no "value"' <<<'{"op":"delete","table":"applied","key":"k","value":"v"}'
bad_line "an unknown op" '"drop" is not an op' <<<'{"op":"drop","table":"applied"}'
bad_line "an unknown member" '"keys" is not a member' <<<'{"op":"delete","table":"applied","keys":"k"}'
bad_line "a member twice" "column" <<<'{"op":"delete","table":"applied","key":"k","key":"l"}'
bad_line "key and key_hex" '"key" and "key_hex" exclude each other' <<<'{"op":"delete","table":"applied","key":"k","key_hex":"6b"}'
bad_line "a key that is no string" '"key" is not a string' <<<'{"op":"delete","table":"applied","key":1}'
bad_line "a value that is no string" '"value" is not a string' <<<'{"op":"put","table":"applied","key":"k","value":{}}'
bad_line "an op that is no string" '"op" is not a string' <<<'{"op":null,"table":"applied"}'
bad_line "a NUL in the table name" '"table" contains a NUL' <<<'{"op":"clear","table":"applied\u0000x"}'
bad_line "hex with no digit" '"key_hex": hex' <<<'{"op":"delete","table":"applied","key_hex":"6x"}'
bad_line "half a byte of hex" '"key_hex": hex' <<<'{"op":"delete","table":"applied","key_hex":"6"}'
bad_line "an empty key" "" <<<'{"op":"delete","table":"applied","key":""}'
bad_line "an empty prefix" "" <<<'{"op":"delete_prefix","table":"applied","key":""}'
bad_line "a bad table name" "" <<<'{"op":"clear","table":"no/pe"}'
bad_line "half a surrogate pair" "column" <<<'{"op":"delete","table":"applied","key":"\ud800"}'
printf '{"op":"delete","table":"applied","key":"\xff"}\n' >bytes
bad_line "a byte that is not UTF-8" "column" <bytes
head -c 200 /dev/zero >zeros
bad_line "NUL bytes" "column" <zeros
printf '{"op":"delete","table":"applied","key":"%s"}\n' "$(repeated 504 k)" >long
bad_line "a key that is too long" "" <long
printf '{"op":"put","table":"applied","key":"k","value":"%s"}\n' "$(cat value_over)" >long
bad_line "a value that is too large" "the value has 1048577 bytes" <long
refuses "apply of an empty file" 2 "nothing to apply" apply store empty
refuses "apply of a missing file" 4 "missing: open" apply store missing
refuses "apply --batch-size 0" 2 "1 or more" apply store changes --batch-size 0

store=small
value_half=$(repeated 600000 v)
printf '{"op":"put","table":"t","key":"%s","value":"'"$value_half"'"}\n' 1 2 3 >large
refuses "apply: a batch that is too large for the segments" 2 "large: the batch that ends at line 3" \
    apply small large
refuses "apply --batch-size 2: the same" 2 "large: the batch that ends at line 2" \
    apply small large --batch-size 2
does "apply --batch-size 1: smaller batches fit" 0 apply small large --batch-size 1
store=store

# ---- log --------------------------------------------------------------------

run init logged --segment-bytes 1048576
run put logged t k v
run delete logged t --from-file keys
run apply logged changes
run delete logged t --prefix p
does "log has one record for each batch" 0 log logged --json
[ "$(grep -Eo '"ops":[0-9]+' out | tr '\n' ' ')" = '"ops":1 "ops":3 "ops":10 "ops":1 ' ] ||
    fail "records of 1, 3, 10, 1 operations"
lsns=$(grep -Eo '^\{"lsn":[0-9]+' out | cut -d : -f 2)
bytes=$(tail -n 1 out | grep -Eo '"bytes":[0-9]+' | cut -d : -f 2)
[ "$bytes" -lt 200 ] || fail "a prefix delete is a small record"
does "log --limit" 0 log logged --limit 2
[ "$(grep -c '^lsn ' out)" = 2 ] || fail "two records"
does "log --from" 0 log logged --from "$(tail -n 1 <<<"$lsns")" --ops
[ "$(grep -c '^lsn ' out)" = 1 ] || fail "one record"
grep -q $'^  delete_range\tt\tp\tq$' out || fail "the operation"
does "log of a directory that does not exist" 6 log nowhere

# ---- Stores that are none ---------------------------------------------------

mkdir not_a_store empty_dir
echo hello >not_a_store/file
echo hello >a_file
for verb in "get X t k" "list X" "tables X" "stat X" "verify X" "put X t k v" \
    "delete X t k" "apply X changes" "export rocketmq X out_dir" ; do
    # shellcheck disable=SC2086
    does "a directory that is not a store: $verb" 6 \
        ${verb//X/not_a_store}
    # shellcheck disable=SC2086
    does "a directory that does not exist: $verb" 6 ${verb//X/nowhere}
    says "'stele init nowhere' makes one"
    # shellcheck disable=SC2086
    does "an empty directory: $verb" 6 ${verb//X/empty_dir}
done
does "init does not touch a directory with other files" 6 init not_a_store
does "init needs a parent directory" 4 init nowhere/store
[ "$(ls -A not_a_store)" = file ] || fail "not_a_store is untouched"
[ ! -e nowhere ] || fail "nothing is made"
does "a file is not a store" 6 get a_file t k

# ---- Output that cannot be written -------------------------------------------

code=0
"$stele" list store --values >/dev/full 2>err || code=$?
: >out
[ "$code" = 4 ] || fail "a full output device is an error"
pass "a full output device is an error"

# ---- Another process holds the store ------------------------------------------

# Its answers go into a pipe that nobody reads, so it stays in the middle of its
# work until this test lets it go on.
for i in $(seq 1 3000); do
    echo '{"op":"put","table":"held","key":"'"$i"'","value":"v"}'
done >slow
mkfifo answers
"$stele" apply store slow --batch-size 1 --json >answers &
holder=$!
exec 9<answers
read -r first <&9
acknowledged=$(grep -Eo '[0-9]+' <<<"$first" | head -n 1)
for verb in "put store t k v" "delete store t k" "apply store changes" ; do
    # shellcheck disable=SC2086
    does "locked: $verb" 5 $verb
done
does "stat works meanwhile" 0 stat store --json
visible=$(grep -Eo '"lsn_visible":[0-9]+' out | cut -d : -f 2)
[ "$visible" -ge "$acknowledged" ] || fail "what was acknowledged is visible"
does "get works meanwhile and shows what was acknowledged" 0 get store held 1
prints v
does "list works meanwhile" 0 list store held --limit 1
does "verify works meanwhile" 0 verify store
cat <&9 >rest
exec 9<&-
wait "$holder"
[ "$(wc -l <rest)" = 2999 ] || fail "all batches are acknowledged"
does "unlocked: put" 0 put store t k v
does "all of the batches are there" 0 list store held
[ "$(wc -l <out)" = 3000 ] || fail "3000 keys"

# ---- verify -----------------------------------------------------------------

does "verify of a good store" 0 verify store
grep -q '^problems  *0$' out || fail "no problems"
does "verify --json" 0 verify store --json
grep -Eq '^\{"segments":[0-9]+,.*"problems":0,"index_killed_reader":false\}$' out || fail "verify --json"

# ---- Damage -----------------------------------------------------------------
#
# Every verb refuses a store in which something acknowledged is damaged, and
# changes nothing. LOCK holds only text about who opened last.

checksums() {
    find "$1" -type f ! -name LOCK ! -name lock.mdb -exec cksum {} + | sort
}

# damaged SENTENCE MESSAGE COMMAND...: a copy of the store after the command.
damaged() {
    local what=$1 message=$2
    rm -rf hurt
    cp -r good hurt
    "${@:3}"
    checksums hurt >before
    for verb in "get hurt t k1" "list hurt t" "tables hurt" "stat hurt" \
        "verify hurt" "put hurt t k1 w" "delete hurt t k1" \
        "apply hurt changes" ; do
        # shellcheck disable=SC2086
        does "$what: ${verb%% *}" 3 $verb
        says "$message"
    done
    checksums hurt >after
    cmp -s before after || fail "$what: the files changed"
}

overwrite() {
    printf '%s' "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

run init good --segment-bytes 1048576
for key in k1 k2 k3; do run put good t "$key" "the value of $key"; done
log=hurt/wal/0000000000000001.wal
damaged "both anchor slots zeroed" "ANCHOR" \
    dd if=/dev/zero of=hurt/ANCHOR bs=4096 count=2 conv=notrunc status=none
damaged "no anchor" "ANCHOR is missing" rm hurt/ANCHOR
damaged "no segment" "no segment" rm "$log"
damaged "the first batch" "offset 4096: unit 1 is damaged" overwrite $log 4100 x
damaged "the last batch" "offset 12288: unit 3 is damaged" \
    overwrite $log 12300 xxxx
damaged "a segment that is cut off" "$(basename $log)" truncate -s 8192 "$log"

cp -r good rebuilt
rm -r rebuilt/index
does "a missing index is no damage: get" 0 get rebuilt t k1
prints "the value of k1"
does "a missing index is no damage: put" 0 put rebuilt t k4 v
does "a missing index is no damage: verify" 0 verify rebuilt

# A value that rots in the index, in the very file: a copy would not be used.
for place in $(grep -abo "the value of k2" good/index/data.mdb | cut -d : -f 1); do
    overwrite good/index/data.mdb "$place" T
done
does "rot in the index is found: get" 3 get good t k2
does "what is not rotten can be read" 0 get good t k3
prints "the value of k3"
does "rot in the index is found: list" 3 list good t --values
does "rot in the index is found: verify" 3 verify good --json
grep -q '"problems":1,"index_killed_reader":false' out ||
    fail "problems in verify --json"
says 'stele: verify: index: table "t", key "k2": check mismatch'

# A writer that has met it has it mended by the next one.
does "stat knows of no damage yet" 0 stat good --json
grep -q '"index_damaged":false' out || fail "index_damaged"
does "put beside the rot" 0 put good t k2 "the value of k2"
does "stat of what a checkpoint has met" 0 stat good --json
grep -q '"index_damaged":true' out || fail "index_damaged"
does "and in words" 0 stat good
says "stele: stat: note: the index is damaged"
does "the next put mends it" 0 put good t k4 "the value of k4"
does "it is mended: verify" 0 verify good
does "it is mended: get" 0 get good t k2
prints "the value of k2"
[ -e good/quarantine/index.0001/data.mdb ] || fail "the evidence is kept"

# ---- Damage that kills who reads it ------------------------------------------

# LMDB's deaths are signals, also where a sanitizer would make exits of them.
export ASAN_OPTIONS="handle_segv=0:handle_sigbus=0:handle_abort=0:${ASAN_OPTIONS:-}"

# 32 keys, in a tree with a branch.
for i in $(seq 10 41); do
    printf '{"op":"put","table":"t","key":"k%d","value":"value of %d%s"}\n' \
        "$i" "$i" "$(repeated 400 .)"
done >thirty
run init deadly
run apply deadly thirty

# A length in a leaf: whoever reads this value reads behind the end of the file.
for place in $(grep -abo "value of 25" deadly/index/data.mdb | cut -d : -f 1); do
    # The node: length (low, high), flags, key's length; t 0 k 2 5; lsn, check.
    printf '\377\177' | dd of=deadly/index/data.mdb bs=1 conv=notrunc status=none \
        seek=$((place - 12 - 5 - 6))
done
killed() {
    says "stele: verify: index: reading it killed the process that looked (signal "
    says "): damaged in LMDB's own structure; \`stele rebuild deadly\` builds it anew"
}
checksums deadly >before
does "an index that kills who reads it is found: verify" 3 verify deadly
killed
grep -q '^records  *1$' out || fail "the log is verified all the same"
grep -q '^index_items  *0$' out || fail "the index is not"
grep -q '^problems  *1$' out || fail "one problem"
does "the same as an object" 3 verify deadly --json
killed
grep -Eq '^\{"segments":1,"units":1,.*"problems":1,"index_killed_reader":true\}$' out ||
    fail "verify --json"
[ "$(wc -l <out)" = 1 ] || fail "one object"
checksums deadly >after
cmp -s before after || fail "$sentence: the files changed"
does "rebuild mends it" 0 rebuild deadly
prints "index rebuilt: 32 keys in 1 table, up to LSN 1"
does "it is mended: verify" 0 verify deadly --json
grep -q '"index_items":32,.*"problems":0' out || fail "verify after rebuild"
[ -e deadly/quarantine/index.0001/data.mdb ] || fail "the evidence is kept"

# number FILE OFFSET: 8 bytes of it.
number() {
    od -An -tu8 -j "$2" -N 8 "$1" | tr -d ' '
}
# The root of the tree, of which the newer meta page tells, without keys: LMDB
# gives up as soon as it looks for anything.
root_of() {
    local meta=0
    [ "$(number "$1" 144)" -gt "$(number "$1" 4240)" ] || meta=4096
    number "$1" $((meta + 128))
}
dd if=<(printf '\020\0') of=deadly/index/data.mdb bs=1 conv=notrunc status=none \
    seek=$(($(root_of deadly/index/data.mdb) * 4096 + 12))
does "an index that kills who opens it is found: verify" 3 verify deadly
killed
grep -q '^problems  *1$' out || fail "one problem"
does "rebuild mends that, too" 0 rebuild deadly --json
says "opening it killed the process that tried"
prints '{"keys":32,"tables":1,"lsn":1}'
does "it is mended: verify" 0 verify deadly

cp -r deadly hurt2
overwrite hurt2/wal/0000000000000001.wal 4200 xxxx
checksums hurt2 >before
does "a damaged log is no base to rebuild from" 3 rebuild hurt2
checksums hurt2 >after
cmp -s before after || fail "$sentence: the files changed"
does "rebuild where no store is" 6 rebuild nowhere

# ---- The process that looks ----------------------------------------------------

# So many findings that it stays in the middle of them until this test reads on.
for i in $(seq 1001 3000); do
    echo '{"op":"put","table":"many","key":"k'"$i"'","value":"rotten '"$i"'"}'
done >slow
run init rotting
run apply rotting slow
sed 's/rotten \([123]\)/Rotten \1/g' rotting/index/data.mdb >rotten
dd if=rotten of=rotting/index/data.mdb bs=1M conv=notrunc status=none
mkfifo words

# looking: `verify rotting` is in the middle of it; its words come from descriptor 9.
looking() {
    exec 8<>words 9<words
    set -m # Or it would ignore SIGINT.
    "$stele" verify rotting >out 2>words 8<&- 9<&- &
    looker=$!
    set +m
    exec 8<&-
    read -r first <&9
    child=$(cat /proc/$looker/task/$looker/children)
    child=${child% }
}
sentence="a child that is killed from outside is no damage"
looking
kill -KILL "$child"
cat <&9 >err
code=0
wait "$looker" || code=$?
[ "$code" = 4 ] || fail "$sentence"
says "the process that looked was killed (signal 9, Killed): nothing is known"
[ ! -s out ] || fail "$sentence: a summary"
pass "$sentence"

sentence="an interrupt takes the child along"
looking
kill -INT "$looker"
code=0
wait "$looker" || code=$?
[ "$code" = 130 ] || fail "$sentence"
cat <&9 >err # To its end: nobody has the other one any more.
exec 9<&-
[ "$(wc -l <err)" -lt 1999 ] || fail "$sentence: it has gone on"
pass "$sentence"
does "left alone it says all there is" 3 verify rotting
[ "$(wc -l <err)" = 2000 ] || fail "2000 findings"
grep -q '^problems  *2000$' out || fail "2000 problems"

echo "$passed passed, 0 failed"
