/* src/encode/python_read: what py-spy and austin write. */
#include "encode/python_read.h"
#include "sample_profile.h"
#include "test.h"

struct bench {
    struct profile p;
    struct collapsed_damage damage;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    free(b);
}

static bool read_text(struct bench *b, const char *text, const char *type)
{
    CHECK(python_stacks_are(str_of(text)));
    return python_stacks_read(&b->p, str_of(text), str_of(type), &b->damage, &b->err);
}

static void check_leaf(const struct bench *b, uint32_t node, const char *name, uint32_t line, enum frame_kind kind)
{
    const struct frame *frame = &b->p.frames.at[b->p.nodes.at[node].frame];
    CHECK_STR(profile_text(&b->p, frame->name), name);
    CHECK_INT(frame->line, line);
    CHECK_INT(frame->kind, kind);
}

static void py_spys_lines_are_frames(void)
{
    struct bench *b = set_up();
    CHECK(read_text(b,
                    "<module> (w.py:10);run (w.py:7);f (w.py:2) 39\n"
                    "<module> (w.py:10);run (w.py:8) 1\n"
                    "main (<frozen site>:622);memcpy (libc.so.6) 2\n"
                    "nonsense\n",
                    ""));
    CHECK_INT(profile_sum(&b->p).cpu_ns, 420 * 1000000);
    CHECK_INT(profile_sum(&b->p).count, 42);
    check_leaf(b, b->p.samples.at[1].node, "f (w.py)", 2, FRAME_PYTHON);
    check_leaf(b, b->p.samples.at[2].node, "run (w.py)", 8, FRAME_PYTHON);
    check_leaf(b, b->p.samples.at[3].node, "memcpy", 0, FRAME_NATIVE);
    CHECK_INT(b->p.processes.len, 2);
    CHECK_INT(b->damage.lines, 1);
    CHECK_INT(b->damage.first_line, 4);
    tear_down(b);
}

static void py_spys_processes_and_threads(void)
{
    struct bench *b = set_up();
    CHECK(read_text(b,
                    "process 16096:\"/usr/bin/python3 -c a;b\";thread (16105): helper;run (w.py:7) 5\n"
                    "process 16096:\"/usr/bin/python3 -c a;b\";thread (16096);run (w.py:7) 5\n",
                    "cpu"));
    CHECK_STR(profile_text(&b->p, b->p.processes.at[1].name), "python3");
    CHECK_INT(b->p.processes.at[1].pid, 16096);
    CHECK_INT(b->p.threads.at[1].tid, 16105);
    CHECK_STR(profile_text(&b->p, b->p.threads.at[1].name), "helper");
    CHECK_STR(profile_text(&b->p, b->p.threads.at[2].name), "python3");
    check_leaf(b, b->p.samples.at[2].node, "run (w.py)", 7, FRAME_PYTHON);
    CHECK_INT(b->p.frames.len, 2);
    tear_down(b);
}

static void austins_modes(void)
{
    static const struct {
        const char *text, *value;
        uint64_t sum, waits;
    } rows[] = {
        {"# austin: 3.7.0\n# interval: 10000\n# mode: wall\n\nP7;T0:8;/w.py:m:10;/w.py:f:2 10113\n\n# saturation\n",
         "wall", 10113000, 0},
        {"# austin: 3.7.0\n# mode: cpu\n\nP7;T0:8;/w.py:f:2 10113\n", "", 10113000, 0},
        {"# austin: 3.7.0\n# mode: full\n\nP7;T0:8;/w.py:f:2 10,0,5632\nP7;T8;/w.py:f:2 20,1,0\n", "", 10000, 20000},
        {"# austin: 3.7.0\n# mode: memory\n\nP7;T0:8;/w.py:f:2 4096\n", "memory", 4096, 0},
        {"P7;T8;/w.py:f:2 1000\n", "wall", 1000000, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench *b = set_up();
        CHECK(read_text(b, rows[i].text, ""));
        CHECK_INT(profile_sum(&b->p).cpu_ns, rows[i].sum);
        CHECK_STR(profile_text(&b->p, b->p.meta.value), rows[i].value);
        check_leaf(b, b->p.samples.at[1].node, "f (/w.py)", 2, FRAME_PYTHON);
        CHECK_INT(b->p.processes.at[1].pid, 7);
        CHECK_INT(b->p.threads.at[1].tid, 8);
        CHECK_INT(b->p.waits.len > 0 ? b->p.waits.at[0].wait_ns : 0, rows[i].waits);
        CHECK_INT(b->damage.lines, 0);
        tear_down(b);
    }
}

static void another_type_is_refused(void)
{
    struct bench *b = set_up();
    CHECK(!read_text(b, "P7;T8;/w.py:f:2 1000\n", "cpu"));
    CHECK_STR(str_of(b->err.text), "there is no sample type cpu in it; there is: wall");
    tear_down(b);
}

static void other_stacks_are_not_taken(void)
{
    static const char *const texts[] = {"", "web;main;handle 30\n", "py;main (a.py:12);f 3\n", "main (a.py:1)\n",
                                        "P7;main;f 3\n", "main (a.py:12);f 3\nweb;f 2\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(!python_stacks_are(str_of(texts[i])));
    }
}

TESTS({"py-spy's lines are frames", py_spys_lines_are_frames},
      {"py-spy's processes and threads", py_spys_processes_and_threads},
      {"austin's modes", austins_modes},
      {"another sample type is refused", another_type_is_refused},
      {"other stacks are not taken for theirs", other_stacks_are_not_taken})
