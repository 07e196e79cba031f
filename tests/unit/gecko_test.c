/* src/encode/gecko and gecko_read: the document, the way back, and forms of others. */
#include "base/json.h"
#include "encode/gecko.h"
#include "encode/gecko_read.h"
#include "inlined_frame.h"
#include "json_element.h"
#include "sample_profile.h"
#include "test.h"

#include <stdio.h>

enum { MS = 1000000 };

struct bench {
    struct profile p, back;
    struct buf text;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    CHECK(profile_init(&b->p, SAMPLE_MAX_BYTES, NULL));
    CHECK(profile_init(&b->back, SAMPLE_MAX_BYTES, NULL));
    buf_init(&b->text, SAMPLE_MAX_BYTES);
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    profile_release(&b->back);
    buf_release(&b->text);
    free(b);
}

static struct str write_json(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->text);
    buf_clear(&b->text);
    CHECK(gecko_write(&b->p, &sink, &b->err));
    CHECK(json_valid(buf_slice(&b->text)));
    return buf_slice(&b->text);
}

static bool read_text(struct bench *b, const char *text, const char *type)
{
    return gecko_read(&b->back, str_of(text), str_of(type), &b->err);
}

static void tables_are_columns(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct str json = write_json(b), shared = json_member(json, "shared");
    struct str stacks = json_member(shared, "stackTable");
    CHECK_STR(json_member(stacks, "frame"), "[0,1,2,3,4,5,6]");
    CHECK_STR(json_member(stacks, "prefix"), "[null,0,0,0,null,4,null]");
    CHECK_STR(json_member(stacks, "length"), "7");
    struct str frames = json_member(shared, "frameTable");
    CHECK_STR(json_member(frames, "address"), "[4352,8704,8720,-1,-1,-1,-1]");
    CHECK_STR(json_member(frames, "category"), "[0,0,0,4,2,1,9]");
    CHECK_STR(json_member(frames, "func"), "[0,1,1,2,3,4,5]");
    CHECK_STR(json_member(element(json_member(json, "libs"), 1), "breakpadId"),
              "\"01EFCDAB4523896700000000000000000\"");
    struct str thread = element(json_member(json, "threads"), 1), samples = json_member(thread, "samples");
    CHECK_STR(json_member(thread, "name"), "\"worker\"");
    CHECK_STR(json_member(thread, "processName"), "\"web\"");
    CHECK_STR(json_member(thread, "pid"), "\"12\"");
    CHECK_STR(json_member(thread, "isMainThread"), "false");
    CHECK_STR(json_member(samples, "stack"), "[3]");
    CHECK_STR(json_member(samples, "time"), "[0.000]");
    CHECK_STR(json_member(samples, "weight"), "[160.000000]");
    CHECK_STR(json_member(samples, "threadCPUDelta"), "[160000000]");
    CHECK_STR(json_member(samples, "weightType"), "\"tracing-ms\"");
    CHECK_STR(json_member(json_member(json_member(json, "meta"), "pillion"), "is_timed"), "false");
    tear_down(b);
}

static void inlined_functions_are_stacks_of_one_address(void)
{
    struct bench *b = set_up();
    uint32_t t = add_thread(&b->p, add_process(&b->p, 1, "app", ""), 1, "app");
    uint32_t main_node = add_name(&b->p, 0, "main", FRAME_NATIVE);
    uint32_t f = inlined_frame(&b->p, 0, 0x20, "leaf", 2, "real", 4, NULL);
    uint32_t node = profile_child(&b->p, main_node, f);
    profile_add(&b->p, t, profile_child(&b->p, node, f), 5, 1);
    struct str shared = json_member(write_json(b), "shared");
    CHECK_STR(json_member(json_member(shared, "stackTable"), "frame"), "[0,2,1,2,1]");
    CHECK_STR(json_member(json_member(shared, "stackTable"), "prefix"), "[null,0,1,2,3]");
    CHECK_STR(json_member(json_member(shared, "frameTable"), "inlineDepth"), "[0,1,0]");
    CHECK_STR(json_member(json_member(shared, "frameTable"), "line"), "[null,2,4]");
    tear_down(b);
}

/* The moments of the other profile's samples of the same place are these. */
static void check_same_moments(struct bench *b)
{
    moments_sort(&b->back.moments);
    CHECK_INT(b->back.moments.list.len, b->p.moments.list.len);
    CHECK_INT(b->back.moments.step_ns, b->p.moments.step_ns);
    for (size_t i = 0; i < b->p.moments.list.len && i < b->back.moments.list.len; i++) {
        const struct moment *moment = &b->p.moments.list.at[i];
        uint64_t weight = 0;
        vec_each(&b->back.moments.list, back)
        {
            const struct sample *s = &b->p.samples.at[moment->sample], *t = &b->back.samples.at[back->sample];
            if (back->step == moment->step && s->cpu_ns == t->cpu_ns) { /* no two sums are equal here */
                weight += back->weight;
            }
        }
        CHECK_INT(weight, moment->weight);
    }
}

static void what_is_written_is_read_again(void)
{
    struct bench *b = set_up();
    profile_keep_moments(&b->p, 0);
    fill_sample(&b->p);
    uint32_t t = add_thread(&b->p, add_process(&b->p, 0, "no pid", ""), 0, "no pid");
    uint32_t one = add_name(&b->p, 0, "one", FRAME_NATIVE), two = add_name(&b->p, one, "two (a.py:3)", FRAME_PYTHON);
    for (unsigned i = 0; i < 50; i++) {
        profile_add_at(&b->p, t, i % 3 == 0 ? one : two, 11 * MS + 1, 1, (uint64_t)i * 10 * MS + 9 * MS);
    }
    struct str json = write_json(b);
    CHECK(gecko_read(&b->back, json, STR(""), &b->err));
    struct profile_totals p = profile_sum(&b->p), back = profile_sum(&b->back);
    CHECK_INT(back.cpu_ns, p.cpu_ns);
    CHECK_INT(back.account_ns[ACCOUNT_LOST], 25 * MS);
    CHECK_INT(back.leaf_ns[FRAME_PYTHON], p.leaf_ns[FRAME_PYTHON]);
    CHECK_INT(back.leaf_ns[FRAME_KERNEL], p.leaf_ns[FRAME_KERNEL]);
    CHECK_INT(b->back.meta.period_ns, SAMPLE_PERIOD_NS);
    CHECK_INT(b->back.meta.start_wall_ns, b->p.meta.start_wall_ns);
    CHECK_INT(b->back.processes.len, b->p.processes.len);
    tear_down(b);
}

static void moments_come_back(void)
{
    struct bench *b = set_up();
    profile_keep_moments(&b->p, 0);
    uint32_t t = add_thread(&b->p, add_process(&b->p, 7, "app", ""), 7, "app");
    uint32_t one = add_name(&b->p, 0, "one", FRAME_NATIVE), two = add_name(&b->p, one, "two", FRAME_NATIVE);
    for (unsigned i = 0; i < 50; i++) { /* more than there is room for: 11 ms in 10 ms */
        profile_add_at(&b->p, t, i % 3 == 0 ? one : two, 11 * MS, 1, (uint64_t)i * 10 * MS + 9 * MS);
    }
    struct str json = write_json(b);
    CHECK(gecko_read(&b->back, json, STR(""), &b->err));
    check_same_moments(b);
    tear_down(b);
}

static const char processed[] =
    "{\"meta\":{\"interval\":2,\"startTime\":5000,\"product\":\"shop\",\"categories\":[{\"name\":\"User\"},"
    "{\"name\":\"Kernel\"}],\"sampleUnits\":{\"time\":\"ms\",\"threadCPUDelta\":\"\\u00b5s\"}},"
    "\"libs\":[],\"threads\":["
    "{\"name\":\"a\",\"processName\":\"shop\",\"pid\":\"12\",\"tid\":13,"
    "\"stringArray\":[\"main\",\"0x1f\",\"libc.so.6\",\"/a.py\"],"
    "\"resourceTable\":{\"length\":1,\"lib\":[0],\"name\":[2]},"
    "\"funcTable\":{\"name\":[0,1],\"resource\":[-1,0],\"fileName\":[3,null],\"isJS\":[false,false]},"
    "\"frameTable\":{\"func\":[0,1],\"line\":[7,null],\"category\":[0,1]},"
    "\"stackTable\":{\"frame\":[0,1],\"prefix\":[null,0]},"
    "\"samples\":{\"stack\":[0,1,null,1],\"timeDeltas\":[1.5,2,10,20],\"weight\":[1,1,1,1],\"weightType\":\"samples\","
    "\"threadCPUDelta\":[null,1500,0,2.5]%s}}]}";

static void columns_of_one_thread_are_read(void)
{
    struct bench *b = set_up();
    char text[2048];
    snprintf(text, sizeof text, processed, "");
    CHECK(read_text(b, text, ""));
    const struct profile *p = &b->back;
    struct profile_totals sum = profile_sum(p);
    CHECK_INT(sum.cpu_ns, 1502500);
    CHECK_INT(sum.count, 2);
    CHECK_INT(sum.leaf_ns[FRAME_KERNEL], 1502500);
    CHECK_INT(p->samples.len, 2);
    struct node node = p->nodes.at[p->samples.at[1].node];
    uint32_t leaf = node.frame, root = p->nodes.at[node.parent].frame;
    CHECK_STR(profile_text(p, p->frames.at[leaf].name), "[libc.so.6+0x1f]");
    CHECK_STR(profile_text(p, p->frames.at[root].file), "/a.py");
    CHECK_INT(p->frames.at[root].kind, FRAME_PYTHON);
    CHECK_INT(p->frames.at[root].line, 7);
    CHECK_STR(profile_text(p, p->meta.service), "shop");
    CHECK_INT(p->processes.at[1].pid, 12);
    CHECK_INT(p->moments.list.len, 2);
    CHECK_INT(p->moments.list.at[1].step, 3); /* 33.5 ms */
    tear_down(b);
}

static void tables_of_rows_are_read(void)
{
    struct bench *b = set_up();
    CHECK(read_text(
        b,
        "{\"meta\":{\"interval\":4,\"categories\":[{\"name\":\"User\"},{\"name\":\"Kernel\"}]},"
        "\"libs\":[],\"processes\":["
        "{\"meta\":{\"interval\":1},\"threads\":[]}],"
        "\"threads\":[{\"tid\":3,\"pid\":2,\"name\":\"w\",\"processName\":\"web\","
        "\"stringTable\":[\"main (in web)\",\"do_it (in [kernel.kallsyms])\"],"
        "\"frameTable\":{\"schema\":{\"location\":0,\"line\":4,\"category\":6},"
        "\"data\":[[0,false,0,null,8,null,0],[1,false,0,null,null,null,1]]},"
        "\"stackTable\":{\"schema\":{\"prefix\":0,\"frame\":1},\"data\":[[null,0],[0,1]]},"
        "\"samples\":{\"schema\":{\"stack\":0,\"time\":1,\"responsiveness\":2},"
        "\"data\":[[1,10.5,0],[1,30],[null,31],[0,50,1]]}}]}",
        ""));
    const struct profile *p = &b->back;
    CHECK_INT(profile_sum(p).cpu_ns, 12 * MS);
    CHECK_INT(profile_sum(p).leaf_ns[FRAME_KERNEL], 8 * MS);
    CHECK_STR(profile_text(p, p->frames.at[1].name), "main");
    CHECK_INT(p->frames.at[1].line, 8);
    CHECK_STR(profile_text(p, p->processes.at[1].name), "web");
    CHECK_INT(p->moments.list.len, 3);
    tear_down(b);
}

static void bytes_are_a_type(void)
{
    struct bench *b = set_up();
    const char text[] = "{\"meta\":{},\"threads\":[{\"stringArray\":[\"f\"],\"funcTable\":{\"name\":[0]},"
                        "\"frameTable\":{\"func\":[0]},\"stackTable\":{\"frame\":[0],\"prefixOffset\":[0]},"
                        "\"samples\":{\"stack\":[0],\"time\":[0],"
                        "\"weight\":[4096],\"weightType\":\"bytes\"}}]}";
    CHECK(!read_text(b, text, "cpu"));
    CHECK_STR(str_of(b->err.text), "there is no sample type cpu in it; there is: bytes");
    CHECK(read_text(b, text, "bytes"));
    CHECK_INT(profile_sum(&b->back).cpu_ns, 4096);
    CHECK_STR(profile_text(&b->back, b->back.meta.unit), "bytes");
    tear_down(b);
}

static void what_is_wrong_is_said(void)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"{\"meta\":{},\"threads\":[}", "it is not valid JSON"},
        {"{\"a\":1}", "JSON of another form than the Firefox Profiler's cannot be read"},
        {"{\"meta\":{},\"threads\":[{\"stringArray\":[\"f\"],\"funcTable\":{\"name\":[0]},"
         "\"frameTable\":{\"func\":[1]}}]}",
         "no valid Firefox profile: its table of frames contradicts itself"},
        {"{\"meta\":{},\"threads\":[{\"stringArray\":[\"f\"],\"funcTable\":{\"name\":[0]},"
         "\"frameTable\":{\"func\":[0]},\"stackTable\":{\"frame\":[0],\"prefix\":[0]}}]}",
         "no valid Firefox profile: its table of stacks contradicts itself"},
        {"{\"meta\":{},\"threads\":[{\"samples\":{\"stack\":[0]}}]}",
         "no valid Firefox profile: its table of samples contradicts itself"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct bench *b = set_up();
        CHECK(!read_text(b, rows[i].text, ""));
        CHECK_STR(str_of(b->err.text), rows[i].sentence);
        tear_down(b);
    }
}

static void names_of_any_bytes_are_valid_json(void)
{
    struct bench *b = set_up();
    char any_bytes[ANY_BYTES];
    fill_any_bytes(any_bytes);
    uint32_t thread = add_thread(&b->p, add_process(&b->p, 1, "a\"b", ""), 1, "\xff\n");
    profile_add(&b->p, thread, add_name(&b->p, 0, any_bytes, FRAME_NATIVE), 1, 1);
    CHECK_STR(json_member(element(json_member(write_json(b), "threads"), 0), "name"), "\"\\ufffd\\n\"");
    tear_down(b);
}

static void an_empty_profile_is_a_document(void)
{
    struct bench *b = set_up();
    CHECK_STR(json_member(write_json(b), "threads"), "[]");
    CHECK(gecko_read(&b->back, buf_slice(&b->text), STR(""), &b->err));
    tear_down(b);
}

static void a_full_sink_is_an_error(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    size_t whole = write_json(b).len;
    for (size_t max = 1; max < whole; max += 97) {
        struct buf small;
        buf_init(&small, max);
        struct sink sink = sink_of_buf(&small);
        CHECK(!gecko_write(&b->p, &sink, &b->err));
        buf_release(&small);
    }
    tear_down(b);
}

TESTS({"tables are columns", tables_are_columns},
      {"inlined functions are stacks of one address", inlined_functions_are_stacks_of_one_address},
      {"what is written is read again", what_is_written_is_read_again},
      {"moments come back", moments_come_back},
      {"columns of one thread are read", columns_of_one_thread_are_read},
      {"tables of rows are read", tables_of_rows_are_read},
      {"bytes are a sample type", bytes_are_a_type},
      {"what is wrong is said", what_is_wrong_is_said},
      {"names of any bytes are valid JSON", names_of_any_bytes_are_valid_json},
      {"an empty profile is a document", an_empty_profile_is_a_document},
      {"a full sink is an error", a_full_sink_is_an_error})
