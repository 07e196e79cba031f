/* Flight recordings, made here: names in every form of text, times and amounts, several chunks; and what is refused. */
#include "encode/jfr_read.h"

#include "profile/language.h"

#include "jfr_recording.h"
#include "test.h"

static struct buf file;

static void begin(void)
{
    buf_release(&file);
    buf_init(&file, JFR_MADE_MAX);
    jfr_begin(&file);
}

static void sample(uint64_t type, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t values[] = {a, b, c, d};
    jfr_sample(&file, type, values, type == T_CPU ? 4 : 3);
}

/* The stacks and weights, sorted by nothing but their order. */
static const char *stacks(const struct profile *p)
{
    static char text[512];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 1; i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        const char *parts[8];
        size_t count = 0;
        for (uint32_t node = s->node; node != 0 && count < 8; node = p->nodes.at[node].parent) {
            const struct frame *f = &p->frames.at[p->nodes.at[node].frame];
            struct str name = profile_text(p, f->name);
            static char frames[8][64];
            snprintf(frames[count], sizeof frames[0], "%.*s%s:%u", (int)name.len, name.ptr, languages[f->kind].suffix,
                     f->line);
            parts[count] = frames[count];
            count++;
        }
        const struct thread *t = &p->threads.at[s->thread];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s/%u ", used > 0 ? ", " : "",
                                 (int)profile_text(p, t->name).len, profile_text(p, t->name).ptr, t->tid);
        while (count-- > 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", parts[count], count > 0 ? ";" : "");
        }
        used += (size_t)snprintf(text + used, sizeof text - used, " %llu", (unsigned long long)s->cpu_ns);
    }
    return text;
}

static const char *read(const char *type)
{
    static struct profile p;
    static struct err err;
    profile_release(&p);
    jfr_end(&file, 0);
    bool ok = profile_init(&p, 1 << 20, &err) && jfr_read(&p, buf_slice(&file), str_of(type), &err);
    return ok ? stacks(&p) : err.text;
}

static const char both[] = "worker 1/4711 shop/B.na\303\257v_[j]:30;shop/A$$Lambda$3.g\303\266\360\235\204\236_[j]";

static void samples(void)
{
    struct profile p;
    struct err err;
    char expected[256];
    begin();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_SAMPLE, 2000, 5, 1, 0);
    sample(T_SAMPLE, 2000, 5, 2, 0); /* cut, without a line */
    sample(T_SAMPLE, 2000, 9, 9, 0); /* nothing of it is known */
    snprintf(expected, sizeof expected,
             "%s:12 20000000, worker 1/4711 [truncated]:0;shop/B.na\303\257v_[j]:0 10000000, "
             "java/0 [unknown]:0 10000000", both);
    CHECK_TEXT(read(""), expected);
    CHECK(profile_init(&p, 1 << 20, &err) && jfr_read(&p, buf_slice(&file), STR("cpu"), &err));
    CHECK_INT(p.processes.at[1].pid, 42);
    CHECK_STR(profile_text(&p, p.processes.at[1].runtime), "OpenJDK 64-Bit Server VM (17.0.15+6)");
    CHECK_INT(p.meta.period_ns, 10000000);
    CHECK_INT(p.meta.start_wall_ns, 1700000000000000000);
    CHECK_INT(p.meta.end_wall_ns, 1700000002000000000);
    profile_release(&p);
    sample(T_CPU, 1000, 1, 5, 7000); /* tells CPU time itself: the others do not count beside it */
    snprintf(expected, sizeof expected, "%s:12 7000000", both);
    CHECK_TEXT(read(""), expected);
    /* a second chunk, with constants of its own */
    size_t from = file.len;
    jfr_end(&file, 0);
    jfr_begin(&file);
    sample(T_CPU, 1000, 1, 5, 1000);
    jfr_end(&file, from);
    jfr_put_be(&file, 8, from);
    CHECK(profile_init(&p, 1 << 20, &err) && jfr_read(&p, buf_slice(&file), STR(""), &err));
    snprintf(expected, sizeof expected, "%s:12 8000000", both);
    CHECK_TEXT(stacks(&p), expected);
    profile_release(&p);
    begin();
    sample(T_SAMPLE, 1000, 5, 3, 0);
    CHECK_TEXT(read(""), "worker 1/4711 na\303\257v:0;na\303\257v_[k]:0 10000000");
}

static void others(void)
{
    struct profile p;
    struct err err;
    char expected[256];
    begin();
    sample(T_TLAB, 5, 1, 1024, 0);
    sample(T_OUTSIDE, 5, 1, 100, 0);
    sample(T_LOCK, 3000, 5, 1, 0);
    CHECK_TEXT(read(""), "this flight recording holds no CPU time: its stacks are of alloc_space, lock");
    CHECK_TEXT(read("park"), "there is no sample type park in it; there is: alloc_space, lock");
    snprintf(expected, sizeof expected, "%s:12 1124", both);
    CHECK_TEXT(read("alloc_space"), expected);
    snprintf(expected, sizeof expected, "%s:12 3000000", both);
    CHECK_TEXT(read("lock"), expected);
    CHECK(profile_init(&p, 1 << 20, &err) && jfr_read_whole(&p, buf_slice(&file), &err));
    CHECK_INT(p.event_types.len, 2);
    CHECK_INT(p.occurrences.len, 2);
    CHECK_INT(p.samples.len, 1); /* none: the first is nobody's */
    profile_release(&p);
    sample(T_ALLOCATION, 5, 1, 5000, 0); /* instead of the two that tell less */
    snprintf(expected, sizeof expected, "%s:12 5000", both);
    CHECK_TEXT(read("alloc_space"), expected);
    begin();
    CHECK_TEXT(read(""), ""); /* of a program that slept */
    CHECK_TEXT(read("lock"), "there is no sample type lock in it; there is: none");
}

static const char *spoiled(size_t at, int value)
{
    begin();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    jfr_end(&file, 0);
    file.ptr[at] = (char)value;
    static struct profile p;
    static struct err err;
    profile_release(&p);
    return !profile_init(&p, 1 << 20, &err) || !jfr_read(&p, buf_slice(&file), STR(""), &err) ? err.text : "read";
}

static void refused(void)
{
    CHECK_TEXT(spoiled(5, 1), "a flight recording of version 1.1: those of 2 are read");
    CHECK_TEXT(spoiled(67, 0), "a flight recording whose numbers are not compressed");
    CHECK_TEXT(spoiled(31, 0), "no flight recording: its types cannot be read");
    CHECK_TEXT(spoiled(8, 1), "no flight recording: a chunk is cut off");
    CHECK_TEXT(spoiled(63, 0x41), "read");
    begin();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    file.len -= 1;
    CHECK_TEXT(read(""), "no flight recording: an event is cut off");
    begin();
    CHECK(!jfr_is(STR("FLR")));
    CHECK(jfr_is(buf_slice(&file)));
    /* an array of more than there is */
    begin();
    struct buf body;
    buf_init(&body, JFR_MADE_MAX);
    jfr_put(&body, 0), jfr_put(&body, 0), jfr_put(&body, 0), buf_byte(&body, 0), jfr_put(&body, 1);
    jfr_put(&body, T_TRACE), jfr_put(&body, 1), jfr_put(&body, 8), buf_byte(&body, 0), jfr_put(&body, UINT64_MAX);
    jfr_event(&file, 1, &body);
    buf_release(&body);
    CHECK_TEXT(read(""), "no flight recording: its constants cannot be read");
    buf_release(&file);
}

TESTS({"samples are CPU time, with names in every form of text", samples},
      {"other sample types, by name or beside CPU time", others},
      {"what is damaged or of another version is refused", refused})
