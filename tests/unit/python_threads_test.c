/* src/runtime/python/thread_name.c, tasks.c and locks.c, led through memory that contradicts itself: what they read is
 * bounded. That names are right is shown by each interpreter (tests/live/test_python_labels.py), and of tasks and locks
 * by test_dump.py. */
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

/* ---- tasks and locks ---- */

enum { TASK_READS = 600000, LOCK_READS = 60000 };

static const struct python newest = {
    .layout = {.version = PYTHON_VERSION(3, 14),
               .interp = {.threads = 8, .next = 16},
               .thread = {.bytes = 64, .next = 8, .interp = 16, .frame = 24, .native_thread_id = 40},
               .frame = {.bytes = 80, .code = 0, .previous = 8, .position = 56, .locals = 80, .top = 64},
               .code = {.bytecode = 208},
               .generator = {.bytes = 160, .state = 67, .frame = 72},
               .object = {.type = 8, .size = 16}},
    .head = PLACE,
    .interp = PLACE,
    .str_type = PLACE,
    .task_fields = (uint64_t)128 << 32 | 64,
    .task_links = 88 | (uint64_t)96 << 16 | (uint64_t)104 << 32 | (uint64_t)136 << 48,
};

static void count_task(void *context, const struct runtime_task *task)
{
    size_t *count = context;
    CHECK(task->stack.count <= RUNTIME_FRAMES_MAX);
    ++*count;
}

static size_t read_tasks(struct endless *m, size_t *shown)
{
    struct memory_batch memory = {read_endless, m};
    m->batches = *shown = 0;
    size_t left_out = python_tasks(&newest, &memory, count_task, shown);
    CHECK(*shown + left_out <= RUNTIME_TASKS_MAX);
    return m->batches;
}

/* A list that never comes back, whose back links are right. */
static uint64_t endless_list(uint64_t address, uint64_t seed)
{
    const uint64_t head = PLACE + 136, first = PLACE + (1 << 20);
    uint64_t offset = address - first;
    (void)seed;
    if (address == head || (address > first + 8 && offset % 4096 == 8)) {
        return address == head ? first : address - 8 - 4096;
    }
    return address == first + 8 ? head : address >= first && offset % 4096 == 0 ? address + 4096 : PLACE;
}

static void whatever_tasks_there_are_reading_ends(void)
{
    size_t shown, most = 0;
    struct endless ring = {always_the_same, 0, 0}, list = {endless_list, 0, 0};
    CHECK(read_tasks(&ring, &shown) < TASK_READS);
    CHECK(read_tasks(&list, &shown) < TASK_READS);
    CHECK(list.batches > RUNTIME_TASKS_MAX); /* it was followed */
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct endless m = {by_lot, seed, 0};
        size_t batches = read_tasks(&m, &shown);
        most = batches > most ? batches : most;
    }
    CHECK(most > 20 && most < TASK_READS);
}

static void whatever_locks_there_are_reading_ends(void)
{
    uint64_t locks[8], plan[RUNTIME_PLAN_MAX / 8] = {PLACE};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct endless m = {seed == 0 ? always_the_same : by_lot, seed, 0};
        struct memory_batch memory = {read_endless, &m};
        CHECK(python_locks(&newest, plan, &memory, locks, 8) <= 8);
        CHECK(m.batches > 0 && m.batches < LOCK_READS);
    }
}

TESTS({"a circle of threads ends", a_circle_of_threads_ends},
      {"whatever memory holds, the search ends", whatever_memory_holds_the_search_ends},
      {"whatever tasks there are, reading ends", whatever_tasks_there_are_reading_ends},
      {"whatever locks there are, reading ends", whatever_locks_there_are_reading_ends})
