/*
 * log_sender: sends what a run says to Performance Studio, beside the windows.
 *
 * It hears every message of LOG_INFO and above (log.h) and keeps it, in 64 KiB at most; a thread of
 * its own sends them: every 30 s at the latest and spread by chance, sooner when the room is used
 * up to four fifths, never twice within 10 s. Who says something only pays for writing it down;
 * what the server does delays neither him nor a window, and is logged at LOG_DEBUG alone, which is
 * not sent. A batch that was not taken is sent again with what waits; the oldest messages go for
 * want of room, and are counted. A studio without a log service is not asked again.
 *
 *     log_sender_new(settings, log, &here, &pace, err)    before secrets are overwritten
 *     log_sender_start(sender, confined, err)
 *     log_sender_stop(sender, grace_ns)                    one more try
 *
 * Memory: 64 KiB, twice while a batch is made, and a thread like an uploader's.
 */
#ifndef CAPTURE_LOG_SENDER_H
#define CAPTURE_LOG_SENDER_H

#include "capture/log.h"
#include "capture/settings.h"
#include "capture/upload/origin.h"

struct log_sender;

struct log_pace {
    uint64_t period_ns;   /* between two batches, … */
    uint64_t least_ns;    /* … also of a full room */
    uint64_t patience_ns; /* with one request */
    size_t room_bytes;
};
extern const struct log_pace log_pace_usual;

/* Null: err. From now on it hears. The back end's options are the settings'; `alone` as of
 * sender_new. Texts of `here` are borrowed. */
struct log_sender *log_sender_new(const struct settings *settings, bool alone, struct log *log,
                                  const struct origin_here *here, const struct log_pace *pace,
                                  struct err *err);

bool log_sender_start(struct log_sender *sender, bool confined, struct err *err);

/* Files are read again, and what waits is sent at once. */
void log_sender_refresh(struct log_sender *sender);

uint64_t log_sender_cpu_ns(const struct log_sender *sender);

/* Hears nothing more. False: its thread waits for something that cannot be ended, and still uses
 * texts of `here`; what it has of its own stays. */
bool log_sender_stop(struct log_sender *sender, uint64_t grace_ns);

#endif
