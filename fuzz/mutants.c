/* fuzz/mutants.c -- see fuzz/mutants.h. */
#include "fuzz/mutants.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz/campaign.h"

enum { PATH_BYTES = 1024 };

/* What is tried, one after another, until the mutant is caught: first a little of
 * what has most in it, then everything, then what is hardest on a store. By states, not by time: what is caught does not
 * depend on the machine. */
static const struct {
    const char *model; /* NULL: as each seed says. */
    const char *states;
} trials[] = {{"A+R+S", "24000"},
              {NULL, "80000"},
              {"A+R", "80000"},
              {"O+E", "200000"},
              {"A+E", "600000"}};

enum { TRIALS = sizeof trials / sizeof trials[0] };

struct outcome {
    bool caught;
    const char *model; /* NULL: the seed's own. */
    uint64_t seed;
    uint64_t states;
    double seconds;
    char how[200];
};

/* "<directory of the program>/mutants". */
static void directory_of(char target[PATH_BYTES])
{
    char self[PATH_BYTES];
    const ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    self[bytes < 0 ? 0 : bytes] = '\0';
    slash = strrchr(self, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    snprintf(target, PATH_BYTES, "%.1000s/mutants", self);
}

static int compare_names(const struct dirent **left,
                         const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_mutant(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The program's own report, if it lived to write one. */
static void read_report(FILE *output, struct outcome *outcome)
{
    json_error_t ignored;
    json_t *root = json_loadf(output, 0, &ignored);
    const json_t *violation = json_object_get(root, "violation");
    const char *text = json_string_value(json_object_get(violation, "text"));

    outcome->states +=
        (uint64_t)json_integer_value(json_object_get(root, "states"));
    if (text != NULL) {
        outcome->caught = true;
        outcome->seed =
            (uint64_t)json_integer_value(json_object_get(violation, "seed"));
        snprintf(outcome->how, sizeof outcome->how, "%.*s",
                 (int)strcspn(text, "\n"), text);
    }
    json_decref(root);
}

/* The mutant's part: never returns. */
static void exec_trial(const char *path, unsigned trial)
{
    const char *arguments[] = {path,
                               "--json",
                               "--no-shrink",
                               "--states",
                               trials[trial].states,
                               trials[trial].model == NULL ? NULL : "--model",
                               trials[trial].model,
                               NULL};

    if (freopen("/dev/null", "w", stderr) != NULL) {
        execv(path, (char *const *)(uintptr_t)arguments);
    }
    _exit(127);
}

static void run_trial(const char *path, unsigned trial, struct outcome *outcome)
{
    int pipe_fds[2];
    FILE *output;
    pid_t child;
    int status = 0;

    if (pipe(pipe_fds) != 0) {
        snprintf(outcome->how, sizeof outcome->how, "pipe: %s",
                 strerror(errno));
        return;
    }
    fflush(NULL);
    child = fork();
    if (child == 0) {
        dup2(pipe_fds[1], STDOUT_FILENO);
        close(pipe_fds[0]);
        close(pipe_fds[1]);
        exec_trial(path, trial);
    }
    close(pipe_fds[1]);
    output = fdopen(pipe_fds[0], "r");
    if (output != NULL) {
        read_report(output, outcome);
        fclose(output);
    }
    if (child > 0 && waitpid(child, &status, 0) == child &&
        WIFSIGNALED(status)) {
        outcome->caught = true;
        snprintf(outcome->how, sizeof outcome->how, "it died: %s",
                 strsignal(WTERMSIG(status)));
    }
}

static void run_one(const char *path, struct outcome *outcome)
{
    const double started_s = campaign_clock_s();

    *outcome = (struct outcome){.caught = false};
    snprintf(outcome->how, sizeof outcome->how, "survived");
    for (unsigned trial = 0; trial < TRIALS && !outcome->caught; trial++) {
        run_trial(path, trial, outcome);
        outcome->model = trials[trial].model;
    }
    outcome->seconds = campaign_clock_s() - started_s;
}

static void print_outcome(const char *name, const struct outcome *outcome,
                          json_t *list)
{
    if (list == NULL) {
        printf("%-34s %-8s %-3s seed %-4" PRIu64 " %8" PRIu64
               " states %5.1f s  %s\n",
               name, outcome->caught ? "caught" : "SURVIVED",
               outcome->model == NULL ? "-" : outcome->model, outcome->seed,
               outcome->states, outcome->seconds, outcome->how);
        fflush(stdout);
        return;
    }
    json_array_append_new(
        list, json_pack("{s:s,s:b,s:s?,s:I,s:I,s:f,s:s}", "name", name,
                        "caught", outcome->caught, "model", outcome->model,
                        "seed", (json_int_t)outcome->seed, "states",
                        (json_int_t)outcome->states, "seconds",
                        outcome->seconds, "how", outcome->how));
}

bool mutants_run(const char *program, const char *name, bool json)
{
    char directory[PATH_BYTES];
    struct dirent **entries;
    json_t *list = json ? json_array() : NULL;
    unsigned caught = 0;
    unsigned run = 0;
    int count;

    directory_of(directory);
    count = scandir(directory, &entries, is_mutant, compare_names);
    if (count < 0) {
        fprintf(stderr,
                "%s: %s: %s (build with -DSTELE_MUTANTS=ON to have them)\n",
                program, directory, strerror(errno));
        return false;
    }
    for (int index = 0; index < count; index++) {
        char path[2 * PATH_BYTES];
        struct outcome outcome;

        if (name == NULL || strcmp(entries[index]->d_name, name) == 0) {
            snprintf(path, sizeof path, "%s/%s", directory,
                     entries[index]->d_name);
            run_one(path, &outcome);
            print_outcome(entries[index]->d_name, &outcome, list);
            run++;
            caught += outcome.caught;
        }
        free(entries[index]);
    }
    free(entries);
    if (run == 0) {
        fprintf(stderr, "%s: %s: no mutant %s\n", program, directory,
                name == NULL ? "at all" : name);
    }
    if (json) {
        json_t *root = json_pack("{s:o,s:i,s:i}", "mutants", list, "run",
                                 (int)run, "survived", (int)(run - caught));

        json_dumpf(root, stdout, JSON_INDENT(2));
        putchar('\n');
        json_decref(root);
    } else {
        printf("%u of %u mutants caught\n", caught, run);
    }
    return run > 0 && caught == run;
}
