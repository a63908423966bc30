/*
 * tools/main.c -- `stele`, the command line of the store.
 *
 * Finds the verb in the table of tools/commands.c, answers --help, and sees to
 * it that output that could not be written does not pass for success.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/exit_code.h"
#include "tools/progress.h"
#include "tools/report.h"

static void print_help(FILE *out)
{
    fputs("Usage: stele VERB DIR [ARGUMENT...] [OPTION...]\n"
          "\n"
          "Looks into a Stele store, the directory DIR, and changes it. Every\n"
          "change is one batch: on disk when the program says so, or not done\n"
          "at all.\n"
          "\n"
          "Verbs:\n",
          out);
    for (size_t i = 0; i < command_count; i++) {
        fprintf(out, "  %-9s%s\n", commands[i].verb, commands[i].summary);
    }
    fputs("\n"
          "  stele VERB --help   what it takes and prints, with examples\n"
          "  stele --version     the version\n"
          "\n"
          "Exit codes:\n"
          "  0  done\n"
          "  1  not found, exists already, a precondition failed, or\n"
          "     (diff) there are differences\n"
          "  2  wrong arguments, over a limit, or malformed input\n"
          "  3  damage was found, in the store or in files to import\n"
          "  4  an I/O error, out of memory or space, or outcome unknown\n"
          "  5  another process holds the store\n"
          "  6  not a store, or of a newer format\n"
          "\n"
          "Examples:\n"
          "  stele init store\n"
          "  stele put store topics orders '{\"perm\":6}'\n"
          "  stele get store topics orders\n",
          out);
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

static int run_verb(int argc, char **argv)
{
    const struct command *command = command_find(argv[0]);

    if (command == NULL) {
        return report_usage("%s: no such verb", argv[0]);
    }
    report_set_verb(command->verb);
    if (asks_for_help(argc, argv)) {
        fputs(command->help, stdout);
        return EXIT_DONE;
    }
    return command->run(argc, argv);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0) {
        print_help(stdout);
        return EXIT_DONE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("stele %s\n", stele_version());
        return EXIT_DONE;
    }
    return run_verb(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    int code = run(argc, argv);

    progress_end();
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        report_problem("standard output: %s",
                       errno == 0 ? "write failed" : strerror(errno));
        code = code == EXIT_DONE ? EXIT_IO : code;
    }
    return code;
}
