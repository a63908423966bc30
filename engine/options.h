/* engine/options.h -- options and tuning: defaults, and what is allowed. */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include <stdint.h>

#include "base/status.h"
#include "engine/stele.h"

/* The caller's options (NULL: none) over the defaults; a field that its header
 * did not have keeps the default. INVALID names the field that is out of
 * range. */
enum stele_status options_take(const struct stele_options *given,
                               struct stele_options *options,
                               struct stele_error *error) STELE_MUST_CHECK;

/* INVALID unless min <= value <= max. */
enum stele_status options_check_range(
    const char *name, uint64_t value, uint64_t min, uint64_t max,
    struct stele_error *error) STELE_MUST_CHECK;

#endif
