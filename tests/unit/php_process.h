/*
 * php_process: a process that runs PHP, as far as its structures go, in an array: a stack that is <main> > Shop::sell >
 * array_map (an internal function) > Shop::{closure}, leaf last.
 *
 * Every structure stands at a place of its own, ELF address 0 is PHP_BASE. Fields are put where the headers of the
 * family's version have them: literals, not the product's table.
 */
#ifndef PHP_PROCESS_H
#define PHP_PROCESS_H

#include "runtime/php/private.h"

#define PHP_BASE 0x700000000000ULL

enum {
    PHP_BYTES = 0x90000, PHP_TID = 4711,
    AT_GLOBALS = 0x1000, AT_HEAP = 0x2000,
    AT_FUNCTION = 0x2000, /* 0x200 each */
    AT_STRING = 0x4000,   /* 0x80 each */
    AT_CLASS = 0x5000,
    AT_CODE = 0x6000,     /* 0x400 each: instructions of a function */
    AT_GENERATOR = 0x8000,
    AT_ID = 0x1800, AT_OFFSET = 0x1808, AT_SIZE = 0x1844, AT_TABLE = 0x1848, /* of builds for threads */
    AT_SLOTS = 0x20000, AT_THREAD = 0x21000, /* 0x4000 each */ AT_STORAGE = 0x22000, AT_PTHREAD = 0x23000,
    GLOBALS_BEHIND = 0x800,
    AT_PAGE = 0x40000, FRAME_STEP = 0x80,
    F_MAIN = 0, F_SELL = 1, F_MAP = 2, F_CLOSURE = 3,
    INFO_CODE = 1 << 16, INFO_TOP_CALL = 1 << 17, INFO_OF_GENERATOR = 1 << 24,
    AT_REQUEST = 0x1600, AT_REQUEST_OFFSET = 0x1810, AT_WORD = 0x5800, /* 0x100 each: method, query, script, URL */
    AT_OBJECT = 0x9000,   /* 0x200 each: generators */
};

struct php_family {
    uint32_t version;
    unsigned root, current, opcodes, last, file, line, closure, named, generator, holder;
};

static const struct php_family php_families[] = {
    {PHP_VERSION(7, 1, 33), 456, 24, 64, 56, 120, 128, 1 << 20, 1 << 6, 64, 248},
    {PHP_VERSION(7, 2, 34), 456, 24, 64, 56, 120, 128, 1 << 20, 1 << 6, 64, 248},
    {PHP_VERSION(7, 3, 33), 456, 32, 64, 60, 128, 136, 1 << 20, 1 << 6, 64, 184},
    {PHP_VERSION(7, 4, 33), 456, 32, 64, 60, 136, 144, 1 << 20, 1 << 21, 64, 184},
    {PHP_VERSION(8, 0, 1), 456, 32, 72, 68, 144, 152, 1 << 22, 1 << 23, 56, 184},
    {PHP_VERSION(8, 1, 99), 456, 32, 72, 68, 144, 152, 1 << 22, 1 << 23, 56, 184},
    {PHP_VERSION(8, 2, 36), 456, 32, 88, 80, 152, 160, 1 << 22, 1 << 23, 56, 184},
    {PHP_VERSION(8, 3, 0), 456, 32, 80, 76, 144, 152, 1 << 22, 1 << 23, 56, 184},
    {PHP_VERSION(8, 4, 27), 456, 32, 104, 96, 168, 176, 1 << 22, 1 << 23, 56, 184},
    {PHP_VERSION(8, 5, 7), 480, 32, 104, 96, 168, 176, 1 << 22, 1 << 23, 56, 184},
};
enum { PHP_FAMILIES = sizeof php_families / sizeof php_families[0] };

struct php_process {
    unsigned char bytes[PHP_BYTES];
    const struct php_family *family;
    struct php_binary binary;
    struct runtime_map maps[2];
    uint32_t tid;
    uint64_t leaf, next; /* frame; where the next one would lie */
    unsigned reads, pieces;
    bool gone, shows_urls;
    void (*at_piece)(struct php_process *p, unsigned piece); /* what the target does meanwhile */
};

static inline void php_put(struct php_process *p, uint64_t at, uint64_t value)
{
    memcpy(p->bytes + at, &value, sizeof value);
}

static inline void php_put_u32(struct php_process *p, uint64_t at, uint32_t value)
{
    memcpy(p->bytes + at, &value, sizeof value);
}

static inline uint64_t php_there(uint64_t at)
{
    return PHP_BASE + at;
}

static inline bool php_process_read(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct php_process *p = context;
    (void)err;
    p->reads++;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pieces[i].address - PHP_BASE;
        uint64_t there = !p->gone && offset < PHP_BYTES ? PHP_BYTES - offset : 0;
        pieces[i].got = (uint32_t)(there < pieces[i].len ? there : pieces[i].len);
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, p->bytes + offset, pieces[i].got);
        }
        if (p->at_piece != NULL) {
            p->at_piece(p, p->pieces++);
        }
    }
    return !p->gone;
}

static inline uint64_t php_string_at(struct php_process *p, unsigned number, const char *text)
{
    uint64_t at = AT_STRING + 0x80 * number;
    php_put(p, at, 1 | 6ULL << 32);
    php_put(p, at + 16, strlen(text));
    memcpy(p->bytes + at + 24, text, strlen(text));
    return php_there(at);
}

/* A user's function: ten instructions, two a line. */
static inline void php_function_at(struct php_process *p, unsigned number, uint64_t name, uint32_t line, uint32_t flags)
{
    const struct php_family *f = p->family;
    uint64_t at = AT_FUNCTION + 0x200 * number, code = AT_CODE + 0x400 * number;
    php_put_u32(p, at, 2);
    php_put_u32(p, at + 4, flags);
    php_put(p, at + 8, name);
    php_put(p, at + 16, name != 0 ? php_there(AT_CLASS) : 0);
    php_put(p, at + f->opcodes, php_there(code));
    php_put_u32(p, at + f->last, 10);
    php_put(p, at + f->file, php_there(AT_STRING));
    php_put_u32(p, at + f->line, line);
    for (unsigned i = 0; i < 10; i++) {
        php_put_u32(p, code + 32 * i + 24, line + i / 2);
    }
}

/* One frame further to the leaf, which is at `address`. */
static inline void php_push_at(struct php_process *p, uint64_t address, unsigned function, unsigned instruction,
                               uint32_t info)
{
    php_put(p, address, php_there(AT_CODE + 0x400 * function + 32 * instruction));
    php_put(p, address + 24, php_there(AT_FUNCTION + 0x200 * function));
    php_put_u32(p, address + 40, info);
    php_put(p, address + 48, p->leaf != 0 ? php_there(p->leaf) : 0);
    p->leaf = address;
    php_put(p, AT_GLOBALS + p->family->root + p->family->current, php_there(address));
    php_put(p, AT_GLOBALS + p->family->root, php_there(p->next));
}

static inline void php_push(struct php_process *p, unsigned function, unsigned instruction, uint32_t info)
{
    uint64_t at = p->next;
    p->next += FRAME_STEP;
    php_push_at(p, at, function, instruction, info);
}

/* The generators `first` to `last`, the outermost first, of F_SELL, each yielding from the next one: the innermost
 * runs, on top of the leaf. Its frame lies 0x140 behind its object. */
static inline void php_push_generators(struct php_process *p, unsigned first, unsigned last)
{
    uint64_t outer = AT_OBJECT + 0x200 * first, holder = outer + p->family->holder;
    for (unsigned i = first; i <= last; i++) {
        uint64_t object = AT_OBJECT + 0x200 * i, frame = object + 0x140;
        php_put(p, object + p->family->generator, php_there(frame));
        php_put(p, object + p->family->generator + 96, i < last ? php_there(object + 0x200) : 0);
        php_put(p, frame, php_there(AT_CODE + 0x400 * F_SELL + 32 * 2));
        php_put(p, frame + 24, php_there(AT_FUNCTION + 0x200 * F_SELL));
        php_put_u32(p, frame + 40, INFO_TOP_CALL | INFO_OF_GENERATOR);
    }
    php_put(p, holder + 24, 0);
    php_put(p, holder + 32, php_there(outer));
    php_put_u32(p, holder + 40, 8);
    php_put(p, holder + 48, php_there(p->leaf));
    p->leaf = holder;
    php_push_at(p, AT_OBJECT + 0x200 * last + 0x140, F_SELL, 2, INFO_TOP_CALL | INFO_OF_GENERATOR);
}

static inline void php_put_request(struct php_process *p)
{
    static const char *const words[] = {"GET", "id=7", "/srv/shop.php", "/shop"};
    static const unsigned at[] = {8, 16, 40, 48};
    for (unsigned i = 0; i < 4; i++) {
        memcpy(p->bytes + AT_WORD + 0x100 * i, words[i], strlen(words[i]) + 1);
        php_put(p, AT_REQUEST + at[i], php_there(AT_WORD + 0x100 * i));
    }
}

static inline void php_make(struct php_process *p, const struct php_family *f)
{
    static const char *const texts[] = {"/srv/shop.php", "sell", "array_map", "{closure}", "Shop"};
    *p = (struct php_process){.family = f, .tid = PHP_TID, .next = AT_PAGE + 32};
    p->binary = (struct php_binary){.version = f->version, .globals = AT_GLOBALS, .request = AT_REQUEST};
    p->maps[0] = (struct runtime_map){PHP_BASE + AT_GLOBALS, PHP_BASE + AT_HEAP, 0, 3, true, false};
    p->maps[1] = (struct runtime_map){PHP_BASE + AT_HEAP, PHP_BASE + PHP_BYTES, 0, 3, false, false};
    for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        (void)php_string_at(p, i, texts[i]);
    }
    php_put(p, AT_CLASS + 8, php_there(AT_STRING + 0x80 * 4));
    php_put(p, AT_GLOBALS + f->root + 8, php_there(AT_PAGE + 0x40000));
    php_put(p, AT_GLOBALS + f->root + 16, php_there(AT_PAGE));
    php_put(p, AT_GLOBALS + f->root + 24, 0x40000); /* up to 7.2 the frame that runs stands there */
    php_function_at(p, F_MAIN, 0, 1, 0);
    php_function_at(p, F_SELL, php_there(AT_STRING + 0x80), 10, f->closure | f->named); /* Closure::fromCallable */
    php_put_u32(p, AT_FUNCTION + 0x200 * F_MAP, 1);
    php_put(p, AT_FUNCTION + 0x200 * F_MAP + 8, php_there(AT_STRING + 0x100));
    php_function_at(p, F_CLOSURE, php_there(AT_STRING + 0x180), 20, f->closure);
    php_put_request(p);
    php_push(p, F_MAIN, 4, INFO_CODE | INFO_TOP_CALL);
    php_push(p, F_SELL, 2, 0);
    php_push(p, F_MAP, 0, 0);
    php_push(p, F_CLOSURE, 6, INFO_TOP_CALL);
}

/* Makes it a build for threads, with a table of `slots` places: there are another thread and this one, whose globals
 * are copied to behind its entry. */
static inline void php_make_threads(struct php_process *p, const struct php_family *f, uint32_t slots)
{
    php_make(p, f);
    p->binary.globals = 0;
    p->binary.id = AT_ID;
    p->binary.offset = AT_OFFSET;
    p->binary.request = AT_REQUEST_OFFSET;
    php_put(p, AT_REQUEST_OFFSET, GLOBALS_BEHIND + AT_REQUEST - AT_GLOBALS);
    php_put_u32(p, AT_ID, 3);
    php_put(p, AT_OFFSET, GLOBALS_BEHIND);
    php_put(p, AT_TABLE, php_there(AT_SLOTS));
    php_put_u32(p, AT_SIZE, slots);
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t entry = AT_THREAD + 0x4000 * i, storage = AT_STORAGE + 0x4000 * i, pthread = AT_PTHREAD + 0x4000 * i;
        uint64_t slot = php_there(pthread) % slots;
        if (i == 0 || slot != php_there(AT_PTHREAD) % slots) {
            php_put(p, AT_SLOTS + 8 * slot, php_there(entry));
        } else {
            php_put(p, entry - 0x4000 + 24, php_there(entry));
        }
        php_put(p, entry, php_there(storage));
        php_put(p, entry + 16, php_there(pthread));
        php_put(p, storage + 16, php_there(entry + GLOBALS_BEHIND));
        php_put_u32(p, pthread + 720, i == 0 ? PHP_TID + 1 : PHP_TID);
        memcpy(p->bytes + entry + GLOBALS_BEHIND, p->bytes + AT_GLOBALS, 0x700);
    }
    php_put(p, AT_THREAD + GLOBALS_BEHIND + f->root + f->current, 0); /* the other one is idle */
    memset(p->bytes + AT_GLOBALS, 0, 0x700);
}

static inline enum runtime_answer php_process_attach(struct php_process *p, struct php **state, struct err *err)
{
    struct memory_batch memory = {php_process_read, p};
    struct runtime_process process = {.pid = PHP_TID, .bias = PHP_BASE, .memory = &memory, .maps = p->maps,
                                      .map_count = 2, .tids = &p->tid, .tid_count = 1, .shows_urls = p->shows_urls};
    void *found = NULL;
    enum runtime_answer answer = php_attach(&p->binary, &process, &found, err);
    *state = found;
    return answer;
}

#endif
