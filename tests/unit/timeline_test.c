/* src/encode/timeline: where parts lie. */
#include "encode/timeline.h"
#include "sample_profile.h"
#include "test.h"

struct bench {
    struct profile p;
    struct timeline t;
    uint32_t main_thread, worker;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    uint32_t process = add_process(&b->p, 1, "app", "");
    b->main_thread = add_thread(&b->p, process, 1, "app");
    b->worker = add_thread(&b->p, process, 2, "worker");
    return b;
}

static void tear_down(struct bench *b)
{
    timeline_release(&b->t);
    profile_release(&b->p);
    free(b);
}

static void check_part(const struct bench *b, size_t part, uint32_t sample, uint64_t at_ns, uint64_t moment_ns)
{
    CHECK_INT(b->t.parts.at[part].sample, sample);
    CHECK_INT(b->t.parts.at[part].at_ns, at_ns);
    CHECK_INT(b->t.parts.at[part].moment_ns, moment_ns);
}

static void without_moments_the_order_is_the_call_tree(void)
{
    struct bench *b = set_up();
    uint32_t a = add_name(&b->p, 0, "a", FRAME_NATIVE), z = add_name(&b->p, 0, "z", FRAME_NATIVE);
    uint32_t az = add_name(&b->p, a, "z", FRAME_NATIVE);
    profile_add(&b->p, b->main_thread, z, 1, 1);  /* sample 1 */
    profile_add(&b->p, b->main_thread, az, 2, 1); /* 2 */
    profile_add(&b->p, b->main_thread, a, 4, 1);  /* 3 */
    CHECK(timeline_init(&b->t, &b->p, &b->err));
    CHECK(!b->t.is_timed);
    CHECK_INT(b->t.row_count, 1);
    check_part(b, 0, 3, 0, 0);
    check_part(b, 1, 2, 4, 4);
    check_part(b, 2, 1, 6, 6);
    CHECK_INT(b->t.end_ns, 7);
    tear_down(b);
}

/* 25 ms in step 0 move what is in steps 1 and 2; what has no moment stands behind the end of all threads. */
static void parts_follow_each_other(void)
{
    enum { MS = 1000000 };
    struct bench *b = set_up();
    profile_keep_moments(&b->p, 0);
    uint32_t a = add_name(&b->p, 0, "a", FRAME_NATIVE), z = add_name(&b->p, 0, "z", FRAME_NATIVE);
    profile_add_at(&b->p, b->worker, a, 25 * MS, 2, 0);       /* sample 1 */
    profile_add_at(&b->p, b->worker, z, 1 * MS, 1, 11 * MS);  /* 2 */
    profile_add_at(&b->p, b->worker, z, 1 * MS, 1, 29 * MS);
    profile_account(&b->p, b->worker, ACCOUNT_LOST, 3 * MS);  /* 3 */
    profile_add_at(&b->p, b->main_thread, a, 1 * MS, 1, 95 * MS); /* 4 */
    CHECK(timeline_init(&b->t, &b->p, &b->err));
    CHECK(b->t.is_timed);
    CHECK_INT(b->t.row_count, 2);
    CHECK_INT(b->t.rows[0].thread, b->worker);
    CHECK_INT(b->t.rows[0].cpu_ns, 30 * MS);
    size_t first = b->t.rows[0].first;
    check_part(b, first, 1, 0, 0);
    check_part(b, first + 1, 2, 25 * MS, 20 * MS - 1);
    check_part(b, first + 2, 2, 26 * MS, 26 * MS);
    check_part(b, first + 3, 3, 91 * MS, 91 * MS);
    CHECK_INT(b->t.seen_ns, 91 * MS);
    CHECK_INT(b->t.end_ns, 94 * MS);
    tear_down(b);
}

static void nothing_is_no_row(void)
{
    struct bench *b = set_up();
    CHECK(timeline_init(&b->t, &b->p, &b->err));
    CHECK_INT(b->t.row_count, 0);
    tear_down(b);
}

TESTS({"without moments the order is that of the call tree", without_moments_the_order_is_the_call_tree},
      {"parts of a row follow each other, what was not seen behind all", parts_follow_each_other},
      {"a profile of nothing has no row", nothing_is_no_row})
