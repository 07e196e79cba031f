/* Functions. A SharedFunctionInfo has a name, or a ScopeInfo that has it with where the function stands: local names
 * and what is known of each, then in this order, as far as there are: the function's own name, where it is kept, the
 * name that was inferred, first and last position. */
#include "runtime/v8/private.h"

enum {
    FUNCTIONS_MAX = 1 << 16,
    LOCALS_MAX = 1 << 20,
    POSITIONS_FIRST = 5,  /* of local names: the positions stand before them then */
    MOVES_MAX = 3,
    REST = 12,            /* slots that are looked at behind the locals */
    COLUMN_TOLD = 120,    /* a function farther to the right on its line is not the only one there */
};

struct scope {
    struct buf name;
    int32_t start, end;
};

/* The slots behind the locals. */
static void read_rest(const struct v8 *v, const uint64_t *slot, size_t count, struct scope *out, bool has_positions)
{
    int32_t before = -1, value;
    for (size_t i = 0; i < count; i++) {
        if (v8_small(slot[i], &value)) {
            out->start = has_positions ? out->start : before;
            out->end = has_positions ? out->end : value;
            before = value;
            continue;
        }
        before = -1;
        struct v8_head head;
        bool is_string = v8_read_head(v, slot[i], &head) && v8_is_string(v, &head);
        if (is_string && out->name.len == 0 && !v8_read_string(v, slot[i], &out->name)) {
            buf_clear(&out->name);
        }
        if (!is_string && i > 0 && out->end > 0 && out->start >= 0) {
            break; /* the scope around it */
        }
    }
}

/* A count among its slots. */
static int32_t count_in(const struct v8 *v, const struct v8_head *head, enum v8_constant slot)
{
    int32_t count;
    bool good = v8_small(v8_field(head, v8_at(v, V8_SCOPE_SLOTS) + 8 * v8_at(v, slot)), &count);
    return good && count >= 0 && count <= LOCALS_MAX ? count : 0;
}

static void read_scope(const struct v8 *v, const struct v8_head *head, struct scope *out)
{
    uint64_t slot[REST];
    int32_t locals = count_in(v, head, V8_SCOPE_LOCALS);
    int32_t slots = v8_at(v, V8_SCOPE_SLOTS), first = v8_at(v, V8_SCOPE_FIRST);
    bool has_positions = first >= POSITIONS_FIRST;
    if (has_positions) {
        (void)v8_small(v8_field(head, slots + 8 * (POSITIONS_FIRST - 2)), &out->start);
        (void)v8_small(v8_field(head, slots + 8 * (POSITIONS_FIRST - 1)), &out->end);
    }
    int32_t names = locals >= v8_at(v, V8_LOCALS_IN_TABLE) ? 1 : locals;
    if (v8_at(v, V8_SCOPE_ON_STACK) > 0) { /* and where those on the stack begin */
        names += count_in(v, head, V8_SCOPE_PARAMETERS) + 1 + count_in(v, head, V8_SCOPE_ON_STACK);
    }
    struct memory_piece piece = {head->at + (uint64_t)(slots + 8 * (first + names + locals)), slot, sizeof slot, 0};
    if (memory_batch_read(v->memory, &piece, 1, NULL)) {
        read_rest(v, slot, piece.got / sizeof slot[0], out, has_positions);
    }
}

void v8_put_name(struct buf *out, struct str name, struct str file, uint32_t line, uint32_t column)
{
    buf_str(out, name.len > 0 ? name : STR("(anonymous)"));
    if (file.len > 0) {
        buf_byte(out, ' ');
        buf_str(out, file);
    }
    if (line > 0) {
        buf_printf(out, ":%u", line);
        if (name.len == 0 || column > COLUMN_TOLD) {
            buf_printf(out, ":%u", column);
        }
    }
}

/* What a source map knows: where a function begins, and what it was called. Its name stands right before its
 * parameters, where its position is. */
static void tell_original(struct v8 *v, struct v8_function *f, struct str *name, uint32_t *line, uint32_t *column)
{
    struct source_place place;
    if (*line == 0 || !v8_original(v, f->script, *line, *column, &place)) {
        return;
    }
    uint32_t at = *column;
    uint32_t generated = *line;
    f->file = arena_copy(&v->texts, place.file);
    *line = place.line;
    *column = place.column;
    if (name->len > 0 && name->len < at && v8_original(v, f->script, generated, at - (uint32_t)name->len, &place) &&
        place.is_exact && place.name.len > 0) {
        *name = place.name;
    }
}

static void name_function(struct v8 *v, const struct scope *scope, struct v8_function *f)
{
    struct buf text;
    uint32_t line = 0, column = 0;
    struct str name = scope->name.failed ? STR("") : buf_slice(&scope->name);
    if (scope->end <= 0 || scope->start < 0 || !v8_line_at(v, f->script, (uint32_t)scope->start, &line, &column)) {
        line = 0;
    }
    tell_original(v, f, &name, &line, &column);
    buf_init(&text, 8 * V8_NAME_MAX);
    v8_put_name(&text, name, f->file, line, column);
    f->name = text.failed ? (struct str){0} : arena_copy(&v->texts, buf_slice(&text));
    buf_release(&text);
}

static bool read_function(struct v8 *v, const struct v8_head *shared, struct v8_function *f)
{
    struct v8_head named;
    struct scope scope = {.start = -1, .end = -1};
    *f = (struct v8_function){.shared = shared->at,
                              .name_at = v8_field(shared, v8_at(v, V8_SHARED_NAME)),
                              .script_at = v8_field(shared, v8_at(v, V8_SHARED_SCRIPT))};
    buf_init(&scope.name, 4 * V8_NAME_MAX);
    if (v8_read_head(v, f->name_at, &named)) {
        if (named.type == v8_at(v, V8_TYPE_SCOPE)) {
            read_scope(v, &named, &scope);
        } else if (v8_is_string(v, &named)) {
            (void)v8_read_string(v, f->name_at, &scope.name);
        }
    }
    f->script = v8_script(v, f->script_at);
    f->file = f->script > 0 ? v->scripts.at[f->script - 1].name : (struct str){0};
    name_function(v, &scope, f);
    buf_release(&scope.name);
    return f->name.ptr != NULL;
}

uint32_t v8_function(struct v8 *v, uint64_t shared)
{
    struct v8_head head;
    struct v8_function now;
    const struct map_slot *slot = map_find(&v->function_of, v8_object(shared));
    struct v8_function *kept = slot != NULL ? &v->functions.at[slot->value] : NULL;
    if (kept != NULL && kept->shared == v8_object(shared) && !v8_is_due(v, kept->asked)) {
        return (uint32_t)slot->value;
    }
    if (!v8_read_head(v, shared, &head) || head.type != v8_at(v, V8_TYPE_SHARED)) {
        return V8_NO_FUNCTION;
    }
    if (kept != NULL) {
        if (kept->name_at == v8_field(&head, v8_at(v, V8_SHARED_NAME)) &&
            kept->script_at == v8_field(&head, v8_at(v, V8_SHARED_SCRIPT))) {
            kept->asked = v->stacks;
            return (uint32_t)slot->value;
        }
    }
    if (v->functions.len >= FUNCTIONS_MAX || !read_function(v, &head, &now)) {
        return V8_NO_FUNCTION;
    }
    struct v8_function *f = vec_push(&v->functions);
    if (f == NULL || !map_put(&v->function_of, head.at, v->functions.len - 1)) {
        return V8_NO_FUNCTION;
    }
    *f = now;
    f->asked = v->stacks;
    return (uint32_t)v->functions.len - 1;
}

/* Of an object that was moved the map's place has where it is now, without the mark of a pointer, until the memory is
 * used anew. */
uint64_t v8_shared_of(const struct v8 *v, uint64_t closure)
{
    unsigned char bytes[V8_HEAD_BYTES];
    uint64_t at = v8_object(closure);
    for (int i = 0; i < MOVES_MAX && at != 0 && v8_read(v, at, bytes, sizeof bytes); i++) {
        uint64_t map = load_u64(bytes);
        if (v8_object(map) != 0) {
            return load_u64(bytes + v8_at(v, V8_FUNCTION_SHARED));
        }
        at = map % 8 == 0 ? map : 0;
    }
    return 0;
}
