#include "symbol/namer.h"
#include "symbol/demangle.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RAW_NAME_MAX = 8 * ELF_NAME_MAX,
    PLACE_NAME_MAX = 256 + 64, /* "[file+0x…]"; a path's last part is at most 255 bytes */
    KALLSYMS_CHUNK_BYTES = 64 * 1024,
    NAMES_SHARE = 4, /* of max_bytes, 1/4 is for names */
};

struct namer_image {
    uint64_t key;
    uint64_t used_run; /* the last run that asked for it */
    struct symbols symbols;
    char build_id[2 * ELF_BUILD_ID_MAX + 1];
    char *problem; /* why there are no symbols; null: there are */
};

/* The name of the function at `start` in an image: two texts, one after the other. */
struct namer_name {
    uint64_t image, start;
    uint32_t text;                  /* in name_text */
    uint32_t readable_len, raw_len; /* raw_len 0: the symbol's name is the readable one */
};

/* An unnamed frame in the order of work: images one after the other, addresses rising. */
struct job {
    uint64_t image, address;
    uint32_t frame;
};

struct jobs {
    VEC(struct job) list;
};

void namer_init(struct namer *n, const struct symbol_source *source, size_t max_bytes)
{
    *n = (struct namer){.source = source, .max_bytes = max_bytes};
    buf_init(&n->name_text, max_bytes / NAMES_SHARE);
    buf_init(&n->raw, RAW_NAME_MAX);
    buf_init(&n->readable, DEMANGLE_OUTPUT_MAX + DEMANGLE_INPUT_MAX);
}

static void release_image(struct namer_image *image)
{
    symbols_release(&image->symbols);
    free(image->problem);
}

void namer_release(struct namer *n)
{
    vec_each(&n->images, image) {
        release_image(image);
    }
    vec_release(&n->images);
    vec_release(&n->names);
    map_release(&n->name_ids);
    buf_release(&n->name_text);
    buf_release(&n->raw);
    buf_release(&n->readable);
}

static size_t tables_bytes(const struct namer *n)
{
    size_t bytes = n->images.cap * sizeof *n->images.at;
    for (size_t i = 0; i < n->images.len; i++) {
        bytes += symbols_bytes(&n->images.at[i].symbols);
    }
    return bytes;
}

static size_t names_bytes(const struct namer *n)
{
    return n->names.cap * sizeof *n->names.at + n->name_ids.cap * sizeof *n->name_ids.slot +
           n->name_text.cap;
}

size_t namer_bytes(const struct namer *n)
{
    return tables_bytes(n) + names_bytes(n) + n->raw.cap + n->readable.cap;
}

/* ---- images ---- */

static struct namer_image *find_image(const struct namer *n, uint64_t key)
{
    for (size_t i = 0; i < n->images.len; i++) {
        if (n->images.at[i].key == key) {
            return &n->images.at[i];
        }
    }
    return NULL;
}

const char *namer_image_problem(const struct namer *n, uint64_t image)
{
    const struct namer_image *found = find_image(n, image);
    return found == NULL ? NULL : found->problem;
}

/* Drops the tables not asked for the longest, until `max_bytes` are left or none is. */
static void shrink_tables(struct namer *n, size_t max_bytes)
{
    while (n->images.len > 0 && tables_bytes(n) > max_bytes) {
        size_t oldest = 0;
        for (size_t i = 1; i < n->images.len; i++) {
            if (n->images.at[i].used_run < n->images.at[oldest].used_run) {
                oldest = i;
            }
        }
        release_image(&n->images.at[oldest]);
        vec_swap_out(&n->images, oldest);
        n->stats.images_dropped++;
    }
}

/* An image for as long as its frames are named. */
struct opened {
    struct symbol_image source;
    struct elf elf;
    bool is_open, is_elf;
    struct err err; /* why it is not open, or no ELF */
};

static void open_source(struct namer *n, uint64_t key, struct opened *o)
{
    o->is_open = n->source->open(n->source->context, key, &o->source, &o->err);
    o->is_elf = o->is_open && o->source.kind == SYMBOL_IMAGE_ELF &&
                elf_open(&o->elf, &o->source.file, &o->err);
}

static void close_source(struct namer *n, struct opened *o)
{
    if (o->is_elf) {
        elf_release(&o->elf);
    }
    if (o->is_open) {
        n->source->close(n->source->context, &o->source);
    }
}

static bool load_kallsyms(struct symbols *symbols, struct symbol_image *source, struct err *err)
{
    struct kallsyms k;
    char *chunk = malloc(KALLSYMS_CHUNK_BYTES);
    bool good = chunk != NULL || err_set(err, ERR_MEMORY, 0, "no memory to read kernel symbols");
    kallsyms_init(&k, symbols);
    for (size_t len = 1; good && len > 0;) {
        good = source->text(source->text_context, chunk, KALLSYMS_CHUNK_BYTES, &len, err) &&
               (len == 0 || kallsyms_feed(&k, chunk, len, err));
    }
    free(chunk);
    return good && kallsyms_finish(&k, err);
}

static bool load_symbols(struct symbols *symbols, struct opened *o, struct err *err)
{
    if (o->is_elf) {
        return symbols_load_elf(symbols, &o->elf, err);
    }
    if (o->is_open && o->source.kind == SYMBOL_IMAGE_KALLSYMS) {
        return load_kallsyms(symbols, &o->source, err);
    }
    *err = o->err;
    return false;
}

static struct namer_image *load_image(struct namer *n, uint64_t key, struct opened *o)
{
    struct err err = {0};
    struct namer_image *image = vec_push(&n->images);
    if (image == NULL) {
        return NULL;
    }
    image->key = key;
    symbols_init(&image->symbols, n->max_bytes - n->max_bytes / NAMES_SHARE);
    if (o->is_elf) {
        elf_build_id_text(&o->elf, image->build_id);
    }
    if (load_symbols(&image->symbols, o, &err)) {
        n->stats.images_loaded++;
    } else {
        image->problem = strdup(err.text);
        n->stats.images_failed++;
    }
    return image;
}

/* ---- names already made ---- */

static uint64_t name_key(uint64_t image, uint64_t start)
{
    return hash_u64(image * 0x9e3779b97f4a7c15u ^ start);
}

static const struct namer_name *find_name(const struct namer *n, uint64_t image, uint64_t start)
{
    for (struct map_slot *slot = map_find(&n->name_ids, name_key(image, start)); slot != NULL;
         slot = map_next(&n->name_ids, slot)) {
        const struct namer_name *name = &n->names.at[slot->value];
        if (name->image == image && name->start == start) {
            return name;
        }
    }
    return NULL;
}

/* All at once: what a busy program uses is back after one window. */
static void forget_names_if_many(struct namer *n, size_t more_bytes)
{
    if (n->name_text.len + more_bytes > n->name_text.max ||
        names_bytes(n) > n->max_bytes / NAMES_SHARE) {
        vec_clear(&n->names);
        map_clear(&n->name_ids);
        buf_clear(&n->name_text);
    }
}

/* Keeps the two texts; null when memory ends. */
static const struct namer_name *keep_name(struct namer *n, uint64_t image, uint64_t start,
                                          struct str readable, struct str raw)
{
    forget_names_if_many(n, readable.len + raw.len);
    size_t text = n->name_text.len;
    buf_str(&n->name_text, readable);
    buf_str(&n->name_text, raw);
    struct namer_name *name = n->name_text.failed ? NULL : vec_push(&n->names);
    if (name == NULL || !map_add(&n->name_ids, name_key(image, start), n->names.len - 1)) {
        n->names.len -= name != NULL;
        n->name_text.len = text;
        n->name_text.failed = false;
        return NULL;
    }
    *name = (struct namer_name){image, start, (uint32_t)text, (uint32_t)readable.len,
                                (uint32_t)raw.len};
    return name;
}

/* Reads and demangles the name of a function that is met for the first time. */
static const struct namer_name *make_name(struct namer *n, const struct namer_image *image,
                                          struct elf *elf, const struct symbol_hit *hit)
{
    buf_clear(&n->raw);
    buf_clear(&n->readable);
    if (!symbols_name(&image->symbols, elf, hit, &n->raw)) {
        return NULL;
    }
    struct str raw = buf_slice(&n->raw);
    bool differs = demangle(raw, &n->readable);
    return keep_name(n, image->key, hit->start, differs ? buf_slice(&n->readable) : raw,
                     differs ? raw : STR(""));
}

/* ---- frames ---- */

static bool name_frame(struct namer *n, struct profile *p, uint32_t frame, struct str name,
                       struct str raw, struct err *err)
{
    profile_name_frame(p, frame, name, raw);
    n->stats.frames++;
    return p->frames.at[frame].name != 0 ||
           err_set(err, ERR_LIMIT, 0, "the profile has no room for the names of its frames");
}

static struct str last_part(struct str path)
{
    size_t slash = str_find_last(path, '/');
    return slash == path.len ? path : str_sub(path, slash + 1, path.len);
}

/* A name that is the place itself. */
static bool name_by_place(struct namer *n, struct profile *p, uint32_t frame, struct err *err)
{
    const struct frame *f = &p->frames.at[frame];
    char text[PLACE_NAME_MAX];
    n->stats.without_symbol++;
    if (f->kind == FRAME_KERNEL) {
        return name_frame(n, p, frame, STR("[kernel]"), STR("[kernel]"), err);
    }
    struct str file = last_part(profile_text(p, p->modules.at[f->module].path));
    bool bracketed = file.len > 2 && file.ptr[0] == '[' && file.ptr[file.len - 1] == ']';
    file = file.len == 0 ? STR("unknown") : bracketed ? str_sub(file, 1, file.len - 2) : file;
    int len = snprintf(text, sizeof text, "[%.*s+0x%llx]", (int)(file.len < 255 ? file.len : 255),
                       file.ptr, (unsigned long long)f->address);
    struct str name = {text, (size_t)len};
    return name_frame(n, p, frame, name, name, err);
}

static bool name_by_symbol(struct namer *n, struct profile *p, const struct namer_image *image,
                           struct elf *elf, const struct job *job, struct err *err)
{
    struct symbol_hit hit;
    if (image == NULL || !symbols_find(&image->symbols, job->address, &hit)) {
        return name_by_place(n, p, job->frame, err);
    }
    const struct namer_name *name = find_name(n, image->key, hit.start);
    if (name == NULL) {
        name = make_name(n, image, elf, &hit);
    }
    if (name == NULL) {
        return name_by_place(n, p, job->frame, err);
    }
    struct str readable = str_sub(buf_slice(&n->name_text), name->text, name->readable_len);
    struct str raw = str_sub(buf_slice(&n->name_text), (size_t)name->text + name->readable_len,
                             name->raw_len);
    return name_frame(n, p, job->frame, readable, raw.len > 0 ? raw : readable, err);
}

static void set_build_id(struct profile *p, uint32_t module, const char *build_id)
{
    struct module *m = &p->modules.at[module];
    if (module != 0 && m->build_id == 0 && build_id[0] != '\0') {
        uint32_t id = profile_cstring(p, build_id);
        p->modules.at[module].build_id = id;
    }
}

static bool name_jobs(struct namer *n, struct profile *p, const struct namer_image *image,
                      struct elf *elf, const struct job *jobs, size_t count, struct err *err)
{
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        if (image != NULL) {
            set_build_id(p, p->frames.at[jobs[i].frame].module, image->build_id);
        }
        good = name_by_symbol(n, p, image, elf, &jobs[i], err);
    }
    return good;
}

/* Names the frames of one image. The file is opened even when its table is here, for the names;
 * when it cannot be opened any more, there still are the names made before. */
static bool name_image(struct namer *n, struct profile *p, const struct job *jobs, size_t count,
                       struct err *err)
{
    struct opened o = {0};
    if (jobs[0].image == 0) {
        return name_jobs(n, p, NULL, NULL, jobs, count, err);
    }
    open_source(n, jobs[0].image, &o);
    struct namer_image *image = find_image(n, jobs[0].image);
    if (image == NULL) {
        image = load_image(n, jobs[0].image, &o);
    }
    if (image != NULL) {
        image->used_run = n->run;
    }
    bool good = name_jobs(n, p, image, o.is_elf ? &o.elf : NULL, jobs, count, err);
    close_source(n, &o);
    return good;
}

static int by_image_then_address(const void *left, const void *right)
{
    const struct job *a = left, *b = right;
    if (a->image != b->image) {
        return a->image < b->image ? -1 : 1;
    }
    return (a->address > b->address) - (a->address < b->address);
}

static bool collect_jobs(const struct profile *p, struct jobs *jobs, struct err *err)
{
    for (size_t i = 1; i < p->frames.len; i++) {
        const struct frame *f = &p->frames.at[i];
        if (f->name != 0) {
            continue;
        }
        struct job *job = vec_push(&jobs->list);
        if (job == NULL) {
            return err_set(err, ERR_MEMORY, 0, "no memory to name %zu frames", p->frames.len);
        }
        *job = (struct job){p->modules.at[f->module].image, f->address, (uint32_t)i};
    }
    return true;
}

static bool run_jobs(struct namer *n, struct profile *p, const struct jobs *jobs, struct err *err)
{
    bool good = true;
    for (size_t i = 0; good && i < jobs->list.len;) {
        size_t end = i + 1;
        while (end < jobs->list.len && jobs->list.at[end].image == jobs->list.at[i].image) {
            end++;
        }
        good = name_image(n, p, &jobs->list.at[i], end - i, err);
        shrink_tables(n, n->max_bytes - n->max_bytes / NAMES_SHARE);
        i = end;
    }
    return good;
}

bool namer_run(struct namer *n, struct profile *p, struct err *err)
{
    struct jobs jobs = {0};
    n->run++;
    bool good = collect_jobs(p, &jobs, err);
    if (good && jobs.list.len > 0) {
        qsort(jobs.list.at, jobs.list.len, sizeof *jobs.list.at, by_image_then_address);
        good = run_jobs(n, p, &jobs, err);
    }
    vec_release(&jobs.list);
    return good;
}
