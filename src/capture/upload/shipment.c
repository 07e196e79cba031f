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

bool shipment_encode(struct profile *p, const struct backend *row, struct buf *out, struct delivery *d,
                     struct err *err)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    struct sink sink = sink_of_buf(out);
    bool is_kept = encoder == NULL || encoder->is_read, ok = true;
    encoder = is_kept ? encoder : encoder_by_name(STR("pprof"));
    if (encoder == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "there is no format %s", row->format);
    }
    d->format = str_of(encoder->name);
    d->more_count = 0;
    for (struct profile *q = p; ok && q != NULL && d->more_count < DELIVERY_MORE_MAX; q = q->next) {
        size_t before = out->len;
        ok = encode_write(encoder, q, is_kept ? row->rules : NULL, &sink, err);
        d->more_count += q != p;
        profile_at(d, d->more_count)->len = out->len - before;
    }
    size_t at = out->len, n = 0;
    for (struct profile *q = p->next; n < d->more_count; q = q->next) {
        d->more[n].type.len = profile_text(q, q->meta.value).len;
        buf_str(out, profile_text(q, q->meta.value));
        n++;
    }
    d->subject = shipment_subject(p);
    size_t runtime_at = out->len;
    buf_str(out, d->subject.runtime);
    buf_str(out, d->subject.entry);
    buf_trim(out); /* it may wait for hours */
    d->subject.runtime.ptr = out->ptr + runtime_at;
    d->subject.entry.ptr = d->subject.runtime.ptr + d->subject.runtime.len;
    point_into(d, out);
    for (size_t i = 0; i < n; at += d->more[i++].type.len) {
        d->more[i].type.ptr = out->ptr + at;
    }
    return ok && (!out->failed || err_set(err, ERR_LIMIT, 0, "a window is larger than %zu bytes", out->max));
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
    struct str file = *profile_at(&given, at), type = at == 0 ? given.type : given.more[at - 1].type;
    struct collapsed_damage damage;
    bool whole = given.is_raw || type.len == 0;
    bool ok = whole ? profile_read_whole(p, file, err) : profile_read_type(p, file, type, &damage, err);
    if (ok && p->meta.start_wall_ns == 0) {
        p->meta.start_wall_ns = given.start_wall_ns;
        p->meta.end_wall_ns = given.end_wall_ns;
    }
    return ok;
}

/* Appends one of the delivery's profiles. */
static bool encode_one(const struct shipment *s, size_t at, struct encode_rules *rules, struct buf *out,
                       struct err *err)
{
    struct delivery given = *s->given;
    struct sink sink = sink_of_buf(out);
    struct profile p;
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
