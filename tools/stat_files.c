/* tools/stat_files.c -- see tools/stat_files.h. */
#include "tools/stat_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *kept_word(enum stele_kept kept)
{
    switch (kept) {
    case STELE_KEPT_CURRENT:
        return "current";
    case STELE_KEPT_SNAPSHOTS:
        return "fewer_than_two_snapshots";
    case STELE_KEPT_SNAPSHOT:
        return "snapshot";
    case STELE_KEPT_INDEX:
        return "index";
    case STELE_KEPT_HELD:
        return "held";
    case STELE_KEPT_BYTES:
        return "retain_log_bytes";
    case STELE_KEPT_TIME:
        return "retain_log_ms";
    case STELE_KEPT_FOR_NOW:
        return "for_now";
    }
    return "unknown";
}

static void print_kept(const struct stele_segment *segment)
{
    switch (segment->kept) {
    case STELE_KEPT_CURRENT:
        printf("it is written to, or prepared");
        break;
    case STELE_KEPT_SNAPSHOTS:
        printf("there are fewer than two snapshots");
        break;
    case STELE_KEPT_SNAPSHOT:
        printf("the older snapshot, at lsn %" PRIu64 ", goes on with it",
               segment->lsn);
        break;
    case STELE_KEPT_INDEX:
        printf("the index holds no more than up to lsn %" PRIu64, segment->lsn);
        break;
    case STELE_KEPT_HELD:
        printf("the log is held from lsn %" PRIu64 " on", segment->lsn);
        break;
    case STELE_KEPT_BYTES:
        printf("retain_log_bytes");
        break;
    case STELE_KEPT_TIME:
        printf("retain_log_ms");
        break;
    case STELE_KEPT_FOR_NOW:
        printf("for the writer's options or holds, or until its next "
               "snapshot");
        break;
    }
}

static void print_snapshot(const struct stele_snapshot_info *info,
                           const struct output_mode *mode, bool first)
{
    if (!mode->json) {
        printf("snapshot %016" PRIx64 "    lsn %" PRIu64 ", %" PRIu64
               " bytes, %" PRIu64 " keys: %s\n",
               info->lsn, info->lsn, info->bytes, info->keys,
               !info->usable  ? info->why.message
               : info->counts ? "verified, counts"
                              : "does not count");
        return;
    }
    printf("%s{\"lsn\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"keys\":%" PRIu64
           ",\"tables\":%" PRIu64 ",\"counts\":%s,\"usable\":%s}",
           first ? "" : ",", info->lsn, info->bytes, info->keys, info->tables,
           info->counts ? "true" : "false", info->usable ? "true" : "false");
}

static enum stele_status print_snapshots(struct stele *store,
                                         const struct output_mode *mode,
                                         struct stele_error *error)
{
    struct stele_snapshot_info info = {0};
    enum stele_status status;

    fputs(mode->json ? ",\"snapshots\":[" : "", stdout);
    for (bool first = true;
         (status = stele_snapshot_next(store, info.lsn, &info, error)) ==
         STELE_OK;
         first = false) {
        print_snapshot(&info, mode, first);
    }
    fputs(mode->json ? "]" : "", stdout);
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

static void print_segment(const struct stele_segment *segment,
                          const struct output_mode *mode, bool first)
{
    if (!mode->json) {
        printf("segment %016" PRIx64 "     %" PRIu64 " bytes: ",
               segment->sequence, segment->bytes);
        print_kept(segment);
        putchar('\n');
        return;
    }
    printf("%s{\"segment\":\"%016" PRIx64 "\",\"bytes\":%" PRIu64
           ",\"kept\":\"%s\",\"lsn\":%" PRIu64 "}",
           first ? "" : ",", segment->sequence, segment->bytes,
           kept_word(segment->kept), segment->lsn);
}

static enum stele_status print_segments(struct stele *store,
                                        const struct output_mode *mode,
                                        struct stele_error *error)
{
    struct stele_segment segment = {0};
    enum stele_status status;

    fputs(mode->json ? ",\"segments\":[" : "", stdout);
    for (bool first = true;
         (status = stele_segment_next(store, segment.sequence, &segment,
                                      error)) == STELE_OK;
         first = false) {
        print_segment(&segment, mode, first);
    }
    fputs(mode->json ? "]" : "", stdout);
    return status == STELE_NOT_FOUND ? STELE_OK : status;
}

enum stele_status stat_files_print(struct stele *store,
                                   const struct output_mode *mode,
                                   struct stele_error *error)
{
    const enum stele_status status = print_snapshots(store, mode, error);

    return status == STELE_OK ? print_segments(store, mode, error) : status;
}
