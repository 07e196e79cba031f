/* Tries the back ends that a profile would send to, by the code that sends. */
#include "base/time.h"
#include "capture/doctor/doctor_private.h"
#include "capture/upload/origin.h"
#include "os/clock.h"
#include "os/secret.h"

#include <stdio.h>

enum { REACH_MS = 3000 }; /* for each: a slower server is reported as such */

static bool is_wanted(const struct upload_settings *upload)
{
    return upload->wanted || upload->backends != 0 || upload->server_host != NULL ||
           upload->token != NULL || upload->token_file != NULL ||
           backend_from_environment(sender_variable, NULL) != NULL;
}

static void try_one(struct sender *sender, struct doctor_upload *out)
{
    struct sender_outcome outcome;
    sender_where(sender, out->address, sizeof out->address);
    sender_try(sender, clock_mono_ns() + REACH_MS * NS_PER_MS, &out->confirmed, &outcome);
    out->gate = outcome.gate;
    out->why = outcome.err;
}

static void fail(struct doctor_upload *out, const struct err *why)
{
    bool wants_token = why->kind == ERR_USAGE && strstr(why->text, " needs a token") != NULL;
    out->gate = wants_token ? SENDER_TOKEN : SENDER_SETTING;
    out->why = *why;
}

/* All are opened before their secrets are overwritten, and that before anything waits. */
static void try_all(const struct settings *settings, const struct backend *const rows[], size_t count,
                    const struct origin_here *here, struct doctor_facts *f)
{
    struct sender *senders[BACKENDS_MAX];
    struct err err;
    for (size_t i = 0; i < count; i++) {
        struct doctor_upload *upload = &f->uploads[f->upload_count++];
        upload->backend = rows[i]->name;
        (void)snprintf(upload->name, sizeof upload->name, "upload_%s", rows[i]->name);
        senders[i] = sender_new(settings, rows[i], count == 1, here, -1, &err);
        if (senders[i] == NULL) {
            fail(upload, &err);
        }
    }
    sender_hide_secrets(&settings->upload);
    for (size_t i = 0; i < count; i++) {
        if (senders[i] != NULL) {
            try_one(senders[i], &f->uploads[i]);
        }
        sender_free(senders[i]);
    }
}

void doctor_try_uploads(const struct settings *settings, struct doctor_facts *f)
{
    const struct backend *rows[BACKENDS_MAX];
    struct settings all = *settings; /* there is no command that a service could be named after */
    struct origin_here here;
    size_t count;
    if (!is_wanted(&settings->upload) || !sender_choose(&settings->upload, rows, &count, NULL)) {
        return;
    }
    secret_leave_no_core();
    all.scope.mode = TARGET_ALL;
    origin_gather(&here, &all, sender_variable, NULL);
    try_all(settings, rows, count, &here, f);
    origin_release(&here);
}
