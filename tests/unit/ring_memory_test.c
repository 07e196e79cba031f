#include "test.h"

#include "os/ring_memory.h"

/* The kernel's default on two CPUs, and the limit of a stock container: 2 x 516 + 64 = 1096 KiB. */
static const struct ring_memory stock = {.cpus = 2, .allowance_kib = 516, .own_kib = 64, .uid = 1000};

static void sum(void)
{
    struct ring_memory m = stock;
    CHECK_INT(ring_memory_kib(&m), 1096);
    m.unlimited = true;
    CHECK(ring_memory_kib(&m) == UINT64_MAX);
    m.unlimited = false;
    m.own_kib = UINT64_MAX;
    CHECK(ring_memory_kib(&m) == UINT64_MAX);
}

static void refused(void)
{
    struct err err = {0};
    /* 8 pages and one, twice, are 72: 1096 - 72 = 1024 */
    CHECK(!ring_memory_refused(&stock, 36, 0, &err));
    CHECK_TEXT(err.text,
               "cannot lock memory for perf rings of 2 x 36 KiB (EPERM): uid 1000 may lock 2 x 516 KiB in "
               "all its processes together (kernel.perf_event_mlock_kb) and 64 KiB in each of them (ulimit -l), "
               "and other processes hold more than 1024 KiB of it; stop the other profiler or raise a limit");
    CHECK_INT(err.kind, ERR_DENIED);
    CHECK_INT(err.number, 1);
}

static void nobody_else(void)
{
    struct err err = {0};
    /* 600 + 520 is more than all there is: others are not to blame */
    CHECK(!ring_memory_refused(&stock, 300, 520, &err));
    CHECK(strstr(err.text, "2 x 300 KiB beside the 520 KiB it holds (EPERM)") != NULL);
    CHECK(strstr(err.text, "other processes") == NULL);
}

static void smaller(void)
{
    struct err why = {0};
    ring_memory_is_short(&stock, 64, 256, &why);
    CHECK(strstr(why.text, "2 x 64 KiB instead of 2 x 256 KiB") != NULL);
    CHECK(strstr(why.text, "stop the other profiler or raise a limit") != NULL);
}

static void longest(void)
{
    const struct ring_memory m = {
        .cpus = 1024, .allowance_kib = 4294967295, .own_kib = 18446744073709551, .uid = 4294967295};
    struct err err = {0};
    CHECK(!ring_memory_refused(&m, 2097156, 2147487744, &err));
    CHECK(strstr(err.text, "raise a limit") != NULL); /* nothing is cut off */
}

TESTS({"what may be locked is the user's share and the process's own", sum},
      {"a refusal has the figures, and what others hold at least", refused},
      {"who asks for more than there is does not blame others", nobody_else},
      {"rings that others made small are named with what they could be", smaller},
      {"the longest figures fit into the sentence", longest})
