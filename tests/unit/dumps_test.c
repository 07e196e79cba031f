/*
 * Dumps of a JVM's threads (runtime/java/dumps.c) and the moments that are made of them (encode/moments_read.c): texts
 * as JVMs of 8 to 25 print them.
 */
#include "encode/moments_read.h"
#include "profile/merge.h"
#include "runtime/java/dumps.h"
#include "test.h"

static const char *written(const char *dump)
{
    static struct buf out;
    buf_release(&out);
    buf_init(&out, 1 << 16);
    dumps_write(str_of(dump), 100, &out);
    return buf_cstr(&out);
}

#define RUNS "   java.lang.Thread.State: RUNNABLE\n"

/* ---- dumps ---- */

static void of_all_versions(void)
{
    CHECK_TEXT(written("2026-11-28 07:00:00\nFull thread dump OpenJDK 64-Bit Server VM (25.432-b06 mixed mode):\n\n"
                       "\"main\" #1 prio=5 os_prio=0 tid=0x00007f01 nid=0x1a2b runnable [0x00007f02]\n" RUNS
                       "\tat Shop.add(Shop.java:12)\n\tat Shop.main(Shop.java:3)\n\n"),
               "moment 100\nruntime OpenJDK 64-Bit Server VM (25.432-b06)\nthread 6699 0 main\n"
               "12 Shop.add\n3 Shop.main\n");
    CHECK_TEXT(written("\"worker 1\" #12 [345] daemon prio=5 os_prio=0 cpu=4.5ms elapsed=1.2s tid=0x7f nid=345 runnable"
                       "  [0x7f]\n" RUNS
                       "\tat java.lang.Thread.run(java.base@21.0.5/Thread.java:1583)\n"),
               "moment 100\nthread 345 0 worker 1\n1583 java/lang/Thread.run\n");
}

static void who_waits(void)
{
    CHECK_TEXT(written("\"a\" #1 nid=0x1 waiting on condition\n   java.lang.Thread.State: TIMED_WAITING (sleeping)\n"
                       "\tat java.lang.Thread.sleep(Native Method)\n\n"
                       "\"b\" #2 nid=0x2 runnable\n" RUNS "\n" /* no frames */
                       "\"GC Thread#0\" os_prio=0 cpu=5.35ms elapsed=1.23s tid=0x7f nid=0x3 runnable  \n\n"
                       "\tat of.Nobody.run(X.java:1)\n"),
               "moment 100\n");
}

static void native_code(void)
{
    CHECK_TEXT(written("\"a\" nid=0x1 runnable\n" RUNS "\tat sun.nio.ch.EPoll.wait(java.base@17.0.15/Native Method)\n"
                       "\tat sun.nio.ch.EPollSelectorImpl.doSelect(java.base@17.0.15/EPollSelectorImpl.java:118)\n"
                       "\t- locked <0x0000000623a0> (a sun.nio.ch.Util$2)\n"
                       "\tat Shop.main(Shop.java)\n\n"
                       "\"b\" nid=0x2 runnable\n" RUNS "\tat Shop.call(Unknown Source)\n\tat Shop.up(Native Method)\n"),
               "moment 100\nthread 1 1 a\n0 sun/nio/ch/EPoll.wait\n118 sun/nio/ch/EPollSelectorImpl.doSelect\n"
               "0 Shop.main\nthread 2 0 b\n0 Shop.call\n0 Shop.up\n");
}

static void classes_made_at_run_time(void)
{
    CHECK_TEXT(written("\"a\" nid=0x1 runnable\n" RUNS "\tat shop.Cart$$Lambda$1/1915318863.run(Unknown Source)\n"
                       "\tat shop.Cart$$Lambda$14/0x0000000800c03200.apply(Unknown Source)\n"
                       "\tat shop.Cart.<init>(Cart.java:7)\n\tat Plain(X.java:1)\n"),
               "moment 100\nthread 1 0 a\n0 shop/Cart$$Lambda$1.run\n0 shop/Cart$$Lambda$14.apply\n7 shop/Cart.<init>\n"
               "1 Plain\n");
}

static void names_as_people_give_them(void)
{
    CHECK_TEXT(written("\"a \"quoted\" nid=7 name\" #1 nid=0x2 runnable\n" RUNS "\tat A.b(A.java:1)\n\n"
                       "\"\" #2 nid=3 runnable\n" RUNS "\tat A.b(A.java:1)\n"),
               "moment 100\nthread 2 0 a \"quoted\" nid=7 name\n1 A.b\nthread 3 0 \n1 A.b\n");
}

static void what_is_no_dump(void)
{
    CHECK_TEXT(written(""), "moment 100\n");
    CHECK_TEXT(written("\"\n\"\"\n\"a\" nid=\n" RUNS "\tat A.b(A.java:1)\n"
                       "\"a\" nid=0xzz \n" RUNS "\tat A.b(A.java:1)\n"),
               "moment 100\n");
    CHECK_TEXT(written("\"a\" nid=1 \n" RUNS "\tat \n\tat (\n\tat x\n\tat A.b(\n"), "moment 100\n");
}

/* ---- moments ---- */

enum { PROCESS = 1, SAMPLES = 8 };

struct told {
    struct profile p;
    struct live_sample sample[SAMPLES];
    size_t count;
};

static uint32_t thread_of(void *context, uint32_t tid)
{
    (void)context;
    return tid < 100 ? 5000 + tid : 0;
}

static void take(void *context, const struct live_sample *sample)
{
    struct told *t = context;
    CHECK(t->count < SAMPLES);
    t->sample[t->count++] = *sample;
}

static struct told t;

static void read_moments(const char *text)
{
    t = (struct told){.count = 0};
    CHECK(profile_init(&t.p, 1 << 20, NULL));
    CHECK_INT(profile_process(&t.p, &(struct process){.pid = 7, .start_ticks = 9}), PROCESS);
    const struct live live = {.pid = 7,
                              .process = PROCESS,
                              .start_ticks = 9,
                              .comm = STR("java"),
                              .thread = thread_of,
                              .sample = take,
                              .context = &t};
    moments_read(&t.p, str_of(text), FRAME_JVM, &live);
}

/* Leaf first, "name:line" with blanks between. */
static const char *stack_of(size_t i)
{
    static struct buf text;
    buf_release(&text);
    buf_init(&text, 1 << 16);
    for (uint32_t node = t.sample[i].node; node != 0; node = t.p.nodes.at[node].parent) {
        const struct frame *frame = &t.p.frames.at[t.p.nodes.at[node].frame];
        buf_str(&text, profile_text(&t.p, frame->name));
        buf_printf(&text, ":%u ", frame->line);
    }
    return buf_cstr(&text);
}

static void stacks_of_moments(void)
{
    read_moments("moment 100\nruntime A JVM (17)\nthread 6 0 main\n12 Shop.add\n3 Shop.main\nthread 200 1 other\n"
                 "0 A.b\nmoment 250\nthread 6 0 main\n3 Shop.main\n");
    CHECK_INT(t.count, 3);
    CHECK_TEXT(stack_of(0), "Shop.add:12 Shop.main:3 ");
    CHECK_TEXT(stack_of(1), "A.b:0 ");
    CHECK_TEXT(stack_of(2), "Shop.main:3 ");
    CHECK(t.sample[0].tid == 6 && t.sample[0].cpu_ns == 100 && !t.sample[0].may_wait);
    CHECK(t.sample[1].tid == 200 && t.sample[1].may_wait);
    CHECK(t.sample[2].cpu_ns == 250 && t.sample[2].thread == t.sample[0].thread);
    CHECK_INT(t.p.threads.at[t.sample[0].thread].tid, 5006);
    CHECK_STR(profile_text(&t.p, t.p.threads.at[t.sample[0].thread].name), "main");
    CHECK_STR(profile_text(&t.p, t.p.processes.at[PROCESS].runtime), "A JVM (17)");
    profile_release(&t.p);
}

static void lines_that_are_none(void)
{
    read_moments("12 Nobody.is\nmoment x\nthread 0 0 a\n1 A.b\nthread 1\n1 A.b\nthread 1 0 b\n\nx A.b\n1 \n1 A.c\n"
                                 "moment 99999999999999999999\nthread 2 0 c\n9999999999 A.d\n");
    CHECK_INT(t.count, 2);
    CHECK_TEXT(stack_of(0), "A.c:1 ");
    CHECK_TEXT(stack_of(1), "A.d:0 ");
    CHECK_INT(t.sample[1].cpu_ns, 0);
    profile_release(&t.p);
}

static void a_deep_stack(void)
{
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_text(&text, "moment 100\nthread 6 0 main\n");
    for (unsigned i = 0; i < MOMENTS_DEPTH + 5; i++) {
        buf_printf(&text, "%u A.f\n", i + 1);
    }
    read_moments(buf_cstr(&text));
    size_t depth = 0;
    uint32_t top = 0;
    for (uint32_t node = t.sample[0].node; node != 0; node = t.p.nodes.at[node].parent) {
        depth++;
        top = node;
    }
    CHECK_INT(depth, MOMENTS_DEPTH + 1);
    CHECK_STR(profile_text(&t.p, t.p.frames.at[t.p.nodes.at[top].frame].name), "[truncated]");
    buf_release(&text);
    profile_release(&t.p);
}

TESTS({"dumps of all versions tell threads by the system's numbers", of_all_versions},
      {"threads that wait, and those without frames, are left out", who_waits},
      {"a leaf in native code may wait", native_code},
      {"classes made at run time lose what makes one many", classes_made_at_run_time},
      {"names have what people put into them", names_as_people_give_them},
      {"what is no dump is passed over", what_is_no_dump},
      {"moments are samples of their threads", stacks_of_moments},
      {"lines that are none are passed over", lines_that_are_none},
      {"a deep stack is cut at its root", a_deep_stack})
