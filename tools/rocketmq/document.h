/*
 * tools/rocketmq/document.h -- the text of a broker's file into a JSON object.
 *
 * A broker that lost power leaves files that are empty, zeros, or cut off, and
 * none of them means "there are no topics". What is not exactly one object in
 * UTF-8, with no name twice, is CORRUPT, and the message says where.
 */
#ifndef TOOLS_ROCKETMQ_DOCUMENT_H
#define TOOLS_ROCKETMQ_DOCUMENT_H

#include <jansson.h>

#include "base/bytes.h"
#include "base/status.h"

/* Integer keys may lack their quotes. The object is the caller's to decref. */
enum stele_status rocketmq_document_parse(
    struct bytes text, json_t **object_out,
    struct stele_error *error) STELE_MUST_CHECK;

/* "an object", "null", ... for messages. Static. */
const char *rocketmq_json_type(const json_t *value);

#endif
