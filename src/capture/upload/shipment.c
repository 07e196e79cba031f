/* A delivery as a request: as it lies there, or read back and encoded anew by the row's rules, with
 * as many stacks as the service takes. Whoever sends it asks for less after a 413. */
#include "capture/upload/shipment.h"

#include "encode/encode.h"

enum {
    TRIES = 6,           /* of one request; each aims below what is allowed */
    LEAST_PERMILLE = 5,  /* of what it was, at a time */
    HALF_PERMILLE = 500, /* where the service did not say what it takes */
    AIM_PERMILLE = 900,  /* of what is allowed: light stacks compress worse than the whole */
};

bool shipment_encode(struct profile *p, const struct backend *row, struct buf *out, struct str *format,
                     struct err *err)
{
    const struct encoder *encoder = encoder_by_name(str_of(row->format));
    struct sink sink = sink_of_buf(out);
    bool is_kept = encoder == NULL || encoder->is_read;
    encoder = is_kept ? encoder : encoder_by_name(STR("pprof"));
    if (encoder == NULL) {
        return err_set(err, ERR_UNSUPPORTED, 0, "no form is called %s", row->format);
    }
    *format = str_of(encoder->name);
    return encode_write(encoder, p, is_kept ? row->rules : NULL, &sink, err);
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

/* The header line of collapsed stacks. */
static struct str header_of(const struct delivery *d)
{
    bool has_header = str_eq(d->format, STR("col")) && str_starts(d->profile, STR("# {"));
    return has_header ? str_sub(d->profile, 0, str_find(d->profile, '\n')) : STR("");
}

static bool read_given(const struct shipment *s, struct profile *p, struct err *err)
{
    const struct delivery *d = s->given;
    const struct encoder *encoder = encoder_by_name(d->format);
    if (encoder != NULL && !encoder->is_read) {
        return err_set(err, ERR_UNSUPPORTED, 0, "a profile as %s cannot be encoded anew", encoder->name);
    }
    if (!profile_init(p, s->encoded.max, err)) {
        return false;
    }
    if (!profile_read_whole(p, d->profile, err)) {
        profile_release(p);
        return false;
    }
    if (p->meta.start_wall_ns == 0) {
        p->meta.start_wall_ns = d->start_wall_ns;
        p->meta.end_wall_ns = d->end_wall_ns;
    }
    return true;
}

/* Encodes it anew, with the stacks that `share` has room for. */
static bool encode(struct shipment *s, const struct backend_context *context, struct err *err)
{
    const struct encoder *encoder = encoder_by_name(str_of(s->row->format));
    struct encode_rules rules = s->row->rules != NULL ? *s->row->rules : (struct encode_rules){0};
    struct fact attributes[BACKEND_ATTRIBUTES_MAX];
    struct buf texts, encoded;
    struct sink sink = sink_of_buf(&encoded);
    struct profile p;
    if (!read_given(s, &p, err)) {
        return false;
    }
    buf_init(&texts, s->text.max);
    buf_init(&encoded, s->encoded.max);
    rules.share = s->share < 1 ? s->share : 0;
    rules.header = header_of(s->given);
    if (s->row->attributes != NULL) {
        rules.attributes = attributes;
        rules.attribute_count = s->row->attributes(context, &texts, attributes);
    }
    bool ok = encode_write(encoder, &p, &rules, &sink, err);
    profile_release(&p);
    buf_release(&texts);
    if (!ok) {
        buf_release(&encoded);
        return false;
    }
    buf_release(&s->encoded);
    s->encoded = encoded;
    s->delivery.format = str_of(s->row->format);
    s->delivery.profile = buf_slice(&s->encoded);
    return true;
}

static bool make_smaller(struct shipment *s, const struct backend_context *context, size_t permille, struct err *err)
{
    size_t before = s->delivery.profile.len;
    s->share = s->share * (double)(permille > LEAST_PERMILLE ? permille : LEAST_PERMILLE) / 1000;
    s->delivery.shrunk = true;
    return encode(s, context, err) &&
           (s->delivery.profile.len < before ||
            err_set(err, ERR_LIMIT, 0, "a profile of %zu bytes cannot be made smaller", before));
}

bool shipment_smaller(struct shipment *s, struct backend_context *context, struct err *err)
{
    return make_smaller(s, context, HALF_PERMILLE, err);
}

static bool is_encoded(const struct shipment *s)
{
    return str_eq(s->delivery.format, str_of(s->row->format)) &&
           (s->encoded.len > 0 || !s->given->is_raw || s->row->rules == NULL);
}

bool shipment_build(struct shipment *s, struct backend_context *context, struct err *err)
{
    const struct backend *row = s->row;
    if (!is_encoded(s) && !encode(s, context, err)) {
        return false;
    }
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
