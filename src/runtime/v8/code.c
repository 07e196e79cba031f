/* Which functions run at a place: of bytecode, and of code that was made of it. Code objects are found by searching
 * back from the address to an object that says of itself that its instructions reach there: by a pointer that leads
 * back, or, in older versions, where the object holds them, by its type. */
#include "runtime/v8/private.h"

enum {
    WORD = 8,
    STEP = 16,          /* objects with instructions begin at multiples of this */
    PIECE_BYTES = 4096,
    PIECES_MAX = 256,   /* a megabyte of code */
    CANDIDATES_MAX = 1 << 10,
    GAP_MAX = 64,       /* from the beginning of the object to its instructions */
    STREAM_CODE = 8,    /* of an InstructionStream: its Code */
    CODE_STREAM = 32, CODE_START = 40,
    ARRAY_DATA = 16,
    WRAPPED = 8,        /* what a wrapper has */
    INLINING_BYTES = 16, INLINING_FUNCTION = 8,
    PROLOGUE_BYTES = 64,
    SHARED_DATA = 8,    /* of a SharedFunctionInfo: its bytecode, or what has it */
    BASELINE_DATA_IN = 9, BASELINE_BYTECODE = 16, /* version whose code has its bytecode in a BaselineData */
};

/* ---- finding ---- */

static bool has_streams(const struct v8 *v)
{
    return v8_at(v, V8_CODE_HEADER) == 0;
}

static bool may_be_object(uint64_t word)
{
    return v8_object(word) != 0 && plausible(word);
}

/* Of what may be an object that holds instructions its Code; 0: it cannot be one. */
static uint64_t code_of(const struct v8 *v, uint64_t at, const unsigned char *bytes)
{
    uint64_t second = load_u64(bytes + STREAM_CODE);
    if (!may_be_object(load_u64(bytes)) || !may_be_object(second)) {
        return 0;
    }
    return has_streams(v) ? second : at + 1;
}

/* Has the object at `at`, whose Code is `word`, instructions at `address`? */
static bool is_code(const struct v8 *v, uint64_t at, uint64_t word, uint64_t map_word, uint64_t address,
                    struct v8_code *out)
{
    struct v8_head head, map;
    if (!v8_read_head(v, word, &head) || head.type != v8_at(v, V8_TYPE_CODE) || !v8_read_head(v, map_word, &map) ||
        map.type != v8_at(v, V8_TYPE_MAP)) {
        return false;
    }
    out->start = at + (uint64_t)v8_at(v, V8_CODE_HEADER);
    if (has_streams(v)) {
        out->start = v8_field(&head, CODE_START);
        if (v8_object(v8_field(&head, CODE_STREAM)) != at || out->start - at > GAP_MAX) {
            return false;
        }
    }
    int32_t flags = (int32_t)load_u32(head.bytes + v8_at(v, V8_CODE_FLAGS));
    out->limit = out->start + load_u32(head.bytes + v8_at(v, V8_CODE_SIZE));
    out->deoptimization = v8_field(&head, v8_at(v, V8_CODE_DEOPTIMIZATION));
    out->positions = v8_field(&head, v8_at(v, V8_CODE_POSITIONS));
    out->is_regexp = (flags & v8_at(v, V8_CODE_KIND_MASK)) == v8_at(v, V8_CODE_REGEXP);
    return address >= out->start && address < out->limit;
}

static bool search_code(const struct v8 *v, uint64_t address, uint64_t *object, struct v8_code *out)
{
    unsigned char bytes[PIECE_BYTES + STEP] = {0}; /* and what is behind the piece */
    uint64_t page = address & ~(uint64_t)(PIECE_BYTES - 1), at = address & ~(uint64_t)(STEP - 1);
    unsigned candidates = 0;
    for (int i = 0; i < PIECES_MAX && candidates < CANDIDATES_MAX && v8_read(v, page, bytes, PIECE_BYTES); i++) {
        for (; at >= page && candidates < CANDIDATES_MAX; at -= STEP) {
            uint64_t code = code_of(v, at, bytes + (at - page));
            candidates += code != 0;
            if (code != 0 && is_code(v, at, code, load_u64(bytes + (at - page)), address, out)) {
                *object = at;
                return true;
            }
        }
        memcpy(bytes + PIECE_BYTES, bytes, STEP);
        page -= PIECE_BYTES;
    }
    return false;
}

/* ---- what it is of ---- */

static bool add_scope(struct v8 *v, struct v8_place *place, uint32_t function, int32_t position)
{
    struct v8_scope *scope = function != V8_NO_FUNCTION ? vec_push(&v->scopes) : NULL;
    uint32_t line = 0, column = 0;
    struct source_place original;
    if (scope == NULL) {
        return false;
    }
    const struct v8_function *f = &v->functions.at[function];
    if (position < 0 || !v8_line_at(v, f->script, (uint32_t)position, &line, &column)) {
        line = 0;
    } else if (v8_original(v, f->script, line, column, &original)) { /* a bundler may put other files' in it */
        line = str_eq(original.file, f->file) ? original.line : 0;
    }
    *scope = (struct v8_scope){function, line};
    place->scope_count++;
    return true;
}

/* A word of an array that has so many. */
static bool element(const struct v8 *v, uint64_t array, uint32_t count, int32_t index, uint64_t *out)
{
    return index >= 0 && (uint32_t)index < count &&
           v8_read(v, v8_object(array) + ARRAY_DATA + (uint64_t)index * WORD, out, sizeof *out);
}

/* What an array has: elements, or bytes. */
static uint32_t count_of(const struct v8 *v, uint64_t array)
{
    uint64_t head[2];
    int32_t count;
    bool good = v8_read(v, v8_object(array), head, sizeof head) && v8_small(head[1], &count) && count > 0;
    return good ? (uint32_t)count : 0;
}

static uint32_t function_in(struct v8 *v, uint64_t word)
{
    uint64_t inner;
    uint32_t function = v8_function(v, word);
    bool wraps = function == V8_NO_FUNCTION && v8_object(word) != 0 &&
                 v8_read(v, v8_object(word) + WRAPPED, &inner, sizeof inner);
    return wraps ? v8_function(v, inner) : function;
}

/* Optimised code: the function that was compiled, and what was inlined into it. */
static void read_optimised(struct v8 *v, struct v8_code *code)
{
    uint32_t count = count_of(v, code->deoptimization);
    uint64_t word;
    code->function = V8_NO_FUNCTION;
    if (!element(v, code->deoptimization, count, v8_at(v, V8_DEOPT_SHARED), &word)) {
        return;
    }
    code->function = function_in(v, word);
    if (element(v, code->deoptimization, count, v8_at(v, V8_DEOPT_LITERALS), &code->literals) &&
        element(v, code->deoptimization, count, v8_at(v, V8_DEOPT_INLININGS), &code->inlinings)) {
        code->literal_count = count_of(v, code->literals);
        code->inlining_count = count_of(v, code->inlinings) / INLINING_BYTES;
    }
}

/* The number + 1 in owners of the code that an address is in; 0: there is none. */
static uint32_t find_code(struct v8 *v, uint64_t address)
{
    const struct map_slot *slot = map_find(&v->code_of_page, address / V8_PAGE_BYTES);
    struct v8_owner *last = slot != NULL ? &v->owners.at[slot->value] : NULL;
    if (last != NULL && address >= last->code.start && address < last->code.limit && v8_is_same(v, last)) {
        return (uint32_t)slot->value + 1;
    }
    struct v8_code code = {0};
    uint64_t object;
    uint32_t owner = search_code(v, address, &object, &code) ? v8_owner(v, object) : 0;
    if (owner == 0) {
        return 0;
    }
    read_optimised(v, &code);
    v->owners.at[owner - 1].code = code;
    (void)map_put(&v->code_of_page, address / V8_PAGE_BYTES, owner - 1);
    return owner;
}

/* What was inlined at a position, innermost first, and at last the function that was compiled. */
static bool add_optimised(struct v8 *v, const struct v8_code *code, uint64_t address, struct v8_place *place)
{
    struct v8_position position = {-1, -1};
    (void)v8_position_at(v, code->positions, address - code->start, &position);
    for (int i = 0; position.inlined >= 0 && (uint32_t)position.inlined < code->inlining_count && i < V8_INLINED_MAX;
         i++) {
        unsigned char entry[INLINING_BYTES];
        uint64_t at = v8_object(code->inlinings) + ARRAY_DATA + (uint64_t)position.inlined * INLINING_BYTES, word;
        if (!v8_read(v, at, entry, sizeof entry)) {
            break;
        }
        int32_t literal = (int32_t)load_u32(entry + INLINING_FUNCTION); /* -1: the outer one, into itself */
        if ((literal >= 0 && !element(v, code->literals, code->literal_count, literal, &word)) ||
            !add_scope(v, place, literal >= 0 ? function_in(v, word) : code->function, position.offset)) {
            break;
        }
        position = v8_position_of(v, load_u64(entry));
    }
    return add_scope(v, place, code->function, position.inlined < 0 ? position.offset : -1);
}

static bool add_bytecode(struct v8 *v, const struct v8_head *array, uint32_t function, uint64_t offset,
                         struct v8_place *place)
{
    struct v8_position position = {-1, -1};
    (void)v8_position_at(v, v8_field(array, v8_at(v, V8_BYTECODE_POSITIONS)), offset, &position);
    return add_scope(v, place, function, position.offset);
}

static bool read_shared(const struct v8 *v, uint64_t closure, struct v8_head *out)
{
    return v8_read_head(v, v8_shared_of(v, closure), out) && out->type == v8_at(v, V8_TYPE_SHARED);
}

bool v8_is_of_program(const struct v8 *v, uint64_t closure)
{
    struct v8_head shared;
    return read_shared(v, closure, &shared) && v8_object(v8_field(&shared, SHARED_DATA)) != 0;
}

/* Has the function this bytecode? It has it itself, or what is made of it has. */
static bool has_bytecode(const struct v8 *v, uint64_t closure, uint64_t array)
{
    struct v8_head shared, data;
    if (!read_shared(v, closure, &shared)) {
        return false;
    }
    uint64_t word = v8_field(&shared, SHARED_DATA);
    if (v8_object(word) == array || !v8_read_head(v, word, &data)) {
        return v8_object(word) == array;
    }
    return data.type == v8_at(v, V8_TYPE_CODE)
               ? v8_object(v8_field(&data, v8_at(v, V8_CODE_DEOPTIMIZATION))) == array
               : v8_object(v8_field(&data, WRAPPED)) == array || v8_object(v8_field(&data, BASELINE_BYTECODE)) == array;
}

/* Which function bytecode is of the frame tells. The closure there may have been moved since, and another be in its
 * place. Once the function is known, a leaf whose frame is not made yet has it, too. */
static uint32_t function_of_bytecode(struct v8 *v, uint64_t array, uint64_t closure)
{
    const struct map_slot *slot = map_find(&v->function_of, array);
    uint32_t function = has_bytecode(v, closure, array) ? v8_function(v, v8_shared_of(v, closure)) : V8_NO_FUNCTION;
    if (function != V8_NO_FUNCTION) {
        (void)map_put(&v->function_of, array, function);
        return function;
    }
    return slot != NULL ? (uint32_t)slot->value : V8_NO_FUNCTION;
}

bool v8_find_bytecode(struct v8 *v, const struct v8_frame *frame, uint64_t offset, struct v8_place *place)
{
    struct v8_head head;
    uint64_t data = (uint64_t)v8_at(v, V8_BYTECODE_DATA) - 1; /* offsets count from the object's address + 1 */
    if (offset < data || !v8_read_head(v, frame->array, &head) || head.type != v8_at(v, V8_TYPE_BYTECODE)) {
        return false;
    }
    place->owner = v8_owner(v, head.at);
    return add_bytecode(v, &head, function_of_bytecode(v, head.at, frame->closure), offset - data, place);
}

/* Code of the baseline compiler has its bytecode in the place of what optimised code has, or its frame has it. */
static bool find_its_bytecode(const struct v8 *v, const struct v8_code *code, const struct v8_frame *frame,
                              struct v8_head *out)
{
    return (v8_read_head(v, code->deoptimization, out) && out->type == v8_at(v, V8_TYPE_BYTECODE)) ||
           (v->layout->version[0] == BASELINE_DATA_IN && !code->is_regexp && v8_read_head(v, frame->array, out) &&
            out->type == v8_at(v, V8_TYPE_BYTECODE));
}

bool v8_find_code(struct v8 *v, uint64_t address, const struct v8_frame *frame, struct v8_place *place)
{
    struct v8_head head;
    place->owner = find_code(v, address); /* what holds the instructions: another one there has another Code */
    if (place->owner == 0) {
        return false;
    }
    const struct v8_code code = v->owners.at[place->owner - 1].code;
    if (code.function != V8_NO_FUNCTION) {
        return add_optimised(v, &code, address, place);
    }
    if (find_its_bytecode(v, &code, frame, &head)) {
        uint64_t offset = address - code.start;
        bool is_made = !frame->exact || offset >= PROLOGUE_BYTES;
        uint32_t function = function_of_bytecode(v, head.at, is_made ? frame->closure : 0);
        return v8_bytecode_offset(v, code.positions, &head, offset, &offset)
                   ? add_bytecode(v, &head, function, offset, place)
                   : add_scope(v, place, function, -1);
    }
    place->is_regexp = code.is_regexp;
    place->is_interpreter = !code.is_regexp;
    return true;
}
