/* tools/rocketmq/export.h -- stele export rocketmq DIR OUTDIR. */
#ifndef TOOLS_ROCKETMQ_EXPORT_H
#define TOOLS_ROCKETMQ_EXPORT_H

#include "tools/output.h"
#include "tools/rocketmq/config_dir.h"
#include "tools/rocketmq/from_view.h"

struct rocketmq_export_request {
    const char *store_path;
    const char *out_path;
    enum config_dir_existing existing;
    struct rocketmq_text_style style;
    struct output_mode mode;
};

/* Says what was done, or why nothing was; returns the exit code. */
int rocketmq_export(const struct rocketmq_export_request *request);

#endif
