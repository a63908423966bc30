/*
 * tests/sim/world.h -- a store living on a simulated machine: the script's steps,
 * with marks of what was asked and what was answered in the machine's recording.
 *
 * Whatever can be told from the answers alone is checked at once: a commit that
 * fails without a fault, an LSN given twice, a reader that lags. What a crash
 * would make of it is for tests/sim/oracle.h, from the recording.
 */
#ifndef TESTS_SIM_WORLD_H
#define TESTS_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/checkpoint.h"
#include "engine/retention.h"
#include "engine/store.h"
#include "tests/sim/disk.h"
#include "tests/sim/history.h"
#include "tests/sim/script.h"

/* Marks in the recording; the value is a batch's number, if nothing else is said. */
enum sim_mark {
    SIM_MARK_ISSUE,   /* The commit was called. */
    SIM_MARK_ACK,     /* It is durable, and all before it. */
    SIM_MARK_RELAXED, /* It returned; a killed process loses nothing of it. */
    SIM_MARK_REFUSED, /* It did not happen and never will. */
    SIM_MARK_EXPOSED, /* Somebody read the state that it made. */
    SIM_MARK_OPENED,  /* An open found this state: the rest never was. */
    SIM_MARK_STEP,    /* The script's step of this number begins. */
    SIM_MARK_NAMED,   /* ANCHOR names it, or a later one. */
    SIM_MARK_ANCHOR,  /* ANCHOR was written durably, with this sequence. */
    SIM_MARK_SNAPSHOT, /* ANCHOR names a snapshot of this LSN, or a newer one; all
                          that it names are sound. */
    SIM_MARK_ROT,      /* A snapshot of this LSN is damaged from now on. */
    SIM_MARK_INDEX_ROT, /* The index is, and may be set aside. */
    SIM_MARK_BACKUP, /* The archive is the state of this LSN, or of a later one. */
    SIM_MARK_RESTORE, /* A store of the state of this LSN is being restored ... */
    SIM_MARK_RESTORED, /* ... and is there. */
};

enum { SIM_PROBLEM_BYTES = 600 };

#define SIM_STORE_PATH    "root/store"
#define SIM_ARCHIVE_PATH  "root/archive"
#define SIM_RESTORED_PATH "root/restored"

/* What can be set for all lives. */
struct sim_setting {
    uint64_t segment_bytes;
    uint64_t memtable_bytes;
    uint32_t range_fragments_max; /* That fill a memtable; 0: the default. */
    enum io_fs_kind fs_kind;
    uint64_t fault_focus; /* Which few kinds of fault there are; 0: all. */
    uint64_t snapshot_log_bytes; /* 0: the default, for worlds without them. */
    uint64_t retain_log_bytes;
    uint64_t retain_log_ms;
};

struct sim_world {
    struct sim_setting setting;
    struct sim_disk *disk;
    struct sim_history *history;
    struct sim_process *process; /* Of the writer; NULL: not running. */
    struct stele *store;
    struct checkpoint *checkpoint; /* Under way, driven by steps. */
    struct sim_process *reader_process;
    struct stele *reader;
    uint32_t head;            /* The state that views see. */
    uint32_t durable;         /* The last batch known durable. */
    uint64_t anchor_sequence; /* Of ANCHOR's last durable write. */
    uint64_t lsn_high;        /* No LSN up to here may be given again. */
    bool created;             /* There is a store. */
    uint32_t looks_due;       /* After so many commits to come, look. */
    bool unsure; /* A fault struck the writer: anything may fail. */
    /* What is held, by the handle. */
    bool holding;
    struct retention_hold hold;
    uint32_t held;     /* The state. */
    bool rotten;       /* A snapshot that ANCHOR names may be damaged. */
    bool damaged;      /* Or one that it names no more, but that is kept. */
    uint32_t garbling; /* This write of a temporary from now arrives garbled. */
    uint32_t indexes_lost;
    /* The fault that is armed. */
    enum sim_call fault_call;
    const char *fault_suffix; /* Of the file's name. */
    int fault_result;         /* 0: none armed. */
    uint32_t fault_after;
    bool fault_struck;
    bool
        committing_durable; /* A durable batch alone: nothing of it shows yet. */
    struct random_source random;     /* Of what the script does not say. */
    char problem[SIM_PROBLEM_BYTES]; /* "": none so far. */
};

/* A machine with an empty directory "root". */
struct sim_image *sim_world_first_image(void);

/* On a disk that starts from `image` (taken over), in which the store is in the
 * state after batch `head` of `history` (borrowed); `created` false: there is no
 * store yet. */
void sim_world_init(struct sim_world *world, struct sim_image *image,
                    struct sim_history *history, uint32_t head, bool created,
                    uint64_t seed, const struct sim_setting *setting);
/* Everything ends, as if killed. */
void sim_world_deinit(struct sim_world *world);

/* How a simulated store is opened. */
void sim_world_options(const struct sim_setting *setting, struct io *io,
                       enum stele_open_mode mode, struct stele_options *options,
                       struct store_tuning *tuning);

/* Open, run the steps (those with skip[index] are left out; NULL: none are), and
 * stop at the first problem. */
void sim_world_run(struct sim_world *world, const struct sim_step *steps,
                   size_t step_count, const bool *skip);

/* Note the first problem. */
__attribute__((format(printf, 2, 3))) void sim_world_fail(
    struct sim_world *world, const char *format, ...);

/* The state that a store shows: its batch's number by the LSN, or by the log if
 * the LSN is not known. UINT32_MAX: none, and `text` says why. */
uint32_t sim_world_state_of(struct sim_history *history, struct stele *store,
                            uint64_t lsn, uint32_t limit, char *text,
                            size_t bytes);

#endif
