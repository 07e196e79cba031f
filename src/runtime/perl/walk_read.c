/* What a walk holds of the target's memory (walk.h): the batch in hand, and contexts of the arrays that the plan knows.
 * Those that do not fit are fetched when the walk comes to them, between two copies of the last one before them.
 * Whether they make sense is for others to say. */
#include "runtime/perl/walk.h"

enum { SLACK = 6 /* contexts that an array may have grown by */ };

uint32_t calls_ask(struct walk *w, uint64_t address, void *out, uint32_t len)
{
    if (!plausible(address) || len == 0 || w->pieces == WALK_PIECES) {
        return 0;
    }
    w->piece[w->pieces] = (struct memory_piece){address, out, len, 0};
    return ++w->pieces;
}

bool calls_read(struct walk *w)
{
    if (w->batches == WALK_BATCHES_MAX || w->failed > WALK_FAILED_MAX) {
        return false;
    }
    w->batches++;
    w->unreadable = !memory_batch_read(w->memory, w->piece, w->pieces, NULL);
    for (uint32_t i = 0; i < w->pieces; i++) {
        w->failed += w->piece[i].got != w->piece[i].len;
    }
    return !w->unreadable;
}

bool calls_got(const struct walk *w, uint32_t piece)
{
    return piece != 0 && w->piece[piece - 1].got == w->piece[piece - 1].len;
}

/* ---- the first batch ---- */

static void ask_words(struct walk *w, int which)
{
    struct walk_words *words = &w->words[which];
    words->cop_piece = calls_ask(w, w->interpreter.curcop, &words->cop, 8);
    words->info_piece = calls_ask(w, w->interpreter.curstackinfo, &words->info, 8);
    words->pad = 0;
    (void)calls_ask(w, w->interpreter.comppad, &words->pad, 8);
}

/* Which contexts of each array have room, those nearest to the leaf first. */
static void share_room(struct walk *w)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < w->plan->count; i++) {
        struct walk_array *array = &w->array[i];
        const struct plan_info *info = &w->plan->info[i];
        int32_t slack = i == 0 && info->max - info->index > SLACK ? SLACK : 0;
        array->limit = info->index + 1 + slack;
        array->first = array->limit - (int32_t)least((uint64_t)array->limit, WALK_CONTEXTS - used);
        array->offset = used;
        used += (uint32_t)(array->limit - array->first);
    }
}

static void ask_infos(struct walk *w, int copy)
{
    for (uint32_t i = 0; i < w->plan->count; i++) {
        w->array[i].info_piece[copy] = calls_ask(w, w->plan->info[i].at, w->array[i].info[copy], PERL_INFO_BYTES);
    }
}

static void ask_contexts(struct walk *w, int copy)
{
    uint32_t bytes = w->layout->context_bytes;
    for (uint32_t i = 0; i < w->plan->count; i++) {
        struct walk_array *array = &w->array[i];
        array->piece[copy] = calls_ask(w, w->plan->info[i].contexts + (uint64_t)array->first * bytes,
                                       w->pool[copy] + (size_t)array->offset * bytes,
                                       (uint32_t)(array->limit - array->first) * bytes);
    }
}

/* Contexts that are not there are none that are held. */
static void take_contexts(struct walk *w)
{
    for (uint32_t i = 0; i < w->plan->count; i++) {
        struct walk_array *array = &w->array[i];
        if (!calls_got(w, array->piece[0]) || (w->twice && !calls_got(w, array->piece[1]))) {
            array->limit = array->first;
        }
    }
}

/* The module has no more of a thread that has ended; another one may have its number, or its memory. */
static void ask_thread(struct walk *w)
{
    w->own_interpreter = w->own_tid = 0;
    if (w->interpreter.at != w->perl->main.at) {
        (void)calls_ask(w, w->plan->thread.interpreter_at, &w->own_interpreter, 8);
        (void)calls_ask(w, w->plan->thread.tid_at, &w->own_tid, 4);
    }
}

bool calls_is_own(const struct walk *w)
{
    return w->interpreter.at == w->perl->main.at ||
           (w->own_interpreter == w->interpreter.at && w->own_tid == w->plan->thread.tid);
}

bool calls_read_first(struct walk *w)
{
    w->pieces = 0;
    ask_thread(w);
    share_room(w);
    ask_words(w, 0);
    ask_infos(w, 0);
    ask_contexts(w, 0);
    if (w->twice) {
        ask_words(w, 1);
        ask_contexts(w, 1);
        ask_infos(w, 1);
        ask_words(w, 2);
    }
    if (!calls_read(w)) {
        return false;
    }
    take_contexts(w);
    return true;
}

/* ---- the plan ---- */

static struct plan_info info_of(const struct walk *w, uint64_t at, const unsigned char *bytes)
{
    return (struct plan_info){at, load_u64(bytes + INFO_CONTEXTS), load_u64(bytes + INFO_PREV),
                              (int32_t)load_u32(bytes + INFO_INDEX), (int32_t)load_u32(bytes + INFO_MAX),
                              (int32_t)load_u32(bytes + w->layout->info_type)};
}

static bool is_info(const struct plan_info *info)
{
    return info->at % 8 == 0 && info->contexts % 8 == 0 && plausible(info->contexts) && info->index >= -1 &&
           info->index < PERL_CONTEXTS_MAX && info->max >= info->index && (info->prev == 0) == (info->type == 1);
}

bool calls_is_as_planned(const struct walk *w, uint32_t number, int copy)
{
    const struct walk_array *array = &w->array[number];
    const struct plan_info *plan = &w->plan->info[number], info = info_of(w, plan->at, array->info[copy]);
    return calls_got(w, array->info_piece[copy]) && is_info(&info) && info.contexts == plan->contexts &&
           info.prev == plan->prev && info.type == plan->type &&
           (info.index < array->limit || array->limit == array->first);
}

void calls_remember(struct walk *w)
{
    for (uint32_t i = 0; i < w->plan->count; i++) {
        struct plan_info *plan = &w->plan->info[i], info = info_of(w, plan->at, w->array[i].info[0]);
        info.at = calls_got(w, w->array[i].info_piece[0]) && is_info(&info) ? info.at : 0;
        *plan = info;
    }
}

static const struct plan_info *find_info(const struct plan_info *all, uint32_t count, uint64_t at)
{
    for (uint32_t i = 0; i < count; i++) {
        if (all[i].at == at) {
            return &all[i];
        }
    }
    return NULL;
}

static bool read_info(struct walk *w, uint64_t at, struct plan_info *out)
{
    unsigned char bytes[PERL_INFO_BYTES];
    w->pieces = 0;
    uint32_t piece = calls_ask(w, at, bytes, sizeof bytes);
    if (!calls_read(w) || !calls_got(w, piece)) {
        return false;
    }
    *out = info_of(w, at, bytes);
    return is_info(out);
}

enum runtime_end calls_learn(struct walk *w, uint64_t at)
{
    struct perl_plan *plan = w->plan;
    struct plan_info old[WALK_INFOS], info;
    uint32_t count = plan->count;
    memcpy(old, plan->info, count * sizeof old[0]);
    plan->count = 0;
    for (plan->cut = false; plan->count < WALK_INFOS; at = info.prev) {
        const struct plan_info *known = find_info(old, count, at);
        if (find_info(plan->info, plan->count, at) != NULL || (known == NULL && !read_info(w, at, &info))) {
            return w->unreadable ? RUNTIME_UNREADABLE : RUNTIME_TORN;
        }
        info = known != NULL ? *known : info;
        plan->info[plan->count++] = info;
        if (info.prev == 0) {
            return RUNTIME_COMPLETE;
        }
    }
    plan->cut = true;
    return RUNTIME_COMPLETE;
}

/* ---- contexts that had no room ---- */

static bool same_word(const unsigned char *a, const unsigned char *b, uint32_t at)
{
    return load_u64(a + at) == load_u64(b + at);
}

bool calls_is_same(const struct walk *w, const unsigned char *a, const unsigned char *b)
{
    uint32_t type = a[CONTEXT_TYPE] & CONTEXT_TYPE_MASK;
    bool is_call = type == TYPE_SUB || type == TYPE_FORMAT; /* what stands there of a loop changes with each turn */
    return a[CONTEXT_TYPE] == b[CONTEXT_TYPE] && same_word(a, b, CONTEXT_COP) && same_word(a, b, CONTEXT_RETURN) &&
           (!is_call || same_word(a, b, w->layout->cv)) &&
           (type != TYPE_EVAL || same_word(a, b, w->layout->eval_name));
}

/* Reads contexts up to `index` between two copies of the last one met, `joint`; its bytes are `kept`. */
static bool read_more(struct walk *w, uint32_t number, int32_t index, const unsigned char *kept, uint64_t joint)
{
    struct walk_array *array = &w->array[number];
    unsigned char before[PERL_CONTEXT_BYTES], behind[PERL_CONTEXT_BYTES];
    uint32_t bytes = w->layout->context_bytes;
    for (uint32_t i = 0; i < w->plan->count; i++) {
        w->array[i].limit = w->array[i].first;
    }
    array->limit = index + 1;
    array->first = (int32_t)most((uint64_t)array->limit, WALK_CONTEXTS) - WALK_CONTEXTS;
    array->offset = 0;
    w->pieces = 0;
    uint32_t first = calls_ask(w, joint, before, bytes);
    uint32_t piece = calls_ask(w, w->plan->info[number].contexts + (uint64_t)array->first * bytes, w->pool[0],
                               (uint32_t)(array->limit - array->first) * bytes);
    uint32_t last = calls_ask(w, joint, behind, bytes);
    bool good = calls_read(w) && calls_got(w, piece);
    good = good && (!w->twice ||
                    (calls_got(w, first) && calls_got(w, last) && calls_is_same(w, kept, before) &&
                     calls_is_same(w, kept, behind)));
    array->limit = good ? array->limit : array->first;
    return good;
}

static bool holds(const struct walk_array *array, int32_t index)
{
    return index >= array->first && index < array->limit;
}

static unsigned char *held(struct walk *w, uint32_t number, int32_t index)
{
    const struct walk_array *array = &w->array[number];
    return w->pool[0] + (size_t)(array->offset + (uint32_t)(index - array->first)) * w->layout->context_bytes;
}

const unsigned char *calls_context(struct walk *w, uint32_t number, int32_t index)
{
    if (!holds(&w->array[number], index)) {
        _Alignas(8) unsigned char kept[PERL_CONTEXT_BYTES];
        uint64_t joint = 0;
        if (holds(&w->array[w->met], w->met_index)) {
            memcpy(kept, held(w, w->met, w->met_index), w->layout->context_bytes);
            joint = w->plan->info[w->met].contexts + (uint64_t)w->met_index * w->layout->context_bytes;
        }
        if (!read_more(w, number, index, kept, joint)) {
            return NULL;
        }
    }
    w->met = number;
    w->met_index = index;
    return held(w, number, index);
}
