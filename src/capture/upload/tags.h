/*
 * tags: what --tags, --environment and --service-version say of all profiles of a run.
 *
 * "key:value,key:value", also with "=" as the variables of OpenTelemetry and Pyroscope have it, and
 * with blanks between as DD_TAGS may have it. What has no value, and what is one too many, is left
 * out, and told; the texts stay where they are.
 */
#ifndef CAPTURE_TAGS_H
#define CAPTURE_TAGS_H

#include "capture/settings.h"
#include "deliver/backend.h"

/* Appends to `left_out` a sentence, with a line end, for each reason that some are left out for. */
void tags_add(struct origin *facts, const struct upload_settings *upload, struct buf *left_out);

/* As much of a tag's text as tells which one it is, in one line. */
void tags_show(struct buf *out, struct str text);

#endif
