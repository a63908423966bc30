/*
 * tools/bench/main.c -- stele-bench: Stele over what the disk can do, as ratios.
 *
 * 1. Start all workloads, each in a directory of its own.
 * 2. Rounds: each workload once, in turn.
 * 3. Report the ratios of the medians; exit with 1 if a bar is missed.
 *
 * A child does all of that. Its parent removes the directory, however that ends.
 */
#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
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
    "one), which should be on the disk in question, and removes it. All of it\n"
    "takes up to 10 GB there and most of an hour. Exits with 1 if a bar is\n"
    "missed, 2 if it could not be run.\n"
    "\n"
    "  --rounds N        default 5; 2 with --quick\n"
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
enum {
    WORKLOADS = sizeof workloads / sizeof workloads[0],
    ROUNDS_MAX = 1000,
};

static const struct bench_size full_size = {
    .items = 100000,
    .prefix_keys = 1000000,
    .repeats_small = 1000,
    .repeats_large = 5,
    .threads_ms = 1000,
    .peer_threads_ms = 6000,
    .peer_cap_ms = 2000,
    .open_items = 1000000,
    .open_tail = 16000, /* 62.5 MiB of log. */
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

static void make_directory(const char *parent)
{
    struct statfs found;

    if (snprintf(directory, sizeof directory, "%s/stele-bench-XXXXXX",
                 parent) >= (int)sizeof directory ||
        mkdtemp(directory) == NULL) {
        die("%s: %s", directory, strerror(errno));
    }
    if (statfs(directory, &found) == 0 && found.f_type == TMPFS_MAGIC) {
        fprintf(stderr,
                "stele-bench: %s is in memory: there is no disk "
                "whose limit it could be at\n",
                parent);
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

static struct bench_verdict report(const struct stats *stats,
                                   const struct request *request)
{
    struct bench_verdict all = {0, 0};

    if (request->json) {
        printf("{\"rounds\":%lu,\"quick\":%s}\n", request->rounds,
               request->quick ? "true" : "false");
    } else {
        if (request->quick) {
            printf("quick: at smaller sizes than these lines say, and too "
                   "short to be believed\n");
        }
        report_ratios_head(stdout);
    }
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (request->wanted[i]) {
            const struct bench_verdict verdict =
                (request->json ? report_ratios_json : report_ratios)(
                    stdout, workloads[i], stats, !request->quick);

            all.missed += verdict.missed;
            all.unmeasured += verdict.unmeasured;
        }
    }
    (request->json ? report_series_json : report_tables)(stdout, stats);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        die("the report cannot be written: %s", strerror(errno));
    }
    return all;
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

/* Returns the exit code. */
static int run(const struct request *request)
{
    const struct bench_size *size = request->quick ? &quick_size : &full_size;
    void *started[WORKLOADS] = {NULL};
    struct stats stats = {0};
    struct bench_verdict verdict;

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
    verdict = report(&stats, request);
    draw(&stats, request);
    stats_free(&stats);
    if (verdict.unmeasured > 0) {
        fprintf(stderr, "stele-bench: %u with a bar not measured\n",
                verdict.unmeasured);
    }
    if (verdict.missed > 0) {
        fprintf(stderr, "stele-bench: %u missed\n", verdict.missed);
    }
    return verdict.missed > 0 ? 1 : 0;
}

/* ---- The child that does it ------------------------------------------------------ */

static pid_t worker;

static void end_worker(int number)
{
    (void)number;
    kill(worker, SIGKILL);
}

static void start_worker(const struct request *request)
{
    const pid_t parent = getpid();

    worker = fork();
    if (worker < 0) {
        die("fork: %s", strerror(errno));
    }
    if (worker == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
            die("the parent is gone");
        }
        exit(run(request));
    }
}

static int run_in_child(const struct request *request)
{
    static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction on_end = {.sa_handler = end_worker};
    int status;

    make_directory(request->parent);
    start_worker(request);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        sigaction(ends[i], &on_end, NULL);
    }
    while (waitpid(worker, &status, 0) != worker) {
        if (errno != EINTR) {
            die("waitpid: %s", strerror(errno));
        }
    }
    remove_tree(directory);
    if (!WIFEXITED(status)) {
        fprintf(stderr, "stele-bench: ended by signal %d\n", WTERMSIG(status));
        return 2;
    }
    return WEXITSTATUS(status);
}

static unsigned long parse_rounds(const char *text)
{
    char *end;
    const unsigned long rounds = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end != '\0' || rounds == 0 ||
        rounds > ROUNDS_MAX) {
        die("--rounds %s: expected 1 to %d", text, ROUNDS_MAX);
    }
    return rounds;
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
    struct request request = {.parent = "."};
    int option;

    if (argc > 1 && strcmp(argv[1], bytes_job_verb) == 0) {
        return bytes_job_main(argc - 2, argv + 2);
    }
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case OPTION_ROUNDS:
            request.rounds = parse_rounds(optarg);
            break;
        case OPTION_ONLY:
            want(&request, optarg);
            break;
        case OPTION_QUICK:
            request.quick = true;
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
    if (optind < argc || request.parent[0] == '\0') {
        print_usage(stderr);
        return 2;
    }
    if (!wants_any(&request)) {
        want_all(&request);
    }
    if (request.rounds == 0) {
        request.rounds = request.quick ? 2 : 5;
    }
    if (request.plots != NULL) {
        plot_check(request.plots);
    }
    return run_in_child(&request);
}
