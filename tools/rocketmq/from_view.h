/*
 * tools/rocketmq/from_view.h -- tables of the store into the text of a file.
 *
 * The opposite of tools/rocketmq/to_batch.h, and like it free of files. What
 * the tables hold need not come from an import: every key and value is checked,
 * so that what is written is always JSON.
 */
#ifndef TOOLS_ROCKETMQ_FROM_VIEW_H
#define TOOLS_ROCKETMQ_FROM_VIEW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/stele.h"
#include "tools/rocketmq/layout.h"

struct rocketmq_text_style {
    bool fastjson_keys; /* Queue ids without quotes, as the broker does it. */
};

/*
 * Write the text of `file` to `out`; errors of `out` are the caller's to check.
 * NOT_FOUND, and no text, if the table was never written. CORRUPT,
 * naming the key, if an entry has no place in the file; `out` then holds part
 * of the text.
 */
enum stele_status rocketmq_from_view(
    const struct rocketmq_file *file, struct stele_view *view,
    const struct rocketmq_text_style *style, FILE *out,
    uint64_t *entry_count_out, struct stele_error *error) STELE_MUST_CHECK;

#endif
