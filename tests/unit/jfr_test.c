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

/* ---- one that is still written ---- */

#define START UINT64_C(1700000000000000000)

static struct {
    char text[512]; /* what was told of running threads */
    size_t used;
    unsigned asked; /* which thread that is */
    struct profile p;
} told;

static uint32_t thread_here(void *context, uint32_t tid)
{
    CHECK(context == &told && tid != 0);
    told.asked++;
    return tid == 4711 ? 31 : 0;
}

static void tell(void *context, const struct live_sample *sample)
{
    CHECK(context == &told);
    const struct thread *thread = &told.p.threads.at[sample->thread];
    const struct frame *leaf = &told.p.frames.at[told.p.nodes.at[sample->node].frame];
    told.used += (size_t)snprintf(told.text + told.used, sizeof told.text - told.used, "%s%u=%u:%u %llu%s",
                                  told.used > 0 ? ", " : "", sample->tid, thread->tid, leaf->line,
                                  (unsigned long long)sample->cpu_ns, sample->may_wait ? " native" : "");
}

static struct live begin_live(void)
{
    begin();
    profile_release(&told.p);
    CHECK(profile_init(&told.p, 1 << 20, NULL));
    return (struct live){
        .pid = 30, .start_ticks = 77, .comm = STR("shop"), .thread = thread_here, .sample = tell, .context = &told};
}

/* Sets the chunk's time and its size as it is now: up to there the JVM has written it. */
static void flush(size_t from, uint64_t start_ns)
{
    jfr_put_be(&file, from + 32, start_ns);
    jfr_end(&file, from);
}

/* What is new: "the JVM's thread=here:line ns"; or why it cannot be read. */
static const char *live_of(struct live *live, struct str bytes)
{
    static struct err err;
    told.used = told.asked = 0;
    told.text[0] = '\0';
    err = (struct err){0};
    bool ok = jfr_read_live(&told.p, bytes, live, &err);
    CHECK(ok == (err.kind == ERR_NONE));
    return ok ? told.text : err.text;
}

static const char *again(struct live *live)
{
    flush(0, START);
    return live_of(live, buf_slice(&file));
}

static void grows(void)
{
    struct live live = begin_live();
    CHECK_TEXT(again(&live), "");
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_NATIVE, 1000, 5, 2, 0);
    CHECK_TEXT(again(&live), "4711=31:12 10000000, 4711=31:0 20000000 native");
    CHECK_TEXT(again(&live), "");
    CHECK_TEXT(again(&live), "");
    CHECK_INT(live.chunk_start_ns, START);
    CHECK_INT(live.chunk_bytes, file.len);
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_LOCK, 3000, 5, 1, 0);
    CHECK_TEXT(again(&live), "4711=31:12 10000000");
    CHECK_TEXT(again(&live), "");
    sample(T_LOCK, 2000, 5, 1, 0);
    CHECK_TEXT(again(&live), "");
    CHECK_INT(told.p.event_types.len, 1); /* other types are events, once each */
    CHECK_INT(told.p.occurrences.len, 1);
    CHECK_INT(told.p.occurrences.at[0].amount, 5000000);
    CHECK_INT(told.p.samples.len, 1); /* and nothing is CPU time but what is told */
    CHECK_INT(told.p.meta.start_wall_ns, 0); /* the window is not the chunk's */
}

/* Not yet written as far as the file is long. */
static void ahead_of_its_size(void)
{
    struct live live = begin_live();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    flush(0, START);
    sample(T_SAMPLE, 1000, 5, 2, 0);
    buf_text(&file, "half of one");
    (void)live_of(&live, buf_slice(&file));
    CHECK_TEXT(told.text, "4711=31:12 10000000");
    file.len -= strlen("half of one");
    CHECK_TEXT(again(&live), "4711=31:0 10000000"); /* what was complete then is not told again */
}

static void of_a_window_each(void)
{
    struct live live = begin_live();
    sample(T_SAMPLE, 1000, 5, 2, 0);
    CHECK_TEXT(again(&live), "4711=31:0 10000000");
    profile_release(&told.p);
    CHECK(profile_init(&told.p, 1 << 20, NULL)); /* knows nothing of the one before */
    sample(T_SAMPLE, 1000, 5, 1, 0);
    CHECK_TEXT(again(&live), "4711=31:12 10000000");
    CHECK_INT(told.p.processes.len, 2);
    CHECK_INT(told.p.processes.at[1].pid, 30);
    CHECK_INT(told.p.processes.at[1].start_ticks, 77);
    CHECK_STR(profile_text(&told.p, told.p.processes.at[1].name), "shop");
}

static void cpu_time(void)
{
    struct live live = begin_live();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_CPU, 1000, 1, 5, 7000);
    sample(T_CPU, 1000, 2, 5, 1);
    CHECK_TEXT(again(&live), "4711=31:12 7000000, 4711=31:0 1000");
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_CPU, 1000, 1, 5, 2);
    CHECK_TEXT(again(&live), "4711=31:12 2000");
    sample(T_CPU, 1000, 1, 5, UINT64_C(1) << 50); /* decades */
    CHECK_TEXT(again(&live), "4711=31:12 1099511627776");
}

static void next_chunks(void)
{
    struct live live = begin_live();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    CHECK_TEXT(again(&live), "4711=31:12 10000000");
    sample(T_SAMPLE, 1000, 5, 2, 0);
    flush(0, START);
    size_t second = file.len;
    jfr_begin(&file);
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_SAMPLE, 1000, 5, 1, 0);
    flush(second, START + 5);
    struct buf first;
    buf_init(&first, JFR_MADE_MAX);
    buf_str(&first, str_sub(buf_slice(&file), 0, second));
    /* in one file: the rest of the first one, and all of the second */
    CHECK_TEXT(live_of(&live, buf_slice(&file)), "4711=31:0 10000000, 4711=31:12 10000000, 4711=31:12 10000000");
    CHECK_INT(live.chunk_start_ns, START + 5);
    CHECK_INT(live.chunk_bytes, file.len - second);
    CHECK_TEXT(live_of(&live, buf_slice(&file)), "");
    for (int i = 0; i < 9; i++) {
        jfr_sample(&first, T_SAMPLE, (const uint64_t[]){1000, 5, 1}, 3);
    }
    jfr_end(&first, 0);
    CHECK(first.len > live.chunk_bytes);
    CHECK_TEXT(live_of(&live, buf_slice(&first)), ""); /* older than what was read */
    sample(T_SAMPLE, 1000, 5, 2, 0);
    flush(second, START + 5);
    struct str own = str_sub(buf_slice(&file), second, file.len);
    CHECK_TEXT(live_of(&live, own), "4711=31:0 10000000"); /* a file of its own */
    CHECK_TEXT(live_of(&live, buf_slice(&file)), "");
    buf_release(&first);
}

static void damaged_tail(void)
{
    struct live live = begin_live();
    struct buf nothing;
    buf_init(&nothing, 16);
    sample(T_SAMPLE, 1000, 5, 1, 0);
    jfr_event(&file, T_SAMPLE, &nothing); /* fields that are not there */
    CHECK_TEXT(again(&live), "no flight recording: an event cannot be read");
    CHECK_TEXT(told.text, "4711=31:12 10000000"); /* what stood before it counts, … */
    CHECK_TEXT(again(&live), "");                 /* … once */
    sample(T_SAMPLE, 1000, 5, 2, 0);
    CHECK_TEXT(again(&live), "4711=31:0 10000000");
    size_t good = file.len;
    buf_byte(&file, 100); /* an event that is longer than the chunk */
    CHECK_TEXT(again(&live), "no flight recording: an event is cut off");
    CHECK_TEXT(told.text, "");
    CHECK_INT(live.chunk_bytes, good); /* it is looked at again */
    file.len = good;
    sample(T_SAMPLE, 1000, 5, 1, 0);
    CHECK_TEXT(again(&live), "4711=31:12 10000000");
    CHECK_TEXT(live_of(&live, STR("")), "");
    CHECK_TEXT(live_of(&live, STR("no chunk")), ""); /* what is behind the last one is not yet one */
    CHECK_TEXT(again(&live), "");
    buf_release(&nothing);
}

static void threads(void)
{
    struct live live = begin_live();
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_SAMPLE, 1000, 9, 1, 0); /* without a number: no thread of the system */
    CHECK_TEXT(again(&live), "4711=31:12 10000000, 4711=31:12 10000000, 0=0:12 10000000");
    CHECK_INT(told.asked, 1);
    CHECK_INT(told.p.threads.len, 3);
    CHECK_STR(profile_text(&told.p, told.p.threads.at[1].name), "worker 1");
    CHECK_INT(told.p.threads.at[1].tid, 31);
    CHECK_INT(told.p.processes.len, 2);
    buf_release(&file);
    profile_release(&told.p);
}

/* A profile that is full: samples are told all the same, as of nobody. */
static void no_room(void)
{
    struct live live = begin_live();
    profile_release(&told.p);
    CHECK(profile_init(&told.p, 0, NULL));
    sample(T_SAMPLE, 1000, 5, 1, 0);
    sample(T_SAMPLE, 1000, 5, 2, 0);
    CHECK_TEXT(again(&live), "4711=0:0 10000000, 4711=0:0 10000000");
    CHECK_TEXT(again(&live), "");
    buf_release(&file);
    profile_release(&told.p);
}

TESTS({"samples are CPU time, with names in every form of text", samples},
      {"other sample types, by name or beside CPU time", others},
      {"what is damaged or of another version is refused", refused},
      {"what is still written is read again and again, each sample once", grows},
      {"what stands behind the size that was written is not read", ahead_of_its_size},
      {"what is new may be of another profile", of_a_window_each},
      {"CPU time that the recorder tells is what counts", cpu_time},
      {"the next chunk follows, and older ones are not read again", next_chunks},
      {"a damaged end costs what it damages, and nothing is told twice", damaged_tail},
      {"threads have the number that they have here", threads},
      {"without room samples are told as of nobody", no_room})
