/* engine/snapshot_copy.c -- see engine/snapshot_copy.h. */
#include "engine/snapshot_copy.h"

enum stele_status snapshot_copy_open(struct snapshot_copy *copy,
                                     struct index_reader *reader,
                                     struct snapshot_writer *writer,
                                     struct stele_error *error)
{
    const struct bytes everything = {"\x01", 1};
    enum stele_status status;

    *copy = (struct snapshot_copy){.writer = writer};
    tally_init(&copy->tally, "index", NULL, NULL);
    status = index_cursor_open(reader, &copy->cursor, error);
    if (status == STELE_OK) {
        status =
            index_cursor_seek(copy->cursor, everything, &copy->entry, error);
        if (status == STELE_NOT_FOUND) {
            copy->entry.key.size = 0; /* An empty state is one, too. */
            status = STELE_OK;
        }
    }
    return status;
}

/* One entry, and on to the next. */
static enum stele_status copy_entry(struct snapshot_copy *copy,
                                    struct stele_error *error)
{
    enum stele_status status =
        tally_add(&copy->tally, copy->entry.key, copy->entry.stored, error);

    if (status == STELE_OK) {
        status = snapshot_writer_add(copy->writer, copy->entry.key,
                                     copy->entry.stored, error);
    }
    if (status == STELE_OK) {
        status = index_cursor_next(copy->cursor, &copy->entry, error);
        if (status == STELE_NOT_FOUND) {
            copy->entry.key.size = 0;
            status = STELE_OK;
        }
    }
    return status;
}

enum stele_status snapshot_copy_advance(struct snapshot_copy *copy,
                                        uint64_t bytes_max, bool *done_out,
                                        struct stele_error *error)
{
    const uint64_t start = snapshot_writer_bytes(copy->writer);
    enum stele_status status = STELE_OK;

    while (status == STELE_OK && copy->entry.key.size > 0 &&
           snapshot_writer_bytes(copy->writer) - start < bytes_max) {
        status = copy_entry(copy, error);
    }
    if (status != STELE_OK) {
        return status;
    }
    *done_out = copy->entry.key.size == 0;
    return *done_out ? STELE_OK : snapshot_writer_pace(copy->writer, error);
}

enum stele_status snapshot_copy_finish(struct snapshot_copy *copy,
                                       const struct wal_position *position,
                                       struct snapshot_info *info_out,
                                       struct stele_error *error)
{
    uint8_t bytes[WAL_POSITION_BYTES];
    enum stele_status status = tally_end(&copy->tally, error);

    if (status != STELE_OK) {
        return status;
    }
    wal_position_encode(position, bytes);
    return snapshot_writer_finish(copy->writer, &copy->tally.totals, bytes,
                                  info_out, error);
}

void snapshot_copy_close(struct snapshot_copy *copy)
{
    index_cursor_close(copy->cursor);
    copy->cursor = NULL;
}
