/* tests/lib/archive_dir.c -- see tests/lib/archive_dir.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "engine/restore.h"
#include "tests/lib/archive_dir.h"
#include "tests/lib/io_fault.h"
#include "tests/lib/state_digest.h"
#include "tests/lib/temp_dir.h"

void archive_dir_make(struct archive_dir *dir)
{
    *dir = (struct archive_dir){.path = temp_dir_make()};
    files_path(dir->archive, dir->path, "archive");
    files_path(dir->restored, dir->path, "restored");
    files_path(dir->sibling, dir->path, "restored.restore-tmp");
}

void archive_dir_remove(struct archive_dir *dir)
{
    io_fault_arm(NULL);
    temp_dir_remove(dir->path);
}

const char *archive_dir_at(const struct archive_dir *dir, const char *name)
{
    static char path[FILES_PATH_BYTES];

    files_path(path, dir->archive, name);
    return path;
}

enum stele_status archive_dir_try_backup(struct archive_dir *dir,
                                         struct stele *store,
                                         struct stele_backup_report *report)
{
    *report = (struct stele_backup_report){.size = sizeof *report};
    dir->error = (struct stele_error){0};
    return stele_backup(store, dir->archive, report, NULL, NULL, &dir->error);
}

struct stele_backup_report archive_dir_backup(struct archive_dir *dir,
                                              struct stele *store)
{
    struct stele_backup_report report;

    if (archive_dir_try_backup(dir, store, &report) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    return report;
}

enum stele_status archive_dir_try_restore(struct archive_dir *dir,
                                          uint64_t until_lsn,
                                          uint64_t until_time_ns,
                                          struct stele_restore_report *report)
{
    const struct stele_restore_options options = {
        .size = sizeof options,
        .until_lsn = until_lsn,
        .until_time_ns = until_time_ns,
    };
    struct store_tuning tuning;

    store_tuning_init(&tuning);
    tuning.io = io_fault_io();
    *report = (struct stele_restore_report){.size = sizeof *report};
    dir->error = (struct stele_error){0};
    return restore_store(dir->archive, dir->restored, &options, &tuning, report,
                         &dir->error);
}

struct store_dir archive_dir_restored(const struct archive_dir *dir,
                                      const struct store_dir *like)
{
    struct store_dir restored = {
        .path = strdup(dir->restored),
        .options = like->options,
        .tuning = like->tuning,
    };

    assert_non_null(restored.path);
    return restored;
}

void archive_dir_forget(struct archive_dir *dir)
{
    char *path = strdup(dir->restored);

    assert_non_null(path);
    if (files_exists(path)) {
        temp_dir_remove(path);
    } else {
        free(path);
    }
}

uint64_t archive_dir_digest(struct archive_dir *dir,
                            const struct store_dir *like, uint64_t until_lsn)
{
    struct stele_restore_report report;
    struct store_dir restored = archive_dir_restored(dir, like);
    uint64_t digest;

    if (archive_dir_try_restore(dir, until_lsn, 0, &report) != STELE_OK) {
        fail_msg("%s", dir->error.message);
    }
    if (store_dir_try_open(&restored, STELE_OPEN_EXISTING) != STELE_OK) {
        fail_msg("%s", restored.error.message);
    }
    digest = state_digest_now(restored.store);
    assert_int_equal(store_dir_stats(&restored).lsn_visible, report.lsn);
    store_dir_assert_verifies(&restored);
    store_dir_kill(&restored);
    free(restored.path);
    archive_dir_forget(dir);
    return digest;
}
