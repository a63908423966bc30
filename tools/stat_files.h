/* tools/stat_files.h -- of stele stat: the store's snapshots and segments, and why
 * each is there. */
#ifndef TOOLS_STAT_FILES_H
#define TOOLS_STAT_FILES_H

#include "engine/stele.h"
#include "tools/output.h"

/* A line each; in JSON the members "snapshots" and "segments", each with a comma in
 * front. */
enum stele_status stat_files_print(struct stele *store,
                                   const struct output_mode *mode,
                                   struct stele_error *error) STELE_MUST_CHECK;

#endif
