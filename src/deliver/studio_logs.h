/*
 * studio_logs: what the profiler says, as Performance Studio's log service takes it.
 *
 * A batch is POST /api/v1/logs, gzip'd JSON: an id, who sends it, how many messages were lost
 * before, and the messages, each with its severity, its time in milliseconds, and "text", an object
 * of which the service keeps whatever it holds. The response is 201. A studio that has no such
 * service answers 404 (studio_logs_are_taken).
 *
 *     studio_log_put(&record, &message)          one message, to be kept (deliver/backlog.h)
 *     studio_logs_request(&context, &batch, …)   of several with ", " between
 *
 * The token goes along in a header, as to the other routes. Where it stands in a message it is
 * starred out, as is every other secret that the context has.
 */
#ifndef DELIVER_STUDIO_LOGS_H
#define DELIVER_STUDIO_LOGS_H

#include "deliver/backend.h"

/* gProfiler's own numbers. */
enum studio_severity { SEVERITY_DEBUG = 2, SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR };

enum {
    STUDIO_MESSAGE_MAX = 2000, /* bytes of a message; the rest is cut, and marked so */
    STUDIO_EXTRA_MAX = 48,     /* fields beside it, */
    STUDIO_VALUE_MAX = 200,    /* of so many bytes */
    STUDIO_RUN_ID_MAX = 37,
    STUDIO_BATCH_ID_MAX = 33,
};

struct studio_log {
    enum studio_severity severity;
    uint64_t wall_ns;
    uint64_t number; /* in the run: 0, 1, 2 … */
    struct str event, message;
    const struct fact *extra;
    size_t extra_count;
};

void studio_log_put(struct buf *out, const struct studio_log *log);

struct studio_batch {
    char id[STUDIO_BATCH_ID_MAX];
    char run_id[STUDIO_RUN_ID_MAX];
    uint64_t lost;      /* messages, since the last batch that was taken */
    struct str records; /* as studio_log_put wrote them */
};

/* Of random bytes: a UUID of version 4, and 32 hexadecimal digits. */
void studio_run_id(const unsigned char random[static 16], char out[static STUDIO_RUN_ID_MAX]);
void studio_batch_id(const unsigned char random[static 16], char out[static STUDIO_BATCH_ID_MAX]);

bool studio_logs_request(struct backend_context *context, const struct studio_batch *batch,
                         struct http_request *out, struct buf *text, struct err *err);

enum verdict studio_logs_classify(struct backend_context *context, const struct http_response *response,
                               struct err *err);

/* False: a server that answers so has no service for logs, and will not get one. */
bool studio_logs_are_taken(unsigned status);

#endif
