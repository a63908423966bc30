/* tools/cmd_verify.c -- stele verify: check every checksum. */
#include <stdio.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

static void print_finding(void *context, const struct stele_error *problem)
{
    (void)context;
    report_problem("%s", problem->message);
}

static void print_summary(const struct stele_verify_report *report,
                          const struct output_mode *mode)
{
    const struct output_number numbers[] = {
        {"segments", report->segments},
        {"units", report->units},
        {"records", report->records},
        {"log_bytes", report->log_bytes},
        {"lsn_last", report->lsn_last},
        {"index_items", report->index_items},
        {"index_tables", report->index_tables},
        {"problems", report->problems},
    };

    if (mode->json) {
        putchar('{');
    }
    output_numbers(stdout, mode, numbers, sizeof numbers / sizeof numbers[0]);
    if (mode->json) {
        fputs("}\n", stdout);
    }
}

static int verify(struct stele *store, const struct output_mode *mode)
{
    struct stele_verify_report report = {.size = sizeof report};
    struct stele_error error = {0};
    enum stele_status status;

    progress_step("verifying", "log and index");
    status = stele_verify(store, print_finding, NULL, &report, &error);
    progress_end();
    if (status != STELE_OK && status != STELE_CORRUPT) {
        return report_error(status, &error);
    }
    if (status == STELE_CORRUPT && report.problems == 0) {
        report_problem("%s", error.message); /* Nobody has named it yet. */
    }
    print_summary(&report, mode);
    return exit_code_of(status);
}

int cmd_verify(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct stele *store = NULL;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    code = store_open_reading(arguments.items[0], &store);
    if (code != EXIT_DONE) {
        return code;
    }
    return store_close(store, verify(store, &mode));
}
