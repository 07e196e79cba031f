/* src/capture/upload/shipment: a delivery as a request, of the size that a service takes. */
#include "capture/upload/shipment.h"
#include "capture/upload/uploads.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/time.h"
#include "encode/encode.h"
#include "sample_profile.h"
#include "deliver.h"
#include "otlp_read.h"

struct bench {
    struct origin origin;
    struct backend_context context;
    struct delivery delivery;
    struct buf file;
    struct shipment shipment;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    b->origin = origin_of_test();
    b->context = (struct backend_context){.origin = &b->origin, .token = STR("t"), .url = {.host = STR("h")}};
    buf_init(&b->file, ROOM);
    return b;
}

static void tear_down(struct bench *b)
{
    shipment_release(&b->shipment);
    buf_release(&b->file);
    free(b);
}

static void fill_many(struct profile *p)
{
    fill_sample(p);
    uint32_t thread = add_thread(p, add_process(p, 40, "many", ""), 40, "many");
    for (unsigned i = 0; i < 1000; i++) {
        char name[64];
        snprintf(name, sizeof name, "function_%u_%llx", i, (unsigned long long)hash_u64(i));
        profile_add(p, thread, add_name(p, 0, name, FRAME_NATIVE), (1 + i % 7) * SAMPLE_PERIOD_NS, 1 + i % 7);
    }
    profile_add_wait(p, thread, 1, 12);
    profile_add_event(p, profile_event_type(p, "page-faults", "count"), thread, 1, 5);
    p->meta.period_ns = SAMPLE_PERIOD_NS;
    p->meta.start_wall_ns = START_NS;
    p->meta.end_wall_ns = END_NS;
}

/* As the back end's windows are kept. */
static void keep(struct bench *b, const struct backend *row)
{
    struct profile p;
    CHECK(profile_init(&p, ROOM, NULL));
    fill_many(&p);
    b->delivery = delivery_of("", STR(""));
    CHECK(shipment_encode(&p, row, &b->file, &b->delivery, &b->err));
    profile_release(&p);
    shipment_init(&b->shipment, row, &b->delivery, ROOM);
}

static uint64_t sum_ns(struct str profile)
{
    struct profile p;
    CHECK(profile_init(&p, ROOM, NULL));
    CHECK(profile_read_whole(&p, profile, NULL, NULL));
    uint64_t sum = profile_sum(&p).cpu_ns;
    profile_release(&p);
    return sum;
}

static bool holds(struct str file, const char *text)
{
    struct buf plain;
    buf_init(&plain, ROOM);
    CHECK(gzip_inflate(file.ptr, file.len, &plain, NULL));
    bool found = find(buf_slice(&plain), text);
    buf_release(&plain);
    return found;
}

static void what_was_encoded_by_the_rules_is_sent_as_it_is(void)
{
    static const char *const names[] = {"studio", "pyroscope", "http", "datadog"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct bench *b = set_up();
        const struct backend *row = backend_by_name(str_of(names[i]));
        keep(b, row);
        CHECK(shipment_build(&b->shipment, &b->context, &b->err));
        CHECK_STR(b->delivery.format, row->format);
        CHECK(b->shipment.delivery.profile.ptr == b->file.ptr && !b->shipment.delivery.shrunk);
        tear_down(b);
    }
}

static void a_file_is_encoded_by_the_rules(void)
{
    struct bench *b = set_up();
    keep(b, backend_by_name(STR("http")));
    CHECK(holds(buf_slice(&b->file), "thread name") && holds(buf_slice(&b->file), "page-faults"));
    b->delivery.is_raw = true;
    shipment_init(&b->shipment, backend_by_name(STR("pyroscope")), &b->delivery, ROOM);
    CHECK(shipment_build(&b->shipment, &b->context, &b->err));
    struct str sent = b->shipment.delivery.profile;
    CHECK(!holds(sent, "worker") && !holds(sent, "page-faults") && holds(sent, "page_faults"));
    CHECK_INT(sum_ns(sent), sum_ns(buf_slice(&b->file)));
    b->delivery.format = STR("");
    shipment_release(&b->shipment);
    shipment_init(&b->shipment, backend_by_name(STR("studio")), &b->delivery, ROOM);
    CHECK(shipment_build(&b->shipment, &b->context, &b->err));
    CHECK_STR(b->shipment.delivery.format, "col");
    tear_down(b);
}

static void after_a_413_half_is_sent_and_the_sums_stay(void)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct bench *b = set_up();
        keep(b, backends[i]);
        CHECK(shipment_build(&b->shipment, &b->context, &b->err));
        for (unsigned k = 0; k < 3; k++) {
            size_t before = b->shipment.request.body.len;
            CHECK(shipment_smaller(&b->shipment, &b->context, &b->err));
            CHECK(shipment_build(&b->shipment, &b->context, &b->err));
            CHECK(b->shipment.request.body.len < before * 3 / 4);
            CHECK(b->shipment.delivery.shrunk);
            CHECK_STR(b->shipment.delivery.format, backends[i]->format);
            struct str sent = b->shipment.delivery.profile;
            if (str_eq(b->delivery.format, str_of(backends[i]->format))) {
                CHECK_INT(sum_ns(sent), sum_ns(buf_slice(&b->file)));
            } else {
                CHECK_INT(sum_of(sent, "samples"), sum_ns(buf_slice(&b->file)));
                CHECK_INT(sum_of(sent, "off_cpu"), 12);
                CHECK_INT(sum_of(sent, "page_faults"), 5);
            }
        }
        tear_down(b);
    }
}

/* The header's line: what it says of the machine and the window stays. */
static void a_smaller_col_says_the_same_of_the_machine(void)
{
    struct bench *b = set_up();
    struct buf col;
    keep(b, backend_by_name(STR("studio")));
    buf_init(&col, ROOM);
    buf_text(&col, "# {\"metadata\": {\"hostname\": \"far\", \"mac_address\": \"x\"}, "
                   "\"metrics\": {\"cpu_avg\": 7, \"mem_avg\": 8}, "
                   "\"pillion\": {\"period_ns\": 10000000, \"uploads\": {\"sent\": 3}}, "
                   "\"start_time\": \"2025-11-20T10:31:04\"}");
    struct str lines = buf_slice(&b->file);
    (void)str_cut(&lines, '\n');
    for (struct str line = str_cut(&lines, '\n'); line.len > 0; line = str_cut(&lines, '\n')) {
        (void)str_cut(&line, ';');
        (void)str_cut(&line, ';');
        buf_printf(&col, "\n;%.*s", (int)line.len, line.ptr);
    }
    b->delivery.profile = buf_slice(&col);
    shipment_init(&b->shipment, backend_by_name(STR("studio")), &b->delivery, ROOM);
    CHECK(shipment_smaller(&b->shipment, &b->context, &b->err));
    struct str sent = b->shipment.delivery.profile, header = str_cut(&sent, '\n');
    header = str_sub(header, 2, header.len);
    CHECK(json_valid(header));
    CHECK_STR(json_member(header, "metadata"), "{\"hostname\": \"far\", \"mac_address\": \"x\"}");
    CHECK_STR(json_member(header, "metrics"), "{\"cpu_avg\": 7, \"mem_avg\": 8}");
    CHECK_STR(json_member(json_member(header, "pillion"), "uploads"), "{\"sent\": 3}");
    CHECK_STR(json_member(header, "start_time"), "\"2025-11-20T10:31:04\"");
    buf_release(&col);
    tear_down(b);
}

/* A profile of `sum` bytes that a runtime made, and a file of its figures. */
static void add_made(struct profile *p, uint32_t pid, uint64_t *sum)
{
    struct profile second;
    struct buf bytes;
    struct sink sink = sink_of_buf(&bytes);
    CHECK(profile_init(&second, ROOM, NULL));
    buf_init(&bytes, ROOM);
    fill_many(&second);
    second.waits.len = second.occurrences.len = second.event_types.len = 0;
    second.meta.value = profile_cstring(&second, "alloc_space");
    second.meta.unit = profile_cstring(&second, "bytes");
    second.meta.period_ns = 1;
    *sum = profile_sum(&second).cpu_ns;
    CHECK(encode_write(encoder_by_name(STR("pprof")), &second, NULL, &sink, NULL));
    profile_release(&second);
    CHECK(runtime_profiles_put(&p->of_runtimes, pid, FRAME_JVM, "heap", &bytes));
    buf_text(&bytes, "[[\"go_num_goroutine\",4]]");
    CHECK(runtime_profiles_put(&p->of_runtimes, pid, FRAME_JVM, "metrics.json", &bytes));
    CHECK_INT(bytes.len, 0);
}

static bool is_studio(const struct backend *row)
{
    return strcmp(row->name, "studio") == 0;
}

/* What runtimes made goes with the window: of the process with the most CPU time, or of the first. */
static void what_a_runtime_made_goes_with_the_window(void)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct bench *b = set_up();
        struct profile p;
        uint64_t sum;
        CHECK(profile_init(&p, ROOM, NULL));
        fill_many(&p);
        add_made(&p, 999999, &sum);
        CHECK_INT(shipment_runtime(&p), 999999);
        add_made(&p, shipment_subject(&p).pid, &sum);
        CHECK_INT(shipment_runtime(&p), shipment_subject(&p).pid);
        b->delivery = delivery_of("", STR(""));
        CHECK(shipment_encode(&p, backends[i], &b->file, &b->delivery, &b->err));
        profile_release(&p);
        CHECK(b->delivery.type.len == 0);
        CHECK_INT(b->delivery.more_count, is_studio(backends[i]) ? 0 : backends[i]->takes_sets ? 2 : 1);
        if (is_studio(backends[i])) {
            tear_down(b);
            continue;
        }
        CHECK_STR(b->delivery.more[0].type, "heap");
        if (backends[i]->takes_sets) {
            CHECK_STR(b->delivery.more[1].type, "metrics.json");
            CHECK_STR(b->delivery.more[1].profile, "[[\"go_num_goroutine\",4]]");
        }
        shipment_init(&b->shipment, backends[i], &b->delivery, ROOM);
        CHECK(shipment_build(&b->shipment, &b->context, &b->err));
        size_t before = b->shipment.request.body.len;
        CHECK(shipment_smaller(&b->shipment, &b->context, &b->err));
        CHECK(shipment_build(&b->shipment, &b->context, &b->err));
        CHECK(b->shipment.request.body.len < before);
        struct str sent = b->shipment.delivery.more[0].profile;
        if (strcmp(backends[i]->format, "otlp") == 0) {
            CHECK_INT(sum_of(sent, "alloc_space"), sum);
        } else {
            struct collapsed_damage damage;
            CHECK(profile_init(&p, ROOM, NULL));
            CHECK(profile_read_type(&p, sent, STR("alloc_space"), &damage, &b->err));
            CHECK_TEXT(b->err.text, "");
            CHECK_INT(profile_sum(&p).cpu_ns, sum);
            CHECK_STR(profile_text(&p, p.meta.unit), "bytes");
            profile_release(&p);
        }
        tear_down(b);
    }
}

/* Of other processes it is sent alone. */
static void what_another_runtime_made_is_a_delivery(void)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        struct bench *b = set_up();
        struct profile p;
        uint64_t sum;
        CHECK(profile_init(&p, ROOM, NULL));
        fill_many(&p);
        add_made(&p, 999999, &sum);
        b->delivery = delivery_of("", STR(""));
        bool is_one = shipment_encode_runtime(&p, 999999, backends[i], &b->file, &b->delivery, &b->err);
        CHECK_INT(is_one, !is_studio(backends[i]));
        CHECK_INT(b->err.kind, ERR_NONE);
        profile_release(&p);
        if (is_one) {
            CHECK_STR(b->delivery.type, "heap");
            CHECK_STR(b->delivery.format, "pprof");
            CHECK_INT(b->delivery.subject.pid, 999999);
            CHECK_STR(b->delivery.subject.language, "java"); /* whose runtime made it, whatever the window is about */
            CHECK_INT(b->delivery.more_count, backends[i]->takes_sets ? 1 : 0);
            shipment_init(&b->shipment, backends[i], &b->delivery, ROOM);
            CHECK(shipment_build(&b->shipment, &b->context, &b->err));
        }
        tear_down(b);
    }
}

static void what_cannot_be_smaller_is_told(void)
{
    static const struct {
        const char *format, *profile;
        enum err_kind kind;
    } all[] = {
        {"col", "# {}\n;sh;main 5", ERR_LIMIT}, {"col", "# {}", ERR_LIMIT},   {"col", "", ERR_MALFORMED},
        {"col", "# {\n;main 5", ERR_MALFORMED},   {"html", "<html>", ERR_UNSUPPORTED},
        {"pprof", "hello, world", ERR_MALFORMED}, {"", "<html>", ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct bench *b = set_up();
        b->delivery = delivery_of(all[i].format, str_of(all[i].profile));
        shipment_init(&b->shipment, backend_by_name(STR("studio")), &b->delivery, ROOM);
        CHECK(!shipment_smaller(&b->shipment, &b->context, &b->err));
        CHECK_INT(b->err.kind, all[i].kind);
        tear_down(b);
    }
}

static void a_damaged_file_is_refused(void)
{
    static const char *const names[] = {"pyroscope", "datadog", "otlp"};
    for (size_t i = 0; i < 3; i++) {
        struct bench *b = set_up();
        keep(b, backend_by_name(str_of(names[i])));
        b->delivery.profile.len /= 2;
        b->delivery.is_raw = true;
        CHECK(!shipment_build(&b->shipment, &b->context, &b->err));
        CHECK_INT(b->err.kind, ERR_MALFORMED);
        tear_down(b);
    }
}

static void a_request_fits_what_the_service_takes(void)
{
    struct bench *b = set_up();
    buf_text(&b->file, "# {\"containers\": [], \"application_metadata_enabled\": true}");
    uint64_t state = 1;
    for (unsigned i = 0; i < 60000; i++) {
        state = hash_u64(state + i); /* names that hardly compress */
        buf_printf(&b->file, "\n0;;sh;f%016llx;g%016llx;h%08x %u", (unsigned long long)state,
                   (unsigned long long)hash_u64(state), i, 1 + i % 7);
    }
    b->delivery = delivery_of("col", buf_slice(&b->file));
    shipment_init(&b->shipment, backend_by_name(STR("studio")), &b->delivery, ROOM);
    CHECK(shipment_build(&b->shipment, &b->context, &b->err));
    CHECK(b->shipment.request.body.len <= 1048576 && b->shipment.request.body.len > 700000);
    CHECK_INT(sum_ns(b->shipment.delivery.profile), sum_ns(buf_slice(&b->file)));
    tear_down(b);
}

static void sending_at_the_end_is_bounded_with_what_came_before(void)
{
    CHECK_INT(uploads_grace_ms(0, false), 5000);
    CHECK_INT(uploads_grace_ms(500, false), 5000);
    CHECK_INT(uploads_grace_ms(1500, false), 4000); /* names of the last window, on a busy machine */
    CHECK_INT(uploads_grace_ms(9000, false), 500);
    CHECK_INT(uploads_grace_ms(0, true), 4500);
    CHECK_INT(uploads_grace_ms(1500, true), 3000);
    CHECK_INT(uploads_grace_ms(9000, true), 500);
}

/* One process of native code, and one with a runtime, each with so many seconds; half of the second is native. */
static struct delivery_subject subject_of(struct profile *p, unsigned native_s, unsigned script_s, bool is_read)
{
    CHECK(profile_init(p, ROOM, NULL));
    uint32_t one = add_process(p, 40, "one", ""), two = add_process(p, 50, "two", "");
    uint32_t first = add_thread(p, one, 40, "one"), second = add_thread(p, two, 50, "two");
    profile_add(p, first, add_name(p, 0, "f", FRAME_NATIVE), native_s * NS_PER_S, 1);
    profile_add(p, second, add_name(p, 0, "g", FRAME_NATIVE), script_s * NS_PER_S / 2, 1);
    profile_add(p, second, add_name(p, 0, "h", FRAME_PYTHON), script_s * NS_PER_S / 2, 1);
    p->processes.at[one].cpu_ns = native_s * NS_PER_S;
    p->processes.at[two].cpu_ns = script_s * NS_PER_S;
    p->processes.at[two].entry = profile_cstring(p, "app\nrun\nscript\nsrv\n");
    p->processes.at[two].runtime = is_read ? profile_cstring(p, "CPython 3.11.9") : 0;
    return shipment_subject(p);
}

static void what_most_of_the_time_is_of_is_the_subject(void)
{
    static const struct {
        unsigned native_s, script_s;
        bool is_read;
        uint32_t pid;
        const char *language, *runtime;
    } cases[] = {
        {1, 8, true, 50, "python", "CPython 3.11.9"}, /* half of it in native code that it calls */
        {8, 1, true, 40, "", ""},
        {4, 3, true, 40, "", ""},
        {0, 3, false, 50, "", ""}, /* nobody knows of a runtime, and half is native */
        {5, 0, true, 40, "", ""},
    };
    struct profile q;
    (void)subject_of(&q, 1, 8, true);
    q.processes.at[2].entry = profile_cstring(&q, "bin\npython3\nexecutable\nsrv\n"); /* of the interpreter */
    CHECK_STR(shipment_subject(&q).entry, "");
    profile_release(&q);
    (void)subject_of(&q, 0, 3, false);
    q.processes.at[2].entry = profile_cstring(&q, "bin\nserver\nexecutable\nsrv\n");
    CHECK_STR(shipment_subject(&q).entry, "bin\nserver\nexecutable\nsrv\n");
    profile_release(&q);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct profile p;
        struct delivery_subject subject = subject_of(&p, cases[i].native_s, cases[i].script_s, cases[i].is_read);
        CHECK_INT(subject.pid, cases[i].pid);
        CHECK_STR(subject.language, cases[i].language);
        CHECK_STR(subject.runtime, cases[i].runtime);
        CHECK_STR(subject.entry, cases[i].pid == 50 ? "app\nrun\nscript\nsrv\n" : "");
        profile_release(&p);
    }
}

TESTS({"what was encoded by the rules is sent as it is", what_was_encoded_by_the_rules_is_sent_as_it_is},
      {"a file is encoded by the rules", a_file_is_encoded_by_the_rules},
      {"after a 413 half is sent, and the sums stay", after_a_413_half_is_sent_and_the_sums_stay},
      {"a smaller .col says the same of the machine", a_smaller_col_says_the_same_of_the_machine},
      {"what a runtime made goes with the window", what_a_runtime_made_goes_with_the_window},
      {"what another runtime made is a delivery", what_another_runtime_made_is_a_delivery},
      {"what most of the time is of is the subject", what_most_of_the_time_is_of_is_the_subject},
      {"what cannot be made smaller is told", what_cannot_be_smaller_is_told},
      {"a damaged file is refused", a_damaged_file_is_refused},
      {"a request fits what the service takes", a_request_fits_what_the_service_takes},
      {"sending at the end is bounded with what came before", sending_at_the_end_is_bounded_with_what_came_before})
