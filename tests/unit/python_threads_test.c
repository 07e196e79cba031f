/* src/runtime/python/thread_name.c, led through memory that contradicts itself: what it reads is bounded. That
 * names are right is shown by each interpreter (tests/live/test_python_labels.py). */
#include "runtime/python/private.h"
#include "test.h"

enum { MOST_READS = 6000 };
#define PLACE UINT64_C(0x7f0000001000)

static const uint32_t versions[] = {
    PYTHON_VERSION(2, 7), PYTHON_VERSION(3, 6), PYTHON_VERSION(3, 7),  PYTHON_VERSION(3, 8),
    PYTHON_VERSION(3, 9), PYTHON_VERSION(3, 10), PYTHON_VERSION(3, 11), PYTHON_VERSION(3, 12),
};
enum { VERSIONS = sizeof versions / sizeof *versions };

/* Endless memory: its words are chosen by `word`. */
struct endless {
    uint64_t (*word)(uint64_t address, uint64_t seed);
    uint64_t seed;
    size_t batches;
};

static bool read_endless(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct endless *m = context;
    (void)err;
    m->batches++;
    for (size_t i = 0; i < count; i++) {
        for (uint32_t at = 0; at < pieces[i].len; at += 8) {
            uint64_t word = m->word(pieces[i].address + at, m->seed);
            uint32_t left = pieces[i].len - at;
            memcpy((char *)pieces[i].out + at, &word, left < 8 ? left : 8);
        }
        pieces[i].got = pieces[i].len;
    }
    return true;
}

static uint64_t always_the_same(uint64_t address, uint64_t seed)
{
    (void)address;
    (void)seed;
    return PLACE;
}

/* Addresses, counts and small numbers. */
static uint64_t by_lot(uint64_t address, uint64_t seed)
{
    uint64_t lot = hash_u64(address ^ hash_u64(seed));
    return (lot & 3) == 0 ? lot >> 50 : (lot & 3) == 1 ? lot >> 58 : PLACE + (lot >> 40 & ~UINT64_C(7));
}

/* Batches that it took. */
static size_t ask(uint32_t version, uint64_t active, struct endless *m)
{
    struct python python = {.interp = PLACE};
    struct python_threads known = {.active = active};
    struct memory_batch memory = {read_endless, m};
    struct buf name;
    buf_init(&name, 4096);
    m->batches = 0;
    CHECK(python_layout_of(version, ELF_X86_64, false, false, &python.layout, NULL));
    for (unsigned i = 0; i < 3; i++) {
        (void)python_thread_name(&python, &known, 7, &memory, &name);
    }
    CHECK(name.len <= 3 * 256);
    buf_release(&name);
    return m->batches / 3;
}

static void a_circle_of_threads_ends(void)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        struct endless m = {always_the_same, 0, 0};
        CHECK(ask(versions[i], PLACE, &m) < MOST_READS);
        CHECK(m.batches > 1000); /* it was followed */
    }
}

static void whatever_memory_holds_the_search_ends(void)
{
    size_t most = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct endless m = {by_lot, seed, 0};
        size_t batches = ask(versions[seed % VERSIONS], seed % 3 == 0 ? PLACE + seed * 4096 : 0, &m);
        most = batches > most ? batches : most;
    }
    CHECK(most > 20 && most < MOST_READS);
}

TESTS({"a circle of threads ends", a_circle_of_threads_ends},
      {"whatever memory holds, the search ends", whatever_memory_holds_the_search_ends})
