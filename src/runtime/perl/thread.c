/* Which interpreter a thread runs: each of those that the module threads has begun has its own. The module's list of
 * them stands under a key in a hash that every interpreter has for modules, and has for each one its interpreter and
 * pthread_self. Runs in catchers, so it allocates nothing, and a long list is searched through in several samples. What
 * contradicts itself, because threads come and go, is left out. */
#include "runtime/perl/walk.h"

enum {
    POOL_KEY = 14, /* bytes of "threads::_pool", which the module's version follows */
    BUCKETS_MAX = 64, ENTRIES_MAX = 64,
    ENTRY_KEY = 8, ENTRY_VALUE = 16, ENTRY_BYTES = 24,
    KEY_TEXT = 8,
    IV_AT = 32, /* of the body of a number */
    THREAD_PREV = 8, THREAD_INTERPRETER = 16, THREAD_BYTES = 120,
    PTHREAD_AT = 104, PTHREAD_AT_ARM = 112, /* behind a mutex, which is larger in glibc for AArch64 */
    STEPS_MAX = 48, STEPS_ALL = 16384,
    MISSED_SAMPLES = 32,
};

/* Where libc's thread structure has the thread's number (common/pthread.c). */
static const uint32_t tid_places[] = {720, 48, 208, 32};

struct perl_interpreter perl_interpreter_at(const struct perl_layout *l, uint64_t at)
{
    return (struct perl_interpreter){.at = at, .curcop = at + l->curcop, .curstackinfo = at + l->curstackinfo,
                                     .comppad = at + l->comppad, .compiling = at,
                                     .compiling_limit = at + PERL_INTERPRETER_BYTES};
}

/* ---- the module's list ---- */

static bool is_pool_key(struct memory_batch *memory, uint64_t key)
{
    char text[KEY_TEXT + 16];
    return walk_read_exactly(memory, key, text, sizeof text) &&
           memcmp(text + KEY_TEXT, "threads::_pool", POOL_KEY) == 0;
}

/* The value under that key among the entries of one bucket; 0: it is not there. */
static uint64_t find_in_bucket(struct memory_batch *memory, uint64_t entry, uint32_t *left)
{
    unsigned char bytes[ENTRY_BYTES];
    for (; entry != 0 && *left > 0 && walk_read_exactly(memory, entry, bytes, sizeof bytes); entry = load_u64(bytes)) {
        --*left;
        if (is_pool_key(memory, load_u64(bytes + ENTRY_KEY))) {
            return load_u64(bytes + ENTRY_VALUE);
        }
    }
    return 0;
}

static uint64_t find_value(struct memory_batch *memory, uint64_t hash)
{
    unsigned char sv[SV_BYTES];
    uint64_t last, bucket[BUCKETS_MAX], found = 0;
    uint32_t left = ENTRIES_MAX;
    if (!walk_read_exactly(memory, hash, sv, sizeof sv) || !perl_is(load_u32(sv + SV_FLAGS), PERL_HV) ||
        !walk_read_exactly(memory, load_u64(sv + SV_BODY) + HASH_MAX, &last, sizeof last) || last >= BUCKETS_MAX ||
        !walk_read_exactly(memory, load_u64(sv + SV_UNION), bucket, (size_t)(last + 1) * 8)) {
        return 0;
    }
    for (uint64_t i = 0; i <= last && found == 0; i++) {
        found = find_in_bucket(memory, bucket[i], &left);
    }
    return found;
}

/* The list's head, which is the first interpreter's; 0: the module is not there. */
static uint64_t find_pool(const struct perl *perl, struct memory_batch *memory)
{
    uint64_t hash, value, body, pool, interpreter;
    bool good = has(perl->layout.modglobal) && perl->interpreter != 0 &&
                walk_read_exactly(memory, perl->interpreter + perl->layout.modglobal, &hash, sizeof hash) &&
                (value = find_value(memory, hash)) != 0 && walk_read_exactly(memory, value, &body, sizeof body) &&
                walk_read_exactly(memory, body + IV_AT, &pool, sizeof pool) &&
                walk_read_exactly(memory, pool + THREAD_INTERPRETER, &interpreter, sizeof interpreter);
    return good && interpreter == perl->interpreter ? pool : 0;
}

/* ---- a thread in it ---- */

/* Where this thread's number stands, if this is its thread structure; 0: it is not. */
static uint64_t tid_at(struct memory_batch *memory, uint64_t pthread, uint32_t tid)
{
    unsigned char bytes[1024];
    struct memory_piece piece = {pthread, bytes, sizeof bytes, 0};
    if (!plausible(pthread) || pthread % 8 != 0 || !memory_batch_read(memory, &piece, 1, NULL)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof tid_places / sizeof tid_places[0]; i++) {
        if (tid_places[i] + sizeof tid <= piece.got && load_u32(bytes + tid_places[i]) == tid) {
            return pthread + tid_places[i];
        }
    }
    return 0;
}

static bool take_thread(struct memory_batch *memory, uint64_t at, const unsigned char *bytes, struct perl_thread *t)
{
    uint64_t interpreter = load_u64(bytes + THREAD_INTERPRETER);
    uint64_t place = tid_at(memory, load_u64(bytes + PTHREAD_AT), t->tid);
    place = place != 0 ? place : tid_at(memory, load_u64(bytes + PTHREAD_AT_ARM), t->tid);
    if (place == 0 || !plausible(interpreter) || interpreter % 8 != 0) {
        return false;
    }
    t->interpreter_at = at + THREAD_INTERPRETER;
    t->interpreter = interpreter;
    t->tid_at = place;
    return true;
}

/* From the one that began last on. */
static bool search(struct memory_batch *memory, uint64_t pool, struct perl_thread *t)
{
    unsigned char bytes[THREAD_BYTES];
    uint64_t at = t->resume;
    t->resume = 0;
    if (at == 0 && !walk_read_exactly(memory, pool + THREAD_PREV, &at, sizeof at)) {
        return false;
    }
    for (uint32_t steps = 0; steps < STEPS_MAX; steps++) {
        if (!walk_read_exactly(memory, at, bytes, sizeof bytes)) {
            return false;
        }
        if (take_thread(memory, at, bytes, t)) {
            return true;
        }
        if (at == pool) {
            return false;
        }
        at = load_u64(bytes + THREAD_PREV);
    }
    t->steps += STEPS_MAX;
    t->resume = t->steps < STEPS_ALL ? at : 0;
    return false;
}

bool perl_find_thread(const struct perl *perl, struct memory_batch *memory, struct perl_thread *t)
{
    if (t->missed > 0) {
        t->missed--;
        return false;
    }
    uint64_t pool = find_pool(perl, memory);
    bool found = pool != 0 && search(memory, pool, t);
    if (!found && t->resume == 0) {
        t->missed = MISSED_SAMPLES;
    }
    t->steps = t->resume != 0 ? t->steps : 0;
    return found;
}
