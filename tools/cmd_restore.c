/* tools/cmd_restore.c -- stele restore: a new store from a backup. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/time_argument.h"

static void print_report(const char *dir,
                         const struct stele_restore_report *report,
                         const struct output_mode *mode)
{
    const struct bytes uuid = {.data = report->uuid,
                               .size = sizeof report->uuid};
    const struct output_number numbers[] = {
        {"lsn", report->lsn},
        {"time_ns", report->time_ns},
        {"keys", report->keys},
        {"tables", report->tables},
    };

    if (mode->json) {
        putchar('{');
        output_json_bytes(stdout, mode, "dir",
                          (struct bytes){.data = dir, .size = strlen(dir)});
        putchar(',');
        output_numbers(stdout, mode, numbers,
                       sizeof numbers / sizeof numbers[0]);
        fputs(",\"uuid\":\"", stdout);
        output_hex(stdout, uuid);
        fputs("\"}\n", stdout);
    } else {
        printf("%s: made store ", dir);
        output_hex(stdout, uuid);
        printf(" as of lsn %" PRIu64 ", %" PRIu64 " keys in %" PRIu64
               " tables\n",
               report->lsn, report->keys, report->tables);
    }
}

int cmd_restore(int argc, char **argv)
{
    struct output_mode mode = {0};
    struct stele_restore_options options = {.size = sizeof options,
                                            .progress = progress_of_store};
    struct stele_restore_report report = {.size = sizeof report};
    char *time = NULL;
    const struct option_spec specs[] = {
        {"until-lsn", OPTION_NUMBER, .number = &options.until_lsn},
        {"until-time", OPTION_TEXT, .text = &time},
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 2,
                         2, &arguments);
    if (code == EXIT_DONE && time != NULL) {
        code = time_argument("until-time", time, &options.until_time_ns);
    }
    if (code != EXIT_DONE) {
        return code;
    }
    if (options.until_lsn != 0 && time != NULL) {
        return report_usage("either --until-lsn or --until-time, not both");
    }
    status = stele_restore(arguments.items[0], arguments.items[1], &options,
                           &report, &error);
    progress_end();
    if (status != STELE_OK) {
        return report_error(status, &error);
    }
    print_report(arguments.items[1], &report, &mode);
    return EXIT_DONE;
}
