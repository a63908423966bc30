#!/bin/bash
# tests/test_cli_past.sh BIN_DIR -- the past, as the program `stele` shows it:
# --at of get, list and tables, and the verb diff.
set -eu

# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/lib/cli.sh"

# ---- Vocabulary -------------------------------------------------------------

# After `does`: stdout is exactly this; \t and \n are expanded.
prints() {
    printf -- "$1" | cmp -s - out || fail "$sentence: prints not: $1"
}

# committed ARGUMENT...: a change; its LSN in $lsn.
committed() {
    lsn=$("$stele" "$@" --json | sed 's/.*"lsn":\([0-9]*\).*/\1/')
}

# ---- A history ----------------------------------------------------------------

"$stele" init store >/dev/null
committed put store topics a 1
first=$lsn
committed put store topics b 2
second=$lsn
committed put store groups g x
third=$lsn
committed put store topics a 11
fourth=$lsn
committed delete store topics --prefix b
fifth=$lsn
committed put store topics a 11
sixth=$lsn

# ---- One moment -----------------------------------------------------------------

does "get --at shows a value that was replaced" 0 get store topics a --at "$first"
prints '1\n'
does "and the lsn that put it" 0 get store topics a --at "$third" --json
prints '{"table":"topics","key":"a","value":"1","lsn":'"$first"'}\n'
does "get --at shows what was deleted" 0 get store topics b --at "$fourth"
prints '2\n'
does "get --at does not find what was not there yet" 1 \
    get store topics b --at "$first"
says "topics: no such key"
does "list --at" 0 list store topics --values --at "$third"
prints 'a\t1\nb\t2\n'
does "list --at of all tables" 0 list store --at "$fifth"
prints 'groups\tg\ntopics\ta\n'
does "tables --at" 0 tables store --at "$fifth"
prints 'groups\t1\t'"$third"'\ntopics\t1\t'"$fifth"'\n'
does "at 0 nothing was there" 0 tables store --at 0
prints ''
does "list --at of a table that was not there yet" 1 list store groups --at "$second"
says "groups: no such table"
does "an LSN that is not there yet is not found" 1 \
    get store topics a --at $((sixth + 1))
says "LSN $((sixth + 1)) is not there yet: the newest durable one is $sixth"
does "an LSN is a number" 2 get store topics a --at now
says '--at: "now" is not a decimal number'

# ---- From one to another ----------------------------------------------------------

does "diff tells of what was added" 1 diff store 0 "$second" --values
prints '+ topics\ta\t1\n+ topics\tb\t2\n'
does "of what was changed and deleted" 1 diff store "$second" "$sixth" --values
prints '+ groups\tg\tx\n~ topics\ta\t1\t11\n- topics\tb\t2\n'
does "without values if none are asked for" 1 diff store "$second" "$sixth"
prints '+ groups\tg\n~ topics\ta\n- topics\tb\n'
does "the other way round it is the way back" 1 \
    diff store "$sixth" "$second" --values
prints '- groups\tg\tx\n~ topics\ta\t11\t1\n+ topics\tb\t2\n'
does "of one table" 1 diff store "$second" "$sixth" groups
prints '+ groups\tg\n'
does "of one prefix" 1 diff store "$second" "$sixth" --prefix a
prints '~ topics\ta\n'
does "of a prefix in hex" 1 diff store "$second" "$sixth" --prefix 61 --hex --values
prints '~ topics\t61\t31\t3131\n'
does "as JSON" 1 diff store "$second" "$sixth" --json --values
prints '{"change":"added","table":"groups","key":"g","new":"x","lsn":'"$third"'}
{"change":"changed","table":"topics","key":"a","old":"1","old_lsn":'"$first"',"new":"11","lsn":'"$sixth"'}
{"change":"deleted","table":"topics","key":"b","old":"2","old_lsn":'"$second"'}
'
does "the same value again is no difference" 0 diff store "$fifth" "$sixth"
prints ''
does "nor is a state from itself" 0 diff store "$third" "$third"
prints ''
does "nor a table that neither has" 0 diff store 0 "$sixth" other
prints ''
does "an LSN that is not there yet is a wrong argument" 2 \
    diff store 0 $((sixth + 1))
says "stele: diff: LSN $((sixth + 1)) is not there yet"
prints ''
does "so is one that is no number" 2 diff store 0 x
says 'LSN2: "x" is not a decimal number'
does "two LSNs are needed" 2 diff store 0
does "a table's name is checked" 2 diff store 0 1 'no/table'
does "without a store there is no diff" 6 diff nowhere 0 1

# Many keys, of which few differ, on both sides and in every place.
seq -f '{"op":"put","table":"n","key":"k%05g","value":"v"}' 1 3000 >many
committed apply store many
before=$lsn
{
    seq -f '{"op":"put","table":"n","key":"k%05g","value":"w"}' 1 500 3000
    seq -f '{"op":"delete","table":"n","key":"k%05g"}' 3 700 3000
    echo '{"op":"put","table":"n","key":"a","value":"first"}'
    echo '{"op":"put","table":"n","key":"z","value":"last"}'
} >few
committed apply store few
{
    echo '+ n	a'
    {
        seq -f '~ n	k%05g' 1 500 3000
        seq -f '- n	k%05g' 3 700 3000
    } | sort -k 3
    echo '+ n	z'
} >wanted
does "few differences among many keys" 1 diff store "$before" "$lsn"
cmp -s wanted out || fail "few among many"

echo "$passed passed"
