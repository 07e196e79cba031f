/* src/deliver/bisect: how many fit, and that the last try is the one that stands. */
#include "test.h"

#include "deliver/bisect.h"

struct tries {
    size_t most; /* that fit */
    size_t last;
    unsigned count;
    bool none_fits;
};

static bool fits(void *context, size_t count)
{
    struct tries *tries = context;
    tries->last = count;
    tries->count++;
    return count <= tries->most && !tries->none_fits;
}

static void the_last_try_is_the_most_that_fits(void)
{
    for (size_t all = 0; all <= 300; all++) {
        for (size_t most = 0; most <= all; most++) {
            struct tries tries = {.most = most};
            CHECK(bisect(all, fits, &tries));
            CHECK_INT(tries.last, most);
        }
    }
}

static void what_fits_as_it_is_is_made_once(void)
{
    struct tries tries = {.most = 1000};
    CHECK(bisect(1000, fits, &tries));
    CHECK_INT(tries.count, 1);
}

static void where_not_even_none_fits_none_is_what_stands(void)
{
    struct tries tries = {.none_fits = true};
    CHECK(!bisect(1000, fits, &tries));
    CHECK_INT(tries.last, 0);
}

/* 2 to the 12th is 4096, and 12 + 2 tries are allowed. */
static void of_very_many_all_but_a_small_part_of_what_fits_is_kept(void)
{
    for (size_t most = 0; most <= 1000000; most += 9973) {
        struct tries tries = {.most = most};
        CHECK(bisect(1000000, fits, &tries));
        CHECK(tries.last <= most && most - tries.last <= 1000000 / 4096 + 1);
        CHECK(tries.count <= 14);
    }
}

TESTS({"the last try is the most that fits", the_last_try_is_the_most_that_fits},
      {"what fits as it is is made once", what_fits_as_it_is_is_made_once},
      {"where not even none fits, none is what stands", where_not_even_none_fits_none_is_what_stands},
      {"of very many all but a small part of what fits is kept",
       of_very_many_all_but_a_small_part_of_what_fits_is_kept})
