/* tools/cmd_import.c -- stele import: take over another program's files. */
#include <string.h>

#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/rocketmq/import.h"

int cmd_import(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct arguments arguments;
    const int code = options_parse(
        argc, argv, specs, sizeof specs / sizeof specs[0], 3, 3, &arguments);

    if (code != EXIT_DONE) {
        return code;
    }
    if (strcmp(arguments.items[0], "rocketmq") != 0) {
        return report_usage("%s: unknown; there is only rocketmq",
                            arguments.items[0]);
    }
    return rocketmq_import(arguments.items[1], arguments.items[2], &mode);
}
