/* pillion render: reads saved profiles, merges or compares them, and writes another format. Which
 * formats can be read and written is the encoders' business (encode/encode.h); here are files,
 * errors and counts of lines that were skipped. */
#include "cli/render.h"

#include "cli/say.h"
#include "cli/sources.h"
#include "encode/encode.h"
#include "encode/flame.h"
#include "encode/value.h"
#include "os/file.h"

enum { WORDS_MAX_BYTES = 16 * 1024 };

/* The encoder that is wanted, or a null pointer and the sentence why there is none. */
static const struct encoder *choose_encoder(const struct request *request, struct err *err)
{
    const struct encoder *encoder = NULL;
    if (request->render_format == 0) {
        encoder = encoder_by_extension(str_of(request->render_output));
        if (!encoder)
            err_set(err, ERR_USAGE, 0, "no format has the extension of %.200s; give --format",
                    request->render_output);
    } else {
        unsigned wanted = request->render_format;
        encoder = (wanted & (wanted - 1)) == 0 ? encoders[__builtin_ctz(wanted)] : NULL;
        if (!encoder)
            err_set(err, ERR_USAGE, 0, "--format expects one format here");
    }
    if (encoder && request->diff_base && strcmp(encoder->name, "html") != 0) {
        err_set(err, ERR_USAGE, 0, "--diff makes a flame graph; give -o NAME.html");
        encoder = NULL;
    } else if (encoder && request->sources && !encoder->is_page) {
        err_set(err, ERR_USAGE, 0, "--sources is for flame graphs; give -o NAME.html");
        encoder = NULL;
    }
    return encoder;
}

/* Of a page that is asked for no type, which offers all of them. */
static const char all_types[] = "";

/* Adds the file to the profile. */
static bool load(struct profile *p, const char *path, const char *type, struct err *err)
{
    struct buf file;
    struct err why;
    struct collapsed_damage damage = {0};
    buf_init(&file, RENDER_INPUT_MAX_BYTES);
    bool ok = file_read_all(strcmp(path, "-") == 0 ? "/dev/stdin" : path, RENDER_INPUT_MAX_BYTES, &file, err);
    if (ok && !(type == all_types ? profile_read_whole(p, buf_slice(&file), &damage, &why)
                                  : profile_read_type(p, buf_slice(&file), str_of(type), &damage, &why)))
        ok = err_set(err, why.kind, why.number, "%.200s: %s", path, why.text);
    buf_release(&file);
    if (ok && damage.lines > 0)
        say("warning: %s: %llu lines that are not stacks were skipped, the first is line %llu", path,
            (unsigned long long)damage.lines, (unsigned long long)damage.first_line);
    return ok;
}

bool render_load(struct profile *p, char *const *paths, size_t count, const char *type, struct err *err)
{
    for (size_t i = 0; i < count; i++)
        if (!load(p, paths[i], type, err))
            return false;
    if (p->dropped > 0)
        say("warning: the profile is too large; %llu stacks count as [lost]",
            (unsigned long long)p->dropped);
    return true;
}

static bool save(const struct request *request, const struct encoder *encoder, struct profile *p,
                 struct profile *base, struct buf *words, struct err *err)
{
    struct encode_rules rules = {.lines = request->settings.output.col_lines};
    struct file_writer writer;
    struct sources sources;
    if (request->sources && !sources_open(&sources, request->sources, err))
        return false;
    rules.sources = request->sources ? &sources.reader : NULL;
    if (!file_create_named(&writer, request->render_output, err))
        return false;
    struct sink sink = file_sink(&writer);
    bool ok = base ? flame_write_diff(p, base, &rules, &sink, words, err) : encoder->write(p, &rules, &sink, err);
    if (request->sources)
        sources_close(&sources);
    if (!ok) {
        file_abandon(&writer);
        return false;
    }
    return file_commit(&writer, err);
}

/* Without --type a collapsed file may tell of something else than CPU time. */
static bool is_comparable(const struct profile *p, const struct profile *base, struct err *err)
{
    struct str value = value_name(p), other = value_name(base);
    return str_eq(value, other) ||
           err_set(err, ERR_UNSUPPORTED, 0, "%.*s cannot be compared with %.*s",
                   (int)str_sub(value, 0, 40).len, value.ptr, (int)str_sub(other, 0, 40).len,
                   other.ptr);
}

static bool render_compared(const struct request *request, const struct encoder *encoder,
                            struct profile *p, struct err *err)
{
    struct profile base;
    if (!profile_init(&base, RENDER_PROFILE_MAX_BYTES, err))
        return false;
    char *const path = (char *)request->diff_base;
    struct buf words;
    buf_init(&words, WORDS_MAX_BYTES);
    bool ok = render_load(&base, &path, 1, request->render_type, err) &&
              is_comparable(p, &base, err) &&
              save(request, encoder, p, &base, &words, err);
    profile_release(&base);
    bool to_stdout = strcmp(request->render_output, "-") == 0; /* then the page alone says it */
    if (ok && !to_stdout && words.len > 0 && !say_result(buf_slice(&words)))
        ok = err_set(err, ERR_IO, 0, "the comparison is in %.200s", request->render_output);
    buf_release(&words);
    return ok;
}

static bool render(const struct request *request, const struct encoder *encoder, struct err *err)
{
    struct profile p;
    if (!profile_init(&p, RENDER_PROFILE_MAX_BYTES, err))
        return false;
    bool is_open = encoder->is_page && !request->render_type && !request->diff_base;
    bool ok = render_load(&p, request->words, request->word_count, is_open ? all_types : request->render_type, err);
    if (ok && request->diff_base)
        ok = render_compared(request, encoder, &p, err);
    else if (ok)
        ok = save(request, encoder, &p, NULL, NULL, err);
    profile_release(&p);
    return ok;
}

int render_run(const struct request *request)
{
    struct err err;
    const struct encoder *encoder = choose_encoder(request, &err);
    int status = !encoder ? EXIT_USAGE : render(request, encoder, &err) ? 0 : 1;
    if (status != 0)
        say("%s", err.text);
    return status;
}
