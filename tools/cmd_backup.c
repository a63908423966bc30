/* tools/cmd_backup.c -- stele backup: an archive of the store, or what is new. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

static void print_report(const char *dest,
                         const struct stele_backup_report *report,
                         const struct output_mode *mode)
{
    const struct output_number numbers[] = {
        {"lsn", report->lsn},
        {"snapshot_lsn", report->snapshot_lsn},
        {"segments_copied", report->segments_copied},
        {"bytes_copied", report->bytes_copied},
        {"bytes_present", report->bytes_present},
        {"units", report->units},
    };

    if (mode->json) {
        putchar('{');
        output_json_bytes(stdout, mode, "dest",
                          (struct bytes){.data = dest, .size = strlen(dest)});
        putchar(',');
        output_numbers(stdout, mode, numbers,
                       sizeof numbers / sizeof numbers[0]);
        fputs("}\n", stdout);
    } else {
        printf("%s: up to lsn %" PRIu64 ", verified; %" PRIu64
               " bytes copied, %" PRIu64 " were there\n",
               dest, report->lsn, report->bytes_copied, report->bytes_present);
    }
}

static int backup(struct stele *store, const char *dest,
                  const struct output_mode *mode)
{
    struct stele_backup_report report = {.size = sizeof report};
    struct stele_error error = {0};
    const enum stele_status status =
        stele_backup(store, dest, &report, progress_of_store, NULL, &error);

    progress_end();
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    print_report(dest, &report, mode);
    return EXIT_DONE;
}

int cmd_backup(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 2,
                         2, &arguments);
    if (code == EXIT_DONE) {
        code = store_open_reading(arguments.items[0], &store);
    }
    return code == EXIT_DONE
               ? store_close(store, backup(store, arguments.items[1], &mode))
               : code;
}
