/*
 * tools/cmd_log.c -- stele log: the records of the log, as they stand there.
 *
 * Reads ANCHOR, wal/ and what snapshots say of themselves without opening the
 * store: it works on a damaged one, and beside a writer. It shows whole units from
 * the oldest base on (where retention has removed the log before it, that is a
 * snapshot) and stops at the first place where none follows; what that means,
 * `stele verify` says.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/io.h"
#include "engine/bases.h"
#include "engine/ops.h"
#include "engine/store.h"
#include "tools/commands.h"
#include "tools/options.h"
#include "tools/output.h"
#include "tools/report.h"
#include "wal/anchor.h"
#include "wal/reader.h"
#include "wal/record.h"

struct log_request {
    bool ops;
    uint64_t from;  /* LSN. */
    uint64_t limit; /* Counts down. */
    struct output_mode mode;
};

static const char *op_name(enum op_kind kind)
{
    switch (kind) {
    case OP_PUT:
        return "put";
    case OP_DELETE:
        return "delete";
    case OP_DELETE_RANGE:
        return "delete_range";
    case OP_EXPECT_LSN:
        return "expect_lsn";
    case OP_EXPECT_ABSENT:
        return "expect_absent";
    case OP_EXPECT_PRESENT:
        return "expect_present";
    case OP_TABLE:
        break;
    }
    return "?";
}

static void print_op_text(const struct log_request *request,
                          const struct op *op)
{
    printf("  %s\t%.*s\t", op_name(op->kind), (int)op->table.size,
           (const char *)op->table.data);
    output_bytes(stdout, &request->mode, op->key);
    if (op->kind == OP_PUT) {
        putchar('\t');
        output_bytes(stdout, &request->mode, op->value);
    } else if (op->kind == OP_DELETE_RANGE) {
        putchar('\t');
        output_bytes(stdout, &request->mode, op->end);
    } else if (op->kind == OP_EXPECT_LSN) {
        printf("\t%" PRIu64, op->lsn);
    }
    putchar('\n');
}

static void print_op_json(const struct log_request *request,
                          const struct op *op)
{
    printf("%s{\"op\":\"%s\",\"table\":\"%.*s\"", op->index == 0 ? "" : ",",
           op_name(op->kind), (int)op->table.size,
           (const char *)op->table.data);
    if (op->kind != OP_DELETE_RANGE || op->key.size > 0) {
        putchar(',');
        output_json_bytes(stdout, &request->mode,
                          op->kind == OP_DELETE_RANGE ? "first" : "key",
                          op->key);
    }
    if (op->kind == OP_PUT) {
        putchar(',');
        output_json_bytes(stdout, &request->mode, "value", op->value);
    } else if (op->kind == OP_DELETE_RANGE && op->end.size > 0) {
        putchar(',');
        output_json_bytes(stdout, &request->mode, "end", op->end);
    } else if (op->kind == OP_EXPECT_LSN) {
        printf(",\"lsn\":%" PRIu64, op->lsn);
    }
    putchar('}');
}

static void print_ops(const struct log_request *request,
                      const struct wal_record *record)
{
    struct ops_reader reader =
        ops_reader_init(record->body, record->body_bytes);
    struct op op;

    while (ops_next(&reader, &op) == OPS_OP) {
        (request->mode.json ? print_op_json : print_op_text)(request, &op);
    }
}

static void print_record(const struct log_request *request,
                         const struct wal_reader_unit *unit,
                         const struct wal_record *record)
{
    const uint64_t bytes =
        (uint64_t)WAL_RECORD_HEADER_BYTES + record->body_bytes;
    const bool tagged = (record->flags & WAL_RECORD_HAS_TAG) != 0;
    const struct bytes tag = {record->tag, sizeof record->tag};

    if (!request->mode.json) {
        printf("lsn %" PRIu64 "  unit %" PRIu64 "  %016" PRIx64 ".wal+%" PRIu64
               "  ops %" PRIu32 "  bytes %" PRIu64,
               record->lsn, unit->unit.number, unit->unit.segment,
               unit->position.start_offset, record->op_count, bytes);
        if (tagged) {
            printf("  tag ");
            output_hex(stdout, tag);
        }
        putchar('\n');
        if (request->ops) {
            print_ops(request, record);
        }
        return;
    }
    printf("{\"lsn\":%" PRIu64 ",\"unit\":%" PRIu64 ",\"segment\":\"%016" PRIx64
           "\",\"offset\":%" PRIu64 ",\"wall_ns\":%" PRIu64 ",\"ops\":%" PRIu32
           ",\"bytes\":%" PRIu64,
           record->lsn, unit->unit.number, unit->unit.segment,
           unit->position.start_offset, unit->unit.wall_ns, record->op_count,
           bytes);
    if (tagged) {
        printf(",\"tag\":\"");
        output_hex(stdout, tag);
        putchar('"');
    }
    if (request->ops) {
        printf(",\"operations\":[");
        print_ops(request, record);
        putchar(']');
    }
    printf("}\n");
}

static void print_unit(struct log_request *request,
                       const struct wal_reader_unit *unit)
{
    struct byte_reader in = byte_reader_init(unit->body, unit->unit.body_bytes);
    struct wal_record record;

    while (in.offset < in.size && request->limit > 0 &&
           wal_record_decode(&in, &record)) {
        if (record.lsn >= request->from) {
            print_record(request, unit, &record);
            request->limit--;
        }
    }
}

/* Behind its unit the first one stands that can be read. */
static enum stele_status find_start(struct io_dir *dir, struct io_dir *wal_dir,
                                    const struct wal_anchor *anchor,
                                    struct wal_position *start_out,
                                    struct stele_error *error)
{
    struct io_dir *snapshot_dir = NULL;
    struct bases bases = {0};
    enum stele_status status =
        io_dir_open_in(dir, STORE_SNAPSHOT_NAME, &snapshot_dir, error);

    if (status == STELE_OK || status == STELE_NOT_FOUND) {
        status = bases_read(snapshot_dir, wal_dir, anchor, &bases, error);
    }
    if (status == STELE_OK && !bases.log_readable) {
        status = error_set(error, STELE_CORRUPT,
                           "the log begins with wal/%016" PRIx64
                           ".wal, and there is no snapshot to go on from",
                           anchor->segment_oldest);
    }
    if (status == STELE_OK) {
        *start_out = bases.log_start;
    }
    bases_free(&bases);
    io_dir_close(snapshot_dir);
    return status;
}

static enum stele_status print_units(struct io_dir *wal_dir,
                                     const struct wal_position *start,
                                     uint64_t segment_oldest,
                                     struct log_request *request,
                                     struct stele_error *error)
{
    struct wal_reader reader;
    bool whole = true;
    enum stele_status status = wal_reader_open(
        &reader, wal_dir, start, segment_oldest, IO_OPEN_READ, error);

    if (status != STELE_OK) {
        return status;
    }
    while (status == STELE_OK && whole && request->limit > 0) {
        struct wal_reader_unit unit;

        status = wal_reader_next(&reader, &unit, &whole, error);
        if (status == STELE_OK && whole) {
            print_unit(request, &unit);
        }
    }
    wal_reader_close(&reader);
    return status;
}

static enum stele_status print_log(struct io_dir *dir,
                                   struct log_request *request,
                                   struct stele_error *error)
{
    struct wal_anchor_file file;
    struct wal_anchor anchor;
    struct wal_position start;
    struct io_dir *wal_dir;
    enum stele_status status =
        wal_anchor_open(dir, IO_OPEN_READ, &file, &anchor, error);

    if (status == STELE_NOT_FOUND) {
        return error_set(error, STELE_FOREIGN,
                         "%s is not a store: it has no ANCHOR",
                         io_dir_path(dir));
    }
    if (status != STELE_OK) {
        return status;
    }
    wal_anchor_close(&file);
    status = io_dir_open_in(dir, STORE_WAL_NAME, &wal_dir, error);
    if (status != STELE_OK) {
        return status;
    }
    status = find_start(dir, wal_dir, &anchor, &start, error);
    if (status == STELE_OK) {
        status =
            print_units(wal_dir, &start, anchor.segment_oldest, request, error);
    }
    io_dir_close(wal_dir);
    return status;
}

int cmd_log(int argc, char **argv)
{
    struct log_request request = {.limit = UINT64_MAX};
    const struct option_spec specs[] = {
        {"ops", OPTION_FLAG, .flag = &request.ops},
        {"from", OPTION_NUMBER, .number = &request.from},
        {"limit", OPTION_NUMBER, .number = &request.limit},
        {"hex", OPTION_FLAG, .flag = &request.mode.hex},
        {"json", OPTION_FLAG, .flag = &request.mode.json},
    };
    struct arguments arguments;
    struct stele_error error = {0};
    struct io_dir *dir;
    enum stele_status status;
    int code;

    code = options_parse(argc, argv, specs, sizeof specs / sizeof specs[0], 1,
                         1, &arguments);
    if (code != EXIT_DONE) {
        return code;
    }
    status = io_dir_open(io_posix(), arguments.items[0], &dir, &error);
    if (status == STELE_NOT_FOUND) {
        report_problem("%s: no such directory", arguments.items[0]);
        return EXIT_FOREIGN;
    }
    if (status == STELE_OK) {
        status = print_log(dir, &request, &error);
        io_dir_close(dir);
    }
    return status == STELE_OK ? EXIT_DONE : report_error(status, &error);
}
