/* The rows of `pillion top`: sums, the last seconds, what finds no room, order, search. */
#include "test.h"

#include "base/time.h"
#include "capture/live/top_model.h"
#include "sample_profile.h"

static struct top_model *model(uint64_t span_ns)
{
    struct top_model *m = calloc(1, sizeof *m);
    CHECK(top_init(m, span_ns));
    return m;
}

static void drop(struct top_model *m)
{
    top_release(m);
    free(m);
}

static void with_profile(struct top_model *m, void (*fill)(struct profile *), unsigned times)
{
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, SAMPLE_MAX_BYTES, NULL));
    fill(p);
    for (unsigned i = 0; i < times; i++) {
        top_add(m, p);
    }
    profile_release(p);
    free(p);
    top_refresh(m);
}

/* "own total own total name" per row in ms, a line each. */
static const char *rows(const struct top_model *m, enum top_table table, uint32_t parent, enum top_sort sort,
                        const char *search)
{
    static char text[8192];
    struct top_list list = {0};
    size_t len = 0;
    text[0] = '\0';
    top_list_rows(m, table, parent, sort, str_of(search), &list);
    for (size_t i = 0; i < list.at.len; i++) {
        const struct top_row *r = &m->rows.at[list.at.at[i].row];
        len += (size_t)snprintf(text + len, sizeof text - len, "%llu %llu %llu %llu %.*s\n",
                                (unsigned long long)(r->recent.own_ns / NS_PER_MS),
                                (unsigned long long)(r->recent.total_ns / NS_PER_MS),
                                (unsigned long long)(r->since.own_ns / NS_PER_MS),
                                (unsigned long long)(r->since.total_ns / NS_PER_MS), (int)r->name.len, r->name.ptr);
    }
    vec_release(&list.at);
    return text;
}

static void all_tables(void)
{
    struct top_model *m = model(NS_PER_S);
    with_profile(m, fill_sample, 1);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_OWN, ""),
               "160 160 160 160 handle (shop/app.py:12)\n"
               "150 150 150 150 do_syscall\n"
               "150 150 150 150 memcpy\n"
               "25 25 25 25 [lost]\n"
               "0 310 0 310 main\n"
               "0 150 0 150 query\n");
    CHECK_TEXT(rows(m, TOP_PROCESSES, 0, TOP_BY_OWN, ""),
               "310 310 310 310 web (pid 12)\n175 175 175 175 db (pid 30)\n");
    CHECK_TEXT(rows(m, TOP_THREADS, 0, TOP_BY_NAME, ""), "175 175 175 175 db (tid 30)\n150 150 150 150 web (tid 12)\n"
                                                        "160 160 160 160 worker (tid 14)\n");
    CHECK_TEXT(rows(m, TOP_LANGUAGES, 0, TOP_BY_TOTAL, ""),
               "150 310 150 310 native\n160 160 160 160 python\n0 150 0 150 go\n150 150 150 150 kernel\n"
               "25 25 25 25 (not seen)\n");
    drop(m);
}

/* f calls itself through g. */
static void fill_recursive(struct profile *p)
{
    uint32_t process = add_process(p, 1, "p", ""), thread = add_thread(p, process, 1, "p"), node = 0;
    for (unsigned i = 0; i < 3; i++) {
        node = add_name(p, add_name(p, node, "f", FRAME_NATIVE), "g", FRAME_NATIVE);
    }
    profile_add(p, thread, node, 10 * NS_PER_MS, 1);
    p->meta.end_wall_ns = NS_PER_S;
}

static void recursion(void)
{
    struct top_model *m = model(NS_PER_S);
    with_profile(m, fill_recursive, 1);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, ""), "0 10 0 10 f\n10 10 10 10 g\n");
    drop(m);
}

static void last_seconds(void)
{
    struct top_model *m = model(3 * NS_PER_S);
    with_profile(m, fill_recursive, 5);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, ""), "0 30 0 50 f\n30 30 50 50 g\n");
    CHECK_INT(m->recent.length_ns, 3 * NS_PER_S);
    CHECK_INT(m->since.length_ns, 5 * NS_PER_S);
    with_profile(m, fill_sample, 1); /* 60 s */
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, "g"), "0 0 50 50 g\n");
    drop(m);
    m = model(1000 * NS_PER_S);
    with_profile(m, fill_recursive, TOP_SLOTS + 9);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, "g"), "320 320 410 410 g\n");
    drop(m);
}

static void paused(void)
{
    struct top_model *m = model(2 * NS_PER_S);
    struct profile *p = calloc(1, sizeof *p);
    CHECK(profile_init(p, SAMPLE_MAX_BYTES, NULL));
    fill_recursive(p);
    top_add(m, p);
    top_refresh(m);
    for (unsigned i = 0; i < 4; i++) {
        top_add(m, p);
    }
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, "g"), "10 10 10 10 g\n");
    top_refresh(m);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, "g"), "20 20 50 50 g\n");
    profile_release(p);
    free(p);
    drop(m);
}

/* As many functions as fit, and more. */
static void fill_many(struct profile *p)
{
    uint32_t process = add_process(p, 1, "p", ""), thread = add_thread(p, process, 1, "p");
    for (unsigned i = 0; i < TOP_ROWS_MAX + 100; i++) {
        char name[32];
        snprintf(name, sizeof name, "f%u", i);
        profile_add(p, thread, add_name(p, 0, name, FRAME_NATIVE), NS_PER_MS, 1);
    }
    p->meta.end_wall_ns = NS_PER_S;
}

static void full(void)
{
    struct top_model *m = model(NS_PER_S);
    struct top_list list = {0};
    uint64_t own_ns = 0;
    with_profile(m, fill_many, 1);
    top_list_rows(m, TOP_FUNCTIONS, 0, TOP_BY_OWN, STR(""), &list);
    for (size_t i = 0; i < list.at.len; i++) {
        own_ns += m->rows.at[list.at.at[i].row].recent.own_ns;
    }
    CHECK_INT(own_ns, m->recent.cpu_ns);
    CHECK_INT(m->rows.len, TOP_ROWS_MAX);
    CHECK_STR(m->rows.at[list.at.at[0].row].name, "(others)");
    vec_release(&list.at);
    drop(m);
}

static void only_one(void)
{
    struct top_model *m = model(NS_PER_S);
    struct top_list list = {0};
    with_profile(m, fill_sample, 1);
    top_list_rows(m, TOP_PROCESSES, 0, TOP_BY_OWN, STR("db"), &list);
    uint32_t db = list.at.at[0].row;
    top_only(m, db);
    with_profile(m, fill_sample, 1);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, db, TOP_BY_OWN, ""),
               "150 150 150 150 do_syscall\n25 25 25 25 [lost]\n0 150 0 150 query\n");
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_NAME, "query"), "0 150 0 300 query\n");
    top_list_rows(m, TOP_FUNCTIONS, db, TOP_BY_OWN, STR(""), &list);
    CHECK_INT(top_since_ns(m, &m->rows.at[list.at.at[0].row]), 485 * NS_PER_MS);
    vec_release(&list.at);
    drop(m);
}

static void fill_lines(struct profile *p)
{
    uint32_t process = add_process(p, 1, "p", ""), thread = add_thread(p, process, 1, "p");
    for (uint32_t line = 7; line < 9; line++) {
        struct frame frame = {.name = profile_cstring(p, "f (a.py:5)"), .file = profile_cstring(p, "a.py"),
                              .line = line, .first_line = 5, .kind = FRAME_PYTHON};
        profile_add(p, thread, profile_child(p, 0, profile_frame(p, &frame)), line * NS_PER_MS, 1);
    }
    p->meta.end_wall_ns = NS_PER_S;
}

static void lines(void)
{
    struct top_model *m = model(NS_PER_S);
    struct top_list list = {0};
    with_profile(m, fill_lines, 1);
    top_list_rows(m, TOP_FUNCTIONS, 0, TOP_BY_OWN, STR(""), &list);
    CHECK_INT(list.at.len, 1);
    uint32_t f = list.at.at[0].row;
    CHECK_INT(m->rows.at[f].line, 5);
    top_list_rows(m, TOP_LINES, f, TOP_BY_OWN, STR(""), &list);
    CHECK_INT(list.at.len, 2);
    CHECK_INT(m->rows.at[list.at.at[0].row].line, 8);
    vec_release(&list.at);
    drop(m);
}

static void search_in_any_case(void)
{
    struct top_model *m = model(NS_PER_S);
    with_profile(m, fill_sample, 1);
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_OWN, "MEMC"), "150 150 150 150 memcpy\n");
    CHECK_TEXT(rows(m, TOP_FUNCTIONS, 0, TOP_BY_OWN, "memcpyy"), "");
    drop(m);
}

TESTS({"functions, processes, threads and languages each sum up to all CPU time", all_tables},
      {"a function that calls itself is counted once per stack", recursion},
      {"the last seconds are the newest windows that cover them", last_seconds},
      {"what comes while it is paused is shown afterwards", paused},
      {"what finds no room is in (others), and the sum is still all", full},
      {"functions of one process alone, in shares of its time since it was chosen", only_one},
      {"lines stand below their function", lines},
      {"letters of a search have no case", search_in_any_case})
