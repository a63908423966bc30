/*
 * tests/sim/oracle.h -- what must be true of any disk that a crash leaves.
 *
 * From the marks that lie before the cut follows what may be found:
 *
 *     must      the newest batch that was acknowledged as durable, read by
 *               somebody, or found by an open: it, and all before it, is there;
 *     relaxed   the same for a process that is killed: what returned;
 *     refused   what never happened and must never be seen: what was answered so,
 *               and what an open did not find.
 *
 * A disk is good if the store opens and
 *
 *     (1) shows the state after a batch that was issued, not refused, and
 *         descends from `must`: nothing acknowledged lost, nothing half applied,
 *         nothing resurrected;
 *     (2) every key of that state, and no other, has the bytes and the LSN that
 *         were put: by cursor, and by count;
 *     (3) the log, read from its beginning or from what retention left of it, is
 *         exactly the chain of batches that leads there, byte for byte, and index
 *         and memtable agree with it;
 *     (4) reading it from another process first shows no less and changes nothing;
 *     (5) closed and opened again it is the same, and nothing has grown;
 *     (6) the next batch is accepted, with an LSN that was never given, and found
 *         after a kill;
 *     (7) no temporaries and no descriptors are left, and no index was set aside
 *         that never failed;
 *     (8) ANCHOR is, before it is opened, no older than its last durable write;
 *     (9) the state is safe twice: it opens in the same state without an index;
 *         and without an index and with the newest snapshot damaged, which then
 *         lies in quarantine/;
 *    (10) every snapshot that ANCHOR names is there, verifies to its end, and is
 *         exactly the state of its LSN; nothing of the log below ANCHOR's oldest
 *         segment is left after an open;
 *    (11) ANCHOR names, before it is opened, a snapshot no older than the last one
 *         that was said to be taken.
 *
 *    (12) an archive, if there is one, restores: in the state of the newest backup
 *         that was acknowledged, or of a later one that was under way, which the
 *         store has, too; in that of each earlier one, if that is asked for; in that
 *         of any other LSN, or it is not there. The new store survives a power cut
 *         from then on, has a uuid of its own, and goes on with LSNs far above. An
 *         archive that was acknowledged is there;
 *    (13) a restore that was cut has left a store in that very state, or none.
 *
 * (1), (2), (8) and (11) are checked of every disk, the others of a share. While a
 * snapshot is damaged already, (9) and (10) are not demanded: until the next one was
 * taken, which has to notice.
 */
#ifndef TESTS_SIM_ORACLE_H
#define TESTS_SIM_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cut.h"
#include "tests/sim/history.h"
#include "tests/sim/image.h"
#include "tests/sim/world.h"

enum { SIM_BACKUPS_KNOWN = 4 };

/* What is known of the archive, and of what was restored from it. */
struct sim_archived {
    bool acknowledged;                /* A backup. */
    uint64_t lsns[SIM_BACKUPS_KNOWN]; /* Of the last ones, the newest first. */
    bool restoring;
    bool restored;
    uint64_t restored_lsn; /* What the new store is the state of. */
};

/* What is known at a point of a recording. */
struct sim_knowledge {
    uint32_t must;
    uint32_t relaxed;
    uint32_t named;           /* ANCHOR names it, or a later one. */
    uint32_t issued;          /* The newest batch that was asked for. */
    uint64_t lsn_high;        /* The highest LSN that somebody was told. */
    uint64_t anchor_sequence; /* Of the last write of ANCHOR that returned. */
    uint64_t snapshot_lsn; /* ANCHOR names a snapshot of it, or a newer one. */
    bool created;          /* An open has returned: there must be a store. */
    bool rot;              /* A snapshot that ANCHOR names may be damaged. */
    bool damaged;          /* One was. */
    struct sim_archived archived;
};

/* Where a life starts: what is known of the disk it finds. */
struct sim_start {
    uint32_t head; /* The state that its store is in. */
    bool created;  /* False: there is no store yet. */
    uint64_t lsn_high;
    uint64_t anchor_sequence;
    uint64_t snapshot_lsn;
    bool rot;
    bool damaged;
    struct sim_archived archived;
};

/* `refused` has room for one more than the batches of the history. */
void sim_knowledge_init(struct sim_knowledge *knowledge,
                        const struct sim_history *history,
                        const struct sim_start *start, bool *refused);
/* Take in one operation. `refused`[number] is set for what was refused. */
void sim_knowledge_pass(struct sim_knowledge *knowledge,
                        const struct sim_history *history,
                        const struct sim_op *op, bool *refused);
/* A mark behind which the disk is the same as before it, but more is demanded. */
bool sim_mark_demands(const struct sim_op *op);
/* Where a life starts that goes on from a disk that was examined. */
struct sim_verdict;
struct sim_start sim_start_after(const struct sim_knowledge *knowledge,
                                 const struct sim_verdict *verdict);
/* The recording goes on with one: a cut behind that says all that one here does. */
bool sim_knowledge_grows(const struct sim_op *ops, size_t count, size_t place);

struct sim_examination {
    const struct sim_setting *setting;
    struct sim_history *history;
    const struct sim_knowledge *knowledge;
    const bool *refused;
    enum sim_model model;
    bool index_sound; /* No commit of it ever failed. */
    bool deep;        /* All the rules. */
    bool deep_torn; /* The same if the tail is torn: going on is harder then. */
    bool archive;   /* Rules (12) and (13). */
    uint64_t seed;
};

struct sim_verdict {
    bool good;
    bool created;       /* There is a store. */
    uint32_t found;     /* Its state. */
    bool torn;          /* Recovery met a torn tail (row C). */
    bool in_checkpoint; /* The index was applying > applied. */
    bool deep;          /* All the rules were checked. */
    bool archive;       /* It has one, from which a store was restored. */
    char problem[SIM_PROBLEM_BYTES];
};

/* `image` is borrowed and unchanged. */
void sim_examine(const struct sim_examination *examination,
                 const struct sim_image *image, struct sim_verdict *verdict);

/*
 * The same for a disk that was damaged afterwards (model R): `proven` is the batch
 * whose durability is proven by what is on the disk beside its own unit. Good: it
 * is refused as damaged and nothing is touched; or it opens in a state at or
 * after `proven`, and every byte of it, and of the log that opening read, is right.
 */
void sim_examine_damaged(const struct sim_examination *examination,
                         const struct sim_image *image, uint32_t proven,
                         uint32_t found_before, struct sim_verdict *verdict);

/* What is proven durable on a disk that is not damaged. */
struct sim_proof {
    uint32_t found;         /* The state that opening it finds. */
    uint32_t proven;        /* By anything. */
    uint32_t outside_log;   /* By ANCHOR, index or snapshots alone. */
    uint32_t without_index; /* By ANCHOR or snapshots alone. */
};

/* False: it does not open. */
bool sim_prove(const struct sim_examination *examination,
               const struct sim_image *image, struct sim_proof *proof_out);

#endif
