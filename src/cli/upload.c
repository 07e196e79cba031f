/* pillion upload: sends saved profiles and files of a spool to back ends, encoded anew where a back
 * end needs another format. Trouble that may pass is tried again a few times; --dry-run shows the
 * requests instead. */
#include "cli/upload.h"

#include "base/time.h"
#include "capture/upload/tags.h"
#include "capture/upload/origin.h"
#include "capture/upload/sender.h"
#include "cli/say.h"
#include "deliver/retry.h"
#include "deliver/spool.h"
#include "encode/encode.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net.h"
#include "os/secret.h"

enum {
    ATTEMPTS = 5,
    FILE_MAX_BYTES = 256 << 20,
    SHOWN_MAX_BYTES = 64 << 10,
};
#define PROFILE_MAX_BYTES (UINT64_C(1) << 30)
#define MEMORY_BYTES (4 * PROFILE_MAX_BYTES) /* a quarter is a profile's */

struct upload {
    const struct request *request;
    struct settings settings; /* with memory for a file: nothing is profiled meanwhile */
    struct origin_here origin;
    struct origin_here shown; /* of the file that is sent */
    struct sender *senders[BACKENDS_MAX];
    const struct backend *rows[BACKENDS_MAX];
    size_t count;
    struct retry retry;
    uint64_t sequence; /* of files */
};

/* One file: as it is, and what is known of it. */
struct saved {
    const char *path;
    struct buf bytes;
    struct delivery delivery; /* of the bytes as they are; no format: no back end takes them so */
    struct str back_end;      /* of a spool: the only one it is for; else empty */
    struct profile profile;   /* unless of a spool */
    bool has_profile;
};

/* ---- what is in a file ---- */

/* "pprof" when the bytes are what our own encoder would make; "col" by the name; else empty. */
static struct str format_of(const struct saved *saved)
{
    const struct encoder *encoder = encoder_by_extension(str_of(saved->path));
    struct str name = encoder ? str_of(encoder->name) : STR("");
    bool packed = str_starts(buf_slice(&saved->bytes), STR("\x1f\x8b"));
    return packed == str_eq(name, STR("pprof")) ? name : STR("");
}

static void take_times(struct saved *saved, struct delivery *d)
{
    struct profile_meta *meta = &saved->profile.meta;
    d->start_wall_ns = meta->start_wall_ns;
    d->end_wall_ns = meta->end_wall_ns > d->start_wall_ns ? meta->end_wall_ns : d->start_wall_ns;
    d->frequency_hz = meta->frequency_hz ? meta->frequency_hz : 99;
    if (d->start_wall_ns == 0) {
        say("warning: %s does not say when it was; it is sent as of now", saved->path);
        d->start_wall_ns = d->end_wall_ns = clock_wall_ns();
    }
}

static bool read_profile(struct saved *saved, struct err *err)
{
    struct collapsed_damage damage = {0};
    if (!profile_init(&saved->profile, PROFILE_MAX_BYTES, err))
        return false;
    saved->has_profile = true;
    if (!profile_read(&saved->profile, buf_slice(&saved->bytes), &damage, err))
        return false;
    saved->delivery = (struct delivery){.profile = buf_slice(&saved->bytes),
                                        .format = format_of(saved),
                                        .is_raw = true,
                                        .cpu_percent = -1,
                                        .memory_percent = -1};
    take_times(saved, &saved->delivery);
    return true;
}

/* Of a file of a spool only the times are its own; what is in it tells where it was made. */
static void peek(struct saved *saved)
{
    struct collapsed_damage damage = {0};
    saved->has_profile = profile_init(&saved->profile, PROFILE_MAX_BYTES, NULL);
    if (saved->has_profile)
        (void)profile_read(&saved->profile, saved->delivery.profile, &damage, NULL);
}

static bool load(struct saved *saved, const char *path, struct err *err)
{
    uint64_t address_hash;
    struct err why = {0};
    *saved = (struct saved){.path = path};
    if (!file_read_all(path, FILE_MAX_BYTES, &saved->bytes, err))
        return false;
    struct str bytes = buf_slice(&saved->bytes);
    if (spool_read(bytes, &saved->delivery, &saved->back_end, &address_hash, &why)) {
        peek(saved);
        return true;
    }
    if (read_profile(saved, &why))
        return true;
    return err_set(err, why.kind, why.number, "%.200s: %s", path, why.text);
}

static void release(struct saved *saved)
{
    if (saved->has_profile)
        profile_release(&saved->profile);
    buf_release(&saved->bytes);
}

/* ---- to one back end ---- */

/* Tries again what may pass by itself. */
static void send_patiently(struct upload *u, struct sender *sender, struct delivery *d,
                           struct sender_outcome *outcome)
{
    for (unsigned i = 1;; i++) {
        sender_send(sender, d, clock_mono_ns() + sender_timeout_ns(sender), outcome);
        retry_note(&u->retry, outcome->verdict, outcome->retry_after_ns, clock_mono_ns());
        if (outcome->verdict != VERDICT_LATER || i == ATTEMPTS)
            return;
        uint64_t now_ns = clock_mono_ns();
        uint64_t wait_ns = u->retry.next_ns > now_ns ? u->retry.next_ns - now_ns : 0;
        say("warning: %s: %s; tried again in %.0f s", sender_name(sender), outcome->err.text,
            (double)wait_ns / (double)NS_PER_S);
        clock_sleep_ns(wait_ns);
    }
}

static bool show(struct sender *sender, const struct delivery *d, struct err *err)
{
    struct buf text;
    buf_init(&text, SHOWN_MAX_BYTES);
    bool ok = sender_show(sender, d, &text, err) && say_result(buf_slice(&text));
    buf_release(&text);
    return ok;
}

static bool send_one(struct upload *u, struct saved *saved, size_t at, struct err *err)
{
    struct delivery d = saved->delivery;
    struct sender_outcome outcome = {.verdict = VERDICT_TAKEN};
    bool ok = true;
    d.sequence = u->sequence;
    if (u->request->dry_run)
        ok = show(u->senders[at], &d, err);
    else
        send_patiently(u, u->senders[at], &d, &outcome);
    if (outcome.verdict != VERDICT_TAKEN)
        return err_set(err, outcome.err.kind, outcome.err.number, "%s", outcome.err.text);
    if (outcome.err.text[0])
        say("warning: %s: %s", u->rows[at]->name, outcome.err.text);
    if (ok && !u->request->dry_run && !u->request->quiet)
        say("%s: sent to %s", saved->path, u->rows[at]->name);
    return ok;
}

static bool is_for(const struct saved *saved, const struct backend *row)
{
    return saved->back_end.len == 0 || str_eq(saved->back_end, str_of(row->name));
}

/* A file of another machine gets none of our facts; each is of the service that it says, unless another
 * was given. */
static void take_origin(struct upload *u, const struct saved *saved)
{
    const struct origin *here = &u->origin.facts;
    const struct profile *p = saved->has_profile ? &saved->profile : NULL;
    struct str host = p ? profile_text(p, p->meta.host) : STR("");
    struct str service = p ? profile_text(p, p->meta.service) : STR("");
    u->shown.facts = *here;
    if (host.len > 0 && !str_eq(host, here->hostname)) {
        u->shown.facts = (struct origin){
            .service = here->service,
            .hostname = host,
            .cloud_provider = STR("Unknown"),
            .spawn_wall_ns = saved->delivery.start_wall_ns,
            .tag_count = here->tag_count,
        };
        memcpy(u->shown.facts.tags, here->tags, sizeof here->tags);
    }
    if (!u->request->settings.service_name && service.len > 0)
        u->shown.facts.service = service;
    u->shown.facts.argument_count = 0; /* how we were called says nothing of the run */
}

static bool upload_file(struct upload *u, const char *path)
{
    struct saved saved;
    struct err err;
    bool ok = load(&saved, path, &err), any = false;
    if (!ok)
        say("%s", err.text);
    take_origin(u, &saved);
    u->sequence++;
    for (size_t i = 0; saved.delivery.profile.ptr && i < u->count; i++) {
        if (!is_for(&saved, u->rows[i]))
            continue;
        any = true;
        if (!send_one(u, &saved, i, &err)) {
            say("%s: not sent to %s: %s", path, u->rows[i]->name, err.text);
            ok = false;
        }
    }
    if (ok && !any)
        say("%s: is for %.*s; give --backend %.*s", path, (int)saved.back_end.len,
            saved.back_end.ptr, (int)saved.back_end.len, saved.back_end.ptr);
    release(&saved);
    return ok && any;
}

/* ---- the command ---- */

/* `omitted` gets a line for each reason that tags are not sent. */
static bool open_senders(struct upload *u, struct buf *omitted, struct err *err)
{
    const struct settings *settings = &u->settings;
    u->settings = u->request->settings;
    u->settings.budget.memory_bytes = MEMORY_BYTES;
    origin_gather(&u->origin, settings, sender_variable, NULL);
    tags_add(&u->origin.facts, &settings->upload, omitted);
    u->shown.facts = u->origin.facts; /* until a file says more */
    if (!sender_choose(&settings->upload, u->rows, &u->count, err))
        return false;
    for (size_t i = 0; i < u->count; i++) {
        u->senders[i] = sender_new(settings, u->rows[i], u->count == 1, &u->shown, -1, err);
        if (!u->senders[i])
            return false;
        if (sender_warning(u->senders[i]))
            say("warning: %s: %s", u->rows[i]->name, sender_warning(u->senders[i]));
        if (sender_exposure(u->senders[i]))
            say("warning: %s: %s", u->rows[i]->name, sender_exposure(u->senders[i]));
        sender_omissions(u->senders[i], true, omitted);
    }
    say_warnings(buf_slice(omitted));
    sender_hide_secrets(&settings->upload);
    return true;
}

int upload_run(const struct request *request)
{
    struct upload u = {.request = request};
    struct buf omitted;
    struct err err;
    int status = 0;
    buf_init(&omitted, BACKENDS_MAX * SENDER_OMISSIONS_MAX);
    secret_leave_no_core();
    if (!request->quiet)
        say_warnings(buf_slice(&request->warnings));
    net_random(NULL, &u.retry.random, sizeof u.retry.random);
    if (open_senders(&u, &omitted, &err)) {
        for (size_t i = 0; i < request->word_count; i++)
            status |= !upload_file(&u, request->words[i]);
    } else {
        say("%s", err.text);
        status = EXIT_USAGE;
    }
    buf_release(&omitted);
    for (size_t i = 0; i < u.count; i++)
        sender_free(u.senders[i]);
    origin_release(&u.origin);
    return status;
}
