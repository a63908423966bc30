#!/bin/bash
# tests/test_cli_backup.sh BIN_DIR -- stele snapshot, backup and restore, as an
# operator calls them: also beside a writer, to a moment, and when it goes wrong.
set -eu

# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/lib/cli.sh"

# ---- Vocabulary -------------------------------------------------------------

# After `does`: stdout matches.
prints() {
    grep -Eq -- "$1" out || fail "$sentence: does not print: $1"
}

# number NAME: of the object on stdout.
number() {
    grep -oE "\"$1\":[0-9]+" out | cut -d : -f 2
}

# put KEY VALUE: its lsn in $lsn.
put() {
    "$stele" put store t "$1" "$2" --json >out
    lsn=$(number lsn)
}

# same SENTENCE DIR FILE: the store's state is that one.
same() {
    state "$2" >found
    cmp -s "$3" found || fail "$1"
    pass "$1"
}

# ---- snapshot -----------------------------------------------------------------

"$stele" init store --segment-bytes 1048576 >out
does "a snapshot of an empty store is nothing" 0 snapshot store
prints '^lsn 0, 0 keys in 0 tables, 0 bytes$'
put a 1
put b 2
does "snapshot writes one" 0 snapshot store --json
prints "^\{\"lsn\":$lsn,\"bytes\":[0-9]+,\"keys\":2,\"tables\":1\}\$"
[ -f "store/snapshot/$(printf %016x "$lsn").snap" ] || fail "snapshot file"
does "a snapshot of nothing new is the one there is" 0 snapshot store
prints "^lsn $lsn, 2 keys in 1 tables, [0-9]+ bytes\$"
does "a snapshot needs a store" 6 snapshot nothing

# ---- backup and restore --------------------------------------------------------

put c 3
state store >state.c
lsn_c=$lsn
does "backup makes an archive" 0 backup store archive --json
prints "^\{\"dest\":\"archive\",\"lsn\":$lsn,\"snapshot_lsn\":[0-9]+,"
[ "$(number bytes_copied)" -gt 0 ] && [ "$(number bytes_present)" = 0 ] ||
    fail "bytes of a first backup"
time_c=$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)
seconds_c=$(date +@%s.%N)
put d 4
state store >state.d
does "backup again copies what is new" 0 backup store archive
prints "^archive: up to lsn $lsn, verified; [0-9]+ bytes copied, [1-9][0-9]* were there\$"
does "with nothing new it copies nothing" 0 backup store archive --json
[ "$(number bytes_copied)" = 0 ] || fail "bytes of a backup with nothing new"

does "restore makes a store" 0 restore archive restored
prints "^restored: made store [0-9a-f]{32} as of lsn $lsn, 4 keys in 1 tables\$"
same "it is what was backed up" restored state.d
[ ! -e restored.restore-tmp ] || fail "the temporary directory is left"
does "it verifies" 0 verify restored
does "it goes on" 0 put restored t e 5 --json
[ "$(number lsn)" -gt $((lsn + 1048576)) ] || fail "LSNs far above"
does "it has a uuid of its own" 0 stat restored --json
! grep -qF "$("$stele" stat store --json | grep -oE '"uuid":"[0-9a-f]+"')" out ||
    fail "the same uuid"
does "it can be backed up" 0 backup restored second
does "and restored" 0 restore second third
state restored >state.restored
same "and is the same then" third state.restored
does "it does not go into the other's archive" 6 backup restored archive
says "is the archive of another store"

does "restore until an lsn" 0 restore archive until.lsn --until-lsn "$lsn_c" --json
prints "^\{\"dir\":\"until.lsn\",\"lsn\":$lsn_c,\"time_ns\":[1-9][0-9]*,\"keys\":3,\"tables\":1,\"uuid\":\"[0-9a-f]{32}\"\}\$"
same "it is what was there then" until.lsn state.c
does "restore until a time" 0 restore archive until.time --until-time "$time_c"
same "it is what was there by then" until.time state.c
does "restore until a time in seconds" 0 \
    restore archive until.seconds --until-time "$seconds_c"
same "that, too" until.seconds state.c
does "a time far ahead is all there is" 0 \
    restore archive until.ever --until-time 2999-12-31T23:59:59Z
same "all of it" until.ever state.d

# ---- What does not work -----------------------------------------------------------

does "a batch that is not there yet" 1 \
    restore archive none --until-lsn $((lsn + 1))
says "stele: restore: LSN $((lsn + 1)) is not in the archive, which ends at LSN $lsn"
does "a time before all" 1 restore archive none --until-time 2001-02-03T04:05:06Z
says "is older than the archive, which has LSN "
does "an lsn and a time" 2 \
    restore archive none --until-lsn 1 --until-time @1796049000
says "either --until-lsn or --until-time, not both"
for time in 2026-11-30 2026-11-30T14:30:00 2026-11-30T14:30Z 2026-02-29T00:00:00Z \
    2026-11-31T00:00:00Z 2026-13-01T00:00:00Z 2026-11-30T24:00:00Z \
    2026-11-30T14:60:00Z 2026-11-30T14:30:00.Z 2026-11-30T14:30:00.0000000001Z \
    2026-11-30T14:30:00+01:00 1969-12-31T23:59:59Z "2026-11-30 14:30:00Z" \
    @ @x @1.x @-1 @12345678901 now ''; do
    does "a time that is none: '$time'" 2 restore archive none --until-time "$time"
    says "is no time like 2026-11-30T14:30:00Z or @1796049000"
done
does "an archive that is none" 6 restore store none
says "is no archive: it has no ARCHIVE"
does "an archive that is not there" 6 restore nothing none
does "a place that is taken" 1 restore archive store
says "store is not empty"
does "a parent that is missing" 4 restore archive deep/none
mkdir empty
does "a store that is none" 6 backup empty other
does "a place with something in it" 6 backup store until.lsn
says "is not empty and no archive"
does "a place inside the store" 2 backup store store/backup
says "cannot be kept inside the store"
[ ! -e store/backup ] || fail "a directory was made in the store"
does "a place whose parent is missing" 4 backup store deep/other
ln -s nowhere dangling
does "a link that leads nowhere" 4 backup store dangling
says "stele: backup: dangling: open directory: No such file or directory"
does "nor can a store be made there" 1 restore archive dangling
rm dangling
does "too few arguments: backup" 2 backup store
does "too few arguments: restore" 2 restore archive
[ ! -e none ] && [ ! -e none.restore-tmp ] && [ ! -e other ] ||
    fail "something is left of what did not work"

# The state at a leap day and a second is the one its number says.
[ "$(date -u -d 2024-02-29T12:34:56Z +%s)" = 1709210096 ] || fail "date"
does "a leap day" 1 restore archive none --until-time 2024-02-29T12:34:56.5Z
says "the time @1709210096.500000000 is older"

cp -r archive hurt
printf x | dd of=hurt/ARCHIVE bs=1 seek=100 conv=notrunc status=none
does "damage in ARCHIVE is found: restore" 3 restore hurt none
does "damage in ARCHIVE is found: backup" 3 backup store hurt
says "not the list of an archive, or damaged"
cp -r archive hurt.log
printf x | dd of=hurt.log/wal/0000000000000001.wal bs=1 seek=$((3 * 4096 + 140)) \
    conv=notrunc status=none
does "damage in an archive's log is found" 3 restore hurt.log none
[ ! -e none ] || fail "something was restored from a damaged archive"
does "and made good by a backup" 0 backup store hurt.log
does "so that it can be restored" 0 restore hurt.log mended
same "and is whole" mended state.d

# ---- Beside a writer ---------------------------------------------------------------

# Its answers go into a pipe that nobody reads, so it stays in the middle of its
# work until this test lets it go on.
for i in $(seq 1 3000); do
    echo '{"op":"put","table":"held","key":"'"$i"'","value":"v"}'
done >slow
mkfifo answers
"$stele" apply store slow --batch-size 1 --json >answers &
writer=$!
exec 9<answers
read -r first <&9
acknowledged=$(grep -Eo '[0-9]+' <<<"$first" | head -n 1)
does "backup works beside a writer" 0 backup store beside --json
[ "$(number lsn)" -ge "$acknowledged" ] || fail "what was acknowledged is in it"
lsn=$(number lsn)
does "snapshot does not" 5 snapshot store
says "the store is open for writing by"
cat <&9 >/dev/null
exec 9<&-
wait "$writer" || fail "the writer"
does "what was backed up beside it restores" 0 restore beside beside.restored
state store | awk -F'"lsn":' -v last="$lsn" '$2 + 0 <= last + 0' >state.beside
same "as it was" beside.restored state.beside

echo "$passed passed, 0 failed"
