/* JavaScript on V8, the row: an address in V8's code is told as the functions that run there, where samples have
 * registers (perf, brief stops). V8's frames are found by the unwinder: they keep frame pointers. The process is only
 * read then. Where samples have none, and the user asks for it, node's inspector is asked (collect.c). */
#include "runtime/v8/inspector.h"
#include "runtime/v8/private.h"

enum {
    WORD = 8,
    PROT_EXECUTE = 4,
    BYTECODE_MAX = 1 << 24,
};

static enum runtime_answer recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                     struct err *why)
{
    struct elf_symbol symbol;
    (void)path, (void)code;
    if (!elf_find_dynamic(elf, "_ZN2v87Isolate3NewERKNS0_12CreateParamsE", &symbol)) { /* v8::Isolate::New */
        if (!elf_find_dynamic(elf, "napi_create_function", &symbol) ||
            !elf_find_dynamic(elf, "node_api_symbol_for", &symbol)) {
            return RUNTIME_NO;
        }
        err_set(why, ERR_UNSUPPORTED, 0, "this JavaScript engine does not tell what its objects look like; with perf, "
                                         "deno --v8-flags=--perf-basic-prof names its functions");
        return RUNTIME_UNSUPPORTED;
    }
    struct v8_layout *layout = malloc(sizeof *layout);
    if (layout != NULL && v8_read_layout(elf, layout, why)) {
        *binary = layout;
        return RUNTIME_YES;
    }
    free(layout);
    return RUNTIME_UNSUPPORTED;
}

static void detach(void *state)
{
    struct v8 *v = state;
    map_release(&v->place_of);
    map_release(&v->owner_of);
    map_release(&v->function_of);
    map_release(&v->script_of);
    map_release(&v->code_of_page);
    vec_release(&v->places);
    vec_release(&v->scopes);
    vec_release(&v->owners);
    vec_release(&v->functions);
    v8_forget_scripts(v);
    vec_release(&v->scripts);
    arena_release(&v->texts);
    arena_release(&v->lines);
    free(v);
}

/* V8 maps its builtin functions a second time, beside the code it generates: that is no other V8. */
static bool is_here(const struct v8_layout *l, const struct runtime_process *process)
{
    int32_t major = 0;
    struct memory_piece piece = {l->version_at + process->bias, &major, sizeof major, 0};
    return memory_batch_read(process->memory, &piece, 1, NULL) && piece.got == sizeof major && major == l->version[0];
}

static enum runtime_answer attach(const void *binary, const struct runtime_process *process, void **state,
                                  struct err *why)
{
    if (!is_here(binary, process)) {
        return RUNTIME_NO;
    }
    struct v8 *v = calloc(1, sizeof *v);
    if (v == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for V8's functions");
        return RUNTIME_UNSUPPORTED;
    }
    v->memory = process->memory;
    v->layout = binary;
    v->file = process->file;
    v->files = process->files;
    arena_init(&v->texts, V8_TEXTS_MAX);
    arena_init(&v->lines, V8_LINES_MAX);
    for (size_t i = 0; i < process->map_count; i++) {
        const struct runtime_map *map = &process->maps[i];
        if (map->of_binary && (map->prot & PROT_EXECUTE) != 0 && v->own_count < V8_OWN_MAX) {
            v->own[v->own_count++] = (struct v8_range){map->start, map->limit};
        }
    }
    *state = v;
    return RUNTIME_YES;
}

static void describe(const void *state, struct buf *out)
{
    const int32_t *v = ((const struct v8 *)state)->layout->version;
    buf_printf(out, "V8 %d.%d.%d.%d", v[0], v[1], v[2], v[3]);
}

static bool is_own(const struct v8 *v, uint64_t address)
{
    for (size_t i = 0; i < v->own_count; i++) {
        if (address >= v->own[i].start && address < v->own[i].limit) {
            return true;
        }
    }
    return false;
}

/* ---- the verb ---- */

static bool stack_word(const struct runtime_place *at, uint64_t address, uint64_t *out)
{
    return address % WORD == 0 && at->stack->read(at->stack->context, address, out, sizeof *out, NULL);
}

static uint64_t frame_word(const struct v8 *v, const struct runtime_place *at, enum v8_constant slot)
{
    uint64_t word, fp = at->registers->fp;
    bool good = fp >= at->registers->sp && stack_word(at, fp + (uint64_t)(int64_t)v8_at(v, slot), &word);
    return good ? word : 0;
}

static struct v8_frame frame_of(const struct v8 *v, const struct runtime_place *at)
{
    return (struct v8_frame){frame_word(v, at, V8_FRAME_FUNCTION), frame_word(v, at, V8_FRAME_BYTECODE),
                             at->registers->ip == at->address};
}

static const struct v8_place *code_place(struct v8 *v, const struct runtime_place *at)
{
    const struct v8_place *kept = v8_kept_place(v, at->address);
    if (kept != NULL) {
        return kept;
    }
    struct v8_place place = {.scopes = (uint32_t)v->scopes.len};
    struct v8_frame frame = frame_of(v, at);
    (void)v8_find_code(v, at->address, &frame, &place);
    return v8_keep_place(v, at->address, &place);
}

/* What the interpreter's registers have while it runs an instruction: the frame has the offset of the last one that
 * called something. The one beside it has the offset itself. */
static void note_leaf(struct v8 *v, const uint64_t *registers)
{
    static const struct {
        uint8_t array, offset;
    } both[] = {{12, 9}, {20, 19}}; /* x86-64 r12 and r9, AArch64 x20 and x19 */
    v->leaf_array = 0;
    for (size_t i = 0; registers != NULL && i < sizeof both / sizeof both[0]; i++) {
        if (v8_at(v, V8_ARRAY_REGISTER) == both[i].array) {
            v->leaf_array = registers[both[i].array];
            v->leaf_offset = registers[both[i].offset];
        }
    }
}

/* Of a frame of the interpreter; where it called the leaf, `leaf` is what that has for its bytecode. */
static const struct v8_place *bytecode_place(struct v8 *v, const struct runtime_place *at, uint64_t leaf)
{
    struct v8_frame frame = frame_of(v, at);
    int32_t offset;
    if (frame.exact || v8_object(frame.closure) == 0 || v8_object(frame.array) == 0 ||
        !v8_small(frame_word(v, at, V8_FRAME_OFFSET), &offset) || offset <= 0) {
        return NULL;
    }
    if (leaf == frame.array && v->leaf_offset <= BYTECODE_MAX) {
        offset = (int32_t)v->leaf_offset;
    }
    uint64_t key = v8_object(frame.array) + (uint64_t)offset;
    const struct v8_place *kept = v8_kept_place(v, key);
    if (kept != NULL) {
        return kept;
    }
    struct v8_place place = {.scopes = (uint32_t)v->scopes.len};
    (void)v8_find_bytecode(v, &frame, (uint64_t)offset, &place);
    return v8_keep_place(v, key, &place);
}

static bool tell(const struct v8 *v, const struct v8_place *place, struct code_lines *lines)
{
    for (uint32_t i = 0; i < place->scope_count && lines->count < PROFILE_INLINES_MAX; i++) {
        const struct v8_scope *scope = &v->scopes.at[place->scopes + i];
        const struct v8_function *f = &v->functions.at[scope->function];
        lines->line[lines->count++] = (struct source_line){f->name, f->name, f->file, scope->line, NULL};
    }
    return lines->count > 0;
}

/* Code that is no function of JavaScript's. */
static bool tell_other(struct str name, enum frame_kind kind, struct code_lines *lines)
{
    lines->kind = kind;
    lines->line[lines->count++] = (struct source_line){.name = name, .system_name = name};
    return true;
}

/* Code that is no object of the heap: frames of WebAssembly have a mark in the context's place. */
static bool tell_wasm(const struct v8 *v, const struct runtime_place *at, struct code_lines *lines)
{
    uint64_t type = (uint64_t)v8_at(v, V8_FRAME_WASM);
    return type != 0 && frame_word(v, at, V8_FRAME_CONTEXT) == type << 1 &&
           tell_other(STR("(WebAssembly)"), FRAME_JS, lines);
}

/* Is the frame of a leaf in a builtin function its caller's? Then that is a program's function. (Where functions begin
 * is known, code tells.) */
static bool is_without_frame(const struct v8 *v, const struct runtime_place *at)
{
    struct v8_frame frame = frame_of(v, at);
    return frame.exact && v8_object(frame_word(v, at, V8_FRAME_CONTEXT)) != 0 && v8_is_of_program(v, frame.closure);
}

static bool resolve(void *state, const struct runtime_place *at, struct runtime_resolved *out)
{
    struct v8 *v = state;
    out->lines.count = 0;
    out->lines.kind = FRAME_JS;
    if (at->registers == NULL || at->stack == NULL) {
        return false;
    }
    v->stacks += at->registers->ip == at->address || at->registers->sp <= v->sp;
    v->sp = at->registers->sp;
    v8_make_room(v);
    uint64_t leaf = v->leaf_array;
    bool is_builtin = is_own(v, at->address);
    note_leaf(v, is_builtin ? at->registers->all : NULL);
    const struct v8_place *place = is_builtin ? NULL : code_place(v, at);
    if (!is_builtin && (place == NULL || place->owner == 0)) {
        return tell_wasm(v, at, &out->lines);
    }
    if (place != NULL && place->is_regexp) {
        return tell_other(STR("(regular expression)"), FRAME_JS, &out->lines);
    }
    if (place != NULL && !place->is_interpreter) {
        return tell(v, place, &out->lines);
    }
    if (is_builtin && v->layout->is_stripped && is_without_frame(v, at)) {
        out->caller = (struct runtime_caller){RUNTIME_RULE_FRAME_SIZE, 0, 0};
        return true;
    }
    place = bytecode_place(v, at, leaf); /* the other may have been moved by it */
    return (place != NULL && tell(v, place, &out->lines)) ||
           (!is_builtin && tell_other(STR("(V8 builtin)"), FRAME_NATIVE, &out->lines));
}

static const struct runtime_collect v8_collects = {
    .price = "profiles by its inspector, which is opened on a port of this machine for up to ten seconds at a time, as "
             "it says on its standard error",
    .opt_in = "--nodejs-mode inspector",
    .tick_ms = 50, /* who ends waits for one; more of them cost more than all else */
    .may_start = inspector_may,
    .start = v8_collect,
    .tick = v8_collect_tick,
    .poll = v8_collect_poll,
    .stop = v8_collect_stop,
};

const struct runtime runtime_v8 = {
    .name = "javascript",
    .versions = "of Node.js 10 to 26",
    .kind = FRAME_JS,
    .recognise = recognise,
    .forget = free,
    .attach = attach,
    .detach = detach,
    .describe = describe,
    .resolve = resolve,
    .read_name = v8_read_name,
    .collect = &v8_collects,
};
