/* tools/rocketmq/import.h -- stele import rocketmq DIR CONFIGDIR. */
#ifndef TOOLS_ROCKETMQ_IMPORT_H
#define TOOLS_ROCKETMQ_IMPORT_H

#include "tools/output.h"

/* Says what was done, or why nothing was; returns the exit code. */
int rocketmq_import(const char *store_path, const char *config_path,
                    const struct output_mode *mode);

#endif
