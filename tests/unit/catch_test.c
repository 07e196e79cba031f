/* Catchers without a kernel: the proof, what a catcher learns, the hand-over, the table of targets. */
#include "base/time.h"
#include "capture/catch/catch_private.h"
#include "os/clock.h"
#include "os/proc.h"
#include "target/stat.h"
#include "test.h"

#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the proof ---- */

/* A sample on CPU 3 at 1 s; the thread left its CPU 20 µs later, preempted by a catcher that read for 10 µs. */
static struct catch_evidence good(void)
{
    return (struct catch_evidence){
        .cpu = 3,
        .cpu_before = 3,
        .cpu_after = 3,
        .sample_ns = 1000000000,
        .start_ns = 1000040000,
        .end_ns = 1000050000,
        .state = 'R',
        .stat_cpu = 3,
        .switches = true,
        .preempted = true,
        .left_ns = 1000020000,
    };
}

/* Of a kernel that does not tell of switches. */
static struct catch_evidence untold(void)
{
    struct catch_evidence e = good();
    e.switches = e.preempted = false;
    e.left_ns = 0;
    return e;
}

enum { T = 100000, D = 35000 };

static void all_evidence_is_a_proof(void)
{
    struct catch_evidence told = good(), not = untold();
    CHECK_INT(catch_prove(&told, D), CATCH_PROVEN);
    CHECK_INT(catch_prove(&not, T), CATCH_PROVEN);
}

static void moved_catcher(void)
{
    struct catch_evidence e = good();
    e.cpu_before = 2;
    CHECK_INT(catch_prove(&e, D), CATCH_OTHER_CPU);
    e = good();
    e.cpu_after = 2;
    CHECK_INT(catch_prove(&e, D), CATCH_OTHER_CPU);
}

static void late_read(void)
{
    struct catch_evidence e = untold();
    e.start_ns = e.sample_ns + T; /* the last moment that is in time */
    e.end_ns = e.start_ns + 1;
    CHECK_INT(catch_prove(&e, T), CATCH_PROVEN);
    e.start_ns++;
    CHECK_INT(catch_prove(&e, T), CATCH_LATE);
    e.start_ns = e.sample_ns - 1; /* clocks that disagree prove nothing */
    CHECK_INT(catch_prove(&e, T), CATCH_LATE);
}

static void left_late(void)
{
    struct catch_evidence e = good();
    e.left_ns = e.sample_ns + D;
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.left_ns++;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.left_ns = e.sample_ns - 1;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
}

static void stood_for_long(void)
{
    struct catch_evidence e = good();
    e.start_ns = e.sample_ns + 10000000; /* 10 ms: another thread had the CPU meanwhile */
    e.end_ns = e.start_ns + 10000;
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.start_ns++;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.start_ns = e.sample_ns - 1;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
}

static void long_read(void)
{
    struct catch_evidence e = good();
    e.end_ns = e.start_ns + 100000; /* 100 µs */
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.end_ns++;
    CHECK_INT(catch_prove(&e, D), CATCH_LONG);
    e.end_ns = e.start_ns - 1;
    CHECK_INT(catch_prove(&e, D), CATCH_LONG);
}

static void not_runnable(void)
{
    static const char states[] = {'S', 'D', 'T', 'Z', 0};
    for (size_t i = 0; i < sizeof states; i++) {
        struct catch_evidence e = good();
        e.state = states[i];
        CHECK_INT(catch_prove(&e, D), CATCH_ASLEEP);
    }
}

static void pulled_away(void)
{
    struct catch_evidence e = good();
    e.stat_cpu = 4;
    CHECK_INT(catch_prove(&e, D), CATCH_MOVED);
}

static void went_by_itself(void)
{
    struct catch_evidence e = good();
    e.preempted = false;
    CHECK_INT(catch_prove(&e, D), CATCH_NOT_PREEMPTED);
    e.preempted = e.resumed = true;
    CHECK_INT(catch_prove(&e, D), CATCH_NOT_PREEMPTED);
}

/* All that proves elsewhere: in gVisor it is so by luck. */
static void unprovable(void)
{
    struct catch_evidence e = good();
    e.unprovable = true;
    CHECK_INT(catch_prove(&e, D), CATCH_UNPROVABLE);
    e.stat_cpu = e.cpu_after = 17; /* they mean nothing either way */
    CHECK_INT(catch_prove(&e, D), CATCH_UNPROVABLE);
    e.state = 'S'; /* but who sleeps uses no CPU time */
    CHECK_INT(catch_prove(&e, D), CATCH_ASLEEP);
}

/* ---- the catcher's own accounting ---- */

enum { U = 9000 };

/* It was woken 18 µs after the sample and had not to wait. */
static struct catch_evidence accounted(void)
{
    struct catch_evidence e = good();
    e.accounting = true;
    e.turns = 1;
    e.soon_ns = U;
    return e;
}

static void woken_and_there(void)
{
    struct catch_evidence e = accounted();
    e.left_ns = e.sample_ns + 70000; /* an interrupt may take however long */
    e.start_ns = e.left_ns + 10000;
    e.end_ns = e.start_ns + 10000;
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    CHECK_INT(catch_prove(&e, 0), CATCH_PROVEN); /* starved: others are */
    e.waited_ns = 1;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.waited_ns = 0;
    e.turns = 0; /* the accounting is of an earlier turn */
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.turns = 2; /* an earlier one came to nothing, and did not wait either */
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.resumed = true;
    CHECK_INT(catch_prove(&e, D), CATCH_NOT_PREEMPTED);
}

/* Of a clock that stands still for four milliseconds at a time. */
static void coarse_accounting(void)
{
    struct catch_evidence e = accounted();
    e.start_ns = e.sample_ns + 1000000;
    e.end_ns = e.start_ns + 10000;
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.start_ns++;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
}

static void third_thread_first(void)
{
    struct catch_evidence e = accounted();
    e.waited_ns = 2000000;
    e.start_ns = e.sample_ns + 2050000;
    e.end_ns = e.start_ns + 10000;
    e.woken_ns = e.left_ns - U;
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.woken_ns--;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.woken_ns = e.left_ns + 1000; /* two clocks are never quite one */
    CHECK_INT(catch_prove(&e, D), CATCH_PROVEN);
    e.woken_ns++;
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.woken_ns = 0; /* not known */
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
    e.left_ns = e.sample_ns + 5000;
    e.woken_ns = e.sample_ns - 1; /* for an earlier sample's sake */
    CHECK_INT(catch_prove(&e, D), CATCH_LATE);
}

static void without_switches(void)
{
    struct catch_evidence e = untold();
    e.accounting = true;
    e.turns = 1;
    CHECK_INT(catch_prove(&e, 0), CATCH_PROVEN);
    e.waited_ns = 20000;
    e.woken_ns = e.sample_ns + 18000;
    CHECK_INT(catch_prove(&e, T), CATCH_LATE);
}

/* As they were on 6.18: a thread went on for 958 to 34,102 turns, some 0.3 to 12 µs, until a tick took its CPU away.
 * D had let these pass. */
static void went_on_until_a_tick(void)
{
    static const struct {
        uint64_t left_ns, start_ns, end_ns, waited_ns, woken_ns, late_ns;
    } cases[] = {
        {33609, 51155, 59878, 29834, 17024, 38768},
        {36283, 823639, 836027, 793675, 21492, 40080},
        {36054, 811942, 823479, 780826, 22563, 41192},
        {35052, 59999, 73339, 27701, 21803, 38707},
        {42443, 1009064, 1023465, 971668, 21753, 43374},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct catch_evidence e = accounted();
        e.left_ns = e.sample_ns + cases[i].left_ns;
        e.start_ns = e.sample_ns + cases[i].start_ns;
        e.end_ns = e.sample_ns + cases[i].end_ns;
        e.waited_ns = cases[i].waited_ns;
        e.woken_ns = e.sample_ns + cases[i].woken_ns;
        CHECK_INT(catch_prove(&e, cases[i].late_ns), CATCH_LATE);
        e.accounting = false;
        CHECK_INT(catch_prove(&e, cases[i].late_ns), CATCH_PROVEN);
    }
}

/* Woken 18 µs after the sample, and the thread left so much later. */
static void learn_soon(struct catch_learned *l, unsigned times, uint64_t waited_ns, uint64_t after_ns)
{
    struct catch_evidence e = accounted();
    e.waited_ns = waited_ns;
    e.woken_ns = e.sample_ns + 18000;
    e.left_ns = e.woken_ns + after_ns;
    for (unsigned i = 0; i < times; i++) {
        catch_learn_delays(l, &e, 8192);
    }
}

static void learns_how_soon(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK_INT(l.soon.most_ns, 0); /* nothing is proven by it at first */
    learn_soon(&l, 7, 2600, 4000);
    CHECK_INT(l.soon.most_ns, 0);
    learn_soon(&l, 1, 2600, 90000);
    CHECK_INT(l.soon.most_ns, 10000); /* five halves of 4 µs: the first eight */
    learn_soon(&l, 32, 0, 3000);
    learn_soon(&l, 64, 20001, 90000); /* who waited says nothing */
    learn_soon(&l, 31, 20000, 6000);
    CHECK_INT(l.soon.most_ns, 10000);
    learn_soon(&l, 1, 0, 90000);
    CHECK_INT(l.soon.most_ns, 15000); /* of 6 µs, the 33rd of 64 */
    learn_soon(&l, 64, 0, 13000);
    CHECK_INT(l.soon.most_ns, 30000); /* the most */
}

/* A catcher that does not win its wake-ups gets its CPU at the next tick, which now and then is near. */
static void chance_is_not_usual(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    for (int i = 0; i < 8; i++) {
        learn_soon(&l, 3, 2000000, 2000000);
        learn_soon(&l, 1, 8000, 9000);
    }
    CHECK_INT(l.soon.most_ns, 0);
    learn_soon(&l, 8, 2600, 4000); /* it has got more weight */
    CHECK_INT(l.soon.most_ns, 10000);
    learn_soon(&l, 150, 2000000, 2000000);
    learn_soon(&l, 64, 8000, 9000);
    CHECK_INT(l.soon.most_ns, 0);
}

/* The accounting of this very thread, which sleeps and gets its CPU again. */
static void own_accounting(void)
{
    struct catch_accounting b = {0};
    struct catch_evidence e = {0};
    catch_accounting_note(&b, 0, &e);
    CHECK(!e.accounting);
    uint64_t noted_ns = clock_mono_ns(); /* not after the accounting was read last */
    catch_accounting_open(&b);
    if (!b.opened || b.last.slices == 0) {
        catch_accounting_close(&b);
        SKIP("this kernel keeps no such accounting");
    }
    uint64_t soon_ns = 0, known = 0, one = 0, turned = 0;
    for (unsigned i = 0; i < 200; i++) {
        uint64_t before_ns = clock_mono_ns();
        clock_sleep_ns(100000);
        uint64_t round_ns = clock_mono_ns();
        catch_accounting_note(&b, round_ns, &e);
        CHECK(e.accounting && e.waited_ns <= clock_mono_ns() - noted_ns + 4000000);
        turned += e.turns > 0; /* a sleep that is over before the CPU was given away is none */
        noted_ns = round_ns;
        one += e.turns == 1;
        known += e.woken_ns != 0;
        CHECK(e.woken_ns == 0 || e.turns == 1);
        soon_ns += e.woken_ns != 0 && e.woken_ns > before_ns && e.woken_ns <= round_ns;
    }
    CHECK(turned >= 150);
    CHECK(one > 0 && known > 0 && soon_ns * 10 >= known * 9);
    catch_accounting_close(&b);
}

/* ---- T ---- */

static void steady_latencies(void)
{
    bool starved = true;
    /* p10 is the second smallest, 35 µs: T = 95 µs. The median, 40, is below 70. */
    uint64_t steady[] = {40000, 34000, 35000, 41000, 39000, 40000, 3000000, 40000, 42000, 40000};
    CHECK_INT(catch_late_after(steady, 10, T, &starved), 95000);
    CHECK(!starved);
    uint64_t slow[] = {120000, 130000, 125000}; /* an emulated machine: never above 150 µs */
    CHECK_INT(catch_late_after(slow, 3, T, &starved), 150000);
    CHECK(!starved);
}

static void scattered_latencies(void)
{
    bool starved = false;
    uint64_t twice[] = {40000, 80000, 80000};
    CHECK_INT(catch_late_after(twice, 3, 77000, &starved), 100000); /* just not */
    CHECK(!starved);
    uint64_t more[] = {80001, 40000, 80001};
    CHECK_INT(catch_late_after(more, 3, 77000, &starved), 77000);
    CHECK(starved);
    CHECK_INT(catch_late_after(more, 0, 77000, &starved), 77000);
    CHECK(!starved);
}

static void interrupts(void)
{
    bool starved = true;
    /* p10 is 20 µs: 20 more; a median of up to 40. */
    uint64_t usual[] = {28000, 20000, 19000, 24000, 35000, 24000, 900000, 24000, 31000, 24000};
    CHECK_INT(catch_left_after(usual, 10, D, &starved), 40000);
    CHECK(!starved);
    uint64_t large[] = {60000, 60000, 66000}; /* 63 KiB of stack copied: five thirds */
    CHECK_INT(catch_left_after(large, 3, D, &starved), 100000);
    CHECK(!starved);
    uint64_t greatest[] = {90000, 90000}; /* 150 µs */
    CHECK_INT(catch_left_after(greatest, 2, D, &starved), 150000);
    uint64_t no_interrupt[] = {90003, 90003};
    CHECK_INT(catch_left_after(no_interrupt, 2, D, &starved), 0); /* nothing is proven then */
    CHECK(starved);
    uint64_t scattered[] = {20000, 40001, 40001};
    CHECK_INT(catch_left_after(scattered, 3, D, &starved), 0);
    CHECK(starved);
    CHECK_INT(catch_left_after(scattered, 0, D, &starved), D);
    CHECK(!starved);
}

/* A read that began so long after its sample, and a switch. */
static void learn(struct catch_learned *l, unsigned times, uint64_t begin_ns, uint64_t leave_ns,
                  size_t copied)
{
    const struct catch_evidence e = {.sample_ns = 1000000,
                                     .start_ns = 1000000 + begin_ns,
                                     .preempted = leave_ns != 0,
                                     .left_ns = leave_ns != 0 ? 1000000 + leave_ns : 0};
    for (unsigned i = 0; i < times; i++) {
        catch_learn_delays(l, &e, copied);
    }
}

static void learns_after_64(void)
{
    struct catch_learned l;
    catch_learn_init(&l, false);
    CHECK_INT(catch_learned_late(&l, 8192), 100000);
    learn(&l, 63, 20000, 0, 8192);
    CHECK_INT(catch_learned_late(&l, 8192), 100000);
    learn(&l, 1, 20000, 0, 8192);
    CHECK_INT(catch_learned_late(&l, 8192), 80000);
    learn(&l, 32, 20000, 0, 8192);
    CHECK(!catch_learned_starved(&l));
    learn(&l, 32, 5000000, 0, 8192);
    CHECK(catch_learned_starved(&l));
    CHECK_INT(catch_learned_late(&l, 8192), 80000);
}

static void learns_by_size(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK_INT(catch_learned_late(&l, 16384), 50000);
    learn(&l, 32, 20000, 24000, 16384);
    learn(&l, 32, 5000000, 24000, 16384); /* late reads of threads that left at once */
    CHECK(!catch_learned_starved(&l));
    learn(&l, 64, 5000000, 60000, 64512);
    CHECK_INT(catch_learned_late(&l, 0), 44000);
    CHECK_INT(catch_learned_late(&l, 16384), 44000);
    CHECK_INT(catch_learned_late(&l, 16385), 50000); /* nothing is known of these yet */
    CHECK_INT(catch_learned_late(&l, 64512), 100000);
    CHECK_INT(catch_learned_late(&l, SIZE_MAX), 100000);
    CHECK(!catch_learned_starved(&l));
    learn(&l, 64, 20000, 0, 8192); /* not preempted: no evidence of how long an interrupt takes */
    CHECK_INT(catch_learned_late(&l, 8192), 44000);
    learn(&l, 64, 20000, 2000000, 64512);
    CHECK(catch_learned_starved(&l));
    CHECK_INT(catch_learned_late(&l, 64512), 0); /* whoever left then was not made to by us */
}

/* ---- whether it is worth it ---- */

#define S NS_PER_S

static void verdicts(struct catch_learned *l, unsigned tried, unsigned proven)
{
    for (unsigned i = 0; i < tried; i++) {
        catch_learn_verdict(l, i < proven ? CATCH_PROVEN : CATCH_LATE);
    }
}

static void gives_up(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK(catch_learn_round(&l, 100 * S));
    verdicts(&l, 100, 19);
    CHECK(catch_learn_round(&l, 109 * S)); /* ten seconds are not over */
    CHECK(!catch_learn_round(&l, 110 * S));
    CHECK(!catch_learn_round(&l, 169 * S));
    CHECK(catch_learn_round(&l, 170 * S)); /* a minute later it tries again */
    verdicts(&l, 100, 19);
    CHECK(catch_learn_round(&l, 179 * S));
    CHECK(!catch_learn_round(&l, 180 * S));
}

static void a_fifth_is_enough(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK(catch_learn_round(&l, 100 * S));
    verdicts(&l, 100, 20);
    CHECK(catch_learn_round(&l, 110 * S));
    verdicts(&l, 100, 100);
    CHECK(catch_learn_round(&l, 120 * S));
    verdicts(&l, 100, 19); /* of the latest ten seconds alone */
    CHECK(!catch_learn_round(&l, 130 * S));
}

static void few_samples_say_nothing(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK(catch_learn_round(&l, 100 * S));
    verdicts(&l, 19, 0);
    CHECK(catch_learn_round(&l, 130 * S));
    verdicts(&l, 1, 0); /* twenty do */
    CHECK(!catch_learn_round(&l, 131 * S));
}

static bool holds(struct catch_learned *l, uint64_t most_ns, uint64_t few_ns)
{
    bool other = false;
    for (int i = 0; i < 64; i++) {
        other = catch_learn_hold(l, i % 16 == 0 ? few_ns : most_ns);
        CHECK(i == 63 || !other);
    }
    return other;
}

static void slice_follows_work(void)
{
    struct catch_learned l;
    catch_learn_init(&l, true);
    CHECK(!holds(&l, 20000, 900000)); /* 4 x 20 µs is less than the least; 4 of 64 do not count */
    CHECK_INT(l.slice_ns, 100000);
    CHECK(holds(&l, 50000, 900000));
    CHECK_INT(l.slice_ns, 200000);
    CHECK(!holds(&l, 54000, 54000)); /* 216 µs: not worth a call */
    CHECK_INT(l.slice_ns, 200000);
    CHECK(holds(&l, 90000, 90000));
    CHECK_INT(l.slice_ns, 300000); /* the most */
}

/* ---- handing over ---- */

struct heard {
    unsigned count;
    uint64_t first, last; /* words of the records */
    size_t len;
    bool caught, record;
};

static void hear(void *context, const void *record, size_t len, const struct caught *caught)
{
    struct heard *h = context;
    uint64_t word = 0;
    memcpy(&word, record != NULL ? record : (const void *)caught, 8);
    h->first = h->count == 0 ? word : h->first;
    h->last = word;
    h->len = len;
    h->caught = caught != NULL;
    h->record = record != NULL;
    h->count++;
    CHECK(((uintptr_t)record & 7) == 0 && ((uintptr_t)caught & 7) == 0);
}

static struct heard drained(struct catch_buffer *b)
{
    struct heard h = {0};
    catch_buffer_drain(b, hear, &h);
    return h;
}

/* False: no room. */
static bool put(struct catch_buffer *b, uint64_t word, size_t record_bytes, size_t caught_bytes)
{
    size_t room;
    unsigned char *to = catch_buffer_open(b, record_bytes + caught_bytes,
                                          record_bytes + caught_bytes, &room);
    if (to == NULL) {
        return false;
    }
    memset(to, 0xee, record_bytes + caught_bytes);
    memcpy(to, &word, 8);
    catch_buffer_close(b, record_bytes, caught_bytes);
    return true;
}

static void entries(void)
{
    struct catch_buffer b;
    CHECK(catch_buffer_init(&b, 256));
    CHECK_INT(drained(&b).count, 0);
    CHECK(put(&b, 1, 24, 0));
    struct heard h = drained(&b);
    CHECK(h.count == 1 && h.last == 1 && h.len == 24 && !h.caught && h.record);
    CHECK(put(&b, 2, 24, 64));
    h = drained(&b);
    CHECK(h.count == 1 && h.last == 2 && h.len == 24 && h.caught && h.record);
    CHECK(put(&b, 3, 0, 64)); /* a tick: no record */
    h = drained(&b);
    CHECK(h.count == 1 && h.last == 3 && h.len == 0 && h.caught && !h.record);
    catch_buffer_release(&b);
}

static void full_buffer(void)
{
    struct catch_buffer b;
    CHECK(catch_buffer_init(&b, 256));
    CHECK(put(&b, 1, 120, 0)); /* with their headers 128 each */
    CHECK(put(&b, 2, 120, 0));
    CHECK(!put(&b, 3, 8, 0));
    struct heard h = drained(&b);
    CHECK(h.count == 2 && h.first == 1 && h.last == 2);
    CHECK(put(&b, 3, 248, 0));
    CHECK(!put(&b, 4, 8, 0));
    CHECK_INT(drained(&b).last, 3);
    CHECK(!put(&b, 5, 256, 0)); /* larger than the buffer */
    catch_buffer_release(&b);
}

static void wraps(void)
{
    struct catch_buffer b;
    CHECK(catch_buffer_init(&b, 256));
    CHECK(put(&b, 1, 192, 0)); /* 200 of 256 */
    CHECK_INT(drained(&b).last, 1);
    CHECK(put(&b, 2, 120, 0)); /* 56 are left before the end: it begins anew at the start */
    CHECK_INT(b.head, 256 + 128);
    CHECK(put(&b, 3, 64, 0)); /* 128 to 200; the 56 are used up by the one before */
    CHECK(!put(&b, 4, 8, 0));
    struct heard h = drained(&b);
    CHECK(h.count == 2 && h.first == 2 && h.last == 3);
    catch_buffer_release(&b);
}

static void room_is_what_there_is(void)
{
    struct catch_buffer b;
    size_t room;
    CHECK(catch_buffer_init(&b, 256));
    CHECK(catch_buffer_open(&b, 8, 1000, &room) != NULL);
    CHECK_INT(room, 248);
    catch_buffer_close(&b, 192, 0);
    CHECK(catch_buffer_open(&b, 56, 1000, &room) == NULL); /* 56 less a header */
    CHECK(catch_buffer_open(&b, 48, 1000, &room) != NULL);
    CHECK_INT(room, 48);
    CHECK_INT(drained(&b).count, 1); /* what is open is not seen */
    CHECK(catch_buffer_open(&b, 8, 1000, &room) != NULL); /* never closed: as if it never was */
    CHECK_INT(room, 192);                                  /* at the start there is more room */
    catch_buffer_close(&b, 8, 0);
    CHECK_INT(drained(&b).count, 1);
    CHECK(catch_buffer_open(&b, 8, 16, &room) != NULL);
    CHECK_INT(room, 16);
    catch_buffer_release(&b);
}

enum { SENT = 200000 };

static void *send(void *context)
{
    struct catch_buffer *b = context;
    for (uint64_t i = 1; i <= SENT;) {
        size_t bytes = 8 + (i * 7919 % 61) * 8;
        if (put(b, i, bytes, 0)) {
            i++;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

struct order_check {
    uint64_t next;
    bool wrong;
};

static void in_order(void *context, const void *record, size_t len, const struct caught *caught)
{
    struct order_check *check = context;
    uint64_t word;
    memcpy(&word, record, 8);
    const unsigned char *bytes = record;
    check->wrong |= caught != NULL || word != check->next || len != 8 + (word * 7919 % 61) * 8 ||
                    (len > 8 && bytes[len - 1] != 0xee);
    check->next++;
}

static void two_threads(void)
{
    struct catch_buffer b;
    pthread_t thread;
    CHECK(catch_buffer_init(&b, 4096));
    CHECK(pthread_create(&thread, NULL, send, &b) == 0);
    struct order_check check = {.next = 1};
    while (check.next <= SENT && !check.wrong) {
        catch_buffer_drain(&b, in_order, &check);
    }
    CHECK(!check.wrong);
    CHECK_INT(check.next, SENT + 1);
    pthread_join(thread, NULL);
    catch_buffer_release(&b);
}

/* ---- targets ---- */

static void look_up(void)
{
    const struct catch_tid tids[] = {{10, 1}, {12, 2}, {40, 3}};
    const struct catch_target targets[] = {
        {.pid = 30, .serial = 3}, {.pid = 10, .serial = 1, .tids = tids, .tid_count = 3}};
    struct catch_table *table = catch_table_make(targets, 2);
    CHECK_INT(catch_table_find(table, 10)->serial, 1);
    CHECK_INT(catch_table_find(table, 30)->serial, 3);
    CHECK(catch_table_find(table, 20) == NULL);
    CHECK(catch_table_find(NULL, 10) == NULL);
    const struct catch_target *inner = catch_table_find(table, 10);
    CHECK_INT(catch_table_inner_tid(inner, 12), 2);
    CHECK_INT(catch_table_inner_tid(inner, 13), 13); /* not listed: as here */
    CHECK_INT(catch_table_inner_tid(catch_table_find(table, 30), 12), 12);
    free(table);
}

static void used_tables_stay(void)
{
    struct catch_hazard hazards[2] = {{0}};
    struct catch_table *place = NULL;
    CHECK(catch_table_enter(&place, &hazards[0]) == NULL);
    catch_table_replace(&place, catch_table_make(NULL, 0));
    const struct catch_table *first = catch_table_enter(&place, &hazards[1]);
    CHECK(first == place);
    catch_table_replace(&place, catch_table_make(NULL, 0));
    CHECK(!catch_table_collect(place, hazards, 2));
    CHECK(place->older == first);
    catch_table_replace(&place, catch_table_make(NULL, 0)); /* the one between was never used */
    CHECK(!catch_table_collect(place, hazards, 2));
    CHECK(place->older == first && first->older == NULL);
    catch_table_leave(&hazards[1]);
    CHECK(catch_table_collect(place, hazards, 2));
    CHECK(place->older == NULL);
    free(place);
}

struct reading {
    struct catch_table *place;
    struct catch_hazard hazards[2];
    bool stop;
};

struct reader {
    struct reading *reading;
    struct catch_hazard *hazard;
    uint64_t checks, wrong;
};

/* A freed table is AddressSanitizer's to find; one in use never has another's content. */
static void *check_tables(void *context)
{
    struct reader *r = context;
    while (!__atomic_load_n(&r->reading->stop, __ATOMIC_ACQUIRE)) {
        const struct catch_table *table = catch_table_enter(&r->reading->place, r->hazard);
        const struct catch_target *target = catch_table_find(table, 7);
        uint64_t before = target->serial;
        sched_yield();
        r->wrong += target->serial != before || target->pid != 7;
        __atomic_store_n(&r->checks, r->checks + 1, __ATOMIC_RELAXED);
        catch_table_leave(r->hazard);
    }
    return NULL;
}

static void readers_and_a_publisher(void)
{
    struct reading reading = {0};
    struct reader readers[2] = {{&reading, &reading.hazards[0], 0, 0},
                                {&reading, &reading.hazards[1], 0, 0}};
    pthread_t threads[2];
    struct catch_target target = {.pid = 7, .serial = 1};
    catch_table_replace(&reading.place, catch_table_make(&target, 1));
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, check_tables, &readers[i]) == 0);
    }
    enum { CHECKS = 2000 };
    while (__atomic_load_n(&readers[0].checks, __ATOMIC_RELAXED) < CHECKS ||
           __atomic_load_n(&readers[1].checks, __ATOMIC_RELAXED) < CHECKS) {
        target.serial++;
        catch_table_replace(&reading.place, catch_table_make(&target, 1));
        (void)catch_table_collect(reading.place, reading.hazards, 2);
    }
    __atomic_store_n(&reading.stop, true, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(readers[i].wrong, 0);
    }
    CHECK(catch_table_collect(reading.place, reading.hazards, 2));
    free(reading.place);
}

/* ---- plans ---- */

static void plans(void)
{
    struct catch_plans p;
    const struct catch_target one = {.pid = 100, .serial = 1}, again = {.pid = 100, .serial = 2};
    CHECK(catch_plans_init(&p, 2));
    struct catch_plan *a = catch_plans_get(&p, &one, 101);
    a->bytes[0] = 'a';
    struct catch_plan *b = catch_plans_get(&p, &one, 102);
    CHECK(a != b);
    b->bytes[0] = 'b';
    CHECK(catch_plans_get(&p, &one, 101) == a && a->bytes[0] == 'a');
    struct catch_plan *c = catch_plans_get(&p, &one, 103); /* the place of b, longest unused */
    CHECK(c == b && c->bytes[0] == 0);
    CHECK(catch_plans_get(&p, &one, 101) == a && a->bytes[0] == 'a');
    CHECK(catch_plans_get(&p, &again, 101) == a && a->bytes[0] == 0); /* another attachment */
    catch_plans_release(&p);
}

/* Each field is its own number; names may hold anything. */
static void where(void)
{
    const struct str whole = STR("7 (a) R 1 ) R 4 5 6 7 -8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 "
                               "27 28 29 30 31 32 33 34 35 36 37 38 39 40 41\n");
    char state = 0;
    uint32_t cpu = 0;
    CHECK(stat_where(whole, &state, &cpu));
    CHECK_INT(state, 'R');
    CHECK_INT(cpu, 39);
    size_t end = whole.len - strlen(" 40 41\n");
    CHECK(stat_where(str_sub(whole, 0, end), &state, &cpu));
    for (size_t len = 0; len < end - 2; len++) { /* up to the blank before it */
        CHECK(!stat_where(str_sub(whole, 0, len), &state, &cpu));
    }
    CHECK(!stat_where(STR("7 (a) RR 4 5\n"), &state, &cpu));
}

static void own_stat(void)
{
    struct catch_plans p;
    const struct catch_target self = {.pid = proc_own_pid(), .serial = 1};
    CHECK(catch_plans_init(&p, 1));
    struct catch_plan *plan = catch_plans_get(&p, &self, self.pid);
    CHECK(plan->known && plan->policy == SCHED_OTHER);
    char state = 0;
    uint32_t cpu = UINT32_MAX;
    CHECK(catch_plan_stat(plan, self.pid, self.pid, &state, &cpu));
    CHECK_INT(state, 'R');
    CHECK(cpu < 8192);
    CHECK(catch_plan_stat(plan, self.pid, self.pid, &state, &cpu)); /* through the same descriptor */
    plan = catch_plans_get(&p, &self, 0x3fffffff);
    CHECK(!plan->known);
    CHECK(!catch_plan_stat(plan, self.pid, 0x3fffffff, &state, &cpu));
    catch_plans_release(&p);
}

/* ---- a ring's records ---- */

enum { OUT = PERF_RECORD_MISC_SWITCH_OUT, PREEMPT = PERF_RECORD_MISC_SWITCH_OUT_PREEMPT };

#define RECORDS (PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

struct ring_test {
    struct catch c;
    struct catcher k;
    struct catch_table *table;
    uint64_t now_ns;
    char heard[256]; /* a letter and a verdict for each that was handed over */
};

static void set_up(struct ring_test *r, bool switches, uint32_t pid)
{
    const struct catch_target target = {.pid = pid, .serial = 1};
    *r = (struct ring_test){.c = {.format = {RECORDS, 0}, .switches = switches},
                            .table = catch_table_make(&target, 1),
                            .now_ns = 1000000000};
    r->k.owner = &r->c;
    r->k.table = r->table;
    r->k.round.reads = true;
    catch_learn_init(&r->k.learned, switches);
    CHECK(catch_buffer_init(&r->k.buffer, 4096));
}

static void tear_down(struct ring_test *r)
{
    catch_buffer_release(&r->k.buffer);
    free(r->table);
}

/* A sample or a switch: header, TID, TIME, CPU. */
static void give(struct ring_test *r, uint32_t type, uint16_t misc, uint32_t tid)
{
    struct {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t time_ns;
        uint32_t cpu, zero;
    } record = {{type, misc, sizeof record}, 100, tid, r->now_ns, 3, 0};
    catch_take(&r->k, 0, &record, sizeof record);
    r->now_ns += 10000;
}

static void give_comm(struct ring_test *r, const char *name)
{
    struct {
        struct perf_event_header header;
        uint32_t pid, tid;
        char name[8];
        uint32_t tail_pid, tail_tid;
        uint64_t time_ns;
        uint32_t cpu, zero;
    } record = {{PERF_RECORD_COMM, 0, sizeof record}, 100, 101, "", 100, 101, r->now_ns, 3, 0};
    snprintf(record.name, sizeof record.name, "%s", name);
    catch_take(&r->k, 0, &record, sizeof record);
}

/* As if catch_read had been there, 40 µs after the sample for 10 µs. */
static void read_in_time(struct ring_test *r)
{
    struct catch_evidence *e = &r->k.open.evidence;
    r->k.open.was_read = true;
    e->cpu_before = e->cpu_after = e->stat_cpu = 3;
    e->state = 'R';
    e->start_ns = e->sample_ns + 40000;
    e->end_ns = e->start_ns + 10000;
}

static void hear_record(void *context, const void *ptr, size_t len, const struct caught *caught)
{
    struct ring_test *r = context;
    struct record record;
    CHECK(record_parse(ptr, len, &r->c.format, &record, NULL));
    size_t used = strlen(r->heard);
    char *to = r->heard + used;
    if (record.kind == RECORD_COMM) {
        snprintf(to, sizeof r->heard - used, "%.*s ", (int)record.as.comm.name.len,
                 record.as.comm.name.ptr);
        CHECK(caught == NULL);
        return;
    }
    CHECK(record.kind == RECORD_SAMPLE && caught->tid == record.tid && caught->pid == 100);
    CHECK_INT(caught->bytes, sizeof *caught);
    snprintf(to, sizeof r->heard - used, "%u:%d ", record.tid, caught->verdict);
}

static const char *handed_over(struct ring_test *r)
{
    catch_close(&r->k);
    r->heard[0] = '\0';
    catch_buffer_drain(&r->k.buffer, hear_record, r);
    return r->heard;
}

static void newest_is_read(void)
{
    struct ring_test r;
    set_up(&r, true, 100);
    give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
    give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 102);
    give(&r, PERF_RECORD_SWITCH, OUT | PREEMPT, 102);
    CHECK_INT(r.k.open.tid, 102);
    read_in_time(&r);
    CHECK_TEXT(handed_over(&r), "101:7 102:0 "); /* unread, proven */
    CHECK_INT(r.k.tally.verdicts[CATCH_UNREAD], 1);
    CHECK_INT(r.k.tally.verdicts[CATCH_PROVEN], 1);
    tear_down(&r);
}

static void switches_tell(void)
{
    static const struct {
        uint16_t misc[3]; /* 1: no record */
        uint32_t tid;     /* of the last */
        enum catch_verdict verdict;
    } cases[] = {
        {{OUT | PREEMPT, 1, 1}, 101, CATCH_PROVEN},
        {{1, 1, 1}, 101, CATCH_NOT_PREEMPTED},
        {{OUT, 1, 1}, 101, CATCH_NOT_PREEMPTED},            /* it went to sleep */
        {{OUT | PREEMPT, 0, 1}, 101, CATCH_NOT_PREEMPTED},  /* it came back */
        {{OUT | PREEMPT, 0, 1}, 102, CATCH_PROVEN},         /* another one came */
        {{OUT, 0, OUT | PREEMPT}, 101, CATCH_NOT_PREEMPTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ring_test r;
        set_up(&r, true, 100);
        give(&r, PERF_RECORD_SWITCH, 0, 101); /* before the sample: says nothing */
        give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
        for (size_t at = 0; at < 3 && cases[i].misc[at] != 1; at++) {
            bool last = at == 2 || cases[i].misc[at + 1] == 1;
            give(&r, PERF_RECORD_SWITCH, cases[i].misc[at], last ? cases[i].tid : 101);
        }
        read_in_time(&r);
        char expected[16];
        snprintf(expected, sizeof expected, "101:%d ", (int)cases[i].verdict);
        CHECK_TEXT(handed_over(&r), expected);
        tear_down(&r);
    }
}

static void after_the_read(void)
{
    struct ring_test r;
    set_up(&r, true, 100);
    give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
    give(&r, PERF_RECORD_SWITCH, OUT | PREEMPT, 101); /* 10 µs later */
    read_in_time(&r);                                 /* until 50 µs later */
    r.now_ns = r.k.open.time_ns + 50001;
    give(&r, PERF_RECORD_SWITCH, 0, 101);
    r.now_ns = r.k.open.time_ns - 1; /* nor does one of before the sample count, wherever it stands */
    give(&r, PERF_RECORD_SWITCH, 0, 101);
    CHECK_TEXT(handed_over(&r), "101:0 ");
    tear_down(&r);
}

static void others_pass(void)
{
    struct ring_test r;
    set_up(&r, false, 100);
    give_comm(&r, "a");
    give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
    give_comm(&r, "b");
    give_comm(&r, "c");
    CHECK(r.k.aside.bytes > 0);
    read_in_time(&r);
    CHECK_TEXT(handed_over(&r), "a 101:0 b c ");
    CHECK_INT(r.k.aside.bytes, 0);
    tear_down(&r);
}

static void many_aside(void)
{
    struct ring_test r;
    set_up(&r, false, 100);
    r.k.aside.bytes = 0;
    give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
    unsigned records = 0;
    while (r.k.open.is && records < 10000) { /* the last one that has no place settles the sample */
        give_comm(&r, "z");
        records++;
    }
    CHECK_INT(records, 683); /* 682 of 48 bytes fit 32 KiB */
    CHECK(strncmp(handed_over(&r), "101:7 z z z", 11) == 0);
    CHECK(r.k.tally.lost > 0); /* the small buffer of this test */
    tear_down(&r);
}

static void no_room(void)
{
    struct ring_test r;
    set_up(&r, false, 100);
    for (int i = 0; i < 100; i++) {
        give(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 101);
        catch_close(&r.k);
    }
    size_t each = 8 + 32 + sizeof(struct caught); /* header, record, caught */
    CHECK_INT(r.k.tally.lost, 100 - 4096 / each);
    CHECK_INT(r.k.tally.verdicts[CATCH_UNREAD], 4096 / each);
    tear_down(&r);
}

/* ---- behind a full copy ---- */

enum { STACK_ROOM = 16 * 1024, STACK_AT = 0x7ffe1230 };

#if defined(__x86_64__)
enum { BIT_SP = 7, BIT_IP = 8 };
#else
enum { BIT_SP = 31, BIT_IP = 32 };
#endif

static size_t place_of(unsigned bit)
{
    return (size_t)__builtin_popcountll(unwind_perf_mask() & ((1ull << bit) - 1));
}

/* A sample that copied so much of its stack; where what is to be read of the rest begins. */
static uint64_t beyond_of(bool deep, bool gaps, uint64_t copied)
{
    enum { REGISTERS = 64 };
    static struct ring_test r;
    static const struct remote remote;
    const struct catch_target target = {.pid = 100, .serial = 1, .remote = &remote, .deep = deep, .gaps = gaps};
    struct {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t time_ns;
        uint32_t cpu, zero;
        uint64_t abi, rest[REGISTERS + 2 + STACK_ROOM / 8];
    } record = {.pid = 100, .tid = 101, .cpu = 3, .abi = PERF_SAMPLE_REGS_ABI_64};
    size_t registers = (size_t)__builtin_popcountll(unwind_perf_mask());
    record.rest[place_of(BIT_SP)] = STACK_AT;
    record.rest[place_of(BIT_IP)] = 0x400100;
    record.rest[registers] = STACK_ROOM;
    record.rest[registers + 1 + STACK_ROOM / 8] = copied;
    size_t bytes = offsetof(__typeof__(record), rest) + (registers + 2) * 8 + STACK_ROOM;
    record.header = (struct perf_event_header){PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, (uint16_t)bytes};
    set_up(&r, false, 100);
    r.c.format = (struct record_format){RECORDS | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, unwind_perf_mask()};
    free(r.table);
    r.k.table = r.table = catch_table_make(&target, 1);
    catch_buffer_release(&r.k.buffer);
    CHECK(catch_buffer_init(&r.k.buffer, 64 * 1024));
    catch_take(&r.k, 0, &record, bytes);
    uint64_t beyond = r.k.open.beyond;
    CHECK(r.k.open.is && r.k.open.wanted == (beyond != 0));
    CHECK_INT(r.k.open.copied, copied);
    CHECK(beyond == 0 || r.k.open.room > 16 * 1024); /* for what will be read */
    catch_close(&r.k);
    tear_down(&r);
    return beyond;
}

/* The copy's last page is read again: where it is the same, so is what lies beyond. */
static void full_copies_go_on(void)
{
    CHECK_INT(beyond_of(true, false, STACK_ROOM), 0x7ffe4000);
    CHECK_INT(beyond_of(false, false, STACK_ROOM), 0); /* nobody reads more of it */
    CHECK_INT(beyond_of(true, false, STACK_ROOM - 8), 0); /* there is no more */
    CHECK_INT(beyond_of(true, true, STACK_ROOM - 8), 0x7ffe4000); /* or a page that was never touched */
    CHECK_INT(beyond_of(true, true, 4096), STACK_AT);
}

/* ---- without perf ---- */

static void nobody_to_catch(void)
{
    struct err err;
    struct catch *c = catch_init(99, &err);
    const struct catch_target target = {.pid = 1, .serial = 1, .deep = true};
    CHECK(c != NULL);
    CHECK_INT(catch_cpu_count(c), 0);
    CHECK(catch_publish(c, &target, 1));
    CHECK(catch_publish(c, NULL, 0));
    catch_drain(c, NULL, NULL);
    CHECK_TEXT(catch_trouble(c), "");
    catch_stop(c);
    catch_stop(NULL);
}

/* What it took out of its ring may not be handed over yet. */
static void taken_up_to(void)
{
    struct catcher *k = calloc(1, sizeof *k);
    struct catch c = {.catchers = &k, .catcher_count = 1};
    k->started = true;
    k->waker = waker_open();
    k->round.taken_ns = 5;
    CHECK(catch_taken_ns(&c, 1000) == UINT64_MAX);
    k->round.running = true;
    CHECK_INT(catch_taken_ns(&c, 1000), 5);
    k->round.running = false;
    CHECK(catch_taken_ns(&c, 1000) == UINT64_MAX);
    close(k->waker);
    free(k);
}

/* ---- CPUs where nothing ran ---- */

static void keep_pids(void *context, unsigned cpu, const void *record, size_t len,
                      const struct caught *caught)
{
    uint64_t *samples = context;
    (void)cpu;
    (void)record;
    (void)len;
    *samples += caught != NULL;
}

__attribute__((noreturn)) static void burn_for_ever(unsigned cpu)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)thread_bind(cpu, NULL);
    for (volatile unsigned i = 0;; i++) {
    }
}

/* Until it has had that much CPU time, and a round later. */
static void let_run(pid_t pid, uint64_t cpu_ns)
{
    uint64_t begin_ns = 0, now_ns = 0;
    (void)clock_process_cpu_ns((uint32_t)pid, &begin_ns);
    for (unsigned i = 0; i < 2000 && now_ns < begin_ns + cpu_ns; i++) {
        clock_sleep_ns(10 * NS_PER_MS);
        (void)clock_process_cpu_ns((uint32_t)pid, &now_ns);
    }
}

static void catchers_when_used(void)
{
    const struct perf_sampling sampling = {.frequency_hz = 199};
    const struct perf_how how = {.caught = true};
    struct err err = {0};
    struct perf *perf = perf_new(&err);
    if (perf == NULL || !perf_open(perf, &sampling, &err) || !perf_open_caught(perf, &err)) {
        perf_free(perf);
        SKIP("no perf events, or no memory for two rings, here");
    }
    const struct record_format format = {perf_sample_type(perf), 0};
    struct catch *c = catch_init(199, &err);
    unsigned cpus[1] = {0};
    CHECK_INT(thread_allowed_cpus(cpus, 1), 1);
    c->at_once_most = 0;
    CHECK(catch_on_rings(c, perf, &format, &err));
    CHECK_INT(catch_cpu_count(c), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        burn_for_ever(cpus[0]);
    }
    CHECK(perf_follow_process(perf, (uint32_t)pid, &how, &err));
    perf_enable(perf);
    uint64_t samples = 0;
    let_run(pid, 50 * NS_PER_MS);
    catch_drain(c, keep_pids, &samples);
    CHECK(samples > 0 && catch_cpu_count(c) >= 1);
    CHECK(catch_cpu_count(c) + c->left.count == perf_ring_count(perf));
    uint64_t first = samples;
    let_run(pid, 50 * NS_PER_MS);
    catch_flush(c, NS_PER_S);
    catch_drain(c, keep_pids, &samples);
    CHECK(samples > first);
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    catch_stop(c);
    perf_free(perf);
}

TESTS({"with many CPUs a catcher starts where something runs, and nothing is lost before", catchers_when_used},
      {"nothing newer is safe than what a catcher that is at work has taken", taken_up_to},
      {"with all evidence a sample is proven", all_evidence_is_a_proof},
      {"a catcher on another CPU, before or after, proves nothing", moved_catcher},
      {"where switches are not told, a read that began more than T after the sample is late", late_read},
      {"a thread that left its CPU more than D after the sample is late", left_late},
      {"a thread that left at once may stand for ten milliseconds", stood_for_long},
      {"a read of more than 100 microseconds is long", long_read},
      {"a thread that is not runnable afterwards went on by itself", not_runnable},
      {"a thread that another CPU has is no proof", pulled_away},
      {"where the kernel tells nothing, nothing is proven", unprovable},
      {"where switches are told, only a preempted thread stood still", went_by_itself},
      {"a catcher that had not to wait took the sampled thread's place", woken_and_there},
      {"accounting by a clock that stands still for long prove nothing", coarse_accounting},
      {"where a third thread was first, the sampled one must have left soon after the wake-up", third_thread_first},
      {"where switches are not told, only a catcher that had not to wait proves", without_switches},
      {"a thread that went on until the next tick is late, however soon that was", went_on_until_a_tick},
      {"U is five halves of the usual, from 8 and then 64 that were next, at most 30 microseconds", learns_how_soon},
      {"what is near by chance is not the usual", chance_is_not_usual},
      {"a thread's own accounting tells when it was woken", own_accounting},
      {"T is p10 and 60 microseconds, at most 150", steady_latencies},
      {"a median above twice p10 leaves T and reports starved", scattered_latencies},
      {"D is p10 and 20 microseconds or five thirds of it, unless no interrupt takes so long", interrupts},
      {"T is computed again after 64 reads", learns_after_64},
      {"D is learned by the size of the copy, from threads that were preempted", learns_by_size},
      {"below a fifth proven in ten seconds reading is given up for a minute", gives_up},
      {"a fifth proven is enough to go on", a_fifth_is_enough},
      {"nineteen samples are too few to give up", few_samples_say_nothing},
      {"the slice is four times the work, 100 to 300 microseconds", slice_follows_work},
      {"an entry has a record, what was caught, or both", entries},
      {"what does not fit is refused, and what is drained makes room", full_buffer},
      {"an entry that does not fit before the end begins anew at the start", wraps},
      {"an open entry gets what room there is, and is unseen until closed", room_is_what_there_is},
      {"a writer and a reader agree on 200,000 entries", two_threads},
      {"targets are found by pid, inner tids by tid", look_up},
      {"a replaced table stays while a catcher uses it", used_tables_stay},
      {"readers never see a table that was freed", readers_and_a_publisher},
      {"the plan unused for longest makes room, another attachment starts anew", plans},
      {"state and CPU are fields 3 and 39 behind the name", where},
      {"a plan reads a thread's state and CPU, and notices when it is gone", own_stat},
      {"of several samples the newest is read, the others are handed over unread", newest_is_read},
      {"switches of the thread behind its sample decide, others do not", switches_tell},
      {"a thread may come back after the read", after_the_read},
      {"records that are no samples pass by, in their order", others_pass},
      {"a sample does not wait for more records than fit aside", many_aside},
      {"what does not fit is counted", no_room},
      {"of a full copy what lies behind is read, and of one that ends early where that is known", full_copies_go_on},
      {"catchers without CPUs do nothing and stop", nobody_to_catch})
