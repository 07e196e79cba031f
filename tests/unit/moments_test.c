/* src/profile/moments: steps, parts of a sum, fewer and longer steps when there are too many, merging. */
#include "profile/merge.h"
#include "sample_profile.h"
#include "test.h"

#define MS UINT64_C(1000000)

static size_t parts(const struct moments *m, uint32_t sample, uint64_t sum_ns, uint32_t step[8], uint64_t ns[8])
{
    struct moments_parts p = moments_parts_of(m, sample, sum_ns);
    size_t count = 0;
    while (count < 8 && moments_part(&p, &step[count], &ns[count])) {
        count++;
    }
    return count;
}

static void a_sum_is_shared_out_among_its_moments(void)
{
    struct moments m = {0};
    uint32_t step[8];
    uint64_t ns[8];
    moments_add(&m, 1, 5, 5); /* none are kept before they are wanted */
    CHECK_INT(m.list.len, 0);
    moments_begin(&m, 1000 * MS, 100);
    moments_add(&m, 2, 1025 * MS, 10 * MS);
    moments_add(&m, 1, 1000 * MS, 10 * MS);
    moments_add(&m, 2, 1005 * MS, 20 * MS);
    moments_add(&m, 2, 1009 * MS, 10 * MS); /* the same step */
    moments_add(&m, 2, 900 * MS, 10 * MS);  /* before the beginning */
    moments_sort(&m);
    CHECK_INT(m.list.len, 3);
    CHECK_INT(parts(&m, 2, 101, step, ns), 2);
    CHECK_INT(step[0], 0);
    CHECK_INT(ns[0], 80);
    CHECK_INT(step[1], 2);
    CHECK_INT(ns[1], 21);
    CHECK_INT(parts(&m, 1, 7, step, ns), 1);
    CHECK_INT(ns[0], 7);
    CHECK_INT(parts(&m, 3, 7, step, ns), 0);
    vec_release(&m.list);
}

static void too_many_are_known_less_finely(void)
{
    struct moments m = {0};
    moments_begin(&m, 0, 64);
    for (uint64_t i = 0; i < 10000; i++) {
        moments_add(&m, 1, i * 10 * MS, 10 * MS);
    }
    CHECK(m.list.len <= 64 && m.list.len >= 24);
    moments_sort(&m);
    uint64_t weight = 0;
    for (size_t i = 0; i < m.list.len; i++) {
        weight += m.list.at[i].weight;
    }
    CHECK_INT(weight, 10000 * 10000);
    CHECK_INT(m.list.at[m.list.len - 1].step * m.step_ns / (100000 * MS), 0);
    CHECK((m.list.at[m.list.len - 1].step + 1) * m.step_ns > 99000 * MS);
    vec_release(&m.list);
}

static void of_more_sums_than_moments_the_last_are_left_out(void)
{
    struct moments m = {0};
    moments_begin(&m, 0, 16);
    for (uint32_t i = 1; i < 100; i++) {
        moments_add(&m, i, 10 * MS, 10 * MS);
    }
    CHECK_INT(m.list.len, 16);
    vec_release(&m.list);
}

static void fill(struct profile *p, uint64_t start_ns, uint64_t at_ns)
{
    CHECK(profile_init(p, SAMPLE_MAX_BYTES, NULL));
    profile_keep_moments(p, 7000 * MS);
    uint32_t thread = add_thread(p, add_process(p, 5, "x", ""), 5, "x");
    uint32_t node = add_name(p, 0, "f", FRAME_NATIVE);
    profile_add_at(p, thread, node, 10 * MS, 1, 7000 * MS + at_ns);
    p->meta.start_wall_ns = start_ns;
}

static void a_merged_profile_begins_with_the_earlier_one(void)
{
    struct profile all, late, early;
    CHECK(profile_init(&all, SAMPLE_MAX_BYTES, NULL));
    fill(&late, 60000 * MS, 20 * MS);
    fill(&early, 50000 * MS, 30 * MS);
    CHECK(profile_merge(&all, &late, NULL) && profile_merge(&all, &early, NULL) && profile_merge(&all, &late, NULL));
    moments_sort(&all.moments);
    CHECK_INT(all.moments.list.len, 2);
    CHECK_INT(all.moments.list.at[0].step, 3);
    CHECK_INT(all.moments.list.at[1].step, 1002);
    CHECK_INT(all.moments.list.at[1].weight, 20000);
    profile_clear(&late);
    CHECK(late.moments.list.len == 0 && late.moments.most == 0);
    profile_release(&all);
    profile_release(&late);
    profile_release(&early);
}

static void what_was_forgotten_has_no_moment(void)
{
    struct profile p;
    uint32_t step[8];
    uint64_t ns[8];
    fill(&p, 50000 * MS, 30 * MS);
    profile_forget_samples(&p, p.threads.at[1].process);
    CHECK_INT(p.moments.list.at[0].weight, 0);
    uint32_t id = profile_add(&p, 1, p.samples.at[1].node, 10 * MS, 1);
    CHECK_INT(id, 1);
    moments_add(&p.moments, id, 7000 * MS + 50 * MS, 10 * MS);
    moments_sort(&p.moments);
    CHECK_INT(parts(&p.moments, 1, 10, step, ns), 2);
    CHECK(ns[0] == 0 && ns[1] == 10 && step[1] == 5);
    profile_release(&p);
}

TESTS({"a sum is shared out among its moments", a_sum_is_shared_out_among_its_moments},
      {"too many are known less finely", too_many_are_known_less_finely},
      {"of more sums than moments the last are left out", of_more_sums_than_moments_the_last_are_left_out},
      {"a merged profile begins with the earlier one", a_merged_profile_begins_with_the_earlier_one},
      {"what was forgotten has no moment", what_was_forgotten_has_no_moment})
