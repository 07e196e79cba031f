/* Call chains as the kernel gives them, leaf first, and the paths they become, root first. */
#include "capture/stacks/stacks_private.h"
#include "test.h"

enum { PID = 0x7ffffff0, PERIOD = 10101010 };

#define KERNEL CHAIN_MARK_KERNEL
#define USER CHAIN_MARK_USER

struct scene {
    struct world world;
    struct images images;
    struct targets targets;
    struct target *target;
    struct stacks stacks;
    struct profile profile;
};

/* Code at 0x400000 from file offset 0 and at 0x7f0000000000 from file offset 0x1000. */
static void begin(struct scene *s)
{
    *s = (struct scene){0};
    s->world = world_here();
    images_init(&s->images, &s->world);
    targets_init(&s->targets, &s->images, false);
    CHECK(stacks_init(&s->stacks, &s->targets, NULL, NULL, 0));
    CHECK(profile_init(&s->profile, 1 << 22, NULL));
    targets_comm(&s->targets, PID, PID, STR("app"), true);
    s->target = targets_find(&s->targets, PID);
    targets_map(&s->targets, s->target,
                &(struct mapped_file){0x400000, 0x500000, 0, 11, 8, 1, STR("/nowhere/app"), 0});
    targets_map(&s->targets, s->target,
                &(struct mapped_file){0x7f0000000000, 0x7f0000100000, 0x1000, 12, 8, 1,
                                      STR("/nowhere/lib.so"), 0});
}

static void end(struct scene *s)
{
    stacks_release(&s->stacks);
    profile_release(&s->profile);
    targets_release(&s->targets);
    images_release(&s->images);
}

static void add_chain(struct scene *s, bool user, const uint64_t *chain, size_t len)
{
    /* on the heap, so that a step outside the chain is seen */
    uint64_t *exact = malloc(len * sizeof *exact + 1);
    if (len > 0) {
        memcpy(exact, chain, len * sizeof *exact);
    }
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID + 1,
                            .time_ns = 1000,
                            .user = user,
                            .as.sample = {.period_ns = PERIOD, .chain = exact, .chain_len = len}};
    stacks_add(&s->stacks, &s->profile, &record, NULL);
    free(exact);
}

#define ADD(scene, user, ...)                                                                      \
    do {                                                                                           \
        static const uint64_t chain_[] = {__VA_ARGS__};                                            \
        add_chain(scene, user, chain_, sizeof chain_ / sizeof chain_[0]);                          \
    } while (0)

static size_t write_path(const struct profile *p, uint32_t node, char *out, size_t max)
{
    const struct node *n = &p->nodes.at[node];
    size_t used = n->parent == 0 ? 0 : write_path(p, n->parent, out, max);
    const struct frame *f = &p->frames.at[n->frame];
    struct str path = profile_text(p, p->modules.at[f->module].path);
    struct str name = profile_text(p, f->name);
    if (f->address != 0) {
        used += (size_t)snprintf(out + used, max - used, "%s%.*s+%llx", used > 0 ? ";" : "",
                                 (int)path.len, path.ptr, (unsigned long long)f->address);
    } else {
        used += (size_t)snprintf(out + used, max - used, "%s%.*s", used > 0 ? ";" : "",
                                 (int)name.len, name.ptr);
    }
    return used;
}

/* The path of the newest sample: "file+address;…" from the root. */
static const char *newest(const struct scene *s)
{
    static char text[2048];
    text[0] = '\0';
    const struct sample *sample = &s->profile.samples.at[s->profile.samples.len - 1];
    (void)write_path(&s->profile, sample->node, text, sizeof text);
    return text;
}

static void both_halves(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, false, KERNEL, 0xffffffff81000010, 0xffffffff81000201, USER, 0x401000, 0x7f0000000101,
        0x402001);
    CHECK_TEXT(newest(&s), "/nowhere/app+2000;/nowhere/lib.so+1100;/nowhere/app+1000;"
                           "[kernel]+ffffffff81000200;[kernel]+ffffffff81000010");
    const struct sample *sample = &s.profile.samples.at[1];
    CHECK_INT(sample->cpu_ns, PERIOD);
    CHECK_INT(sample->count, 1);
    CHECK_INT(s.profile.threads.at[sample->thread].tid, PID + 1);
    const struct node *leaf = &s.profile.nodes.at[sample->node];
    CHECK_INT(s.profile.frames.at[leaf->frame].kind, FRAME_KERNEL);
    CHECK_INT(s.target->account.sampled_ns, PERIOD);
    CHECK_INT(s.stacks.samples, 1);
    CHECK_INT(s.stacks.cut, 0);
    end(&s);
}

static void user_only(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, true, USER, 0x401000, 0x402001);
    CHECK_TEXT(newest(&s), "/nowhere/app+2000;/nowhere/app+1000");
    ADD(&s, true, 0x401005, 0x402001); /* a kernel that writes no mark */
    CHECK_TEXT(newest(&s), "/nowhere/app+2000;/nowhere/app+1005");
    end(&s);
}

static void kernel_only(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, false, KERNEL, 0xffffffff81000010);
    CHECK_TEXT(newest(&s), "[kernel]+ffffffff81000010");
    CHECK_INT(s.stacks.cut, 0);
    end(&s);
}

static void no_address(void)
{
    struct scene s;
    begin(&s);
    add_chain(&s, true, NULL, 0);
    CHECK_TEXT(newest(&s), "[unknown]");
    ADD(&s, false, KERNEL, USER);
    CHECK_TEXT(newest(&s), "[unknown]");
    CHECK_INT(s.profile.samples.len, 2); /* the same row twice */
    CHECK_INT(s.profile.samples.at[1].count, 2);
    end(&s);
}

static void leaves_mapped_code(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, true, USER, 0x401000, 0x402001, 0xdeadbeef0000, 0x403001);
    CHECK_TEXT(newest(&s), "/nowhere/app+2000;/nowhere/app+1000");
    CHECK_INT(s.stacks.cut, 1);
    ADD(&s, true, USER, 0xdeadbeef0000, 0x402001); /* not even the leaf is known code */
    CHECK_TEXT(newest(&s), "[unknown]");
    CHECK_INT(s.stacks.cut, 2);
    ADD(&s, false, KERNEL, 0xffffffff81000010, USER, 0xdeadbeef0000);
    CHECK_TEXT(newest(&s), "[kernel]+ffffffff81000010");
    CHECK_INT(s.target->account.sampled_ns, 3 * PERIOD); /* none is dropped */
    end(&s);
}

static void ends_at_zero(void)
{
    struct scene s;
    begin(&s);
    s.target->reread.retry_ns = 0;
    ADD(&s, true, USER, 0x401000, 0x402001, 0);
    ADD(&s, true, USER, 0x401000, 0x402001, 1);
    CHECK_TEXT(newest(&s), "/nowhere/app+2000;/nowhere/app+1000");
    CHECK_INT(s.profile.samples.at[1].count, 2);
    CHECK_INT(s.stacks.cut, 0);            /* this is an end, not a wrong turn … */
    CHECK_INT(s.target->reread.retry_ns, 0); /* … and no reason to read the maps */
    end(&s);
}

static void call_at_the_edge(void)
{
    struct scene s;
    begin(&s);
    /* a call that is the last instruction of the mapping returns to its limit */
    ADD(&s, true, USER, 0x401000, 0x500000);
    CHECK_TEXT(newest(&s), "/nowhere/app+fffff;/nowhere/app+1000");
    /* but an instruction there is outside */
    ADD(&s, true, USER, 0x500000, 0x402001);
    CHECK_TEXT(newest(&s), "[unknown]");
    end(&s);
}

static void recursion(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, true, USER, 0x401001, 0x401002, 0x401002, 0x401002);
    CHECK_TEXT(newest(&s),
               "/nowhere/app+1001;/nowhere/app+1001;/nowhere/app+1001;/nowhere/app+1001");
    end(&s);
}

static void deep_chain(void)
{
    enum { DEEP = 8192, KEPT = 1024 };
    struct scene s;
    begin(&s);
    static uint64_t chain[2 * DEEP + 2];
    size_t len = 0;
    chain[len++] = KERNEL;
    for (unsigned i = 0; i < DEEP; i++) {
        chain[len++] = 0xffffffff81000000 + i;
    }
    chain[len++] = USER;
    for (unsigned i = 0; i < DEEP; i++) {
        chain[len++] = 0x400001 + i;
    }
    add_chain(&s, false, chain, len);
    size_t depth = 0;
    for (uint32_t node = s.profile.samples.at[1].node; node != 0;
         node = s.profile.nodes.at[node].parent) {
        depth++;
    }
    CHECK_INT(depth, 2 * KEPT);
    end(&s);
}

static void odd_marks(void)
{
    struct scene s;
    begin(&s);
    uint64_t seed = 7;
    for (unsigned round = 0; round < 2000; round++) {
        uint64_t chain[24];
        size_t len = round % 25;
        for (size_t i = 0; i < len; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            static const uint64_t parts[] = {KERNEL,     USER,     0x401000, 0xffffffff81000010,
                                             UINT64_MAX, 0x402000, 0,        (uint64_t)-4095};
            chain[i] = parts[seed >> 61];
        }
        add_chain(&s, round % 2 == 0, chain, len);
    }
    CHECK_INT(s.stacks.samples, 2000);
    struct profile_totals sum = profile_sum(&s.profile);
    CHECK(sum.cpu_ns == (uint64_t)2000 * PERIOD);
    CHECK_INT(sum.count, 2000);
    end(&s);
}

/* ---- a full profile ---- */

static void full_profile(void)
{
    struct scene s;
    begin(&s);
    ADD(&s, false, KERNEL, 0xffffffff81000010, USER, 0x401000, 0x402001);
    ADD(&s, false, KERNEL, 0xffffffff81000010, 0xffffffff81000201);
    uint32_t nodes = (uint32_t)s.profile.nodes.len;
    s.profile.max_bytes = s.profile.limit_bytes = 0; /* only what is known can be found now */
    ADD(&s, false, KERNEL, 0xffffffff81000010, USER, 0x401000, 0x402001); /* known */
    CHECK_INT(s.profile.samples.at[1].count, 2);
    /* unknown from the root on, in the middle and in the kernel: never a path that begins lower */
    ADD(&s, false, KERNEL, 0xffffffff81000010, 0xffffffff81000201, USER, 0x401000, 0x403001);
    ADD(&s, true, USER, 0x402000, 0x402001);
    ADD(&s, false, KERNEL, 0xffffffff81000777, USER, 0x401000, 0x402001);
    struct profile_totals sum = profile_sum(&s.profile);
    CHECK_INT(sum.cpu_ns, 6 * PERIOD);
    CHECK_INT(sum.account_ns[ACCOUNT_LOST], 3 * PERIOD);
    CHECK_INT(s.profile.dropped, 3);
    CHECK_INT(s.target->account.sampled_ns, 6 * PERIOD);
    CHECK_INT(s.profile.nodes.len, nodes + 1); /* "[lost]" */
    end(&s);
}

static struct str first_frame(const struct profile *p, uint32_t node)
{
    while (p->nodes.at[node].parent != 0) {
        node = p->nodes.at[node].parent;
    }
    return profile_text(p, p->frames.at[p->nodes.at[node].frame].name);
}

/* 300 stacks with three leaves, in a profile that takes no more stacks: three paths of two frames. */
static void limited_profile(void)
{
    struct scene s;
    char path[4096];
    begin(&s);
    ADD(&s, false, KERNEL, 0xffffffff81000010, USER, 0x401000, 0x402001);
    profile_limit(&s.profile, profile_bytes(&s.profile));
    size_t before = s.profile.nodes.len;
    for (unsigned i = 0; i < 300; i++) {
        uint64_t chain[] = {USER, 0x401000 + i % 3, 0x402002 + i};
        add_chain(&s, true, chain, 3);
    }
    ADD(&s, false, KERNEL, 0xffffffff81000020, 0xffffffff81000010, USER, 0x401000, 0x402001);
    ADD(&s, false, KERNEL, 0xffffffff81000010, USER, 0x401000, 0x402001); /* known: whole */
    CHECK_INT(s.profile.nodes.len, before + 5); /* "[budget]", its leaves, one in the kernel */
    CHECK_INT(s.profile.collapsed, 301);
    CHECK_INT(s.profile.dropped, 0);
    struct profile_totals sum = profile_sum(&s.profile);
    CHECK_INT(sum.cpu_ns, 303LL * PERIOD);
    CHECK_INT(sum.account_ns[ACCOUNT_LOST], 0);
    CHECK_INT(s.profile.samples.at[1].count, 2);
    CHECK_INT(s.profile.samples.at[2].count, 100);
    write_path(&s.profile, s.profile.samples.at[2].node, path, sizeof path);
    CHECK_TEXT(path, "[budget];/nowhere/app+1000");
    end(&s);
}

static void every_budget(void)
{
    for (size_t budget = 0; budget < 4000; budget += 16) {
        struct scene s;
        begin(&s);
        s.profile.max_bytes = s.profile.limit_bytes = budget;
        for (unsigned i = 0; i < 10; i++) {
            uint64_t chain[] = {KERNEL, 0xffffffff81000010 + i, USER, 0x401000 + i, 0x402001};
            add_chain(&s, false, chain, 5);
        }
        struct profile_totals sum = profile_sum(&s.profile);
        CHECK_INT(sum.cpu_ns, 10 * PERIOD);
        CHECK_INT(sum.count + s.profile.dropped, 10);
        /* a path that was taken is whole: kernel above the whole user half */
        for (size_t i = 1; i < s.profile.samples.len; i++) {
            if (s.profile.samples.at[i].count > 0) {
                size_t depth = 0;
                for (uint32_t n = s.profile.samples.at[i].node; n != 0;
                     n = s.profile.nodes.at[n].parent) {
                    depth++;
                }
                struct str first = first_frame(&s.profile, s.profile.samples.at[i].node);
                CHECK_INT(depth, str_eq(first, STR("[budget]")) ? 2 : 3);
            }
        }
        end(&s);
    }
}

/* ---- allocations ---- */

int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *))
    __attribute__((weak));

static volatile size_t allocations; /* the compiler knows that malloc changes nothing of ours */

static void count_allocation(const volatile void *ptr, size_t bytes)
{
    (void)ptr;
    allocations += bytes > 0;
}

static void ignore_free(const volatile void *ptr)
{
    (void)ptr;
}

static void steady_state(void)
{
    static bool installed;
    if (__sanitizer_install_malloc_and_free_hooks == NULL) {
        SKIP("built without AddressSanitizer");
    }
    installed = installed ||
                __sanitizer_install_malloc_and_free_hooks(count_allocation, ignore_free) != 0;
    CHECK(installed);
    static const uint64_t chain[] = {KERNEL,        0xffffffff81000010, 0xffffffff81000201, USER,
                                     0x401000,      0x7f0000000101,     0x402001,           0};
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID + 1,
                            .time_ns = 1000,
                            .as.sample = {.period_ns = PERIOD, .chain = chain, .chain_len = 8}};
    struct scene s;
    begin(&s);
    for (unsigned window = 0; window < 3; window++) {
        if (window > 0) {
            profile_clear(&s.profile);
            targets_end_window(&s.targets);
        }
        stacks_add(&s.stacks, &s.profile, &record, NULL); /* the first of a window may read /proc */
        allocations = 0;
        for (unsigned i = 0; i < 10000; i++) {
            record.tid = PID + 1 - i % 2;
            stacks_add(&s.stacks, &s.profile, &record, NULL);
            allocations = i < 2 ? 0 : allocations;
        }
        CHECK_INT(allocations, 0);
    }
    allocations = 0;
    void *volatile held = malloc(1);
    free(held);
    CHECK_INT(allocations, 1); /* the counter counts */
    end(&s);
}

/* ---- unwound here ---- */

#if defined(__x86_64__)

/* A stack of three frames with frame pointers, in code without tables: main's frame pointer is 0. */
enum { STACK_BASE = 0x7ffe0000, WORDS = 8 };
static const uint64_t frames[WORDS] = {
    /* the leaf's frame at +0 */ STACK_BASE + 0x20, 0x400200, 0, 0,
    /* its caller's at +0x20 */ 0, 0x400300, 0, 0};

static void add_words(struct scene *s, const uint64_t *words, uint64_t base, uint64_t fp, size_t copied)
{
    uint64_t registers[17] = {0};
    registers[6] = fp;          /* BP */
    registers[7] = base;        /* SP */
    registers[8] = 0x400100;    /* IP */
    struct record record = {.kind = RECORD_SAMPLE,
                            .pid = PID,
                            .tid = PID + 1,
                            .time_ns = 1000,
                            .user = true,
                            .as.sample = {.period_ns = PERIOD,
                                          .registers = registers,
                                          .stack = (const unsigned char *)words,
                                          .stack_len = copied,
                                          .stack_room = copied}};
    stacks_add(&s->stacks, &s->profile, &record, NULL);
}

static void add_stack(struct scene *s, uint64_t base, size_t copied)
{
    add_words(s, frames, base, base, copied);
}

static void begin_unwinding(struct scene *s, struct unwinder *unwinder)
{
    begin(s);
    stacks_release(&s->stacks);
    CHECK(unwinder_init(unwinder, UNWIND_HYBRID, NULL));
    CHECK(stacks_init(&s->stacks, &s->targets, NULL, unwinder, unwind_perf_mask()));
}

static void frame_pointers_to_the_end(void)
{
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    add_stack(&s, STACK_BASE, sizeof frames);
    CHECK_TEXT(newest(&s), "/nowhere/app+2ff;/nowhere/app+1ff;/nowhere/app+100");
    stacks_end_window(&s.stacks, &s.profile);
    CHECK_INT(s.profile.meta.stack_ends[STACK_COMPLETE], 1);
    end(&s);
    unwinder_release(&unwinder);
}

static void a_cut_stack_says_so(void)
{
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    add_stack(&s, STACK_BASE, 0x10);
    CHECK_TEXT(newest(&s), "[truncated];/nowhere/app+1ff;/nowhere/app+100");
    CHECK_INT(s.target->copy.cut, 1);
    CHECK_INT(s.target->copy.gaps, 0);
    stacks_end_window(&s.stacks, &s.profile);
    CHECK_INT(s.profile.meta.stack_ends[STACK_TRUNCATED], 1);
    stacks_end_window(&s.stacks, &s.profile);
    CHECK_INT(s.profile.meta.stack_ends[STACK_TRUNCATED], 0); /* counted per window */
    end(&s);
    unwinder_release(&unwinder);
}

/* No frame pointer leads anywhere, and what follows the callers that were found is not known. */
static void a_guess_that_ends_anywhere_says_so(void)
{
    static const uint64_t words[WORDS] = {0, 0x400205, 0, 0x400305, 0, 0, 0, 0};
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    add_words(&s, words, STACK_BASE, 1, sizeof words);
    CHECK_TEXT(newest(&s), "[truncated];/nowhere/app+304;/nowhere/app+204;[guessed];/nowhere/app+100");
    stacks_end_window(&s.stacks, &s.profile);
    CHECK_INT(s.profile.meta.stack_ends[STACK_GUESSED], 1);
    end(&s);
    unwinder_release(&unwinder);
}

/* A larger copy would be no longer. */
static void a_copy_that_ends_at_a_page_has_a_gap(void)
{
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    s.target->copy.bytes = 4096;
    add_stack(&s, STACK_BASE - 0x10, 0x10);
    CHECK_TEXT(newest(&s), "[truncated];/nowhere/app+1ff;/nowhere/app+100");
    CHECK_INT(s.target->copy.gaps, 1);
    CHECK_INT(s.target->copy.cut, 0);
    add_stack(&s, STACK_BASE - 0x18, 0x10); /* made when copies were smaller */
    s.target->copy.bytes = 0x10;
    add_stack(&s, STACK_BASE - 0x10, 0x10);
    CHECK_INT(s.target->copy.gaps, 1);
    CHECK_INT(s.target->copy.cut, 2);
    end(&s);
    unwinder_release(&unwinder);
}

/* A held thread's: its registers stand behind its stack. */
static void add_held(struct scene *s, const uint64_t *words, uint64_t base, size_t bytes)
{
    enum { REGISTERS_MAX = 64 };
    struct {
        struct caught caught;
        uint64_t rest[WORDS + REGISTERS_MAX];
    } held = {.caught = {.pid = PID,
                         .tid = PID + 1,
                         .serial = 1,
                         .held_ns = 20000,
                         .start_ns = 1000,
                         .end_ns = 2000,
                         .weight_ns = PERIOD,
                         .memory_address = base,
                         .memory_bytes = (uint32_t)bytes,
                         .end = RUNTIME_NO_THREAD}};
    uint64_t *registers = held.rest + bytes / sizeof *words;
    memcpy(held.rest, words, bytes);
    registers[6] = base; /* BP, SP and IP of perf's order */
    registers[7] = base;
    registers[8] = 0x400100;
    held.caught.bytes = (uint32_t)sizeof held;
    CHECK(stacks_add_perfless(&s->stacks, &s->profile, &held.caught));
}

/* What is read of it ends where it was asked to: as a full copy does. */
static void a_held_stack_may_be_cut(void)
{
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    s.target->copy.bytes = 0x10;
    add_held(&s, frames, STACK_BASE, sizeof frames);
    CHECK_TEXT(newest(&s), "/nowhere/app+2ff;/nowhere/app+1ff;/nowhere/app+100");
    CHECK_INT(s.target->copy.cut, 0);
    add_held(&s, frames, STACK_BASE, 0x10);
    CHECK_TEXT(newest(&s), "[truncated];/nowhere/app+1ff;/nowhere/app+100");
    CHECK_INT(s.target->copy.cut, 1);
    CHECK_INT(s.target->copy.seen, 2);
    end(&s);
    unwinder_release(&unwinder);
}

/* The process's memory as it is when the stack is unwound: the same stack, and nothing behind it. */
static bool read_frames(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    unsigned char memory[8192] = {0};
    (void)context;
    memcpy(memory, frames, sizeof frames);
    uint64_t at = address - STACK_BASE;
    if (at > sizeof memory || len > sizeof memory - at) {
        return err_set(err, ERR_MALFORMED, 0, "nothing is there");
    }
    memcpy(out, memory + at, len);
    return true;
}

static struct memory_reader memory_of_frames(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)context;
    CHECK(pid == PID && moment_ns == 1000);
    return (struct memory_reader){.read = read_frames};
}

static void what_is_cut_is_read_on(void)
{
    struct scene s;
    struct unwinder unwinder;
    begin_unwinding(&s, &unwinder);
    s.world.memory = memory_of_frames;
    add_held(&s, frames, STACK_BASE, 0x10);
    CHECK_TEXT(newest(&s), "/nowhere/app+2ff;/nowhere/app+1ff;/nowhere/app+100");
    s.target->ended = true; /* then its memory is another's, or gone */
    add_held(&s, frames, STACK_BASE, 0x10);
    CHECK_TEXT(newest(&s), "[truncated];/nowhere/app+1ff;/nowhere/app+100");
    end(&s);
    unwinder_release(&unwinder);
}

#else

static void a_held_stack_may_be_cut(void)
{
    SKIP("the stack in this test is x86-64's");
}

static void what_is_cut_is_read_on(void)
{
    SKIP("the stack in this test is x86-64's");
}

static void frame_pointers_to_the_end(void)
{
    SKIP("the stack in this test is x86-64's");
}

static void a_cut_stack_says_so(void)
{
    SKIP("the stack in this test is x86-64's");
}

static void a_guess_that_ends_anywhere_says_so(void)
{
    SKIP("the stack in this test is x86-64's");
}

static void a_copy_that_ends_at_a_page_has_a_gap(void)
{
    SKIP("the stack in this test is x86-64's");
}

#endif

/* Of a stack that goes on elsewhere a larger copy would have no more. */
static void only_what_fills_its_copy_is_cut_by_it(void)
{
    enum { COPIED = 4096, SP = 0x7ffe0000 };
    struct target target = {.copy.bytes = COPIED};
    struct unwind_result result = {.end = STACK_TRUNCATED, .reach = COPIED};
    stacks_note_size(&target, COPIED, SP, &result);
    CHECK_INT(target.copy.cut, 1);
    result.reach = COPIED - 8;
    stacks_note_size(&target, COPIED, SP, &result);
    CHECK_INT(target.copy.cut, 1);
    target.copy.bytes = 2 * COPIED;
    stacks_note_size(&target, COPIED, SP, &result); /* it ends at a page */
    CHECK_INT(target.copy.gaps, 0);
    result.reach = COPIED;
    stacks_note_size(&target, COPIED, SP, &result);
    CHECK_INT(target.copy.gaps, 1);
    result.end = STACK_NO_RULE;
    stacks_note_size(&target, COPIED, SP, &result);
    CHECK_INT(target.copy.cut, 1);
    CHECK_INT(target.copy.gaps, 1);
    CHECK_INT(target.copy.seen, 5);
}

/* ---- time without samples ---- */

static uint64_t without_stack_ns(const struct scene *s)
{
    uint64_t ns = 0;
    for (size_t i = 1; i < s->profile.samples.len; i++) {
        const struct sample *at = &s->profile.samples.at[i];
        ns += at->count == 0 ? at->cpu_ns : 0;
    }
    return ns;
}

/* Where threads are held, what one used at moments that gave no sample is shared by its samples. */
static void held_threads_have_all_their_time(void)
{
    static const uint64_t chain[] = {0x400100, 0x400200};
    struct scene s;
    begin(&s);
    s.target->runtime.stops = true;
    add_chain(&s, true, chain, 2);
    stacks_settle(&s.stacks, &s.profile, PID, PID + 1, 3 * PERIOD);
    CHECK_INT(profile_sum(&s.profile).cpu_ns, 4ull * PERIOD);
    CHECK_INT(s.target->account.sampled_ns, 4ull * PERIOD);
    stacks_settle(&s.stacks, &s.profile, PID, PID + 2, PERIOD); /* it has none: the accounting knows of it */
    CHECK_INT(profile_sum(&s.profile).cpu_ns, 4ull * PERIOD);
    CHECK_INT(s.target->account.sampled_ns, 4ull * PERIOD);
    CHECK_INT(without_stack_ns(&s), 0);
    s.target->runtime.stops = false; /* nothing is known of what it did meanwhile */
    stacks_settle(&s.stacks, &s.profile, PID, PID + 1, PERIOD);
    CHECK_INT(profile_sum(&s.profile).cpu_ns, 5ull * PERIOD);
    CHECK_INT(without_stack_ns(&s), PERIOD);
    end(&s);
}

TESTS({"a sample becomes one path: user half from the root, kernel half above it", both_halves},
      {"a sample in user code has no kernel half", user_only},
      {"a sample of the kernel alone begins at the root", kernel_only},
      {"a sample without any address is counted as [unknown]", no_address},
      {"a walk that leaves mapped code is cut there and keeps its weight", leaves_mapped_code},
      {"a chain that ends in zero ends there, without a look at the maps", ends_at_zero},
      {"a caller is looked up by its call, not by its return", call_at_the_edge},
      {"recursion keeps every level", recursion},
      {"a chain deeper than the limit is cut at its outer end", deep_chain},
      {"marks in any order stay within the chain and lose no weight", odd_marks},
      {"a full profile takes known paths and counts the rest as lost", full_profile},
      {"a profile that may not grow takes known paths whole and the leaves of others", limited_profile},
      {"at every budget the weights sum up and no path lacks its root", every_budget},
      {"the steady state allocates nothing per sample", steady_state},
      {"a sample with its stack is unwound to the thread's first function", frame_pointers_to_the_end},
      {"a stack that is cut begins with [truncated]", a_cut_stack_says_so},
      {"a guessed stack begins with [truncated] unless a first function is known", a_guess_that_ends_anywhere_says_so},
      {"one that the kernel could copy no further is another matter", a_copy_that_ends_at_a_page_has_a_gap},
      {"what is read of a held thread's stack may be cut, and is noted so", a_held_stack_may_be_cut},
      {"behind that the process's memory is read, as long as it is there", what_is_cut_is_read_on},
      {"only a stack that fills its copy is cut by it", only_what_fills_its_copy_is_cut_by_it},
      {"CPU time of held threads without a sample is shared by those they have", held_threads_have_all_their_time})
