/* What the metadata service of ECS says of a task: its identifiers, cluster, family, limits and
 * containers, as facts under OpenTelemetry's names. Pure: the response's text is given, nothing is
 * asked here. */
#include "origin/ecs.h"

#include "base/json.h"

#include <stdio.h>

enum { ARN_MAX_BYTES = 512, TYPE_MAX_BYTES = 24 };

#define LABEL "com.amazonaws.ecs."

/* arn:PARTITION:ecs:REGION:ACCOUNT:task/CLUSTER/ID; old ones have no cluster in them. */
struct arn {
    struct str partition, region, account, last;
};

static bool parse_arn(struct str text, struct arn *out)
{
    struct str rest = text;
    struct str word = str_cut(&rest, ':');
    out->partition = str_cut(&rest, ':');
    struct str service = str_cut(&rest, ':');
    out->region = str_cut(&rest, ':');
    out->account = str_cut(&rest, ':');
    out->last = str_base_name(rest);
    return str_eq(word, STR("arn")) && str_eq(service, STR("ecs")) && out->region.len > 0 &&
           out->account.len > 0 && out->last.len > 0;
}

static void add_provider(struct facts *facts)
{
    facts_add(facts, "cloud.provider", STR("aws"));
    facts_add(facts, "cloud.platform", STR("aws_ecs"));
}

/* Also the region, the account, and with what to complete a cluster's name. */
static bool take_task_arn(struct facts *facts, struct str object, const char *key, struct arn *out)
{
    struct str value = json_member(object, key);
    if (value.len < 2 || !parse_arn(str_sub(value, 1, value.len - 2), out)) {
        return false;
    }
    add_provider(facts);
    facts_add_member(facts, "aws.ecs.task.arn", object, key);
    facts_add(facts, "aws.ecs.task.id", out->last);
    facts_add(facts, "cloud.region", out->region);
    facts_add(facts, "cloud.account.id", out->account);
    return true;
}

/* An ARN, or a name alone. */
static void take_cluster(struct facts *facts, struct str object, const char *key,
                         const struct arn *task)
{
    struct buf name;
    struct arn arn;
    char whole[ARN_MAX_BYTES];
    buf_init(&name, ARN_MAX_BYTES / 2);
    if (json_text_of(json_member(object, key), &name) && !name.failed) {
        struct str text = buf_slice(&name);
        if (!parse_arn(text, &arn) && text.len > 0) {
            snprintf(whole, sizeof whole, "arn:%.*s:ecs:%.*s:%.*s:cluster/%.*s",
                     (int)task->partition.len, task->partition.ptr, (int)task->region.len,
                     task->region.ptr, (int)task->account.len, task->account.ptr, (int)text.len,
                     text.ptr);
            text = str_of(whole);
        }
        facts_add(facts, "aws.ecs.cluster.arn", text);
    }
    buf_release(&name);
}

/* "FARGATE" → "fargate" */
static void take_launch_type(struct facts *facts, struct str task)
{
    char lower[TYPE_MAX_BYTES];
    struct str value = json_member(task, "LaunchType");
    size_t len = value.len > 2 ? value.len - 2 : 0;
    if (len == 0 || len > sizeof lower) {
        return;
    }
    for (size_t i = 0; i < len; i++) {
        char c = value.ptr[1 + i];
        bool is_upper = c >= 'A' && c <= 'Z', is_digit = c >= '0' && c <= '9';
        if (!is_upper && !is_digit && (c < 'a' || c > 'z') && c != '_') {
            return;
        }
        lower[i] = (char)(is_upper ? c - 'A' + 'a' : c);
    }
    facts_add(facts, "aws.ecs.launchtype", (struct str){lower, len});
}

/* Without the tag and the digest: "host:5000/shop/api:1.2@sha256:…" is "host:5000/shop/api". */
static void take_image(struct facts *facts, struct str container)
{
    struct buf text;
    buf_init(&text, FACT_VALUE_MAX);
    if (json_text_of(json_member(container, "Image"), &text) && !text.failed) {
        struct str image = buf_slice(&text);
        image = str_sub(image, 0, str_find(image, '@'));
        size_t slash = str_find_last(image, '/'), colon = str_find_last(image, ':');
        bool has_tag = colon < image.len && (slash == image.len || colon > slash);
        facts_add(facts, "container.image.name", has_tag ? str_sub(image, 0, colon) : image);
    }
    buf_release(&text);
    facts_add_member(facts, "container.image.id", container, "ImageID");
}

/* MiB; a whole number, or one written like "512.0". */
static uint64_t bytes_of_mib(struct str value)
{
    uint64_t mib;
    struct str whole = str_sub(value, 0, str_find(value, '.'));
    return str_u64(whole, &mib) && mib < UINT64_C(1) << 40 ? mib << 20 : 0;
}

/* 0.25 → 250 */
static uint64_t millis_of(struct str value)
{
    uint64_t whole, part = 0, unit = 100;
    size_t point = str_find(value, '.');
    if (!str_u64(str_sub(value, 0, point), &whole) || whole > 100000) {
        return 0;
    }
    for (size_t i = point + 1; i < value.len && unit > 0; i++, unit /= 10) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9') {
            break;
        }
        part += unit * (uint64_t)(value.ptr[i] - '0');
    }
    return whole * 1000 + part;
}

bool ecs_take_container(struct facts *facts, struct str body)
{
    struct arn task;
    struct str labels;
    if (!json_valid(body) || !str_starts(json_member(body, "DockerId"), STR("\""))) {
        return false;
    }
    add_provider(facts);
    facts_add_member(facts, "container.id", body, "DockerId");
    facts_add_member(facts, "container.name", body, "Name");
    take_image(facts, body);
    facts_add_member(facts, "aws.ecs.container.arn", body, "ContainerARN");
    facts_add_member(facts, "cloud.resource_id", body, "ContainerARN");
    labels = json_member(body, "Labels");
    facts_add_member(facts, "aws.ecs.task.family", labels, LABEL "task-definition-family");
    facts_add_member(facts, "aws.ecs.task.revision", labels, LABEL "task-definition-version");
    if (take_task_arn(facts, labels, LABEL "task-arn", &task)) {
        take_cluster(facts, labels, LABEL "cluster", &task);
    }
    facts->memory_bytes = bytes_of_mib(json_member(json_member(body, "Limits"), "Memory"));
    return true;
}

bool ecs_take_task(struct facts *facts, struct str body)
{
    struct arn task;
    if (!json_valid(body) || !take_task_arn(facts, body, "TaskARN", &task)) {
        return false;
    }
    take_cluster(facts, body, "Cluster", &task);
    facts_add_member(facts, "aws.ecs.task.family", body, "Family");
    facts_add_member(facts, "aws.ecs.task.revision", body, "Revision");
    facts_add_member(facts, "aws.ecs.service.name", body, "ServiceName");
    facts_add_member(facts, "cloud.availability_zone", body, "AvailabilityZone");
    take_launch_type(facts, body);
    struct str limits = json_member(body, "Limits");
    uint64_t memory_bytes = bytes_of_mib(json_member(limits, "Memory"));
    facts->memory_bytes = memory_bytes != 0 ? memory_bytes : facts->memory_bytes;
    facts->cpu_millis = millis_of(json_member(limits, "CPU"));
    return true;
}
