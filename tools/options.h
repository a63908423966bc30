/*
 * tools/options.h -- the arguments of one verb.
 *
 * Options may stand anywhere; what follows "--" is an argument even if it
 * begins with '-'. --help is answered by main() before a verb runs.
 */
#ifndef TOOLS_OPTIONS_H
#define TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/exit_code.h"

enum option_kind {
    OPTION_FLAG,   /* --name: sets *flag. */
    OPTION_TEXT,   /* --name TEXT: sets *text. */
    OPTION_NUMBER, /* --name N: sets *number; decimal, 1 or more. */
    OPTION_LSN,    /* --name LSN: the same; 0 or more. */
};

struct option_spec {
    const char *name;
    enum option_kind kind;
    union {
        bool *flag;
        char **text; /* Borrowed from argv. */
        uint64_t *number;
    };
};

struct arguments {
    char **items; /* Borrowed from argv. */
    size_t count;
};

#define ARGUMENTS_ANY_NUMBER SIZE_MAX

/* Targets of options that are not given keep what they hold. Says what is
 * wrong, and returns EXIT_USAGE; or returns EXIT_DONE. */
int options_parse(int argc, char **argv, const struct option_spec *specs,
                  size_t spec_count, size_t arguments_min, size_t arguments_max,
                  struct arguments *arguments_out);

/* An LSN that is an argument; `name` is for the message. EXIT_DONE; or says what
 * is wrong, and returns EXIT_USAGE. */
int options_parse_lsn(const char *name, const char *text, uint64_t *lsn_out);

#endif
