/* src/profile/fold: the call tree as people read it. */
#include "profile/fold.h"
#include "inlined_frame.h"
#include "sample_profile.h"
#include "test.h"

static struct profile *make(void)
{
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, SAMPLE_MAX_BYTES, NULL));
    return p;
}

static void drop(struct profile *p)
{
    profile_release(p);
    free(p);
}

/* "depth name own total" per node in pre-order, e.g. "0  0 9\n1 web (pid 12) 0 9\n". */
static char *print(const struct profile *p, const struct fold *fold)
{
    static char text[8192];
    size_t len = 0;
    uint32_t n = 0, depth = 0;
    text[0] = '\0';
    for (;;) {
        const struct fold_node *node = &fold->nodes.at[n];
        struct str name = profile_text(p, node->name);
        len += (size_t)snprintf(text + len, sizeof text - len, "%u %.*s %llu %llu\n", depth,
                                (int)name.len, name.ptr, (unsigned long long)node->self_ns,
                                (unsigned long long)node->total_ns);
        if (node->first_child != 0) {
            n = node->first_child;
            depth++;
            continue;
        }
        while (n != 0 && fold->nodes.at[n].next_sibling == 0) {
            n = fold->nodes.at[n].parent;
            depth--;
        }
        if (n == 0) {
            return text;
        }
        n = fold->nodes.at[n].next_sibling;
    }
}

static void check_tree(struct profile *p, enum fold_top top, const char *expected)
{
    struct fold fold;
    CHECK(fold_build(&fold, p, top, NULL));
    CHECK_TEXT(print(p, &fold), expected);
    for (uint32_t i = 1; i < fold.nodes.len; i++) {
        CHECK(fold.nodes.at[i].parent < i);
    }
    fold_release(&fold);
}

static void two_addresses_of_one_function_are_one_node(void)
{
    struct profile *p = make();
    uint32_t web = add_thread(p, add_process(p, 12, "web", ""), 12, "web");
    uint32_t a = add_address(p, 0, 0, 0x10, "main", FRAME_NATIVE);
    uint32_t b = add_address(p, 0, 0, 0x20, "main", FRAME_NATIVE);
    profile_add(p, web, add_address(p, a, 0, 0x30, "work", FRAME_NATIVE), 1, 1);
    profile_add(p, web, add_address(p, b, 0, 0x30, "work", FRAME_NATIVE), 2, 1);
    profile_add(p, web, add_address(p, b, 0, 0x38, "work", FRAME_NATIVE), 4, 1);
    profile_add(p, web, b, 8, 1);
    check_tree(p, FOLD_BY_PROCESS, "0  0 15\n1 web (pid 12) 0 15\n2 main 8 15\n3 work 7 7\n");
    drop(p);
}

static void one_name_in_two_languages_is_two_nodes(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    profile_add(p, t, add_name(p, 0, "run", FRAME_NATIVE), 2, 1);
    profile_add(p, t, add_name(p, 0, "run", FRAME_PYTHON), 2, 1);
    profile_add(p, t, add_name(p, 0, "run", FRAME_KERNEL), 3, 1);
    struct fold fold;
    CHECK(fold_build(&fold, p, FOLD_BY_PROCESS, NULL));
    uint32_t n = fold.nodes.at[fold.nodes.at[0].first_child].first_child;
    uint8_t kinds[3];
    for (int i = 0; i < 3; i++, n = fold.nodes.at[n].next_sibling) {
        kinds[i] = fold.nodes.at[n].kind;
    }
    CHECK_INT(n, 0);
    CHECK(kinds[0] == FRAME_KERNEL && kinds[1] == FRAME_NATIVE && kinds[2] == FRAME_PYTHON);
    fold_release(&fold);
    drop(p);
}

static void a_function_with_file_is_one_wherever_it_begins(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "py", ""), 1, "py");
    profile_add(p, t, add_name(p, 0, "main (a.py:12)", FRAME_PYTHON), 1, 1);
    profile_add(p, t, add_name(p, add_name(p, 0, "main (a.py:13)", FRAME_PYTHON), "f (b.py:1)", FRAME_PYTHON), 2, 1);
    profile_add(p, t, add_name(p, 0, "main (c.py:12)", FRAME_PYTHON), 4, 1);
    profile_add(p, t, add_name(p, 0, "g (d.py:12 [flask==1.0])", FRAME_PYTHON), 8, 1);
    profile_add(p, t, add_name(p, 0, "c (a.py:12)", FRAME_NATIVE), 16, 1);
    check_tree(p, FOLD_BY_PROCESS, "0  0 31\n1 py (pid 1) 0 31\n2 c (a.py:12) 16 16\n2 g (d.py [flask==1.0]) 8 8\n"
                                   "2 main (c.py) 4 4\n2 main (a.py) 1 3\n3 f (b.py) 2 2\n");
    drop(p);
}

static void what_is_no_line_stays_in_the_name(void)
{
    static const char *const names[] = {"", ")", "])", "[])", " [])", ":)", "f (a.py)", "f (a.py:)", "f (a.py:1x)",
                                        "f:1", "f (a.py:99999999999)", "f (C:)", ":12[])"};
    uint32_t line = 7;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        CHECK_INT(language_line_in(str_of(names[i]), &line).len, 0);
    }
    CHECK_INT(line, 7);
    CHECK_STR(language_line_in(STR("f (C:\\a.py:4294967295)"), &line), ":4294967295");
    CHECK_INT(line, UINT32_MAX);
}

static void children_stand_heaviest_first_then_by_name(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x");
    static const char *const names[] = {"m", "b", "z", "a", "q", "ab", "c", "y"};
    for (unsigned i = 0; i < 8; i++) {
        profile_add(p, t, add_name(p, 0, names[i], FRAME_NATIVE), i == 4 ? 9 : 5, 1);
    }
    check_tree(p, FOLD_BY_PROCESS,
               "0  0 44\n1 x (pid 1) 0 44\n2 q 9 9\n2 a 5 5\n2 ab 5 5\n2 b 5 5\n2 c 5 5\n2 m 5 5\n"
               "2 y 5 5\n2 z 5 5\n");
    drop(p);
}

static void threads_get_a_level_where_their_name_tells_something(void)
{
    struct profile *p = make();
    uint32_t web = add_process(p, 12, "web", "");
    uint32_t f = add_name(p, 0, "f", FRAME_NATIVE);
    profile_add(p, add_thread(p, web, 12, "web"), f, 1, 1);
    profile_add(p, add_thread(p, web, 13, "web"), f, 2, 1);
    profile_add(p, add_thread(p, web, 14, "io"), f, 4, 1);
    profile_add(p, add_thread(p, web, 15, "io"), add_name(p, f, "g", FRAME_NATIVE), 8, 1);
    check_tree(p, FOLD_BY_PROCESS,
               "0  0 15\n1 web (pid 12) 0 15\n2 io 0 12\n3 f 4 12\n4 g 8 8\n2 f 3 3\n");
    check_tree(p, FOLD_BY_COMM, "0  0 15\n1 io 0 12\n2 f 4 12\n3 g 8 8\n1 web 0 3\n2 f 3 3\n");
    drop(p);
}

static void processes_of_one_name_are_told_apart_by_pid_or_container(void)
{
    struct profile *p = make();
    uint32_t f = add_name(p, 0, "f", FRAME_NATIVE);
    profile_add(p, add_thread(p, add_process(p, 7, "sh", "left"), 7, "sh"), f, 4, 1);
    profile_add(p, add_thread(p, add_process(p, 8, "sh", ""), 8, "sh"), f, 3, 1);
    struct process unknown = {.start_ticks = 1, .name = profile_cstring(p, "sh"),
                              .container = profile_cstring(p, "right")};
    profile_add(p, add_thread(p, profile_process(p, &unknown), 0, "sh"), f, 2, 1);
    unknown = (struct process){.start_ticks = 2, .name = profile_cstring(p, "sh")};
    profile_add(p, add_thread(p, profile_process(p, &unknown), 0, "sh"), f, 1, 1);
    check_tree(p, FOLD_BY_PROCESS,
               "0  0 10\n1 sh (pid 7) 0 4\n2 f 4 4\n1 sh (pid 8) 0 3\n2 f 3 3\n"
               "1 sh (right) 0 2\n2 f 2 2\n1 sh 0 1\n2 f 1 1\n");
    check_tree(p, FOLD_BY_COMM,
               "0  0 10\n1 left 0 4\n2 sh 0 4\n3 f 4 4\n1 sh 0 4\n2 f 4 4\n"
               "1 right 0 2\n2 sh 0 2\n3 f 2 2\n");
    drop(p);
}

static void an_empty_profile_is_a_root_without_time(void)
{
    struct profile *p = make();
    check_tree(p, FOLD_BY_PROCESS, "0  0 0\n");
    drop(p);
}

static void process_nodes_name_their_process(void)
{
    struct profile *p = make();
    fill_sample(p);
    struct fold fold;
    CHECK(fold_build(&fold, p, FOLD_BY_PROCESS, NULL));
    unsigned found = 0;
    vec_each(&fold.nodes, n)
    {
        if (n->kind == FOLD_KIND_PROCESS) {
            struct str label = profile_text(p, n->name);
            struct str name = profile_text(p, p->processes.at[n->process].name);
            CHECK(str_starts(label, name));
            found++;
        }
    }
    CHECK_INT(found, 2);
    fold_release(&fold);
    drop(p);
}

/* leaf is inlined into middle, that into real; the same real calls itself at another address. */
static void inlined_functions_are_nodes(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 7, "x", ""), 7, "x");
    uint32_t plain = profile_child(p, 0, inlined_frame(p, 0, 0x10, "real", 1, NULL));
    uint32_t inner = profile_child(
        p, plain, inlined_frame(p, 0, 0x20, "leaf", 2, "middle", 3, "real", 4, NULL));
    uint32_t other = profile_child(
        p, plain, inlined_frame(p, 0, 0x30, "leaf", 9, "middle", 3, "real", 5, NULL));
    uint32_t below = add_address(p, inner, 0, 0x40, "called", FRAME_NATIVE);
    uint32_t short_one = profile_child(p, plain, inlined_frame(p, 0, 0x50, "middle", 8, "real", 6,
                                                               NULL));
    profile_add(p, t, inner, 1, 1);
    profile_add(p, t, other, 2, 1);
    profile_add(p, t, below, 4, 1);
    profile_add(p, t, plain, 8, 1);
    profile_add(p, t, short_one, 16, 1);
    check_tree(p, FOLD_BY_PROCESS,
               "0  0 31\n1 x (pid 7) 0 31\n2 real 8 31\n3 real 0 23\n4 middle 16 23\n5 leaf 3 7\n"
               "6 called 4 4\n");
    drop(p);
}

/* A second opinion on random profiles: the total of every path, found by walking each stack. */

static uint64_t seed;

static uint32_t below(uint32_t bound)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % bound);
}

static uint32_t find_child(const struct fold *fold, uint32_t parent, uint32_t name, uint8_t kind)
{
    const struct fold_node *at = fold->nodes.at;
    for (uint32_t c = at[parent].first_child; c != 0; c = at[c].next_sibling) {
        if (at[c].name == name && at[c].kind == kind) {
            return c;
        }
    }
    return 0;
}

static void subtract_sample(const struct profile *p, struct fold *fold, const struct sample *s)
{
    const struct thread *t = &p->threads.at[s->thread];
    uint32_t at = find_child(fold, 0, t->name, FOLD_KIND_THREAD), path[64], depth = 0;
    for (uint32_t n = s->node; n != 0; n = p->nodes.at[n].parent) {
        path[depth++] = p->nodes.at[n].frame;
    }
    CHECK(at != 0);
    while (at != 0 && depth > 0) {
        uint32_t chain[PROFILE_INLINES_MAX];
        for (size_t i = profile_expand(p, path[--depth], chain); at != 0 && i-- > 0;) {
            const struct frame *f = &p->frames.at[chain[i]];
            at = find_child(fold, at, f->name, f->kind);
            CHECK(at != 0);
        }
    }
    CHECK(fold->nodes.at[at].self_ns >= s->cpu_ns);
    fold->nodes.at[at].self_ns -= s->cpu_ns;
}

static void every_sample_is_found_on_its_path(void)
{
    for (seed = 1; seed < 40; seed += 3) {
        struct profile *p = make();
        uint64_t keep = seed;
        uint32_t threads[5], process = add_process(p, 1, "p", "");
        for (unsigned i = 0; i < 5; i++) {
            threads[i] = add_thread(p, process, i, (char[]){(char)('a' + i), 0});
        }
        for (uint64_t a = 1; a < 10; a++) {
            static const char *const names[] = {"a", "b", "c"};
            inlined_frame(p, 0, 0x100 + a, names[below(3)], 1, names[below(3)], 2,
                          below(2) == 0 ? "d" : NULL, 3, NULL);
        }
        for (unsigned i = 0; i < 400; i++) {
            uint32_t node = 0;
            for (uint32_t depth = 1 + below(12); depth > 0; depth--) {
                char name[] = {(char)('a' + below(4)), 0};
                struct frame inlined = {.address = 0x101 + below(9)};
                node = below(3) == 0   ? add_name(p, node, name, (enum frame_kind)below(3))
                       : below(2) == 0 ? add_address(p, node, 0, 1 + below(9), "addressed", 0)
                                       : profile_child(p, node, profile_frame(p, &inlined));
            }
            profile_add(p, threads[below(5)], node, 1 + below(100), 1);
        }
        struct fold fold;
        CHECK(fold_build(&fold, p, FOLD_BY_COMM, NULL));
        CHECK_INT(fold.nodes.at[0].total_ns, profile_sum(p).cpu_ns);
        for (size_t i = 1; i < p->samples.len; i++) {
            subtract_sample(p, &fold, &p->samples.at[i]);
        }
        vec_each(&fold.nodes, n)
        {
            CHECK_INT(n->self_ns, 0); /* nothing that no sample accounts for */
        }
        fold_release(&fold);
        drop(p);
        seed = keep;
    }
}

static void a_stack_of_a_hundred_thousand_frames_needs_no_recursion(void)
{
    struct profile *p = make();
    uint32_t t = add_thread(p, add_process(p, 1, "x", ""), 1, "x"), node = 0;
    for (unsigned i = 0; i < 100000; i++) {
        node = add_name(p, node, i % 2 ? "odd" : "even", FRAME_NATIVE);
    }
    profile_add(p, t, node, 5, 1);
    struct fold fold;
    CHECK(fold_build(&fold, p, FOLD_BY_PROCESS, NULL));
    CHECK_INT(fold.nodes.len, 100002);
    fold_release(&fold);
    drop(p);
}

TESTS({"two addresses of one function are one node", two_addresses_of_one_function_are_one_node},
      {"one name in two languages is two nodes", one_name_in_two_languages_is_two_nodes},
      {"a function with file is one, wherever it begins", a_function_with_file_is_one_wherever_it_begins},
      {"what is no line stays in the name", what_is_no_line_stays_in_the_name},
      {"children stand heaviest first, then by name", children_stand_heaviest_first_then_by_name},
      {"threads get a level where their name tells something",
       threads_get_a_level_where_their_name_tells_something},
      {"processes of one name are told apart by pid or container",
       processes_of_one_name_are_told_apart_by_pid_or_container},
      {"an empty profile is a root without time", an_empty_profile_is_a_root_without_time},
      {"process nodes name their process", process_nodes_name_their_process},
      {"inlined functions are nodes", inlined_functions_are_nodes},
      {"every sample is found on its path", every_sample_is_found_on_its_path},
      {"a stack of a hundred thousand frames needs no recursion",
       a_stack_of_a_hundred_thousand_frames_needs_no_recursion})
