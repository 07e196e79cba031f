/* src/deliver/studio: the request by its bytes, the header line, what answers do to the id. */
#include "base/gzip.h"
#include "base/json.h"
#include "deliver/backend_private.h"
#include "deliver.h"

#define LINES "\n0;;sh;main;read 3\n1;c;py \xc3\xa9;\"q\\\" 4"
#define LINE                                                                                       \
    "# {\"containers\": [\"c\"], \"metadata\": {\"current_time\": \"T\", \"hostname\": null, "     \
    "\"continuous\": true, \"run_arguments\": {\"service_name\": \"s\", \"frequency\": 99, "       \
    "\"perf_mode\": 5}}, \"metrics\": {\"cpu_avg\": null, \"mem_avg\": null}, "                    \
    "\"application_metadata\": [null, {}], \"application_metadata_enabled\": true}"
#define COL LINE LINES

static const char *const required[] = {
    "current_time", "spawn_time", "spawn_uptime_ms", "private_ip", "hostname", "cloud_provider",
    "processors", "memory_capacity_mb", "system_name", "os_name", "os_release", "kernel_release",
    "kernel_version", "hardware_type", "pid", "mac_address", "agent_version", "libc_type",
    "libc_version", "python_version", "run_mode", "deployment_type", "run_arguments",
};

static const struct backend *row(void)
{
    return backends[0];
}

/* A header's text in `out`, and the value of one of its members. */
static struct str metadata_of(struct buf *out, const char *line, const struct origin *origin,
                              const char *key)
{
    struct backend_context context = {.origin = origin};
    struct delivery delivery = delivery_of("col", STR(""));
    buf_init(out, 100000);
    studio_header(out, str_of(line), &context, &delivery);
    struct str json = str_sub(buf_slice(out), 2, out->len);
    CHECK(str_starts(buf_slice(out), STR("# {")) && json_valid(json));
    return key[0] == '.' ? json_member(json, key + 1)
                         : json_member(json_member(json, "metadata"), key);
}

static void has(const char *line, const char *key, const char *expected)
{
    struct origin origin = origin_of_test();
    struct buf out;
    CHECK_STR(metadata_of(&out, line, &origin, key), expected);
    buf_release(&out);
}

static void every_key_that_is_asked_for_is_there(void)
{
    CHECK_INT(sizeof required / sizeof required[0], 23);
    static const char *const lines[] = {LINE, "", "# {}", "# {\"metadata\": 5}", "# broken",
                                        "# {\"metadata\": {}, \"containers\": null}"};
    static const struct origin nothing;
    struct origin all = origin_of_test();
    const struct origin *origins[] = {&all, &nothing};
    for (size_t o = 0; o < 2; o++) {
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
            for (size_t k = 0; k < 23; k++) {
                struct buf out;
                struct str value = metadata_of(&out, lines[i], origins[o], required[k]);
                CHECK(value.len > 0 && !str_eq(value, STR("null")) && !str_eq(value, STR("\"\"")) &&
                      (!str_eq(value, STR("0")) || k == 2 || k == 14)); /* an uptime, a pid */
                buf_release(&out);
            }
        }
    }
}

static void facts_have_their_values(void)
{
    has("", "spawn_time", "\"2025-11-20T10:31:04\"");
    has("", "spawn_uptime_ms", "5000"); /* milliseconds, as the name says */
    has("", "current_time", "\"2025-11-20T10:32:04\"");
    has("", "memory_capacity_mb", "8192");
    has("", "processors", "4");
    has("", "pid", "42");
    has("", "mac_address", "\"0A:58:0A:01:02:03\"");
    has("", "agent_version", "\"1.2.3\"");
    has("", "system_name", "\"Linux\"");
}

static void what_the_file_says_stays(void)
{
    has(LINE, "current_time", "\"T\"");
    has(LINE, "hostname", "\"web-1\""); /* null is not said */
    has(LINE, "continuous", "true");
    has(LINE, ".containers", "[\"c\"]");
    has(LINE, ".application_metadata", "[null, {}]");
    has("# {\"metadata\": {\"pid\": \"7\", \"cloud_info\": null, \"processors\": 2}}", "pid", "42");
    has("# {\"metadata\": {\"cloud_info\": null, \"big_data\": 1}}", "big_data", "1");
    has("# {\"metadata\": {\"cloud_info\": {\"a\": 1}}}", "cloud_info", "{\"a\": 1}");
}

/* The indexer takes an object or nothing. */
static void a_name_has_one_tag_and_others_are_said(void)
{
    static const struct fact tags[] = {{{"env", 3}, {"a b", 3}}, {{"k", 1}, {"v", 1}},
                                       {{"env", 3}, {"dev", 3}}, {{"k", 1}, {"v", 1}}};
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin};
    struct buf out;
    memcpy(origin.tags, tags, sizeof tags);
    origin.tag_count = 4;
    CHECK_STR(metadata_of(&out, "", &origin, "tags"), "{\"env\": \"a b\", \"k\": \"v\"}");
    buf_release(&out);
    CHECK_TEXT(why_left_out(row(), &context, "env"), "another tag has this name");
    CHECK_TEXT(why_left_out(row(), &context, "k"), ""); /* it says the same */
}

static void a_cloud_that_is_no_object_is_left_out(void)
{
    struct origin origin = origin_of_test();
    struct buf out;
    const char *line = "# {\"metadata\": {\"cloud_info\": null}}";
    CHECK(metadata_of(&out, line, &origin, "cloud_info").ptr == NULL);
    buf_release(&out);
}

static void the_cloud_has_the_names_that_other_agents_gave(void)
{
    struct origin origin = origin_of_test();
    struct buf out;
    origin.cloud_provider = STR("AWS");
    origin.resource[0] = (struct fact){STR("aws.ecs.launchtype"), STR("fargate")};
    origin.resource[1] = (struct fact){STR("cloud.region"), STR("eu-west-1")};
    origin.resource[2] = (struct fact){STR("aws.ecs.task.arn"), STR("arn:\"x\"")};
    origin.resource[3] = (struct fact){STR("gcp.gce.instance.name"), STR("no")};
    origin.resource[4] = (struct fact){STR("k8s.container.name"), STR("b")};
    origin.resource[5] = (struct fact){STR("container.name"), STR("a")};
    origin.resource_count = 6;
    CHECK_STR(metadata_of(&out, "", &origin, "cloud_info"),
              "{\"execution_env\": \"AWS_ECS_FARGATE\", \"region\": \"eu-west-1\", "
              "\"task_arn\": \"arn:\\\"x\\\"\", \"launch_type\": \"fargate\", \"container_name\": \"a\"}");
    buf_release(&out);
    CHECK_STR(metadata_of(&out, "", &origin, "cloud_provider"), "\"AWS\"");
    buf_release(&out);
    /* what a file says of its cloud is not mixed with what we know of ours */
    const char *other = "# {\"metadata\": {\"cloud_provider\": \"GCP\"}}";
    CHECK(metadata_of(&out, other, &origin, "cloud_info").ptr == NULL);
    buf_release(&out);
    origin.resource_count = 0;
    CHECK(metadata_of(&out, "", &origin, "cloud_info").ptr == NULL);
    buf_release(&out);
}

static void an_instance_of_cloud_run_is_told_by_its_own_id(void)
{
    struct origin origin = origin_of_test();
    struct buf out;
    origin.cloud_provider = STR("GCP");
    origin.resource[0] = (struct fact){STR("faas.instance"), STR("00f4")};
    origin.resource_count = 1;
    CHECK_STR(metadata_of(&out, "", &origin, "cloud_info"), "{\"instance_id\": \"00f4\"}");
    buf_release(&out);
}

static void arguments_are_joined_without_types_that_lose_the_profile(void)
{
    struct origin origin = origin_of_test();
    origin.arguments[0] = (struct fact){STR("perf_mode"), STR("smart")};
    origin.arguments[1] = (struct fact){STR("frequency"), STR("11")};
    origin.arguments[2] = (struct fact){STR("profile_api_version"), STR("v1")};
    origin.argument_count = 3;
    struct buf out;
    struct str arguments = metadata_of(&out, LINE, &origin, "run_arguments");
    CHECK_STR(json_member(arguments, "service_name"), "\"s\"");
    CHECK_STR(json_member(arguments, "frequency"), "99");
    CHECK(json_member(arguments, "perf_mode").ptr == NULL); /* 5 is no text, and the file's comes first */
    CHECK_STR(json_member(arguments, "profile_api_version"), "null");
    buf_release(&out);
}

static void lines_without_a_header_are_said_to_have_no_index_and_container(void)
{
    has("", ".containers", "[]");
    has("", ".application_metadata_enabled", "false");
    struct origin origin = origin_of_test();
    struct buf out;
    CHECK_STR(json_member(metadata_of(&out, "", &origin, "run_arguments"), "profile_api_version"),
              "\"v1\"");
    buf_release(&out);
    CHECK_STR(json_member(metadata_of(&out, LINE, &origin, "run_arguments"), "profile_api_version"),
              "null");
    buf_release(&out);
}

static void machines_without_an_address_are_not_one(void)
{
    struct origin one = {.hostname = STR("one")}, two = {.hostname = STR("two")};
    struct buf a, b;
    struct str first = metadata_of(&a, "", &one, "mac_address");
    struct str second = metadata_of(&b, "", &two, "mac_address");
    CHECK_INT(first.len, 19);
    CHECK(str_starts(first, STR("\"02:")) && !str_eq(first, second));
    buf_release(&a);
    buf_release(&b);
}

static void metrics_are_told_both_or_not_at_all(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin};
    struct delivery delivery = delivery_of("col", STR(""));
    struct buf out;
    buf_init(&out, 10000);
    delivery.cpu_percent = 12.345;
    studio_header(&out, STR(""), &context, &delivery);
    CHECK(strstr(buf_cstr(&out), "\"metrics\": {\"cpu_avg\": null, \"mem_avg\": null}") != NULL);
    buf_clear(&out);
    delivery.memory_percent = 50;
    studio_header(&out, STR(""), &context, &delivery);
    CHECK(strstr(buf_cstr(&out), "\"metrics\": {\"cpu_avg\": 12.35, \"mem_avg\": 50.00}") != NULL ||
          strstr(buf_cstr(&out), "\"metrics\": {\"cpu_avg\": 12.34, \"mem_avg\": 50.00}") != NULL);
    buf_release(&out);
}

static void what_a_file_says_of_it_is_told_where_nothing_else_is_known(void)
{
    static const struct {
        const char *line, *told;
    } rows[] = {
        {"# {\"metrics\": {\"cpu_avg\": 12.5, \"mem_avg\": 3}}", "{\"cpu_avg\": 12.5, \"mem_avg\": 3}"},
        {"# {\"metrics\": {\"cpu_avg\": 12.5, \"mem_avg\": null}}", "{\"cpu_avg\": null, \"mem_avg\": null}"},
        {"# {\"metrics\": {\"cpu_avg\": \"1\", \"mem_avg\": 2}}", "{\"cpu_avg\": null, \"mem_avg\": null}"},
        {"# {\"metrics\": 5}", "{\"cpu_avg\": null, \"mem_avg\": null}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        has(rows[i].line, ".metrics", rows[i].told);
    }
}

static struct str body_member(struct str body, struct buf *plain, const char *name)
{
    struct err err;
    buf_clear(plain);
    CHECK(gzip_inflate(body.ptr, body.len, plain, &err) && json_valid(buf_slice(plain)));
    return json_member(buf_slice(plain), name);
}

static void a_request_is_what_the_studio_asks_for(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1"), .gpid = "77"};
    struct delivery delivery = delivery_of("col", STR(COL));
    struct http_request request;
    struct buf text, plain, profile;
    struct err err;
    buf_init(&text, 1 << 20);
    buf_init(&plain, 1 << 20);
    buf_init(&profile, 1 << 20);
    CHECK(row()->request(&context, &delivery, &request, &text, &err));
    CHECK_TEXT(request.method, "POST");
    CHECK_STR(request.target, "/api/v2/profiles?service=shop&hostname=web-1&timestamp="
                              "2025-11-20T10%3A31%3A04&version=1.2.3");
    CHECK_STR(header_of(&request, "GPROFILER-API-KEY"), "SECRET-1");
    CHECK_STR(header_of(&request, "GPROFILER-SERVICE-NAME"), "shop");
    CHECK_STR(header_of(&request, "Content-Encoding"), "gzip");
    CHECK_STR(header_of(&request, "Content-Type"), "application/json");
    CHECK_STR(body_member(request.body, &plain, "start_time"), "\"2025-11-20T10:31:04\"");
    CHECK_STR(body_member(request.body, &plain, "gpid"), "\"77\"");
    CHECK(json_text_of(body_member(request.body, &plain, "profile"), &profile));
    struct str col = buf_slice(&profile);
    CHECK(str_ends(col, STR(LINES)) && str_find(col, '\n') + strlen(LINES) == col.len);
    CHECK(memmem(plain.ptr, plain.len, "SECRET", 6) == NULL);
    buf_release(&text);
    buf_release(&plain);
    buf_release(&profile);
}

static void the_token_is_marked_as_a_secret(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1")};
    struct delivery delivery = delivery_of("col", STR(COL));
    struct http_request request;
    struct buf text;
    struct err err;
    buf_init(&text, 1 << 20);
    CHECK(row()->request(&context, &delivery, &request, &text, &err));
    for (size_t i = 0; i < request.header_count; i++) {
        bool holds = memmem(request.headers[i].value.ptr, request.headers[i].value.len, "SECRET", 6);
        CHECK(holds == request.headers[i].secret);
    }
    CHECK(memmem(text.ptr, text.len, "SECRET", 6) == NULL);
    buf_release(&text);
}

static void refuses(struct backend_context *context, struct delivery *delivery, size_t max,
                    enum err_kind kind)
{
    struct http_request request;
    struct buf text;
    struct err err = {0};
    buf_init(&text, max);
    CHECK(!row()->request(context, delivery, &request, &text, &err));
    CHECK_INT(err.kind, kind);
    CHECK(strstr(err.text, "SECRET") == NULL);
    buf_release(&text);
}

static void what_cannot_be_sent_is_refused(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET\n")};
    struct delivery col = delivery_of("col", STR(COL)), pprof = delivery_of("pprof", STR(""));
    refuses(&context, &col, 1 << 20, ERR_USAGE);
    context.token = STR("SECRET");
    refuses(&context, &pprof, 1 << 20, ERR_USAGE);
    refuses(&context, &col, 200, ERR_LIMIT);
}

static void the_id_is_kept_and_forgotten_after_a_failure(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .url = {.host = STR("h")}};
    struct err err;
    CHECK_INT(judged(row(), &context, 200, "{\"message\":\"ok\",\"gpid\":\"123\"}", &err), VERDICT_TAKEN);
    CHECK_TEXT(context.gpid, "123");
    CHECK_INT(judged(row(), &context, 200, "{\"message\":\"ok\",\"gpid\":456}", &err), VERDICT_TAKEN);
    CHECK_TEXT(context.gpid, "456");
    CHECK_INT(judged(row(), &context, 200, "{\"message\":\"ok\"}", &err), VERDICT_TAKEN);
    CHECK_TEXT(context.gpid, "456"); /* an answer to a health check has none */
    static const unsigned failures[] = {400, 401, 413, 422, 429, 500};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        strcpy(context.gpid, "9");
        CHECK(judged(row(), &context, failures[i], "", &err) != VERDICT_TAKEN);
        CHECK_TEXT(context.gpid, "");
    }
}

static void an_answer_that_lies_gives_no_id(void)
{
    static const char *const bodies[] = {"", "{", "{\"gpid\": \"12x\"}", "{\"gpid\": null}", "[1]",
                                         "{\"gpid\": -1}", "{\"gpid\": \"\"}", "ok",
                                         "{\"gpid\": \"99999999999999999999999\"}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct origin origin = origin_of_test();
        struct backend_context context = {.origin = &origin};
        struct err err;
        CHECK_INT(judged(row(), &context, 200, bodies[i], &err), VERDICT_TAKEN);
        CHECK_TEXT(context.gpid, "");
    }
}

/* 3.4 of the studio's facts: one status stands for a wrong key, a forgotten id and a profile
 * that is wrong. */
static void words_tell_what_400_means(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .url = {.host = STR("h")}};
    struct err err;
    CHECK_INT(judged(row(), &context, 400, "{\"message\": \"Invalid API key\"}", &err), VERDICT_CONFIG);
    CHECK_INT(judged(row(), &context, 400, "{\"message\": \"Invalid GPROFILER-SERVICE-NAME header\"}", &err),
              VERDICT_CONFIG);
    const char *parse = "{\"message\": \"Failed to parse v2 metadata\"}";
    CHECK_INT(judged(row(), &context, 400, parse, &err), VERDICT_REFUSED);
    strcpy(context.gpid, "9");
    CHECK_INT(judged(row(), &context, 400, parse, &err), VERDICT_AGAIN);
    CHECK_INT(judged(row(), &context, 400, parse, &err), VERDICT_REFUSED);
    CHECK_INT(judged(row(), &context, 400, "{\"message\": \"Failed to register the new service\"}", &err),
              VERDICT_TAKEN);
    CHECK_INT(judged(row(), &context, 413, "\"Request Entity Too Large\"", &err), VERDICT_SMALLER);
    CHECK_INT(judged(row(), &context, 413, "<html>nginx</html>", &err), VERDICT_SMALLER);
    CHECK_INT(judged(row(), &context, 422, "{\"detail\":[{\"msg\":\"field required\"}]}", &err),
              VERDICT_REFUSED);
    CHECK(strstr(err.text, "field required") != NULL);
}

static void a_health_check_is_a_get_with_the_same_headers(void)
{
    struct origin origin = origin_of_test();
    struct backend_context context = {.origin = &origin, .token = STR("SECRET-1"), .now_wall_ns = END_NS};
    struct http_request request;
    struct buf text;
    struct err err;
    buf_init(&text, 10000);
    CHECK(row()->health(&context, &request, &text, &err));
    CHECK_TEXT(request.method, "GET");
    CHECK(str_starts(request.target, STR("/api/v1/health_check?")));
    CHECK_STR(header_of(&request, "GPROFILER-API-KEY"), "SECRET-1");
    CHECK_INT(request.body.len, 0);
    buf_release(&text);
}

static void a_service_name_is_fit_for_a_header(void)
{
    struct origin origin = origin_of_test();
    origin.service = STR("a b\r\nX: y\xc3\xa9");
    struct backend_context context = {.origin = &origin, .token = STR("t")};
    struct delivery delivery = delivery_of("col", STR(COL));
    struct http_request request;
    struct buf text;
    struct err err;
    buf_init(&text, 1 << 20);
    CHECK(row()->request(&context, &delivery, &request, &text, &err));
    CHECK_STR(header_of(&request, "GPROFILER-SERVICE-NAME"), "a_b__X:_y__");
    buf_release(&text);
}

TESTS({"every key that the studio asks for is there, whatever the file and the machine tell",
       every_key_that_is_asked_for_is_there},
      {"facts have their values", facts_have_their_values},
      {"what the file says stays, unless it is of the wrong kind", what_the_file_says_stays},
      {"a name has one tag, and others are said", a_name_has_one_tag_and_others_are_said},
      {"a cloud that is no object is left out", a_cloud_that_is_no_object_is_left_out},
      {"the cloud has the names that other agents gave",
       the_cloud_has_the_names_that_other_agents_gave},
      {"an instance of Cloud Run is told by its own id",
       an_instance_of_cloud_run_is_told_by_its_own_id},
      {"arguments are joined, without types that lose the profile",
       arguments_are_joined_without_types_that_lose_the_profile},
      {"lines without a header are said to have no index and no container",
       lines_without_a_header_are_said_to_have_no_index_and_container},
      {"machines without a hardware address are not taken for one", machines_without_an_address_are_not_one},
      {"metrics are told both or not at all", metrics_are_told_both_or_not_at_all},
      {"what a file says of it is told where nothing else is known",
       what_a_file_says_of_it_is_told_where_nothing_else_is_known},
      {"a request is what the studio asks for", a_request_is_what_the_studio_asks_for},
      {"the token is in one header, which is marked as a secret", the_token_is_marked_as_a_secret},
      {"what cannot be sent is refused, with a reason", what_cannot_be_sent_is_refused},
      {"the id is kept, and forgotten after a failure", the_id_is_kept_and_forgotten_after_a_failure},
      {"an answer that lies gives no id", an_answer_that_lies_gives_no_id},
      {"words tell what 400 means", words_tell_what_400_means},
      {"a health check is a GET with the same headers", a_health_check_is_a_get_with_the_same_headers},
      {"a service's name is made fit for a header", a_service_name_is_fit_for_a_header})
