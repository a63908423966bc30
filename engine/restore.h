/* engine/restore.h -- stele_restore() with the tests' screws. */
#ifndef ENGINE_RESTORE_H
#define ENGINE_RESTORE_H

#include "base/status.h"
#include "engine/stele.h"
#include "engine/store.h"

enum stele_status restore_store(const char *archive, const char *path,
                                const struct stele_restore_options *options,
                                const struct store_tuning *tuning,
                                struct stele_restore_report *report,
                                struct stele_error *error) STELE_MUST_CHECK;

#endif
