/* The header line of collapsed stacks as Performance Studio requires it: every key that it refuses
 * a profile without, of the type that its indexer reads, with what the file says kept where it
 * fits. */
#include "deliver/backend_private.h"

#include "base/json.h"
#include "base/time.h"

#include <stddef.h>
#include <stdio.h>

/* The studio skips its bookkeeping of processes for agents that it takes to be older than 1.2.3;
 * "profiler" names what we are. */
#define AGENT_VERSION "1.2.3"

/* Every key that the studio refuses a profile without, and what JSON it has to be. */
enum fact_kind { FACT_TEXT, FACT_NUMBER, FACT_OBJECT };

enum wanted {
    WANTED_CURRENT_TIME, WANTED_SPAWN_TIME, WANTED_SPAWN_UPTIME, WANTED_PRIVATE_IP, WANTED_HOSTNAME,
    WANTED_CLOUD, WANTED_PROCESSORS, WANTED_MEMORY, WANTED_SYSTEM, WANTED_OS_NAME,
    WANTED_OS_RELEASE, WANTED_KERNEL_RELEASE, WANTED_KERNEL_VERSION, WANTED_HARDWARE, WANTED_PID,
    WANTED_MAC,
    WANTED_AGENT_VERSION, WANTED_LIBC_TYPE, WANTED_LIBC_VERSION, WANTED_PYTHON, WANTED_RUN_MODE,
    WANTED_DEPLOYMENT, WANTED_ARGUMENTS, WANTED_COUNT,
};

#define ORIGIN(member) ((int)offsetof(struct origin, member))
enum { NOT_IN_ORIGIN = -1 };

/* What stands for a text that is not known: the studio's tables take no null. */
static const struct {
    const char *key;
    enum fact_kind kind;
    int at; /* of the text in struct origin */
    const char *unknown;
} wanted[WANTED_COUNT] = {
    [WANTED_CURRENT_TIME] = {"current_time", FACT_TEXT, NOT_IN_ORIGIN, ""},
    [WANTED_SPAWN_TIME] = {"spawn_time", FACT_TEXT, NOT_IN_ORIGIN, ""},
    [WANTED_SPAWN_UPTIME] = {"spawn_uptime_ms", FACT_NUMBER, NOT_IN_ORIGIN, ""},
    [WANTED_PRIVATE_IP] = {"private_ip", FACT_TEXT, ORIGIN(private_ip), "0.0.0.0"},
    [WANTED_HOSTNAME] = {"hostname", FACT_TEXT, ORIGIN(hostname), "<unknown>"},
    [WANTED_CLOUD] = {"cloud_provider", FACT_TEXT, ORIGIN(cloud_provider), "Unknown"},
    [WANTED_PROCESSORS] = {"processors", FACT_NUMBER, NOT_IN_ORIGIN, ""},
    [WANTED_MEMORY] = {"memory_capacity_mb", FACT_NUMBER, NOT_IN_ORIGIN, ""},
    [WANTED_SYSTEM] = {"system_name", FACT_TEXT, NOT_IN_ORIGIN, "Linux"},
    [WANTED_OS_NAME] = {"os_name", FACT_TEXT, ORIGIN(os_name), "unknown"},
    [WANTED_OS_RELEASE] = {"os_release", FACT_TEXT, ORIGIN(os_release), "unknown"},
    [WANTED_KERNEL_RELEASE] = {"kernel_release", FACT_TEXT, ORIGIN(kernel_release), "unknown"},
    [WANTED_KERNEL_VERSION] = {"kernel_version", FACT_TEXT, ORIGIN(kernel_version), "unknown"},
    [WANTED_HARDWARE] = {"hardware_type", FACT_TEXT, ORIGIN(hardware_type), "unknown"},
    [WANTED_PID] = {"pid", FACT_NUMBER, NOT_IN_ORIGIN, ""},
    [WANTED_MAC] = {"mac_address", FACT_TEXT, ORIGIN(mac_address), ""},
    [WANTED_AGENT_VERSION] = {"agent_version", FACT_TEXT, NOT_IN_ORIGIN, AGENT_VERSION},
    [WANTED_LIBC_TYPE] = {"libc_type", FACT_TEXT, ORIGIN(libc_type), "unknown"},
    [WANTED_LIBC_VERSION] = {"libc_version", FACT_TEXT, ORIGIN(libc_version), "unknown"},
    [WANTED_PYTHON] = {"python_version", FACT_TEXT, NOT_IN_ORIGIN, "none"},
    [WANTED_RUN_MODE] = {"run_mode", FACT_TEXT, ORIGIN(run_mode), "standalone_executable"},
    [WANTED_DEPLOYMENT] = {"deployment_type", FACT_TEXT, ORIGIN(deployment_type), "instances"},
    [WANTED_ARGUMENTS] = {"run_arguments", FACT_OBJECT, NOT_IN_ORIGIN, ""},
};

static struct str text_of(const struct origin *origin, enum wanted key)
{
    struct str text = {NULL, 0};
    if (wanted[key].at != NOT_IN_ORIGIN) {
        memcpy(&text, (const char *)origin + wanted[key].at, sizeof text);
    }
    return text.len > 0 ? text : str_of(wanted[key].unknown);
}

/* An instance is identified by this address, so one that stands for "unknown" would make all of them
 * one: it is made of what else is known, with the bit of addresses that no maker gave. */
static void put_mac(struct buf *out, const struct origin *origin)
{
    if (origin->mac_address.len > 0) {
        json_text(out, origin->mac_address);
        return;
    }
    uint64_t hash = str_hash(origin->hostname) ^ str_hash(origin->private_ip);
    buf_printf(out, "\"02:%02X:%02X:%02X:%02X:%02X\"", (unsigned)(hash >> 32 & 0xff),
               (unsigned)(hash >> 24 & 0xff), (unsigned)(hash >> 16 & 0xff),
               (unsigned)(hash >> 8 & 0xff), (unsigned)(hash & 0xff));
}

static void put_moment(struct buf *out, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, text);
    buf_printf(out, "\"%s\"", text);
}

static void put_number(struct buf *out, uint64_t number)
{
    buf_printf(out, "%llu", (unsigned long long)number);
}

static void put_fact(struct buf *out, enum wanted key, const struct origin *origin,
                     const struct delivery *delivery)
{
    switch (key) {
    case WANTED_CURRENT_TIME:
        put_moment(out, delivery->end_wall_ns);
        break;
    case WANTED_SPAWN_TIME:
        put_moment(out, origin->spawn_wall_ns);
        break;
    case WANTED_SPAWN_UPTIME:
        put_number(out, origin->boot_ns / NS_PER_MS);
        break;
    case WANTED_PROCESSORS: /* the studio's tables take no 0 of these two */
        put_number(out, origin->processors > 0 ? origin->processors : 1);
        break;
    case WANTED_MEMORY:
        put_number(out, origin->memory_bytes >> 20 > 0 ? origin->memory_bytes >> 20 : 1);
        break;
    case WANTED_PID:
        put_number(out, origin->pid);
        break;
    case WANTED_MAC:
        put_mac(out, origin);
        break;
    default:
        json_text(out, text_of(origin, key));
    }
}

/* ---- what is there already ---- */

/* Keys stand between quotes. */
static bool is_key(struct str quoted, const char *key)
{
    return str_eq(str_sub(quoted, 1, quoted.len - 2), str_of(key));
}

static enum wanted wanted_of(struct str quoted)
{
    unsigned i = 0;
    while (i < WANTED_COUNT && !is_key(quoted, wanted[i].key)) {
        i++;
    }
    return (enum wanted)i;
}

static bool is_kind(struct str value, enum fact_kind kind)
{
    char first = value.len > 0 ? value.ptr[0] : '\0';
    switch (kind) {
    case FACT_TEXT:
        return first == '"';
    case FACT_OBJECT:
        return first == '{';
    default:
        return first >= '0' && first <= '9';
    }
}

static void put_key(struct buf *out, const char **comma, struct str quoted)
{
    buf_text(out, *comma);
    buf_str(out, quoted);
    buf_text(out, ": ");
    *comma = ", ";
}

static void put_name(struct buf *out, const char **comma, struct str name)
{
    buf_text(out, *comma);
    json_text(out, name);
    buf_text(out, ": ");
    *comma = ", ";
}

/* The indexer reads these with fixed types, after the profile was taken: another type loses it
 * silently. */
static bool is_text_or_null(struct str value)
{
    return is_kind(value, FACT_TEXT) || str_eq(value, STR("null"));
}

static bool fits_indexer(struct str key, struct str value)
{
    static const char *const texts[] = {"service_name", "profile_api_version", "perf_events",
                                        "perf_mode"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (is_key(key, texts[i])) {
            return is_text_or_null(value);
        }
    }
    return true;
}

/* Arguments of the file first, then those of this run that it does not have. `plain`: lines have
 * no field for a container, as in the first version of the form. */
static void put_arguments(struct buf *out, struct str had, const struct backend_context *context,
                          bool plain)
{
    const struct origin *origin = context->origin;
    struct str rest = had, key, value;
    const char *comma = "";
    bool has_service = false, has_version = false;
    buf_byte(out, '{');
    while (is_kind(had, FACT_OBJECT) && json_next(&rest, &key, &value)) {
        bool is_version = is_key(key, "profile_api_version");
        if (fits_indexer(key, value) && !(plain && is_version)) {
            put_key(out, &comma, key);
            buf_str(out, value);
            has_service |= is_key(key, "service_name");
            has_version |= is_version;
        }
    }
    if (!has_service) {
        put_name(out, &comma, STR("service_name"));
        json_text(out, origin->service);
    }
    if (!has_version) {
        put_name(out, &comma, STR("profile_api_version"));
        buf_text(out, plain ? "\"v1\"" : "null");
    }
    for (size_t i = 0; i < origin->argument_count; i++) {
        const struct fact *argument = &origin->arguments[i];
        bool is_ours = str_eq(argument->name, STR("service_name")) ||
                       str_eq(argument->name, STR("profile_api_version"));
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)argument->name.len, argument->name.ptr);
        if (!is_ours && json_member(had, name).ptr == NULL) {
            put_name(out, &comma, argument->name);
            json_text(out, argument->value);
        }
    }
    buf_byte(out, '}');
}

/* Of several with one name: a reader of JSON would take the last, or none. */
static const struct fact *first_of_name(const struct origin *origin, const struct fact *tag)
{
    return backend_fact(origin->tags, origin->tag_count, tag->name);
}

static void put_tags(struct buf *out, const struct origin *origin)
{
    const char *comma = "";
    buf_byte(out, '{');
    for (size_t i = 0; i < origin->tag_count; i++) {
        if (first_of_name(origin, &origin->tags[i]) == &origin->tags[i]) {
            put_name(out, &comma, origin->tags[i].name);
            json_text(out, origin->tags[i].value);
        }
    }
    buf_byte(out, '}');
}

void studio_omits(const struct backend_context *context, struct omissions *out)
{
    const struct origin *origin = context->origin;
    for (size_t i = 0; i < origin->tag_count; i++) {
        const struct fact *tag = &origin->tags[i], *first = first_of_name(origin, tag);
        bool is_lost = !str_eq(first->value, tag->value);
        backend_omit(out, tag, true, is_lost ? "another tag has this name" : NULL);
    }
}

/* A member that may stay: one that is not asked for, or that is what is asked for. */
static bool stays(struct str key, struct str value)
{
    enum wanted at = wanted_of(key);
    if (at < WANTED_COUNT) {
        return is_kind(value, wanted[at].kind);
    }
    return !is_key(key, "cloud_info") || is_kind(value, FACT_OBJECT);
}

static void put_metadata(struct buf *out, struct str had, const struct backend_context *context,
                         const struct delivery *delivery, bool plain)
{
    struct str rest = had, key, value, arguments = {NULL, 0};
    bool is_there[WANTED_COUNT] = {false}, has_tags = false, has_cloud = false;
    const char *comma = "";
    buf_byte(out, '{');
    while (is_kind(had, FACT_OBJECT) && json_next(&rest, &key, &value)) {
        enum wanted at = wanted_of(key);
        if (at == WANTED_ARGUMENTS) {
            arguments = value;
        } else if (stays(key, value)) {
            put_key(out, &comma, key);
            buf_str(out, value);
            has_tags |= is_key(key, "tags");
            has_cloud |= is_key(key, "cloud_info");
            if (at < WANTED_COUNT) {
                is_there[at] = true;
            }
        }
    }
    for (unsigned i = 0; i < WANTED_ARGUMENTS; i++) {
        if (!is_there[i]) {
            put_name(out, &comma, str_of(wanted[i].key));
            put_fact(out, (enum wanted)i, context->origin, delivery);
        }
    }
    /* What the file says of its cloud is of one machine, what we know of another. */
    if (!has_cloud && !is_there[WANTED_CLOUD] && context->origin->resource_count > 0) {
        put_name(out, &comma, STR("cloud_info"));
        studio_cloud(out, context->origin);
    }
    if (!has_tags && context->origin->tag_count > 0) {
        put_name(out, &comma, STR("tags"));
        put_tags(out, context->origin);
    }
    put_name(out, &comma, STR("run_arguments"));
    put_arguments(out, arguments, context, plain);
    buf_byte(out, '}');
}

/* Both or none: the studio keeps them only so. What is not known of the delivery the file may say. */
static void put_metrics(struct buf *out, struct str had, const struct delivery *delivery)
{
    struct str cpu = json_member(had, "cpu_avg"), memory = json_member(had, "mem_avg");
    if (delivery->cpu_percent >= 0 && delivery->memory_percent >= 0) {
        buf_printf(out, "{\"cpu_avg\": %.2f, \"mem_avg\": %.2f}", delivery->cpu_percent,
                   delivery->memory_percent);
    } else if (is_kind(cpu, FACT_NUMBER) && is_kind(memory, FACT_NUMBER)) {
        buf_printf(out, "{\"cpu_avg\": %.*s, \"mem_avg\": %.*s}", (int)cpu.len, cpu.ptr,
                   (int)memory.len, memory.ptr);
    } else {
        buf_text(out, "{\"cpu_avg\": null, \"mem_avg\": null}");
    }
}

void studio_header(struct buf *out, struct str line, const struct backend_context *context,
                   const struct delivery *delivery)
{
    struct str had = str_trim(str_sub(line, 1, line.len)), key, value;
    if (!str_starts(line, STR("#")) || !json_valid(had) || !is_kind(had, FACT_OBJECT)) {
        had = STR("{}");
    }
    struct str rest = had, metadata = json_member(had, "metadata");
    struct str containers = json_member(had, "containers");
    bool plain = containers.ptr == NULL, has_list = str_starts(containers, STR("["));
    const char *comma = "";
    buf_text(out, "# {");
    while (json_next(&rest, &key, &value)) {
        if (!is_key(key, "metadata") && !is_key(key, "metrics") &&
            (has_list || !is_key(key, "containers"))) {
            put_key(out, &comma, key);
            buf_str(out, value);
        }
    }
    if (!has_list) {
        buf_printf(out, "%s\"containers\": []", comma);
        comma = ", ";
    }
    if (json_member(had, "application_metadata_enabled").ptr == NULL) {
        buf_text(out, comma);
        buf_text(out, "\"application_metadata\": [null], \"application_metadata_enabled\": false");
    }
    buf_text(out, ", \"metadata\": ");
    put_metadata(out, metadata, context, delivery, plain);
    buf_text(out, ", \"metrics\": ");
    put_metrics(out, json_member(had, "metrics"), delivery);
    buf_byte(out, '}');
}
