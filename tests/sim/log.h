/*
 * tests/sim/log.h -- the records of a simulated store's log, one after another.
 */
#ifndef TESTS_SIM_LOG_H
#define TESTS_SIM_LOG_H

#include "engine/store.h"
#include "wal/position.h"
#include "wal/record.h"

/* Where the log can be read from: its beginning, or what retention left of it. */
enum stele_status sim_log_start(struct stele *store,
                                struct wal_position *start_out,
                                struct stele_error *error) STELE_MUST_CHECK;

typedef void sim_log_visit(void *context, const struct wal_record *record);

/* Those behind `start`, up to the first place where no whole unit follows. */
enum stele_status sim_log_walk(struct stele *store,
                               const struct wal_position *start,
                               sim_log_visit *visit, void *context,
                               struct stele_error *error) STELE_MUST_CHECK;

#endif
