/*
 * engine/store.h -- an open store, for the files of engine/ only.
 *
 * Who holds what, in the order in which mutexes may be taken:
 *
 *     log role        (commit queue)   the log writer, the active memtable, LSNs
 *     prepare_mutex                    making the next segment
 *     retention_mutex                  removing segments and snapshots; `holds`
 *     anchor_mutex                     ANCHOR's slots and `anchor`
 *     keeper_mutex                     what the two keepers and waiters share
 *     views_mutex                      the list of open views
 *
 * and below them the leaves inside state, writer, memtable and index.
 */
#ifndef ENGINE_STORE_H
#define ENGINE_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "base/mutex.h"
#include "engine/index.h"
#include "engine/ranges.h"
#include "engine/state.h"
#include "engine/stele.h"
#include "snapshot/map.h"
#include "wal/anchor.h"
#include "wal/reader.h"
#include "wal/recovery.h"
#include "wal/writer.h"

struct commit_request;
struct retention_hold;
struct snapshot_run;
struct stele_view;

#define STORE_WAL_NAME        "wal"
#define STORE_SNAPSHOT_NAME   "snapshot"
#define STORE_INDEX_NAME      "index"
#define STORE_INDEX_TMP_NAME  "index.tmp"
#define STORE_QUARANTINE_NAME "quarantine"
#define STORE_LOCK_NAME       "LOCK"

/* The bytes of LOCK that a writer locks: the first says that it is there, the
 * second that it has taken possession (engine/follow.h). The kernel drops both
 * with the process. */
enum { STORE_LOCK_BYTE_WRITER, STORE_LOCK_BYTE_DECLARED };

#define STORE_LSN_SKIP                 ((uint64_t)1 << 20) /* After an unclean end. */
#define STORE_LSN_UNSYNCED_MAX         ((uint64_t)1 << 19)
#define STORE_LOG_BYTES_PER_CHECKPOINT ((uint64_t)64 << 20)
#define STORE_LOG_BYTES_PER_SNAPSHOT   ((uint64_t)64 << 20)

/* What tests turn; stele_open() uses the defaults. */
struct store_tuning {
    struct io *io;
    uint64_t checkpoint_pages_max;      /* Dirty pages a transaction: 2,048. */
    uint64_t checkpoint_pages_per_step; /* 128, while there are commits. */
    uint64_t checkpoint_pause_ms;       /* 5; 0: no pacing. */
    uint64_t range_fragments_max;       /* 16,384 force a checkpoint. */
    uint64_t idle_anchor_ms;            /* 100 */
    uint64_t snapshot_log_bytes;  /* 64 MiB since the last one make one due. */
    uint64_t snapshot_step_bytes; /* 256 KiB between two pauses. */
    uint64_t snapshot_retry_ms;   /* 30,000 after one that failed. */
    uint64_t hash_seed;           /* 0: random. */
    uint64_t segment_bytes;       /* 0: as the options say. */
    /* No keeper threads: segments are prepared and checkpoints taken inside the
     * calls that need them, and nothing happens by itself. */
    bool manual;
};

void store_tuning_init(struct store_tuning *tuning);

/* The group under way: working memory of whoever holds the log role. */
struct commit_group {
    struct range_builder ranges;
    uint8_t *records[WAL_UNIT_RECORDS_MAX];
    size_t record_bytes[WAL_UNIT_RECORDS_MAX];
};

enum { COMMIT_GATES = 4 };

struct commit_queue {
    struct mutex mutex;
    struct commit_request *head;
    struct commit_request **tail;
    bool led;           /* Somebody holds the log role. */
    bool keeper_wanted; /* ... namely the log keeper, once it wakes. */
    /* Where waiters wait: those that queue up for one group at the same gate, the next
     * ones at the next. */
    _Atomic uint32_t gates[COMMIT_GATES];
    uint32_t gate; /* Of who queues up now. */
    bool has_heir; /* One of them is called when the role is handed on. */
};

/* The tail that a read-only handle keeps (engine/follow.c). */
struct follow_tail {
    struct memtable *memtable; /* NULL: there is none; build it anew. */
    struct range_set *ranges;
    struct wal_reader reader;
    struct wal_position base; /* Of what it was begun on: the index, or ... */
    struct snapshot_map *snapshot; /* ... this, a reference, or nothing. */
    uint64_t snapshot_newest;      /* In ANCHOR, then. */
};

/* What tells whether anybody has written since one looked. */
struct follow_sight {
    bool writer_alive;
    bool writer_declared; /* It has taken possession: ANCHOR is its. */
    uint64_t anchor_sequence;
    uint64_t hint_incarnation;
    struct wal_position hint; /* The origin without one. */
};

struct follow {
    struct mutex mutex; /* Over all of this, and over replacing the index. */
    struct follow_tail tail;
    struct follow_sight sight; /* When the handle last had caught up. */
    struct wal_position shown;
    bool started;   /* The publisher holds a state. */
    bool caught_up; /* `sight` is set, and nobody was writing. */
    bool unproven;  /* The end could not be proved durable, and is not shown. */
};

struct stele {
    struct stele_options options;
    struct store_tuning tuning;
    struct io *io;
    struct io_dir *dir;
    struct io_dir *wal_dir;
    struct io_dir *snapshot_dir;  /* NULL: missing. */
    struct io_file *lock_file;    /* The registry's, which closes it. */
    struct store_entry *registry; /* This process's claim on the directory. */
    uint64_t process;             /* Which one that is: engine/registry.h. */
    enum io_fs_kind fs_kind;
    bool read_only;
    uint64_t hash_seed;
    struct wal_uuid uuid;
    uint64_t segment_bytes;
    uint64_t incarnation;

    struct state_publisher publisher;
    struct index *index;

    /* ---- Writing ---- */

    struct commit_queue queue;
    struct commit_group *group;
    _Atomic uint64_t activity_ns; /* Of the last commit; monotonic clock. */
    struct wal_writer *writer;
    /* Of the role: */
    uint64_t lsn_last;         /* Last assigned. */
    uint64_t lsn_synced;       /* lsn_last at the last sync, or at open. */
    uint64_t hint_unit;        /* In the hint, as far as we wrote it. */
    uint64_t log_bytes_frozen; /* Log bytes at the last freeze. */

    struct mutex prepare_mutex;
    uint64_t
        candidate_first;     /* Segments found at open, not yet examined: ... */
    uint64_t candidate_last; /* ... first > last: none left. */

    struct mutex retention_mutex;
    struct retention_hold *holds; /* Singly linked. */

    struct mutex anchor_mutex;
    struct wal_anchor_file anchor_file;
    struct wal_anchor anchor; /* As last written. */

    /* Set once, never cleared. The error is written before the flag. */
    _Atomic bool poisoned;
    struct mutex poison_mutex;
    struct stele_error poison_error;

    struct mutex keeper_mutex;
    struct condition base_progress; /* A checkpoint step, its end or failure. */
    struct condition base_work;     /* Wakes the base keeper. */
    struct condition log_work;      /* Wakes the log keeper. */
    bool stopping;
    struct memtable *spare; /* For the next freeze; or NULL. */
    bool frozen; /* A frozen memtable waits for, or is in, a checkpoint. */
    uint32_t checkpoint_hurry; /* So many wait: no pauses. */
    bool log_keeper_asleep;    /* Until it is told: nothing is due. */
    bool log_keeper_kicked;    /* It was told since it last looked. */
    bool relaxed_pending;      /* Units are written that are not synced ... */
    uint64_t relaxed_since_ns; /* ... the oldest since then. */
    bool segment_wanted;
    struct wal_position frozen_end; /* Of the frozen memtable. */
    uint64_t log_bytes_applied;     /* Log bytes of this handle in the index. */
    uint64_t frozen_log_bytes;      /* ... once the frozen memtable is. */
    struct wal_position applied;    /* Of the index. */
    struct wal_position applying;
    bool index_dead; /* A commit of it failed: no more writing. */
    struct stele_error checkpoint_error; /* .status OK: the last one worked. */
    struct snapshot_run *snapshot_run;   /* Under way; the base keeper's. */
    struct wal_position snapshot_last;   /* Of the newest that counts. */
    uint64_t snapshot_last_bytes;        /* Of its file. */
    uint64_t snapshot_retry_ns;          /* Not before; 0: at any time. */
    uint32_t snapshot_hurry;             /* So many wait for one: no pauses. */
    uint64_t snapshot_wanted;            /* At this LSN or above. */
    uint64_t snapshot_asks;              /* By those who wait or waited. */
    uint64_t snapshot_asks_begun;        /* So many when the last one began. */
    uint64_t snapshot_asks_failed;       /* Who asked up to here is told. */
    struct stele_error snapshot_error;   /* As in the statistics. */
    pthread_t base_keeper;
    pthread_t log_keeper;
    bool keepers_started;

    /* ---- Reading ---- */

    struct mutex views_mutex;
    struct stele_view *views; /* Doubly linked. */
    uint64_t views_open;

    _Atomic bool index_damaged; /* Set by any reader: engine/damage.h. */
    struct follow follow;       /* Of a read-only handle. */
    bool index_no_lock; /* The index was opened without a reader slot. */

    /* ---- Statistics ---- */

    _Atomic uint64_t stat_records;
    _Atomic uint64_t stat_checkpoints;
    _Atomic uint64_t stat_checkpoint_transactions;
    _Atomic uint64_t stat_checkpoint_failures;
    _Atomic uint64_t stat_snapshots;
    _Atomic uint64_t stat_snapshot_failures;
    _Atomic uint64_t stat_snapshot_bytes_done;
    _Atomic uint64_t stat_segments_removed;
    _Atomic uint64_t stat_groups_withdrawn;
    _Atomic uint64_t stat_range_splits;
    struct wal_recovery recovery;
    uint64_t replayed_records;
    bool index_rebuilt;
};

/* stele_open() with the tests' screws. */
enum stele_status store_open(const char *path,
                             const struct stele_options *options,
                             const struct store_tuning *tuning,
                             struct stele **store_out,
                             struct stele_error *error) STELE_MUST_CHECK;

/* Drop the handle as a killed process would: nothing is synced or written. For
 * tests. No view may be open. */
void store_abandon(struct stele *store);

/* OK, or FORKED: first in every call, before anything else is looked at. */
enum stele_status store_check_process(
    const struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* The failure after which nothing is written any more. The first one counts. */
void store_poison(struct stele *store, const struct stele_error *error);
/* OK, or POISONED with the reason. */
enum stele_status store_check_writable(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

/* Whether the name LOCK still leads to the file that we have locked. If not,
 * another process can lock another file of that name and write beside us: then
 * the store is poisoned here, and POISONED returned. Any other failure: it could
 * not be told, and what was about to happen must not. Asked where much is about to
 * be written that another writer would not expect: at a rotation, a checkpoint,
 * and before the end is declared clean. */
enum stele_status store_check_lock(struct stele *store,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Write the anchor with what `change` makes of it. Any failure but NO_SPACE
 * poisons. */
typedef void store_anchor_change(struct wal_anchor *anchor,
                                 const void *context);
enum stele_status store_write_anchor(
    struct stele *store, store_anchor_change *change, const void *context,
    struct stele_error *error) STELE_MUST_CHECK;

/* ANCHOR as it is now, also as another process has made it. */
enum stele_status store_read_anchor(struct stele *store,
                                    struct wal_anchor *anchor_out,
                                    struct stele_error *error) STELE_MUST_CHECK;

/* Name segment `seq`, if it is the newest so far, in ANCHOR. */
enum stele_status store_name_segment(struct stele *store, uint64_t seq,
                                     struct stele_error *error)
    STELE_MUST_CHECK;

/* The oldest segment that is needed, now. */
uint64_t store_segment_oldest(struct stele *store);

/* Make sure that the writer has a prepared segment: a candidate found at open
 * that is unused, or a new one. For a leader without one, and the log keeper. */
enum stele_status store_prepare_segment(
    struct stele *store, struct stele_error *error) STELE_MUST_CHECK;

#endif
