/*
 * tools/cmd_verify.c -- stele verify: check every checksum.
 *
 * A child looks, because LMDB may kill whoever reads a damaged index. If it does, a
 * second child looks at all but the index. Findings are printed by who finds them,
 * the summary by this process: nothing half-printed is left of a child that died.
 */
#include <stdio.h>

#include "engine/stele.h"
#include "tools/child.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

struct look {
    const char *path;
    bool ignore_index;
};

struct answer {
    int code;
    bool verified; /* There is a report. */
    struct stele_verify_report report;
};

static void print_finding(void *context, const struct stele_error *problem)
{
    (void)context;
    report_problem("%s", problem->message);
}

static void print_summary(const struct stele_verify_report *report,
                          bool index_killed_reader,
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
        {"snapshots", report->snapshots},
        {"snapshot_bytes", report->snapshot_bytes},
        {"problems", report->problems},
    };

    if (mode->json) {
        putchar('{');
    }
    output_numbers(stdout, mode, numbers, sizeof numbers / sizeof numbers[0]);
    if (mode->json) {
        printf(",\"index_killed_reader\":%s}\n",
               index_killed_reader ? "true" : "false");
    }
}

static void verify(struct stele *store, struct answer *answer)
{
    struct stele_error error = {0};
    enum stele_status status;

    answer->report.size = sizeof answer->report;
    status = stele_verify(store, print_finding, NULL, &answer->report, &error);
    answer->verified = status == STELE_OK || status == STELE_CORRUPT;
    if (!answer->verified ||
        (status == STELE_CORRUPT && answer->report.problems == 0)) {
        answer->code = report_error(status, &error); /* Nobody has said it. */
    } else {
        answer->code = exit_code_of(status);
    }
}

/* A child_work. */
static void look(const void *context, void *answer_out)
{
    const struct look *look = context;
    struct answer *answer = answer_out;
    struct stele_options options;
    struct stele *store = NULL;

    stele_options_init(&options);
    options.mode = STELE_OPEN_READ_ONLY;
    options.ignore_index = look->ignore_index;
    answer->code = store_open_with(look->path, &options, &store);
    if (answer->code == EXIT_DONE) {
        verify(store, answer);
        answer->code = store_close(store, answer->code);
    }
    progress_end();
}

/* The index killed who read it: what is there to say of everything else? */
static int look_without_index(struct look *look_at, int signal_number,
                              const struct output_mode *mode)
{
    struct answer answer;
    struct child_outcome outcome;

    report_problem("index: reading it killed the process that looked (%s): "
                   "damaged in LMDB's own structure; `stele rebuild %s` "
                   "builds it anew",
                   child_signal_text(signal_number), look_at->path);
    look_at->ignore_index = true;
    progress_step("verifying", "log and snapshots");
    outcome = child_run(look, look_at, &answer, sizeof answer);
    progress_end();
    if (outcome.end == CHILD_ANSWERED) {
        if (answer.verified) {
            answer.report.problems++; /* The index. */
            print_summary(&answer.report, true, mode);
        }
    } else if (outcome.end == CHILD_CRASHED) {
        report_problem("and without the index it died, too (%s): this is an "
                       "error of the program",
                       child_signal_text(outcome.signal));
    } else {
        (void)child_report(&outcome);
    }
    return EXIT_DAMAGED;
}

int cmd_verify(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    struct look look_at = {0};
    struct child_outcome outcome;
    struct answer answer;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    look_at.path = arguments.items[0];
    progress_step("verifying", "log, snapshots and index");
    outcome = child_run(look, &look_at, &answer, sizeof answer);
    progress_end();
    if (outcome.end == CHILD_CRASHED) {
        return look_without_index(&look_at, outcome.signal, &mode);
    }
    if (outcome.end != CHILD_ANSWERED) {
        return child_report(&outcome);
    }
    if (answer.verified) {
        print_summary(&answer.report, false, &mode);
    }
    return answer.code;
}
