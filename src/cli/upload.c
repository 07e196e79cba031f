/* pillion upload: sends saved profiles and files of a spool to back ends, encoded anew where a back
 * end needs another format, with all that they count or a word about what is left out. Trouble that may
 * pass is tried again a few times; --dry-run shows the requests instead. */
#include "cli/upload.h"

#include "base/gzip.h"
#include "base/time.h"
#include "capture/upload/tags.h"
#include "capture/upload/origin.h"
#include "capture/upload/sender.h"
#include "capture/upload/shipment.h"
#include "cli/say.h"
#include "cli/upload_folder.h"
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
};

/* One file: as it is, and what is known of it. */
struct saved {
    const char *path;
    struct buf bytes, packed; /* packed: what was not */
    struct delivery delivery; /* of the bytes, or packed; no format: no back end takes them so */
    struct str back_end;      /* of a spool: the only one it is for; else empty */
    struct profile profile;
    bool has_profile;
};

/* ---- what is in a file ---- */

static bool pack(struct saved *saved, struct str plain, struct err *err)
{
    struct gzip gzip;
    struct sink out = sink_of_buf(&saved->packed);
    buf_init(&saved->packed, FILE_MAX_BYTES);
    bool ok = gzip_open(&gzip, &out, err);
    struct sink in = gzip_sink(&gzip);
    ok = ok && sink_write(&in, plain.ptr, plain.len, err) && gzip_finish(&gzip, err);
    gzip_release(&gzip);
    saved->delivery.profile = buf_slice(&saved->packed);
    return ok;
}

/* By the content: pprof is packed, collapsed stacks are not. Another program's pprof does not name us. */
static bool take_form(struct saved *saved, struct err *err)
{
    static const char own[] = "made by: pillion ";
    struct str bytes = buf_slice(&saved->bytes), plain = bytes;
    struct buf inflated;
    bool is_packed = gzip_is(bytes.ptr, bytes.len), ok = true;
    buf_init(&inflated, FILE_MAX_BYTES);
    saved->delivery.profile = bytes;
    if (is_packed) {
        ok = gzip_inflate(bytes.ptr, bytes.len, &inflated, err);
        plain = buf_slice(&inflated);
    }
    if (ok && !profile_is_text(plain)) {
        saved->delivery.format = STR("pprof");
        saved->delivery.is_foreign = !memmem(plain.ptr, plain.len, own, sizeof own - 1);
        ok = is_packed || pack(saved, plain, err);
    } else if (ok && !is_packed) {
        saved->delivery.format = STR("col");
    }
    buf_release(&inflated);
    return ok;
}

/* Waiting, and other events; CPU time is none of them. */
static bool has_others(const struct profile *p)
{
    return p->waits.len > 0 || p->event_types.len > 0;
}

static bool has_cpu_time(const struct profile *p)
{
    return p->samples.len > 1;
}

static struct str first_type(const struct profile *p)
{
    return p->event_types.len > 0 ? profile_text(p, p->event_types.at[0].name) : STR("");
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
    struct profile *p = &saved->profile;
    struct str bytes = buf_slice(&saved->bytes);
    if (!profile_init(p, PROFILE_MAX_BYTES, err))
        return false;
    saved->has_profile = true;
    saved->delivery = (struct delivery){.is_raw = true, .cpu_percent = -1, .memory_percent = -1};
    if (!profile_read_whole(p, bytes, NULL, err) || !take_form(saved, err))
        return false;
    saved->delivery.identity = str_hash(bytes);
    saved->delivery.sequence = p->meta.window > 0 ? p->meta.window : (uint32_t)saved->delivery.identity;
    saved->delivery.subject = shipment_subject(p);
    struct str made = runtime_profile_of_file(str_of(saved->path));
    saved->delivery.type = made.len > 0 || has_cpu_time(p) ? made : first_type(p);
    if (made.len > 0)
        saved->delivery.subject.language = STR("go");
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
    buf_release(&saved->packed);
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

/* What the back end's format has no place for, by name. */
static void name_left_out(const struct profile *p, struct buf *out)
{
    buf_text(out, p->waits.len > 0 ? "off_cpu" : "");
    vec_each(&p->event_types, type)
    {
        buf_text(out, out->len > 0 ? ", " : "");
        buf_str(out, profile_text(p, type->name));
    }
    out->failed = false; /* a cut list says enough */
}

/* False with the sentence: nothing of it can be sent, or not all of it. */
static bool holds_all(const struct saved *saved, const struct backend *row, bool *any, struct err *err)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    struct buf names;
    *any = true;
    if (!saved->delivery.is_raw || !encoder || !encoder->is_cpu_alone || !has_others(&saved->profile))
        return true;
    *any = has_cpu_time(&saved->profile);
    buf_init(&names, 300);
    name_left_out(&saved->profile, &names);
    err_set(err, ERR_UNSUPPORTED, 0, "%s takes CPU time alone%s; not sent: %s", row->title,
            *any ? "" : ", and the file holds none", buf_cstr(&names));
    buf_release(&names);
    return false;
}

/* Servers that were set up in another way take more. */
static void warn_of_age(const struct saved *saved, const struct backend *row)
{
    uint64_t now_ns = clock_wall_ns(), start_ns = saved->delivery.start_wall_ns;
    if (row->most_age_ns > 0 && now_ns > start_ns && now_ns - start_ns > row->most_age_ns)
        say("warning: %s: it began %.1f hours ago; %s usually takes nothing that is older than %.1f hours",
            saved->path, (double)(now_ns - start_ns) / (3600.0 * NS_PER_S), row->title,
            (double)row->most_age_ns / (3600.0 * NS_PER_S));
}

static bool send_one(struct upload *u, struct saved *saved, size_t at, struct err *err)
{
    struct delivery d = saved->delivery;
    struct sender_outcome outcome = {.verdict = VERDICT_TAKEN};
    struct err left_out;
    bool any, all = holds_all(saved, u->rows[at], &any, &left_out), ok = true;
    if (!any)
        return err_set(err, left_out.kind, left_out.number, "%s", left_out.text);
    warn_of_age(saved, u->rows[at]);
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
    if (!all)
        say("warning: %s: %s", saved->path, left_out.text);
    return ok && all;
}

/* What a runtime made beside a window is no fault of a folder's where only CPU time is taken. */
static bool is_for(const struct saved *saved, const struct backend *row)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    bool is_beside = runtime_profile_of_file(str_of(saved->path)).len > 0 && encoder && encoder->is_cpu_alone;
    return !is_beside && (saved->back_end.len == 0 || str_eq(saved->back_end, str_of(row->name)));
}

static struct str name_of_heaviest(const struct profile *p)
{
    const struct process *heaviest = NULL;
    for (size_t i = 1; i < p->processes.len; i++) {
        if (!heaviest || p->processes.at[i].cpu_ns > heaviest->cpu_ns)
            heaviest = &p->processes.at[i];
    }
    return heaviest ? profile_text(p, heaviest->name) : STR("");
}

/* A file of another machine gets none of our facts; each is of the service that it says, unless another
 * was given; of none that says no service the program that it is about. */
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
    service = service.len > 0 || !p ? service : name_of_heaviest(p);
    struct str stem = str_base_name(str_of(saved->path));
    if (service.len == 0 || str_eq(service, STR("all"))) /* which stands for no name */
        service = str_cut(&stem, '.');
    if (!u->request->settings.service_name && service.len > 0)
        u->shown.facts.service = service;
    u->shown.facts.argument_count = 0; /* how we were called says nothing of the run */
}

static bool upload_file(void *context, const char *path)
{
    struct upload *u = context;
    struct saved saved;
    struct err err;
    bool ok = load(&saved, path, &err), any = false;
    if (!ok)
        say("%s", err.text);
    take_origin(u, &saved);
    for (size_t i = 0; saved.delivery.profile.ptr && i < u->count; i++) {
        if (!is_for(&saved, u->rows[i]))
            continue;
        any = true;
        err = (struct err){0};
        if (!send_one(u, &saved, i, &err)) {
            if (err.text[0])
                say("%s: not sent to %s: %s", path, u->rows[i]->name, err.text);
            ok = false;
        }
    }
    if (ok && !any && saved.back_end.len == 0) {
        say("%s: only CPU time is sent", path);
        any = true;
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
        const char *warning;
        for (size_t at = 0; (warning = sender_warning(u->senders[i], at)) != NULL; at++)
            say("warning: %s: %s", u->rows[i]->name, warning);
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
    struct upload_folder folder = {0};
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
            status |= !upload_folder_each(&folder, request->words[i], request->dry_run, upload_file, &u);
        upload_folder_release(&folder);
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
