/* tools/cmd_put.c -- stele put: set a key. */
#include <string.h>

#include "engine/stele.h"
#include "tools/commands.h"
#include "tools/input.h"
#include "tools/key_argument.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "tools/store.h"

struct put_request {
    const char *table;
    char *key;
    char *value;
    struct output_mode mode;
};

/* All of standard input, which `input` then owns. */
static enum stele_status read_value(const struct output_mode *mode,
                                    struct input *input,
                                    struct bytes *value_out,
                                    struct stele_error *error)
{
    const enum stele_status status = input_read("-", input, error);

    if (status != STELE_OK) {
        return status;
    }
    if (mode->hex && input->bytes > 0 &&
        input->data[input->bytes - 1] == '\n') {
        input->bytes -= 1;
    }
    return key_argument_bytes(input->data, input->bytes, mode, value_out,
                              error);
}

static enum stele_status fill_batch(struct stele_batch *batch,
                                    const struct put_request *request,
                                    struct stele_error *error)
{
    const struct output_mode *mode = &request->mode;
    struct input input = {0};
    struct bytes key;
    struct bytes value;
    enum stele_status status = key_argument(request->key, mode, &key, error);

    if (status == STELE_OK) {
        status = strcmp(request->value, "-") == 0
                     ? read_value(mode, &input, &value, error)
                     : key_argument(request->value, mode, &value, error);
    }
    if (status == STELE_OK) {
        status = stele_batch_put(batch, request->table, key.data, key.size,
                                 value.data, value.size, error);
    }
    input_free(&input);
    return status;
}

int cmd_put(int argc, char **argv)
{
    struct put_request request = {0};
    const struct option_spec specs[] = {
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele_batch *batch = NULL;
    struct stele_error error = {0};
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 4,
                         4, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    request.table = arguments.items[1];
    request.key = arguments.items[2];
    request.value = arguments.items[3];
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
