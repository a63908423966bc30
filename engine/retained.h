/*
 * engine/retained.h -- what an open store can still be built from: its bases and
 * its log, as ANCHOR had them at one moment.
 *
 * Nothing here is held: a writer may remove segments and snapshots meanwhile.
 * Whoever misses something of them reads this anew; if ANCHOR is the same, it is
 * really missing.
 */
#ifndef ENGINE_RETAINED_H
#define ENGINE_RETAINED_H

#include "base/status.h"
#include "engine/bases.h"
#include "engine/store.h"
#include "snapshot/map.h"

struct retained {
    struct wal_anchor anchor;
    struct bases bases;
};

/* As bases_read(). Of a read-only handle: by the ANCHOR that it read last. */
enum stele_status retained_read(struct stele *store,
                                struct retained *retained_out,
                                struct stele_error *error) STELE_MUST_CHECK;
void retained_free(struct retained *retained); /* Accepts a zeroed one. */

/* Trying something that needs what is retained, from {0} on. */
struct retained_tries {
    struct retained last;
    int count;
};

/* After a try that read `now` (which is taken over) and came to `status`: is there to
 * be another one? So if something was missing, unless nothing has moved since it was
 * missing before: then it is not retention that took it. */
bool retained_again(struct retained_tries *tries, struct retained *now,
                    enum stele_status status);

/*
 * The newest base of an LSN up to `lsn_max` that can be opened; one whose file is
 * damaged no longer stands, and the next older one is tried. `*map_out` is NULL
 * for the origin. The item is borrowed. NOT_FOUND: there is none; CORRUPT: there is
 * none on account of damage; IO: on account of one that cannot be read.
 */
enum stele_status retained_open_base(
    struct stele *store, struct retained *retained, uint64_t lsn_max,
    const struct base_item **item_out, struct snapshot_map **map_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* Read the log from its beginning. CORRUPT: no base says where that is. */
enum stele_status retained_open_log(struct stele *store,
                                    struct wal_reader *reader,
                                    struct stele_error *error) STELE_MUST_CHECK;

#endif
