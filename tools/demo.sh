#!/bin/bash
# tools/demo.sh -- the main job, on real input, beside the way of a JSON file.
#
# Installs what is missing, builds, makes a broker's configuration of 50,000
# topics, deletes topics in both ways, kills a program that commits without
# pause, and checks all that it says. Exits with 1 if any of it is not so.
#
# Needs about 1 GB, in build/demo-data or in $STELE_DEMO_DIR, and removes it.
set -euo pipefail
export LC_ALL=C

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$root/build/release/bin
counter=$root/build/release/lib/libstele_sync_counter.so

topics=50000
groups=5000
queues=4
single_deletes=50
batch_deletes=10000
kills=5
storm_threads=4

# ---- Build --------------------------------------------------------------------

# shellcheck source=tools/install.sh
. "$root/tools/install.sh"

build() {
    echo "Building into build/release ..."
    (
        cd "$root" && cmake --preset release &&
            cmake --build --preset release \
                --target stele stele-demo stele-bench stele_sync_counter
    ) >"$root/build/demo-build.log" 2>&1 || {
        tail -n 40 "$root/build/demo-build.log"
        echo "The build failed; all of it: build/demo-build.log" >&2
        exit 1
    }
}

mkdir -p "$root/build"
install_missing "${build_packages[@]}"
build

# ---- A directory of our own -----------------------------------------------------

data=${STELE_DEMO_DIR:-$root/build/demo-data}
mkdir -p "$data"
data=$(cd "$data" && pwd)
work=$(mktemp -d "$data/demo-XXXXXX")
storm_pid=

clean_up() {
    if [ -n "$storm_pid" ]; then
        kill -9 "$storm_pid" 2>/dev/null || true
    fi
    rm -rf "$work"
    [ -n "${STELE_DEMO_DIR:-}" ] || rmdir "$data" 2>/dev/null || true
}
trap clean_up EXIT
trap 'exit 130' INT TERM

case $(stat -f -c %T "$data") in
tmpfs | ramfs)
    echo "WARNING: $data is in memory: a sync costs nothing there, and the"
    echo "WARNING: times below mean nothing. Set STELE_DEMO_DIR to a real disk."
    ;;
esac
cd "$work"

# ---- Vocabulary -----------------------------------------------------------------

verified=0

verify() { # SENTENCE COMMAND...: the command succeeds, or the demo has failed.
    local sentence=$1
    shift
    if ! "$@"; then
        echo "NOT SO: $sentence" >&2
        exit 1
    fi
    verified=$((verified + 1))
    echo "  ok: $sentence"
}

equal() { # VALUE EXPECTED
    [ "$1" = "$2" ] || {
        echo "it is $1, not $2" >&2
        return 1
    }
}

same() { # FILE FILE
    cmp -s "$1" "$2" || {
        echo "$1 and $2 differ:" >&2
        diff "$1" "$2" 2>&1 | head -n 5 >&2
        return 1
    }
}

clean() { # STORE: every checksum holds
    "$bin/stele" verify "$1" >/dev/null
}

now_us() {
    echo "${EPOCHREALTIME/./}"
}

# counted FILE COMMAND...: with every sync and write counted into FILE.
counted() {
    local file=$1
    shift
    env LD_PRELOAD="$counter" STELE_SYNC_COUNT="$file" "$@"
}

files="log log_prepare anchor index directory other"

# sum FILE FIELD CLASSES: from mark "begin" to mark "end"; without marks, of the
# whole program.
sum() {
    awk -v field="\"$2\":" -v classes="$3" '
        function sum_of(line,    names, count, i, rest, total) {
            count = split(classes, names, " ")
            for (i = 1; i <= count; i++) {
                rest = substr(line, index(line, "\"" names[i] "\":{"))
                total += substr(rest, index(rest, field) + length(field)) + 0
            }
            return total
        }
        /^{"mark":"begin"/ { begin = sum_of($0) }
        /^{"mark":"end"/ { end = sum_of($0); marked = 1 }
        /^{"mark":"exit"/ { exit_total = sum_of($0) }
        END { printf "%.0f\n", marked ? end - begin : exit_total }' "$1"
}

# row WHAT NANOSECONDS COUNTS FILES: a line of the table; syncs of these files,
# and those of all others behind a plus.
row() {
    awk -v what="$1" -v ns="$2" -v bytes="$(sum "$3" bytes "$files")" \
        -v syncs="$(sum "$3" syncs "$4")" \
        -v all="$(sum "$3" syncs "$files")" 'BEGIN {
            time = ns >= 1e9 ? sprintf("%.2f s ", ns / 1e9) \
                             : sprintf("%.2f ms", ns / 1e6)
            size = bytes >= 1e6 ? sprintf("%.1f MB", bytes / 1e6) \
                                : sprintf("%.1f kB", bytes / 1e3)
            others = all > syncs ? sprintf(" + %d", all - syncs) : ""
            printf "  %-48s %10s %10s %6d%s\n", what, time, size, syncs, others
        }'
}

# ratio NANOSECONDS NANOSECONDS FILE FILE: "N times as long, M times the bytes"
ratio() {
    awk -v time="$1" -v time_less="$2" -v bytes="$(sum "$3" bytes "$files")" \
        -v bytes_less="$(sum "$4" bytes "$files")" 'BEGIN {
            printf "%.1f times as long, %.0f times the bytes\n",
                time / time_less, bytes / bytes_less
        }'
}

# ---- The input --------------------------------------------------------------------

make_config() { # DIR: as a broker writes it
    mkdir "$1"
    awk -v dir="$1" -v topics=$topics -v groups=$groups -v queues=$queues '
    BEGIN {
        version = "\t\"dataVersion\":{\n\t\t\"counter\":12,\n" \
            "\t\t\"stateVersion\":0,\n\t\t\"timestamp\":1726000000123\n\t}"

        file = dir "/topics.json"
        printf "{\n%s,\n\t\"topicConfigTable\":{", version > file
        for (i = 0; i < topics; i++) {
            name = sprintf("orders.region-%02d.shop-%05d", i % 16, i)
            printf "%s\n\t\t\"%s\":{\n" \
                "\t\t\t\"attributes\":{\n" \
                "\t\t\t\t\"message.type\":\"NORMAL\"\n\t\t\t},\n" \
                "\t\t\t\"order\":false,\n\t\t\t\"perm\":6,\n" \
                "\t\t\t\"readQueueNums\":%d,\n" \
                "\t\t\t\"topicFilterType\":\"SINGLE_TAG\",\n" \
                "\t\t\t\"topicName\":\"%s\",\n\t\t\t\"topicSysFlag\":0,\n" \
                "\t\t\t\"writeQueueNums\":%d\n\t\t}",
                i ? "," : "", name, queues, name, queues > file
            print name > "topics.txt"
        }
        print "\n\t}\n}" > file

        file = dir "/subscriptionGroup.json"
        printf "{\n%s,\n\t\"forbiddenTable\":{},\n" \
            "\t\"subscriptionGroupTable\":{", version > file
        for (i = 0; i < groups; i++) {
            name = sprintf("GID_shop-%04d", i)
            printf "%s\n\t\t\"%s\":{\n\t\t\t\"attributes\":{},\n" \
                "\t\t\t\"brokerId\":0,\n" \
                "\t\t\t\"consumeBroadcastEnable\":true,\n" \
                "\t\t\t\"consumeEnable\":true,\n" \
                "\t\t\t\"consumeFromMinEnable\":true,\n" \
                "\t\t\t\"consumeMessageOrderly\":false,\n" \
                "\t\t\t\"consumeTimeoutMinute\":15,\n" \
                "\t\t\t\"groupName\":\"%s\",\n" \
                "\t\t\t\"groupRetryPolicy\":{\n" \
                "\t\t\t\t\"type\":\"CUSTOMIZED\"\n\t\t\t},\n" \
                "\t\t\t\"groupSysFlag\":0,\n" \
                "\t\t\t\"notifyConsumerIdsChangedEnable\":true,\n" \
                "\t\t\t\"retryMaxTimes\":16,\n" \
                "\t\t\t\"retryQueueNums\":1,\n" \
                "\t\t\t\"whichBrokerWhenConsumeSlowly\":1\n\t\t}",
                i ? "," : "", name, name > file
        }
        print "\n\t}\n}" > file

        file = dir "/consumerOffset.json"
        printf "{\n%s,\n\t\"offsetTable\":{", version > file
        for (i = 0; i < topics; i++) {
            printf "%s\n\t\t\"orders.region-%02d.shop-%05d@GID_shop-%04d\":{",
                i ? "," : "", i % 16, i, i % groups > file
            for (q = 0; q < queues; q++)
                printf "%s\n\t\t\t%d:%d", q ? "," : "", q,
                    1024 * i + 17 * q > file
            printf "\n\t\t}" > file
        }
        print "\n\t}\n}" > file
    }'
    # Every fifth topic goes in the batch, and some others one by one.
    awk -v count=$batch_deletes \
        'NR % 5 == 1 && written++ < count' topics.txt >batch.txt
    awk -v count=$single_deletes \
        'NR % 5 == 2 && written++ < count' topics.txt >single.txt
    sort topics.txt | grep -vxFf batch.txt | grep -vxFf single.txt >topics_kept.txt
    awk '{
        printf "{\"op\":\"delete\",\"table\":\"topics\",\"key\":\"%s\"}\n", $0
        printf "{\"op\":\"delete_prefix\",\"table\":\"consumerOffsets\"," \
            "\"key\":\"%s@\"}\n", $0
    }' batch.txt >batch.jsonl
}

count() { # STORE TABLE
    "$bin/stele" tables "$1" | awk -v table="$2" '$1 == table { print $2 }'
}

records() { # STORE: how many batches are in its log
    "$bin/stele" log "$1" --json | wc -l
}

echo "Making $topics topics, $groups groups, and their offsets ..."
make_config config
wc -c config/*.json | awk '{ printf "  %-32s %5.1f MB\n", $2, $1 / 1e6 }'

for store in store twin; do
    "$bin/stele" init $store >/dev/null
    begin_us=$(now_us)
    "$bin/stele" import rocketmq $store config >import.txt
    import_us=$(($(now_us) - begin_us))
done
echo "Importing with \`stele import rocketmq\`: $((import_us / 1000)) ms"
verify "all topics are imported" equal "$(count store topics)" $topics
verify "all groups are imported" equal "$(count store subscriptionGroups)" $groups
verify "all offsets are imported" \
    equal "$(count store consumerOffsets)" $((topics * queues))
verify "the import is one record in the log" equal "$(records store)" 1

# ---- Deleting, both ways ----------------------------------------------------------

echo
echo "Deleting topics, each with all its consumer offsets ..."
broker_single_ns=$(counted broker_single \
    "$bin/stele-demo" broker config single.txt $single_deletes 1)
stele_single_ns=$(counted stele_single \
    "$bin/stele-demo" delete store single.txt 0 $single_deletes 1)
broker_batch_ns=$(counted broker_batch \
    "$bin/stele-demo" broker config batch.txt $batch_deletes $batch_deletes)
stele_batch_ns=$(counted stele_batch \
    "$bin/stele-demo" delete twin batch.txt 0 $batch_deletes $batch_deletes)
records_before=$(records store)
begin_us=$(now_us)
counted stele_apply "$bin/stele" apply store batch.jsonl >apply.txt
apply_ns=$((($(now_us) - begin_us) * 1000))

printf '\n  %-48s %10s %10s %6s\n' "measured in this run, on this disk" \
    "time" written syncs
echo "  -- $single_deletes topics, one by one"
row "the JSON file, persisted for each topic" \
    "$broker_single_ns" broker_single "$files"
row "Stele, a batch for each, in a running process" \
    "$stele_single_ns" stele_single log
echo "     the file's way: $(ratio "$broker_single_ns" "$stele_single_ns" \
    broker_single stele_single)"
echo "  -- $batch_deletes topics, as one batch"
row "the JSON file, persisted once" "$broker_batch_ns" broker_batch "$files"
row "Stele, the batch in a running process" \
    "$stele_batch_ns" stele_batch log
echo "     the file's way: $(ratio "$broker_batch_ns" "$stele_batch_ns" \
    broker_batch stele_batch)"
row "\`stele apply\`, from its start to its end" "$apply_ns" stele_apply log
cat <<END

  Syncs: of the log, plus all others: anchor, index, new segments, directories,
  by open, close, and the background threads.
  The file's way stands for topics.json only: to delete the offsets durably, it
  would rewrite consumerOffset.json as well; and its text is not made, only
  copied. Stele's lines contain the offsets.
  \`stele apply\` pays, besides its commit, for reading $((2 * batch_deletes)) lines, for opening,
  and for the checkpoint of closing, which brings the index up to date. A process
  that goes on does that in the background.

END

verify "counted from outside: 3 syncs for each persist of the file" \
    equal "$(sum broker_single syncs "$files") $(sum broker_batch syncs "$files")" \
    "$((3 * single_deletes)) 3"
verify "the log was synced once for each of the $single_deletes batches" \
    equal "$(sum stele_single syncs log)" $single_deletes
verify "the log was synced once for the batch of $((2 * batch_deletes)) operations" \
    equal "$(sum stele_batch syncs log)" 1
verify "and once by \`stele apply\`, open and close included" \
    equal "$(sum stele_apply syncs log)" 1
verify "the batch is one record in the log" \
    equal "$(records store)" $((records_before + 1))
"$bin/stele" log store --json | tail -n 1 >record.txt
verify "with $((2 * batch_deletes)) operations" \
    grep -q "\"ops\":$((2 * batch_deletes))," record.txt

"$bin/stele" list store topics >topics_left.txt
verify "exactly the other $(wc -l <topics_kept.txt) topics are left" \
    same topics_kept.txt topics_left.txt
"$bin/stele" list store consumerOffsets | sed 's/@.*//' | uniq -c |
    awk '{ print $2, $1 }' >offsets_left.txt
awk -v queues=$queues '{ print $1, queues }' topics_kept.txt >offsets_kept.txt
verify "and exactly their offsets" same offsets_kept.txt offsets_left.txt
mkdir reference
cp config/topics.json reference
"$bin/stele" init reference_store >/dev/null
"$bin/stele" import rocketmq reference_store reference >/dev/null 2>&1
"$bin/stele" list reference_store topics --values >reference.txt
"$bin/stele" list store topics --values >store.txt
verify "the JSON file and the store hold the same topics, with the same values" \
    same reference.txt store.txt
verify "the store verifies" clean store

# ---- kill -9 ------------------------------------------------------------------------

echo
echo "Killing a program that commits without pause, by $storm_threads threads ..."
"$bin/stele" init storm >/dev/null
: >acks
for kill in $(seq $kills); do
    acks_before=$(wc -l <acks)
    "$bin/stele-demo" storm storm acks "$kill" $storm_threads &
    storm_pid=$!
    for _ in $(seq 1000); do
        if [ "$(wc -l <acks)" -gt "$acks_before" ]; then
            break
        fi
        sleep 0.01
    done
    sleep "0.$((RANDOM % 9))$((RANDOM % 9 + 1))"
    kill -9 $storm_pid
    { wait $storm_pid || true; } 2>/dev/null
    storm_pid=
    "$bin/stele-demo" check storm acks >check.txt || {
        echo "NOT SO: no batch is lost or torn by kill $kill" >&2
        exit 1
    }
    read -r acked found <check.txt
    verify "kill $kill: $acked batches were acknowledged, all are there, whole; and $((found - acked)) more, whole" \
        test "$(wc -l <acks)" -gt "$acks_before"
    verify "kill $kill: the store verifies" clean storm
done

# ---- Losing the index ----------------------------------------------------------------

rebuild() { # By the first that writes; rebuilt.txt: the state then.
    "$bin/stele" put store demo last change >/dev/null
    "$bin/stele" delete store demo last >/dev/null
    "$bin/stele" list store --values >rebuilt.txt
}

echo
echo "Losing the index, and the newest snapshot with it ..."
"$bin/stele" snapshot store >/dev/null
"$bin/stele" put store demo one more >/dev/null
"$bin/stele" snapshot store >/dev/null
"$bin/stele" put store demo and more >/dev/null
"$bin/stele" list store --values >state.txt
rm -r store/index
rebuild
verify "without its index the store opens by itself, with the same state" \
    same state.txt rebuilt.txt
newest=$(ls store/snapshot | tail -n 1)
printf 'rot' | dd of="store/snapshot/$newest" bs=1 seek=10000 conv=notrunc 2>/dev/null
rm -r store/index
rebuild
verify "with the newest snapshot damaged, too, the older one and the log serve" \
    same state.txt rebuilt.txt
verify "and the damaged one is kept as evidence" \
    test -e "store/quarantine/$newest.0001"
verify "the store verifies" clean store

echo
echo "All $verified checks passed. The programs are in build/release/bin."
