/* tools/cmd_delete.c -- stele delete: delete keys, always as one batch. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/input.h"
#include "tools/key_argument.h"
#include "tools/lines.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/store.h"

struct delete_request {
    const char *table;
    struct arguments keys; /* Or one of these two: */
    char *prefix;
    char *from_file;
    struct output_mode mode;
};

static enum stele_status add_keys(struct stele_batch *batch,
                                  const struct delete_request *request,
                                  struct stele_error *error)
{
    for (size_t i = 0; i < request->keys.count; i++) {
        struct bytes key;
        enum stele_status status =
            key_argument(request->keys.items[i], &request->mode, &key, error);

        if (status == STELE_OK) {
            status = stele_batch_delete(batch, request->table, key.data,
                                        key.size, error);
        }
        if (status != STELE_OK) {
            return error_wrap(error, status, "key %zu", i + 1);
        }
    }
    return STELE_OK;
}

static enum stele_status add_prefix(struct stele_batch *batch,
                                    const struct delete_request *request,
                                    struct stele_error *error)
{
    struct bytes prefix;
    const enum stele_status status =
        key_argument(request->prefix, &request->mode, &prefix, error);

    if (status != STELE_OK) {
        return status;
    }
    return stele_batch_delete_prefix(batch, request->table, prefix.data,
                                     prefix.size, error);
}

static enum stele_status add_line(struct stele_batch *batch,
                                  const struct delete_request *request,
                                  const struct line *line,
                                  struct stele_error *error)
{
    struct bytes key;
    enum stele_status status;

    if (line->bytes == 0) {
        return error_set(error, STELE_INVALID, "an empty line is not a key");
    }
    status = key_argument_bytes(line->data, line->bytes, &request->mode, &key,
                                error);
    if (status != STELE_OK) {
        return status;
    }
    return stele_batch_delete(batch, request->table, key.data, key.size, error);
}

static enum stele_status add_file(struct stele_batch *batch,
                                  const struct delete_request *request,
                                  struct stele_error *error)
{
    struct input input = {0};
    struct lines lines;
    struct line line;
    uint64_t total;
    enum stele_status status = input_read(request->from_file, &input, error);

    if (status != STELE_OK) {
        /* A file that is missing is not a key that is missing. */
        return status == STELE_NOT_FOUND ? STELE_IO : status;
    }
    if (input.bytes == 0) {
        status = error_set(error, STELE_INVALID,
                           "%s: empty, so there is nothing to delete",
                           input_name(request->from_file));
    }
    lines = lines_init(input.data, input.bytes);
    total = lines_count(&lines);
    while (status == STELE_OK && lines_next(&lines, &line)) {
        progress_count("reading line", lines.number, total);
        status = add_line(batch, request, &line, error);
        if (status != STELE_OK) {
            error_wrap(error, status, "%s: line %" PRIu64,
                       input_name(request->from_file), lines.number);
        }
    }
    input_free(&input);
    return status;
}

static enum stele_status fill_batch(struct stele_batch *batch,
                                    const struct delete_request *request,
                                    struct stele_error *error)
{
    if (request->prefix != NULL) {
        return add_prefix(batch, request, error);
    }
    if (request->from_file != NULL) {
        return add_file(batch, request, error);
    }
    return add_keys(batch, request, error);
}

static int check_request(const struct delete_request *request)
{
    const unsigned sources = (request->keys.count > 0 ? 1u : 0u) +
                             (request->prefix != NULL ? 1u : 0u) +
                             (request->from_file != NULL ? 1u : 0u);

    if (sources == 0) {
        return report_usage("which keys? Give some, or --prefix, or "
                            "--from-file");
    }
    if (sources > 1) {
        return report_usage("keys, --prefix and --from-file exclude each "
                            "other");
    }
    return EXIT_DONE;
}

int cmd_delete(int argc, char **argv)
{
    struct delete_request request = {0};
    const struct option_spec specs[] = {
        {"prefix", OPTION_TEXT, .text = &request.prefix},
        {"from-file", OPTION_TEXT, .text = &request.from_file},
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele_batch *batch = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 2,
                         ARGUMENTS_ANY_NUMBER, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    request.table = arguments.items[1];
    request.keys = (struct arguments){
        .items = arguments.items + 2,
        .count = arguments.count - 2,
    };
    code = check_request(&request);
    if (code != EXIT_DONE) {
        return code;
    }
    status = stele_batch_create(&batch, &error);
    if (status == STELE_OK) {
        status = fill_batch(batch, &request, &error);
    }
    if (status != STELE_OK) {
        code = report_error(status, &error);
    } else {
        code = store_commit_one(arguments.items[0], batch, &request.mode);
    }
    stele_batch_destroy(batch);
    return code;
}
