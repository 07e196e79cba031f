/* A delivery as a request: as it lies there, or read back and encoded anew by the row's rules, with
 * as many stacks as the service takes. Whoever sends it asks for less after a 413.
 * Windows are encoded for a back end here, too, all profiles of one into one buffer. */
#include "capture/upload/shipment.h"

#include "encode/encode.h"
#include "target/entry.h"

enum {
    TRIES = 6,           /* of one request; each aims below what is allowed */
    LEAST_PERMILLE = 5,  /* of what it was, at a time */
    HALF_PERMILLE = 500, /* where the service did not say what it takes */
    AIM_PERMILLE = 900,  /* of what is allowed: light stacks compress worse than the whole */
};

/* The delivery's n-th profile: 0 is the first. */
static struct str *profile_at(struct delivery *d, size_t n)
{
    return n == 0 ? &d->profile : &d->more[n - 1].profile;
}

/* What that is; of the first, "" is CPU time. */
static struct str *type_at(struct delivery *d, size_t n)
{
    return n == 0 ? &d->type : &d->more[n - 1].type;
}

static size_t bytes_of(const struct delivery *d)
{
    size_t sum = d->profile.len;
    for (size_t i = 0; i < d->more_count; i++) {
        sum += d->more[i].profile.len;
    }
    return sum;
}

/* `bytes` holds the profiles, whose lengths are known, one behind the other. */
static void point_into(struct delivery *d, const struct buf *bytes)
{
    const char *at = bytes->ptr;
    for (size_t i = 0; i <= d->more_count; i++) {
        profile_at(d, i)->ptr = at;
        at += profile_at(d, i)->len;
    }
}

static enum frame_kind language_of(const struct profile_totals *sum)
{
    enum frame_kind most = FRAME_NATIVE;
    uint64_t most_ns = 0;
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        bool is_one = k != FRAME_NATIVE && k != FRAME_KERNEL && k != FRAME_ACCOUNT;
        if (is_one && sum->leaf_ns[k] > most_ns) {
            most = (enum frame_kind)k;
            most_ns = sum->leaf_ns[k];
        }
    }
    return most;
}

/* A language that is read by a runtime's reader counts with the native code that it calls; another one by itself. */
struct delivery_subject shipment_subject(const struct profile *p)
{
    struct profile_totals sum = profile_sum(p);
    enum frame_kind language = language_of(&sum);
    struct delivery_subject subject = {0};
    uint64_t read_ns = 0, most_ns = 0;
    for (size_t i = 1; i < p->processes.len; i++) {
        const struct process *process = &p->processes.at[i];
        read_ns += process->runtime != 0 ? process->cpu_ns : 0;
        if (process->cpu_ns > most_ns) {
            most_ns = process->cpu_ns;
            subject.pid = process->pid;
            subject.runtime = profile_text(p, process->runtime);
            subject.entry = profile_text(p, process->entry);
        }
    }
    bool dominates = language != FRAME_NATIVE && (2 * read_ns > sum.cpu_ns || 2 * sum.leaf_ns[language] > sum.cpu_ns);
    subject.language = dominates ? str_of(languages[language].name) : STR("");
    subject.runtime = dominates ? subject.runtime : STR("");
    if (dominates && languages[language].is_script && entry_is_program(subject.entry)) {
        subject.entry = STR(""); /* of the interpreter: its script was not known when it ended, or is not read */
    }
    return subject;
}

/* ---- what a runtime made ---- */

uint32_t shipment_runtime(const struct profile *p)
{
    uint32_t subject = shipment_subject(p).pid, first = 0;
    vec_each(&p->of_runtimes.all, one)
    {
        first = first == 0 || one->pid == subject ? one->pid : first;
    }
    return first;
}

/* Whoever does not take all in one request is sent profiles alone. */
static bool is_taken(const struct backend *row, const struct runtime_profile *made)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    bool is_cpu_alone = encoder != NULL && encoder->is_cpu_alone;
    return !is_cpu_alone && (row->takes_sets || runtime_profile_is_pprof(str_of(made->type)));
}

/* Puts what it has behind the profiles that are there, from the delivery's place `at` on. */
static void add_runtime(const struct profile *p, uint32_t pid, const struct backend *row, size_t at, struct buf *out,
                        struct delivery *d)
{
    vec_each(&p->of_runtimes.all, made)
    {
        if (made->pid == pid && at <= DELIVERY_MORE_MAX && is_taken(row, made)) {
            d->more_count = at;
            profile_at(d, at++)->len = made->bytes.len;
            buf_str(out, buf_slice(&made->bytes));
        }
    }
}

/* Texts stand behind all profiles, in the order of these. */
static void add_types(const struct profile *p, uint32_t pid, const struct backend *row, size_t at, struct buf *out,
                      struct delivery *d)
{
    vec_each(&p->of_runtimes.all, made)
    {
        if (made->pid == pid && at <= d->more_count && is_taken(row, made)) {
            type_at(d, at++)->len = strlen(made->type);
            buf_text(out, made->type);
        }
    }
}

/* All is there: where its parts are. The buffer will not move any more. */
static bool settle(struct buf *out, struct delivery *d, size_t first_type, struct err *err)
{
    buf_str(out, d->subject.runtime);
    buf_str(out, d->subject.entry);
    buf_trim(out); /* it may wait for hours */
    point_into(d, out);
    const char *at = out->ptr + bytes_of(d);
    for (size_t i = first_type; i <= d->more_count; at += type_at(d, i++)->len) {
        type_at(d, i)->ptr = at;
    }
    d->subject.runtime.ptr = at;
    d->subject.entry.ptr = at + d->subject.runtime.len;
    return !out->failed || err_set(err, ERR_LIMIT, 0, "a window is larger than %zu bytes", out->max);
}

bool shipment_encode(struct profile *p, const struct backend *row, struct buf *out, struct delivery *d,
                     struct err *err)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    struct sink sink = sink_of_buf(out);
    bool is_kept = encoder == NULL || encoder->is_read;
    uint32_t pid = shipment_runtime(p);
    encoder = is_kept ? encoder : encoder_by_name(STR("pprof"));
    if (encoder == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "there is no format %s", row->format);
    }
    d->format = str_of(encoder->name);
    d->more_count = 0;
    d->subject = shipment_subject(p);
    struct encode_rules rules = row->rules != NULL ? *row->rules : (struct encode_rules){0};
    bool is_named = row->own_names_of != NULL && str_eq(d->subject.language, str_of(row->own_names_of));
    rules.type_names = is_named ? NULL : rules.type_names;
    if (!encode_write(encoder, p, is_kept && row->rules != NULL ? &rules : NULL, &sink, err)) {
        return false;
    }
    d->profile.len = out->len;
    add_runtime(p, pid, row, 1, out, d);
    add_types(p, pid, row, 1, out, d);
    return settle(out, d, 1, err);
}

bool shipment_encode_runtime(const struct profile *p, uint32_t pid, const struct backend *row, struct buf *out,
                             struct delivery *d, struct err *err)
{
    d->format = STR("pprof");
    d->more_count = 0;
    d->profile = STR("");
    add_runtime(p, pid, row, 0, out, d);
    if (d->profile.len == 0) {
        return false;
    }
    d->subject = (struct delivery_subject){.pid = pid};
    vec_each(&p->of_runtimes.all, made)
    {
        d->subject.language = made->pid == pid ? str_of(languages[made->language].name) : d->subject.language;
    }
    for (size_t i = 1; i < p->processes.len; i++) {
        if (p->processes.at[i].pid == pid) {
            d->subject.runtime = profile_text(p, p->processes.at[i].runtime);
            d->subject.entry = profile_text(p, p->processes.at[i].entry);
        }
    }
    add_types(p, pid, row, 0, out, d);
    return settle(out, d, 0, err);
}

void shipment_init(struct shipment *s, const struct backend *row, const struct delivery *delivery, size_t max_bytes)
{
    *s = (struct shipment){.row = row, .given = delivery, .delivery = *delivery, .share = 1};
    buf_init(&s->encoded, max_bytes);
    buf_init(&s->text, max_bytes);
}

void shipment_release(struct shipment *s)
{
    buf_release(&s->encoded);
    buf_release(&s->text);
}

/* The header line of collapsed stacks; empty: there is none. */
static struct str header_of(struct str file)
{
    return str_starts(file, STR("# {")) ? str_sub(file, 0, str_find(file, '\n')) : STR("");
}

static bool read_profile(const struct shipment *s, size_t at, struct profile *p, struct err *err)
{
    struct delivery given = *s->given;
    bool ok = profile_read_whole(p, *profile_at(&given, at), NULL, err);
    if (ok && p->meta.start_wall_ns == 0) {
        p->meta.start_wall_ns = given.start_wall_ns;
        p->meta.end_wall_ns = given.end_wall_ns;
    }
    return ok;
}

/* Appends one of the delivery's profiles. What a runtime made stays as it is where that is the format: its values and
 * labels are more than a profile of ours holds. */
static bool encode_one(const struct shipment *s, size_t at, struct encode_rules *rules, struct buf *out,
                       struct err *err)
{
    struct delivery given = *s->given;
    struct sink sink = sink_of_buf(out);
    struct profile p;
    if (type_at(&given, at)->len > 0 && !given.is_raw && str_eq(given.format, str_of(s->row->format))) {
        buf_str(out, *profile_at(&given, at));
        return true;
    }
    if (!profile_init(&p, s->encoded.max, err)) {
        return false;
    }
    rules->header = header_of(*profile_at(&given, at));
    bool ok = read_profile(s, at, &p, err) &&
              encode_write(encoder_by_name(str_of(s->row->format)), &p, rules, &sink, err);
    profile_release(&p);
    return ok;
}

static struct encode_rules rules_of(const struct shipment *s)
{
    struct encode_rules rules = s->row->rules != NULL ? *s->row->rules : (struct encode_rules){0};
    rules.share = s->share < 1 ? s->share : 0;
    return rules;
}

/* Encodes it anew, with the stacks that `share` has room for. */
static bool encode(struct shipment *s, const struct backend_context *context, struct err *err)
{
    const struct encoder *from = encoder_by_name(s->given->format);
    struct encode_rules rules = rules_of(s);
    struct fact attributes[BACKEND_ATTRIBUTES_MAX];
    struct buf texts, encoded;
    bool ok = from == NULL || from->is_read ||
              err_set(err, ERR_UNSUPPORTED, 0, "a profile as %s cannot be encoded anew", from->name);
    buf_init(&texts, s->text.max);
    buf_init(&encoded, s->encoded.max);
    if (s->row->attributes != NULL) {
        rules.attributes = attributes;
        rules.attribute_count = s->row->attributes(context, &texts, attributes);
    }
    for (size_t i = 0; ok && i <= s->given->more_count; i++) {
        size_t before = encoded.len;
        ok = encode_one(s, i, &rules, &encoded, err);
        profile_at(&s->delivery, i)->len = encoded.len - before;
    }
    buf_release(&texts);
    if (!ok) {
        buf_release(&encoded);
        return false;
    }
    buf_release(&s->encoded);
    s->encoded = encoded;
    s->delivery.format = str_of(s->row->format);
    point_into(&s->delivery, &s->encoded);
    return true;
}

static bool make_smaller(struct shipment *s, const struct backend_context *context, size_t permille, struct err *err)
{
    size_t before = bytes_of(&s->delivery);
    s->share = s->share * (double)(permille > LEAST_PERMILLE ? permille : LEAST_PERMILLE) / 1000;
    s->delivery.shrunk = true;
    return encode(s, context, err) &&
           (s->encoded.len < before ||
            err_set(err, ERR_LIMIT, 0, "a profile of %zu bytes cannot be made smaller", before));
}

bool shipment_smaller(struct shipment *s, struct backend_context *context, struct err *err)
{
    return make_smaller(s, context, HALF_PERMILLE, err);
}

/* Rules about names are for our own files. */
static bool is_bounded(const struct encode_rules *rules)
{
    return rules->most_bytes > 0 || rules->most_samples > 0;
}

static bool is_encoded(const struct shipment *s)
{
    const struct encode_rules *rules = s->row->rules;
    bool as_it_is = !s->given->is_raw || rules == NULL || (s->given->is_foreign && !is_bounded(rules));
    return str_eq(s->delivery.format, str_of(s->row->format)) && (s->encoded.len > 0 || as_it_is);
}

bool shipment_build(struct shipment *s, struct backend_context *context, struct err *err)
{
    const struct backend *row = s->row;
    if (!is_encoded(s) && !encode(s, context, err)) {
        return false;
    }
    const struct encoder *encoder = encoder_by_name(s->delivery.format);
    s->delivery.mime = str_of(encoder != NULL ? encoder->mime : NULL);
    for (unsigned i = 0;; i++) {
        s->request = (struct http_request){0};
        buf_clear(&s->text);
        if (!row->request(context, &s->delivery, &s->request, &s->text, err)) {
            return false;
        }
        size_t bytes = s->request.body.len;
        if (row->most_bytes == 0 || bytes <= row->most_bytes) {
            return true;
        }
        if (i == TRIES) {
            return err_set(err, ERR_LIMIT, 0, "%s takes %zu bytes, and the profile still has %zu", row->title,
                           row->most_bytes, bytes);
        }
        if (!make_smaller(s, context, row->most_bytes * AIM_PERMILLE / bytes, err)) {
            return false;
        }
    }
}
