/* src/encode/perf_read: what perf script prints. */
#include "encode/collapsed.h"
#include "encode/perf_read.h"
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

static bool read_text(struct bench *b, const char *text, const char *type, bool whole)
{
    CHECK(perf_is(str_of(text)));
    return perf_read(&b->p, str_of(text), str_of(type), whole, &b->damage, &b->err);
}

/* "root;…;leaf" of a sample. */
static void check_stack(const struct bench *b, size_t sample, const char *expected)
{
    struct str names[16];
    struct buf text;
    size_t depth = 0;
    buf_init(&text, 4096);
    for (uint32_t n = b->p.samples.at[sample].node; n != 0 && depth < 16; n = b->p.nodes.at[n].parent) {
        names[depth++] = profile_text(&b->p, b->p.frames.at[b->p.nodes.at[n].frame].name);
    }
    while (depth-- > 0) {
        buf_str(&text, names[depth]);
        buf_text(&text, depth > 0 ? ";" : "");
    }
    CHECK_STR(buf_slice(&text), expected);
    buf_release(&text);
}

static void stacks_are_read(void)
{
    struct bench *b = set_up();
    CHECK(read_text(b,
                    "# ========\n# captured on : Sun\n#\n"
                    "spin me  3167 29803.035932:   10101010 cpu-clock: \n"
                    "\t            1179 work+0x40 (/tmp/spin me)\n"
                    "\t            1185 operator+(A const&, int) const+0x1f (/tmp/x (deleted))\n"
                    "  spin.c:2\n"
                    "\t            1190 inner (inlined)\n"
                    "\n"
                    "spin me  3167 29803.055932:   10101010 cpu-clock: \n"
                    "\tffffffff81755400 do_syscall_64+0x28a ([kernel.kallsyms])\n"
                    "\t    7f0000001179 [unknown] (/usr/lib/libc.so.6)\n"
                    "\t               0 [unknown] ([unknown])\n"
                    "\t         7f001179 py::f:/app/a.py (/tmp/perf-12.map)\n"
                    "\n",
                    "", false));
    CHECK_INT(b->p.samples.len, 3);
    check_stack(b, 1, "inner;operator+(A const&, int) const;work");
    check_stack(b, 2, "f (/app/a.py);[unknown];[libc.so.6];do_syscall_64");
    CHECK_INT(b->p.samples.at[1].cpu_ns, 10101010);
    CHECK_INT(profile_sum(&b->p).leaf_ns[FRAME_KERNEL], 10101010);
    CHECK_INT(b->p.moments.list.at[1].step, 2);
    CHECK_STR(profile_text(&b->p, b->p.processes.at[1].name), "spin me");
    CHECK_INT(b->p.threads.at[1].tid, 3167);
    CHECK_INT(b->damage.lines, 0);
    CHECK_INT(b->p.meta.value, 0);
    tear_down(b);
}

static void fields_may_be_missing(void)
{
    static const struct {
        const char *text, *comm;
        uint32_t pid, tid;
        uint64_t ns;
    } rows[] = {
        {"a 7/8 [003]  3.5:  99 cpu-clock:uhH: \n\t 11 f+0x1 (/x)\n", "a", 7, 8, 99},
        {"tmux: server   8 3.5: task-clock: \n\t 11 f (/x)\n", "tmux: server", 0, 8, COLLAPSED_PERIOD_NS},
        {"kworker/0:1-ev 8 \n\t 11 f (/x)\n", "kworker/0:1-ev", 0, 8, COLLAPSED_PERIOD_NS},
        {"my 12 prog 8 [001] 3.5:  12 cpu-clock: \n\t 11 f (/x)\n", "my 12 prog", 0, 8, 12},
        {"      a  8 3.5:  13 cpu-clock:   5565c175 f+0x3c (/x y)\n", "a", 0, 8, 13},
        {"a  8 3.5:  13 cpu-clock: \n \t 11 f (/x)\nnonsense\n", "a", 0, 8, 13},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench *b = set_up();
        CHECK(read_text(b, rows[i].text, "", false));
        CHECK_INT(b->p.samples.len, 2);
        check_stack(b, 1, "f");
        CHECK_INT(b->p.samples.at[1].cpu_ns, rows[i].ns);
        CHECK_STR(profile_text(&b->p, b->p.processes.at[1].name), rows[i].comm);
        CHECK_INT(b->p.processes.at[1].pid, rows[i].pid);
        CHECK_INT(b->p.threads.at[1].tid, rows[i].tid);
        CHECK_INT(b->damage.lines, i == 5);
        tear_down(b);
    }
}

static const char events[] = "a 8 3.5:  61 page-faults:  11 f+0x3c (/x)\n"
                             "a 8 3.6:  10101010 cpu-clock:  11 f+0x3c (/x)\n"
                             "a 8 3.7:  2 page-faults:  11 f+0x3c (/x)\n";

static void one_event_counts(void)
{
    struct bench *b = set_up();
    CHECK(read_text(b, events, "", false));
    CHECK_INT(profile_sum(&b->p).cpu_ns, 10101010);
    CHECK_INT(b->p.occurrences.len, 0);
    tear_down(b);
    b = set_up();
    CHECK(read_text(b, events, "page-faults", false));
    CHECK_INT(profile_sum(&b->p).cpu_ns, 63);
    CHECK_STR(profile_text(&b->p, b->p.meta.value), "page-faults");
    tear_down(b);
    b = set_up();
    CHECK(!read_text(b, events, "cycles", false));
    CHECK_STR(str_of(b->err.text), "there is no sample type cycles in it; there is: page-faults, cpu-clock");
    tear_down(b);
}

static void the_others_are_events(void)
{
    struct bench *b = set_up();
    CHECK(read_text(b, events, "", true));
    CHECK(perf_read(&b->p, str_of(events), STR(""), true, &b->damage, &b->err));
    CHECK_INT(profile_sum(&b->p).cpu_ns, 20202020);
    CHECK_INT(b->p.event_types.len, 1);
    CHECK_INT(b->p.occurrences.len, 1);
    CHECK_INT(b->p.occurrences.at[0].amount, 126);
    tear_down(b);
}

static void other_texts_are_not_taken(void)
{
    static const char *const texts[] = {"web;main;handle 30\nweb;main;idle 10\n", "a 12\nadd 5\n", "", "#\n#\n",
                                        "a b c\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(!perf_is(str_of(texts[i])));
    }
}

TESTS({"stacks are read", stacks_are_read},
      {"fields may be missing", fields_may_be_missing},
      {"one event counts", one_event_counts},
      {"the others are events of the profile", the_others_are_events},
      {"other texts are not taken for it", other_texts_are_not_taken})
