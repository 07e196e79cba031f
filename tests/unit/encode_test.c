/* src/encode/encode: the registry of formats. */
#include "encode/encode.h"
#include "base/gzip.h"
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
      {"readable formats are recognised by content", readable_formats_are_recognised_by_content},
      {"collapsed stacks may be compressed", collapsed_stacks_may_be_compressed},
      {"files that cannot be read are named", files_that_cannot_be_read_are_named})
