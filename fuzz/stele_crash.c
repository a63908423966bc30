/*
 * fuzz/stele_crash.c -- the crash explorer's command line.
 *
 * Everything happens in memory: stores live on a simulated machine (tests/sim/),
 * the power fails at every point, and what is left is opened and examined. No file
 * is read or written but those that are named.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/campaign.h"
#include "fuzz/mutants.h"
#include "fuzz/replay.h"

enum { EXIT_DONE = 0, EXIT_FOUND = 1, EXIT_USAGE = 2, EXIT_FAILED_IO = 4 };

enum { SECONDS_DEFAULT = 10 };

static const char help[] =
    "usage: stele-crash [OPTION...]\n"
    "\n"
    "Look for crash states that the store does not survive. Stores live on a\n"
    "simulated machine, in memory; the power fails at every point of what "
    "they\n"
    "do, in many ways, and every disk that could be left is opened and "
    "examined.\n"
    "\n"
    "  --seconds S       stop after S seconds (10, unless --states is given)\n"
    "  --states N        stop after N crash states\n"
    "  --seed N          the first world's seed (1); the next has the next "
    "one\n"
    "  --model M         only this model: K (a killed process), O (ordered: "
    "ext4,\n"
    "                    xfs), F (own name: btrfs), A (any order: POSIX); with "
    "+E\n"
    "                    calls fail, too, with +R the disk rots, with +S there "
    "are\n"
    "                    snapshots: O+E, A+E+R+S\n"
    "  --json            the result as JSON\n"
    "  --replay SEED     one world again; with the --model that was printed\n"
    "  --replay FILE     one world again, as --save wrote it\n"
    "  --skip L:S,...    with --replay SEED: leave out these steps, life:step "
    "or\n"
    "                    life:first-last\n"
    "  --save FILE       where a world with a violation is written\n"
    "  --no-shrink       do not look for a shorter script with a violation\n"
    "  --mutants [NAME]  instead: run every program with a planted bug that "
    "lies\n"
    "                    in mutants/ beside this one, and say what it took to\n"
    "                    catch it\n"
    "\n"
    "Exits 0: nothing found (every mutant caught); 1: a violation (a mutant\n"
    "survived); 2: wrong usage; 4: a file could not be read or written.\n"
    "\n"
    "Examples:\n"
    "  stele-crash --seconds 60\n"
    "  stele-crash --states 5000000 --json\n"
    "  stele-crash --model F+E --seed 1000 --seconds 30\n"
    "  stele-crash --replay 4711 --model O\n"
    "  stele-crash --mutants\n";

struct arguments {
    struct campaign campaign;
    bool seed_given;
    bool json;
    bool shrink;
    bool mutants;
    const char *mutant; /* NULL: all. */
    const char *replay;
    const char *skip;
    const char *save;
};

static bool parse_seconds(const char *text, double *seconds_out)
{
    char *end;

    *seconds_out = strtod(text, &end);
    return end != text && *end == '\0' && *seconds_out > 0 &&
           *seconds_out < 1e9;
}

static const char try_help[] = "Try 'stele-crash --help'.\n";

static int usage(const char *what, const char *text)
{
    fprintf(stderr, "stele-crash: %s%s%s\n%s", what,
            text[0] == '\0' ? "" : ": ", text, try_help);
    return EXIT_USAGE;
}

/* A report that nobody got is no success. */
static int check_output(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }
    fprintf(stderr, "stele-crash: standard output: %s\n", strerror(errno));
    return EXIT_FAILED_IO;
}

/* What would be ignored is refused. -1: go on; else the exit code. */
static int check_combination(struct arguments *arguments)
{
    struct campaign *campaign = &arguments->campaign;
    const bool limited = campaign->seconds_max > 0 || campaign->states_max > 0;
    uint64_t ignored;

    if (arguments->mutants &&
        (limited || campaign->model.fixed || arguments->seed_given ||
         arguments->replay != NULL || arguments->save != NULL)) {
        return usage("--mutants has models and limits of its own", "");
    }
    if (arguments->replay != NULL && (limited || arguments->seed_given)) {
        return usage("--replay looks at one world, without limits", "");
    }
    if (arguments->replay == NULL && arguments->skip != NULL) {
        return usage("--skip is of use with --replay only", "");
    }
    if (arguments->replay != NULL &&
        !replay_parse_number(arguments->replay, &ignored) &&
        (arguments->skip != NULL || campaign->model.fixed)) {
        return usage("the file says which model, and what is left out", "");
    }
    if (!limited) {
        campaign->seconds_max = SECONDS_DEFAULT;
    }
    campaign->progress = isatty(STDERR_FILENO) == 1;
    return -1;
}

/* -1: go on; else the exit code. */
static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},
        {"states", required_argument, NULL, 'n'},
        {"seed", required_argument, NULL, 'r'},
        {"model", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, 'j'},
        {"replay", required_argument, NULL, 'p'},
        {"skip", required_argument, NULL, 'k'},
        {"save", required_argument, NULL, 'o'},
        {"no-shrink", no_argument, NULL, 'l'},
        {"mutants", no_argument, NULL, 'u'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option;
    int index = 0;

    *arguments = (struct arguments){.campaign = {.seed = 1}, .shrink = true};
    while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
        bool good = true;

        switch (option) {
        case 's':
            good = parse_seconds(optarg, &arguments->campaign.seconds_max);
            break;
        case 'n':
            good =
                replay_parse_number(optarg, &arguments->campaign.states_max) &&
                arguments->campaign.states_max > 0;
            break;
        case 'r':
            good = replay_parse_number(optarg, &arguments->campaign.seed);
            arguments->seed_given = true;
            break;
        case 'm':
            good = campaign_parse_model(optarg, &arguments->campaign.model);
            break;
        case 'j':
            arguments->json = true;
            break;
        case 'p':
            arguments->replay = optarg;
            break;
        case 'k':
            arguments->skip = optarg;
            break;
        case 'o':
            arguments->save = optarg;
            break;
        case 'l':
            arguments->shrink = false;
            break;
        case 'u':
            arguments->mutants = true;
            break;
        case 'h':
            fputs(help, stdout);
            return check_output(EXIT_DONE);
        default:
            fputs(try_help, stderr); /* getopt has said what is wrong. */
            return EXIT_USAGE;
        }
        if (!good) {
            char what[40];

            snprintf(what, sizeof what, "--%s: wrong value",
                     options[index].name);
            return usage(what, optarg);
        }
    }
    if (arguments->mutants && optind < argc) {
        arguments->mutant = argv[optind++];
    }
    if (optind < argc) {
        return usage("unexpected argument", argv[optind]);
    }
    return check_combination(arguments);
}

/* ---- Replaying ------------------------------------------------------------------- */

/* -1: go on; else the exit code. */
static int read_plan(const struct arguments *arguments, struct sim_plan *plan)
{
    char problem[200];
    uint64_t seed;
    FILE *file;
    bool good;
    int code;

    if (replay_parse_number(arguments->replay, &seed)) {
        campaign_plan(&arguments->campaign.model, seed, plan);
        if (arguments->skip != NULL &&
            !replay_parse_skip(arguments->skip, plan)) {
            return usage("--skip: wrong value", arguments->skip);
        }
        return -1;
    }
    file = fopen(arguments->replay, "r");
    if (file == NULL) {
        fprintf(stderr, "stele-crash: %s: %s\n", arguments->replay,
                strerror(errno));
        return EXIT_FAILED_IO;
    }
    good = replay_read(file, plan, problem, sizeof problem);
    code = ferror(file) ? EXIT_FAILED_IO : EXIT_USAGE;
    fclose(file);
    if (!good) {
        fprintf(stderr, "stele-crash: %s: %s\n", arguments->replay, problem);
        return code;
    }
    return -1;
}

static int save_plan(const struct arguments *arguments,
                     const struct sim_plan *plan)
{
    FILE *file;
    bool good;

    if (arguments->save == NULL) {
        return EXIT_FOUND;
    }
    file = fopen(arguments->save, "w");
    good = file != NULL && replay_write(file, plan) && fflush(file) == 0;
    if (!good) {
        fprintf(stderr, "stele-crash: %s: %s\n", arguments->save,
                strerror(errno));
    }
    if (file != NULL) {
        (void)fclose(file); /* What matters was flushed. */
    }
    return good ? EXIT_FOUND : EXIT_FAILED_IO;
}

/* ---- Reporting ----------------------------------------------------------------------- */

static double states_per_second(const struct campaign_result *result)
{
    return result->seconds > 0 ? (double)result->tally.states / result->seconds
                               : 0;
}

static void command_text(const struct campaign_result *result, char *target,
                         size_t bytes)
{
    char model[16];
    char skip[REPLAY_TEXT_BYTES];

    replay_model_text(&result->plan, model, sizeof model);
    replay_skip_text(&result->plan, skip, sizeof skip);
    snprintf(target, bytes, "stele-crash --replay %" PRIu64 " --model %s%s%s",
             result->plan.seed, model, skip[0] == '\0' ? "" : " --skip ", skip);
}

static void print_json(const struct campaign_result *result)
{
    const struct sim_tally *tally = &result->tally;
    char command[REPLAY_TEXT_BYTES + 100];
    json_t *root = json_pack(
        "{s:I,s:f,s:f,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "states",
        (json_int_t)tally->states, "seconds", result->seconds,
        "states_per_second", states_per_second(result), "violations",
        result->violated ? 1 : 0, "worlds", (json_int_t)tally->worlds, "lives",
        (json_int_t)tally->lives, "states_with_every_rule",
        (json_int_t)tally->deep, "states_damaged", (json_int_t)tally->damaged,
        "states_in_a_checkpoint", (json_int_t)tally->checkpoints_cut,
        "states_with_a_torn_tail", (json_int_t)tally->torn, "rotations",
        (json_int_t)tally->rotations, "snapshots", (json_int_t)tally->snapshots,
        "segments_removed", (json_int_t)tally->trimmed, "archives",
        (json_int_t)tally->archives);

    if (result->violated) {
        command_text(result, command, sizeof command);
        json_object_set_new(
            root, "violation",
            json_pack("{s:I,s:s,s:i,s:I,s:s,s:s}", "seed",
                      (json_int_t)result->violation.seed, "model",
                      sim_model_name(result->violation.model), "life",
                      (int)result->violation.depth + 1, "cut",
                      (json_int_t)result->violation.cut, "text",
                      result->violation.text, "replay", command));
    }
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(root);
}

static void print_text(const struct campaign_result *result)
{
    const struct sim_tally *tally = &result->tally;
    char command[REPLAY_TEXT_BYTES + 100];

    if (result->violated) {
        command_text(result, command, sizeof command);
        printf("VIOLATION, seed %" PRIu64 "\n%s\nreplay: %s\n\n",
               result->plan.seed, result->violation.text, command);
    }
    printf("%" PRIu64 " crash states in %.1f s, %.0f a second: %s\n",
           tally->states, result->seconds, states_per_second(result),
           result->violated ? "1 violation" : "0 violations");
    printf("  %" PRIu64 " worlds, %" PRIu64 " lives, %" PRIu64
           " rotations, %" PRIu64 " snapshots, %" PRIu64 " segments removed;\n"
           "  %" PRIu64 " states with every rule, %" PRIu64 " damaged, %" PRIu64
           " in the midst of a checkpoint,\n"
           "  %" PRIu64 " with a torn tail, %" PRIu64
           " that lost relaxed commits, %" PRIu64 " with an archive restored\n",
           tally->worlds, tally->lives, tally->rotations, tally->snapshots,
           tally->trimmed, tally->deep, tally->damaged, tally->checkpoints_cut,
           tally->torn, tally->relaxed_lost, tally->archives);
}

int main(int argc, char **argv)
{
    struct arguments arguments;
    struct campaign_result *result;
    int code = parse_arguments(argc, argv, &arguments);

    if (code >= 0) {
        return code;
    }
    if (arguments.mutants) {
        return check_output(
            mutants_run(argv[0], arguments.mutant, arguments.json)
                ? EXIT_DONE
                : EXIT_FOUND);
    }
    /* Every state opens a store: keep the memory of the last one. */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    result = calloc(1, sizeof *result);
    if (result == NULL) {
        fprintf(stderr, "stele-crash: out of memory\n");
        return EXIT_FAILED_IO;
    }
    if (arguments.replay != NULL) {
        struct sim_plan plan;

        code = read_plan(&arguments, &plan);
        if (code >= 0) {
            free(result);
            return code;
        }
        campaign_replay(&plan, result);
    } else {
        campaign_run(&arguments.campaign, result);
    }
    if (result->violated && arguments.shrink) {
        sim_shrink(&result->plan, &result->violation);
    }
    if (arguments.json) {
        print_json(result);
    } else {
        print_text(result);
    }
    code = result->violated ? save_plan(&arguments, &result->plan) : EXIT_DONE;
    free(result);
    return check_output(code);
}
