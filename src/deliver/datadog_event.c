/* Datadog's event.json, version 4: the times of a profile, its tags, and what it says of the
 * profiler. Tags are brought into the form that Datadog keeps; those that it could not keep are
 * listed as omissions. */
#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"
#include "base/version.h"
#include "base/ascii.h"
#include "deliver/backend_private.h"
#include "profile/runtime_profile.h"

#include <stdio.h>

enum { TAG_MAX_BYTES = 200, KEYS_MAX = 96, TAGS_MAX_BYTES = 64 * 1024 };

/* ---- tags ---- */

/* The tags as they are written, "key:value,key:value"; and whose keys are taken. */
struct tags {
    struct buf text;
    struct str keys[KEYS_MAX];
    size_t count, own; /* of these the first are ours */
};

/* What ddprof lets pass; a comma would begin another tag. */
static bool is_tag_byte(char c)
{
    return ascii_is_alnum(c) || c == '_' || c == '-' || c == ':' || c == '.' || c == '/' ||
           c == '\\';
}

static bool is_tag_text(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (!is_tag_byte(text.ptr[i])) {
            return false;
        }
    }
    return text.len > 0;
}

/* Null: it is one. */
static const char *why_no_tag(const struct fact *fact)
{
    struct str name = fact->name, value = fact->value;
    if (!is_tag_text(name) || !is_tag_text(value)) {
        return "a tag holds letters, digits and _ - : . / \\ alone";
    }
    if (ascii_is_digit(name.ptr[0]) || !ascii_is_alnum(name.ptr[0])) {
        return "a tag begins with a letter";
    }
    if (value.ptr[value.len - 1] == ':') {
        return "a tag does not end with a colon";
    }
    return name.len + 1 + value.len <= TAG_MAX_BYTES
               ? NULL : "a tag has at most 200 characters, its colon counted";
}

static bool is_taken(const struct tags *tags, size_t count, struct str key)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(tags->keys[i], key)) {
            return true;
        }
    }
    return false;
}

static void begin_tag(struct tags *tags, struct str key)
{
    if (tags->text.len > 0) {
        buf_byte(&tags->text, ',');
    }
    buf_str(&tags->text, key);
    buf_byte(&tags->text, ':');
    if (tags->count < KEYS_MAX) {
        tags->keys[tags->count++] = key;
    }
}

/* A fact, whatever it holds: what a tag may not hold becomes '_', as it would there. The key is
 * ours. */
static void add_fact(struct tags *tags, const char *key, struct str value)
{
    struct str rest = str_trim(value), name = str_of(key);
    if (rest.len == 0 || is_taken(tags, tags->count, name)) {
        return;
    }
    begin_tag(tags, name);
    size_t most = tags->text.len + TAG_MAX_BYTES - name.len - 1;
    while (rest.len > 0) {
        size_t at = tags->text.len;
        uint32_t c = utf8_take(&rest);
        if (c < 0x80) {
            buf_byte(&tags->text, is_tag_byte((char)c) ? (char)c : '_');
        } else {
            utf8_put(&tags->text, c);
        }
        if (tags->text.len > most) {
            tags->text.len = at;
            break;
        }
    }
    if (!tags->text.failed && tags->text.ptr[tags->text.len - 1] == ':') {
        tags->text.ptr[tags->text.len - 1] = '_';
    }
}

static void add_number(struct tags *tags, const char *key, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    add_fact(tags, key, str_of(text));
}

/* As Go calls them, which is what the service's other profilers send. */
static struct str architecture(struct str machine)
{
    return str_eq(machine, STR("x86_64"))    ? STR("amd64")
           : str_eq(machine, STR("aarch64")) ? STR("arm64")
                                             : machine;
}

/* The same for all profiles of a run. */
static void put_runtime_id(char out[static 40], const struct origin *origin)
{
    uint64_t one = hash_u64(origin->spawn_wall_ns) ^ hash_u64(~(uint64_t)origin->pid) ^
                   str_hash(origin->container_id);
    uint64_t two = str_hash(origin->hostname) ^ hash_u64(str_hash(origin->mac_address)) ^
                   hash_u64(origin->cgroup_inode + 1) ^ hash_u64(hash_u64(origin->boot_ns));
    backend_uuid(out, hash_u64(one + 1), hash_u64(two ^ one));
}

static struct str user_tag(const struct origin *origin, const char *name)
{
    const struct fact *fact = backend_fact(origin->tags, origin->tag_count, str_of(name));
    return fact != NULL ? fact->value : STR("");
}

/* Without the user and the password that it may have been cloned with. */
static void add_repository(struct tags *tags, struct str url)
{
    size_t scheme = str_find(url, ':') + 3, at = str_find_last(url, '@');
    bool has_user = at < url.len && scheme < url.len;
    bool has_scheme = has_user && str_eq(str_sub(url, scheme - 2, 2), STR("//"));
    struct buf text;
    buf_init(&text, TAGS_MAX_BYTES);
    buf_str(&text, str_sub(url, 0, has_scheme ? scheme : 0));
    buf_str(&text, str_sub(url, has_user ? at + 1 : 0, url.len));
    add_fact(tags, "git.repository_url", buf_slice(&text));
    tags->text.failed |= text.failed;
    buf_release(&text);
}

/* What the service calls its own profiler of that language. */
static struct str family_of(const struct delivery *delivery)
{
    struct str language = delivery->subject.language;
    return language.len == 0                        ? STR("native")
           : str_eq(language, STR("javascript"))    ? STR("node")
                                                    : language;
}

static bool has_trace(const struct delivery *delivery)
{
    bool any = runtime_profile_is_trace(delivery->type);
    for (size_t i = 0; i < delivery->more_count; i++) {
        any = any || runtime_profile_is_trace(delivery->more[i].type);
    }
    return any;
}

static void add_own(struct tags *tags, const struct backend_context *context,
                    const struct delivery *delivery)
{
    const struct origin *origin = context->origin;
    struct str tagged = user_tag(origin, "service");
    char id[40];
    put_runtime_id(id, origin);
    add_fact(tags, "language", family_of(delivery));
    struct str version = delivery->subject.runtime, runtime = str_cut(&version, ' ');
    add_fact(tags, "runtime", runtime);
    add_fact(tags, "runtime_version", str_cut(&version, ','));
    add_fact(tags, "env", user_tag(origin, "env"));
    add_fact(tags, "service", origin->service.len > 0 ? origin->service : tagged);
    add_fact(tags, "version", user_tag(origin, "version"));
    add_fact(tags, "host", origin->hostname);
    add_number(tags, "process_id", delivery->subject.pid != 0 ? delivery->subject.pid : origin->pid);
    add_fact(tags, "runtime-id", str_of(id));
    add_fact(tags, "profiler_version", STR(PILLION_VERSION));
    add_fact(tags, "runtime_arch", architecture(origin->hardware_type));
    add_fact(tags, "runtime_os", STR("linux"));
    add_fact(tags, "git.commit.sha", context->git_commit);
    add_repository(tags, context->git_repository);
    if (origin->processors > 0) {
        add_number(tags, "number_of_cpu_cores", origin->processors);
    }
    /* It counts from 0, and what was dropped counts, too: the service sees gaps by it. */
    add_number(tags, "profile_seq", delivery->sequence > 0 ? delivery->sequence - 1 : 0);
    if (delivery->shrunk) {
        add_fact(tags, "profile_dropped_to_fit", STR("yes"));
    }
    if (has_trace(delivery)) {
        add_fact(tags, "go_execution_traced", STR("yes"));
        add_fact(tags, "_dd.profiler.go_execution_trace_enabled", STR("true"));
    }
}

/* Does the tag stand there, as it is? */
static bool is_said(const struct tags *tags, const struct fact *fact)
{
    for (struct str rest = buf_slice(&tags->text); rest.len > 0;) {
        struct str value = str_cut(&rest, ','), name = str_cut(&value, ':');
        if (str_eq(name, fact->name) && str_eq(value, fact->value)) {
            return true;
        }
    }
    return false;
}

/* Is it what add_own made one of ours of? */
static bool is_source(const struct origin *origin, const struct fact *fact)
{
    bool is_taken_over = str_eq(fact->name, STR("env")) || str_eq(fact->name, STR("version")) ||
                         (str_eq(fact->name, STR("service")) && origin->service.len == 0);
    return is_taken_over &&
           backend_fact(origin->tags, origin->tag_count, fact->name) == fact;
}

/* Those of one's own may stand more than once, but never beside one of ours: two versions of a
 * service could not be compared. */
static void add_users(struct tags *tags, const struct origin *origin, struct omissions *omitted)
{
    tags->own = tags->count;
    for (size_t i = 0; i < origin->tag_count; i++) {
        const struct fact *fact = &origin->tags[i];
        const char *why = why_no_tag(fact);
        if (is_taken(tags, tags->own, fact->name)) {
            bool is_lost = !is_source(origin, fact) && !is_said(tags, fact);
            why = is_lost ? "every profile has one tag of this name, by -S, -E, -V or from pillion "
                            "itself" : NULL;
        } else if (why == NULL) {
            begin_tag(tags, fact->name);
            buf_str(&tags->text, fact->value);
        }
        backend_omit(omitted, fact, true, why);
    }
}

/* What the service calls a fact that the platform tells. */
static const struct {
    const char *fact, *tag;
    const char *provider; /* of this cloud alone; null: of any */
} platform_tags[] = {
    {"cloud.provider", "cloud_provider", NULL},
    {"cloud.region", "region", NULL},
    {"cloud.availability_zone", "zone", NULL},
    {"cloud.account.id", "aws_account", "aws"},
    {"cloud.account.id", "project_id", "gcp"},
    {"cloud.account.id", "subscription_id", "azure"},
    {"host.type", "instance-type", NULL},
    {"aws.ecs.service.name", "ecs_service", NULL},
    {"aws.ecs.task.arn", "task_arn", NULL},
    {"aws.ecs.task.family", "task_family", NULL},
    {"aws.ecs.task.revision", "task_version", NULL},
    {"aws.ecs.launchtype", "ecs_launch_type", NULL},
    {"container.id", "container_id", NULL},
    {"container.name", "container_name", NULL},
    {"container.image.name", "image_name", NULL},
    {"container.image.tag", "image_tag", NULL},
    {"container.image.tags", "image_tag", NULL},
    {"k8s.cluster.name", "kube_cluster_name", NULL},
    {"k8s.namespace.name", "kube_namespace", NULL},
    {"k8s.node.name", "kube_node", NULL},
    {"k8s.pod.name", "pod_name", NULL},
    {"k8s.container.name", "kube_container_name", NULL},
    {"k8s.deployment.name", "kube_deployment", NULL},
    {"k8s.replicaset.name", "kube_replica_set", NULL},
    {"k8s.statefulset.name", "kube_stateful_set", NULL},
    {"k8s.daemonset.name", "kube_daemon_set", NULL},
    {"k8s.job.name", "kube_job", NULL},
    {"k8s.cronjob.name", "kube_cronjob", NULL},
};

static struct str resource(const struct origin *origin, const char *name)
{
    const struct fact *fact =
        backend_fact(origin->resource, origin->resource_count, str_of(name));
    return fact != NULL ? fact->value : STR("");
}

static void add_platform(struct tags *tags, const struct origin *origin)
{
    struct str provider = resource(origin, "cloud.provider");
    for (size_t i = 0; i < sizeof platform_tags / sizeof platform_tags[0]; i++) {
        const char *only = platform_tags[i].provider;
        if (only == NULL || str_eq(provider, str_of(only))) {
            add_fact(tags, platform_tags[i].tag, resource(origin, platform_tags[i].fact));
        }
    }
    add_fact(tags, "ecs_cluster_name", str_base_name(resource(origin, "aws.ecs.cluster.arn")));
    add_fact(tags, "container_id", origin->container_id);
    if (ascii_same(resource(origin, "aws.ecs.launchtype"), STR("fargate"))) {
        add_fact(tags, "orchestrator", STR("fargate_ecs"));
    }
}

/* ---- the document ---- */

static void put_key(struct buf *out, const char *key)
{
    bool is_first = out->len == 0 || out->ptr[out->len - 1] == '{';
    buf_printf(out, "%s\"%s\":", is_first ? "" : ",", key);
}

static void put_text(struct buf *out, const char *key, struct str value)
{
    if (value.len > 0) {
        put_key(out, key);
        json_text(out, value);
    }
}

/* "2025-11-20T10:31:04.000000000Z" */
static void put_moment(struct buf *out, const char *key, uint64_t wall_ns)
{
    char seconds[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, seconds);
    put_key(out, key);
    buf_printf(out, "\"%s.%09uZ\"", seconds, (unsigned)(wall_ns % NS_PER_S));
}

static void put_tags(struct buf *out, const struct backend_context *context,
                     const struct delivery *delivery)
{
    struct tags tags = {.count = 0};
    buf_init(&tags.text, TAGS_MAX_BYTES);
    add_own(&tags, context, delivery);
    add_users(&tags, context->origin, NULL);
    add_platform(&tags, context->origin);
    put_text(out, "tags_profiler", buf_slice(&tags.text));
    out->failed |= tags.text.failed;
    buf_release(&tags.text);
}

void datadog_omits(const struct backend_context *context, struct omissions *out)
{
    struct tags tags = {.count = 0};
    buf_init(&tags.text, TAGS_MAX_BYTES);
    add_own(&tags, context, &(struct delivery){0});
    add_users(&tags, context->origin, out);
    buf_release(&tags.text);
}

static void put_settings(struct buf *out, const struct origin *origin)
{
    const char *between = "";
    put_key(out, "settings");
    buf_byte(out, '{');
    for (size_t i = 0; i < origin->argument_count; i++) {
        const struct fact *fact = &origin->arguments[i];
        if (backend_fact(origin->arguments, origin->argument_count, fact->name) == fact) {
            buf_text(out, between);
            between = ",";
            json_text(out, fact->name);
            buf_byte(out, ':');
            json_text(out, fact->value);
        }
    }
    buf_byte(out, '}');
}

/* As the service's own libraries write it, who expect a tag's letters to be small. */
static void put_process_tag(struct buf *out, const char *key, struct str value)
{
    size_t before = out->len;
    buf_printf(out, "%sentrypoint.%s:", before > 0 ? "," : "", key);
    size_t from = out->len;
    while (value.len > 0 && !str_eq(value, STR("/")) && !str_eq(value, STR("bin"))) {
        uint32_t c = utf8_take(&value);
        bool is_kept = c >= 0x80 || (is_tag_byte((char)c) && c != '_' && c != ':' && c != '\\');
        if (is_kept) {
            utf8_put(out, c < 0x80 ? (uint32_t)(unsigned char)ascii_lower((char)c) : c);
        } else if (out->len > from && out->ptr[out->len - 1] != '_') {
            buf_byte(out, '_');
        }
    }
    while (out->len > from && out->ptr[out->len - 1] == '_') {
        out->len--;
    }
    out->len = out->len > from ? out->len : before;
}

static void put_process_tags(struct buf *out, const struct delivery *delivery)
{
    static const char *const keys[] = {"basedir", "name", "type", "workdir"}; /* the lines of target/entry.h */
    struct str rest = delivery->subject.entry;
    struct buf tags;
    buf_init(&tags, TAGS_MAX_BYTES);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        put_process_tag(&tags, keys[i], str_cut(&rest, '\n'));
    }
    put_text(out, "process_tags", buf_slice(&tags));
    out->failed |= tags.failed;
    buf_release(&tags);
}

/* By the names that the service's own libraries use. */
static void put_info(struct buf *out, const struct origin *origin, const struct delivery *delivery)
{
    struct str version = delivery->subject.runtime, engine = str_cut(&version, ' ');
    buf_text(out, "{\"application\":{");
    put_moment(out, "start_time", origin->spawn_wall_ns);
    put_text(out, "env", user_tag(origin, "env"));
    put_text(out, "service", origin->service);
    put_text(out, "version", user_tag(origin, "version"));
    buf_text(out, "},\"platform\":{");
    put_text(out, "container_id", origin->container_id);
    put_text(out, "hostname", origin->hostname);
    put_text(out, "kernel_name", STR("Linux"));
    put_text(out, "kernel_release", origin->kernel_release);
    put_text(out, "kernel_version", origin->kernel_version);
    buf_text(out, "},\"runtime\":{");
    put_text(out, "engine", engine.len > 0 ? engine : STR("native"));
    put_text(out, "version", str_cut(&version, ','));
    buf_text(out, "},\"profiler\":{");
    put_text(out, "name", STR("pillion"));
    put_text(out, "version", STR(PILLION_VERSION));
    put_text(out, "activation", STR("manual"));
    buf_text(out, ",\"ssi\":{\"mechanism\":\"none\"}");
    put_settings(out, origin);
    buf_text(out, "}}");
}

/* As its library for Go calls them: what grows since a program began is the difference to the window before. */
static const struct {
    const char *type, *name;
} attachments[] = {
    {"heap", "delta-heap.pprof"},       {"mutex", "delta-mutex.pprof"},
    {"block", "delta-block.pprof"},     {"goroutine", "goroutines.pprof"},
    {"goroutinewait", "goroutineswait.pprof"}, {"goroutineleak", "goroutineleak.pprof"},
};

static const char *name_of(struct str type)
{
    for (size_t i = 0; i < sizeof attachments / sizeof attachments[0]; i++) {
        if (str_eq(type, str_of(attachments[i].type))) {
            return attachments[i].name;
        }
    }
    return NULL;
}

void datadog_name(const struct delivery *delivery, size_t at, char out[static DATADOG_NAME_MAX])
{
    struct str type = at == 0 ? delivery->type : delivery->more[at - 1].type;
    const char *name = name_of(type);
    bool has_ending = !runtime_profile_is_pprof(type);
    if (name == NULL && at == 0 && !has_ending) { /* CPU time, or another tool's file of what has no name there */
        name = str_eq(delivery->subject.language, STR("go")) ? "cpu.pprof" : "profile.pprof";
    }
    if (name != NULL) {
        snprintf(out, DATADOG_NAME_MAX, "%s", name);
        return;
    }
    type = str_sub(type, 0, DATADOG_NAME_MAX - sizeof ".pprof");
    snprintf(out, DATADOG_NAME_MAX, "%.*s%s", (int)type.len, type.ptr, has_ending ? "" : ".pprof");
    for (size_t i = 0; i < type.len && out[i] != '\0'; i++) {
        out[i] = ascii_is_alnum(out[i]) || out[i] == '-' || out[i] == '.' ? out[i] : '_';
    }
}

void datadog_event(struct buf *out, const struct backend_context *context, const struct delivery *delivery)
{
    buf_text(out, "{\"version\":\"4\"");
    put_text(out, "family", family_of(delivery));
    buf_text(out, ",\"attachments\":[");
    for (size_t i = 0; i <= delivery->more_count; i++) {
        char name[DATADOG_NAME_MAX];
        datadog_name(delivery, i, name);
        buf_text(out, i > 0 ? "," : "");
        json_text(out, str_of(name));
    }
    buf_byte(out, ']');
    put_tags(out, context, delivery);
    put_moment(out, "start", delivery->start_wall_ns);
    put_moment(out, "end", delivery->end_wall_ns);
    buf_text(out, ",\"endpoint_counts\":null,\"internal\":{}");
    if (!context->no_process_tags) {
        put_process_tags(out, delivery);
    }
    buf_text(out, ",\"info\":");
    put_info(out, context->origin, delivery);
    buf_byte(out, '}');
}
