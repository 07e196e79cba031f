/* From return addresses to the locations of a profile, as runtime/pprof makes them: one for each address that is in a
 * list, with all functions that were inlined there. The runtime lists inlined calls too, by addresses of marks in the
 * code (runtime.tracebackPCs), some of its tables only real calls; so marks that follow an address are passed over, and
 * all calls are named from the first address.
 *
 * What is special: "runtime.goexit", which calls every goroutine's first function, is not shown, nor are wrappers that
 * the compiler makes (for methods of embedded types, go statements), but where a panic was called by one. Everything
 * about an address is found once a profile. */
#include "runtime/go/memory/memory_private.h"

static bool is_name(struct str name, const char *text)
{
    return str_eq(name, str_of(text));
}

/* runtime.elideWrapperCalling */
static bool panics(struct str name)
{
    return is_name(name, "runtime.gopanic") || is_name(name, "runtime.sigpanic") ||
           is_name(name, "runtime.panicwrap");
}

bool go_places_open(struct go_places *p, struct go_memory *m, const struct go_pprof_kind *kind, uint64_t wall_ns)
{
    *p = (struct go_places){.m = m, .pprof = go_pprof_new(kind, GO_PROFILE_MAX_BYTES)};
    if (p->pprof == NULL) {
        return false;
    }
    go_pprof_times(p->pprof, wall_ns, 0);
    for (size_t i = 0; i < m->process.map_count; i++) {
        const struct go_mapping *map = &m->process.maps[i];
        go_pprof_map(p->pprof, map->start, map->limit, map->file_offset, map->path, map->build_id);
    }
    return true;
}

void go_places_release(struct go_places *p)
{
    go_pprof_free(p->pprof);
    map_release(&p->known);
    map_release(&p->runtime);
    vec_release(&p->places);
    vec_release(&p->marks);
    *p = (struct go_places){0};
}

/* The frames before `pc`, which stands behind a call. At a function's start there is no call: then those at it. */
static bool frames_before(struct go_memory *m, uint64_t pc, struct go_frames *out)
{
    uint64_t address = pc - m->process.bias;
    return go_table_lookup(m->process.table, address - 1, out) &&
           (out->limit != address || go_table_lookup(m->process.table, address, out));
}

/* Leaves out wrappers that were inlined into, and notes by which marks the runtime lists the callers. */
static void take_callers(struct go_places *p, struct go_frames *frames, struct go_place *place)
{
    size_t kept = 1;
    bool panicked = panics(frames->at[0].name);
    for (size_t i = 1; i < frames->count; i++) {
        bool hidden = frames->at[i].id == p->m->layout->wrapper && !panicked;
        panicked = panics(frames->at[i].name);
        if (hidden) {
            continue;
        }
        uint64_t *mark = vec_push(&p->marks);
        if (mark == NULL) {
            p->failed = true;
            return;
        }
        *mark = frames->at[i].at + 1 + p->m->process.bias;
        place->mark_count++;
        frames->at[kept++] = frames->at[i];
    }
    frames->count = kept;
}

static struct go_place make_place(struct go_places *p, uint64_t pc)
{
    struct go_frames frames = {.count = 0};
    struct go_place place = {.marks = (uint32_t)p->marks.len, .is_code = frames_before(p->m, pc, &frames)};
    if (place.is_code) {
        if (is_name(frames.at[0].name, "runtime.goexit")) {
            return place;
        }
        take_callers(p, &frames, &place);
    } else {
        frames.count = 0;
    }
    place.id = go_pprof_location(p->pprof, pc - 1, frames.at, frames.count);
    return place;
}

static const struct go_place *place_of(struct go_places *p, uint64_t pc)
{
    struct map_slot *slot = map_find(&p->known, pc);
    if (slot != NULL) {
        return &p->places.at[slot->value];
    }
    if (p->places.len >= GO_PLACES_MAX) {
        p->failed = true;
        return NULL;
    }
    struct go_place made = make_place(p, pc), *place = vec_push(&p->places);
    if (place == NULL || !map_put(&p->known, pc, p->places.len - 1)) {
        p->failed = true;
        return NULL;
    }
    *place = made;
    return place;
}

bool go_places_is_code(struct go_places *p, uint64_t pc)
{
    struct map_slot *slot = map_find(&p->known, pc);
    struct go_frames frames;
    return slot != NULL ? p->places.at[slot->value].is_code : frames_before(p->m, pc, &frames);
}

size_t go_places_of(struct go_places *p, const uint64_t *pcs, size_t count, uint64_t out[static GO_DEPTH_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < count && n < GO_DEPTH_MAX;) {
        const struct go_place *place = place_of(p, pcs[i++]);
        if (place == NULL) {
            return n;
        }
        for (uint32_t k = 0; k < place->mark_count; k++) {
            i += i < count && pcs[i] == p->marks.at[place->marks + k];
        }
        if (place->id != 0) {
            out[n++] = place->id;
        }
    }
    return n;
}

/* As runtime.FuncForPC tells: of the address itself, not the call before it. */
static bool is_runtime(struct go_places *p, uint64_t pc)
{
    struct map_slot *slot = map_find(&p->runtime, pc);
    if (slot != NULL) {
        return slot->value != 0;
    }
    struct go_frames frames;
    bool is = go_table_lookup(p->m->process.table, pc - p->m->process.bias, &frames) &&
              (str_starts(frames.at[0].name, STR("runtime.")) ||
               (p->m->layout->hides_internal && str_starts(frames.at[0].name, STR("internal/runtime/"))));
    p->failed |= p->runtime.len >= GO_PLACES_MAX || !map_put(&p->runtime, pc, is);
    return is;
}

size_t go_places_hidden(struct go_places *p, const uint64_t *pcs, size_t count)
{
    size_t hidden = 0;
    while (hidden < count && !p->failed && is_runtime(p, pcs[hidden])) {
        hidden++;
    }
    return hidden == count ? 0 : hidden;
}

bool go_places_finish(struct go_places *p, struct buf *out, struct err *why)
{
    if (p->failed) {
        return err_set(why, ERR_LIMIT, 0,
                       "a Go program's profile has more than %d different addresses, or there is no memory",
                       GO_PLACES_MAX);
    }
    return go_pprof_finish(p->pprof, out, why);
}
