/* tools/commands.c -- the table of verbs, with what --help says of each. */
#include "tools/commands.h"

#include <string.h>

static const char help_init[] =
    "Usage: stele init DIR [--segment-bytes N] [--json]\n"
    "\n"
    "Make an empty store in DIR, which must not exist or be empty. The parent\n"
    "directory must exist. Exits with 1 if there is a store already.\n"
    "\n"
    "  --segment-bytes N  length of a log segment, for good: 1 MiB to 1 GiB, "
    "a\n"
    "                     multiple of 4096 (default 67108864, 64 MiB). A "
    "batch\n"
    "                     must fit into one, less 8 KiB.\n"
    "  --json             print an object with dir and uuid\n"
    "\n"
    "Examples:\n"
    "  stele init /var/lib/broker/store\n"
    "  stele init store --segment-bytes 268435456   # batches up to 256 MiB\n";

static const char help_put[] =
    "Usage: stele put DIR TABLE KEY VALUE|- [--hex] [--json]\n"
    "\n"
    "Set KEY to VALUE, durably. With - for VALUE, all bytes of standard input\n"
    "are the value, a final newline included.\n"
    "\n"
    "  --hex    KEY and VALUE are hex digits (on standard input, one final\n"
    "           newline is not part of them)\n"
    "  --json   print an object with lsn and ops\n"
    "\n"
    "A value that begins with '-' goes behind --.\n"
    "\n"
    "Examples:\n"
    "  stele put store topics orders '{\"perm\":6}'\n"
    "  stele put store offsets -- orders@billing@0 -1\n"
    "  stele put store blobs logo - < logo.png\n";

static const char help_get[] =
    "Usage: stele get DIR TABLE KEY [--at LSN] [--raw | --hex | --json]\n"
    "\n"
    "Print the value of KEY and a newline; exit with 1 if there is no such "
    "key.\n"
    "Bytes are escaped as `stele list` does it.\n"
    "\n"
    "  --at LSN  as it was then: after the last batch up to that LSN\n"
    "  --raw     the bytes of the value exactly, and nothing else\n"
    "  --hex     KEY is hex digits, and so is what is printed\n"
    "  --json    an object with table, key, value, and the lsn that put it\n"
    "\n"
    "Examples:\n"
    "  stele get store topics orders\n"
    "  stele get store topics orders --at 4711\n"
    "  stele get store blobs logo --raw > logo.png\n";

static const char help_delete[] =
    "Usage: stele delete DIR TABLE KEY... [--hex] [--json]\n"
    "       stele delete DIR TABLE --prefix P [--hex] [--json]\n"
    "       stele delete DIR TABLE --from-file FILE|- [--hex] [--json]\n"
    "\n"
    "Delete keys, however many, as ONE batch: one log record, one sync, all "
    "or\n"
    "none of it. Deleting what is not there is no error.\n"
    "\n"
    "  --prefix P      all keys that begin with P; costs the same for ten "
    "keys\n"
    "                  and for a million\n"
    "  --from-file F   the keys in F (-: standard input), one a line; nothing\n"
    "                  but the newline is taken off. An empty line or an "
    "empty\n"
    "                  file is an error.\n"
    "  --hex           keys and prefix are hex digits, also in F\n"
    "  --json          print an object with lsn and ops\n"
    "\n"
    "Examples:\n"
    "  stele delete store topics orders invoices\n"
    "  stele delete store consumerOffsets --prefix orders@\n"
    "  stele delete store topics --from-file topics-to-delete.txt\n";

static const char help_apply[] =
    "Usage: stele apply DIR FILE|- [--batch-size N] [--json]\n"
    "\n"
    "Apply operations from FILE (-: standard input), one JSON object a line, "
    "in\n"
    "order, as ONE batch: one log record, one sync, all or none of it.\n"
    "\n"
    "  {\"op\":\"put\",\"table\":T,\"key\":K,\"value\":V}\n"
    "  {\"op\":\"delete\",\"table\":T,\"key\":K}\n"
    "  {\"op\":\"delete_prefix\",\"table\":T,\"key\":P}\n"
    "  {\"op\":\"clear\",\"table\":T}               all keys of the table\n"
    "\n"
    "K, P and V are strings. For bytes that are not text use key_hex and\n"
    "value_hex, with hex digits. Other members, missing members, and the same\n"
    "member twice are errors. All lines are read and checked before anything\n"
    "is applied; a message names the line.\n"
    "\n"
    "  --batch-size N   commit after every N operations instead. The batches\n"
    "                   before one whose commit fails stay applied.\n"
    "  --json           print an object with lsn and ops for each batch\n"
    "\n"
    "Examples:\n"
    "  stele apply store changes.jsonl\n"
    "  jq -c '.[] | {op:\"delete\",table:\"topics\",key:.}' old.json |\n"
    "      stele apply store - --batch-size 10000\n";

static const char help_list[] =
    "Usage: stele list DIR [TABLE] [--prefix P] [--values] [--limit N]\n"
    "                  [--at LSN] [--hex] [--json]\n"
    "\n"
    "Print the keys of TABLE in order, one a line; without TABLE those of all\n"
    "tables, each behind its table's name and a tab. Exits with 1 if the "
    "table\n"
    "was never written.\n"
    "\n"
    "  --prefix P   only keys that begin with P\n"
    "  --values     a tab and the value behind each key\n"
    "  --limit N    stop after N keys\n"
    "  --at LSN     as it was then: after the last batch up to that LSN\n"
    "  --hex        keys and values as hex digits; P is hex digits too\n"
    "  --json       an object a line: table, key, value if asked for, and the\n"
    "               lsn that put it\n"
    "\n"
    "Bytes are escaped as in a JSON string, but for quotes: \\\\ \\b \\f \\n "
    "\\r\n"
    "\\t, \\u00XX for other control characters, and \\xXX for a byte that is\n"
    "not UTF-8. In JSON, a key or value that is not UTF-8 is given in hex\n"
    "digits as key_hex or value_hex.\n"
    "\n"
    "Examples:\n"
    "  stele list store topics --limit 20\n"
    "  stele list store consumerOffsets --prefix orders@ --values\n"
    "  stele list store topics --at 4711\n"
    "  stele list store --json --values | jq -r .table | uniq -c\n";

static const char help_tables[] =
    "Usage: stele tables DIR [--at LSN] [--json]\n"
    "\n"
    "Print every table: its name, how many keys it has, and the lsn of the "
    "last\n"
    "batch that changed it, separated by tabs. A table is there from its "
    "first\n"
    "operation on, also when it is empty.\n"
    "\n"
    "  --at LSN  as it was then: after the last batch up to that LSN\n"
    "  --json    an object a line: table, count, lsn\n"
    "\n"
    "Examples:\n"
    "  stele tables store\n"
    "  stele tables store --at 4711\n"
    "  stele tables store --json | jq -s 'map(.count) | add'\n";

static const char help_diff[] =
    "Usage: stele diff DIR LSN1 LSN2 [TABLE] [--prefix P] [--values]\n"
    "                  [--hex] [--json]\n"
    "\n"
    "Print which keys were added, changed or deleted from the state at LSN1 "
    "to\n"
    "the one at LSN2, in order, one a line; of TABLE only, or of all tables. "
    "A\n"
    "key that was put again with the same value has not changed. LSN1 may be\n"
    "the later one: then it is the way back. Exits with 1 if there is any\n"
    "difference, with 0 if there is none, and with 2 if one of the LSNs is "
    "not\n"
    "there yet or no longer retained.\n"
    "\n"
    "  + table  key         [new value]\n"
    "  - table  key         [old value]\n"
    "  ~ table  key         [old value  new value]\n"
    "\n"
    "A space stands behind the sign, tabs between the rest.\n"
    "\n"
    "  --prefix P   only keys that begin with P\n"
    "  --values     values too\n"
    "  --hex        keys and values as hex digits; P is hex digits too\n"
    "  --json       an object a line: change (added, changed, deleted), "
    "table,\n"
    "               key, old and new if asked for, and the lsns that put "
    "them,\n"
    "               old_lsn and lsn\n"
    "\n"
    "Bytes are escaped as `stele list` does it. `stele log` shows the LSNs.\n"
    "\n"
    "Examples:\n"
    "  stele diff store 4710 4711 --values      # what that batch did\n"
    "  stele diff store 4711 4710 topics        # and how to undo it\n"
    "  stele diff store 0 4711 --json | jq -r .change | sort | uniq -c\n";

static const char help_stat[] =
    "Usage: stele stat DIR [--json]\n"
    "\n"
    "Print what the store says of itself: identity, log positions, memory,\n"
    "what opening it found, its snapshots, and of every segment of the log "
    "why\n"
    "it is kept.\n"
    "\n"
    "  --json   as one object\n"
    "\n"
    "Examples:\n"
    "  stele stat store\n"
    "  stele stat store --json | jq .lsn_durable\n";

static const char help_log[] =
    "Usage: stele log DIR [--ops] [--json] [--from LSN] [--limit N]\n"
    "\n"
    "Print the records of the log, one line each: a record is one batch.\n"
    "\n"
    "  --ops        the operations of each record as well\n"
    "  --json       an object a line: lsn, ops, bytes\n"
    "  --from LSN   start at this record\n"
    "  --limit N    stop after N records\n"
    "\n"
    "Examples:\n"
    "  stele log store --limit 10\n"
    "  stele log store --from 4711 --ops --json\n";

static const char help_verify[] =
    "Usage: stele verify DIR [--json]\n"
    "\n"
    "Check every checksum of the log, of the snapshots and of the index, the\n"
    "counts and sums of the tables, and that snapshots and index descend from\n"
    "this log. Changes nothing; works while another process writes. Findings\n"
    "go to standard error, a summary to standard output. Exits with 3 if\n"
    "anything is damaged.\n"
    "\n"
    "An index that is damaged in the structure of its pages can kill the "
    "process\n"
    "that reads it. A child reads it; if it dies, that is a finding, and the\n"
    "rest is verified without the index.\n"
    "\n"
    "  --json   the summary as an object; index_killed_reader says if it did\n"
    "\n"
    "Examples:\n"
    "  stele verify store\n"
    "  stele verify store --json | jq .problems\n";

static const char help_rebuild[] =
    "Usage: stele rebuild DIR [--json]\n"
    "\n"
    "Set the index aside, into quarantine/ below DIR, and build it anew from\n"
    "snapshots and log, whatever its state. Nothing is lost by it: they are "
    "the\n"
    "truth. No other process may have the store open for writing.\n"
    "Refused, and nothing is changed, if the log itself is damaged (exit 3).\n"
    "\n"
    "  --json   print an object with keys, tables and lsn\n"
    "\n"
    "Examples:\n"
    "  stele rebuild store\n"
    "  stele verify store || stele rebuild store\n";
static const char help_snapshot[] =
    "Usage: stele snapshot DIR [--json]\n"
    "\n"
    "Take a snapshot of the newest state: one file in DIR/snapshot, read back "
    "and\n"
    "verified. What of the log two snapshots make superfluous is removed. A "
    "broker\n"
    "takes them by itself; while one has the store open this exits with 5.\n"
    "\n"
    "  --json   print an object with lsn, bytes, keys and tables\n"
    "\n"
    "Examples:\n"
    "  stele snapshot store\n"
    "  stele snapshot store --json | jq .bytes\n";

static const char help_backup[] =
    "Usage: stele backup DIR DEST [--json]\n"
    "\n"
    "Copy the store's newest snapshot and the log behind it into the "
    "directory\n"
    "DEST, which is made, or is empty, or holds an earlier backup of this "
    "store:\n"
    "then only what is new is copied, and every state from the first one on "
    "can be\n"
    "restored, as long as backups come before the store lets its log go. "
    "Works\n"
    "while another process writes. When it exits with 0, all of it was read "
    "back\n"
    "from the disk and verified. Interrupted, it leaves an earlier backup as "
    "good\n"
    "as it was.\n"
    "\n"
    "  --json   print an object with dest, lsn, snapshot_lsn, "
    "segments_copied,\n"
    "           bytes_copied, bytes_present and units\n"
    "\n"
    "Examples:\n"
    "  stele backup /var/lib/broker/store /mnt/backup/broker\n"
    "  stele backup store backup --json | jq .lsn\n";

static const char help_restore[] =
    "Usage: stele restore DEST DIR [--until-lsn N | --until-time T] [--json]\n"
    "\n"
    "Make a new store in DIR, which must not exist or be empty, from the "
    "backup in\n"
    "DEST. It has a uuid of its own and goes on with LSNs far above. Exits "
    "with 1\n"
    "if the backup does not have that state, and says what it has.\n"
    "\n"
    "  --until-lsn N    up to this batch (`stele log` lists them)\n"
    "  --until-time T   up to the last batch written at or before T: "
    "UTC, as\n"
    "                   2026-11-30T14:30:00Z, with a fraction of a second "
    "if\n"
    "                   need be, or @ and seconds since 1970\n"
    "  --json           print an object with dir, lsn, time_ns, keys, tables "
    "and\n"
    "                   uuid\n"
    "\n"
    "Examples:\n"
    "  stele restore /mnt/backup/broker /var/lib/broker/store\n"
    "  stele restore backup store --until-time 2026-11-30T14:29:59.999Z\n"
    "  stele restore backup store --until-lsn 4711\n";

static const char help_import[] =
    "Usage: stele import rocketmq DIR CONFIGDIR [--json]\n"
    "\n"
    "Read topics.json, subscriptionGroup.json and consumerOffset.json from\n"
    "CONFIGDIR and put them into the store as ONE batch. It REPLACES what the\n"
    "tables held; the tables of a file that is missing are left as they are.\n"
    "\n"
    "  table               key                  value\n"
    "  topics              topic                its configuration, JSON\n"
    "  subscriptionGroups  group                its configuration, JSON\n"
    "  consumerOffsets     topic@group@queueId  the offset, decimal\n"
    "                      topic@group          {} for one without queues\n"
    "  rocketmq.meta       file/member          all else, JSON\n"
    "\n"
    "Integer keys without quotes, as the broker writes them, are understood. "
    "A\n"
    "file that is empty, blank, null, all NUL, cut off, not UTF-8, or "
    "otherwise\n"
    "not what the broker writes is refused (exit 3), with line and column, "
    "and\n"
    "nothing is applied. So is a missing file that has a .bak beside it. A "
    ".bak\n"
    "is never read: which of the two is right is not for a program to guess.\n"
    "\n"
    "  --json   print an object with lsn, ops, topics, groups, offsets\n"
    "\n"
    "Examples:\n"
    "  stele import rocketmq store /home/rocketmq/store/config\n"
    "  stele import rocketmq store config --json | jq .topics\n";

static const char help_export[] =
    "Usage: stele export rocketmq DIR OUTDIR [--force] [--fastjson-keys]\n"
    "                    [--json]\n"
    "\n"
    "Write topics.json, subscriptionGroup.json and consumerOffset.json into\n"
    "OUTDIR (made if it is missing) from one consistent state: what was "
    "imported\n"
    "and what has changed since. A file whose table was never written is left\n"
    "out. Each is written under a temporary name, synced, then renamed.\n"
    "\n"
    "  --force           replace files that are there\n"
    "  --fastjson-keys   queue ids without quotes, as the broker writes them;\n"
    "                    that is not JSON to most other programs\n"
    "  --json            print an object with file and entries for each file\n"
    "\n"
    "Examples:\n"
    "  stele export rocketmq store /tmp/config\n"
    "  stele export rocketmq store config --force --fastjson-keys\n";

const struct command commands[] = {
    {"init", "make an empty store", help_init, cmd_init},
    {"put", "set a key", help_put, cmd_put},
    {"get", "print the value of a key", help_get, cmd_get},
    {"delete", "delete keys as one batch", help_delete, cmd_delete},
    {"apply", "apply JSON lines as one batch", help_apply, cmd_apply},
    {"list", "print keys and values in order", help_list, cmd_list},
    {"tables", "print the tables and their counts", help_tables, cmd_tables},
    {"diff", "print what changed between two LSNs", help_diff, cmd_diff},
    {"stat", "print what the store says of itself", help_stat, cmd_stat},
    {"log", "print the records of the log", help_log, cmd_log},
    {"verify", "check every checksum", help_verify, cmd_verify},
    {"rebuild", "build the index anew", help_rebuild, cmd_rebuild},
    {"snapshot", "write the whole state into one file", help_snapshot,
     cmd_snapshot},
    {"backup", "copy the store, also while it is written", help_backup,
     cmd_backup},
    {"restore", "make a new store from a backup", help_restore, cmd_restore},
    {"import", "take over a broker's files", help_import, cmd_import},
    {"export", "write a broker's files", help_export, cmd_export},
};

const size_t command_count = sizeof commands / sizeof commands[0];

const struct command *command_find(const char *verb)
{
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].verb, verb) == 0) {
            return &commands[i];
        }
    }
    return NULL;
}
