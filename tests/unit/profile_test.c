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
        CHECK(frame_kind_name((enum frame_kind)k) != NULL);
        CHECK(frame_kind_suffix((enum frame_kind)k) != NULL);
    }
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        CHECK(account_name((enum account)a)[0] == '[');
    }
    for (unsigned r = 0; r <= RUNG_PROC; r++) {
        CHECK(rung_name((enum rung)r) != NULL);
    }
}

static void merging_sums_what_is_the_same(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    fill_sample(a);
    profile_cstring(b, "shifts all ids");
    add_process(b, 99, "shifts", "ids");
    fill_sample(b);
    size_t rows = a->samples.len, processes = a->processes.len;
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(a->samples.len, rows);
    CHECK_INT(a->processes.len, processes + 1);
    struct profile_totals sum = profile_sum(a), one = profile_sum(b);
    CHECK_INT(sum.cpu_ns, 2 * one.cpu_ns);
    CHECK_INT(sum.count, 2 * one.count);
    CHECK_INT(sum.process_cpu_ns, 2 * one.process_cpu_ns);
    CHECK_INT(sum.account_ns[ACCOUNT_LOST], 2 * one.account_ns[ACCOUNT_LOST]);
    CHECK_INT(sum.leaf_ns[FRAME_PYTHON], 2 * one.leaf_ns[FRAME_PYTHON]);
    drop(a);
    drop(b);
}

static void merging_into_nothing_is_a_copy(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    fill_sample(b);
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(a->samples.len, b->samples.len);
    CHECK_INT(a->nodes.len, b->nodes.len);
    CHECK_INT(a->frames.len, b->frames.len);
    CHECK_INT(a->meta.start_wall_ns, b->meta.start_wall_ns);
    CHECK_STR(profile_text(a, a->meta.service), "shop-web");
    drop(a);
    drop(b);
}

/* Two builds of one file without build id: the same address is another function. */
static void merging_never_renames_an_address(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    struct profile *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct module m = {.path = profile_cstring(both[i], "/app")};
        uint32_t thread = add_thread(both[i], add_process(both[i], 1, "app", ""), 1, "app");
        uint32_t node = add_address(both[i], 0, profile_module(both[i], &m), 0x40,
                                    i == 0 ? "old" : "new", FRAME_NATIVE);
        profile_add(both[i], thread, node, 10, 1);
    }
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(a->samples.len, 3);
    uint32_t frame = a->nodes.at[a->samples.at[2].node].frame;
    CHECK_STR(profile_text(a, a->frames.at[frame].name), "new");
    CHECK_INT(a->frames.at[frame].address, 0);
    drop(a);
    drop(b);
}

static void merging_spans_both_windows(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    a->meta = (struct profile_meta){.start_wall_ns = 50, .end_wall_ns = 60, .own_cpu_ns = 1,
                                    .lost_records = 2, .stack_ends = {5, 1}};
    b->meta = (struct profile_meta){.start_wall_ns = 10, .end_wall_ns = 20, .own_cpu_ns = 3,
                                    .lost_records = 5, .period_ns = 7, .frequency_hz = 9,
                                    .stack_ends = {6}};
    CHECK(profile_merge(a, b, NULL));
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

static void merging_into_a_full_profile_keeps_the_total(void)
{
    struct profile *a = make(1000), *b = make(SAMPLE_MAX_BYTES);
    fill_sample(b);
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(profile_sum(a).cpu_ns, profile_sum(b).cpu_ns);
    CHECK(a->dropped > 0);
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

static void merging_keeps_inlined_functions(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    struct profile *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct profile *p = both[i];
        add_name(p, 0, i == 0 ? "shifts" : "all", FRAME_PYTHON);
        struct module m = {.path = profile_cstring(p, "/app")};
        uint32_t thread = add_thread(p, add_process(p, 1, "app", ""), 1, "app");
        uint32_t f = inlined_frame(p, profile_module(p, &m), 0x40, "leaf", 3, "middle", 7, "real",
                                   20, NULL);
        profile_add(p, thread, profile_child(p, 0, f), 10, 1);
    }
    size_t frames = a->frames.len;
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(a->samples.len, 2);
    CHECK_INT(a->samples.at[1].cpu_ns, 20);
    CHECK_INT(a->frames.len, frames + 1); /* "all" */
    CHECK_TEXT(inlined_text(a, a->nodes.at[a->samples.at[1].node].frame),
               "leaf:3@/src/leaf.c < middle:7@/src/middle.c < real:20@/src/real.c");
    drop(a);
    drop(b);
}

/* Another build inlined the same function at the same address into something else. */
static void merging_never_moves_a_function_into_another(void)
{
    struct profile *a = make(SAMPLE_MAX_BYTES), *b = make(SAMPLE_MAX_BYTES);
    struct profile *both[] = {a, b};
    for (int i = 0; i < 2; i++) {
        struct profile *p = both[i];
        struct module m = {.path = profile_cstring(p, "/app")};
        uint32_t thread = add_thread(p, add_process(p, 1, "app", ""), 1, "app");
        uint32_t f = inlined_frame(p, profile_module(p, &m), 0x40, "leaf", 3,
                                   i == 0 ? "old" : "new", 7, NULL);
        profile_add(p, thread, profile_child(p, 0, f), 10, 1);
    }
    CHECK(profile_merge(a, b, NULL));
    CHECK_INT(a->samples.len, 3);
    CHECK_TEXT(inlined_text(a, a->nodes.at[a->samples.at[1].node].frame),
               "leaf:3@/src/leaf.c < old:7@/src/old.c");
    CHECK_TEXT(inlined_text(a, a->nodes.at[a->samples.at[2].node].frame),
               "leaf:3@/src/leaf.c < new:7@/src/new.c");
    drop(a);
    drop(b);
}

TESTS({"equal content has equal ids", equal_content_has_equal_ids},
      {"an address is one frame whatever it is called",
       an_address_is_one_frame_whatever_it_is_called},
      {"weights of one stack are summed", weights_of_one_stack_are_summed},
      {"every account has its own sum", every_account_has_its_own_sum},
      {"what has no stack is lost, not gone", what_has_no_stack_is_lost_not_gone},
      {"a full profile keeps the total", a_full_profile_keeps_the_total},
      {"clearing starts anew", clearing_starts_anew},
      {"every kind, account and rung has a name", every_name_table_is_complete},
      {"merging sums what is the same", merging_sums_what_is_the_same},
      {"merging into nothing is a copy", merging_into_nothing_is_a_copy},
      {"merging never renames an address", merging_never_renames_an_address},
      {"merging spans both windows", merging_spans_both_windows},
      {"merging into a full profile keeps the total",
       merging_into_a_full_profile_keeps_the_total},
      {"an address leads outwards through its inlined functions",
       an_address_leads_outwards_through_its_inlined_functions},
      {"a chain too long keeps both ends", a_chain_too_long_keeps_both_ends},
      {"without room the real function names the address",
       without_room_the_real_function_names_the_address},
      {"merging keeps inlined functions", merging_keeps_inlined_functions},
      {"merging never moves a function into another",
       merging_never_moves_a_function_into_another})
