/* tools/options.c -- see tools/options.h. */
#include "tools/options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report.h"

enum {
    OPTION_COUNT_MAX = 16,
    OPTION_VALUE_FIRST = 256, /* Above every short option's character. */
};

static int parse_decimal(const char *dashes, const char *name, const char *text,
                         uint64_t *number_out)
{
    if (text[0] == '\0' || text[strspn(text, "0123456789")] != '\0') {
        return report_usage("%s%s: \"%s\" is not a decimal number", dashes,
                            name, text);
    }
    errno = 0;
    *number_out = strtoull(text, NULL, 10);
    if (errno != 0) {
        return report_usage("%s%s: %s is too large", dashes, name, text);
    }
    return EXIT_DONE;
}

static int parse_number(const struct option_spec *spec, const char *text)
{
    uint64_t number = 0;
    const int code = parse_decimal("--", spec->name, text, &number);

    if (code != EXIT_DONE) {
        return code;
    }
    if (number == 0 && spec->kind == OPTION_NUMBER) {
        return report_usage("--%s: must be 1 or more", spec->name);
    }
    *spec->number = number;
    return EXIT_DONE;
}

int options_parse_lsn(const char *name, const char *text, uint64_t *lsn_out)
{
    return parse_decimal("", name, text, lsn_out);
}

static int take_option(const struct option_spec *spec, char *text)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        *spec->flag = true;
        return EXIT_DONE;
    case OPTION_TEXT:
        *spec->text = text;
        return EXIT_DONE;
    case OPTION_NUMBER:
    case OPTION_LSN:
        return parse_number(spec, text);
    }
    return EXIT_USAGE;
}

static int report_unknown(const char *text)
{
    if (optopt > 0 && optopt < OPTION_VALUE_FIRST) {
        return report_usage("-%c: no such option (an argument that begins with "
                            "'-' goes behind \"--\")",
                            optopt);
    }
    return report_usage("%s: %s", text,
                        optopt == 0 ? "no such option"
                                    : "this option takes no value");
}

static int check_count(size_t count, size_t min, size_t max)
{
    if (count < min) {
        return report_usage("%zu arguments given, %zu needed", count, min);
    }
    if (count > max) {
        return report_usage("%zu arguments given, at most %zu make sense",
                            count, max);
    }
    return EXIT_DONE;
}

int options_parse(int argc, char **argv, const struct option_spec *specs,
                  size_t spec_count, size_t arguments_min, size_t arguments_max,
                  struct arguments *arguments_out)
{
    struct option table[OPTION_COUNT_MAX + 1] = {0};
    int code = EXIT_DONE;
    int found;

    assert(spec_count <= OPTION_COUNT_MAX);
    for (size_t i = 0; i < spec_count; i++) {
        table[i] = (struct option){
            .name = specs[i].name,
            .has_arg =
                specs[i].kind == OPTION_FLAG ? no_argument : required_argument,
            .val = OPTION_VALUE_FIRST + (int)i,
        };
    }
    opterr = 0;
    optind = 1;
    while (code == EXIT_DONE &&
           (found = getopt_long(argc, argv, ":", table, NULL)) != -1) {
        if (found == ':') {
            code = report_usage("%s: needs a value", argv[optind - 1]);
        } else if (found == '?') {
            code = report_unknown(argv[optind - 1]);
        } else {
            code = take_option(&specs[found - OPTION_VALUE_FIRST], optarg);
        }
    }
    if (code != EXIT_DONE) {
        return code;
    }
    *arguments_out = (struct arguments){
        .items = argv + optind,
        .count = (size_t)(argc - optind),
    };
    return check_count(arguments_out->count, arguments_min, arguments_max);
}
