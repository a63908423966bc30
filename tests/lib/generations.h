/*
 * tests/lib/generations.h -- a store whose keys are all put anew, again and again.
 *
 * Each generation is two and a half of its small segments of log, so that snapshots
 * between generations let log go; every value tells its key and its generation.
 */
#ifndef TESTS_LIB_GENERATIONS_H
#define TESTS_LIB_GENERATIONS_H

#include <stdint.h>

#include "tests/lib/store_dir.h"

enum {
    GENERATIONS_SEGMENT_BYTES = 64 << 10,
    GENERATIONS_KEYS = 40,
    GENERATIONS_VALUE_BYTES = 3000,
    GENERATIONS_STEP_BYTES = 8 << 10, /* Of a snapshot. */
};

/* The directory, and the store in it open, empty. */
void generations_make(struct store_dir *dir);

/* Of the newest generation; 0: there is none yet. */
unsigned generations_now(void);

/* "0017"; what key 17 has of a generation: borrowed until the next call. */
const char *generations_key(unsigned key);
const char *generations_value(unsigned key, unsigned generation);
/* The value of now. */
const char *generations_value_now(unsigned key);

/* Put every key, one a commit. */
void generations_write(struct store_dir *dir);
/* Every key has the value of now. */
void generations_assert(struct store_dir *dir);

/* stele_snapshot(), which works. Returns its LSN. */
uint64_t generations_snapshot(struct store_dir *dir);
/* Two of them, a log that was cut, and a generation behind. Returns the newest's LSN. */
uint64_t generations_leave_two(struct store_dir *dir);
/* "snapshot/<lsn>.snap": borrowed until the next call. */
const char *generations_snapshot_name(uint64_t lsn);

/* Killed, the index removed, and opened again. */
void generations_reopen_without_index(struct store_dir *dir);

#endif
