/* A profile's heaviest stacks, as many as there is room for, and one stack for what the others count.
 * Samples, waits and events are put into one list of items, sorted by weight; a view of the profile holds the
 * first of them and the sums of the rest, and is written until its size is right. */
#include "encode/fit.h"

#include <stdlib.h>

enum what { CPU_TIME, WAITING, EVENT };

struct item {
    double weight; /* < 0: it goes in any case */
    uint64_t value, count;
    uint32_t thread, node;
    uint8_t what, event;
};

/* What went of one thread, or of all that it stands for. */
struct dropped {
    uint64_t cpu_ns, count, wait_ns, amount[PROFILE_EVENTS_MAX];
};

struct fit_items {
    VEC(struct item) list; /* the heaviest first */
    size_t choosable;      /* of these */
    const struct encode_rules *rules;
    enum fit_apart apart;
    fit_write *write;
    struct err *err;
    uint32_t node;         /* of ENCODE_DROPPED */
    uint32_t nameless;     /* the first of the view's threads that stand for a process */
    uint32_t row_of_all;   /* the one that stands for all */
    struct dropped *dropped; /* by thread */
};

/* ---- the view's own tables ---- */

static bool copy_tables(struct fit *fit, const struct profile *p, uint32_t dropped_name)
{
    struct profile *view = &fit->view;
    *view = *p;
    memset(&view->samples, 0, sizeof view->samples);
    memset(&view->moments, 0, sizeof view->moments); /* they name p's samples */
    memset(&view->waits, 0, sizeof view->waits);
    memset(&view->occurrences, 0, sizeof view->occurrences);
    memset(&view->threads, 0, sizeof view->threads);
    memset(&view->processes, 0, sizeof view->processes);
    bool ok = vec_push(&view->samples) != NULL;
    vec_each(&p->processes, process)
    {
        struct process *added = vec_push(&view->processes);
        ok = ok && added != NULL;
        if (ok) {
            *added = *process;
        }
    }
    fit->items->nameless = (uint32_t)p->threads.len;
    for (size_t i = 0; ok && i < p->threads.len + p->processes.len + 1; i++) {
        struct thread *added = vec_push(&view->threads);
        size_t process = i - p->threads.len;
        ok = added != NULL;
        if (ok) {
            *added = i < p->threads.len           ? p->threads.at[i]
                     : process < p->processes.len ? (struct thread){.process = (uint32_t)process}
                                                  : (struct thread){.name = dropped_name};
        }
    }
    return ok;
}

static uint64_t program_key(const struct process *p)
{
    return hash_u64((uint64_t)p->name << 32 | p->container) ^ p->appid;
}

/* Threads that only pids, names and labels tell apart become one: thread[i] is the first of them. */
static bool merge_threads(struct profile *view, uint32_t *first)
{
    struct map of_program = {0};
    bool ok = true;
    vec_each(&view->processes, process)
    {
        process->pid = 0;
    }
    for (uint32_t i = 1; ok && i < view->threads.len; i++) {
        struct thread *t = &view->threads.at[i];
        *t = (struct thread){.process = t->process};
        uint64_t key = program_key(&view->processes.at[t->process]);
        const struct map_slot *slot = map_find(&of_program, key);
        first[i] = slot != NULL ? (uint32_t)slot->value : i;
        ok = slot != NULL || map_put(&of_program, key, i);
    }
    map_release(&of_program);
    return ok;
}

/* ---- items ---- */

static bool add_item(struct fit_items *items, struct item item)
{
    struct item *added = vec_push(&items->list);
    if (added == NULL) {
        return false;
    }
    *added = item;
    added->weight = item.node == items->node ? -1 : 0;
    return true;
}

static bool add_items(struct fit_items *items, const struct profile *p)
{
    bool ok = true;
    for (size_t i = 1; ok && i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        ok = add_item(items, (struct item){.value = s->cpu_ns, .count = s->count, .thread = s->thread,
                                              .node = s->node, .what = CPU_TIME});
    }
    for (size_t i = 0; ok && i < p->waits.len; i++) {
        const struct wait *w = &p->waits.at[i];
        ok = add_item(items, (struct item){.value = w->wait_ns, .thread = w->thread, .node = w->node,
                                              .what = WAITING});
    }
    for (size_t i = 0; ok && i < p->occurrences.len; i++) {
        const struct occurrence *o = &p->occurrences.at[i];
        ok = add_item(items, (struct item){.value = o->amount, .thread = o->thread, .node = o->node,
                                              .what = EVENT, .event = (uint8_t)o->event});
    }
    return ok;
}

static int by_stack(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    int64_t order = (int64_t)a->what - b->what;
    order = order != 0 ? order : (int64_t)a->event - b->event;
    order = order != 0 ? order : (int64_t)a->thread - b->thread;
    order = order != 0 ? order : (int64_t)a->node - b->node;
    return (order > 0) - (order < 0);
}

static int by_weight(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->weight < b->weight || a->weight > b->weight) {
        return a->weight > b->weight ? -1 : 1;
    }
    return by_stack(left, right);
}

static void merge_items(struct fit_items *items, const uint32_t *first)
{
    size_t kept = 0;
    vec_each(&items->list, item)
    {
        item->thread = first[item->thread];
    }
    if (items->list.len > 0) {
        qsort(items->list.at, items->list.len, sizeof *items->list.at, by_stack);
    }
    vec_each(&items->list, item)
    {
        struct item *last = kept > 0 ? &items->list.at[kept - 1] : NULL;
        if (last != NULL && by_stack(last, item) == 0) {
            last->value += item->value;
            last->count += item->count;
        } else {
            items->list.at[kept++] = *item;
        }
    }
    items->list.len = kept;
}

static void weigh_items(struct fit_items *items)
{
    double total[EVENT + PROFILE_EVENTS_MAX] = {0};
    vec_each(&items->list, item)
    {
        total[item->what + item->event] += (double)item->value;
    }
    vec_each(&items->list, item)
    {
        double all = total[item->what + item->event];
        item->weight = item->weight < 0 ? -1 : all > 0 ? (double)item->value / all : 0;
        items->choosable += item->weight >= 0;
    }
    if (items->list.len > 0) {
        qsort(items->list.at, items->list.len, sizeof *items->list.at, by_weight);
    }
}

/* ---- the view with the heaviest items ---- */

static bool put(struct profile *view, const struct item *item)
{
    struct sample *sample = item->what == CPU_TIME ? vec_push(&view->samples) : NULL;
    struct wait *wait = item->what == WAITING ? vec_push(&view->waits) : NULL;
    struct occurrence *o = item->what == EVENT ? vec_push(&view->occurrences) : NULL;
    if (sample != NULL) {
        *sample = (struct sample){item->thread, item->node, item->value, item->count};
    } else if (wait != NULL) {
        *wait = (struct wait){item->thread, item->node, item->value};
    } else if (o != NULL) {
        *o = (struct occurrence){item->thread, item->node, item->event, item->value};
    }
    return sample != NULL || wait != NULL || o != NULL;
}

/* The row of threads that what was dropped of this one is counted under. */
static uint32_t row_of_dropped(const struct fit *fit, uint32_t thread)
{
    const struct fit_items *items = fit->items;
    return items->apart == FIT_BY_THREAD    ? thread
           : items->apart == FIT_BY_PROCESS ? items->nameless + fit->view.threads.at[thread].process
                                            : items->row_of_all;
}

static void drop(struct fit *fit, const struct item *item)
{
    struct dropped *d = &fit->items->dropped[row_of_dropped(fit, item->thread)];
    d->cpu_ns += item->what == CPU_TIME ? item->value : 0;
    d->wait_ns += item->what == WAITING ? item->value : 0;
    d->amount[item->event] += item->what == EVENT ? item->value : 0;
    d->count += item->count;
}

static bool put_dropped(struct fit *fit, uint32_t row)
{
    const struct dropped *d = &fit->items->dropped[row];
    struct item item = {.value = d->cpu_ns, .count = d->count, .thread = row, .node = fit->items->node};
    bool ok = (d->cpu_ns == 0 && d->count == 0) || put(&fit->view, &item);
    item = (struct item){.value = d->wait_ns, .thread = row, .node = item.node, .what = WAITING};
    ok = ok && (d->wait_ns == 0 || put(&fit->view, &item));
    for (uint8_t i = 0; ok && i < PROFILE_EVENTS_MAX; i++) {
        item = (struct item){.value = d->amount[i], .thread = row, .node = item.node, .what = EVENT, .event = i};
        ok = d->amount[i] == 0 || put(&fit->view, &item);
    }
    return ok;
}

/* Fills the view with so many of the items, and with what the others count. */
static bool make(struct fit *fit, size_t kept)
{
    struct fit_items *items = fit->items;
    bool ok = true;
    fit->view.samples.len = 1;
    vec_clear(&fit->view.waits);
    vec_clear(&fit->view.occurrences);
    memset(items->dropped, 0, fit->view.threads.len * sizeof *items->dropped);
    for (size_t i = 0; ok && i < items->list.len; i++) {
        if (i < kept) {
            ok = put(&fit->view, &items->list.at[i]);
        } else {
            drop(fit, &items->list.at[i]);
        }
    }
    for (uint32_t i = 0; ok && i < fit->view.threads.len; i++) {
        ok = put_dropped(fit, i);
    }
    return ok || err_set(items->err, ERR_MEMORY, 0, "no memory to choose the heaviest stacks");
}

static bool count_bytes(void *context, const void *ptr, size_t len, struct err *err)
{
    (void)ptr, (void)err;
    *(size_t *)context += len;
    return true;
}

/* The bytes that so many have when they are written; SIZE_MAX when they cannot be. */
static size_t bytes_with(struct fit *fit, size_t kept)
{
    size_t bytes = 0;
    struct sink sink = {count_bytes, &bytes};
    bool ok = make(fit, kept) && fit->items->write(&fit->view, fit->items->rules, &sink, fit->items->err);
    return ok ? bytes : SIZE_MAX;
}

/* ---- how many ---- */

/* Bytes grow with the number of stacks nearly evenly, so where a line through what is known meets the bound is a
 * good guess; every third one is the middle, for where it is not. */
static size_t guess(size_t low, size_t high, double share, unsigned turn)
{
    size_t at = low + (size_t)((double)(high - low) * (turn % 3 == 2 ? 0.5 : share));
    return at <= low ? low + 1 : at >= high ? high - 1 : at;
}

static bool search(struct fit *fit, size_t most, size_t low_bytes, size_t high, size_t high_bytes)
{
    size_t low = 0, made = SIZE_MAX;
    for (unsigned i = 0; i < FIT_TRIES && high - low > 1 && low_bytes < most - most / 32; i++) {
        made = guess(low, high, (double)(most - low_bytes) / (double)(high_bytes - low_bytes), i);
        size_t bytes = bytes_with(fit, made);
        if (bytes == SIZE_MAX) {
            return false;
        }
        *(bytes <= most ? &low : &high) = made;
        *(bytes <= most ? &low_bytes : &high_bytes) = bytes;
    }
    return made == low || make(fit, low);
}

static bool fit_bytes(struct fit *fit, size_t count, size_t all)
{
    const struct encode_rules *rules = fit->items->rules;
    size_t most = rules->most_bytes != 0 && rules->most_bytes < all ? rules->most_bytes : all;
    most = rules->share > 0 ? (size_t)((double)most * rules->share) : most;
    if (all <= most) {
        return all != SIZE_MAX;
    }
    enum fit_apart apart = fit->items->apart;
    fit->items->apart = FIT_ONE;
    size_t one = bytes_with(fit, 0), least = one;
    if (one != SIZE_MAX && one > most) {
        return err_set(fit->items->err, ERR_LIMIT, 0, "without any stack it still has %zu bytes of %zu", one, most);
    }
    if (one != SIZE_MAX && apart != FIT_ONE) {
        fit->items->apart = apart;
        least = bytes_with(fit, 0);
        bool is_too_much = least > one + (most - one) / 2;
        fit->items->apart = is_too_much ? FIT_ONE : apart;
        least = least == SIZE_MAX || !is_too_much ? least : one;
    }
    return least != SIZE_MAX && search(fit, most, least, count, all);
}

static bool choose(struct fit *fit)
{
    const struct fit_items *items = fit->items;
    const struct encode_rules *rules = items->rules;
    size_t most = rules->most_samples, rest = 2 + fit->view.event_types.len; /* of them for what is dropped */
    size_t count = items->choosable;
    if (most != 0 && items->list.len > most) {
        size_t room = most > rest ? most - rest : 0;
        count = count < room ? count : room;
    }
    bool bounded = rules->most_bytes != 0 || rules->share > 0;
    return bounded ? fit_bytes(fit, count, bytes_with(fit, count)) : make(fit, count);
}

/* ---- the whole ---- */

static uint32_t dropped_node(struct profile *p)
{
    bool before = profile_need(p, true);
    struct frame frame = {.name = profile_string(p, STR(ENCODE_DROPPED)), .kind = FRAME_NATIVE};
    uint32_t node = frame.name == 0 ? 0 : profile_child(p, 0, profile_frame(p, &frame));
    (void)profile_need(p, before);
    return node;
}

static bool prepare(struct fit *fit, struct profile *p)
{
    struct fit_items *items = fit->items;
    items->node = dropped_node(p);
    if (items->node == 0 || !copy_tables(fit, p, p->frames.at[p->nodes.at[items->node].frame].name) ||
        !add_items(items, p)) {
        return false;
    }
    size_t threads = fit->view.threads.len;
    uint32_t *first = calloc(threads, sizeof *first);
    items->row_of_all = items->apart == FIT_BY_THREAD ? (uint32_t)threads - 1 : 0;
    items->dropped = calloc(threads, sizeof *items->dropped);
    bool ok = first != NULL && items->dropped != NULL;
    if (ok && items->rules->merges_threads) {
        ok = merge_threads(&fit->view, first);
        merge_items(items, first);
    }
    free(first);
    weigh_items(items);
    return ok;
}

bool fit_init(struct fit *fit, struct profile *p, const struct encode_rules *rules, enum fit_apart apart,
              fit_write *write, struct err *err)
{
    *fit = (struct fit){.items = calloc(1, sizeof *fit->items)};
    bool ok = fit->items != NULL;
    if (ok) {
        *fit->items = (struct fit_items){.rules = rules, .apart = apart, .write = write, .err = err};
        ok = prepare(fit, p);
    }
    return ok ? choose(fit) : err_set(err, ERR_MEMORY, 0, "no memory to choose the heaviest stacks");
}

void fit_release(struct fit *fit)
{
    vec_release(&fit->view.samples);
    vec_release(&fit->view.waits);
    vec_release(&fit->view.occurrences);
    vec_release(&fit->view.threads);
    vec_release(&fit->view.processes);
    if (fit->items != NULL) {
        vec_release(&fit->items->list);
        free(fit->items->dropped);
    }
    free(fit->items);
}
