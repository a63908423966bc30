/* tools/key_argument.c -- see tools/key_argument.h. */
#include "tools/key_argument.h"

#include <string.h>

#include "tools/hex.h"

enum stele_status key_argument_bytes(char *text, size_t text_bytes,
                                     const struct output_mode *mode,
                                     struct bytes *key_out,
                                     struct stele_error *error)
{
    size_t bytes = text_bytes;

    if (mode->hex) {
        const enum stele_status status =
            hex_decode(text, text_bytes, &bytes, error);

        if (status != STELE_OK) {
            return status;
        }
    }
    *key_out = (struct bytes){.data = text, .size = bytes};
    return STELE_OK;
}

enum stele_status key_argument(char *text, const struct output_mode *mode,
                               struct bytes *key_out, struct stele_error *error)
{
    return key_argument_bytes(text, strlen(text), mode, key_out, error);
}
