/* A profile as tables of columns, the way the Firefox Profiler keeps it: each column is a pass over the profile that
 * writes a value per row, so that nothing is gathered first. A node of the call tree is as many rows of the table of
 * stacks as functions are inlined there, the outermost first: `leaf` holds the last one's number. */
#include "encode/gecko.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/map.h"
#include "base/version.h"
#include "encode/encode.h"
#include "encode/functions.h"
#include "encode/timeline.h"
#include "encode/value.h"

enum { FLUSH_BYTES = 64 * 1024, IMPORTED_VERSION = 32 /* of Firefox's own form; any */ };
#define ADDRESS_MAX INT32_MAX /* what readers keep */

struct writer {
    const struct profile *p;
    struct sink *out;
    struct err *err;
    struct functions functions;
    struct timeline timeline;
    struct buf text;
    uint32_t *leaf;    /* by node: its last row of the table of stacks */
    uint32_t *module;  /* by function: of its first frame */
    uint32_t *source;  /* by string: its row of the table of sources, from 1; 0: it is no file's name */
    uint32_t *is_main; /* by process: its main thread was written */
    struct map pids;   /* -> process */
    VEC(uint32_t) files;
    uint32_t stacks;
};

static void put_u64(struct writer *w, uint64_t value)
{
    buf_printf(&w->text, "%llu", (unsigned long long)value);
}

/* "null" for 0, else one less: rows count from 0. */
static void put_place(struct writer *w, uint32_t place)
{
    if (place == 0) {
        buf_text(&w->text, "null");
    } else {
        put_u64(w, place - 1);
    }
}

static void put_text(struct writer *w, const char *before, struct str text)
{
    buf_text(&w->text, before);
    json_text(&w->text, text);
}

/* --- columns --- */

struct column {
    const char *name;
    void (*put)(struct writer *w, size_t row);
};

static void put_null(struct writer *w, size_t row)
{
    (void)row;
    buf_text(&w->text, "null");
}

static void put_zero(struct writer *w, size_t row)
{
    (void)row;
    buf_byte(&w->text, '0');
}

static bool write_column(struct writer *w, const struct column *column, size_t first, size_t end)
{
    bool ok = true;
    buf_printf(&w->text, "\"%s\":[", column->name);
    for (size_t i = first; ok && i < end; i++) {
        if (i > first) {
            buf_byte(&w->text, ',');
        }
        column->put(w, i);
        ok = w->text.len < FLUSH_BYTES ? !w->text.failed : timeline_flush(&w->text, w->out, w->err);
    }
    buf_text(&w->text, "],\n");
    return ok || !w->text.failed ? ok : timeline_flush(&w->text, w->out, w->err);
}

/* Rows [first, end), which are `length` where that is not their number. Columns end with one without a name. Whoever
 * wants the table closed does so. */
static bool write_table(struct writer *w, const char *name, const struct column *columns, size_t first, size_t end,
                        size_t length)
{
    bool ok = true;
    buf_printf(&w->text, "\"%s\":{", name);
    for (size_t i = 0; ok && columns[i].name != NULL; i++) {
        ok = write_column(w, &columns[i], first, end);
    }
    buf_printf(&w->text, "\"length\":%zu", length);
    return ok;
}

/* --- stacks, frames, functions, files --- */

static void put_stack_frames(struct writer *w, size_t node)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    size_t count = profile_expand(w->p, w->p->nodes.at[node].frame, chain);
    while (count-- > 0) {
        buf_printf(&w->text, count > 0 ? "%u," : "%u", chain[count] - 1);
    }
}

static void put_stack_prefixes(struct writer *w, size_t node)
{
    uint32_t parent = w->p->nodes.at[node].parent;
    uint32_t first = (node == 1 ? 0 : w->leaf[node - 1] + 1);
    put_place(w, parent == 0 ? 0 : w->leaf[parent] + 1);
    for (uint32_t row = first; row < w->leaf[node]; row++) {
        buf_printf(&w->text, ",%u", row);
    }
}

static void put_address(struct writer *w, size_t frame)
{
    uint64_t address = w->p->frames.at[frame].address;
    buf_printf(&w->text, "%lld", address == 0 || address > ADDRESS_MAX ? -1 : (long long)address);
}

static void put_inline_depth(struct writer *w, size_t frame)
{
    uint32_t chain[PROFILE_INLINES_MAX];
    put_u64(w, profile_expand(w->p, (uint32_t)frame, chain) - 1);
}

static void put_category(struct writer *w, size_t frame)
{
    put_u64(w, w->p->frames.at[frame].kind);
}

static void put_frame_function(struct writer *w, size_t frame)
{
    put_u64(w, w->functions.of_frame[frame] - 1);
}

static void put_line(struct writer *w, size_t frame)
{
    put_place(w, w->p->frames.at[frame].line + (w->p->frames.at[frame].line != 0));
}

static void put_name(struct writer *w, size_t function)
{
    put_u64(w, function - 1);
}

static void put_is_js(struct writer *w, size_t function)
{
    buf_text(&w->text, w->functions.list.at[function].kind == FRAME_JS ? "true" : "false");
}

static void put_resource(struct writer *w, size_t function)
{
    buf_printf(&w->text, "%lld", (long long)w->module[function] - 1);
}

static void put_source(struct writer *w, size_t function)
{
    put_place(w, w->source[w->functions.list.at[function].file]);
}

static void put_first_line(struct writer *w, size_t function)
{
    uint32_t line = w->functions.list.at[function].first_line;
    put_place(w, line + (line != 0));
}

static void put_lib(struct writer *w, size_t module)
{
    (void)w;
    put_u64(w, module - 1);
}

static void put_lib_name(struct writer *w, size_t module)
{
    put_u64(w, w->functions.list.len - 1 + module - 1);
}

static void put_library_type(struct writer *w, size_t module)
{
    (void)module;
    buf_byte(&w->text, '1');
}

static void put_file_name(struct writer *w, size_t file)
{
    put_u64(w, w->functions.list.len - 1 + w->p->modules.len - 1 + file);
}

/* Functions, then libraries, then files. */
static bool write_strings(struct writer *w)
{
    size_t functions = w->functions.list.len - 1, modules = w->p->modules.len - 1;
    bool ok = true;
    buf_text(&w->text, "\"stringArray\":[");
    for (size_t i = 0; ok && i < functions + modules + w->files.len; i++) {
        uint32_t id = i < functions             ? w->functions.list.at[i + 1].name
                      : i < functions + modules ? w->p->modules.at[i - functions + 1].path
                                                : w->files.at[i - functions - modules];
        struct str text = id == 0 ? STR("[unknown]") : profile_text(w->p, id);
        bool is_library = i >= functions && i < functions + modules;
        put_text(w, i > 0 ? ",\n" : "\n", is_library ? str_base_name(text) : text);
        ok = timeline_flush(&w->text, w->out, w->err);
    }
    buf_text(&w->text, "],\n");
    return ok;
}

static bool write_shared(struct writer *w)
{
    static const struct column stacks[] = {{"frame", put_stack_frames}, {"prefix", put_stack_prefixes}, {NULL, NULL}};
    static const struct column frames[] = {
        {"address", put_address}, {"inlineDepth", put_inline_depth}, {"category", put_category},
        {"subcategory", put_zero}, {"func", put_frame_function}, {"nativeSymbol", put_null},
        {"innerWindowID", put_null}, {"line", put_line}, {"column", put_null}, {NULL, NULL}};
    static const struct column functions[] = {
        {"name", put_name}, {"isJS", put_is_js}, {"relevantForJS", put_is_js}, {"resource", put_resource},
        {"source", put_source}, {"lineNumber", put_first_line}, {"columnNumber", put_null}, {NULL, NULL}};
    static const struct column resources[] = {{"lib", put_lib}, {"name", put_lib_name}, {"host", put_null},
                                              {"type", put_library_type}, {NULL, NULL}};
    static const struct column symbols[] = {{"libIndex", put_null}, {"address", put_null}, {"name", put_null},
                                            {"functionSize", put_null}, {NULL, NULL}};
    static const struct column sources[] = {{"uuid", put_null}, {"filename", put_file_name}, {NULL, NULL}};
    const struct profile *p = w->p;
    size_t count = p->frames.len, all = w->functions.list.len, modules = p->modules.len, files = w->files.len;
    struct buf *text = &w->text;
    buf_text(text, "\"shared\":{");
    return write_strings(w) && write_table(w, "stackTable", stacks, 1, p->nodes.len, w->stacks) &&
           (buf_text(text, "},\n"), write_table(w, "frameTable", frames, 1, count, count - 1)) &&
           (buf_text(text, "},\n"), write_table(w, "funcTable", functions, 1, all, all - 1)) &&
           (buf_text(text, "},\n"), write_table(w, "resourceTable", resources, 1, modules, modules - 1)) &&
           (buf_text(text, "},\n"), write_table(w, "nativeSymbols", symbols, 0, 0, 0)) &&
           (buf_text(text, "},\n"), write_table(w, "sources", sources, 0, files, files)) &&
           (buf_text(text, "}},\n"), true);
}

/* --- threads --- */

static const struct timeline_part *part_at(const struct writer *w, size_t part)
{
    return &w->timeline.parts.at[part];
}

static void put_stack(struct writer *w, size_t part)
{
    put_u64(w, w->leaf[w->p->samples.at[part_at(w, part)->sample].node]);
}

static void put_time(struct writer *w, size_t part)
{
    uint64_t us = part_at(w, part)->moment_ns / 1000;
    buf_printf(&w->text, "%llu.%03u", (unsigned long long)(us / 1000), (unsigned)(us % 1000));
}

static void put_cpu(struct writer *w, size_t part)
{
    if (value_is_other(w->p)) {
        buf_text(&w->text, "null");
    } else {
        put_u64(w, part_at(w, part)->ns);
    }
}

static void put_weight(struct writer *w, size_t part)
{
    uint64_t ns = part_at(w, part)->ns;
    if (value_is_counted(w->p)) {
        put_u64(w, ns);
    } else {
        buf_printf(&w->text, "%llu.%06u", (unsigned long long)(ns / 1000000), (unsigned)(ns % 1000000));
    }
}

static bool write_samples(struct writer *w, const struct timeline_row *row)
{
    static const struct column samples[] = {{"stack", put_stack}, {"time", put_time}, {"weight", put_weight},
                                            {"threadCPUDelta", put_cpu}, {NULL, NULL}};
    static const struct column markers[] = {{"data", put_null}, {"name", put_null}, {"startTime", put_null},
                                            {"endTime", put_null}, {"phase", put_null}, {"category", put_null},
                                            {NULL, NULL}};
    buf_text(&w->text, ",\n");
    bool ok = write_table(w, "markers", markers, 0, 0, 0);
    buf_text(&w->text, "},\n");
    ok = ok && write_table(w, "samples", samples, row->first, row->first + row->count, row->count);
    buf_printf(&w->text, ",\"weightType\":\"%s\"}}",
               value_is_bytes(w->p) ? "bytes" : value_is_counted(w->p) ? "samples" : "tracing-ms");
    return ok && timeline_flush(&w->text, w->out, w->err);
}

static bool write_thread(struct writer *w, const struct timeline_row *row)
{
    const struct thread *thread = &w->p->threads.at[row->thread];
    const struct process *process = &w->p->processes.at[thread->process];
    bool may_be_main = thread->tid == process->pid || thread->tid == 0;
    bool is_main = may_be_main && w->is_main[thread->process]++ == 0;
    const struct map_slot *same = map_find(&w->pids, process->pid);
    if (same == NULL && process->pid != 0 && !map_put(&w->pids, process->pid, thread->process)) {
        return err_set(w->err, ERR_MEMORY, 0, "no memory for a table of processes");
    }
    put_text(w, "{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
                "\"unregisterTime\":null,\"pausedRanges\":[],\"name\":",
             profile_text(w->p, thread->name));
    put_text(w, ",\"processName\":", profile_text(w->p, process->name));
    buf_printf(&w->text, ",\"isMainThread\":%s,\"pid\":\"%u", is_main ? "true" : "false", process->pid);
    if (process->pid == 0 || (same != NULL && same->value != thread->process)) {
        buf_printf(&w->text, ".%u", thread->process); /* one of several that are called so */
    }
    buf_printf(&w->text, "\",\"tid\":%u", thread->tid);
    return write_samples(w, row);
}

/* --- the whole --- */

/* A build id as Breakpad's: 16 bytes as a GUID, whose first fields are numbers of the other byte order, and a 0. */
static void put_breakpad(struct writer *w, struct str build_id)
{
    static const uint8_t order[] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    buf_text(&w->text, ",\"breakpadId\":\"");
    for (size_t i = 0; build_id.len >= 2 && i < sizeof order; i++) {
        uint64_t byte = 0;
        (void)str_hex(str_sub(build_id, order[i] * 2u, 2), &byte);
        buf_printf(&w->text, "%02X", (unsigned)byte);
    }
    buf_text(&w->text, build_id.len >= 2 ? "0\"" : "\"");
}

static bool write_libraries(struct writer *w)
{
    bool ok = true;
    buf_text(&w->text, "\"libs\":[");
    for (size_t i = 1; ok && i < w->p->modules.len; i++) {
        const struct module *module = &w->p->modules.at[i];
        struct str path = profile_text(w->p, module->path), name = str_base_name(path);
        put_text(w, i > 1 ? ",\n{\"arch\":\"\",\"name\":" : "\n{\"arch\":\"\",\"name\":", name);
        put_text(w, ",\"path\":", path);
        put_text(w, ",\"debugName\":", name);
        put_text(w, ",\"debugPath\":", path);
        put_breakpad(w, profile_text(w->p, module->build_id));
        put_text(w, ",\"codeId\":", profile_text(w->p, module->build_id));
        buf_byte(&w->text, '}');
        ok = timeline_flush(&w->text, w->out, w->err);
    }
    buf_text(&w->text, "],\n");
    return ok;
}

static void write_meta(struct writer *w)
{
    const struct profile_meta *meta = &w->p->meta;
    uint64_t interval = meta->period_ns > 1 ? meta->period_ns / 1000 : 1000;
    buf_printf(&w->text,
               "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":%llu.%03u,"
               "\"startTime\":%llu,\"profilingStartTime\":0,\"profilingEndTime\":%llu,\"processType\":0,"
               "\"stackwalk\":1,\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
               "\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],"
               "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
               "\"importedFrom\":\"pillion " PILLION_VERSION "\",\"product\":",
               IMPORTED_VERSION, GECKO_VERSION, (unsigned long long)(interval / 1000), (unsigned)(interval % 1000),
               (unsigned long long)(meta->start_wall_ns / 1000000),
               (unsigned long long)(w->timeline.end_ns / 1000000 + 1));
    struct str service = profile_text(w->p, meta->service);
    json_text(&w->text, service.len > 0 ? service : STR("pillion"));
    buf_text(&w->text, ",\"categories\":[");
    for (unsigned i = 0; i < FRAME_KIND_COUNT; i++) {
        buf_printf(&w->text, "%s{\"name\":\"%s\",\"color\":\"%s\",\"subcategories\":[\"Other\"]}", i > 0 ? "," : "",
                   languages[i].name, languages[i].gecko);
    }
    buf_printf(&w->text,
               "],\"extra\":[{\"label\":\"pillion\",\"entries\":[{\"label\":\"Order of samples\","
               "\"format\":\"string\",\"value\":\"%s\"}]}],\"pillion\":{\"is_timed\":%s",
               timeline_order(&w->timeline), w->timeline.is_timed ? "true" : "false");
    if (value_is_other(w->p)) {
        put_text(w, ",\"value\":", profile_text(w->p, meta->value));
        put_text(w, ",\"unit\":", profile_text(w->p, meta->unit));
    }
    buf_text(&w->text, "}},\n");
}

static bool write_all(struct writer *w)
{
    write_meta(w);
    bool ok = write_libraries(w) && write_shared(w);
    buf_text(&w->text, "\"threads\":[");
    for (size_t i = 0; ok && i < w->timeline.row_count; i++) {
        buf_text(&w->text, i > 0 ? ",\n" : "\n");
        ok = write_thread(w, &w->timeline.rows[i]);
    }
    buf_text(&w->text, "]}\n");
    return ok && timeline_flush(&w->text, w->out, w->err);
}

static bool prepare(struct writer *w)
{
    const struct profile *p = w->p;
    w->leaf = calloc(p->nodes.len + 1, sizeof *w->leaf);
    w->module = calloc(w->functions.list.len, sizeof *w->module);
    w->source = calloc(p->strings.len + 1, sizeof *w->source);
    w->is_main = calloc(p->processes.len + 1, sizeof *w->is_main);
    bool ok = w->leaf != NULL && w->module != NULL && w->source != NULL && w->is_main != NULL;
    for (size_t i = 1; ok && i < p->nodes.len; i++) {
        uint32_t chain[PROFILE_INLINES_MAX];
        w->stacks += (uint32_t)profile_expand(p, p->nodes.at[i].frame, chain);
        w->leaf[i] = w->stacks - 1;
    }
    for (size_t i = 1; ok && i < p->frames.len; i++) {
        uint32_t *module = &w->module[w->functions.of_frame[i]], *source = &w->source[p->frames.at[i].file];
        *module = *module == 0 ? p->frames.at[i].module : *module;
        if (p->frames.at[i].file != 0 && *source == 0) {
            uint32_t *file = vec_push(&w->files);
            ok = file != NULL;
            if (ok) {
                *file = p->frames.at[i].file;
                *source = (uint32_t)w->files.len;
            }
        }
    }
    return ok || err_set(w->err, ERR_MEMORY, 0, "no memory to write %zu stacks", p->samples.len);
}

bool gecko_write(struct profile *p, struct sink *out, struct err *err)
{
    struct writer w = {.p = p, .out = out, .err = err};
    buf_init(&w.text, TIMELINE_TEXT_MAX);
    bool ok = timeline_init(&w.timeline, p, err) && functions_init(&w.functions, p, NULL, err) && prepare(&w) &&
              write_all(&w);
    functions_release(&w.functions);
    timeline_release(&w.timeline);
    buf_release(&w.text);
    map_release(&w.pids);
    vec_release(&w.files);
    free(w.leaf);
    free(w.module);
    free(w.source);
    free(w.is_main);
    return ok;
}

static bool write_row(struct profile *p, const struct encode_rules *rules, struct sink *out, struct err *err)
{
    (void)rules;
    return gecko_write(p, out, err);
}

const struct encoder encoder_gecko = {
    .name = "gecko",
    .extension = ".gecko.json",
    .extensions = ".gecko .firefox.json",
    .mime = "application/json",
    .description = "for profiler.firefox.com",
    .link = "last_profile.gecko.json",
    .is_read = true,
    .shows_moments = true,
    .apart = FIT_BY_THREAD,
    .write = write_row,
};
