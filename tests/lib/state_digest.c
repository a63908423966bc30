/* tests/lib/state_digest.c -- see tests/lib/state_digest.h. */
#include "tests/lib/state_digest.h"

#include <string.h>

#include "base/checksum.h"
#include "tests/lib/run.h"

static struct stele_error error;

static uint64_t digest_number(uint64_t digest, uint64_t number)
{
    return checksum64(&number, sizeof number, digest);
}

static uint64_t digest_table(struct stele_view *view, const char *table,
                             uint64_t digest)
{
    struct stele_cursor *cursor;
    struct stele_entry entry;
    uint64_t lsn;
    enum stele_status status;

    run_expect_ok(stele_table_lsn(view, table, &lsn, &error), &error,
                  "a table's LSN");
    digest = checksum64(table, strlen(table), digest_number(digest, lsn));
    run_expect_ok(stele_cursor_open(view, table, NULL, 0, &cursor, &error),
                  &error, "open a cursor");
    while ((status = stele_cursor_next(cursor, &entry, &error)) == STELE_OK) {
        digest = checksum64(entry.key, entry.key_bytes, digest);
        digest = checksum64(entry.value.data, entry.value.bytes, digest);
        digest = digest_number(digest, entry.value.lsn);
    }
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "read a table");
    }
    stele_cursor_close(cursor);
    return digest;
}

uint64_t state_digest(struct stele_view *view)
{
    char table[STELE_TABLE_NAME_BYTES_MAX + 1];
    char after[STELE_TABLE_NAME_BYTES_MAX + 1];
    enum stele_status status = stele_table_next(view, NULL, table, &error);
    uint64_t digest = 0;

    while (status == STELE_OK) {
        digest = digest_table(view, table, digest);
        memcpy(after, table, sizeof after);
        status = stele_table_next(view, after, table, &error);
    }
    if (status != STELE_NOT_FOUND) {
        run_expect_ok(status, &error, "list the tables");
    }
    return digest;
}

static uint64_t digest_and_close(struct stele_view *view)
{
    const uint64_t digest = state_digest(view);

    stele_view_close(view);
    return digest;
}

uint64_t state_digest_now(struct stele *store)
{
    struct stele_view *view;

    run_expect_ok(stele_view_open(store, &view, &error), &error, "open a view");
    return digest_and_close(view);
}

uint64_t state_digest_at(struct stele *store, uint64_t lsn)
{
    struct stele_view *view;

    run_expect_ok(stele_view_open_at(store, lsn, &view, &error), &error,
                  "open a view of the past");
    return digest_and_close(view);
}
