/*
 * engine/index_file.h -- index/data.mdb as a file, before and beside LMDB.
 *
 * LMDB maps the file and follows what it finds: a file that was cut raises
 * SIGBUS, one that is not LMDB's may kill the process. So its meta pages are
 * looked at here first. Whether the pages between them are sound, only reading
 * them tells: the one stated exception to "nothing from disk can crash the
 * host".
 */
#ifndef ENGINE_INDEX_FILE_H
#define ENGINE_INDEX_FILE_H

#include <stdint.h>

#include "base/io.h"
#include "base/status.h"

#define INDEX_DATA_NAME "data.mdb"
#define INDEX_LOCK_NAME "lock.mdb"

/* Whether LMDB may be given the file in `dir`: two sane meta pages,
 * and at least as long as the newer one claims. NOT_FOUND, FOREIGN, CORRUPT. */
enum stele_status index_file_check(struct io_dir *dir,
                                   struct stele_error *error) STELE_MUST_CHECK;

/* Open it, to grow it. */
enum stele_status index_file_open(struct io_dir *dir, struct io_file **file_out,
                                  struct stele_error *error) STELE_MUST_CHECK;

/*
 * Make the file longer than `used_bytes` by what one transaction of a checkpoint
 * can add, but no longer than `bytes_max`; what is added is a hole. The next
 * commit's sync makes the length durable before its meta page can claim it.
 */
enum stele_status index_file_grow(struct io_file *file, uint64_t used_bytes,
                                  uint64_t bytes_max,
                                  struct stele_error *error) STELE_MUST_CHECK;

#endif
