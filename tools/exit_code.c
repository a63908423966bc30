/* tools/exit_code.c -- see tools/exit_code.h. */
#include "tools/exit_code.h"

int exit_code_of(enum stele_status status)
{
    switch (status) {
    case STELE_OK:
        return EXIT_DONE;
    case STELE_NOT_FOUND:
    case STELE_EXISTS:
    case STELE_PRECONDITION:
        return EXIT_NEGATIVE;
    case STELE_TOO_BIG:
    case STELE_INVALID:
        return EXIT_USAGE;
    case STELE_CORRUPT:
        return EXIT_DAMAGED;
    case STELE_LOCKED:
        return EXIT_LOCKED;
    case STELE_FOREIGN:
        return EXIT_FOREIGN;
    case STELE_IO:
    case STELE_NO_MEMORY:
    case STELE_NO_SPACE:
    case STELE_BUSY:
    case STELE_UNKNOWN:
    case STELE_POISONED:
    case STELE_READ_ONLY:
    case STELE_EXPIRED:
    case STELE_FORKED:
    case STELE_UNSUPPORTED:
        return EXIT_IO;
    }
    return EXIT_IO; /* A status that is newer than this program. */
}
