/*
 * tests/sim/disk.h -- the machine of a simulation: a file system that processes
 * use through base/io.h, and a recording of everything they did to it.
 *
 * What a process sees is the cache: every write, at once. What would be left
 * after a power cut is made from the recording (tests/sim/cut.h). Into the same
 * stream go the marks of whoever drives the processes: what was asked for, and
 * what was acknowledged, at which point.
 *
 * Everything is deterministic: clock, randomness, inode numbers. One thread.
 */
#ifndef TESTS_SIM_DISK_H
#define TESTS_SIM_DISK_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/io.h"
#include "tests/lib/random.h"
#include "tests/sim/image.h"

/* ---- The recording ---------------------------------------------------------- */

enum sim_op_kind {
    SIM_OP_CREATE,    /* inode, type: exists, without a name. */
    SIM_OP_LINK,      /* dir, name -> inode */
    SIM_OP_RENAME,    /* from_dir, from_name -> dir, name (-> inode) */
    SIM_OP_UNLINK,    /* dir, name */
    SIM_OP_WRITE,     /* inode, offset, bytes, data (NULL: zeros) */
    SIM_OP_RESIZE,    /* inode, offset: the size */
    SIM_OP_SYNC,      /* inode: of a file */
    SIM_OP_SYNC_DIR,  /* inode */
    SIM_OP_SYNC_LOST, /* inode: a sync failed, what was pending never comes. */
    SIM_OP_REREAD, /* inode, node: the cache was dropped, and shows this now. */
    SIM_OP_MAP_BEGIN, /* inode, map: a transaction of an index commits ... */
    SIM_OP_MAP_END,   /* ... and is durable now. */
    SIM_OP_MARK,      /* mark, value: of the driver. */
};

struct sim_op {
    enum sim_op_kind kind;
    uint32_t inode;
    uint32_t dir;
    uint32_t from_dir;
    enum io_file_type type;
    uint32_t mark;
    uint64_t value;
    uint64_t offset;
    size_t bytes;
    uint8_t *data;
    struct sim_map *map;
    struct sim_node *node;
    char name[SIM_NAME_BYTES];
    char from_name[SIM_NAME_BYTES];
};

/* ---- The machine -------------------------------------------------------------- */

enum sim_call {
    SIM_CALL_OPEN_DIR,
    SIM_CALL_MAKE_DIR,
    SIM_CALL_OPEN_FILE,
    SIM_CALL_CLOSE,
    SIM_CALL_SYNC_DIR,
    SIM_CALL_LIST,
    SIM_CALL_RENAME,
    SIM_CALL_UNLINK,
    SIM_CALL_RMDIR,
    SIM_CALL_INFO,
    SIM_CALL_READ,
    SIM_CALL_WRITE,
    SIM_CALL_SYNC,
    SIM_CALL_WRITE_BACK,
    SIM_CALL_ALLOCATE,
    SIM_CALL_TRUNCATE,
    SIM_CALL_DROP_CACHE,
    SIM_CALL_LOCK,
    SIM_CALL_RANDOM,
    SIM_CALL_INDEX_COMMIT,
    SIM_CALLS,
};

/* "pwrite", for messages. */
const char *sim_call_name(enum sim_call call);

/*
 * Asked before every call. Returns 0: go on; -errno: the call fails with it (a
 * sync then loses what was pending, as file systems do). For a write also
 * SIM_SHORT(bytes): only so many bytes are written; SIM_GARBLED: it succeeds, and
 * a bit of it is another. `name` is the file's.
 */
#define SIM_SHORT(bytes) ((int)(bytes) + 1)
#define SIM_GARBLED      INT_MIN
typedef int sim_fault(void *context, enum sim_call call, const char *name,
                      size_t bytes);

/* Called before a sync of a file takes effect: another thread may look now. */
typedef void sim_before_sync(void *context, const char *name);

struct sim_disk;

/* A process: its own descriptors and locks. The io is its first member. */
struct sim_process;

/* A machine that starts from `image` (taken over), all of it durable. */
struct sim_disk *sim_disk_create(struct sim_image *image, uint64_t seed);
/* Every process has ended. Accepts NULL. */
void sim_disk_free(struct sim_disk *disk);

struct sim_process *sim_process_start(struct sim_disk *disk);
struct io *sim_process_io(struct sim_process *process);
/* Descriptors that are open. */
uint32_t sim_process_open_count(const struct sim_process *process);
/* Kills it if need be: descriptors and locks go, nothing else. */
void sim_process_end(struct sim_process *process);

/* The machine of an io that a simulated process has; for tests/sim/index_sim.c. */
struct sim_disk *sim_disk_of(struct io *io);
const struct sim_image *sim_disk_cache(const struct sim_disk *disk);
const struct sim_op *sim_disk_ops(const struct sim_disk *disk,
                                  size_t *count_out);
/* What the recording started from. */
const struct sim_image *sim_disk_start(const struct sim_disk *disk);

void sim_disk_mark(struct sim_disk *disk, uint32_t mark, uint64_t value);
void sim_disk_set_fault(struct sim_disk *disk, sim_fault *fault, void *context);
void sim_disk_set_before_sync(struct sim_disk *disk, sim_before_sync *before,
                              void *context);
void sim_disk_set_fs_kind(struct sim_disk *disk, enum io_fs_kind kind);
void sim_disk_advance_clock(struct sim_disk *disk, uint64_t ns);
/* From now on the wall clock is so far off; the monotonic one knows nothing of
 * it. */
void sim_disk_jump_wall_clock(struct sim_disk *disk, int64_t ns);

/* For tests/sim/index_sim.c: replace the map of an index file. 0 or -errno. */
int sim_disk_commit_map(struct sim_disk *disk, uint32_t inode,
                        struct sim_map *map);

/* What an index file holds is another map: rot. It is not in the recording, so
 * whoever does this sees to it that nothing is kept of it. */
void sim_disk_rot_map(struct sim_disk *disk, uint32_t inode,
                      struct sim_map *map);

#endif
