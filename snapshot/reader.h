/*
 * snapshot/reader.h -- reading a snapshot from its first entry to its last, and
 * verifying all of it on the way: every block's checksum, the order of the keys,
 * the counts, the digest. Memory: one block.
 *
 * Threads: one at a time.
 */
#ifndef SNAPSHOT_READER_H
#define SNAPSHOT_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/status.h"
#include "snapshot/block.h"
#include "snapshot/format.h"

struct snapshot_reader;

enum snapshot_name {
    SNAPSHOT_PUBLISHED, /* <lsn>.snap */
    SNAPSHOT_TEMPORARY, /* <lsn>.tmp: finished, not published yet. */
};

/*
 * Open `<lsn>.snap`, or the temporary, and check header and footer. NOT_FOUND: no
 * such file. CORRUPT: damaged, cut, of another LSN than its name says. FOREIGN: of
 * a newer version; or of another store than `uuid` (NULL: any). Messages name file,
 * offset and what was expected.
 */
enum stele_status snapshot_reader_open(
    struct io_dir *dir, uint64_t lsn, enum snapshot_name name,
    const uint8_t *uuid, struct snapshot_reader **reader_out,
    struct stele_error *error) STELE_MUST_CHECK;

const struct snapshot_info *snapshot_reader_info(
    const struct snapshot_reader *reader);

/* The bytes of the file that were read so far, for progress. */
uint64_t snapshot_reader_bytes(const struct snapshot_reader *reader);

/* The entry is borrowed until the next call. NOT_FOUND: that was all, and
 * everything has verified: only then is any of it to be relied upon. CORRUPT. */
enum stele_status snapshot_reader_next(
    struct snapshot_reader *reader, struct snapshot_entry *entry_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Read on by about `bytes_max` bytes, only to verify. *done_out: that was all. */
enum stele_status snapshot_reader_verify(
    struct snapshot_reader *reader, uint64_t bytes_max, bool *done_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* The file offset of the block that the last entry is in, for messages. */
uint64_t snapshot_reader_offset(const struct snapshot_reader *reader);

/* Forget cached pages of the file, so that what is read next comes from the disk. */
enum stele_status snapshot_reader_drop_cache(
    struct snapshot_reader *reader, struct stele_error *error) STELE_MUST_CHECK;

/* Accepts NULL. */
void snapshot_reader_close(struct snapshot_reader *reader);

/* Only header and footer: what the file says it is. Opens and closes it. */
enum stele_status snapshot_read_info(
    struct io_dir *dir, uint64_t lsn, const uint8_t *uuid,
    struct snapshot_info *info_out, struct stele_error *error) STELE_MUST_CHECK;

#endif
