#!/bin/bash
# tests/test_cli_rocketmq.sh BIN_DIR -- stele import rocketmq and export
# rocketmq: files as both of the broker's JSON writers leave them, the way there
# and back, and damaged files, with the state compared before and after.
set -eu
shopt -s lastpipe

# shellcheck source=tests/lib/cli.sh
. "$(dirname "$0")/lib/cli.sh"
data=$tests/data/rocketmq

# ---- Vocabulary -------------------------------------------------------------

# What is in a store, without the lsns.
contents() {
    "$stele" list "$1" --values
}

# same SENTENCE FILE FILE
same() {
    diff "$2" "$3" >out 2>err || fail "$1"
    pass "$1"
}

# A store with the import of a directory.
imported() {
    "$stele" init "$1" >/dev/null
    "$stele" import rocketmq "$1" "$2" >/dev/null 2>notes ||
        { cat notes; exit 1; }
}

# ---- There ------------------------------------------------------------------

cat >expected <<'END'
consumerOffsets	%RETRY%GID_order@GID_order@0	0
consumerOffsets	OrderTopic@GID_order@0	1024
consumerOffsets	OrderTopic@GID_order@1	9007199254740993
consumerOffsets	OrderTopic@GID_order@2	0
rocketmq.meta	consumerOffset.json/dataVersion	{"counter":3,"stateVersion":0,"timestamp":1726000000123}
rocketmq.meta	consumerOffset.json/groupTopicMap	{"GID_order":["%RETRY%GID_order","OrderTopic"]}
rocketmq.meta	subscriptionGroup.json/dataVersion	{"counter":7,"stateVersion":0,"timestamp":1726000000123}
rocketmq.meta	subscriptionGroup.json/forbiddenTable	{"GID_order":{"OrderTopic":1}}
rocketmq.meta	topics.json/dataVersion	{"counter":12,"stateVersion":0,"timestamp":1726000000123}
subscriptionGroups	GID_exp	{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"GID_exp","groupRetryPolicy":{"customizedRetryPolicy":{"next":[1000,5000,10000,30000,60000,120000,180000,240000,300000,360000,420000,480000,540000,600000,1200000,1800000,3600000,7200000]},"exponentialRetryPolicy":{"initial":5000,"max":7200000,"multiplier":2},"type":"EXPONENTIAL"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"subscriptionDataSet":[{"expression":"*","expressionType":"TAG","topic":"OrderTopic","version":0}],"whichBrokerWhenConsumeSlowly":1}
subscriptionGroups	GID_order	{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"GID_order","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}
topics	OrderTopic	{"attributes":{"message.type":"NORMAL"},"order":false,"perm":6,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"OrderTopic","topicSysFlag":0,"writeQueueNums":8}
topics	SELF_TEST_TOPIC	{"attributes":{},"order":false,"perm":6,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"SELF_TEST_TOPIC","topicSysFlag":0,"writeQueueNums":1}
END

for writer in fastjson1 fastjson2; do
    "$stele" init "$writer" >/dev/null
    does "$writer is imported" 0 \
        import rocketmq "$writer" "$data/$writer" --json
    grep -Eq '^\{"lsn":[0-9]+,"ops":19,"topics":2,"groups":2,"offsets":4\}$' out ||
        fail "$sentence: counts"
    contents "$writer" >got
    same "$writer gives the tables" expected got

    mkdir "$writer.compact"
    cp "$data/$writer/topics.compact.json" "$writer.compact/topics.json"
    cp "$data/$writer/consumerOffset.compact.json" \
        "$writer.compact/consumerOffset.json"
    cp "$data/$writer/subscriptionGroup.json" "$writer.compact/"
    imported "$writer.compact.store" "$writer.compact"
    contents "$writer.compact.store" >got
    same "$writer without white space gives the same" expected got
done

# ---- And back ---------------------------------------------------------------

store=fastjson1
cat >expected_offsets <<'END'
{
"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1726000000123},
"groupTopicMap":{"GID_order":["%RETRY%GID_order","OrderTopic"]},
"offsetTable":{
"%RETRY%GID_order@GID_order":{"0":0},
"OrderTopic@GID_order":{"0":1024,"1":9007199254740993,"2":0}
}
}
END
does "export writes the three files" 0 export rocketmq "$store" exported --json
[ "$(cat out)" = '{"file":"topics.json","entries":2}
{"file":"subscriptionGroup.json","entries":2}
{"file":"consumerOffset.json","entries":4}' ] || fail "export --json"
[ "$(ls -A exported | tr '\n' ' ')" = "consumerOffset.json subscriptionGroup.json topics.json " ] ||
    fail "three files and nothing else"
same "offsets are exported as JSON" expected_offsets exported/consumerOffset.json
imported again exported
contents again >got
same "what was exported gives the same tables again" expected got

does "export does not replace files" 1 export rocketmq "$store" exported
says "exported/topics.json: exists (--force replaces it)"
echo old >exported/topics.json
does "export --force does" 0 \
    export rocketmq "$store" exported --force --fastjson-keys
sed 's/"\([0-9]\)":/\1:/g' expected_offsets >expected_unquoted
same "export --fastjson-keys leaves integer keys bare" \
    expected_unquoted exported/consumerOffset.json
imported once_more exported
contents once_more >got
same "and that gives the same tables again" expected got

# An independent reader agrees: the files mean what the broker's meant.
if command -v python3 >/dev/null; then
    "$stele" export rocketmq "$store" exported --force >/dev/null
    python3 - "$data" exported >out 2>err <<'END' || fail "semantic comparison"
import json, re, sys
for name in "topics.json", "subscriptionGroup.json", "consumerOffset.json":
    for writer in "fastjson1", "fastjson2":
        text = open(f"{sys.argv[1]}/{writer}/{name}").read()
        text = re.sub(r"([{,]\s*)(\d+):", r'\1"\2":', text)
        assert json.loads(text) == json.load(open(f"{sys.argv[2]}/{name}")), name
END
    pass "another JSON parser finds the files equal"
else
    echo "skipped: another JSON parser (no python3)"
fi

"$stele" init nothing >/dev/null
does "export of a store without such tables" 1 export rocketmq nothing nowhere
says "nothing to export"
[ ! -e nowhere ] || fail "no directory is made for nothing"
does "export into a directory whose parent is missing" 4 \
    export rocketmq "$store" nowhere/config

# ---- Values that are easily bent ----------------------------------------------

mkdir odd
cat >odd/topics.json <<'END'
{"topicConfigTable":{"ü\u0000 \"\\/\ttopic":{"z":1,"a":-9223372036854775808,"m":9223372036854775807,"r":0.1,"e":1e300,"n":null,"t":[true,{0:1,-1 : 2,"007":3}]}},"unknown":[1,2],"another":null}
END
cat >odd/consumerOffset.json <<'END'
{"offsetTable":{"a@b":{},"a@b1":{ 0 : 1 },"a@b-":{-1:-1,2147483647:9223372036854775807}}}
END
"$stele" init odd.store >/dev/null
does "a NUL in a name is refused" 3 import rocketmq odd.store odd
says "odd/topics.json: line 1"
sed -i 's/\\u0000//' odd/topics.json
does "odd but right files are imported" 0 import rocketmq odd.store odd
says "note: odd/subscriptionGroup.json: no such file"
cat >expected_odd <<'END'
consumerOffsets	a@b	{}
consumerOffsets	a@b-@-1	-1
consumerOffsets	a@b-@2147483647	9223372036854775807
consumerOffsets	a@b1@0	1
rocketmq.meta	topics.json/another	null
rocketmq.meta	topics.json/unknown	[1,2]
topics	ü "\\/\ttopic	{"z":1,"a":-9223372036854775808,"m":9223372036854775807,"r":0.10000000000000001,"e":1.0000000000000001e300,"n":null,"t":[true,{"0":1,"-1":2,"007":3}]}
END
contents odd.store >got
same "order, integers, empty maps, and unknown members are kept" expected_odd got
does "export leaves out the table that was never written" 0 \
    export rocketmq odd.store odd.exported
says "note: subscriptionGroup.json: left out"
imported odd.again odd.exported
contents odd.again >got
same "and they come back" expected_odd got
"$stele" put odd.store consumerOffsets a@b@3 7 >/dev/null
does "an empty map that has got queues is exported once" 0 \
    export rocketmq odd.store odd.exported --force
[ "$(grep -c '"a@b":' odd.exported/consumerOffset.json)" = 1 ] || fail "a@b once"
grep -q '"a@b":{"3":7}' odd.exported/consumerOffset.json || fail "a@b has queue 3"

# ---- Import replaces ----------------------------------------------------------

cp -r "$data/fastjson2" new
echo '{"topicConfigTable":{"Only":{}}}' >new/topics.json
rm new/consumerOffset.json
"$stele" put "$store" unrelated k v >/dev/null
"$stele" put "$store" rocketmq.meta other.json/x 1 >/dev/null
does "import replaces the tables" 0 import rocketmq "$store" new
says "new/consumerOffset.json: no such file; offsets stay as they are"
{
    grep '^consumerOffsets\|^rocketmq.meta	consumer' expected
    echo 'rocketmq.meta	other.json/x	1'
    grep '^rocketmq.meta	subscription\|^subscriptionGroups' expected
    printf 'topics\tOnly\t{}\nunrelated\tk\tv\n'
} >expected_new
contents "$store" >got
same "and leaves all else as it was" expected_new got
echo '{"topicConfigTable":{}}' >new/topics.json
does "an empty table is imported as one" 0 import rocketmq "$store" new
does "there are no topics then" 0 list "$store" topics
[ ! -s out ] || fail "no topics"

# ---- Refusals -----------------------------------------------------------------
#
# The bad file is the last that is read, or the first: nothing of the others may
# be applied.

# refuses_file SENTENCE FILE MESSAGE <TEXT
refuses_file() {
    rm -rf config
    cp -r "$data/fastjson1" config
    cat >"config/$2"
    does "$2: $1" 3 import rocketmq good config
    says "stele: import: config/$2: $3"
    state good >after
    cmp -s before after || fail "$sentence: the state changed"
}

imported good "$data/fastjson1"
state good >before
for file in topics.json subscriptionGroup.json consumerOffset.json; do
    : | refuses_file "empty" $file "the file is empty (0 bytes)"
    printf ' \n\t\r\n' | refuses_file "blank" $file "nothing but white space"
    head -c 4096 /dev/zero | refuses_file "all NUL" $file "all of its 4096 bytes are NUL"
    echo null | refuses_file "null" $file "the top level is null, not an object"
    echo '[]' | refuses_file "an array" $file "the top level is an array, not an object"
    echo '""' | refuses_file "a string" $file "the top level is a string, not an object"
    echo 0 | refuses_file "a number" $file "the top level is an integer, not an object"
    echo '{}' | refuses_file "no members" $file '"'
    { cat "$data/fastjson1/$file"; echo x; } |
        refuses_file "trailing text" $file "line "
    { cat "$data/fastjson1/$file"; echo '{}'; } |
        refuses_file "a second object" $file "line "
    { cat "$data/fastjson1/$file"; head -c 100 /dev/zero; } |
        refuses_file "trailing NUL bytes" $file "line "
    { printf '\357\273\277'; cat "$data/fastjson1/$file"; } |
        refuses_file "a byte order mark" $file "line 1, column 3: "
    tr O '\377' <"$data/fastjson1/$file" |
        refuses_file "not UTF-8" $file "line "
    # At every 61st byte, and at each of the last ten.
    bytes=$(wc -c <"$data/fastjson1/$file")
    for kept in $(seq 1 61 $((bytes - 11))) $(seq $((bytes - 10)) $((bytes - 1))); do
        head -c "$kept" "$data/fastjson1/$file" |
            refuses_file "cut off after $kept of $bytes bytes" $file "" >/dev/null
    done
    pass "$file: cut off anywhere"
done

refuses_file "no table" topics.json '"topicConfigTable" is missing' \
    <<<'{"dataVersion":{},"topicconfigtable":{}}'
refuses_file "a null table" topics.json '"topicConfigTable": is null, not an object' \
    <<<'{"topicConfigTable":null}'
refuses_file "an array for a table" consumerOffset.json '"offsetTable": is an array' \
    <<<'{"offsetTable":[]}'
refuses_file "a topic that is no object" topics.json 'topicConfigTable: "t": is an integer' \
    <<<'{"topicConfigTable":{"t":6}}'
refuses_file "a topic that is null" topics.json 'topicConfigTable: "t": is null' \
    <<<'{"topicConfigTable":{"t":null}}'
refuses_file "a topic without a name" topics.json 'topicConfigTable: an entry has an empty name' \
    <<<'{"topicConfigTable":{"":{}}}'
refuses_file "a data version that is no object" topics.json '"dataVersion": is a string' \
    <<<'{"dataVersion":"1","topicConfigTable":{}}'
refuses_file "the same topic twice" topics.json 'line 2, column 20: duplicate' <<'END'
{"topicConfigTable":
  {"t":{},"u":{},"t":{}}}
END
refuses_file "the table twice" topics.json 'line 1, column ' \
    <<<'{"topicConfigTable":{},"topicConfigTable":{}}'
refuses_file "the same queue twice" consumerOffset.json 'line 1, column ' \
    <<<'{"offsetTable":{"a@b":{0:1,"0":2}}}'
refuses_file "an integer that is too large" consumerOffset.json 'line 1, column ' \
    <<<'{"offsetTable":{"a@b":{0:9223372036854775808}}}'
refuses_file "a real number that is too large" topics.json 'line 1, column ' \
    <<<'{"topicConfigTable":{"t":{"r":1e999}}}'
refuses_file "an offset that is no integer" consumerOffset.json 'offsetTable: "a@b": "0": is a real number' \
    <<<'{"offsetTable":{"a@b":{0:1.5}}}'
refuses_file "an offset that is a string" consumerOffset.json 'offsetTable: "a@b": "0": is a string' \
    <<<'{"offsetTable":{"a@b":{0:"1"}}}'
refuses_file "a queue that is no number" consumerOffset.json 'offsetTable: "a@b": "x" is not' \
    <<<'{"offsetTable":{"a@b":{"x":1}}}'
refuses_file "a queue with leading zeros" consumerOffset.json 'offsetTable: "a@b": "00" is not' \
    <<<'{"offsetTable":{"a@b":{00:1}}}'
refuses_file "offsets of a topic without a group" consumerOffset.json 'offsetTable: "a" is not a topic@group' \
    <<<'{"offsetTable":{"a":{0:1}}}'
refuses_file "offsets with an @ too many" consumerOffset.json 'offsetTable: "a@b@5" is not a topic@group' \
    <<<'{"offsetTable":{"a@b@5":{}}}'
refuses_file "queues that are no object" consumerOffset.json 'offsetTable: "a@b": is an integer' \
    <<<'{"offsetTable":{"a@b":5}}'
refuses_file "a real number as a key" consumerOffset.json 'line 1, column ' \
    <<<'{"offsetTable":{"a@b":{0.5:1}}}'
refuses_file "a bare word as a key" consumerOffset.json 'line 1, column ' \
    <<<'{"offsetTable":{"a@b":{zero:1}}}'
refuses_file "a key in an array" consumerOffset.json 'line 1, column ' \
    <<<'{"offsetTable":{"a@b":{}},"x":[1,2:3]}'
refuses_file "a key where a value belongs" consumerOffset.json 'line 1, column 27' \
    <<<'{"offsetTable":{"a@b":{0:1:2}}}'
refuses_file "half a surrogate pair" topics.json 'line 1, column ' \
    <<<'{"topicConfigTable":{"\ud800":{}}}'
head -c 3000 /dev/zero | tr '\0' '[' |
    refuses_file "brackets without end" topics.json "line 1, column "

long=$(head -c 600 /dev/zero | tr '\0' k)
for text in "{\"topicConfigTable\":{\"$long\":{}}}" \
    "{\"topicConfigTable\":{},\"$long\":1}"; do
    echo "$text" >config/topics.json
    does "a name that is too long" 2 import rocketmq good config
    says '"kkkkkkkkkkkkkk'
done
cp "$data/fastjson1/topics.json" config/
echo "{\"offsetTable\":{\"$long@b\":{0:1}}}" >config/consumerOffset.json
does "a topic@group that is too long" 2 import rocketmq good config
says '"kkkkkkkkkkkkkk'
state good >after
cmp -s before after || fail "the state changed"

rm -rf config
mkdir config
does "a directory without any of the files" 3 import rocketmq good config
says "config: none of the files to import is there"
does "a directory that does not exist" 3 import rocketmq good no_config
cp "$data"/fastjson1/*.json config/
mv config/topics.json config/topics.json.bak
does "a file that is gone while its .bak is there" 3 import rocketmq good config
says "config/topics.json: no such file (there is a topics.json.bak"
: >config/topics.json
does "a file that is empty while its .bak is there" 3 import rocketmq good config
says "config/topics.json: the file is empty (0 bytes) (there is a topics.json.bak"
rm config/topics.json
mkdir config/topics.json
does "a directory in the place of a file" 4 import rocketmq good config
does "an unknown kind" 2 import kafka good config
does "an unknown kind of export" 2 export kafka good config
state good >after
cmp -s before after || fail "the state changed"

# ---- Tables that have no place in the files -----------------------------------

# refuses_export SENTENCE MESSAGE TABLE KEY VALUE [--hex]
refuses_export() {
    rm -rf broken broken.out
    imported broken "$data/fastjson1"
    "$stele" put broken "${@:3}" >/dev/null
    does "export: $1" 3 export rocketmq broken broken.out
    says "$2"
    [ ! -e broken.out ] || fail "$sentence: nothing is written"
}
refuses_export "a topic that is no JSON" 'table topics, key "t": the value is not a JSON object' \
    topics t '{"perm":'
refuses_export "a topic that is no object" 'key "t": the value is not a JSON object' \
    topics t '[]'
refuses_export "a topic that is not UTF-8" 'key "\xff": not UTF-8' topics ff 7b7d --hex
refuses_export "an offset that is none" 'key "a@b@0": the value is not an offset' \
    consumerOffsets a@b@0 1x
refuses_export "an offset key that is none" 'key "a@b": not a topic@group@queueId' \
    consumerOffsets a@b 1
refuses_export "a member that is no JSON" 'key "topics.json/x": the value is not JSON' \
    rocketmq.meta topics.json/x nope
refuses_export "a member with the name of the table" "the table's own name" \
    rocketmq.meta topics.json/topicConfigTable '{}'

# ---- More than one batch takes --------------------------------------------------

"$stele" init small --segment-bytes 1048576 >/dev/null
mkdir large
{
    printf '{"topicConfigTable":{"first":{}'
    for i in $(seq 1 20); do
        printf ',"t%d":{"x":"' "$i"
        head -c 60000 /dev/zero | tr '\0' x
        printf '"}'
    done
    echo '}}'
} >large/topics.json
state small >before
does "an import that is larger than a batch" 2 import rocketmq small large
says "an import is one batch"
says "--segment-bytes"
state small >after
cmp -s before after || fail "the state changed"
imported roomy large
does "the same in a store with larger segments" 0 list roomy topics
[ "$(wc -l <out)" = 21 ] || fail "21 topics"

echo "$passed passed, 0 failed"
