/* src/encode/encode: the registry of formats. */
#include "encode/encode.h"
#include "base/gzip.h"
#include "profile/merge.h"
#include "sample_profile.h"
#include "test.h"

static void named(const char *path, const char *name)
{
    const struct encoder *encoder = encoder_by_extension(str_of(path));
    CHECK_TEXT(encoder == NULL ? "none" : encoder->name, name);
}

static void the_longest_known_ending_decides(void)
{
    named("out/profile.col", "col");
    named("last.html", "html");
    named("a.b.pprof", "pprof");
    named("cpu.pb.gz", "pprof");
    named("x.speedscope.json", "speedscope");
    named("x.json", "speedscope");
    named("x.gecko.json", "gecko");
    named("x.firefox.json", "gecko");
    named("x.trace.json", "trace");
    named("stacks.folded", "col");
    named("x.otlp", "otlp");
    named(".col", "none"); /* a hidden file's name is no ending */
    named("col", "none");
    named("x.svg", "none");
    named("", "none");
}

static void names_find_their_row(void)
{
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        CHECK(encoder_by_name(str_of(encoders[i]->name)) == encoders[i]);
        CHECK(encoders[i]->write != NULL && encoders[i]->extension[0] == '.');
    }
    CHECK(encoder_by_name(STR("svg")) == NULL);
    CHECK(encoder_by_name(STR("")) == NULL);
}

struct files {
    struct profile p;
    struct buf bytes;
};

static struct files *set_up(void)
{
    struct files *f = calloc(1, sizeof *f);
    CHECK(profile_init(&f->p, SAMPLE_MAX_BYTES, NULL));
    buf_init(&f->bytes, SAMPLE_MAX_BYTES);
    return f;
}

static void tear_down(struct files *f)
{
    profile_release(&f->p);
    buf_release(&f->bytes);
    free(f);
}

static uint64_t checksum(const struct profile *p)
{
    uint64_t sum = p->samples.len * 31 + p->frames.len * 17 + p->nodes.len;
    for (size_t i = 1; i < p->samples.len; i++) {
        const struct sample *s = &p->samples.at[i];
        sum = hash_u64(sum ^ s->thread ^ (uint64_t)s->node << 32) + s->cpu_ns + s->count;
    }
    return sum;
}

static void writers_leave_the_samples_alone(void)
{
    struct files *f = set_up();
    fill_sample(&f->p);
    uint64_t before = checksum(&f->p);
    for (unsigned i = 0; encoders[i] != NULL; i++) {
        struct sink sink = sink_of_buf(&f->bytes);
        size_t start = f->bytes.len;
        CHECK(encoders[i]->write(&f->p, NULL, &sink, NULL));
        CHECK(f->bytes.len > start);
        CHECK(checksum(&f->p) == before);
    }
    tear_down(f);
}

static void readable_formats_are_recognised_by_content(void)
{
    static const char *const readable[] = {"col", "pprof"};
    for (unsigned i = 0; i < 2; i++) {
        struct files *a = set_up(), *b = set_up();
        struct collapsed_damage damage;
        struct sink sink = sink_of_buf(&a->bytes);
        fill_sample(&a->p);
        CHECK(encoder_by_name(str_of(readable[i]))->write(&a->p, NULL, &sink, NULL));
        CHECK(profile_read(&b->p, buf_slice(&a->bytes), &damage, NULL));
        uint64_t cpu_ns = profile_sum(&b->p).cpu_ns;
        CHECK(cpu_ns == 485000000 || cpu_ns == 490000000); /* whole samples in a .col */
        tear_down(a);
        tear_down(b);
    }
}

static void collapsed_stacks_may_be_compressed(void)
{
    struct files *f = set_up();
    struct collapsed_damage damage;
    struct gzip *gzip = malloc(sizeof *gzip);
    struct sink sink = sink_of_buf(&f->bytes);
    CHECK(gzip_open(gzip, &sink, NULL));
    struct sink plain = gzip_sink(gzip);
    CHECK(sink_write(&plain, "a;b 3\nc;d 4", 11, NULL) && gzip_finish(gzip, NULL));
    gzip_release(gzip);
    free(gzip);
    CHECK(profile_read(&f->p, buf_slice(&f->bytes), &damage, NULL));
    CHECK_INT(profile_sum(&f->p).count, 7);
    tear_down(f);
}

/* ---- a profile in another ---- */

static void fill_beside_cpu(struct profile *p)
{
    uint32_t thread = 1, node = 1;
    uint32_t labelled = profile_labelled(p, thread, (struct str[PROFILE_LABELS]){STR("held"), STR("task-7"), STR("")});
    const struct source_line lines[] = {{STR("leaf"), STR("leaf"), STR("/src/a.c"), 3},
                                        {STR("mid"), STR("mid"), STR("/src/a.c"), 9},
                                        {STR("real"), STR("real"), STR("/src/b.c"), 27}};
    struct frame inlined = {.module = 1, .address = 0x5500, .kind = FRAME_NATIVE};
    uint32_t frame = profile_frame(p, &inlined);
    profile_name_inlined(p, frame, lines, 3);
    profile_add(p, labelled, profile_child(p, node, frame), 7 * SAMPLE_PERIOD_NS, 7);
    profile_add_wait(p, thread, node, 123456789);
    profile_add_event(p, profile_event_type(p, "page-faults", "count"), labelled, node, 41);
}

static struct str written(const struct encoder *encoder, struct profile *p, struct buf *out)
{
    struct sink sink = sink_of_buf(out);
    CHECK(encoder->write(p, NULL, &sink, NULL));
    return buf_slice(out);
}

/* What a pprof file of it holds, as collapsed stacks. */
static struct str read_again(struct profile *p, struct buf *out)
{
    struct files *again = set_up();
    CHECK(profile_read_whole(&again->p, written(encoder_by_name(STR("pprof")), p, out), NULL, NULL));
    buf_clear(out);
    struct str text = written(encoder_by_name(STR("col")), &again->p, out);
    CHECK_INT(again->p.waits.len, 1);
    CHECK_INT(again->p.occurrences.len, 1);
    tear_down(again);
    return text;
}

static void merged_with_nothing_a_profile_is_written_as_it_was(void)
{
    struct files *from = set_up(), *into = set_up();
    fill_sample(&from->p);
    fill_beside_cpu(&from->p);
    CHECK(profile_merge(&into->p, &from->p, NULL));
    const char *const names[] = {"col", "html", NULL};
    for (unsigned i = 0; names[i] != NULL; i++) {
        const struct encoder *encoder = encoder_by_name(str_of(names[i]));
        buf_clear(&from->bytes);
        buf_clear(&into->bytes);
        CHECK(str_eq(written(encoder, &from->p, &from->bytes), written(encoder, &into->p, &into->bytes)));
    }
    buf_clear(&from->bytes);
    buf_clear(&into->bytes);
    CHECK(str_eq(read_again(&from->p, &from->bytes), read_again(&into->p, &into->bytes)));
    tear_down(from);
    tear_down(into);
}

static void merged_twice_all_sums_are_double(void)
{
    struct files *from = set_up(), *into = set_up();
    fill_sample(&from->p);
    fill_beside_cpu(&from->p);
    CHECK(profile_merge(&into->p, &from->p, NULL));
    size_t samples = into->p.samples.len, frames = into->p.frames.len;
    CHECK(profile_merge(&into->p, &from->p, NULL));
    CHECK_INT(into->p.samples.len, samples);
    CHECK_INT(into->p.frames.len, frames);
    struct profile_totals once = profile_sum(&from->p), twice = profile_sum(&into->p);
    CHECK_INT(twice.cpu_ns, 2 * once.cpu_ns);
    CHECK_INT(twice.count, 2 * once.count);
    CHECK_INT(twice.process_cpu_ns, 2 * once.process_cpu_ns);
    CHECK_INT(into->p.waits.at[0].wait_ns, 2 * 123456789);
    CHECK_INT(into->p.occurrences.at[0].amount, 2 * 41);
    tear_down(from);
    tear_down(into);
}

static void what_does_not_fit_into_the_merged_one_is_lost_and_not_gone(void)
{
    struct files *from = set_up();
    struct profile small;
    fill_sample(&from->p);
    for (size_t bytes = 0; bytes < 20000; bytes += 500) {
        CHECK(profile_init(&small, bytes, NULL));
        CHECK(profile_merge(&small, &from->p, NULL));
        CHECK_INT(profile_sum(&small).cpu_ns, profile_sum(&from->p).cpu_ns);
        profile_release(&small);
    }
    tear_down(from);
}

static void refused(const char *bytes, enum err_kind kind)
{
    struct files *f = set_up();
    struct collapsed_damage damage;
    struct err err = {0};
    CHECK(!profile_read(&f->p, str_of(bytes), &damage, &err));
    CHECK_INT(err.kind, kind);
    tear_down(f);
}

static void files_that_cannot_be_read_are_named(void)
{
    refused("", ERR_MALFORMED);
    refused("<!doctype html>", ERR_UNSUPPORTED);
    refused("{\"$schema\": 1}", ERR_UNSUPPORTED);
    refused("\x28\xb5\x2f\xfd\x01", ERR_UNSUPPORTED);
    refused("\x7f" "ELF\x02\x01\x01", ERR_MALFORMED);
    refused("\x1f\x8b\x08 broken", ERR_MALFORMED);
    refused("hello", ERR_MALFORMED);
}

TESTS({"the longest known ending decides", the_longest_known_ending_decides},
      {"names find their row", names_find_their_row},
      {"writers leave the samples alone", writers_leave_the_samples_alone},
      {"merged with nothing a profile is written as it was", merged_with_nothing_a_profile_is_written_as_it_was},
      {"merged twice all sums are double", merged_twice_all_sums_are_double},
      {"what does not fit into the merged one is lost and not gone",
       what_does_not_fit_into_the_merged_one_is_lost_and_not_gone},
      {"readable formats are recognised by content", readable_formats_are_recognised_by_content},
      {"collapsed stacks may be compressed", collapsed_stacks_may_be_compressed},
      {"files that cannot be read are named", files_that_cannot_be_read_are_named})
