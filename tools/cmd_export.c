/* tools/cmd_export.c -- stele export: write another program's files. */
#include <string.h>

#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/rocketmq/export.h"

int cmd_export(int argc, char **argv)
{
    struct rocketmq_export_request request = {0};
    bool force = false;
    const struct option_spec specs[] = {
        {"force", OPTION_FLAG, .flag = &force},
        {"fastjson-keys", OPTION_FLAG, .flag = &request.style.fastjson_keys},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
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
    request.store_path = arguments.items[1];
    request.out_path = arguments.items[2];
    request.existing = force ? CONFIG_DIR_REPLACE : CONFIG_DIR_REFUSE_EXISTING;
    return rocketmq_export(&request);
}
