/* How much of its stack a process's samples should copy, from how its stacks ended. */
#include "capture/follow/stack_copy.h"
#include "test.h"

static uint32_t wanted_with(uint32_t bytes, uint32_t seen, uint32_t cut, uint32_t half,
                            uint32_t most)
{
    const struct target target = {.copy.bytes = bytes,
                                  .copy.seen = seen,
                                  .copy.cut = cut,
                                  .copy.half = half,
                                  .copy.most = most};
    return stack_copy_wanted(&target);
}

static uint32_t wanted(uint32_t bytes, uint32_t seen, uint32_t cut, uint32_t half)
{
    return wanted_with(bytes, seen, cut, half, bytes);
}

static void grows_when_stacks_are_cut(void)
{
    CHECK_INT(wanted(16384, 100, 3, 50), 32768);
    CHECK_INT(wanted(16384, 100, 2, 50), 16384); /* 2 % are not more than 2 % */
    CHECK_INT(wanted(16384, 100, 50, 50), 32768);
    CHECK_INT(wanted(16384, 100, 51, 50), STACK_COPY_MAX_BYTES); /* most of them: no time for steps */
}

static void few_stacks_prove_nothing(void)
{
    CHECK_INT(wanted(16384, 49, 49, 49), 16384);
    CHECK_INT(wanted(16384, 199, 0, 0), 16384);
}

static void shrinks_when_not_needed(void)
{
    CHECK_INT(wanted(32768, 500, 0, 4), 16384);
    CHECK_INT(wanted(32768, 500, 0, 5), 32768); /* 1 % need half of it */
}

/* A program that ciphers for a minute may sign with larger frames in the next. */
static void does_not_become_small(void)
{
    CHECK_INT(wanted_with(15880, 50000, 0, 0, 100), 15880);
    CHECK_INT(wanted_with(7936, 50000, 0, 0, 100), 7936);
    CHECK_INT(wanted_with(7936, 5000, 2, 2, 7936), 7936);
    CHECK_INT(wanted_with(7936, 5000, 3, 3, 7936), 15872);
    CHECK_INT(wanted_with(15872, 5000, 3, 3, 9000), 15872); /* 2 % are asked for from here on */
}

static void shrinks_at_once(void)
{
    CHECK_INT(wanted_with(64512, 200, 0, 0, 8000), 16128);
    CHECK_INT(wanted_with(64512, 200, 0, 0, 9000), 32256); /* twice 9000 would not fit into 16128 */
    CHECK_INT(wanted_with(32768, 200, 0, 0, 100), 16384);
    /* what a ring of 2 MiB has room for 33 times: half of it is no multiple of 8, and would be refused */
    CHECK_INT(wanted_with(63544, 200, 0, 0, 20000), 31768);
    CHECK_INT(wanted_with(63544, 200, 0, 0, 100), 15880);
}

static void has_ends(void)
{
    CHECK_INT(wanted(STACK_COPY_MAX_BYTES, 100, 100, 100), STACK_COPY_MAX_BYTES);
    CHECK_INT(wanted(40960, 100, 100, 100), STACK_COPY_MAX_BYTES);
    CHECK_INT(wanted(STACK_COPY_MIN_BYTES, 500, 0, 0), STACK_COPY_MIN_BYTES);
    CHECK_INT(STACK_COPY_MAX_BYTES % 8, 0); /* the kernel refuses other sizes */
}

static uint32_t held(uint32_t now, uint32_t seen, uint32_t cut, uint32_t most, uint32_t changes)
{
    const struct target target = {.copy.seen = seen, .copy.cut = cut, .copy.most = most, .copy.changes = changes};
    return stack_copy_held_wanted(&target, now, 65536);
}

static void fits_held_stacks(void)
{
    CHECK_INT(held(32768, 3, 3, 32768, 1), 65536); /* at once, and four times as much as far as there is */
    CHECK_INT(held(8192, 3, 3, 8192, 3), 32768);
    CHECK_INT(held(65536, 3, 3, 65536, 1), 65536);
    CHECK_INT(held(32768, 2, 2, 32768, 1), 32768);
    CHECK_INT(held(32768, 100, 0, 4096, 1), 8192);
    CHECK_INT(held(32768, 99, 0, 4096, 1), 32768); /* what it does next nobody knows yet */
    CHECK_INT(held(32768, 100, 0, 4097, 1), 32768);
    CHECK_INT(held(8192, 5000, 0, 100, 1), 8192);
    CHECK_INT(held(32768, 5000, 0, 100, 3), 32768); /* that was too little before */
}

static bool has_gaps(uint32_t seen, uint32_t gaps, bool known)
{
    const struct target target = {.copy.seen = seen, .copy.gaps = gaps, .runtime.gaps = known};
    return stack_copy_has_new_gaps(&target);
}

static void gaps_count_by_their_share(void)
{
    CHECK(has_gaps(3, 3, false));
    CHECK(!has_gaps(2, 2, false)); /* a few are no rule */
    CHECK(has_gaps(5999, 3, false) && !has_gaps(6000, 3, false)); /* nor one of 2,000 */
    CHECK(has_gaps(19999, 10, false) && !has_gaps(20000, 10, false));
    CHECK(!has_gaps(3, 3, true)); /* what lies behind them is read already */
}

TESTS({"a size doubles when more than 2 % of the stacks are cut", grows_when_stacks_are_cut},
      {"few stacks prove nothing", few_stacks_prove_nothing},
      {"a size is halved when not 1 % of the stacks need half of it", shrinks_when_not_needed},
      {"a size goes at once to twice the largest stack", shrinks_at_once},
      {"a size does not become small, however long nothing needs more", does_not_become_small},
      {"what is read of held threads grows by what is cut, and falls once", fits_held_stacks},
      {"copies that end early are read behind where more than a few do, and one of 2,000", gaps_count_by_their_share},
      {"sizes stay between their least and their most", has_ends})
