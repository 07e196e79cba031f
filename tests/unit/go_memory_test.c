/* Profiles read in a Go process's memory: a made-up stripped program of Go 1.26 (go_process.h), well and spoiled. */
#include "go_process.h"

#include "go_pprof_text.h"
#include "test.h"

static struct go_made *made;
static struct buf out;
static struct err err;

static const enum go_function_number waits[] = {RUNTIME_GOPARK, MAIN_WAIT, RUNTIME_GOEXIT};

static uint64_t add_waiting(void)
{
    return go_add_goroutine(made, 4, GO_REASON_CHAN, MAIN_WAIT, waits, 3);
}

static void begin(unsigned machine)
{
    made = go_make(machine);
    buf_init(&out, 1 << 20);
    memset(&err, 0, sizeof err);
}

static void open_made(void)
{
    CHECK(go_make_ready(made));
    if (!go_make_open(made, "go 1.26.8", &err)) {
        printf("# %s\n", err.text);
        CHECK(false);
        exit(1);
    }
}

/* Allocations at two places, one mutex, and some goroutines. */
static void set_up(unsigned machine)
{
    static const enum go_function_number main_stack[] = {RUNTIME_GOPARK, MAIN_MAIN, RUNTIME_MAIN, RUNTIME_GOEXIT};
    static const enum go_function_number wrapped[] = {RUNTIME_GOPARK, MAIN_WAIT, MAIN_WRAPPER, RUNTIME_GOEXIT};
    static const enum go_function_number sweeps[] = {RUNTIME_GOPARK, RUNTIME_SWEEP, RUNTIME_GOEXIT};
    static const enum go_function_number finalizes[] = {RUNTIME_GOPARK, RUNTIME_FINALIZERS, RUNTIME_GOEXIT};
    begin(machine);
    (void)go_add_goroutine(made, 4, GO_REASON_SLEEP, RUNTIME_MAIN, main_stack, 4);
    (void)go_add_goroutine(made, 4, GO_REASON_CHAN, RUNTIME_SWEEP, sweeps, 3);
    (void)go_add_goroutine(made, 4, GO_REASON_FINALIZER, RUNTIME_FINALIZERS, finalizes, 3);
    (void)add_waiting();
    (void)go_add_goroutine(made, 0x1004, GO_REASON_CHAN, MAIN_WAIT, waits, 3); /* looked at by the collector */
    (void)go_add_goroutine(made, 4, GO_REASON_CHAN, MAIN_WRAPPER, wrapped, 4);
    (void)go_add_goroutine(made, 2, 0, MAIN_DEEP, waits, 3);
    (void)go_add_goroutine(made, 6, 0, MAIN_DEEP, waits, 0);
    const uint64_t allocates[] = {go_pc(RUNTIME_MALLOC), go_pc(MAIN_WAIT), go_pc(MAIN_MAIN), go_pc(RUNTIME_GOEXIT)};
    const uint64_t locks[] = {UINT64_MAX, go_pc(MAIN_WAIT), go_pc(MAIN_MAIN)};
    /* Published, then cycles 0, 1, 2 of the ring; the process is in its fourth, so number 1 is due. */
    const uint64_t published[16] = {10, 4, 640, 256, 1, 1, 64, 64, 2, 1, 128, 64, 9, 9, 9, 9}, few[16] = {3, 0, 300, 0};
    const double three = 3;
    uint64_t waited[2] = {0, 4000};
    memcpy(waited, &three, sizeof three);
    (void)go_add_bucket(made, 1, 64, allocates, 4, published, 16);
    (void)go_add_bucket(made, 1, 100, allocates, 1, few, 16);
    (void)go_add_bucket(made, 3, 0, locks, 3, waited, 2);
    open_made();
}

static void tear_down(void)
{
    go_make_release(made);
    buf_release(&out);
}

static void check_shown(const char *expected)
{
    struct shown_pprof s;
    CHECK_TEXT(pprof_show(&s, &out), expected);
    pprof_unshow(&s);
}

static void check_goroutines(uint64_t count, const char *expected)
{
    uint64_t found = 0;
    CHECK(go_memory_goroutines(made->m, 1, &out, &found, &err));
    CHECK_INT(found, count);
    check_shown(expected);
}

static const char heap_text[] = "3,300,3,300 runtime.mallocgc@:0 bytes=100/\n"
                                "12,768,7,448 main.wait@:0 main.main@:0 bytes=64/\n";

static const char goroutine_text[] = "1 [running]@:0 main.deep@:0\n"
                                     "1 runtime.gopark@:0 main.main@:0 runtime.main@:0\n"
                                     "3 runtime.gopark@:0 main.wait@:0\n";

static void profiles_of(unsigned machine)
{
    set_up(machine);
    CHECK(go_memory_heap(made->m, 1, &out, &err));
    check_shown(heap_text);
    CHECK(go_memory_contention(made->m, GO_MUTEX, 1, &out, &err));
    check_shown("3,2000 main.wait@:0 main.main@:0\n");
    CHECK(go_memory_contention(made->m, GO_BLOCK, 1, &out, &err));
    check_shown("");
    check_goroutines(5, goroutine_text);
    tear_down();
}

static void all_profiles(void)
{
    profiles_of(EM_X86_64);
}

static void all_profiles_aarch64(void)
{
    profiles_of(EM_AARCH64);
}

static void settings_of(unsigned machine)
{
    struct go_settings s;
    set_up(machine);
    CHECK(go_memory_settings(made->m, &s, &err));
    CHECK(s.has_memory_rate && s.has_block_rate && s.has_mutex_rate);
    CHECK_INT(s.memory_rate, 1);
    CHECK_INT(s.block_rate, 7);
    CHECK_INT(s.mutex_rate, 5);
    CHECK_INT(s.collections, 4);
    CHECK(go_memory_remark(made->m, GO_HEAP) == NULL && go_memory_remark(made->m, GO_MUTEX) == NULL);
    memset(made->data + GO_RATE, 0, GO_CYCLE + 8 - GO_RATE);
    CHECK(strstr(go_memory_remark(made->m, GO_HEAP), "MemProfileRate is 0") != NULL);
    CHECK(strstr(go_memory_remark(made->m, GO_BLOCK), "SetBlockProfileRate") != NULL);
    CHECK(strstr(go_memory_remark(made->m, GO_MUTEX), "SetMutexProfileFraction") != NULL);
    CHECK(strstr(go_memory_remark(made->m, GO_WAITS), "not collected garbage yet") != NULL);
    tear_down();
}

static void settings(void)
{
    settings_of(EM_X86_64);
    settings_of(EM_AARCH64);
}

static void waiting_times(void)
{
    static const enum go_function_number calls[] = {RUNTIME_SYSCALL, MAIN_WAIT, RUNTIME_GOEXIT};
    begin(EM_X86_64);
    go_put(go_g(made, add_waiting()) + 168, 700, 8);
    go_put(go_g(made, add_waiting()) + 168, 400, 8);
    (void)add_waiting();
    uint64_t in_call = go_add_goroutine(made, 3, 0, MAIN_WAIT, calls, 3);
    memcpy(go_g(made, in_call) + 104, go_g(made, in_call) + 56, 16); /* syscallsp, syscallpc */
    go_put(go_g(made, in_call) + 168, 990, 8);
    go_put(go_g(made, go_add_goroutine(made, 1, 0, MAIN_WAIT, waits, 3)) + 168, 5, 8);
    open_made();
    CHECK(go_memory_waits(made->m, 1, 1000, &out, &err));
    check_shown("900,3 runtime.gopark@:0 main.wait@:0 state=chan receive\n"
                "10,1 syscall.Syscall6@:0 main.wait@:0 state=syscall\n"
                "0,1 runtime.gopark@:0 main.wait@:0 state=runnable\n");
    tear_down();
}

static void labels(void)
{
    begin(EM_X86_64);
    unsigned char *set = made->heap + 0x18000;
    const uint64_t words[] = {go_heap + 0x18020, 1, 1, 0, go_heap + 0x18100, 6, go_heap + 0x18110, 2};
    for (size_t i = 0; i < 8; i++) {
        go_put(set + 8 * i, words[i], 8);
        go_put(set + 0x80 + 8 * i, words[i], 8); /* an equal one */
    }
    memcpy(set + 0x100, "tenant", 6);
    memcpy(set + 0x110, "42", 2);
    go_put(go_g(made, add_waiting()) + 352, go_heap + 0x18000, 8);
    go_put(go_g(made, add_waiting()) + 352, go_heap + 0x18080, 8);
    go_put(go_g(made, add_waiting()) + 352, 0x1000, 8); /* cannot be read */
    open_made();
    check_goroutines(3, "2 runtime.gopark@:0 main.wait@:0 tenant=42\n1 runtime.gopark@:0 main.wait@:0\n");
    tear_down();
}

static void before_the_first_collection(void)
{
    begin(EM_X86_64);
    const uint64_t pcs[] = {go_pc(MAIN_WAIT)}, record[16] = {0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 128, 0, 4, 0, 256, 0};
    (void)add_waiting();
    (void)go_add_bucket(made, 1, 64, pcs, 1, record, 16);
    open_made();
    go_put(made->data + GO_CYCLE, 0, 4);
    CHECK(go_memory_heap(made->m, 1, &out, &err));
    check_shown("6,384,6,384 main.wait@:0 bytes=64/\n");
    tear_down();
}

static void scaled(void)
{
    begin(EM_X86_64);
    const uint64_t pcs[] = {go_pc(MAIN_WAIT)}, record[16] = {5, 1, 320, 64}, large[16] = {2, 0, 2 << 20, 0};
    (void)add_waiting();
    (void)go_add_bucket(made, 1, 64, pcs, 1, record, 16);
    (void)go_add_bucket(made, 1, 1 << 20, pcs, 1, large, 16);
    go_put(made->data + GO_RATE, 524288, 8);
    open_made();
    CHECK(go_memory_heap(made->m, 1, &out, &err));
    /* 5 / (1 - exp(-64 / 524288)), 2 / (1 - exp(-2)), as Go 1.26 computes them */
    check_shown("2,2425393,2,2425393 main.wait@:0 bytes=1048576/\n"
                "40962,2621600,32770,2097280 main.wait@:0 bytes=64/\n");
    tear_down();
}

/* ---- versions ---- */

static void versions(void)
{
    static const struct { const char *version, *says; } refused[] = {
        {"go 1.28.0", "not go 1.28.0"}, {"go 1.17.13", "not go 1.17.13"}, {"", "not a Go before 1.18"},
        {"go 2.0", "not go 2.0"}, {"go 1.260", "not go 1.260"}};
    begin(EM_X86_64);
    (void)add_waiting();
    CHECK(go_make_ready(made));
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        CHECK(!go_make_open(made, refused[i].version, &err));
        CHECK_INT(err.kind, ERR_UNSUPPORTED);
        CHECK(strstr(err.text, refused[i].says) != NULL);
    }
    CHECK(go_layout_of("go 1.27-abcdef") != NULL && go_layout_of("go 1.18") != NULL);
    CHECK(go_layout_of("go 1.26rc1") != NULL);
    CHECK(!go_layout_of("go 1.18.1")->cycle_has_flag && go_layout_of("go 1.19")->cycle_has_flag);
    tear_down();
}

/* ---- what is spoiled ---- */

static void buckets_in_a_circle(void)
{
    set_up(EM_X86_64);
    go_put(made->heap + GO_CHAIN + 8, go_heap + GO_CHAIN, 8);
    CHECK(!go_memory_heap(made->m, 1, &out, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK_INT(out.len, 0);
    tear_down();
}

static void wild_buckets(void)
{
    static const struct { unsigned at; uint64_t value; } wild[] = {
        {8, 0x1000}, {8, UINT64_C(0xc000010004)}, {8, UINT64_MAX - 7}, {8, UINT64_C(0xc000000000) + GO_HEAP_BYTES - 8},
        {16, 2}, {16, 0}, {40, 1025}};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        set_up(EM_X86_64);
        /* The head is the newer one; the older one, which it leads to, is spoiled, or its link. */
        uint64_t newest = made->heads[1] - go_heap;
        go_put(made->heap + (wild[i].at == 8 ? newest : GO_CHAIN) + wild[i].at, wild[i].value, 8);
        bool told = go_memory_heap(made->m, 1, &out, &err);
        CHECK(!told && err.kind == ERR_MALFORMED);
        tear_down();
    }
}

static void an_empty_heap(void)
{
    begin(EM_X86_64);
    (void)add_waiting();
    open_made();
    CHECK(go_memory_heap(made->m, 1, &out, &err));
    check_shown("");
    tear_down();
}

static void wild_goroutines(void)
{
    set_up(EM_X86_64);
    go_put(made->heap + 0x100, 3, 8);                    /* no address */
    go_put(go_g(made, 3) + 8, go_heap + 0x1000, 8);      /* a stack that ends before it begins */
    go_put(go_g(made, 4) + 56, go_heap + GO_STACKS, 8);  /* outside of it */
    go_put(go_g(made, 5) + 64, 0x1234, 8);               /* nowhere */
    check_goroutines(4, "1 [running]@:0 main.deep@:0\n1\n2 [moved on]@:0 main.wait@:0\n");
    tear_down();
}

static void too_many(void)
{
    uint64_t count;
    set_up(EM_X86_64);
    go_put(made->data + GO_ALLGS + 8, GO_GOROUTINES_MAX + 1, 8);
    go_put(made->data + GO_ALLGS + 16, GO_GOROUTINES_MAX + 1, 8);
    CHECK(!go_memory_goroutines(made->m, 1, &out, &count, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    go_put(made->data + GO_ALLGS + 16, 2, 8); /* more than its room */
    CHECK(!go_memory_goroutines(made->m, 1, &out, &count, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    tear_down();
}

static void no_tables(void)
{
    begin(EM_X86_64);
    CHECK(go_make_ready(made));
    memset(made->data, 0xff, sizeof made->data);
    CHECK(!go_make_open(made, "go 1.26.8", &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    tear_down();
}

static void gone(void)
{
    uint64_t count;
    set_up(EM_X86_64);
    made->is_gone = true;
    CHECK(!go_memory_heap(made->m, 1, &out, &err));
    CHECK_INT(err.kind, ERR_GONE);
    CHECK(strstr(err.text, "process 7 ended") != NULL);
    CHECK(!go_memory_goroutines(made->m, 1, &out, &count, &err));
    CHECK_INT(err.kind, ERR_GONE);
    tear_down();
}

/* ---- the process runs on ---- */

static unsigned moves_left;

/* Whenever the goroutine is read it has another stack pointer. */
static void runs_on(struct go_made *g, uint64_t address, size_t len)
{
    if (moves_left > 0 && address == go_heap + GO_GS && len > 8) {
        moves_left--;
        go_put(go_g(g, 0) + 64, go_pc(moves_left % 2 ? RUNTIME_GOPARK : MAIN_DEEP), 8);
    }
}

static void moved_on(void)
{
    begin(EM_X86_64);
    (void)add_waiting();
    (void)add_waiting();
    open_made();
    made->moves = runs_on;
    moves_left = UINT32_MAX;
    check_goroutines(2, "1 runtime.gopark@:0 main.wait@:0\n1 [moved on]@:0 main.wait@:0\n");
    moves_left = 2;
    go_put(go_g(made, 0) + 64, go_pc(RUNTIME_GOPARK), 8);
    made->moves = NULL;
    check_goroutines(2, "2 runtime.gopark@:0 main.wait@:0\n");
    tear_down();
}

/* The collection's number rises once the bucket is read. */
static void collects(struct go_made *g, uint64_t address, size_t len)
{
    if (moves_left > 0 && len > 4096 && address <= go_heap + GO_CHAIN) {
        moves_left--;
        go_put(g->data + GO_CYCLE, 5 << 1, 4);
    }
}

static void a_collection_ends(void)
{
    begin(EM_X86_64);
    const uint64_t pcs[] = {go_pc(MAIN_WAIT)}, record[16] = {1, 0, 64, 0, 0, 0, 0, 0, 2, 0, 128, 0, 4, 0, 256, 0};
    (void)add_waiting();
    (void)go_add_bucket(made, 1, 64, pcs, 1, record, 16);
    open_made();
    made->moves = collects;
    moves_left = 1;
    CHECK(go_memory_heap(made->m, 1, &out, &err));
    check_shown("5,320,5,320 main.wait@:0 bytes=64/\n"); /* 1 + 4: of cycle 5 */
    tear_down();
}

/* ---- stacks ---- */

/* A goroutine whose stack is elsewhere, `depth` frames of main.deep. */
static void add_deep(unsigned depth)
{
    uint64_t at = 0x18000, index = add_waiting();
    unsigned char *g = go_g(made, index);
    go_put(g, go_heap + at, 8);
    go_put(g + 8, go_heap + at + 0x7000, 8);
    go_put(g + 56, go_heap + at + 0x100, 8);
    go_put(g + 64, go_pc(MAIN_DEEP), 8);
    at += 0x100;
    for (unsigned i = 0; i < depth; i++) {
        go_put(made->heap + at + 120, go_pc(i + 1 == depth ? RUNTIME_GOEXIT : MAIN_DEEP), 8);
        at += 128;
    }
}

static void check_deep(unsigned depth, unsigned shown)
{
    char expected[8192] = "1";
    begin(EM_X86_64);
    add_deep(depth);
    open_made();
    for (unsigned i = 0; i < shown; i++) {
        strcat(expected, " main.deep@:0");
    }
    strcat(expected, "\n");
    check_goroutines(1, expected);
    tear_down();
}

static void deep_stacks(void)
{
    check_deep(3, 3);
    check_deep(100, 100); /* 12 KiB */
    check_deep(200, 128); /* as many as runtime/pprof has */
}

static void ends_of_stacks(void)
{
    static const enum go_function_number scheduler[] = {RUNTIME_GOGO, MAIN_WAIT, RUNTIME_GOEXIT};
    begin(EM_X86_64);
    (void)go_add_goroutine(made, 4, GO_REASON_CHAN, MAIN_WAIT, scheduler, 3); /* writes SP: nothing below is sure */
    uint64_t in_c = add_waiting();
    go_put(made->heap + GO_STACKS + in_c * GO_STACK_BYTES + 0x40 + 16, 0x7f0000001234, 8); /* returns to C */
    uint64_t fresh = go_add_goroutine(made, 1, 0, MAIN_DEEP, waits, 3); /* has not begun */
    go_put(go_g(made, fresh) + 64, go_bias + GO_TEXT_AT + MAIN_DEEP * GO_CODE_BYTES, 8);
    uint64_t nil = go_add_goroutine(made, 4, GO_REASON_CHAN, MAIN_WAIT, waits, 3); /* calls a nil function */
    go_put(go_g(made, nil) + 64, 0, 8);
    go_put(made->heap + GO_STACKS + nil * GO_STACK_BYTES + 0x40, go_pc(MAIN_DEEP), 8);
    open_made();
    uint64_t count;
    CHECK(go_memory_goroutines(made->m, 1, &out, &count, &err));
    check_shown("1 runtime.gogo@:0\n1 runtime.gopark@:0\n1 main.deep@:0\n1 main.deep@:0\n");
    tear_down();
}

/* A preempted goroutine was about to run the address, so that is where it is; on AArch64 16 bytes lie between. */
static void preempted(unsigned machine)
{
    static const enum go_function_number stack[] = {RUNTIME_ASYNC, MAIN_WAIT, RUNTIME_GOEXIT};
    begin(machine);
    uint64_t index = go_add_goroutine(made, 9, 0, MAIN_WAIT, stack, 3), frame = GO_STACKS + 0x40 + 32;
    if (machine == EM_AARCH64) {
        go_put(made->heap + frame + 16, go_pc(RUNTIME_GOEXIT), 8);
    }
    CHECK_INT(index, 0);
    open_made();
    struct go_unwinder u = {.m = made->m};
    struct go_stack s = {.pc = go_pc(RUNTIME_ASYNC), .sp = go_heap + GO_STACKS + 0x40,
                         .limit = go_heap + GO_STACKS + 0x400,
                         .bytes = made->heap + GO_STACKS, .start = go_heap + GO_STACKS, .len = 0x400};
    CHECK(go_unwind(&u, &s));
    CHECK_INT(s.count, 3);
    CHECK_INT(s.pcs[0], go_pc(RUNTIME_ASYNC));
    CHECK_INT(s.pcs[1], go_pc(MAIN_WAIT) + 1);
    CHECK_INT(s.pcs[2], go_pc(RUNTIME_GOEXIT));
    go_unwinder_release(&u);
    tear_down();
}

static void preempted_goroutines(void)
{
    preempted(EM_X86_64);
    preempted(EM_AARCH64);
}

static void counts_of(unsigned machine)
{
    struct go_memstats s;
    set_up(machine);
    CHECK(go_memory_counts(made->m, &s, &err));
    CHECK_INT(s.total_alloc, 100 * 16 + 100000 + 8 * 16);
    CHECK_INT(s.heap_alloc, s.total_alloc - 10 * 16 - 40000);
    CHECK_INT(s.mallocs, 100 + 2 + 7 + 3 + 8);
    CHECK_INT(s.frees, 10 + 1 + 7 + 3);
    CHECK_INT(s.num_gc, 2);
    CHECK_INT(s.pause_total_ns, 1500);
    CHECK_INT(s.pause_ns[0] + s.pause_ns[1], 1500);
    tear_down();
}

static void counts(void)
{
    counts_of(EM_X86_64);
    counts_of(EM_AARCH64);
}

/* A reader of its own turns the ring all the time: … */
static void turn_ring(struct go_made *g, uint64_t address, size_t len)
{
    if (len > 3000 && address == go_bias + GO_DATA_AT + GO_MEMSTATS) {
        g->data[GO_MEMSTATS + 3504] = (unsigned char)((g->data[GO_MEMSTATS + 3504] + 1) % 3);
    }
}

static void a_ring_that_turns(void)
{
    struct go_memstats s = {.num_gc = 99};
    set_up(EM_X86_64);
    made->moves = turn_ring; /* … another one is current in each copy */
    CHECK(!go_memory_counts(made->m, &s, &err));
    CHECK(err.kind == ERR_MALFORMED && strstr(err.text, "memory statistics of a Go program") != NULL);
    CHECK_INT(s.num_gc, 99);
    made->moves = NULL;
    made->data[GO_MEMSTATS + 3504] = 1;
    CHECK(go_memory_counts(made->m, &s, &err));
    go_put(go_count(made, 2, GO_LARGE), 1, 8); /* the one behind the current is not clear */
    CHECK(!go_memory_counts(made->m, &s, &err));
    tear_down();
}

/* Each would be a number out of nothing. */
static void wild_counts(void)
{
    static const struct {
        size_t at;
        uint64_t value;
        bool is_data;
    } spoils[] = {
        {GO_MEMSTATS + 3504, 3, true},                    /* the fourth of three */
        {GO_ALLP + 8, 0, true},                           /* no processors */
        {GO_ALLP + 8, UINT64_MAX, true},
        {GO_ALLP, 8, true},                               /* nowhere */
        {GO_P + 0x90, 7, false},                          /* the second is called otherwise */
        {GO_P + 0x10 + 56, 24, false},                    /* its cache is nowhere, … */
        {GO_CACHE + 48, 24, false},                       /* … a span of it, … */
        {GO_CACHE + 48, UINT64_C(0x7f0000000000), false}, /* … or not mapped */
    };
    struct go_memstats s;
    for (size_t i = 0; i < sizeof spoils / sizeof spoils[0]; i++) {
        set_up(EM_X86_64);
        go_put((spoils[i].is_data ? made->data : made->heap) + spoils[i].at, spoils[i].value,
               spoils[i].at == GO_MEMSTATS + 3504 || spoils[i].at == GO_P + 0x90 ? 4 : 8);
        CHECK(!go_memory_counts(made->m, &s, &err));
        tear_down();
    }
    set_up(EM_X86_64);
    go_put(go_count(made, 0, GO_SMALL_FREES + 60), 1000000, 8); /* more is freed than was allocated */
    CHECK(!go_memory_counts(made->m, &s, &err));
    tear_down();
}

static void counts_that_are_not_there(void)
{
    struct go_memstats s;
    begin(EM_X86_64);
    go_put(go_count(made, 0, GO_IN_HEAP), 77, 8); /* no whole pages */
    (void)add_waiting();
    open_made();
    CHECK(!go_memory_counts(made->m, &s, &err));
    CHECK(err.kind == ERR_MALFORMED && strstr(err.text, "its tables were not found") != NULL);
    tear_down();
}

TESTS({"all profiles of a stripped program are read", all_profiles},
      {"and of one for AArch64, whose calls leave the address in a register", all_profiles_aarch64},
      {"settings are found, and told when they empty a profile", settings},
      {"what is counted of the heap is told as runtime.ReadMemStats does", counts},
      {"counts that are merged meanwhile are not believed", a_ring_that_turns},
      {"counts that contradict themselves are an error", wild_counts},
      {"what is no such count is not found", counts_that_are_not_there},
      {"waiting goroutines are told by state with how long they wait", waiting_times},
      {"goroutines' labels are told, equal ones as one", labels},
      {"before the first collection all allocations are told", before_the_first_collection},
      {"sampled allocations are scaled up by their size", scaled},
      {"an unknown version is refused by name", versions},
      {"buckets in a circle are an error", buckets_in_a_circle},
      {"a bucket that is none ends the profile with an error", wild_buckets},
      {"a program that has not allocated yet has an empty heap profile", an_empty_heap},
      {"goroutines with impossible stacks are counted, not followed", wild_goroutines},
      {"more goroutines than there can be are an error", too_many},
      {"a process whose memory makes no sense is not opened", no_tables},
      {"a process that ended is told as such", gone},
      {"a goroutine that moves on is counted by its first function", moved_on},
      {"a collection that ends meanwhile makes the heap be read again", a_collection_ends},
      {"deep stacks are followed as far as Go's own profiles go", deep_stacks},
      {"stacks end where nothing is known of the caller", ends_of_stacks},
      {"a preempted goroutine stands at its address, not before it", preempted_goroutines})
