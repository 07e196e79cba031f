/* The files of a window: one per profile and format under a name with the window's end, written whole
 * or not at all, links to the newest, and the rotation that removes the oldest
 * sets. */
#include "capture/window/outputs.h"
#include "base/ascii.h"
#include "base/time.h"
#include "encode/encode.h"
#include "os/file.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_MAX_BYTES = 4096, SAME_SECOND_MAX = 1000 };

void outputs_init(struct outputs *o, const struct settings *settings)
{
    *o = (struct outputs){
        .dir = settings->output.dir != NULL ? settings->output.dir : ".",
        .formats = settings->output.formats,
        .max_sets = settings->output.rotating ? 1 : settings->output.max_files,
        .bounded = settings->output.bounded,
        .names = settings->output.names,
        .rules = {.lines = settings->output.col_lines},
        .window_ns = settings->sampling.window_ns,
    };
}

void outputs_release(struct outputs *o)
{
    vec_release(&o->own);
}

void outputs_name_here(struct outputs *o)
{
    if (strcmp(o->dir, ".") == 0) {
        file_working_dir(o->here, sizeof o->here);
        o->dir = o->here;
    }
}

const char *outputs_slash(const struct outputs *o)
{
    return str_ends(str_of(o->dir), STR("/")) ? "" : "/";
}

bool outputs_try(const struct outputs *o, struct err *err)
{
    return o->formats == 0 || file_prepare_dir(o->dir, err);
}

static bool path_of(const struct outputs *o, const char *stem, const char *extension,
                    char out[static PATH_MAX_BYTES])
{
    return (size_t)snprintf(out, PATH_MAX_BYTES, "%s%s%s%s", o->dir, outputs_slash(o), stem,
                            extension) < PATH_MAX_BYTES;
}

/* ---- rotation ---- */

struct stems {
    VEC(struct str) names; /* each owned */
};

static bool is_number(struct str text)
{
    uint64_t value;
    return str_u64(text, &value);
}

static bool begins_as(struct str name, struct str form)
{
    bool does = name.len >= form.len;
    for (size_t i = 0; does && i < form.len; i++) {
        does = form.ptr[i] == '0' ? ascii_is_digit(name.ptr[i]) : name.ptr[i] == form.ptr[i];
    }
    return does;
}

/* "profile_" and a time in one of the two forms; 0 for every other name. */
static size_t time_bytes(struct str name)
{
    struct str plain = STR("profile_0000-00-00T000000Z"), colons = STR("profile_0000-00-00T00:00:00");
    return begins_as(name, plain) ? plain.len : begins_as(name, colons) ? colons.len : 0;
}

/* The stem of a file of our naming: the above and, for several in one second, "-N"; 0 for every other name. *rest is
 * what follows. */
static size_t stem_bytes(struct str name, struct str *rest)
{
    size_t time = time_bytes(name), dot = str_find(name, '.');
    if (time == 0) {
        return 0;
    }
    struct str number = str_sub(name, time, dot - time);
    if (number.len > 0 && (number.ptr[0] != '-' || !is_number(str_sub(number, 1, number.len)))) {
        return 0;
    }
    *rest = str_sub(name, dot, name.len);
    return dot;
}

enum { TYPE_MAX_BYTES = 40 };

/* ".pprof", or of what a runtime made ".heap.pprof", ".metrics.json" and ".go.trace". */
static bool is_ours(struct str extension)
{
    struct str rest = str_sub(extension, 1, extension.len), type = str_cut(&rest, '.');
    if (type.len <= TYPE_MAX_BYTES && (str_eq(rest, STR("json")) || str_eq(rest, STR("trace")))) {
        return str_starts(type, rest.ptr[0] == 'j' ? STR("metrics") : STR("go"));
    }
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        struct str ending = str_of(encoders[i]->extension);
        bool is_typed = rest.len > 0 && type.len <= TYPE_MAX_BYTES && str_eq(rest, str_sub(ending, 1, ending.len));
        if (encoders[i]->link != NULL && (is_typed || str_eq(extension, ending))) {
            return true;
        }
    }
    return false;
}

static bool knows(const struct stems *stems, struct str name)
{
    vec_each(&stems->names, known)
    {
        if (str_eq(*known, name)) {
            return true;
        }
    }
    return false;
}

static void note_stem(void *context, const char *file)
{
    struct stems *stems = context;
    struct str name = str_of(file), rest;
    name.len = stem_bytes(name, &rest);
    if (name.len == 0 || !is_ours(rest) || knows(stems, name)) {
        return;
    }
    char *copy = malloc(name.len + 1);
    struct str *place = copy == NULL ? NULL : vec_push(&stems->names);
    if (place == NULL) {
        free(copy);
        return;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    *place = (struct str){copy, name.len};
}

static uint64_t digits_of(struct str text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.len; i++) {
        number = ascii_is_digit(text.ptr[i]) ? number * 10 + (uint64_t)(text.ptr[i] - '0') : number;
    }
    return number;
}

/* By time, whichever its form, then by number. */
static int by_age(const void *left, const void *right)
{
    const struct str *a = left, *b = right;
    size_t a_time = time_bytes(*a), b_time = time_bytes(*b);
    uint64_t a_key = digits_of(str_sub(*a, 0, a_time)), b_key = digits_of(str_sub(*b, 0, b_time));
    if (a_key == b_key) {
        a_key = digits_of(str_sub(*a, a_time, a->len));
        b_key = digits_of(str_sub(*b, b_time, b->len));
    }
    return a_key < b_key ? -1 : a_key > b_key;
}

struct set {
    const struct outputs *o;
    struct str stem;
};

static void remove_of_set(void *context, const char *file)
{
    const struct set *set = context;
    struct str name = str_of(file), rest;
    char path[PATH_MAX_BYTES];
    name.len = stem_bytes(name, &rest);
    if (str_eq(name, set->stem) && is_ours(rest) && path_of(set->o, file, "", path)) {
        (void)file_remove(path, NULL);
    }
}

struct leftovers {
    const struct outputs *o;
    struct str oldest; /* set that stays */
};

/* A killed run's temporary file of a set that is gone. */
static void remove_leftover(void *context, const char *file)
{
    const struct leftovers *l = context;
    struct str name = str_of(file), stem = name, rest;
    char path[PATH_MAX_BYTES];
    stem.len = stem_bytes(name, &rest);
    if (stem.len > 0 && str_ends(rest, STR(".tmp")) && by_age(&stem, &l->oldest) < 0 &&
        path_of(l->o, file, "", path)) {
        (void)file_remove(path, NULL);
    }
}

static void remove_old_sets(const struct outputs *o, const char *newest)
{
    struct stems stems = {0};
    if (o->max_sets > 0 && file_list(o->dir, note_stem, &stems, NULL) && stems.names.len > 0) {
        qsort(stems.names.at, stems.names.len, sizeof *stems.names.at, by_age);
        size_t excess = stems.names.len > o->max_sets ? stems.names.len - o->max_sets : 0;
        struct leftovers leftovers = {o, stems.names.at[excess]};
        for (size_t i = 0; excess > 0 && i < stems.names.len; i++) {
            /* a clock that was set back must not cost what was just written */
            if (!str_eq(stems.names.at[i], str_of(newest))) {
                (void)file_list(o->dir, remove_of_set, &(struct set){o, stems.names.at[i]}, NULL);
                excess--;
            }
        }
        (void)file_list(o->dir, remove_leftover, &leftovers, NULL);
    }
    vec_each(&stems.names, name)
    {
        free((char *)(uintptr_t)name->ptr);
    }
    vec_release(&stems.names);
}

/* Of a run that is bounded: what it wrote itself, and never the newest. */
static bool bound_own(struct outputs *o, const struct outputs_written *written)
{
    struct outputs_set *set = o->bounded ? vec_push(&o->own) : NULL;
    size_t gone = 0;
    if (set == NULL) {
        return false;
    }
    memcpy(set->stem, written->stem, sizeof set->stem);
    set->bytes = written->bytes;
    o->own_bytes += set->bytes;
    while (gone + 1 < o->own.len && (o->own.len - gone > OUTPUTS_RUN_SETS || o->own_bytes > OUTPUTS_RUN_BYTES)) {
        const struct set old = {o, str_of(o->own.at[gone].stem)};
        (void)file_list(o->dir, remove_of_set, (void *)&old, NULL);
        o->own_bytes -= o->own.at[gone++].bytes;
    }
    o->own.len -= gone;
    memmove(o->own.at, o->own.at + gone, o->own.len * sizeof o->own.at[0]);
    return gone > 0;
}

/* ---- writing ---- */

/* Its form is told apart by time_bytes. */
static void put_time(const struct outputs *o, uint64_t wall_ns, char out[static TIME_TEXT_MAX])
{
    time_iso_seconds(wall_ns, out);
    if (o->names == FILE_NAMES_GPROFILER) {
        return;
    }
    char *put = out;
    for (const char *c = out; *c != '\0'; c++) {
        if (*c != ':') {
            *put++ = *c;
        }
    }
    memcpy(put, "Z", 2);
}

static void choose_stem(const struct outputs *o, uint64_t end_wall_ns, char stem[static OUTPUTS_STEM_MAX])
{
    char time[TIME_TEXT_MAX], path[PATH_MAX_BYTES];
    put_time(o, end_wall_ns, time);
    snprintf(stem, OUTPUTS_STEM_MAX, "profile_%s", time);
    for (unsigned n = 2; n < SAME_SECOND_MAX; n++) {
        bool taken = false;
        for (unsigned i = 0; encoders[i] != NULL && !taken; i++) {
            taken = path_of(o, stem, encoders[i]->extension, path) && file_exists(path);
        }
        if (!taken) {
            return;
        }
        snprintf(stem, OUTPUTS_STEM_MAX, "profile_%s-%u", time, n);
    }
}

/* A run that ends a second into a window leaves an empty one, which nobody wants to look at. */
static bool is_worth_a_link(const struct outputs *o, const struct profile *p)
{
    enum { LITTLE_SHARE = 100 };
    uint64_t length_ns = p->meta.end_wall_ns - p->meta.start_wall_ns;
    return !o->linked || length_ns >= o->window_ns || profile_sum(p).cpu_ns > length_ns / LITTLE_SHARE;
}

static bool create(const struct outputs *o, const char *name, struct file_writer *writer, struct err *err)
{
    char path[PATH_MAX_BYTES];
    return (path_of(o, name, "", path) || err_set(err, ERR_LIMIT, 0, "the path %.60s... is too long", o->dir)) &&
           file_create_atomic(writer, path, err);
}

static bool write_one(const struct outputs *o, struct profile *p, const char *name, const struct encoder *encoder,
                      uint64_t *bytes, struct err *err)
{
    struct file_writer writer;
    if (!create(o, name, &writer, err)) {
        return false;
    }
    struct sink sink = file_sink(&writer);
    if (!encoder->write(p, &o->rules, &sink, err)) {
        file_abandon(&writer);
        return false;
    }
    *bytes += writer.put;
    return file_commit(&writer, err);
}

static bool write_made(const struct outputs *o, const char *name, struct str file, uint64_t *bytes, struct err *err)
{
    struct file_writer writer;
    if (!create(o, name, &writer, err)) {
        return false;
    }
    struct sink sink = file_sink(&writer);
    if (!sink_write(&sink, file.ptr, file.len, err)) {
        file_abandon(&writer);
        return false;
    }
    *bytes += file.len;
    return file_commit(&writer, err);
}

/* What runtimes made. False: one of them could not be written. */
static bool write_of_runtimes(const struct outputs *o, const struct profile *p, struct outputs_written *written,
                              struct err *err)
{
    const struct runtime_profiles *made = &p->of_runtimes;
    bool good = true, are_several = false;
    vec_each(&made->all, one)
    {
        are_several = are_several || one->pid != made->all.at[0].pid;
    }
    vec_each(&made->all, one)
    {
        char name[128], pid[16] = "";
        struct str ending = str_of(one->type), type = str_cut(&ending, '.');
        if (are_several) {
            snprintf(pid, sizeof pid, "-%u", one->pid);
        }
        snprintf(name, sizeof name, "%s.%.*s%s.%s", written->stem, (int)type.len, type.ptr, pid,
                 ending.len > 0 ? one->type + type.len + 1 : "pprof");
        good = write_made(o, name, buf_slice(&one->bytes), &written->bytes, good ? err : NULL) && good;
    }
    return good;
}

/* A profile in all formats: those that were written. */
static unsigned write_all(const struct outputs *o, struct profile *p, struct outputs_written *written, struct err *err)
{
    unsigned done = 0;
    bool is_linked = is_worth_a_link(o, p);
    char name[128];
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        if ((o->formats >> i & 1) == 0) {
            continue;
        }
        snprintf(name, sizeof name, "%s%s", written->stem, encoders[i]->extension);
        if (write_one(o, p, name, encoders[i], &written->bytes, err) &&
            (!is_linked || file_link(o->dir, encoders[i]->link, name, err))) {
            done |= 1u << i;
        } else {
            err = NULL; /* the first failure is reported */
        }
    }
    return done;
}

bool outputs_write(struct outputs *o, struct profile *p, struct outputs_written *written,
                   struct err *err)
{
    *written = (struct outputs_written){0};
    if (!outputs_try(o, err)) {
        return false;
    }
    choose_stem(o, p->meta.end_wall_ns, written->stem);
    written->formats = write_all(o, p, written, err);
    bool good = written->formats == o->formats;
    if ((o->formats & encoder_bit("pprof")) != 0) {
        good = write_of_runtimes(o, p, written, good ? err : NULL) && good;
    }
    o->linked = true;
    remove_old_sets(o, written->stem);
    written->removed = bound_own(o, written);
    return good;
}

static bool write_run_one(const struct outputs *o, struct profile *whole, const struct outputs_written *only,
                          const struct encoder *encoder, const char *name, struct err *err)
{
    uint64_t bytes = 0;
    char window[OUTPUTS_STEM_MAX + 32];
    snprintf(window, sizeof window, "%s%s", only->stem, encoder->extension);
    return whole != NULL ? write_one(o, whole, name, encoder, &bytes, err) : file_link(o->dir, name, window, err);
}

bool outputs_write_run(struct outputs *o, struct profile *whole, const struct outputs_written *only,
                       char name[static OUTPUTS_STEM_MAX], struct err *err)
{
    bool ok = true, is_page = false;
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        char own[OUTPUTS_STEM_MAX];
        if (((whole != NULL ? o->formats : only->formats) >> i & 1) == 0) { /* no link to what could not be written */
            continue;
        }
        snprintf(own, sizeof own, "run%s", encoders[i]->link + strlen("last"));
        ok = write_run_one(o, whole, only, encoders[i], own, ok ? err : NULL) && ok;
        if (!is_page) {
            memcpy(name, own, sizeof own);
        }
        is_page |= encoders[i]->is_page;
    }
    return ok;
}
