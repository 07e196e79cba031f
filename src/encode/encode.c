/* Finds formats by name, ending or bit in the table of encoders.c, writes a profile by rules (what is too large
 * for them goes through fit.h), and reads profile files by their content: collapsed stacks, pprof or a flight
 * recording, compressed or not. Each format is written by its own file. */
#include "encode/encode.h"

#include "base/gzip.h"
#include "encode/gecko_read.h"
#include "encode/jfr_read.h"
#include "encode/perf_read.h"
#include "encode/pprof_read.h"
#include "encode/python_read.h"

bool encode_write(const struct encoder *encoder, struct profile *p, const struct encode_rules *rules, struct sink *out,
                  struct err *err)
{
    struct fit fit;
    bool bounded = rules != NULL && (rules->most_bytes != 0 || rules->most_samples != 0 || rules->share > 0);
    if (!bounded && (rules == NULL || !rules->merges_threads)) {
        return encoder->write(p, rules, out, err);
    }
    fit_write *measure = encoder->plain != NULL ? encoder->plain : encoder->write;
    bool ok = fit_init(&fit, p, rules, encoder->apart, measure, err) && encoder->write(&fit.view, rules, out, err);
    fit_release(&fit);
    return ok;
}

const struct encoder *encoder_by_name(struct str name)
{
    for (size_t i = 0; encoders[i] != NULL; i++) {
        if (str_eq(name, str_of(encoders[i]->name))) {
            return encoders[i];
        }
    }
    return NULL;
}

unsigned encoder_bit(const char *name)
{
    size_t i = 0;
    while (strcmp(encoders[i]->name, name) != 0) {
        i++;
    }
    return 1u << i;
}

unsigned encoder_defaults(void)
{
    unsigned bits = 0;
    for (size_t i = 0; encoders[i] != NULL; i++) {
        bits |= encoders[i]->by_default ? 1u << i : 0;
    }
    return bits;
}

unsigned encoders_of_moments(void)
{
    unsigned bits = 0;
    for (size_t i = 0; encoders[i] != NULL; i++) {
        bits |= encoders[i]->shows_moments ? 1u << i : 0;
    }
    return bits;
}

/* How long the format's ending of `path` is, 0 without one. */
static size_t ending_of(struct str path, const struct encoder *encoder)
{
    size_t longest = 0;
    struct str more = str_of(encoder->extensions);
    for (struct str e = str_of(encoder->extension); e.len > 0; e = str_cut(&more, ' ')) {
        if (e.len > longest && path.len > e.len && str_ends(path, e)) {
            longest = e.len;
        }
    }
    return longest;
}

const struct encoder *encoder_by_extension(struct str path)
{
    const struct encoder *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; encoders[i] != NULL; i++) {
        size_t ending = ending_of(path, encoders[i]);
        if (ending > longest) {
            best = encoders[i];
            longest = ending;
        }
    }
    return best;
}

/* Text has no control characters but blanks; a protocol buffer soon has one. */
bool profile_is_text(struct str file)
{
    enum { PROBE_BYTES = 4096 };
    size_t probe = file.len < PROBE_BYTES ? file.len : PROBE_BYTES;
    for (size_t i = 0; i < probe; i++) {
        unsigned char c = (unsigned char)file.ptr[i];
        if (c < ' ' && c != '\n' && c != '\r' && c != '\t') {
            return false;
        }
    }
    return true;
}

static bool read_plain(struct profile *into, struct str file, struct str type, bool whole,
                       struct collapsed_damage *damage, struct err *err)
{
    if (file.len == 0) {
        return err_set(err, ERR_MALFORMED, 0, "the file is empty");
    }
    if (str_starts(file, STR("<"))) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "HTML cannot be read; collapsed stacks (.col), pprof and flight recordings (.jfr) can");
    }
    if (str_starts(file, STR("{"))) {
        return gecko_read(into, file, type, err);
    }
    if (jfr_is(file)) {
        return whole ? jfr_read_whole(into, file, err) : jfr_read(into, file, type, err);
    }
    if (profile_is_text(file) && perf_is(file)) {
        return perf_read(into, file, type, whole, damage, err);
    }
    if (profile_is_text(file) && python_stacks_are(file)) {
        return python_stacks_read(into, file, type, damage, err);
    }
    return profile_is_text(file) ? collapsed_read(into, file, type, damage, err)
           : whole       ? pprof_read_whole(into, file, err)
                         : pprof_read(into, file, type, err);
}

static bool read_any(struct profile *into, struct str file, struct str type, bool whole,
                     struct collapsed_damage *damage, struct err *err)
{
    *damage = (struct collapsed_damage){0};
    if (!gzip_is(file.ptr, file.len)) {
        return read_plain(into, file, type, whole, damage, err);
    }
    struct buf plain;
    buf_init(&plain, PPROF_READ_MAX_BYTES);
    bool ok = gzip_inflate(file.ptr, file.len, &plain, err) &&
              read_plain(into, buf_slice(&plain), type, whole, damage, err);
    buf_release(&plain);
    return ok;
}

bool profile_read_type(struct profile *into, struct str file, struct str type,
                       struct collapsed_damage *damage, struct err *err)
{
    return read_any(into, file, type, false, damage, err);
}

bool profile_read_whole(struct profile *into, struct str file, struct collapsed_damage *damage, struct err *err)
{
    struct collapsed_damage unused;
    return read_any(into, file, STR(""), true, damage != NULL ? damage : &unused, err);
}

bool profile_read(struct profile *into, struct str file, struct collapsed_damage *damage,
                  struct err *err)
{
    return profile_read_type(into, file, STR(""), damage, err);
}
