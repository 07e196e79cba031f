/* Records of several rings in time order. A record here is its number; what comes out is a list. */
#include "sample/order.h"
#include "test.h"

struct entry {
    uint64_t time_ns;
    uint32_t number;
};

struct heard {
    VEC(struct entry) list;
    bool aligned;
};

struct numbered {
    uint64_t time_ns;
    uint32_t number;
    unsigned char filling[200];
};

static void hear(void *context, const void *record, size_t len)
{
    struct heard *heard = context;
    struct numbered n = {0};
    memcpy(&n, record, len);
    for (size_t i = 12; i < len; i++) {
        CHECK_INT(((const unsigned char *)record)[i], n.number & 0xff);
    }
    heard->aligned = heard->aligned && (uintptr_t)record % 8 == 0;
    struct entry *entry = vec_push(&heard->list);
    *entry = (struct entry){n.time_ns, n.number};
}

static bool push_long(struct order *order, uint64_t time_ns, uint32_t number, size_t len)
{
    void *exact = malloc(len); /* of this size, so that copying too much is seen */
    memcpy(exact, &time_ns, 8);
    memcpy((char *)exact + 8, &number, 4);
    memset((char *)exact + 12, (int)(number & 0xff), len - 12);
    void *room = order_room(order, time_ns, len);
    if (room != NULL) {
        memcpy(room, exact, len);
    }
    free(exact);
    return room != NULL;
}

static void push(struct order *order, uint64_t time_ns, uint32_t number)
{
    CHECK(push_long(order, time_ns, number, 16));
}

/* "1 2 3": the numbers heard so far; forgets them. */
static const char *numbers(struct heard *heard)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    vec_each(&heard->list, entry)
    {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%u", used > 0 ? " " : "",
                                 entry->number);
    }
    vec_clear(&heard->list);
    return text;
}

static void two_rings(void)
{
    struct order order;
    struct heard heard = {.aligned = true};
    order_init(&order, 1 << 16);
    push(&order, 10, 1), push(&order, 30, 3), push(&order, 50, 5); /* ring 0 */
    push(&order, 20, 2), push(&order, 40, 4), push(&order, 60, 6); /* ring 1 */
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), ""); /* something older may still come */
    push(&order, 70, 7);
    push(&order, 55, 55); /* ring 1 was read a little earlier than ring 0 */
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "1 2 3 4 5 55 6");
    order_flush(&order, hear, &heard);
    CHECK_TEXT(numbers(&heard), "7");
    order_flush(&order, hear, &heard);
    CHECK_TEXT(numbers(&heard), "");
    order_release(&order);
    vec_release(&heard.list);
}

static void round_rule(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1 << 16);
    push(&order, 100, 1);
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "");
    push(&order, 100, 2); /* as new as the round before was: safe together with it */
    push(&order, 101, 3);
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "1 2");
    order_round(&order, UINT64_MAX, hear, &heard); /* a round that finds nothing makes the rest safe */
    CHECK_TEXT(numbers(&heard), "3");
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "");
    order_release(&order);
    vec_release(&heard.list);
}

static void child_before_fork(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1 << 16);
    order_round(&order, UINT64_MAX, hear, &heard);
    /* round 1 reads CPU 0 before the fork happens there, then CPU 1 with the child's sample */
    push(&order, 5, 1);
    push(&order, 12, 3);
    order_round(&order, UINT64_MAX, hear, &heard);
    push(&order, 10, 2); /* the FORK, read in round 2 */
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "1 2 3");
    order_release(&order);
    vec_release(&heard.list);
}

static void equal_times(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1 << 20);
    order.sequence = UINT32_MAX - 50; /* the counter wraps in between */
    for (uint32_t i = 0; i < 120; i++) {
        push(&order, 7, i);
    }
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, 120);
    for (uint32_t i = 0; i < heard.list.len; i++) {
        CHECK_INT(heard.list.at[i].number, i);
    }
    order_release(&order);
    vec_release(&heard.list);
}

static void crowded(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1024);
    for (uint32_t i = 0; i < 40; i++) { /* 40 x 16 bytes is more than half */
        push(&order, 1000 - i, i);
    }
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_INT(heard.list.len, 40);
    CHECK_INT(heard.list.at[0].number, 39);
    CHECK_INT(heard.list.at[39].number, 0);
    CHECK_INT(order.early, 1);
    CHECK_INT(order.bytes.len, 0);
    vec_clear(&heard.list);
    push(&order, 2000, 50);
    order_round(&order, UINT64_MAX, hear, &heard); /* and then the rule holds again */
    CHECK_TEXT(numbers(&heard), "");
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "50");
    CHECK_INT(order.early, 1);
    order_release(&order);
    vec_release(&heard.list);
}

static void full(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1024);
    uint32_t taken = 0;
    while (push_long(&order, taken, taken, 16)) {
        taken++;
    }
    CHECK_INT(taken, 64);
    CHECK(!push_long(&order, 1, 999, 16)); /* still */
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, 64);
    CHECK(push_long(&order, 1, 999, 16));
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, 65);
    CHECK_INT(heard.list.at[64].number, 999);
    order_release(&order);
    vec_release(&heard.list);
}

static void alignment(void)
{
    struct order order;
    struct heard heard = {.aligned = true};
    order_init(&order, 1 << 20);
    uint32_t number = 0;
    for (unsigned round = 0; round < 20; round++) {
        for (size_t len = 12; len < 80; len++) {
            CHECK(push_long(&order, number, number, len));
            number++;
        }
        order_round(&order, UINT64_MAX, hear, &heard);
    }
    for (size_t len = 12; len < 80; len++, number++) { /* and such as never had to wait */
        CHECK(push_long(&order, number, number, len));
    }
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, number);
    CHECK(heard.aligned);
    order_release(&order);
    vec_release(&heard.list);
}

/* Rings as the kernel fills them: each in order, read one after the other, in rounds. */
static void many_rings(void)
{
    enum { RINGS = 64, ROUNDS = 200 };
    struct order order;
    struct heard heard = {.aligned = true};
    uint64_t written_until[RINGS] = {0}, now = 0, seed = 42;
    uint32_t number = 0;
    order_init(&order, 1 << 22);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned ring = 0; ring < RINGS; ring++) {
            now += 10; /* reading a ring takes time, in which all rings go on filling */
            for (uint64_t t = written_until[ring]; t < now;) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                t += 1 + (seed >> 33) % 400;
                if (t < now) {
                    push(&order, t, number++);
                }
            }
            written_until[ring] = now;
        }
        order_round(&order, UINT64_MAX, hear, &heard);
    }
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, number);
    CHECK_INT(order.early, 0);
    for (size_t i = 1; i < heard.list.len; i++) {
        if (heard.list.at[i - 1].time_ns > heard.list.at[i].time_ns) {
            CHECK(!"a record came behind a later one");
            break;
        }
    }
    order_release(&order);
    vec_release(&heard.list);
}

static void bounded(void)
{
    struct order order;
    struct heard heard = {0};
    order_init(&order, 1 << 16);
    size_t cap = 0, entries = 0;
    for (uint32_t i = 0; i < 200000; i++) {
        push(&order, i, i);
        if (i % 100 == 99) {
            order_round(&order, UINT64_MAX, hear, &heard);
        }
        if (i == 1000) {
            cap = order.bytes.cap;
            entries = order.entries.cap;
        }
    }
    CHECK_INT(order.bytes.cap, cap); /* the steady state does not grow */
    CHECK_INT(order.entries.cap, entries);
    order_flush(&order, hear, &heard);
    CHECK_INT(heard.list.len, 200000);
    order_release(&order);
    vec_release(&heard.list);
}

static void two_looks(void)
{
    struct order order;
    struct heard heard = {.aligned = true};
    order_init(&order, 1 << 16);
    push(&order, 10, 1), push(&order, 30, 3);
    order_pass(&order);
    push(&order, 20, 2), push(&order, 40, 4);
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "1 2 3");
    order_flush(&order, hear, &heard);
    CHECK_TEXT(numbers(&heard), "4");
    vec_release(&heard.list);
    order_release(&order);
}

static void ring_behind(void)
{
    struct order order;
    struct heard heard = {.aligned = true};
    order_init(&order, 1 << 16);
    push(&order, 10, 1), push(&order, 30, 3);
    order_pass(&order);
    order_round(&order, 25, hear, &heard); /* one ring was drained up to there */
    CHECK_TEXT(numbers(&heard), "1");
    push(&order, 26, 2);
    order_round(&order, UINT64_MAX, hear, &heard);
    CHECK_TEXT(numbers(&heard), "2 3");
    vec_release(&heard.list);
    order_release(&order);
}

TESTS({"two rings come out as one row in time", two_rings},
      {"a record waits until every ring was read once more", round_rule},
      {"a round that hands out nothing makes what it brought safe", two_looks},
      {"nothing is handed out beyond what a ring was drained to", ring_behind},
      {"a child's sample read before its fork comes out behind it", child_before_fork},
      {"equal times keep the order they came in, also when the counter wraps", equal_times},
      {"a crowded buffer hands out early and loses nothing", crowded},
      {"a full buffer says so and takes again after a flush", full},
      {"records are handed out aligned to eight bytes and unchanged", alignment},
      {"64 rings read in turn come out sorted and complete", many_rings},
      {"the steady state needs no more memory", bounded})
