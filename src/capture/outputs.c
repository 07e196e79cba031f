#include "capture/outputs.h"
#include "base/time.h"
#include "encode/encode.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_MAX_BYTES = 4096, SAME_SECOND_MAX = 1000 };

static const struct {
    unsigned format;
    const char *encoder, *link;
} rows[] = {
    {FORMAT_COL, "col", "last_profile.col"},
    {FORMAT_HTML, "html", "last_flamegraph.html"},
    {FORMAT_PPROF, "pprof", "last_profile.pprof"},
    {FORMAT_SPEEDSCOPE, "speedscope", "last_profile.speedscope.json"},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

void outputs_init(struct outputs *o, const struct settings *settings)
{
    *o = (struct outputs){
        .dir = settings->output_dir != NULL ? settings->output_dir : ".",
        .formats = settings->formats,
        .max_sets = settings->rotating ? 1 : settings->max_output_files,
    };
}

static bool path_of(const struct outputs *o, const char *stem, const char *extension,
                    char out[static PATH_MAX_BYTES])
{
    return (size_t)snprintf(out, PATH_MAX_BYTES, "%s/%s%s", o->dir, stem, extension) <
           PATH_MAX_BYTES;
}

/* ---- rotation ---- */

struct stems {
    VEC(struct str) names; /* each owned */
};

/* "profile_<19 characters of time>" and, for several in one second, "-N". */
static size_t stem_bytes(struct str name)
{
    enum { STEM_BYTES = sizeof "profile_2026-11-20T10:31:04" - 1 };
    if (!str_starts(name, STR("profile_20")) || name.len <= STEM_BYTES) {
        return 0;
    }
    size_t dot = str_find(name, '.');
    return dot < name.len && dot >= STEM_BYTES && name.ptr[18] == 'T' ? dot : 0;
}

static void note_stem(void *context, const char *file)
{
    struct stems *stems = context;
    struct str name = str_of(file);
    name.len = stem_bytes(name);
    if (name.len == 0) {
        return;
    }
    vec_each(&stems->names, known)
    {
        if (str_eq(*known, name)) {
            return;
        }
    }
    struct str *place = vec_push(&stems->names);
    if (place != NULL) {
        char *copy = malloc(name.len + 1);
        *place = (struct str){copy, copy == NULL ? 0 : name.len};
        if (copy != NULL) {
            memcpy(copy, name.ptr, name.len);
            copy[name.len] = '\0';
        }
    }
}

static int by_name(const void *left, const void *right)
{
    return str_compare(*(const struct str *)left, *(const struct str *)right);
}

static void remove_set(const struct outputs *o, const char *stem)
{
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        char path[PATH_MAX_BYTES];
        const struct encoder *encoder = encoder_by_name(str_of(rows[i].encoder));
        if (path_of(o, stem, encoder->extension, path)) {
            (void)file_remove(path, NULL);
        }
    }
}

static void remove_old_sets(const struct outputs *o)
{
    struct stems stems = {0};
    if (o->max_sets > 0 && file_list(o->dir, note_stem, &stems, NULL)) {
        qsort(stems.names.at, stems.names.len, sizeof *stems.names.at, by_name);
        for (size_t i = 0; i + o->max_sets < stems.names.len; i++) {
            if (stems.names.at[i].ptr != NULL) {
                remove_set(o, stems.names.at[i].ptr);
            }
        }
    }
    for (size_t i = 0; i < stems.names.len; i++) {
        free((char *)(uintptr_t)stems.names.at[i].ptr);
    }
    vec_release(&stems.names);
}

/* ---- writing ---- */

static void choose_stem(const struct outputs *o, uint64_t end_wall_ns, char stem[static 64])
{
    char time[TIME_TEXT_MAX], path[PATH_MAX_BYTES];
    time_iso_seconds(end_wall_ns, time);
    snprintf(stem, 64, "profile_%s", time);
    for (unsigned n = 2; n < SAME_SECOND_MAX; n++) {
        bool taken = false;
        for (unsigned i = 0; i < ROW_COUNT && !taken; i++) {
            taken = path_of(o, stem, encoder_by_name(str_of(rows[i].encoder))->extension, path) &&
                    file_exists(path);
        }
        if (!taken) {
            return;
        }
        snprintf(stem, 64, "profile_%s-%u", time, n);
    }
}

static bool write_one(const struct outputs *o, struct profile *p, const char *stem,
                      const struct encoder *encoder, const char *link, struct err *err)
{
    char path[PATH_MAX_BYTES], name[128];
    struct file_writer writer;
    if (!path_of(o, stem, encoder->extension, path)) {
        return err_set(err, ERR_LIMIT, 0, "the path %.60s… is too long", o->dir);
    }
    if (!file_create_atomic(&writer, path, err)) {
        return false;
    }
    struct sink sink = file_sink(&writer);
    if (!encoder->write(p, &sink, err)) {
        file_abandon(&writer);
        return false;
    }
    snprintf(name, sizeof name, "%s%s", stem, encoder->extension);
    return file_commit(&writer, err) && file_link(o->dir, link, name, err);
}

bool outputs_write(const struct outputs *o, struct profile *p, struct outputs_written *written,
                   struct err *err)
{
    *written = (struct outputs_written){0};
    if (o->formats != 0 && !file_prepare_dir(o->dir, err)) {
        return false;
    }
    choose_stem(o, p->meta.end_wall_ns, written->stem);
    bool ok = true;
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        if ((o->formats & rows[i].format) == 0) {
            continue;
        }
        if (write_one(o, p, written->stem, encoder_by_name(str_of(rows[i].encoder)), rows[i].link,
                      ok ? err : NULL)) {
            written->formats |= rows[i].format;
        } else {
            ok = false;
        }
    }
    remove_old_sets(o);
    return ok;
}
