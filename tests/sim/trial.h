/*
 * tests/sim/trial.h -- one operation on a simulated store while something fails,
 * and what must be true then.
 *
 *     begin    a copy of a prepared disk, and what goes before the operation;
 *     act      the operation, or several calls: whoever makes things fail does so
 *              around this alone, and judges the statuses in `failures`;
 *     go on    with nothing failing any more: the disk as a kill, and as a power
 *              cut that drops all that was not synced, would leave it, by the
 *              oracle (tests/sim/oracle.h); the handle goes on, or says that it
 *              does not; nothing is left of it when it is closed;
 *     end      the same process opens the store again, commits, and closes it
 *              cleanly.
 *
 * The first thing that is wrong is in `problem`.
 */
#ifndef TESTS_SIM_TRIAL_H
#define TESTS_SIM_TRIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/store.h"
#include "tests/lib/sanitized.h"
#include "tests/sim/disk.h"
#include "tests/sim/history.h"
#include "tests/sim/image.h"
#include "tests/sim/world.h"

enum { SIM_FAILURES_MAX = 16 };

/* Sanitizers make every open dear: how many of the things that go without saying
 * in another build are left out there. One in so many is done. */
#define SIM_ONE_IN SANITIZED_CHOICE(1, 8)

/* A call of an act that did not return OK. */
struct sim_failure {
    const char *what; /* Static. */
    enum stele_status status;
    struct stele_error error;
};

struct sim_trial {
    struct sim_setting setting;
    const struct sim_scenario *scenario;
    struct sim_history history;
    struct sim_disk *disk;
    struct sim_process *process;
    struct stele *store; /* NULL: not open. */
    struct sim_process *reader_process;
    struct stele *reader;
    uint32_t head;     /* The state that the handle must show. */
    uint32_t durable;  /* The newest that no lost sync can take back. */
    bool created;      /* There is a store. */
    bool unknown;      /* A commit's outcome is: the next open decides. */
    bool opened;       /* By the act. */
    bool unexamined;   /* Set by the caller: without the oracle. */
    bool closed_clean; /* By the act, and everything is in the index. */
    struct sim_failure failures[SIM_FAILURES_MAX];
    size_t failure_count;
    char problem[SIM_PROBLEM_BYTES];
};

struct sim_scenario {
    const char *name;
    void (*ready)(struct sim_trial *trial); /* NULL: nothing to do. */
    void (*act)(struct sim_trial *trial);
    bool from_nothing; /* There is no store yet. */
    bool
        beside; /* It makes something beside the store: the handle has nothing to
                    do with what fails, and the act is done again. */
};

/* Every operation that there is; ended by a name of NULL. */
extern const struct sim_scenario sim_scenarios[];

/* The disk that the scenario's trials start from. */
struct sim_base {
    struct sim_setting setting;
    struct sim_history history;
    struct sim_image *image;
    uint32_t head;
};

/* False: it could not be made, and `problem` says why. */
bool sim_base_make(struct sim_base *base, const struct sim_scenario *scenario,
                   enum io_fs_kind fs_kind, char problem[SIM_PROBLEM_BYTES]);
void sim_base_free(struct sim_base *base);

/* The base's history is lent to the trial until its end. */
void sim_trial_begin(struct sim_trial *trial, struct sim_base *base,
                     const struct sim_scenario *scenario);
void sim_trial_act(struct sim_trial *trial);
void sim_trial_go_on(struct sim_trial *trial, struct sim_base *base);
void sim_trial_end(struct sim_trial *trial, struct sim_base *base);

/* ---- For scenarios ----------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) void sim_trial_problem(
    struct sim_trial *trial, const char *format, ...);

/* Note it unless it is OK; returns whether it is. */
bool sim_trial_note(struct sim_trial *trial, const char *what,
                    enum stele_status status, const struct stele_error *error);
/* The same where nothing fails: a problem. */
bool sim_trial_must(struct sim_trial *trial, const char *what,
                    enum stele_status status, const struct stele_error *error);

enum sim_shape {
    SIM_SHAPE_PUT,     /* One small value. */
    SIM_SHAPE_LARGE,   /* Five pages of values. */
    SIM_SHAPE_RANGES,  /* Range deletes, a clear and puts. */
    SIM_SHAPE_EXPECTS, /* Expectations that hold. */
};

/* A new batch after `previous`. Returns its number. */
uint32_t sim_trial_batch(struct sim_trial *trial, uint32_t previous,
                         enum sim_shape shape);

/* A commit, with the marks of what was asked and answered. Outcomes are asked
 * for if there is room for them. */
struct sim_commit {
    uint32_t number;
    enum stele_durability durability;
    struct stele_batch *batch;
    struct stele_commit_result result;
    enum stele_op_outcome outcomes[SIM_OPS_MAX];
    struct stele_error error;
    enum stele_status status;
    bool answered;
};

/* False: it could not even be filled (noted, and refused). */
bool sim_commit_begin(struct sim_trial *trial, struct sim_commit *commit);
void sim_commit_end(struct sim_trial *trial, struct sim_commit *commit);
/* Of a batch of the shape after the head. */
void sim_trial_commit(struct sim_trial *trial, enum sim_shape shape,
                      enum stele_durability durability);

/* Open for writing in the trial's process; a kill of it. */
enum stele_status sim_trial_open(struct sim_trial *trial,
                                 enum stele_open_mode mode,
                                 struct stele_error *error) STELE_MUST_CHECK;
void sim_trial_kill(struct sim_trial *trial);
/* A reader in a process of its own. */
enum stele_status sim_trial_open_reader(
    struct sim_trial *trial, struct stele_error *error) STELE_MUST_CHECK;
/* The state that `store` shows; UINT32_MAX after a problem. */
uint32_t sim_trial_look(struct sim_trial *trial, struct stele *store,
                        const char *who);
void sim_trial_mark(struct sim_trial *trial, enum sim_mark mark,
                    uint32_t number);

#endif
