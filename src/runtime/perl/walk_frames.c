/* The frames of a stack (walk.h): contexts from the leaf to the root, those that are calls, each with the place that
 * the one nearer to the leaf has kept. Here is also what two copies of the contexts have in common: from the root on,
 * up to where the thread ran on. */
#include "runtime/perl/walk.h"

enum {
    ROOT_CONTEXTS = 320, /* of a deep stack, looked at for the frames that are kept */

    FLAG_FAKE = 0x80,     /* of a sub: code in a pattern, which is part of the function around it */
    FLAG_REAL = 0x20,     /* of an eval: of a text */
    FLAG_BLOCK = 0x40,
    FLAG_TRY = 0x80,      /* of a block: try, which is part of the function around it */
    INFO_SORT = 3,
};

/* ---- what two copies have in common ---- */

static int32_t index_of(const struct walk *w, uint32_t number, int copy)
{
    return (int32_t)load_u32(w->array[number].info[copy] + INFO_INDEX);
}

/* How many contexts of an array both copies have in common; those that are not held count. */
static int32_t common(const struct walk *w, uint32_t number)
{
    const struct walk_array *array = &w->array[number];
    int32_t first = index_of(w, number, 0), second = index_of(w, number, 1), least_of = first < second ? first : second;
    size_t bytes = w->layout->context_bytes;
    int32_t count = array->first;
    for (; count <= least_of && count < array->limit; count++) {
        size_t at = (array->offset + (size_t)(count - array->first)) * bytes;
        if (!calls_is_same(w, w->pool[0] + at, w->pool[1] + at)) {
            break;
        }
    }
    return (int32_t)least((uint64_t)count, (uint64_t)(least_of + 1));
}

static bool is_whole(const struct walk *w, uint32_t number, int32_t count)
{
    return number == 0 && count == index_of(w, 0, 0) + 1 && count == index_of(w, 0, 1) + 1 &&
           w->words[1].info == w->words[0].info && w->words[2].info == w->words[0].info;
}

/* Did the same sub run before, between and behind? */
static bool ran_on_in_place(const struct walk *w)
{
    return w->words[0].pad == w->words[1].pad && w->words[1].pad == w->words[2].pad;
}

bool calls_begin(struct walk *w)
{
    w->top = w->met = 0;
    w->met_index = -1;
    w->index = index_of(w, 0, 0);
    w->cop = w->words[0].cop;
    w->is_part = false;
    if (!w->twice) {
        return true;
    }
    uint32_t number = w->plan->count - 1;
    int32_t count = common(w, number);
    while (number > 0 && count == index_of(w, number, 0) + 1 && count == index_of(w, number, 1) + 1) {
        count = common(w, --number);
    }
    w->is_part = !is_whole(w, number, count);
    w->top = number;
    w->index = count - 1;
    w->cop = !w->is_part && ran_on_in_place(w) ? w->words[1].cop : 0;
    return !w->is_part || w->takes_parts;
}

/* ---- frames ---- */

static void put(struct walk *w, uint32_t kind, uint64_t first, bool is_entry)
{
    w->last = walk_place(w->out, w->emitted++);
    *w->last = (struct runtime_frame){
        .code = first,
        .flags = kind | (is_entry ? (uint32_t)RUNTIME_FRAME_ENTRY : 0U),
        .check = w->cop,
    };
}

/* A block, which goes by the place that it is called from; a text, likewise; a file. */
static void put_eval(struct walk *w, const unsigned char *context, bool is_entry)
{
    uint32_t flags = context[CONTEXT_TYPE];
    bool is_block = (flags & FLAG_BLOCK) != 0, is_text = (flags & FLAG_REAL) != 0;
    if (is_block || is_text || load_u64(context + w->layout->eval_name) == 0) {
        put(w, WALK_EVAL | (is_block ? 0U : (uint32_t)WALK_TEXT), load_u64(context + CONTEXT_COP), is_entry);
    } else {
        put(w, WALK_FILE, PERL_REQUIRE, is_entry);
    }
    w->short_lived = w->short_lived || !is_block;
}

/* A run of the loop without a function of its own: a sort's block, code in a pattern, what defer and finally put
 * off. */
static bool runs_apart(const struct walk *w, uint32_t number, const unsigned char *context)
{
    uint32_t type = context[CONTEXT_TYPE] & CONTEXT_TYPE_MASK;
    return type == TYPE_DEFER || (type == TYPE_NULL && w->plan->info[number].type == INFO_SORT) ||
           (type == TYPE_SUB && (context[CONTEXT_TYPE] & FLAG_FAKE) != 0);
}

/* False: it contradicts itself. */
static bool emit(struct walk *w, uint32_t number, const unsigned char *context)
{
    uint32_t type = context[CONTEXT_TYPE] & CONTEXT_TYPE_MASK;
    uint64_t cop = load_u64(context + CONTEXT_COP), cv = load_u64(context + w->layout->cv);
    /* an eval around what C code calls has none either, but no loop of its own */
    bool is_entry = load_u64(context + CONTEXT_RETURN) == 0 &&
                    (type != TYPE_EVAL || (context[CONTEXT_TYPE] & FLAG_BLOCK) == 0);
    if (runs_apart(w, number, context)) {
        put(w, RUNTIME_FRAME_SHIM, 0, false);
        return true;
    }
    if (type < TYPE_SUB || type > TYPE_EVAL || (type == TYPE_EVAL && (context[CONTEXT_TYPE] & FLAG_TRY) != 0)) {
        return true;
    }
    if (!plausible(cop) || (type != TYPE_EVAL && (!plausible(cv) || cv % 8 != 0))) {
        return false;
    }
    if (type == TYPE_EVAL) {
        put_eval(w, context, is_entry);
    } else {
        put(w, WALK_SUB, cv, is_entry);
    }
    w->cop = cop;
    return true;
}

static bool is_main(const struct walk *w)
{
    return w->interpreter.at == w->perl->interpreter;
}

/* The module threads calls what a thread is begun with in an eval, which is nobody's. */
static bool begins_thread(const struct walk *w, uint32_t number, int32_t index, const unsigned char *context)
{
    return !is_main(w) && index == 0 && number + 1 == w->plan->count &&
           (context[CONTEXT_TYPE] & (CONTEXT_TYPE_MASK | FLAG_BLOCK)) == (TYPE_EVAL | FLAG_BLOCK) &&
           load_u64(context + CONTEXT_RETURN) == 0;
}

/* The place where the main program stands; not while it is compiled, when it does not run yet. */
static void put_main(struct walk *w)
{
    bool is_compiled = w->cop >= w->interpreter.compiling && w->cop < w->interpreter.compiling_limit;
    if (w->plan->cut && w->last != NULL) {
        w->last->flags |= (uint32_t)RUNTIME_FRAME_CUT | RUNTIME_FRAME_ENTRY;
    } else if (!w->plan->cut && !is_compiled && is_main(w)) {
        put(w, WALK_FILE, PERL_MAIN, true);
    }
}

/* The middle of a deep stack is left out. */
static int32_t next_index(struct walk *w, int32_t index)
{
    if (w->emitted < WALK_KEEP_LEAF || index <= ROOT_CONTEXTS) {
        return index - 1;
    }
    w->out->frame[WALK_KEEP_LEAF - 1].flags |= RUNTIME_FRAME_CUT;
    w->cop = 0;
    return ROOT_CONTEXTS - 1;
}

/* A sub's function is taken away before its context is; what is freed then may call Perl, in an array of its own. */
static bool is_left(const struct walk *w, const unsigned char *context)
{
    uint32_t type = context[CONTEXT_TYPE] & CONTEXT_TYPE_MASK;
    return (type == TYPE_SUB || type == TYPE_FORMAT) && load_u64(context + w->layout->cv) == 0;
}

static void leave(struct walk *w, const unsigned char *context)
{
    w->cop = load_u64(context + CONTEXT_COP);
    if (load_u64(context + CONTEXT_RETURN) == 0) { /* the loop that ran it runs still */
        put(w, RUNTIME_FRAME_SHIM, 0, false);
    }
}

static bool emit_array(struct walk *w, uint32_t number, int32_t index)
{
    while (index >= 0) {
        const unsigned char *context = calls_context(w, number, index);
        if (context == NULL) {
            return false;
        }
        bool is_newest = index == index_of(w, number, 0);
        bool is_none = begins_thread(w, number, index, context) ||
                       (is_newest && number == 0 && calls_is_unfilled(w, context));
        if (is_newest && is_left(w, context)) {
            leave(w, context);
        } else if (!is_none && !emit(w, number, context)) {
            return false;
        }
        index = next_index(w, index);
    }
    return true;
}

enum runtime_end calls_frames(struct walk *w)
{
    for (uint32_t i = w->top; i < w->plan->count; i++) {
        if (!emit_array(w, i, i == w->top ? w->index : index_of(w, i, 0))) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
    }
    put_main(w);
    walk_keep(w->out, w->emitted);
    return RUNTIME_COMPLETE;
}
