/* What a goroutine is by what the runtime notes about it: whether it is one at all, its state, and whether it is told.
 * Those that the runtime runs for itself are not (runtime.isSystemGoroutine), but for finalizers and cleanups while
 * they run the program's functions, which is known by what they wait for. */
#include "runtime/common/load.h"
#include "runtime/go/memory/goroutines.h"

enum {
    CHECKED = 16, /* goroutines that are looked at before a list is believed */
    STACK_MAX_BYTES = 1 << 30,
    STATUS_SCANNED = 0x1000, /* the garbage collector looks at it: a flag */
};

enum class { USER, SYSTEM, FINALIZERS }; /* by the first function */

unsigned go_status_of(const struct go_memory *m, const unsigned char *g)
{
    return load_u32(g + m->layout->status) & ~(uint32_t)STATUS_SCANNED;
}

/* ---- is it a list of goroutines? ---- */

bool go_has_stack(const unsigned char *g)
{
    uint64_t low = go_field(g, GO_G_STACK_LO), high = go_field(g, GO_G_STACK_HI);
    return plausible(low) && low < high && high - low <= STACK_MAX_BYTES && low % 8 == 0 && high % 8 == 0;
}

/* *alive: it is one that lives, too. */
static bool is_goroutine(struct go_memory *m, uint64_t address, bool *alive)
{
    unsigned char g[GO_G_BYTES];
    if (address % 8 != 0 || !go_peek(m, address, g, m->layout->labels + 8)) {
        return false;
    }
    unsigned status = go_status_of(m, g);
    if (status > GO_DEAD_EXTRA || go_field(g, m->layout->goid) >> 48 != 0) {
        return false;
    }
    *alive = status != GO_DEAD && status != GO_DEAD_EXTRA && status != GO_IDLE;
    uint64_t sp = go_field(g, GO_G_SP);
    return !*alive || (go_has_stack(g) && (status != GO_WAITING || (sp >= go_field(g, GO_G_STACK_LO) &&
                                                              sp <= go_field(g, GO_G_STACK_HI))));
}

bool go_goroutines_list(struct go_memory *m, uint64_t slice, struct go_list *out)
{
    unsigned char raw[24];
    if (!go_peek(m, slice, raw, sizeof raw)) {
        return false;
    }
    *out = (struct go_list){load_u64(raw), load_u64(raw + 8)};
    return plausible(out->at) && out->at % 8 == 0 && out->count > 0 && out->count <= load_u64(raw + 16) &&
           load_u64(raw + 16) < (uint64_t)1 << 40;
}

uint64_t go_count_goroutines(struct go_memory *m, uint64_t slice)
{
    struct go_list list;
    bool alive, any = false;
    if (!go_goroutines_list(m, slice, &list)) {
        return 0;
    }
    for (uint64_t i = 0; i <= CHECKED; i++) { /* the first ones, and the last */
        uint64_t address, index = i < CHECKED && i < list.count ? i : list.count - 1;
        if (!go_peek_word(m, list.at + 8 * index, &address) || !is_goroutine(m, address, &alive)) {
            return 0;
        }
        any |= alive;
    }
    return any ? list.count : 0;
}

/* ---- which are told ---- */

static enum class find_class(struct go_memory *m, uint64_t start)
{
    struct go_frames frames;
    if (!go_table_lookup(m->process.table, start - m->process.bias, &frames)) {
        return USER;
    }
    struct str name = frames.at[frames.count - 1].name;
    if (str_eq(name, STR("runtime.main")) || str_eq(name, STR("runtime.corostart")) ||
        str_eq(name, STR("runtime.handleAsyncEvent")) || !str_starts(name, STR("runtime."))) {
        return USER;
    }
    bool is_finalizers = str_eq(name, STR("runtime.runfinq")) || str_eq(name, STR("runtime.runFinalizers")) ||
                         str_eq(name, STR("runtime.runCleanups"));
    return is_finalizers ? FINALIZERS : SYSTEM;
}

static const char *reason_of(const struct go_memory *m, const unsigned char *g)
{
    size_t reason = g[m->layout->waitreason];
    return reason < m->reason_count ? m->reasons[reason] : "";
}

bool go_goroutine_is_told(struct go_memory *m, struct map *classes, const unsigned char *g)
{
    uint64_t start = go_field(g, m->layout->startpc);
    struct map_slot *slot = map_find(classes, start);
    enum class class = slot != NULL ? (enum class)slot->value : find_class(m, start);
    if (slot == NULL && classes->len < GO_PLACES_MAX) {
        (void)map_put(classes, start, class);
    }
    if (class != FINALIZERS) {
        return class == USER;
    }
    const char *reason = reason_of(m, g);
    unsigned status = go_status_of(m, g);
    return status == GO_RUNNING || status == GO_SYSCALL ||
           (status == GO_WAITING && strcmp(reason, "finalizer wait") != 0 && strcmp(reason, "cleanup wait") != 0);
}

const char *go_state_of(const struct go_memory *m, const unsigned char *g)
{
    switch (go_status_of(m, g)) {
    case GO_RUNNABLE: return "runnable";
    case GO_RUNNING: return "running";
    case GO_SYSCALL: return "syscall";
    case GO_PREEMPTED: return "preempted";
    default: return reason_of(m, g)[0] != '\0' ? reason_of(m, g) : "waiting";
    }
}
