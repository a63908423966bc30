/* tools/cmd_stat.c -- stele stat: what the store says of itself. */
#include <stdio.h>
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/stat_files.h"
#include "tools/store.h"

static const char *recovery_text(char row)
{
    switch (row) {
    case 'A':
        return "the log ended cleanly";
    case 'C':
        return "a torn tail, never acknowledged, was dropped";
    default:
        return "unknown";
    }
}

static void print_numbers(const struct stele_stats *stats,
                          const struct output_mode *mode)
{
    const struct output_number numbers[] = {
        {"incarnation", stats->incarnation},
        {"lsn_visible", stats->lsn_visible},
        {"lsn_durable", stats->lsn_durable},
        {"lsn_applied", stats->lsn_applied},
        {"lsn_applying", stats->lsn_applying},
        {"segment_bytes", stats->segment_bytes},
        {"segment_first", stats->segment_first},
        {"segment_last", stats->segment_last},
        {"segment_current", stats->segment_current},
        {"log_bytes_since_checkpoint", stats->log_bytes_since_checkpoint},
        {"memtable_bytes", stats->memtable_bytes},
        {"memtable_keys", stats->memtable_keys},
        {"range_fragments", stats->range_fragments},
        {"recovery_dropped_bytes", stats->recovery_dropped_bytes},
        {"recovery_replayed_records", stats->recovery_replayed_records},
    };

    output_numbers(stdout, mode, numbers, sizeof numbers / sizeof numbers[0]);
}

static enum stele_status print_stats(struct stele *store,
                                     const struct stele_stats *stats,
                                     const struct output_mode *mode,
                                     struct stele_error *error)
{
    enum stele_status status;

    const struct bytes uuid = {.data = stats->uuid, .size = sizeof stats->uuid};
    const char *rebuilt = stats->index_rebuilt ? "true" : "false";
    const char *damaged = stats->index_damaged ? "true" : "false";

    if (mode->json) {
        fputs("{\"uuid\":\"", stdout);
        output_hex(stdout, uuid);
        fputs("\",", stdout);
        print_numbers(stats, mode);
        printf(",\"recovery_row\":\"%c\",\"index_rebuilt\":%s,"
               "\"index_damaged\":%s,\"fs_warning\":",
               stats->recovery_row == '\0' ? '?' : stats->recovery_row, rebuilt,
               damaged);
        if (stats->fs_warning == NULL) {
            fputs("null", stdout);
        } else {
            output_json_string(
                stdout, (struct bytes){.data = stats->fs_warning,
                                       .size = strlen(stats->fs_warning)});
        }
        status = stat_files_print(store, mode, error);
        fputs("}\n", stdout);
        return status;
    }
    printf("%-28s", "uuid");
    output_hex(stdout, uuid);
    putchar('\n');
    print_numbers(stats, mode);
    printf("%-28s%c (%s)\n", "recovery_row",
           stats->recovery_row == '\0' ? '?' : stats->recovery_row,
           recovery_text(stats->recovery_row));
    printf("%-28s%s\n", "index_rebuilt", rebuilt);
    printf("%-28s%s\n", "index_damaged", damaged);
    status = stat_files_print(store, mode, error);
    if (stats->index_damaged) {
        report_note("the index is damaged: the next open for writing, or "
                    "`stele rebuild`, builds it anew");
    }
    if (stats->fs_warning != NULL) {
        report_note("%s", stats->fs_warning);
    }
    return status;
}

int cmd_stat(int argc, char **argv)
{
    struct output_mode mode = {0};
    const struct option_spec specs[] = {
        {"json", OPTION_FLAG, .flag = &mode.json},
    };
    struct stele_stats stats = {.size = sizeof stats};
    struct arguments arguments;
    struct stele *store = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    code = store_open_reading(arguments.items[0], &store);
    if (code != EXIT_DONE) {
        return code;
    }
    status = stele_stats(store, &stats, &error);
    if (status == STELE_OK) {
        status = print_stats(store, &stats, &mode, &error);
    }
    if (status != STELE_OK) {
        code = report_error(status, &error);
    }
    return store_close(store, code);
}
