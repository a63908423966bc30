/*
 * tools/bench/floor.h -- what durability costs without a store: writes and syncs
 * of the same bytes, by bare system calls, to a file of zeros that was written
 * and synced beforehand, so that no sync waits for metadata.
 */
#ifndef TOOLS_BENCH_FLOOR_H
#define TOOLS_BENCH_FLOOR_H

#include <stddef.h>

/* One writer. */
struct floor_file;

struct floor_file *floor_file_create(const char *directory);
/* One pwrite of `bytes`, rounded up to 4096, and one fdatasync. At the end of
 * the file it starts over: overwriting is no cheaper or dearer. */
void floor_file_append(struct floor_file *file, size_t bytes);
/* The same without the sync. */
void floor_file_write(struct floor_file *file, size_t bytes);
void floor_file_destroy(struct floor_file *file);

/* Many writers: a group commit without a store around it. The first becomes the
 * leader and writes for all that wait; one call wakes them. */
struct floor_log;

struct floor_log *floor_log_create(const char *directory);
/* Returns when `bytes` of data are on the disk. */
void floor_log_commit(struct floor_log *log, size_t bytes);
void floor_log_destroy(struct floor_log *log);

#endif
