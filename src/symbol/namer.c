/* Names a profile's frames, image by image and in the order of addresses, so that a run opens each file once, and only
 * if what was kept of earlier runs is not enough. Names come from the code itself (runtimes), else from DWARF while
 * there is time, else from symbols, else from the place. Of the tables those not used for the longest time go first. */
#include "symbol/namer.h"

#include <stdio.h>
#include <stdlib.h>

#include "symbol/demangle.h"
#include "symbol/inlines.h"

enum {
    RAW_NAME_MAX = 8 * ELF_NAME_MAX,
    PLACE_NAME_MAX = 256 + 64, /* "[file+0x…]"; a path's last part is at most 255 bytes */
    KALLSYMS_CHUNK_BYTES = 64 * 1024,
    NAMES_SHARE = 4, /* of max_bytes, 1/4 is for names, and as much for lines where wanted */
    CHAIN_MAX_BYTES = PROFILE_INLINES_MAX * 2 * (DEMANGLE_OUTPUT_MAX + DEMANGLE_INPUT_MAX),
};

struct namer_image {
    uint64_t key;
    uint64_t used_run; /* the last run that asked for it */
    struct symbols symbols;
    bool symbols_loaded; /* or could not be: */
    bool has_symbols;
    bool is_partial;     /* only the functions that were asked for in loaded_run */
    uint64_t loaded_run;
    bool has_code;
    char build_id[2 * ELF_BUILD_ID_MAX + 1];
    char *problem; /* why there are no symbols, or none of its debug file; null: all is well */
    char *lines_problem; /* why lines are missing; null: all is well */
    bool has_no_lines;   /* they are not asked for any more */
    bool problem_reported, lines_reported;
};

/* The name of the function at `start` in an image, or with image 0 of an inlined one with the
 * linkage name of which `start` is the hash: two texts, one after the other. */
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
    buf_init(&n->chain, CHAIN_MAX_BYTES);
    kept_lines_init(&n->kept, max_bytes / NAMES_SHARE);
}

static void release_image(struct namer_image *image)
{
    symbols_release(&image->symbols);
    free(image->problem);
    free(image->lines_problem);
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
    buf_release(&n->chain);
    kept_lines_release(&n->kept);
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

static size_t tables_max_bytes(const struct namer *n)
{
    return n->max_bytes - n->max_bytes / NAMES_SHARE * (n->inlines ? 2 : 1);
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

bool namer_next_problem(struct namer *n, struct namer_problem *out)
{
    vec_each(&n->images, image)
    {
        if (image->problem != NULL && !image->problem_reported) {
            image->problem_reported = true;
            *out = (struct namer_problem){image->key, image->problem, image->has_symbols, false};
            return true;
        }
        if (image->lines_problem != NULL && !image->lines_reported) {
            image->lines_reported = true;
            *out = (struct namer_problem){image->key, image->lines_problem, image->has_symbols, true};
            return true;
        }
    }
    return false;
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
    }
}

void namer_drop(struct namer *n, bool (*is_gone)(void *context, uint64_t image), void *context)
{
    for (size_t i = n->images.len; i-- > 0;) {
        if (is_gone(context, n->images.at[i].key)) {
            release_image(&n->images.at[i]);
            vec_swap_out(&n->images, i);
        }
    }
}

/* An image for as long as its frames are named; each part is opened when it is first needed. */
struct opened {
    struct namer *namer;
    uint64_t key;
    const struct job *jobs; /* what this run asks of it */
    size_t job_count;
    bool tried, is_open, is_elf;
    struct symbol_image source;
    struct symbol_files files;
    bool code_tried;
    struct code_source code; /* of the file */
    bool inlines_tried;
    struct inlines *inlines;
    VEC(uint64_t) addresses; /* that it is asked for */
    struct err err; /* why it is not open, or no ELF */
};

static bool open_source(struct opened *o)
{
    struct namer *n = o->namer;
    if (!o->tried) {
        o->tried = true;
        o->is_open = n->source->open(n->source->context, o->key, &o->source, &o->err);
        o->is_elf = o->is_open && o->source.kind == SYMBOL_IMAGE_ELF &&
                    symbol_files_open(&o->files, &o->source.file, o->key, n->debug, &o->err);
    }
    return o->is_open;
}

/* Null: it is not open, or no ELF. */
static struct symbol_files *files_of(struct opened *o)
{
    (void)open_source(o);
    return o->is_elf ? &o->files : NULL;
}

/* Whether the code brings names of its own. */
static bool has_code(struct opened *o)
{
    const struct symbol_source *source = o->namer->source;
    if (!o->code_tried && source->code != NULL && files_of(o) != NULL) {
        (void)source->code(source->context, &o->files.elf[FILE_MAIN], &o->code);
    }
    o->code_tried = true;
    return o->code.find != NULL;
}

static void close_source(struct opened *o)
{
    struct namer *n = o->namer;
    vec_release(&o->addresses);
    code_source_close(&o->code);
    if (o->is_elf) {
        symbol_files_release(&o->files);
    }
    if (o->is_open) {
        n->source->close(n->source->context, &o->source);
    }
}

/* The image's addresses of this run, rising; null: there is no memory. */
static uint64_t *addresses_of(const struct opened *o)
{
    uint64_t *address = calloc(o->job_count, sizeof *address);
    for (size_t i = 0; address != NULL && i < o->job_count; i++) {
        address[i] = o->jobs[i].address;
    }
    return address;
}

/* All functions, or with `only` those at the addresses of this run; *partial tells which. */
static bool load_kallsyms(struct symbols *symbols, struct opened *o, bool only, bool *partial,
                          struct err *err)
{
    struct kallsyms k;
    char *chunk = malloc(KALLSYMS_CHUNK_BYTES);
    uint64_t *address = only ? addresses_of(o) : NULL;
    bool good = chunk != NULL || err_set(err, ERR_MEMORY, 0, "no memory to read kernel symbols");
    kallsyms_init(&k, symbols);
    *partial = address != NULL && kallsyms_only(&k, address, o->job_count);
    for (size_t len = 1; good && len > 0 && !k.few.over;) {
        good = o->source.text(o->source.text_context, chunk, KALLSYMS_CHUNK_BYTES, &len, err) &&
               (len == 0 || kallsyms_feed(&k, chunk, len, err));
    }
    bool ended = kallsyms_finish(&k, good ? err : NULL);
    if (!good) {
        symbols_release(symbols);
    }
    free(address);
    free(chunk);
    return good && ended;
}

static bool load_files(struct symbols *symbols, struct opened *o, bool *partial, struct err *err)
{
    uint64_t *address = addresses_of(o);
    symbols_want(symbols, address, o->job_count);
    bool good = symbols_load_files(symbols, &o->files, err);
    symbols_want(symbols, NULL, 0);
    free(address);
    *partial = symbols->is_few;
    return good;
}

static bool load_symbols(struct symbols *symbols, struct opened *o, bool only, bool *partial,
                         struct err *err)
{
    *partial = false;
    if (files_of(o) != NULL) {
        return load_files(symbols, o, partial, err);
    }
    if (o->is_open && o->source.kind == SYMBOL_IMAGE_KALLSYMS) {
        return load_kallsyms(symbols, o, only, partial, err);
    }
    *err = o->err;
    return false;
}

/* The table of an image, loaded at the first address that nothing before it in order tells. */
static const struct symbols *symbols_of(struct namer_image *image, struct opened *o)
{
    struct err err = {0};
    struct namer *n = o->namer;
    if (image->symbols_loaded) {
        return &image->symbols;
    }
    image->symbols_loaded = true;
    image->has_symbols = load_symbols(&image->symbols, o, true, &image->is_partial, &err);
    image->is_partial = image->is_partial && image->has_symbols;
    image->loaded_run = n->run;
    const char *problem = image->has_symbols && o->is_elf ? o->files.problem : err.text;
    image->problem = problem[0] != '\0' ? strdup(problem) : NULL;
    return &image->symbols;
}

/* The kernel's table has the functions of the run that loaded it: one run is all that most profilers make, and what is
 * missing is 1.7 MB and a third of the time. The first address that is not in there gets them all. A file's table that
 * is too large never has all: it gets those of this run. Where that fails, what was there is kept. */
static void load_rest(struct namer_image *image, struct opened *o)
{
    struct symbols all;
    struct err err = {0};
    symbols_init(&all, image->symbols.max_bytes);
    all.is_few = image->symbols.is_few;
    if (!image->symbols.is_few) { /* a text is read once */
        close_source(o);
        *o = (struct opened){.namer = o->namer, .key = o->key, .jobs = o->jobs, .job_count = o->job_count};
    }
    (void)open_source(o);
    image->loaded_run = o->namer->run;
    image->has_symbols = load_symbols(&all, o, false, &image->is_partial, &err);
    if (image->has_symbols) {
        symbols_release(&image->symbols);
        image->symbols = all;
    } else if (image->problem == NULL) {
        image->problem = strdup(err.text);
    }
}

static bool find_in_table(struct namer_image *image, struct opened *o, uint64_t address, struct symbol_hit *out)
{
    if (symbols_find(symbols_of(image, o), address, out)) {
        return true;
    }
    if (!image->is_partial || image->loaded_run == o->namer->run || symbols_knows(&image->symbols, address)) {
        return false;
    }
    load_rest(image, o);
    return symbols_find(&image->symbols, address, out);
}

/* Where the function begins, if unwind tables know. */
static bool function_start(const struct namer *n, uint64_t image, uint64_t address, uint64_t *start)
{
    uint64_t limit;
    const struct symbol_source *source = n->source;
    return source->function != NULL && image != 0 && source->function(source->context, image, address, start, &limit) &&
           *start <= address;
}

/* A symbol without a size names nothing of a function that begins behind it. */
static bool find_symbol(struct namer_image *image, struct opened *o, uint64_t address,
                        struct symbol_hit *out)
{
    uint64_t start;
    return find_in_table(image, o, address, out) &&
           (out->sized || !function_start(o->namer, o->key, address, &start) || start <= out->start);
}

static struct namer_image *add_image(struct namer *n, struct opened *o)
{
    struct namer_image *image = vec_push(&n->images);
    if (image == NULL) {
        return NULL;
    }
    image->key = o->key;
    symbols_init(&image->symbols, tables_max_bytes(n));
    if (files_of(o) != NULL) {
        elf_build_id_text(&o->files.elf[FILE_MAIN], image->build_id);
        image->has_code = has_code(o);
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

static struct str readable_of(const struct namer *n, const struct namer_name *name)
{
    return str_sub(buf_slice(&n->name_text), name->text, name->readable_len);
}

/* As in the file; the same as the readable one where it is plain. */
static struct str raw_of(const struct namer *n, const struct namer_name *name)
{
    struct str raw = str_sub(buf_slice(&n->name_text), (size_t)name->text + name->readable_len,
                             name->raw_len);
    return raw.len > 0 ? raw : readable_of(n, name);
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

/* The name of a function, read and demangled when it is met for the first time; null when it cannot
 * be read. */
static const struct namer_name *symbol_name(struct namer *n, const struct namer_image *image,
                                            struct opened *o, const struct symbol_hit *hit)
{
    const struct namer_name *known = find_name(n, image->key, hit->start);
    if (known != NULL) {
        return known;
    }
    buf_clear(&n->raw);
    buf_clear(&n->readable);
    if (!symbols_name(&image->symbols, files_of(o), hit, &n->raw)) {
        return NULL;
    }
    struct str raw = buf_slice(&n->raw);
    bool differs = demangle(raw, &n->readable);
    return keep_name(n, image->key, hit->start, differs ? buf_slice(&n->readable) : raw,
                     differs ? raw : STR(""));
}

/* The same for a linkage name from elsewhere; null when it means nothing but itself. */
static const struct namer_name *linkage_name(struct namer *n, struct str linkage)
{
    uint64_t hash = str_hash(linkage);
    const struct namer_name *known = find_name(n, 0, hash);
    if (known != NULL && str_eq(raw_of(n, known), linkage)) {
        return known;
    }
    buf_clear(&n->readable);
    return demangle(linkage, &n->readable)
               ? keep_name(n, 0, hash, buf_slice(&n->readable), linkage)
               : NULL;
}

/* ---- frames ---- */

/* A name that is the place itself: the function, or all of its file where nobody knows functions. */
static struct str place_name(struct namer *n, const struct profile *p, const struct job *job,
                             char text[static PLACE_NAME_MAX])
{
    const struct frame *f = &p->frames.at[job->frame];
    if (f->kind == FRAME_KERNEL) {
        return STR("[kernel]");
    }
    struct str file = str_base_name(profile_text(p, p->modules.at[f->module].path));
    bool bracketed = file.len > 2 && file.ptr[0] == '[' && file.ptr[file.len - 1] == ']';
    file = file.len == 0 ? STR("unknown") : bracketed ? str_sub(file, 1, file.len - 2) : file;
    uint64_t start;
    int shown = (int)(file.len < 255 ? file.len : 255);
    int len = function_start(n, job->image, job->address, &start)
                  ? snprintf(text, PLACE_NAME_MAX, "[%.*s+0x%llx]", shown, file.ptr, (unsigned long long)start)
                  : snprintf(text, PLACE_NAME_MAX, "[%.*s]", shown, file.ptr);
    return (struct str){text, (size_t)len};
}

/* Innermost first, at least one. */
static bool name_frame(struct profile *p, uint32_t frame, const struct source_line *lines, size_t count,
                       struct err *err)
{
    profile_name_inlined(p, frame, lines, count);
    return p->frames.at[frame].name != 0 ||
           err_set(err, ERR_LIMIT, 0, "the profile has no room for the names of its frames");
}

static bool name_by_place(struct namer *n, struct profile *p, const struct job *job,
                          struct err *err)
{
    char text[PLACE_NAME_MAX];
    struct str place = place_name(n, p, job, text);
    struct source_line line = {.name = place, .system_name = place};
    return name_frame(p, job->frame, &line, 1, err);
}

static bool name_by_symbol(struct namer *n, struct profile *p, const struct namer_name *name,
                           const struct job *job, struct err *err)
{
    struct source_line line = {.name = readable_of(n, name), .system_name = raw_of(n, name)};
    return name_frame(p, job->frame, &line, 1, err);
}

/* ---- frames of code that brings its names ---- */

static bool name_by_code(struct profile *p, const struct code_lines *lines, const struct job *job, struct err *err)
{
    if (lines->kind != FRAME_NATIVE) {
        profile_set_kind(p, job->frame, lines->kind);
    }
    return name_frame(p, job->frame, lines->line, lines->count, err);
}

/* ---- frames with functions inlined at them ---- */

/* A text in n->chain, which moves while it grows. */
struct span {
    size_t at, len;
};

static struct span keep_span(struct namer *n, struct str text)
{
    struct span span = {n->chain.len, text.len};
    buf_str(&n->chain, text);
    return span;
}

static struct str text_of(const struct namer *n, struct span span)
{
    return str_sub(buf_slice(&n->chain), span.at, span.len);
}

/* Readable names and linkage names of a chain. */
struct spans {
    struct span readable[PROFILE_INLINES_MAX], raw[PROFILE_INLINES_MAX];
};

/* By the linkage name when it tells more than the plain one, which has no class and no
 * arguments. */
static void keep_line(struct namer *n, const struct source_line *line, struct spans *out, size_t i)
{
    const struct namer_name *name =
        line->system_name.len > 0 ? linkage_name(n, line->system_name) : NULL;
    struct str plain = line->name.len > 0 ? line->name : line->system_name;
    out->readable[i] = keep_span(n, name != NULL ? readable_of(n, name) : plain);
    out->raw[i] = keep_span(n, line->system_name.len > 0 ? line->system_name : plain);
}

/* The last function is called as its symbol is: other addresses of it may not have been looked
 * up. */
static void keep_last(struct namer *n, const struct profile *p, const struct namer_name *symbol,
                      const struct source_line *line, const struct job *job, struct spans *out,
                      size_t i)
{
    char text[PLACE_NAME_MAX];
    if (symbol != NULL) {
        out->readable[i] = keep_span(n, readable_of(n, symbol));
        out->raw[i] = keep_span(n, raw_of(n, symbol));
    } else if (line->name.len > 0 || line->system_name.len > 0) {
        keep_line(n, line, out, i);
    } else {
        out->readable[i] = out->raw[i] = keep_span(n, place_name(n, p, job, text));
    }
}

static bool name_by_lines(struct namer *n, struct profile *p, const struct namer_name *symbol,
                          struct source_line *lines, size_t count, const struct job *job,
                          struct err *err)
{
    struct spans spans;
    buf_clear(&n->chain);
    keep_last(n, p, symbol, &lines[count - 1], job, &spans, count - 1);
    for (size_t i = 0; i + 1 < count; i++) {
        keep_line(n, &lines[i], &spans, i);
    }
    for (size_t i = 0; i < count; i++) {
        lines[i].name = text_of(n, spans.readable[i]);
        lines[i].system_name = text_of(n, spans.raw[i]);
    }
    if (n->chain.failed) {
        return err_set(err, ERR_MEMORY, 0, "no memory for the names of inlined functions");
    }
    return name_frame(p, job->frame, lines, count, err);
}

static bool wants_lines(const struct namer *n, const struct namer_image *image)
{
    return n->inlines && n->clock != NULL && n->sandbox != NULL && !n->is_refused && !image->has_no_lines;
}

static bool named_by_code(struct opened *o, const struct namer_image *image, uint64_t address, struct code_lines *lines)
{
    return image->has_code && has_code(o) && code_source_find(&o->code, address, lines);
}

/* The addresses of this run that nothing else names with lines, each once. */
static void collect_addresses(struct opened *o, const struct namer_image *image)
{
    size_t count;
    struct code_lines by_code;
    struct source_line lines[PROFILE_INLINES_MAX];
    for (size_t i = 0; i < o->job_count; i++) {
        uint64_t address = o->jobs[i].address;
        bool asked = (i > 0 && o->jobs[i - 1].address == address) || named_by_code(o, image, address, &by_code) ||
                     kept_lines_find(&o->namer->kept, o->key, address, lines, &count);
        uint64_t *added = asked ? NULL : vec_push(&o->addresses);
        if (added != NULL) {
            *added = address;
        }
    }
}

static void note_lines_problem(struct namer_image *image, const struct err *err)
{
    if (image->lines_problem == NULL) {
        image->lines_problem = strdup(err->text);
    }
}

/* Null: there is no DWARF, or time is over. */
static struct inlines *inlines_of(struct opened *o, struct namer_image *image)
{
    struct namer *n = o->namer;
    struct err err = {0};
    if (o->inlines_tried || n->clock->mono_ns(n->clock->context) >= n->deadline_ns) {
        return o->inlines;
    }
    o->inlines_tried = true;
    if (files_of(o) == NULL) {
        return NULL;
    }
    collect_addresses(o, image);
    const struct inlines_request request = {&o->files, n->debug, o->key, n->sandbox, n->clock, o->addresses.at,
                                            o->addresses.len, n->deadline_ns, n->inlines_budget_ns};
    o->inlines = inlines_start(&request, &err);
    if (o->inlines == NULL && err.kind != ERR_UNSUPPORTED) {
        n->is_refused = image->has_no_lines = true;
        note_lines_problem(image, &err);
    }
    return o->inlines;
}

static void end_inlines(struct opened *o, struct namer_image *image)
{
    struct err err = {0};
    enum inlines_end end = o->inlines == NULL ? INLINES_DONE : inlines_end(o->inlines, &err);
    o->namer->is_refused |= end == INLINES_REFUSED;
    image->has_no_lines |= end == INLINES_FAILED || end == INLINES_REFUSED;
    if (err.kind != ERR_NONE) {
        note_lines_problem(image, &err);
    }
}

/* How many functions are inlined into one another here; 0: not known, or *late: not looked up. */
static size_t lines_at(struct opened *o, struct namer_image *image, uint64_t address,
                       struct source_line lines[static PROFILE_INLINES_MAX], bool *late)
{
    struct inlines *inlines = inlines_of(o, image);
    *late = inlines == NULL && !o->inlines_tried;
    return inlines == NULL ? 0 : inlines_lookup(inlines, address, lines, late);
}

/* ---- one address ---- */

static bool name_by_symbols(struct namer *n, struct profile *p, struct namer_image *image,
                            struct opened *o, const struct job *job, struct err *err)
{
    struct symbol_hit hit;
    bool has_symbol = find_symbol(image, o, job->address, &hit);
    const struct namer_name *name = has_symbol ? symbol_name(n, image, o, &hit) : NULL;
    return name != NULL ? name_by_symbol(n, p, name, job, err) : name_by_place(n, p, job, err);
}

static bool name_by_dwarf(struct namer *n, struct profile *p, struct namer_image *image,
                          struct opened *o, const struct job *job, struct err *err)
{
    bool late = false, good;
    struct source_line lines[PROFILE_INLINES_MAX];
    size_t count = lines_at(o, image, job->address, lines, &late);
    if (count > 0) {
        struct symbol_hit hit;
        bool has_symbol = find_symbol(image, o, job->address, &hit);
        const struct namer_name *name = has_symbol ? symbol_name(n, image, o, &hit) : NULL;
        good = name_by_lines(n, p, name, lines, count, job, err);
    } else {
        good = name_by_symbols(n, p, image, o, job, err);
    }
    if (good && !late) {
        kept_lines_add(&n->kept, job->image, job->address, lines, count);
    }
    return good;
}

static bool name_with_lines(struct namer *n, struct profile *p, struct namer_image *image,
                            struct opened *o, const struct job *job, struct err *err)
{
    size_t count = 0;
    struct source_line lines[PROFILE_INLINES_MAX];
    if (!kept_lines_find(&n->kept, job->image, job->address, lines, &count)) {
        return name_by_dwarf(n, p, image, o, job, err);
    }
    return count > 0 ? name_frame(p, job->frame, lines, count, err)
                     : name_by_symbols(n, p, image, o, job, err);
}

static bool name_in_image(struct namer *n, struct profile *p, struct namer_image *image,
                          struct opened *o, const struct job *job, struct err *err)
{
    struct code_lines lines;
    if (named_by_code(o, image, job->address, &lines)) {
        return name_by_code(p, &lines, job, err);
    }
    return wants_lines(n, image) ? name_with_lines(n, p, image, o, job, err)
                          : name_by_symbols(n, p, image, o, job, err);
}

static bool name_generated(struct namer *n, struct profile *p, struct opened *o,
                           const struct job *job, struct err *err)
{
    struct code_lines lines;
    return code_source_find(&o->source.code, job->address, &lines) ? name_by_code(p, &lines, job, err)
                                                                   : name_by_place(n, p, job, err);
}

static void set_build_id(struct profile *p, uint32_t module, const char *build_id)
{
    struct module *m = &p->modules.at[module];
    if (module != 0 && m->build_id == 0 && build_id[0] != '\0') {
        uint32_t id = profile_cstring(p, build_id);
        p->modules.at[module].build_id = id;
    }
}

/* ---- the run ---- */

/* Names the frames of one image. What is needed of the file may be at hand from an earlier run;
 * when it cannot be opened any more, there still are the names made before. */
static bool name_image(struct namer *n, struct profile *p, const struct job *jobs, size_t count,
                       struct err *err)
{
    bool good = true;
    struct opened o = {.namer = n, .key = jobs[0].image, .jobs = jobs, .job_count = count};
    struct namer_image *image = o.key == 0 ? NULL : find_image(n, o.key);
    bool generated = image == NULL && o.key != 0 && open_source(&o) &&
                     o.source.kind == SYMBOL_IMAGE_GENERATED;
    if (image == NULL && o.key != 0 && !generated) {
        image = add_image(n, &o);
    }
    if (image != NULL) {
        image->used_run = n->run;
    }
    for (size_t i = 0; good && i < count; i++) {
        if (image != NULL) {
            set_build_id(p, p->frames.at[jobs[i].frame].module, image->build_id);
        }
        good = image != NULL ? name_in_image(n, p, image, &o, &jobs[i], err)
               : generated   ? name_generated(n, p, &o, &jobs[i], err)
                             : name_by_place(n, p, &jobs[i], err);
    }
    if (image != NULL) {
        end_inlines(&o, image);
    }
    close_source(&o);
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
        shrink_tables(n, tables_max_bytes(n));
        i = end;
    }
    return good;
}

bool namer_run(struct namer *n, struct profile *p, struct err *err)
{
    struct jobs jobs = {0};
    n->run++;
    n->deadline_ns = n->clock == NULL ? 0 : n->clock->mono_ns(n->clock->context) +
                                                n->inlines_budget_ns;
    bool good = collect_jobs(p, &jobs, err);
    if (good && jobs.list.len > 0) {
        qsort(jobs.list.at, jobs.list.len, sizeof *jobs.list.at, by_image_then_address);
        good = run_jobs(n, p, &jobs, err);
    }
    vec_release(&jobs.list);
    return good;
}
