/* src/encode/otlp and src/deliver/otlp: a profile by its bytes in every release, what is added to
 * it, what answers mean. */
#include "base/gzip.h"
#include "deliver/backend_private.h"
#include "capture/upload/shipment.h"
#include "encode/otlp.h"
#include "sample_profile.h"
#include "otlp_read.h"
#include "deliver.h"

struct bench {
    struct profile p;
    struct origin origin;
    struct backend_context context;
    struct delivery delivery;
    struct http_request request;
    struct buf file, text, plain;
    struct err err;
};

static const struct backend *row(void)
{
    return backend_by_name(STR("otlp"));
}

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    buf_init(&b->file, ROOM);
    buf_init(&b->text, ROOM);
    buf_init(&b->plain, ROOM);
    CHECK(profile_init(&b->p, ROOM, NULL));
    b->origin = (struct origin){.service = STR("shop")};
    b->context = (struct backend_context){.origin = &b->origin, .url = {.host = STR("h")}};
    return b;
}

static void tear_down(struct bench *b)
{
    profile_release(&b->p);
    buf_release(&b->file);
    buf_release(&b->text);
    buf_release(&b->plain);
    free(b);
}

static struct str encoded(struct bench *b)
{
    struct sink sink = sink_of_buf(&b->file);
    buf_clear(&b->file);
    CHECK(otlp_write(&b->p, NULL, &sink, &b->err));
    b->delivery = delivery_of("otlp", buf_slice(&b->file));
    return buf_slice(&b->file);
}

/* What is sent of the window, which is kept as pprof, when it is unpacked. */
static struct str requested(struct bench *b)
{
    struct buf kept;
    struct delivery delivery = delivery_of("", STR(""));
    buf_init(&kept, ROOM);
    buf_clear(&b->text);
    buf_clear(&b->plain);
    CHECK(shipment_encode(&b->p, row(), &kept, &delivery, &b->err));
    CHECK_STR(delivery.format, "pprof");
    struct shipment shipment;
    shipment_init(&shipment, row(), &delivery, ROOM);
    CHECK(shipment_build(&shipment, &b->context, &b->err));
    buf_str(&b->text, shipment.request.body);
    b->request = shipment.request;
    CHECK(gzip_inflate(b->text.ptr, b->text.len, &b->plain, &b->err));
    shipment_release(&shipment);
    buf_release(&kept);
    return buf_slice(&b->plain);
}

/* One thread of one process, 5 ns in one function of Python's. */
static void fill_tiny(struct profile *p)
{
    uint32_t name = profile_cstring(p, "sh");
    struct process process = {.pid = 7, .name = name};
    struct frame f = {.kind = FRAME_PYTHON, .name = profile_cstring(p, "f")};
    uint32_t thread = profile_thread(p, profile_process(p, &process), 7, name);
    profile_add(p, thread, profile_child(p, 0, profile_frame(p, &f)), 5, 1);
    p->meta.start_wall_ns = 1;
    p->meta.end_wall_ns = 3;
}

static bool bytes_are(struct str actual, const char *bytes, size_t len)
{
    bool ok = actual.len == len && memcmp(actual.ptr, bytes, len) == 0;
    for (size_t i = 0; !ok && i < actual.len; i++) {
        printf("%s%02x", i == 0 ? "# " : " ", (unsigned char)actual.ptr[i]);
    }
    printf(ok ? "" : "\n");
    return ok;
}
#define BYTES_ARE(actual, literal) CHECK(bytes_are(actual, literal, sizeof(literal) - 1))

static const char tables[] =
    "\x0a\0"                                       /* mappings: none but the zero value */
    "\x12\0\x12\x07\x1a\x02\x08\x01\x22\x01\x01"   /* location 1: of function 1; attribute 1 */
    "\x1a\0\x1a\x02\x08\x02"                       /* function 1: its name is string 2 */
    "\x22\0"                                       /* links: none but the zero value */
    "\x2a\0\x2a\x12profile.frame.type\x2a\x01" "f\x2a\x0bthread.name\x2a\x09thread.id"
    "\x2a\x07samples\x2a\x05" "count\x2a\x03" "cpu\x2a\x0bnanoseconds"
    "\x32\0\x32\x0d\x08\x01\x12\x09\x0a\x07" "cpython" /* attribute 1: string 1 is a text */
    "\x32\x08\x08\x03\x12\x04\x0a\x02sh\x32\x06\x08\x04\x12\x02\x18\x07" /* thread.id is a number */
    "\x3a\0\x3a\x03\x0a\x01\x01";                  /* stack 1: location 1 */

static void the_tables_are_these_bytes(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    BYTES_ARE(part(encoded(b), 2, 0), tables);
    BYTES_ARE(part(requested(b), 2, 0), tables); /* and so they are sent */
    struct str resource = part(part(encoded(b), 1, 0), 1, 0);
    BYTES_ARE(resource, "\x0a\x11\x0a\x0bprocess.pid\x12\x02\x18\x07"
                        "\x0a\x1f\x0a\x17process.executable.name\x12\x04\x0a\x02sh");
    CHECK_STR(part(part(encoded(b), 1, 0), 3, 0), "https://opentelemetry.io/schemas/1.37.0");
    b->p.processes.at[1].appid = profile_cstring(&b->p, "x: y");
    resource = part(part(encoded(b), 1, 0), 1, 0);
    BYTES_ARE(part(resource, 1, 2), "\x0a\x0dpillion.appid\x12\x06\x0a\x04x: y");
    tear_down(b);
}

/* The profile without its id, whose 16 bytes stand at the end. */
static struct str profile_in(struct str request)
{
    struct str profile = part(part(part(request, 1, 0), 2, 0), 2, 0);
    return str_sub(profile, 0, profile.len - 16);
}

static void a_profile_has_the_numbers_of_release_1_10(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    static const char newest[] =
        "\x0a\x04\x08\x05\x10\x06"                     /* samples/count */
        "\x12\x09\x08\x01\x12\x02\x02\x03\x22\x01\x05" /* stack 1, attributes 2 and 3, 5 ns */
        "\x19\x01\0\0\0\0\0\0\0\x20\x02"               /* since 1 ns, for 2 */
        "\x2a\x04\x08\x07\x10\x08\x30\x01\x3a\x10";    /* each is 1 cpu/nanoseconds; the id */
    BYTES_ARE(profile_in(encoded(b)), newest);
    BYTES_ARE(profile_in(requested(b)), newest);
    tear_down(b);
}

static void the_id_is_the_same_whenever_it_is_encoded(void)
{
    struct bench *b = set_up();
    char first[16];
    fill_tiny(&b->p);
    struct str id = part(part(part(part(encoded(b), 1, 0), 2, 0), 2, 0), 7, 0);
    CHECK_INT(id.len, 16);
    memcpy(first, id.ptr, 16);
    id = part(part(part(part(requested(b), 1, 0), 2, 0), 2, 0), 7, 0);
    CHECK(memcmp(first, id.ptr, 16) == 0);
    b->p.meta.end_wall_ns++;
    id = part(part(part(part(encoded(b), 1, 0), 2, 0), 2, 0), 7, 0);
    CHECK(memcmp(first, id.ptr, 16) != 0);
    tear_down(b);
}

static void every_process_is_a_resource_and_no_time_is_lost(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    struct str request = encoded(b), dictionary = part(request, 2, 0);
    CHECK_INT(sum_of(request, "samples"), 485000000); /* 46 samples, 25 ms "[lost]" */
    CHECK_INT(parts(request, 1), 2);
    CHECK(otlp_rows_are_unique(dictionary));
    /* web has a container's name, db none */
    CHECK(find(part(part(request, 1, 0), 1, 0), "container.name"));
    CHECK(find(part(part(request, 1, 0), 1, 0), "shop"));
    CHECK(!find(part(part(request, 1, 1), 1, 0), "container."));
    CHECK(find(dictionary, "process.executable.build_id.gnu"));
    CHECK(find(dictionary, "abcdef0123456789"));
    CHECK(find(dictionary, "[kernel.kallsyms]") && !find(dictionary, "[python]"));
    tear_down(b);
}

static void processes_without_a_pid_are_one_per_container(void)
{
    struct bench *b = set_up();
    static const char *const containers[] = {"", "0123456789abcdef", "", "0123456789abcdef"};
    struct frame f = {.kind = FRAME_NATIVE, .name = profile_cstring(&b->p, "main")};
    uint32_t node = profile_child(&b->p, 0, profile_frame(&b->p, &f));
    for (unsigned i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%u", i);
        struct process process = {.owner = i + 1, .name = profile_cstring(&b->p, name),
                                  .container = profile_cstring(&b->p, containers[i])};
        uint32_t id = profile_process(&b->p, &process);
        profile_add(&b->p, profile_thread(&b->p, id, 0, process.name), node, 10, 1);
    }
    struct str request = encoded(b);
    CHECK_INT(parts(request, 1), 2);
    CHECK_INT(part(part(request, 1, 0), 1, 0).len, 0);
    CHECK(find(part(part(request, 1, 1), 1, 0), "container.id"));
    CHECK_INT(sum_of(request, "samples"), 40);
    tear_down(b);
}

static void what_looks_the_same_is_there_once(void)
{
    struct bench *b = set_up();
    static const char *const names[] = {"x\xff", "x\xfe"}; /* both are shown as x and U+FFFD */
    struct process process = {.pid = 1};
    uint32_t thread = profile_thread(&b->p, profile_process(&b->p, &process), 1, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct frame f = {.kind = FRAME_NATIVE, .name = profile_cstring(&b->p, names[i])};
        struct frame leaf = {.kind = FRAME_NATIVE, .name = profile_cstring(&b->p, "leaf")};
        uint32_t node = profile_child(&b->p, 0, profile_frame(&b->p, &f));
        profile_add(&b->p, thread, profile_child(&b->p, node, profile_frame(&b->p, &leaf)), 3, 1);
    }
    struct str request = encoded(b), dictionary = part(request, 2, 0);
    CHECK(otlp_rows_are_unique(dictionary));
    CHECK_INT(parts(dictionary, 7), 2); /* stacks: none, and the one */
    CHECK_INT(parts(part(part(part(request, 1, 0), 2, 0), 2, 0), 2), 1);
    CHECK_INT(sum_of(request, "samples"), 6);
    tear_down(b);
}

static void waiting_and_events_are_profiles_of_their_own(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    uint32_t node = b->p.samples.at[1].node;
    uint32_t faults = profile_event_type(&b->p, "page-faults", "count");
    profile_add_wait(&b->p, 1, node, 20);
    profile_add_event(&b->p, faults, 1, node, 4);
    struct str request = encoded(b);
    CHECK_INT(sum_of(request, "samples"), 5);
    CHECK_INT(sum_of(request, "off_cpu"), 20);
    CHECK_INT(sum_of(request, "wall"), 25);
    CHECK_INT(sum_of(request, "page_faults"), 4); /* a dash is refused by some */
    CHECK_INT(parts(part(part(request, 1, 0), 2, 0), 2), 4);
    struct str off_cpu = part(part(part(request, 1, 0), 2, 0), 2, 1);
    CHECK(parts(off_cpu, 5) == 0 && parts(off_cpu, 6) == 0); /* by no period it is known */
    tear_down(b);
}

static void a_file_of_something_else_says_what_it_counts(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    b->p.meta.value = profile_cstring(&b->p, "alloc-space");
    b->p.meta.unit = profile_cstring(&b->p, "bytes");
    struct str request = encoded(b);
    CHECK_INT(sum_of(request, "alloc_space"), 5);
    CHECK_INT(sum_of(request, "samples"), 0);
    tear_down(b);
}

static void a_window_in_which_nothing_ran_has_a_profile(void)
{
    struct bench *b = set_up();
    struct str request = encoded(b);
    CHECK_INT(parts(request, 1), 1);
    CHECK_INT(parts(part(part(part(request, 1, 0), 2, 0), 2, 0), 2), 0);
    CHECK_INT(sum_of(requested(b), "samples"), 0);
    tear_down(b);
}

/* ---- the request ---- */

/* The value of a resource's attribute; "(none)" without it. */
static struct str attribute(struct str resource, const char *key)
{
    for (unsigned i = 0; i < parts(resource, 1); i++) {
        struct str pair = part(resource, 1, i);
        if (str_eq(part(pair, 1, 0), str_of(key))) {
            return part(part(pair, 2, 0), 1, 0);
        }
    }
    return STR("(none)");
}

static void a_request_says_where_it_comes_from(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    (void)encoded(b);
    b->origin = origin_of_test();
    b->origin.tags[0] = (struct fact){STR("env"), STR("prod")};
    b->origin.tags[1] = (struct fact){STR("team"), STR("a%2Cb%zz")};
    b->origin.tags[2] = (struct fact){STR("host.name"), STR("other")};
    b->origin.tag_count = 3;
    b->origin.container_id = STR("ours");
    b->origin.resource[0] = (struct fact){STR("cloud.region"), STR("eu")};
    b->origin.resource[1] = (struct fact){STR("process.pid"), STR("1")};
    b->origin.resource_count = 2;
    struct str request = requested(b);
    for (unsigned i = 0; i < 2; i++) {
        struct str resource = part(part(request, 1, i), 1, 0);
        CHECK_STR(attribute(resource, "service.name"), "shop");
        CHECK_STR(attribute(resource, "host.name"), "web-1");
        CHECK_STR(attribute(resource, "deployment.environment.name"), "prod");
        CHECK_STR(attribute(resource, "team"), "a,b%zz");
        CHECK_STR(attribute(resource, "cloud.region"), "eu");
        /* web is in another one */
        CHECK_STR(attribute(resource, "container.id"), i == 0 ? "(none)" : "ours");
        CHECK_STR(attribute(resource, "process.pid"), ""); /* its own, a number */
    }
    CHECK_STR(header_of(&b->request, "Content-Type"), "application/x-protobuf");
    CHECK_STR(header_of(&b->request, "Content-Encoding"), "gzip");
    CHECK_TEXT(b->request.method, "POST");
    CHECK_INT(sum_of(request, "samples"), 485000000);
    tear_down(b);
}

static void a_service_that_was_asked_for_counts_more_than_a_tag(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    (void)encoded(b);
    b->origin.tags[0] = (struct fact){STR("service.name"), STR("tagged")};
    b->origin.tag_count = 1;
    CHECK_STR(attribute(part(part(requested(b), 1, 0), 1, 0), "service.name"), "tagged");
    b->context.service_given = true;
    CHECK_STR(attribute(part(part(requested(b), 1, 0), 1, 0), "service.name"), "shop");
    CHECK_TEXT(why_left_out(row(), &b->context, "service.name"), ""); /* it was asked for so */
    tear_down(b);
}

static const char no_room[] =
    "a profile has at most twenty attributes that say where it comes from; give fewer tags";

/* Twenty are service.name, host.name and eighteen tags. */
static void a_tag_that_is_left_out_has_a_reason(void)
{
    struct bench *b = set_up();
    char names[19][8];
    b->origin = origin_of_test();
    for (unsigned i = 0; i < 19; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        b->origin.tags[i] = (struct fact){str_of(names[i]), STR("v")};
    }
    b->origin.tag_count = 18;
    CHECK_TEXT(why_left_out(row(), &b->context, "n17"), "");
    b->origin.tags[18] = b->origin.tags[0];
    b->origin.tag_count = 19;
    CHECK_TEXT(why_left_out(row(), &b->context, "n0"), ""); /* once more the same is nothing lost */
    b->origin.tags[18].value = STR("w");
    CHECK_TEXT(why_left_out(row(), &b->context, "n0"), "another attribute has this name");
    b->origin.tags[18].name = str_of(names[18]);
    CHECK_TEXT(why_left_out(row(), &b->context, "n17"), "");
    CHECK_TEXT(why_left_out(row(), &b->context, "n18"), no_room);
    b->origin.tag_count = 17;
    b->origin.container_id = STR("0123456789ab");
    b->origin.resource[0] = (struct fact){STR("cloud.region"), STR("eu")};
    b->origin.resource[1] = (struct fact){STR("n3"), STR("told by a tag")};
    b->origin.resource_count = 2;
    struct omissions all = {.count = 0};
    row()->omits(&b->context, &all);
    CHECK_INT(all.count, 1);
    CHECK_STR(all.list[0].fact.name, "cloud.region");
    CHECK(!all.list[0].is_tag);
    CHECK_TEXT(all.list[0].why, no_room);
    tear_down(b);
}

static void attributes_are_not_more_than_a_receiver_takes(void)
{
    struct bench *b = set_up();
    char names[48][8];
    fill_tiny(&b->p);
    (void)encoded(b);
    for (unsigned i = 0; i < 48; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i);
        b->origin.resource[i] = (struct fact){str_of(names[i]), STR("v")};
    }
    b->origin.resource_count = 48;
    CHECK_INT(parts(part(part(requested(b), 1, 0), 1, 0), 1), 22); /* two of the process's own */
    tear_down(b);
}

static void the_path_is_put_behind_an_address(void)
{
    struct bench *b = set_up();
    fill_tiny(&b->p);
    (void)encoded(b);
    (void)requested(b);
    CHECK_STR(b->request.target, "/v1development/profiles");
    b->context.url.path = STR("/otlp");
    (void)requested(b);
    CHECK_STR(b->request.target, "/v1development/profiles");
    b->context.url.path = STR("/otlp/v1development/profiles");
    (void)requested(b);
    CHECK_STR(b->request.target, "");
    b->context.url.path = STR("/mine");
    b->context.whole_path = true;
    (void)requested(b);
    CHECK_STR(b->request.target, "");
    tear_down(b);
}

static void another_format_is_refused(void)
{
    struct bench *b = set_up();
    fill_sample(&b->p);
    (void)encoded(b);
    b->delivery.format = STR("pprof");
    CHECK(!row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
    CHECK_INT(b->err.kind, ERR_USAGE);
    tear_down(b);
}

/* ---- the answer ---- */

static enum verdict answered(unsigned status, const char *body, size_t len, struct err *err)
{
    static const struct origin origin = {.service = STR("s")};
    struct backend_context context = {.origin = &origin, .token = STR("SECRET"),
                                      .url = {.host = STR("h")}};
    struct http_response answer = {.status = status};
    buf_init(&answer.body, HTTP_BODY_MAX);
    buf_add(&answer.body, body, len);
    *err = (struct err){0};
    enum verdict verdict = row()->classify(&context, &answer, err);
    buf_release(&answer.body);
    return verdict;
}
#define ANSWERED(status, literal, err) answered(status, literal, sizeof(literal) - 1, err)

static void only_what_the_protocol_names_is_sent_again(void)
{
    static const struct {
        unsigned status;
        enum verdict verdict;
    } known[] = {
        {200, VERDICT_TAKEN},   {400, VERDICT_REFUSED}, {401, VERDICT_CONFIG},
        {403, VERDICT_CONFIG},  {404, VERDICT_CONFIG},  {408, VERDICT_REFUSED},
        {413, VERDICT_SMALLER}, {415, VERDICT_CONFIG},  {429, VERDICT_LATER},
        {500, VERDICT_REFUSED}, {501, VERDICT_REFUSED}, {502, VERDICT_LATER},
        {503, VERDICT_LATER},   {504, VERDICT_LATER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct err err;
        CHECK_INT(ANSWERED(known[i].status, "", &err), known[i].verdict);
        CHECK((err.text[0] == '\0') == (known[i].status == 200));
    }
}

static void words_of_a_server_are_shown_whatever_they_come_as(void)
{
    struct err err;
    /* google.rpc.Status: code 3, message */
    CHECK_INT(ANSWERED(400, "\x08\x03\x12\x0bno such day", &err), VERDICT_REFUSED);
    CHECK_TEXT(err.text, "OpenTelemetry at h answered 400: no such day");
    CHECK_INT(ANSWERED(429, "{\"message\":\"SECRET is slow\"}", &err), VERDICT_LATER);
    CHECK(strstr(err.text, "****** is slow") != NULL);
    CHECK_INT(ANSWERED(404, "404 page not found", &err), VERDICT_CONFIG);
    CHECK(strstr(err.text, "404 page not found") && strstr(err.text, "service.profilesSupport"));
    /* the reader of another release: the window is kept */
    CHECK_INT(ANSWERED(400, "\x08\x03\x12\x26" "proto: wrong wireType = 2 for field Time", &err), VERDICT_CONFIG);
    CHECK(strstr(err.text, "it reads another release of the protocol than 1.10"));
}

static void what_was_taken_in_part_is_not_sent_again(void)
{
    struct err err;
    CHECK_INT(ANSWERED(200, "\x0a\0", &err), VERDICT_TAKEN);
    CHECK_TEXT(err.text, "");
    CHECK_INT(ANSWERED(200, "\x0a\x08\x08\x02\x12\x04oops", &err), VERDICT_REFUSED);
    CHECK_TEXT(err.text, "OpenTelemetry at h: not all profiles of a window were accepted: oops");
    CHECK_INT(ANSWERED(200, "\x0a\x06\x12\x04well", &err), VERDICT_TAKEN); /* a warning */
    CHECK_TEXT(err.text, "OpenTelemetry at h: well");
    CHECK_INT(ANSWERED(200, "\x0a\x7f", &err), VERDICT_TAKEN);
    CHECK_INT(ANSWERED(200, "{}", &err), VERDICT_TAKEN);
}

TESTS({"the tables and the resource of a tiny profile are these bytes", the_tables_are_these_bytes},
      {"a profile has the field numbers of release 1.10", a_profile_has_the_numbers_of_release_1_10},
      {"a profile's id is the same whenever it is encoded",
       the_id_is_the_same_whenever_it_is_encoded},
      {"every process is a resource, and no time is lost",
       every_process_is_a_resource_and_no_time_is_lost},
      {"processes without a pid are one resource per container",
       processes_without_a_pid_are_one_per_container},
      {"what looks the same is there once", what_looks_the_same_is_there_once},
      {"waiting and events are profiles of their own",
       waiting_and_events_are_profiles_of_their_own},
      {"a file of something else says what it counts",
       a_file_of_something_else_says_what_it_counts},
      {"a window in which nothing ran has a profile", a_window_in_which_nothing_ran_has_a_profile},
      {"a request says where it comes from", a_request_says_where_it_comes_from},
      {"a service that was asked for counts more than a tag",
       a_service_that_was_asked_for_counts_more_than_a_tag},
      {"a tag that is left out has a reason", a_tag_that_is_left_out_has_a_reason},
      {"attributes are not more than a receiver takes",
       attributes_are_not_more_than_a_receiver_takes},
      {"the path is put behind an address unless it is there", the_path_is_put_behind_an_address},
      {"another format is refused", another_format_is_refused},
      {"only what the protocol names is sent again", only_what_the_protocol_names_is_sent_again},
      {"words of a server are shown whatever they come as",
       words_of_a_server_are_shown_whatever_they_come_as},
      {"what was taken in part is not sent again", what_was_taken_in_part_is_not_sent_again})
