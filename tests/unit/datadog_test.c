/* src/deliver/datadog*, multipart: the request byte for byte, tags, addresses, what answers mean. */
#include "base/gzip.h"
#include "base/json.h"
#include "base/protobuf.h"
#include "base/version.h"
#include "deliver.h"
#include "deliver/multipart.h"
#include "encode/encode.h"
#include "encode/pprof.h"
#include "encode/pprof_read.h"
#include "sample_profile.h"

enum { ROOM = 16 * 1024 * 1024 };

static const struct backend *row(void)
{
    return backend_by_name(STR("datadog"));
}

struct bench {
    struct origin origin;
    struct backend_context context;
    struct delivery delivery;
    struct http_request request;
    struct buf file, text, tags;
    struct err err;
};

static struct bench *set_up(void)
{
    struct bench *b = calloc(1, sizeof *b);
    struct profile p;
    buf_init(&b->file, ROOM);
    buf_init(&b->text, ROOM);
    buf_init(&b->tags, ROOM);
    struct sink sink = sink_of_buf(&b->file);
    CHECK(profile_init(&p, ROOM, NULL));
    fill_sample(&p);
    CHECK(encode_write(encoder_by_name(STR("pprof")), &p, row()->rules, &sink, &b->err));
    profile_release(&p);
    b->origin = origin_of_test();
    b->context = (struct backend_context){.origin = &b->origin, .url = {.host = STR("h")},
                                          .token = STR("SECRET-1")};
    b->delivery = delivery_of("pprof", buf_slice(&b->file));
    b->delivery.end_wall_ns += 7;
    return b;
}

static void tear_down(struct bench *b)
{
    buf_release(&b->file);
    buf_release(&b->text);
    buf_release(&b->tags);
    free(b);
}

static void ask(struct bench *b)
{
    buf_clear(&b->text);
    CHECK(row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
}

/* What stands between two texts of the body; `from` is passed over. */
static struct str between(struct str body, const char *from, const char *to)
{
    const char *start = memmem(body.ptr, body.len, from, strlen(from));
    if (start == NULL) {
        return STR("(none)");
    }
    start += strlen(from);
    const char *end = memmem(start, (size_t)(body.ptr + body.len - start), to, strlen(to));
    return end == NULL ? STR("(none)") : (struct str){start, (size_t)(end - start)};
}

#define HEAD_OF_EVENT "Content-Type: application/json\r\n\r\n"
#define HEAD_OF_PROFILE "Content-Type: application/octet-stream\r\n\r\n"

static struct str event_of(const struct bench *b)
{
    return between(b->request.body, HEAD_OF_EVENT, "\r\n--");
}

static struct str profile_of(const struct bench *b)
{
    return between(b->request.body, HEAD_OF_PROFILE, "\r\n--pillion-");
}

static struct str tags_of(struct bench *b)
{
    buf_clear(&b->tags);
    CHECK(json_valid(event_of(b)));
    CHECK(json_text_of(json_member(event_of(b), "tags_profiler"), &b->tags));
    return buf_slice(&b->tags);
}

/* The values of all tags of this key, with a bar behind each. */
static const char *tag(struct bench *b, const char *key)
{
    static char found[1000];
    struct str rest = tags_of(b);
    size_t used = 0;
    found[0] = '\0';
    while (rest.len > 0) {
        struct str value = str_cut(&rest, ','), name = str_cut(&value, ':');
        if (str_eq(name, str_of(key)) && used + value.len + 2 < sizeof found) {
            used += (size_t)snprintf(found + used, sizeof found - used, "%.*s|", (int)value.len,
                                     value.ptr);
        }
    }
    return found;
}

/* ---- the request ---- */

static void the_event_is_what_the_service_reads(void)
{
    struct bench *b = set_up();
    b->origin.container_id = STR("0123456789abcdef");
    b->origin.arguments[0] = (struct fact){STR("perf_mode"), STR("fp")};
    b->origin.arguments[1] = (struct fact){STR("perf_mode"), STR("twice")};
    b->origin.arguments[2] = (struct fact){STR("a \"b\""), STR("c\\")};
    b->origin.argument_count = 3;
    b->origin.tags[0] = (struct fact){STR("env"), STR("prod")};
    b->origin.tags[1] = (struct fact){STR("version"), STR("1.4.2")};
    b->origin.tags[2] = (struct fact){STR("team"), STR("pay")};
    b->origin.tag_count = 3;
    ask(b);
    CHECK_STR(event_of(b),
              "{\"version\":\"4\",\"family\":\"native\",\"attachments\":[\"profile.pprof\"],"
              "\"tags_profiler\":\"language:native,env:prod,service:shop,version:1.4.2,host:web-1,"
              "process_id:42,runtime-id:54e81803-0e6d-8073-be17-d23bc2df89c4,"
              "profiler_version:" PILLION_VERSION ",runtime_arch:amd64,runtime_os:linux,number_of_cpu_cores:4,"
              "profile_seq:6,team:pay,container_id:0123456789abcdef\","
              "\"start\":\"2025-11-20T10:31:04.000000000Z\","
              "\"end\":\"2025-11-20T10:32:04.000000007Z\","
              "\"endpoint_counts\":null,\"internal\":{},\"info\":{\"application\":{"
              "\"start_time\":\"2025-11-20T10:31:04.000000000Z\",\"env\":\"prod\","
              "\"service\":\"shop\",\"version\":\"1.4.2\"},\"platform\":{"
              "\"container_id\":\"0123456789abcdef\",\"hostname\":\"web-1\","
              "\"kernel_name\":\"Linux\",\"kernel_release\":\"6.1.0\","
              "\"kernel_version\":\"#1 SMP\"},\"runtime\":{\"engine\":\"native\"},"
              "\"profiler\":{\"name\":\"pillion\",\"version\":\"" PILLION_VERSION "\",\"activation\":\"manual\","
              "\"ssi\":{\"mechanism\":\"none\"},\"settings\":{\"perf_mode\":\"fp\","
              "\"a \\\"b\\\"\":\"c\\\\\"}}}}");
    tear_down(b);
}

/* RFC 2046 5.1.1: each part begins with its boundary on a line of its own, two more dashes end
 * the last. */
static void a_request_is_a_form_of_two_files(void)
{
    struct bench *b = set_up();
    ask(b);
    struct str form = header_of(&b->request, "Content-Type"), body = b->request.body;
    CHECK(str_starts(form, STR("multipart/form-data; boundary=pillion-")));
    struct str boundary = str_sub(form, sizeof "multipart/form-data; boundary=" - 1, form.len);
    CHECK_INT(boundary.len, 24);
    struct buf expected;
    buf_init(&expected, ROOM);
    buf_printf(&expected, "--%.*s\r\nContent-Disposition: form-data; name=\"event\"; "
               "filename=\"event.json\"\r\n" HEAD_OF_EVENT, (int)boundary.len, boundary.ptr);
    buf_str(&expected, event_of(b));
    buf_printf(&expected, "\r\n--%.*s\r\nContent-Disposition: form-data; name=\"profile.pprof\"; "
               "filename=\"profile.pprof\"\r\n" HEAD_OF_PROFILE, (int)boundary.len, boundary.ptr);
    buf_str(&expected, profile_of(b));
    buf_printf(&expected, "\r\n--%.*s--\r\n", (int)boundary.len, boundary.ptr);
    CHECK(str_eq(body, buf_slice(&expected)));
    CHECK_TEXT(b->request.method, "POST");
    CHECK_STR(b->request.target, "/profiling/v1/input");
    CHECK_STR(header_of(&b->request, "DD-EVP-ORIGIN"), "pillion");
    CHECK_STR(header_of(&b->request, "DD-EVP-ORIGIN-VERSION"), PILLION_VERSION);
    CHECK_INT(b->request.header_count, 3);
    buf_release(&expected);
    tear_down(b);
}

/* The types of the n-th sample type in an unpacked file. */
static void has_text(const struct buf *plain, const char *text, bool expected)
{
    struct cursor c = cursor_of(plain->ptr, plain->len);
    struct protobuf_field f;
    bool found = false;
    while (protobuf_next(&c, &f)) {
        found = found || (f.number == PPROF_STRING && str_eq(f.bytes, str_of(text)));
    }
    CHECK(found == expected);
}

static void types_have_the_names_of_native_profiles(void)
{
    struct bench *b = set_up();
    struct buf plain;
    struct profile back;
    ask(b);
    struct str file = profile_of(b);
    buf_init(&plain, ROOM);
    CHECK(gzip_inflate(file.ptr, file.len, &plain, &b->err));
    has_text(&plain, "cpu-time", true);
    has_text(&plain, "cpu-samples", true);
    has_text(&plain, "cpu", false);
    has_text(&plain, "samples", false);
    has_text(&plain, "thread id", true);
    CHECK(profile_init(&back, ROOM, NULL));
    CHECK(pprof_read(&back, file, STR(""), &b->err));
    CHECK_INT(profile_sum(&back).cpu_ns, 46 * SAMPLE_PERIOD_NS + 25000000);
    profile_release(&back);
    buf_release(&plain);
    tear_down(b);
}

static void a_boundary_stands_in_no_part(void)
{
    char first[MULTIPART_BOUNDARY_MAX], second[MULTIPART_BOUNDARY_MAX];
    char body[25] = "------------------------";
    struct multipart_part parts[] = {{"a", "a", "t", STR("{}")}, {"b", "b", "t", {body, 24}}};
    multipart_boundary(parts, 2, first);
    memcpy(body, first, 24); /* of the same length, so it is what would be chosen */
    multipart_boundary(parts, 2, second);
    CHECK(strcmp(first, second) != 0 && strstr(body, second) == NULL);
    CHECK_INT(strlen(second), 24);
}

static void a_key_is_shown_to_the_service_alone(void)
{
    struct bench *b = set_up();
    ask(b);
    CHECK_STR(header_of(&b->request, "DD-API-KEY"), "(none)");
    b->context.agentless = true;
    ask(b);
    CHECK_STR(header_of(&b->request, "DD-API-KEY"), "SECRET-1");
    CHECK_STR(b->request.target, "/api/v2/profile");
    for (size_t i = 0; i < b->request.header_count; i++) {
        struct http_header *header = &b->request.headers[i];
        CHECK(header->secret == str_eq(header->name, STR("DD-API-KEY")));
        CHECK(header->secret || memmem(header->value.ptr, header->value.len, "SECRET", 6) == NULL);
    }
    CHECK(memmem(b->request.body.ptr, b->request.body.len, "SECRET", 6) == NULL);
    b->context.token = STR("a\r\nX: y");
    CHECK(!row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
    CHECK_INT(b->err.kind, ERR_USAGE);
    b->context.headers[0] = (struct fact){STR("dd-api-key"), STR("mine")};
    b->context.header_count = 1;
    b->context.token = STR("SECRET-1");
    ask(b);
    CHECK_STR(header_of(&b->request, "DD-API-KEY"), "(none)");
    CHECK_STR(header_of(&b->request, "dd-api-key"), "mine");
    tear_down(b);
}

static void target_is(const char *path, bool agentless, const char *expected)
{
    struct bench *b = set_up();
    b->context.url.path = str_of(path);
    b->context.agentless = agentless;
    for (unsigned again = 0; again < 2; again++) { /* the client puts url.path before the target */
        ask(b);
        CHECK_STR(b->request.target, expected);
        CHECK_INT(b->context.url.path.len, 0);
    }
    tear_down(b);
}

static void an_address_may_name_the_place_itself(void)
{
    target_is("", false, "/profiling/v1/input");
    target_is("/proxy", false, "/proxy/profiling/v1/input");
    target_is("/proxy/profiling/v1/input", false, "/proxy/profiling/v1/input");
    target_is("", true, "/api/v2/profile");
    target_is("/v1/input", true, "/v1/input");
}

static void entity_is(const char *container, uint64_t inode, const char *id, const char *entity)
{
    struct bench *b = set_up();
    b->origin.container_id = str_of(container);
    b->origin.cgroup_inode = inode;
    ask(b);
    CHECK_STR(header_of(&b->request, "Datadog-Container-ID"), id);
    CHECK_STR(header_of(&b->request, "Datadog-Entity-ID"), entity);
    tear_down(b);
}

static void a_container_is_named_to_the_agent(void)
{
    entity_is("", 0, "(none)", "(none)");
    entity_is("0a1b", 77, "0a1b", "ci-0a1b");
    entity_is("8c046cb0-b72c-4214-ab51-ec1b94b1dd1c", 0, "8c046cb0-b72c-4214-ab51-ec1b94b1dd1c",
              "ci-8c046cb0-b72c-4214-ab51-ec1b94b1dd1c");
    entity_is("", 77, "(none)", "in-77");
    entity_is("a\r\nX: y", 77, "(none)", "in-77"); /* what breaks a header is no id */
    struct bench *b = set_up();
    b->context.external_env = STR("it-false,cn-app,pu-75a2b6d5");
    ask(b);
    CHECK_STR(header_of(&b->request, "Datadog-External-Env"), "it-false,cn-app,pu-75a2b6d5");
    b->context.external_env = STR("it\nX: y");
    ask(b);
    CHECK_STR(header_of(&b->request, "Datadog-External-Env"), "(none)");
    tear_down(b);
}

/* ---- tags ---- */

static void a_users_tag_is_valid_or_left_out(void)
{
    static const struct {
        const char *name, *value;
        const char *expected; /* empty: it is left out */
    } known[] = {
        {"team", "pay", "pay|"}, {"a-b_c.d/e\\f", "x:y/z", "x:y/z|"}, {"k", "9", "9|"},
        {"9k", "v", ""}, {"_k", "v", ""}, {"k", "v:", ""}, {"k", "a b", ""}, {"k", "a,b", ""},
        {"k", "a\"b", ""}, {"k", "\xc3\xa9", ""}, {"k b", "v", ""}, {"k\n", "v", ""},
        {"service", "other", "shop|"}, {"host", "other", "web-1|"}, {"profile_seq", "9", "6|"},
        {"language", "x", "native|"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct bench *b = set_up();
        b->origin.tags[0] = (struct fact){str_of(known[i].name), str_of(known[i].value)};
        b->origin.tag_count = 1;
        ask(b);
        CHECK_TEXT(tag(b, known[i].name), known[i].expected);
        bool is_sent = strstr(known[i].expected, known[i].value) != NULL;
        CHECK((why_left_out(row(), &b->context, known[i].name)[0] == '\0') == is_sent);
        tear_down(b);
    }
}

static void a_tag_that_is_left_out_has_a_reason(void)
{
    static const struct {
        const char *name, *value;
        const char *why; /* empty: what it says is said */
    } known[] = {
        {"k", "a b", "a tag holds letters, digits and _ - : . / \\ alone"},
        {"k b", "v", "a tag holds letters, digits and _ - : . / \\ alone"},
        {"9k", "v", "a tag begins with a letter"},
        {"_k", "v", "a tag begins with a letter"},
        {"k", "v:", "a tag does not end with a colon"},
        {"team", "pay", ""},
        /* as they are, or with '_' in the places of blanks, these make tags of pillion's own */
        {"env", "prod", ""}, {"env", "a b", ""}, {"version", "1+2", ""}, {"service", "shop", ""},
        {"service", "other",
         "every profile has one tag of this name, by -S, -E, -V or from pillion itself"},
        {"host", "other",
         "every profile has one tag of this name, by -S, -E, -V or from pillion itself"},
    };
    struct bench *b = set_up();
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        b->origin.tags[0] = (struct fact){str_of(known[i].name), str_of(known[i].value)};
        b->origin.tag_count = 1;
        CHECK_TEXT(why_left_out(row(), &b->context, known[i].name), known[i].why);
    }
    b->origin.service = STR(""); /* then a tag names it */
    b->origin.tags[0] = (struct fact){STR("service"), STR("a b")};
    CHECK_TEXT(why_left_out(row(), &b->context, "service"), "");
    tear_down(b);
}

/* A tag has 200 characters at most, its colon counted. */
static void a_tag_has_its_length(void)
{
    char value[201];
    memset(value, 'v', sizeof value);
    struct bench *b = set_up();
    b->origin.tags[0] = (struct fact){STR("k"), {value, 198}};
    b->origin.tags[1] = (struct fact){STR("l"), {value, 199}};
    b->origin.tag_count = 2;
    b->origin.hostname = (struct str){value, 201};
    ask(b);
    CHECK_INT(strlen(tag(b, "k")), 199);
    CHECK_TEXT(tag(b, "l"), "");
    CHECK_TEXT(why_left_out(row(), &b->context, "k"), "");
    CHECK_TEXT(why_left_out(row(), &b->context, "l"),
               "a tag has at most 200 characters, its colon counted");
    CHECK_INT(strlen(tag(b, "host")), 200 - strlen("host:") + 1);
    tear_down(b);
}

static void env_and_version_stand_once(void)
{
    struct bench *b = set_up();
    static const struct fact tags[] = {{{"env", 3}, {"prod", 4}}, {{"version", 7}, {"2", 1}},
                                       {{"version", 7}, {"1", 1}}, {{"env", 3}, {"dev", 3}},
                                       {{"team", 4}, {"a", 1}}, {{"team", 4}, {"b", 1}}};
    memcpy(b->origin.tags, tags, sizeof tags);
    b->origin.tag_count = 6;
    ask(b);
    CHECK_TEXT(tag(b, "env"), "prod|");
    CHECK_TEXT(tag(b, "version"), "2|");
    CHECK_TEXT(tag(b, "team"), "a|b|");
    struct omissions all = {.count = 0};
    row()->omits(&b->context, &all);
    CHECK_INT(all.count, 2);
    CHECK(str_eq(all.list[0].fact.value, STR("1")) && str_eq(all.list[1].fact.value, STR("dev")));
    CHECK(all.list[0].is_tag);
    b->origin.tag_count = 0;
    ask(b);
    CHECK_TEXT(tag(b, "env"), ""); /* an agent has a default for what is not said */
    CHECK_TEXT(tag(b, "version"), "");
    tear_down(b);
}

/* Whatever a machine is called: one document, and one tag for each fact. */
static void no_value_breaks_out(void)
{
    static const char *const wild[] = {"a,env:evil", "\"}],\"x\":1", "a\r\n--pillion-0\r\nb", "a\\",
                                       "\xff\xfe", "x:", "all processes", "\xf0\x9f\x98\x80 \x7f"};
    static const char *const shown[] = {"a_env:evil|", "_____x_:1|", "a__--pillion-0__b|", "a\\|",
                                        "\xef\xbf\xbd\xef\xbf\xbd|", "x_|", "all_processes|",
                                        "\xf0\x9f\x98\x80__|"};
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        struct bench *b = set_up();
        struct str text = str_of(wild[i]);
        b->origin.service = b->origin.hostname = b->origin.kernel_version = text;
        b->origin.tags[0] = (struct fact){STR("env"), text};
        b->origin.tags[1] = (struct fact){text, text};
        b->origin.tag_count = 2;
        b->origin.arguments[0] = b->origin.resource[0] = (struct fact){text, text};
        b->origin.resource[1] = (struct fact){STR("k8s.pod.name"), text};
        b->origin.argument_count = 1;
        b->origin.resource_count = 2;
        ask(b);
        CHECK(json_valid(event_of(b)));
        static const char *const keys[] = {"service", "host", "env", "pod_name"};
        for (size_t k = 0; k < 4; k++) {
            CHECK_TEXT(tag(b, keys[k]), shown[i]);
        }
        CHECK_INT(json_member(json_member(event_of(b), "info"), "x").len, 0);
        tear_down(b);
    }
}

static void what_the_platform_tells_has_the_services_names(void)
{
    static const struct fact facts[] = {
        {{"cloud.provider", 14}, {"aws", 3}}, {{"cloud.region", 12}, {"eu-west-1", 9}},
        {{"cloud.account.id", 16}, {"123456789012", 12}},
        {{"aws.ecs.task.arn", 16}, {"arn:aws:ecs:eu-west-1:1:task/c/1", 32}},
        {{"aws.ecs.cluster.arn", 19}, {"arn:aws:ecs:eu-west-1:1:cluster/web", 35}},
        {{"aws.ecs.launchtype", 18}, {"fargate", 7}}, {{"aws.ecs.task.revision", 21}, {"7", 1}},
        {{"aws.ecs.service.name", 20}, {"web", 3}},
        {{"container.name", 14}, {"app", 3}}, {{"k8s.namespace.name", 18}, {"shop", 4}},
    };
    static const struct {
        const char *name, *value;
    } tags[] = {
        {"cloud_provider", "aws|"}, {"region", "eu-west-1|"}, {"aws_account", "123456789012|"},
        {"project_id", ""}, {"task_arn", "arn:aws:ecs:eu-west-1:1:task/c/1|"},
        {"ecs_cluster_name", "web|"}, {"ecs_launch_type", "fargate|"}, {"task_version", "7|"},
        {"orchestrator", "fargate_ecs|"}, {"container_name", "app|"}, {"kube_namespace", "mine|"},
        {"ecs_service", "web|"}, {"pod_name", ""},
    };
    struct bench *b = set_up();
    memcpy(b->origin.resource, facts, sizeof facts);
    b->origin.resource_count = sizeof facts / sizeof facts[0];
    b->origin.tags[0] = (struct fact){STR("kube_namespace"), STR("mine")};
    b->origin.tag_count = 1; /* what the user says wins */
    ask(b);
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        CHECK_TEXT(tag(b, tags[i].name), tags[i].value);
    }
    tear_down(b);
}

static void a_run_is_known_by_one_id(void)
{
    struct bench *b = set_up();
    char first[64];
    ask(b);
    snprintf(first, sizeof first, "%s", tag(b, "runtime-id"));
    CHECK_INT(strlen(first), 37);
    CHECK(first[8] == '-' && first[13] == '-' && first[14] == '8' && first[23] == '-');
    b->delivery.sequence = 1;
    b->delivery.start_wall_ns += 60;
    ask(b);
    CHECK_TEXT(tag(b, "runtime-id"), first);
    CHECK_TEXT(tag(b, "profile_seq"), "0|");
    b->origin.spawn_wall_ns++;
    ask(b);
    CHECK(strcmp(tag(b, "runtime-id"), first) != 0);
    b->origin.spawn_wall_ns--;
    b->origin.pid++;
    ask(b);
    CHECK(strcmp(tag(b, "runtime-id"), first) != 0);
    tear_down(b);
}

static void what_was_made_smaller_says_so(void)
{
    struct bench *b = set_up();
    ask(b);
    CHECK_TEXT(tag(b, "profile_dropped_to_fit"), "");
    CHECK_INT(row()->most_bytes, 10485760);
    b->delivery.shrunk = true;
    ask(b);
    CHECK_TEXT(tag(b, "profile_dropped_to_fit"), "yes|");
    tear_down(b);
}

static void a_set_of_profiles_is_one_request(void)
{
    struct bench *b = set_up();
    CHECK(row()->takes_sets);
    b->delivery.more[0] = (struct delivery_part){STR("heap"), STR("second")};
    b->delivery.more[1] = (struct delivery_part){STR("a\"b\r\n"), STR("third")};
    b->delivery.more[2] = (struct delivery_part){STR("metrics.json"), STR("[]")};
    b->delivery.more_count = 3;
    ask(b);
    CHECK_STR(json_member(event_of(b), "attachments"),
              "[\"profile.pprof\",\"delta-heap.pprof\",\"a_b__.pprof\",\"metrics.json\"]");
    CHECK_STR(between(b->request.body, "filename=\"delta-heap.pprof\"\r\n" HEAD_OF_PROFILE, "\r\n--"), "second");
    CHECK_STR(between(b->request.body, "filename=\"a_b__.pprof\"\r\n" HEAD_OF_PROFILE, "\r\n--"), "third");
    CHECK_STR(between(b->request.body, "filename=\"metrics.json\"\r\n" HEAD_OF_PROFILE, "\r\n--"), "[]");
    CHECK(strstr(buf_cstr(&b->text), "execution_trace") == NULL);
    tear_down(b);
}

static void a_trace_is_said_to_be_there(void)
{
    struct bench *b = set_up();
    b->delivery.more[0] = (struct delivery_part){STR("go.trace"), STR("go 1.26 trace")};
    b->delivery.more_count = 1;
    ask(b);
    CHECK_STR(json_member(event_of(b), "attachments"), "[\"profile.pprof\",\"go.trace\"]");
    struct str tags = json_member(event_of(b), "tags_profiler");
    CHECK(memmem(tags.ptr, tags.len, ",go_execution_traced:yes,", 25) != NULL);
    CHECK(memmem(tags.ptr, tags.len, ",_dd.profiler.go_execution_trace_enabled:true", 45) != NULL);
    b->delivery.type = STR("go.trace"); /* of a process that told nothing else */
    b->delivery.more_count = 0;
    ask(b);
    CHECK_STR(json_member(event_of(b), "attachments"), "[\"go.trace\"]");
    tear_down(b);
}

/* As its library for Go sends them. */
static void of_a_go_program_names_are_its_librarys(void)
{
    struct bench *b = set_up();
    b->delivery.subject.language = STR("go");
    ask(b);
    CHECK_STR(json_member(event_of(b), "attachments"), "[\"cpu.pprof\"]");
    CHECK_STR(json_member(event_of(b), "family"), "\"go\"");
    b->delivery.type = STR("goroutine");
    ask(b);
    CHECK_STR(json_member(event_of(b), "attachments"), "[\"goroutines.pprof\"]");
    tear_down(b);
}

static void another_format_is_refused(void)
{
    struct bench *b = set_up();
    b->delivery.format = STR("col");
    CHECK(!row()->request(&b->context, &b->delivery, &b->request, &b->text, &b->err));
    CHECK_INT(b->err.kind, ERR_USAGE);
    tear_down(b);
}

/* ---- the address ---- */

struct world {
    const char *const *variables; /* name, value …, null */
    bool has_socket;
};

static struct str variable(void *context, const char *name)
{
    const struct world *world = context;
    for (const char *const *pair = world->variables; pair[0] != NULL; pair += 2) {
        if (strcmp(pair[0], name) == 0) {
            return str_of(pair[1]);
        }
    }
    return STR("");
}

static bool exists(void *context, const char *path)
{
    const struct world *world = context;
    return world->has_socket && strcmp(path, "/var/run/datadog/apm.socket") == 0;
}

static struct backend_context looked;

static void address_is(struct backend_place place, const char *const *variables, bool has_socket,
                       const char *expected)
{
    struct world world = {variables, has_socket};
    struct buf out;
    struct err err = {0};
    buf_init(&out, 10000);
    place.variable = variable;
    place.exists = exists;
    place.context = &world;
    looked = (struct backend_context){0};
    bool ok = row()->address(&looked, &place, &out, &err);
    CHECK_TEXT(ok ? buf_cstr(&out) : err.text, expected);
    buf_release(&out);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})
#define UNSET SET(NULL)

static void an_agent_is_found_as_tracers_find_it(void)
{
    struct backend_place none = {0};
    address_is(none, UNSET, false, "http://localhost:8126");
    address_is(none, UNSET, true, "unix:///var/run/datadog/apm.socket");
    address_is(none, SET("DD_TRACE_AGENT_URL", "unix:///run/a.sock"), true, "unix:///run/a.sock");
    address_is(none, SET("DD_TRACE_AGENT_URL", "/run/a.sock"), true, "unix:///run/a.sock");
    address_is(none, SET("DD_TRACE_AGENT_URL", "https://a:1/x"), true, "https://a:1/x");
    address_is(none, SET("DD_TRACE_AGENT_URL", "a:8000"), false, "http://a:8000");
    /* found in the environment, the URL says more than host and port; told by an option, less */
    struct backend_place found = {.agent_host = STR("b"), .agent_port = 9}, told = found;
    told.agent_told = true;
    address_is(found, SET("DD_TRACE_AGENT_URL", "http://a:1"), true, "http://a:1");
    address_is(told, SET("DD_TRACE_AGENT_URL", "http://a:1"), true, "http://b:9");
    address_is(found, UNSET, true, "http://b:9");
    address_is((struct backend_place){.agent_host = STR("b")}, UNSET, true, "http://b:8126");
    address_is((struct backend_place){.agent_port = 9}, UNSET, true, "http://localhost:9");
    address_is((struct backend_place){.agent_host = STR("::1")}, UNSET, true, "http://[::1]:8126");
    /* a key alone does not mean that there is no agent */
    address_is(none, SET("DD_API_KEY", "k", "DD_SITE", "datadoghq.eu"), false,
               "http://localhost:8126");
    CHECK(!looked.agentless && !looked.no_process_tags);
    address_is(none, SET("DD_EXPERIMENTAL_PROPAGATE_PROCESS_TAGS_ENABLED", "False"), false, "http://localhost:8126");
    CHECK(looked.no_process_tags);
}

static void without_an_agent_it_is_the_intake_of_a_site(void)
{
    static const char wrong[] = "DD_SITE is not a host name, such as datadoghq.eu";
    struct backend_place place = {.agentless = true, .agent_host = STR("b")};
    address_is(place, UNSET, true, "https://intake.profile.datadoghq.com");
    CHECK(looked.agentless);
    address_is(place, SET("DD_SITE", " us3.datadoghq.com "), true,
               "https://intake.profile.us3.datadoghq.com");
    address_is(place, SET("DD_SITE", "x", "DD_PROFILING_URL", "https://mine/v1/input"), true,
               "https://mine/v1/input");
    static const char *const bad[] = {"a/b", "a@b", "a:1", "https://a", ".a", "a.", "a..b", "a b",
                                      "a#b", "-a", "a?b", "\xc3\xa9", "a\r\nb"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        address_is(place, SET("DD_SITE", bad[i]), true, wrong);
    }
}

static void an_address_that_is_given_wins(void)
{
    static const char *const all[] = {"DD_TRACE_AGENT_URL", "http://a:1", "DD_PROFILING_URL",
                                      "https://b", "DD_SITE", "c", NULL};
    struct backend_place place = {.given = STR("http://d:2"), .agent_host = STR("e"),
                                  .agent_told = true};
    address_is(place, all, true, "http://d:2");
    place.given = STR("d:2");
    address_is(place, all, true, "http://d:2");
    place.given = STR("/run/d.sock");
    address_is(place, all, true, "unix:///run/d.sock");
    place.agentless = true;
    place.given = STR("https://d/x");
    address_is(place, all, true, "https://d/x");
    place.given = STR("datadoghq.eu"); /* ddprof's --agentless --url SITE */
    address_is(place, all, true, "https://intake.profile.datadoghq.eu");
}

static void patience_is_a_duration_of_go(void)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } known[] = {
        {"10s", UINT64_C(10000000000)}, {"1m30s", UINT64_C(90000000000)}, {"500ms", 500000000},
        {"1.5s", 1500000000}, {"250us", 250000}, {"9h", UINT64_C(3600000000000)}, {"10", 0},
        {"s", 0}, {"-5s", 0}, {"5 s", 0}, {"1m30", 0}, {".s", 0}, {"", 0},
        {"99999999999999999999s", 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        address_is((struct backend_place){0}, SET("DD_PROFILING_UPLOAD_TIMEOUT", known[i].text),
                   false, "http://localhost:8126");
        CHECK_INT(looked.timeout_ns, known[i].ns);
    }
    address_is((struct backend_place){0}, SET("DD_EXTERNAL_ENV", "it-false"), false,
               "http://localhost:8126");
    CHECK_STR(looked.external_env, "it-false");
}

/* ---- answers ---- */

static void an_answer_is_judged(void)
{
    static const struct {
        unsigned status;
        enum verdict verdict;
    } known[] = {
        {200, VERDICT_TAKEN}, {202, VERDICT_TAKEN}, {400, VERDICT_REFUSED}, {403, VERDICT_CONFIG},
        {404, VERDICT_CONFIG}, {408, VERDICT_LATER}, {413, VERDICT_SMALLER}, {429, VERDICT_LATER},
        {500, VERDICT_LATER}, {502, VERDICT_LATER}, {503, VERDICT_LATER}, {504, VERDICT_LATER},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct bench *b = set_up();
        CHECK_INT(judged(row(), &b->context, known[i].status, "", &b->err), known[i].verdict);
        tear_down(b);
    }
}

static void a_sentence_says_who_has_to_do_what(void)
{
    struct bench *b = set_up();
    judged(row(), &b->context, 404, "404 page not found\n", &b->err);
    CHECK_TEXT(b->err.text, "the Datadog agent at h answered 404: 404 page not found; an agent of "
                            "version 7.20 or later, with APM and profiling on, is needed there");
    judged(row(), &b->context, 500, "Profile forwarder is OFF: bad URL", &b->err);
    CHECK_TEXT(b->err.text, "the Datadog agent at h answered 500: Profile forwarder is OFF: bad URL");
    judged(row(), &b->context, 403, "", &b->err);
    CHECK_TEXT(b->err.text, "the Datadog agent at h answered 403; the agent's API key is wrong, or "
                            "the agent refuses us");
    b->context.agentless = true;
    judged(row(), &b->context, 403, "{\"message\": \"you sent SECRET-1\"}", &b->err);
    CHECK_TEXT(b->err.text, "Datadog at h answered 403: you sent ********; the API key is not one of "
                            "this site (DD_API_KEY, DD_SITE)");
    tear_down(b);
}

/* ---- what the process was begun as ---- */

static void entry_is(const char *entry, const char *expected)
{
    struct bench *b = set_up();
    b->delivery.subject.entry = str_of(entry);
    ask(b);
    struct str member = json_member(event_of(b), "process_tags");
    buf_clear(&b->tags);
    CHECK((member.len > 0 && json_text_of(member, &b->tags)) == (expected[0] != '\0'));
    CHECK_TEXT(buf_cstr(&b->tags), expected);
    b->context.no_process_tags = true;
    ask(b);
    CHECK(json_member(event_of(b), "process_tags").len == 0);
    tear_down(b);
}

static void a_process_is_told_by_what_it_was_begun_as(void)
{
    entry_is("shop\napp\nscript\nsrv\n",
             "entrypoint.basedir:shop,entrypoint.name:app,entrypoint.type:script,entrypoint.workdir:srv");
    entry_is("bin\ngunicorn\nscript\n/\n", "entrypoint.name:gunicorn,entrypoint.type:script");
    entry_is("\n-c\nscript\n\n", "entrypoint.name:-c,entrypoint.type:script");
    entry_is("", "");
    entry_is("\n\n\n\n", "");
    entry_is("\n_My App!,x:y__z\\_\n\n\n", "entrypoint.name:my_app_x_y_z");
    entry_is("\n___\n\n\n", "");
    entry_is("\n\xc3\xa9t\xc3\xa9\n\n\n", "entrypoint.name:\xc3\xa9t\xc3\xa9");
}

static void repository_is(const char *url, const char *expected)
{
    struct bench *b = set_up();
    b->context.git_repository = str_of(url);
    ask(b);
    CHECK_TEXT(tag(b, "git.repository_url"), expected);
    tear_down(b);
}

static void a_repository_is_named_without_who_cloned_it(void)
{
    repository_is("https://git.example/shop.git", "https://git.example/shop.git|");
    repository_is("https://me:SECRET@git.example/shop.git", "https://git.example/shop.git|");
    repository_is("https://me:SEC@RET@git.example/shop.git", "https://git.example/shop.git|");
    repository_is("ssh://git@git.example:22/shop.git", "ssh://git.example:22/shop.git|");
    repository_is("git@git.example:me/shop.git", "git.example:me/shop.git|");
    repository_is("git.example/shop", "git.example/shop|");
    repository_is("", "");
}

TESTS({"the event is what the service reads", the_event_is_what_the_service_reads},
      {"a request is a form of two files", a_request_is_a_form_of_two_files},
      {"a process is told by what it was begun as", a_process_is_told_by_what_it_was_begun_as},
      {"a repository is named without who cloned it", a_repository_is_named_without_who_cloned_it},
      {"sample types have the names of native profiles", types_have_the_names_of_native_profiles},
      {"a boundary stands in no part", a_boundary_stands_in_no_part},
      {"a key is shown to the service alone", a_key_is_shown_to_the_service_alone},
      {"an address may name the place itself", an_address_may_name_the_place_itself},
      {"a container is named to the agent", a_container_is_named_to_the_agent},
      {"a user's tag is valid or left out", a_users_tag_is_valid_or_left_out},
      {"a tag that is left out has a reason", a_tag_that_is_left_out_has_a_reason},
      {"a tag has its length", a_tag_has_its_length},
      {"env and version stand once", env_and_version_stand_once},
      {"no value breaks out of its tag or of the document", no_value_breaks_out},
      {"what the platform tells has the service's names",
       what_the_platform_tells_has_the_services_names},
      {"a run is known by one id", a_run_is_known_by_one_id},
      {"what was made smaller says so", what_was_made_smaller_says_so},
      {"a set of profiles is one request", a_set_of_profiles_is_one_request},
      {"an execution trace is said to be there", a_trace_is_said_to_be_there},
      {"of a Go program names are its library's", of_a_go_program_names_are_its_librarys},
      {"another format is refused", another_format_is_refused},
      {"an agent is found as tracers find it", an_agent_is_found_as_tracers_find_it},
      {"without an agent it is the intake of a site", without_an_agent_it_is_the_intake_of_a_site},
      {"an address that is given wins", an_address_that_is_given_wins},
      {"patience is a duration as Go writes it", patience_is_a_duration_of_go},
      {"an answer is judged", an_answer_is_judged},
      {"a sentence says who has to do what", a_sentence_says_who_has_to_do_what})
