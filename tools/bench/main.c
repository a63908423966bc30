/*
 * tools/bench/main.c -- stele-bench: Stele over what the disk can do, as ratios.
 *
 * 1. Start all workloads, each in a directory of its own.
 * 2. Rounds: each workload once, in turn.
 * 3. Report the ratios of the medians; exit with 1 if a bar is missed.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/bytes_job.h"
#include "tools/bench/plot.h"
#include "tools/bench/remove_tree.h"
#include "tools/bench/report.h"
#include "tools/bench/store.h"
#include "tools/must/must.h"

static const char usage[] =
    "Usage: stele-bench [DIR] [--rounds N] [--only WORKLOAD]... [--quick]\n"
    "                   [--json] [--plot DIR]\n"
    "\n"
    "Measure Stele beside what the same work takes without a store, and "
    "beside\n"
    "other stores, in rounds that take turns; print the ratios of the medians\n"
    "with their bars. Works in a new directory in DIR (default: the current\n"
    "one), which should be on the disk in question, and removes it. Exits with "
    "1\n"
    "if a bar is missed, 2 if it could not be run.\n"
    "\n"
    "  --rounds N        default 5\n"
    "  --only WORKLOAD   only this one, or these; default: all\n"
    "  --quick           a few seconds at small sizes; no bars\n"
    "  --json            one object a line\n"
    "  --plot DIR        and draw pictures (SVG) there, with gnuplot\n"
    "\n"
    "Workloads:";

static const struct bench_workload *const workloads[] = {
    &workload_put,     &workload_batch_delete, &workload_prefix_delete,
    &workload_threads, &workload_reads,        &workload_open,
    &workload_rebuild, &workload_steady,       &workload_impact,
    &workload_bytes,   &workload_relaxed,      &workload_memory,
    &workload_scale,   &workload_peers,
};
enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

static const struct bench_size full_size = {
    .items = 100000,
    .prefix_keys = 1000000,
    .repeats_small = 1000,
    .repeats_large = 5,
    .threads_ms = 1000,
    .peer_threads_ms = 6000,
    .peer_cap_ms = 2000,
    .open_items = 1000000,
    .open_tail = 10000,
    .steady_log_bytes = 64 << 20,
    .impact_ms = 2000,
    .impact_reads = 250000,
    .impact_cycles = 3,
    .impact_batch_items = 10000,
    .bytes_items = 100000,
    .largest_batch = 120000,
    .scale = {1000, 100000, 1000000, 10000000},
};

static const struct bench_size quick_size = {
    .quick = true,
    .items = 10000,
    .prefix_keys = 10000,
    .repeats_small = 50,
    .repeats_large = 1,
    .threads_ms = 50,
    .peer_threads_ms = 30,
    .peer_cap_ms = 20,
    .open_items = 10000,
    .open_tail = 500,
    .steady_log_bytes = 256 << 10,
    .impact_ms = 20,
    .impact_reads = 1000,
    .impact_cycles = 1,
    .impact_batch_items = 1000,
    .bytes_items = 2000,
    .largest_batch = 10000,
    .scale = {1000, 10000},
};

static void print_usage(FILE *file)
{
    fputs(usage, file);
    for (size_t i = 0; i < WORKLOADS; i++) {
        fprintf(file, " %s", workloads[i]->name);
    }
    fputc('\n', file);
}

struct request {
    const char *parent;
    unsigned long rounds;
    bool wanted[WORKLOADS];
    bool quick;
    bool json;
    const char *plots; /* NULL: none. */
};

/* ---- The directory ------------------------------------------------------------ */

static char directory[4096];

/* At exit, also from die(). */
static void remove_directory(void)
{
    remove_tree(directory);
}

static void make_directory(const char *parent)
{
    snprintf(directory, sizeof directory, "%s/stele-bench-XXXXXX", parent);
    if (mkdtemp(directory) == NULL) {
        die("%s: %s", directory, strerror(errno));
    }
    if (atexit(remove_directory) != 0) {
        die("atexit");
    }
}

static void *start(const struct bench_workload *workload,
                   const struct bench_size *size)
{
    char path[BENCH_PATH_BYTES];

    bench_directory(directory, workload->name, path);
    return workload->start(path, size);
}

/* ---- The report --------------------------------------------------------------- */

/* How many bars are missed. */
static unsigned report(const struct stats *stats, const struct request *request)
{
    unsigned missed = 0;

    if (!request->json) {
        if (request->quick) {
            printf("quick: at smaller sizes than these lines say, and too "
                   "short to be believed\n");
        }
        report_ratios_head(stdout);
    }
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (request->wanted[i]) {
            missed += (request->json ? report_ratios_json : report_ratios)(
                stdout, workloads[i], stats, !request->quick);
        }
    }
    (request->json ? report_series_json : report_tables)(stdout, stats);
    return missed;
}

static void draw(const struct stats *stats, const struct request *request)
{
    for (size_t i = 0; request->plots != NULL && i < WORKLOADS; i++) {
        for (size_t j = 0; j < workloads[i]->plot_count; j++) {
            plot_draw(&workloads[i]->plots[j], stats, request->plots);
        }
    }
}

/* ---- The run -------------------------------------------------------------------- */

static unsigned run(const struct request *request)
{
    const struct bench_size *size = request->quick ? &quick_size : &full_size;
    void *started[WORKLOADS] = {NULL};
    struct stats stats = {0};
    unsigned missed;

    make_directory(request->parent);
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (request->wanted[i]) {
            started[i] = start(workloads[i], size);
        }
    }
    for (unsigned long round = 0; round < request->rounds; round++) {
        for (size_t i = 0; i < WORKLOADS; i++) {
            if (request->wanted[i]) {
                if (isatty(STDERR_FILENO)) {
                    fprintf(stderr, "\rround %lu of %lu: %-20s", round + 1,
                            request->rounds, workloads[i]->name);
                }
                workloads[i]->round(started[i], &stats);
            }
        }
    }
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r%50s\r", "");
    }
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (request->wanted[i]) {
            workloads[i]->finish(started[i]);
        }
    }
    missed = report(&stats, request);
    draw(&stats, request);
    stats_free(&stats);
    return missed;
}

static void want(struct request *request, const char *name)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (strcmp(workloads[i]->name, name) == 0) {
            request->wanted[i] = true;
            return;
        }
    }
    die("%s: no such workload", name);
}

static void want_all(struct request *request)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        request->wanted[i] = true;
    }
}

static bool wants_any(const struct request *request)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (request->wanted[i]) {
            return true;
        }
    }
    return false;
}

enum {
    OPTION_ROUNDS = 1,
    OPTION_ONLY,
    OPTION_QUICK,
    OPTION_JSON,
    OPTION_PLOT,
    OPTION_HELP
};

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"rounds", required_argument, NULL, OPTION_ROUNDS},
        {"only", required_argument, NULL, OPTION_ONLY},
        {"quick", no_argument, NULL, OPTION_QUICK},
        {"json", no_argument, NULL, OPTION_JSON},
        {"plot", required_argument, NULL, OPTION_PLOT},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
    };
    struct request request = {.parent = ".", .rounds = 5};
    unsigned missed;
    int option;

    if (argc > 1 && strcmp(argv[1], bytes_job_verb) == 0) {
        return bytes_job_main(argc - 2, argv + 2);
    }
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case OPTION_ROUNDS:
            request.rounds = strtoul(optarg, NULL, 10);
            break;
        case OPTION_ONLY:
            want(&request, optarg);
            break;
        case OPTION_QUICK:
            request.quick = true;
            request.rounds = 2;
            break;
        case OPTION_JSON:
            request.json = true;
            break;
        case OPTION_PLOT:
            request.plots = optarg;
            break;
        case OPTION_HELP:
            print_usage(stdout);
            return 0;
        default:
            print_usage(stderr);
            return 2;
        }
    }
    if (optind < argc) {
        request.parent = argv[optind++];
    }
    if (optind < argc || request.rounds == 0) {
        print_usage(stderr);
        return 2;
    }
    if (!wants_any(&request)) {
        want_all(&request);
    }
    missed = run(&request);
    if (missed > 0) {
        fprintf(stderr, "stele-bench: %u missed\n", missed);
        return 1;
    }
    return 0;
}
