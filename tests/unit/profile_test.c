/* src/profile: interning, weights, the budget, merging. */
#include "profile/merge.h"
#include "profile/profile.h"
#include "inlined_frame.h"
#include "sample_profile.h"
#include "test.h"

static struct profile *make(size_t max_bytes)
{
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, max_bytes, NULL));
    return p;
}

static void drop(struct profile *p)
{
    profile_release(p);
    free(p);
}

static void equal_content_has_equal_ids(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    CHECK_INT(profile_cstring(p, ""), 0);
    CHECK_STR(profile_text(p, 0), "");
    uint32_t a = profile_cstring(p, "a");
    CHECK(a != 0 && profile_cstring(p, "a") == a && profile_cstring(p, "b") != a);
    CHECK_STR(profile_text(p, a), "a");
    uint32_t t = add_process(p, 5, "x", "");
    struct process reused = {.pid = 5, .start_ticks = 51};
    CHECK(add_process(p, 5, "other name", "") == t && profile_process(p, &reused) != t);
    CHECK_STR(profile_text(p, p->processes.at[t].name), "x");
    CHECK(add_thread(p, t, 6, "n") == add_thread(p, t, 6, "n"));
    CHECK(add_thread(p, t, 6, "n") != add_thread(p, t, 6, "renamed"));
    uint32_t node = add_name(p, 0, "f", FRAME_NATIVE);
    CHECK(add_name(p, 0, "f", FRAME_NATIVE) == node && add_name(p, 0, "f", FRAME_PYTHON) != node);
    CHECK(add_name(p, node, "f", FRAME_NATIVE) != node);
    drop(p);
}

static void an_address_is_one_frame_whatever_it_is_called(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    struct frame f = {.module = 0, .address = 0x10};
    uint32_t id = profile_frame(p, &f);
    profile_name_frame(p, id, STR("pretty(int)"), STR("_Z6prettyi"));
    f.name = 99;
    CHECK_INT(profile_frame(p, &f), id);
    CHECK_STR(profile_text(p, p->frames.at[id].system_name), "_Z6prettyi");
    profile_name_frame(p, id, STR("plain"), STR("plain"));
    CHECK_INT(p->frames.at[id].system_name, 0);
    f.kind = FRAME_JS;
    CHECK(profile_frame(p, &f) != id);
    drop(p);
}

static void weights_of_one_stack_are_summed(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    fill_sample(p);
    size_t rows = p->samples.len;
    uint32_t thread = p->samples.at[1].thread, node = p->samples.at[1].node;
    uint64_t before = p->samples.at[1].cpu_ns;
    profile_add(p, thread, node, 7, 1);
    CHECK_INT(p->samples.len, rows);
    CHECK_INT(p->samples.at[1].cpu_ns, before + 7);
    struct profile_totals sum = profile_sum(p);
    CHECK_INT(sum.cpu_ns, 46 * 10000000 + 25000000 + 7);
    CHECK_INT(sum.count, 47);
    CHECK_INT(sum.account_ns[ACCOUNT_LOST], 25000000);
    CHECK_INT(sum.leaf_ns[FRAME_ACCOUNT], 25000000);
    CHECK_INT(sum.leaf_ns[FRAME_PYTHON], 160000000);
    CHECK_INT(sum.leaf_ns[FRAME_KERNEL], 150000000);
    CHECK_INT(sum.process_cpu_ns, 490000000);
    drop(p);
}

static void every_account_has_its_own_sum(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t thread = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        profile_account(p, thread, (enum account)a, a + 1);
        profile_account(p, thread, (enum account)a, 0);
    }
    struct profile_totals sum = profile_sum(p);
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        CHECK_INT(sum.account_ns[a], a + 1);
    }
    CHECK_INT(sum.count, 0);
    drop(p);
}

static void what_has_no_stack_is_lost_not_gone(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t thread = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    CHECK_INT(profile_child(p, 0, 0), 0);
    profile_add(p, thread, 0, 50, 2);
    CHECK_INT(p->dropped, 2);
    CHECK_INT(profile_sum(p).account_ns[ACCOUNT_LOST], 50);
    drop(p);
}

/* However small the budget is, every nanosecond added is in the sum. */
static void a_full_profile_keeps_the_total(void)
{
    for (size_t budget = 0; budget < 40000; budget += 1777) {
        struct profile *p = make(budget);
        uint64_t added = 0;
        for (uint32_t i = 0; i < 2000; i++) {
            char name[32];
            snprintf(name, sizeof name, "function_%u", i);
            uint32_t thread = add_thread(p, add_process(p, 1 + i % 3, "x", ""), 1 + i % 3, "x");
            uint32_t node = add_name(p, add_name(p, 0, "main", FRAME_NATIVE), name, FRAME_NATIVE);
            profile_add(p, thread, node, i, 1);
            added += i;
        }
        struct profile_totals sum = profile_sum(p);
        CHECK_INT(sum.cpu_ns, added);
        CHECK(budget > 0 || sum.account_ns[ACCOUNT_LOST] == added);
        CHECK_INT(sum.count + p->dropped, 2000);
        CHECK(sum.account_ns[ACCOUNT_LOST] > 0);
        drop(p);
    }
}

static void clearing_starts_anew(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    for (int round = 0; round < 3; round++) {
        fill_sample(p);
        CHECK_INT(profile_sum(p).cpu_ns, 485000000);
        p->dropped = 3;
        profile_clear(p);
        CHECK_INT(profile_sum(p).cpu_ns, 0);
        CHECK_INT(p->dropped, 0);
        CHECK_INT(p->meta.period_ns, 0);
        CHECK_INT(p->strings.len, 1);
    }
    drop(p);
}

static void every_name_table_is_complete(void)
{
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        CHECK(languages[k].name != NULL);
        CHECK(languages[k].suffix != NULL);
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        CHECK(account_name((enum account)a)[0] == '[');
    }
    for (unsigned r = 0; r <= CAPTURE_PROC; r++) {
        CHECK(capture_mode_name((enum capture_mode)r) != NULL);
    }
}

/* Two builds of one file without build id: the same address is another function. */
static void another_build_never_renames_an_address(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    struct module m = {.path = profile_cstring(p, "/app")};
    struct frame f = {.module = profile_module(p, &m), .address = 0x40,
                      .name = profile_cstring(p, "old"), .line = 7};
    uint32_t old = profile_named_frame(p, &f);
    CHECK_INT(p->frames.at[old].address, 0x40);
    CHECK_INT(profile_named_frame(p, &f), old);
    f.line = 0; /* the other file has no lines */
    CHECK_INT(profile_named_frame(p, &f), old);
    f.line = 8;
    uint32_t moved = profile_named_frame(p, &f);
    CHECK(moved != old);
    CHECK_INT(p->frames.at[moved].address, 0);
    f.name = profile_cstring(p, "new");
    uint32_t renamed = profile_named_frame(p, &f);
    CHECK(renamed != old && renamed != moved);
    CHECK_INT(p->frames.at[renamed].address, 0);
    CHECK_STR(profile_text(p, p->frames.at[old].name), "old");
    drop(p);
}

/* Another build inlined the same function at the same address into something else. */
static void another_build_never_moves_a_function_into_another(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    struct module m = {.path = profile_cstring(p, "/app")};
    uint32_t app = profile_module(p, &m);
    uint32_t old = inlined_frame(p, app, 0x40, "leaf", 3, "old", 7, NULL);
    struct frame same = p->frames.at[old];
    CHECK_INT(profile_named_frame(p, &same), old);
    same.caller = inlined_frame(p, app, 0x80, "new", 7, NULL);
    uint32_t other = profile_named_frame(p, &same);
    CHECK(other != old);
    CHECK_INT(p->frames.at[other].address, 0);
    CHECK_TEXT(inlined_text(p, old), "leaf:3@/src/leaf.c < old:7@/src/old.c");
    CHECK_TEXT(inlined_text(p, other), "leaf:3@/src/leaf.c < new:7@/src/new.c");
    drop(p);
}

static void merging_spans_both_windows(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    a->meta = (struct profile_meta){.start_wall_ns = 50, .end_wall_ns = 60, .own_cpu_ns = 1,
                                    .lost_records = 2, .stack_ends = {5, 1}};
    b->meta = (struct profile_meta){.start_wall_ns = 10, .end_wall_ns = 20, .own_cpu_ns = 3,
                                    .lost_records = 5, .period_ns = 7, .frequency_hz = 9,
                                    .stack_ends = {6}};
    profile_merge_meta(a, &b->meta);
    CHECK_INT(a->meta.start_wall_ns, 10);
    CHECK_INT(a->meta.end_wall_ns, 60);
    CHECK_INT(a->meta.own_cpu_ns, 4);
    CHECK_INT(a->meta.lost_records, 7);
    CHECK_INT(a->meta.stack_ends[STACK_COMPLETE], 11);
    CHECK_INT(a->meta.stack_ends[STACK_TRUNCATED], 1);
    CHECK_INT(a->meta.period_ns, 7);
    CHECK_INT(a->meta.frequency_hz, 9);
    drop(a);
    drop(b);
}

/* ---- inlined functions ---- */

static void an_address_leads_outwards_through_its_inlined_functions(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    struct module m = {.path = profile_cstring(p, "/app")};
    uint32_t app = profile_module(p, &m);
    uint32_t f = inlined_frame(p, app, 0x40, "leaf", 3, "middle", 7, "real", 20, NULL);
    CHECK_TEXT(inlined_text(p, f),
               "leaf:3@/src/leaf.c < middle:7@/src/middle.c < real:20@/src/real.c");
    uint32_t middle = p->frames.at[f].caller;
    CHECK_INT(p->frames.at[f].address, 0x40);
    CHECK_INT(p->frames.at[middle].address, 0);
    CHECK_INT(p->frames.at[middle].module, app);
    /* the address is found again whatever it is called */
    struct frame key = {.module = app, .address = 0x40};
    CHECK_INT(profile_frame(p, &key), f);
    /* what stands around another address in the same place is the same frame */
    uint32_t g = inlined_frame(p, app, 0x48, "other", 4, "middle", 7, "real", 20, NULL);
    CHECK_INT(p->frames.at[g].caller, middle);
    uint32_t h = inlined_frame(p, app, 0x50, "other", 4, "middle", 7, "real", 21, NULL);
    CHECK(p->frames.at[h].caller != middle);
    uint32_t in_other = inlined_frame(p, 0, 0x48, "other", 4, "middle", 7, "real", 20, NULL);
    CHECK(p->frames.at[in_other].caller != middle);
    uint32_t alone = inlined_frame(p, app, 0x58, "real", 22, NULL);
    CHECK_TEXT(inlined_text(p, alone), "real:22@/src/real.c");
    drop(p);
}

static void a_chain_too_long_keeps_both_ends(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    struct source_line lines[40];
    char names[40][8];
    for (unsigned i = 0; i < 40; i++) {
        snprintf(names[i], sizeof names[i], "f%u", i);
        lines[i] = (struct source_line){.name = str_of(names[i]), .line = i};
    }
    struct frame key = {.address = 0x10};
    uint32_t f = profile_frame(p, &key), chain[PROFILE_INLINES_MAX];
    profile_name_inlined(p, f, lines, 40);
    CHECK_INT(profile_expand(p, f, chain), 32);
    CHECK_STR(profile_text(p, p->frames.at[chain[0]].name), "f0");
    CHECK_STR(profile_text(p, p->frames.at[chain[30]].name), "f30");
    CHECK_STR(profile_text(p, p->frames.at[chain[31]].name), "f39");
    profile_name_inlined(p, f, lines, 0); /* nothing known changes nothing */
    CHECK_INT(profile_expand(p, f, chain), 32);
    drop(p);
}

/* Whatever the budget: the whole chain, the real function alone, or no name at all. */
static void without_room_the_real_function_names_the_address(void)
{
    unsigned whole = 0, alone = 0, unnamed = 0;
    for (size_t budget = 0; budget < 1200; budget += 4) {
        struct profile *p = make(budget);
        uint32_t f = inlined_frame(p, 0, 0x40, "a_long_leaf_name", 3, "a_long_middle_name", 7,
                                   "real", 20, NULL);
        bool named = f != 0 && p->frames.at[f].name != 0;
        const char *text = named ? inlined_text(p, f) : "";
        bool is_alone = strncmp(text, "real:20@", 8) == 0;
        whole += named && !is_alone;
        alone += is_alone;
        unnamed += !named;
        CHECK(!named || is_alone || (strstr(text, "leaf_name:3@") != NULL &&
                                     strstr(text, " < a_long_middle_name:7@") != NULL &&
                                     strstr(text, " < real:20@") != NULL));
        drop(p);
    }
    CHECK(whole > 0 && alone > 0 && unnamed > 0);
}

static void waiting(void)
{
    struct profile p;
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t process = profile_process(&p, &(struct process){.pid = 7});
    uint32_t thread = profile_thread(&p, process, 7, 0);
    struct frame frame = {.name = profile_cstring(&p, "read")};
    uint32_t node = profile_child(&p, 0, profile_frame(&p, &frame));
    profile_add_wait(&p, thread, node, 5);
    profile_add_wait(&p, thread, node, 6);
    profile_add_wait(&p, thread, 0, 7); /* nowhere */
    CHECK_INT(p.waits.len, 1);
    CHECK_INT(p.waits.at[0].wait_ns, 11);
    CHECK_INT(profile_sum(&p).cpu_ns, 0);
    CHECK_INT(p.samples.len, 1);
    profile_clear(&p);
    CHECK_INT(p.waits.len, 0);
    profile_release(&p);
}

static void other_events(void)
{
    struct profile p;
    CHECK(profile_init(&p, 1 << 20, NULL));
    uint32_t thread = add_thread(&p, add_process(&p, 7, "app", ""), 7, "app");
    uint32_t node = add_name(&p, 0, "touch", FRAME_NATIVE);
    CHECK_INT(profile_event_type(&p, "page-faults", "count"), 0);
    CHECK_INT(profile_event_type(&p, "cycles", "count"), 1);
    profile_add_event(&p, 0, thread, node, 5);
    profile_add_event(&p, 1, thread, node, 900);
    profile_add_event(&p, 0, thread, node, 6);
    profile_add_event(&p, 0, thread, 0, 3); /* its stack is not known */
    profile_add_event(&p, 2, thread, node, 3); /* no such type */
    CHECK_INT(p.occurrences.len, 3);
    CHECK_INT(p.occurrences.at[0].amount, 11);
    CHECK_INT(p.occurrences.at[1].amount, 900);
    CHECK_INT(p.occurrences.at[2].amount, 3);
    CHECK_STR(profile_text(&p, p.frames.at[p.nodes.at[p.occurrences.at[2].node].frame].name),
              "[lost]");
    CHECK_INT(profile_sum(&p).cpu_ns, 0);
    CHECK_INT(p.samples.len, 1);
    profile_clear(&p);
    CHECK_INT(p.occurrences.len, 0);
    CHECK_INT(p.event_types.len, 0);
    CHECK_INT(profile_event_type(&p, "cycles", "count"), 0);
    profile_release(&p);
}

static void full_of_events(void)
{
    struct profile *p = make(20000);
    uint32_t thread = add_thread(p, add_process(p, 7, "app", ""), 7, "app");
    (void)profile_event_type(p, "page-faults", "count");
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        profile_add_event(p, 0, thread, add_name(p, 0, name, FRAME_NATIVE), 2);
    }
    uint64_t sum = 0;
    vec_each(&p->occurrences, o)
    {
        sum += o->amount;
    }
    CHECK(p->occurrences.len < 1000);
    CHECK_INT(sum, 2000);
    for (int i = 1; i < PROFILE_EVENTS_MAX; i++) {
        CHECK_INT(profile_event_type(p, "one more", "count"), i);
    }
    CHECK_INT(profile_event_type(p, "too many", "count"), PROFILE_EVENTS_MAX);
    drop(p);
}

static uint32_t add_chain(struct profile *p, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "function_%u", number);
    return add_name(p, add_name(p, 0, "main", FRAME_NATIVE), name, FRAME_NATIVE);
}

static void a_limit_holds_for_what_is_new(void)
{
    struct profile *p = make(64 * 1024);
    uint32_t known = add_chain(p, 1);
    profile_limit(p, profile_bytes(p));
    CHECK(known != 0 && add_chain(p, 1) == known);
    CHECK_INT(add_chain(p, 2), 0);
    bool needed = profile_need(p, true);
    CHECK(!needed && add_chain(p, 2) != 0);
    unsigned more = 3;
    while (more < 10000 && add_chain(p, more) != 0) {
        more++;
    }
    CHECK(more > 20 && more < 500); /* an eighth: 8 KiB */
    CHECK(profile_need(p, needed));
    CHECK_INT(add_chain(p, more + 1), 0);
    profile_clear(p);
    CHECK(add_chain(p, more + 1) != 0);
    drop(p);
}

static void an_empty_profile_gives_back_what_it_kept(void)
{
    struct profile *p = make(1 << 20);
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 1000; i++) {
            uint32_t thread = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
            profile_add(p, thread, add_chain(p, i), 5, 1);
        }
        CHECK_INT(profile_sum(p).cpu_ns, 5000);
        CHECK_INT(p->samples.len, 1001);
        profile_clear(p);
        CHECK(p->samples.cap > 1000);
        profile_shrink(p);
        CHECK_INT(p->samples.cap, 8);
        CHECK_INT(p->node_ids.cap, 0);
    }
    drop(p);
}

/* ---- labels ---- */

static uint32_t labelled(struct profile *p, uint32_t thread, const char *gil, const char *task)
{
    const struct str labels[PROFILE_LABELS] = {
        [PROFILE_LABEL_GIL] = str_of(gil), [PROFILE_LABEL_TASK] = str_of(task)};
    return profile_labelled(p, thread, labels);
}

static struct str label_of(const struct profile *p, uint32_t thread, enum profile_label label)
{
    return profile_text(p, p->threads.at[thread].label[label]);
}

/* What a thread used after its last sample is told by its samples; without one, and of others, nothing changes. */
static void samples_stand_for_what_came_after_them(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t process = add_process(p, 5, "x", ""), thread = add_thread(p, process, 6, "n");
    uint32_t other = add_thread(p, process, 7, "m"), none = add_thread(p, process, 8, "o");
    uint32_t f = add_name(p, 0, "f", FRAME_NATIVE), g = add_name(p, 0, "g", FRAME_NATIVE);
    profile_add(p, thread, f, 300, 3);
    profile_add(p, thread, g, 100, 1);
    profile_add(p, other, f, 50, 1);
    profile_account(p, thread, ACCOUNT_LOST, 1000);
    CHECK(profile_stretch(p, thread, 41) && !profile_stretch(p, none, 7));
    uint64_t of_f = 0, of_g = 0, of_other = 0;
    for (size_t i = 1; i < p->samples.len; i++) {
        const struct sample *at = &p->samples.at[i];
        of_other += at->thread == other ? at->cpu_ns : 0;
        of_f += at->thread == thread && at->node == f ? at->cpu_ns : 0;
        of_g += at->thread == thread && at->node == g ? at->cpu_ns : 0;
    }
    CHECK_INT(of_f, 330);
    CHECK_INT(of_g, 111);
    CHECK_INT(of_other, 50);
    CHECK_INT(profile_sum(p).cpu_ns, 1491);
    drop(p);
}

static void labels_make_rows_of_a_thread(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t thread = add_thread(p, add_process(p, 5, "x", ""), 6, "n");
    uint32_t held = labelled(p, thread, "held", ""), task = labelled(p, thread, "held", "pay");
    CHECK_INT(labelled(p, thread, "", ""), thread);
    CHECK(held != thread && task != thread && task != held);
    CHECK_INT(labelled(p, thread, "held", "pay"), task);
    CHECK_INT(add_thread(p, p->threads.at[thread].process, 6, "n"), thread);
    CHECK_INT(p->threads.at[task].plain, thread);
    CHECK_INT(p->threads.at[task].tid, 6);
    CHECK_STR(label_of(p, task, PROFILE_LABEL_TASK), "pay");
    CHECK_INT(profile_thread_count(p), 1);
    CHECK_INT(labelled(p, 0, "held", ""), 0); /* a thread that did not fit */
    drop(p);
}

/* 128 texts of a label; those met stay, what comes later is one. */
static void labels_are_bounded(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t thread = add_thread(p, add_process(p, 5, "x", ""), 6, "n");
    uint32_t first = labelled(p, thread, "held", "Task-0");
    for (unsigned i = 1; i < 1000; i++) {
        char text[16];
        snprintf(text, sizeof text, "Task-%u", i);
        CHECK_STR(label_of(p, labelled(p, thread, "held", text), PROFILE_LABEL_TASK),
                  i < 128 ? text : "(other)");
    }
    CHECK_INT(labelled(p, thread, "held", "Task-0"), first);
    CHECK_INT(p->threads.len, 1 + 1 + 128 + 1);
    size_t strings = p->strings.len;
    (void)labelled(p, thread, "held", "Task-1000");
    CHECK_INT(p->strings.len, strings);
    profile_clear(p);
    thread = add_thread(p, add_process(p, 5, "x", ""), 6, "n");
    CHECK_STR(label_of(p, labelled(p, thread, "", "Task-999"), PROFILE_LABEL_TASK), "Task-999");
    drop(p);
}

static void a_full_profile_has_the_thread_without_labels(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t thread = add_thread(p, add_process(p, 5, "x", ""), 6, "n");
    profile_limit(p, profile_bytes(p));
    CHECK_INT(labelled(p, thread, "held", ""), thread);
    drop(p);
}

/* ---- time that is to be shown otherwise ---- */

struct unseen_part {
    uint32_t thread;
    uint64_t cpu_ns;
};

static struct unseen_part unseen[8];
static size_t unseen_count;

static void note_unseen(void *context, uint32_t thread, uint64_t cpu_ns, bool is_system)
{
    CHECK(is_system == (cpu_ns == 100 + ACCOUNT_KERNEL_HIDDEN));
    struct profile *p = context;
    CHECK(unseen_count < 8);
    unseen[unseen_count++ & 7] = (struct unseen_part){thread, cpu_ns};
    char name[32]; /* it may be added again at once, in new rows */
    snprintf(name, sizeof name, "method_%zu", unseen_count);
    profile_add(p, thread, add_name(p, 0, name, FRAME_JVM), cpu_ns, 1);
}

static void unseen_time_is_taken_out(void)
{
    struct profile *p = make(SAMPLE_MAX_BYTES);
    uint32_t java = add_process(p, 1, "java", ""), other = add_process(p, 2, "other", "");
    uint32_t one = add_thread(p, java, 1, "java"), two = add_thread(p, java, 7, "worker");
    uint32_t theirs = add_thread(p, other, 2, "other");
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        profile_account(p, one, (enum account)a, 100 + a);
    }
    profile_account(p, theirs, ACCOUNT_NATIVE_NO_PERF, 50);
    profile_account(p, two, ACCOUNT_NATIVE_NO_PERF, 7);
    profile_add(p, two, add_name(p, 0, "native", FRAME_NATIVE), 9, 1);
    struct profile_totals before = profile_sum(p);
    unseen_count = 0;
    profile_take_unseen(p, java, note_unseen, p);
    CHECK_INT(unseen_count, 3); /* each row once, and what is added meanwhile not at all */
    CHECK(unseen[0].thread == one && unseen[0].cpu_ns == 100 + ACCOUNT_KERNEL_HIDDEN);
    CHECK(unseen[1].thread == one && unseen[1].cpu_ns == 100 + ACCOUNT_NATIVE_NO_PERF);
    CHECK(unseen[2].thread == two && unseen[2].cpu_ns == 7);
    struct profile_totals sum = profile_sum(p);
    CHECK_INT(sum.cpu_ns, before.cpu_ns);
    CHECK_INT(sum.account_ns[ACCOUNT_NATIVE_NO_PERF], 50);
    CHECK_INT(sum.account_ns[ACCOUNT_KERNEL_HIDDEN], 0);
    CHECK_INT(sum.account_ns[ACCOUNT_LOST], 100 + ACCOUNT_LOST);
    CHECK_INT(sum.leaf_ns[FRAME_NATIVE], 9);
    unseen_count = 0;
    profile_take_unseen(p, java, note_unseen, p); /* nothing is left of it */
    CHECK_INT(unseen_count, 0);
    profile_account(p, two, ACCOUNT_NATIVE_NO_PERF, 3); /* it is a row as it was */
    CHECK_INT(profile_sum(p).account_ns[ACCOUNT_NATIVE_NO_PERF], 53);
    drop(p);
}

static void without_room_unseen_time_is_taken_out_all_the_same(void)
{
    for (size_t budget = 0; budget < 20000; budget += 777) {
        struct profile *p = make(budget);
        uint32_t process = add_process(p, 1, "java", "");
        profile_account(p, add_thread(p, process, 1, "java"), ACCOUNT_NATIVE_NO_PERF, 40);
        unseen_count = 0;
        profile_take_unseen(p, process, note_unseen, p);
        CHECK_INT(profile_sum(p).cpu_ns, 40);
        drop(p);
    }
}

TESTS({"a thread under other labels is a row of its own", labels_make_rows_of_a_thread},
      {"texts of a label are bounded, what comes later is one", labels_are_bounded},
      {"a full profile has the thread without labels",
       a_full_profile_has_the_thread_without_labels},
      {"other events are counted per stack and are in no sum with CPU time", other_events},
      {"a full profile keeps the sum of other events", full_of_events},
      {"time spent waiting is in no sum with CPU time", waiting},
      {"equal content has equal ids", equal_content_has_equal_ids},
      {"an address is one frame whatever it is called",
       an_address_is_one_frame_whatever_it_is_called},
      {"weights of one stack are summed", weights_of_one_stack_are_summed},
      {"every account has its own sum", every_account_has_its_own_sum},
      {"what has no stack is lost, not gone", what_has_no_stack_is_lost_not_gone},
      {"a full profile keeps the total", a_full_profile_keeps_the_total},
      {"clearing starts anew", clearing_starts_anew},
      {"a limit holds for what is new, and need has an eighth more", a_limit_holds_for_what_is_new},
      {"an empty profile gives back what it kept", an_empty_profile_gives_back_what_it_kept},
      {"every kind, account and capture mode has a name", every_name_table_is_complete},
      {"another build never renames an address", another_build_never_renames_an_address},
      {"time without a stack is taken out of one process, row by row", unseen_time_is_taken_out},
      {"without room the sum is kept when it is taken out and added again",
       without_room_unseen_time_is_taken_out_all_the_same},
      {"samples stand for what came after them", samples_stand_for_what_came_after_them},
      {"merging spans both windows", merging_spans_both_windows},
      {"an address leads outwards through its inlined functions",
       an_address_leads_outwards_through_its_inlined_functions},
      {"a chain too long keeps both ends", a_chain_too_long_keeps_both_ends},
      {"without room the real function names the address",
       without_room_the_real_function_names_the_address},
      {"another build never moves a function into another",
       another_build_never_moves_a_function_into_another})
