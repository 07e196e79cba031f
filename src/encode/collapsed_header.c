/* The header line of collapsed stacks: one JSON object with gProfiler's members (containers, metadata,
 * metrics, processes) and ours below "pillion". Of a file that was read and is written again the
 * members about the machine and the whole window are copied. */
#include "base/time.h"
#include "base/version.h"
#include "encode/collapsed.h"
#include "base/json.h"
#include "encode/value.h"

#include <stdio.h>

/* Performance Studio skips its process bookkeeping for agents it takes to be older than 1.2.3; our
 * own version stands in run_arguments and below "pillion". */
#define STUDIO_AGENT_VERSION "1.2.3"

uint64_t collapsed_period(const struct profile *p)
{
    if (p->meta.period_ns != 0) {
        return p->meta.period_ns;
    }
    return p->meta.frequency_hz != 0 ? NS_PER_S / p->meta.frequency_hz : COLLAPSED_PERIOD_NS;
}

static uint64_t frequency(const struct profile *p)
{
    if (p->meta.frequency_hz != 0) {
        return p->meta.frequency_hz;
    }
    uint64_t period = collapsed_period(p);
    return (NS_PER_S + period / 2) / period;
}

static void text_or_null(struct buf *out, struct str text)
{
    if (text.len == 0) {
        buf_text(out, "null");
    } else {
        json_text(out, text);
    }
}

static void moment(struct buf *out, uint64_t wall_ns)
{
    char text[TIME_TEXT_MAX];
    time_iso_seconds(wall_ns, text);
    text_or_null(out, wall_ns == 0 ? STR("") : str_of(text)); /* 0: stacks of unknown date */
}

static bool is_first_with_container(const struct profile *p, size_t process)
{
    for (size_t i = 1; i < process; i++) {
        if (p->processes.at[i].container == p->processes.at[process].container) {
            return false;
        }
    }
    return p->processes.at[process].container != 0;
}

static void containers(struct buf *out, const struct profile *p)
{
    bool any = false;
    buf_text(out, "\"containers\": [");
    for (size_t i = 1; i < p->processes.len; i++) {
        if (is_first_with_container(p, i)) {
            buf_text(out, any ? ", " : "");
            json_text(out, profile_text(p, p->processes.at[i].container));
            any = true;
        }
    }
    buf_text(out, "], \"container_names_enabled\": true");
}

static void fact(struct buf *out, const char *key, struct str text)
{
    if (text.len > 0) {
        buf_printf(out, ", \"%s\": ", key);
        json_text(out, text);
    }
}

static void number(struct buf *out, const char *key, uint64_t value)
{
    if (value > 0) {
        buf_printf(out, ", \"%s\": %llu", key, (unsigned long long)value);
    }
}

/* By Performance Studio's names, so that a file that is sent later from elsewhere tells where it was made. What
 * is not known is not told: who sends it may know more. */
static void machine(struct buf *out, const struct profile_machine *m)
{
    number(out, "pid", m->pid);
    if (m->spawn_wall_ns > 0) {
        buf_text(out, ", \"spawn_time\": ");
        moment(out, m->spawn_wall_ns);
    }
    number(out, "spawn_uptime_ms", m->boot_ns / NS_PER_MS);
    fact(out, "private_ip", m->private_ip);
    fact(out, "mac_address", m->mac_address);
    number(out, "processors", m->processors);
    number(out, "memory_capacity_mb", m->memory_bytes >> 20);
    fact(out, "system_name", STR("Linux"));
    fact(out, "os_name", m->os_name);
    fact(out, "os_release", m->os_release);
    fact(out, "kernel_release", m->kernel_release);
    fact(out, "kernel_version", m->kernel_version);
    fact(out, "hardware_type", m->hardware_type);
    fact(out, "libc_type", m->libc_type);
    fact(out, "libc_version", m->libc_version);
    fact(out, "run_mode", m->run_mode);
    fact(out, "deployment_type", m->deployment_type);
}

/* gProfiler's two. */
static const char *mode_of(const struct profile *p)
{
    return value_is_counted(p) ? "allocation" : "cpu";
}

/* What the window itself knows, and the machine's facts as far as they are told. */
static void metadata(struct buf *out, const struct profile *p)
{
    const struct profile_meta *m = &p->meta;
    buf_text(out, ", \"metadata\": {\"current_time\": ");
    moment(out, m->end_wall_ns);
    buf_text(out, ", \"hostname\": ");
    text_or_null(out, profile_text(p, m->host));
    if (m->machine != NULL) {
        machine(out, m->machine);
    }
    if (m->external != NULL && m->external->fixed.len > 0) {
        buf_text(out, ", \"external_metadata\": ");
        buf_str(out, m->external->fixed);
    }
    buf_printf(out, ", \"agent_version\": \"" STUDIO_AGENT_VERSION "\", \"profiling_mode\": \"%s\"", mode_of(p));
    buf_printf(out, ", \"continuous\": %s", m->continuous ? "true" : "false");
    buf_text(out, ", \"run_arguments\": {\"service_name\": ");
    text_or_null(out, profile_text(p, m->service));
    uint64_t span = m->end_wall_ns > m->start_wall_ns ? m->end_wall_ns - m->start_wall_ns : 0;
    buf_printf(out, ", \"frequency\": %llu, \"duration\": %llu", (unsigned long long)frequency(p),
               (unsigned long long)((span + NS_PER_S / 2) / NS_PER_S));
    buf_text(out, ", \"profile_api_version\": null, \"profiler\": \"pillion " PILLION_VERSION "\"}}");
}

/* What another program told of the process, but for what is told here. */
static void external_facts(struct buf *out, const struct profile *p, uint32_t pid)
{
    static const char own[] = "\"pid\" \"start_ticks\" \"comm\" \"runtime\" \"cpu_ns\"";
    char text[16];
    snprintf(text, sizeof text, "%u", pid);
    struct str rest = p->meta.external != NULL ? json_member(p->meta.external->applications, text) : STR("");
    struct str key, value;
    rest = str_starts(rest, STR("{")) ? rest : STR("");
    while (json_next(&rest, &key, &value)) {
        if (memmem(own, sizeof own, key.ptr, key.len) == NULL) {
            buf_printf(out, ", %.*s: %.*s", (int)key.len, key.ptr, (int)value.len, value.ptr);
        }
    }
}

static void process_entry(struct buf *out, const struct profile *p, const struct process *t)
{
    buf_printf(out, ", {\"pid\": %u, \"start_ticks\": %llu, \"comm\": ", t->pid,
               (unsigned long long)t->start_ticks);
    json_text(out, profile_text(p, t->name));
    buf_text(out, ", \"runtime\": ");
    text_or_null(out, profile_text(p, t->runtime));
    buf_printf(out, ", \"cpu_ns\": %llu", (unsigned long long)t->cpu_ns);
    external_facts(out, p, t->pid);
    buf_byte(out, '}');
}

static void application_metadata(struct buf *out, const struct profile *p, uint32_t *index)
{
    uint32_t used = 0;
    buf_text(out, ", \"application_metadata\": [null");
    for (size_t i = 0; i < p->processes.len; i++) {
        bool described = p->processes.at[i].pid != 0 && used < COLLAPSED_PROCESSES_MAX;
        index[i] = described ? ++used : 0;
        if (described) {
            process_entry(out, p, &p->processes.at[i]);
        }
    }
    buf_text(out, "], \"application_metadata_enabled\": true");
}

/* What the profiler itself took. */
static void own_cost(struct buf *out, const struct profile *p)
{
    const struct profile_meta *m = &p->meta;
    buf_printf(out, ", \"own\": {\"cpu_ns\": %llu, \"rss_bytes\": %llu, \"rss_peak_bytes\": %llu",
               (unsigned long long)m->own_cpu_ns, (unsigned long long)m->own_rss_bytes,
               (unsigned long long)m->own_rss_peak_bytes);
    buf_printf(out, ", \"frequency\": %.3f, \"budget\": ",
               m->mean_hz > 0 ? m->mean_hz : (double)frequency(p));
    text_or_null(out, profile_text(p, m->budget));
    buf_text(out, "}");
}

static void uploads(struct buf *out, const struct profile_uploads *u)
{
    if (u->any) {
        buf_printf(out, ", \"uploads\": {\"sent\": %llu, \"waiting\": %llu, \"dropped\": %llu",
                   (unsigned long long)u->sent, (unsigned long long)u->waiting,
                   (unsigned long long)u->dropped);
        buf_printf(out, ", \"failures\": %llu, \"cpu_ns\": %llu}",
                   (unsigned long long)u->failures, (unsigned long long)u->cpu_ns);
    }
}

static void own_totals(struct buf *out, const struct profile *p)
{
    struct profile_totals sum = profile_sum(p);
    buf_printf(out, ", \"pillion\": {\"version\": \"%s\", \"period_ns\": %llu, \"cpu_ns\": %llu",
               PILLION_VERSION, (unsigned long long)collapsed_period(p),
               (unsigned long long)sum.cpu_ns);
    buf_printf(out, ", \"process_cpu_ns\": %llu, \"samples\": %llu, \"lost_records\": %llu",
               (unsigned long long)sum.process_cpu_ns, (unsigned long long)sum.count,
               (unsigned long long)p->meta.lost_records);
    if (p->meta.window > 0) {
        buf_printf(out, ", \"window\": %llu", (unsigned long long)p->meta.window);
    }
    buf_text(out, ", \"mode\": ");
    text_or_null(out, profile_text(p, p->meta.mode));
    buf_text(out, ", \"leaf_ns\": {");
    const char *comma = "";
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        if (k != FRAME_ACCOUNT && sum.leaf_ns[k] > 0) {
            buf_printf(out, "%s\"%s\": %llu", comma, languages[k].name,
                       (unsigned long long)sum.leaf_ns[k]);
            comma = ", ";
        }
    }
    buf_text(out, "}, \"not_seen\": {");
    comma = "";
    for (unsigned a = 0; a < ACCOUNT_COUNT; a++) {
        if (sum.account_ns[a] > 0) {
            buf_printf(out, "%s\"%s\": %llu", comma, account_name((enum account)a),
                       (unsigned long long)sum.account_ns[a]);
            comma = ", ";
        }
    }
    buf_text(out, "}, \"reason\": ");
    text_or_null(out, profile_text(p, p->meta.reason));
    if (value_is_other(p)) {
        buf_text(out, ", \"value\": ");
        json_text(out, profile_text(p, p->meta.value));
        buf_text(out, ", \"unit\": ");
        json_text(out, profile_text(p, p->meta.unit));
    }
    own_cost(out, p);
    uploads(out, &p->meta.uploads);
    buf_text(out, "}");
}

/* Both or none: Performance Studio keeps them only so. */
static void metrics(struct buf *out, const struct profile_usage *u)
{
    if (!u->any) {
        buf_text(out, ", \"metrics\": {\"cpu_avg\": null, \"mem_avg\": null}");
        return;
    }
    buf_printf(out, ", \"metrics\": {\"cpu_avg\": %.2f, \"mem_avg\": %.2f}", u->cpu_percent,
               u->memory_percent);
}

/* Copies a member of another header; false: it has none. */
static bool copy_member(struct buf *out, struct str header, const char *name)
{
    struct str value = json_member(header, name);
    if (value.len > 0) {
        buf_printf(out, ", \"%s\": ", name);
        buf_str(out, value);
    }
    return value.len > 0;
}

void collapsed_header(struct buf *out, const struct profile *p, struct str told, uint32_t *index_of_process)
{
    told = str_sub(told, 2, told.len);
    told = json_valid(told) ? told : STR("");
    buf_text(out, "# {");
    containers(out, p);
    if (!copy_member(out, told, "metadata")) {
        metadata(out, p);
    }
    if (!copy_member(out, told, "metrics")) {
        metrics(out, &p->meta.usage);
    }
    application_metadata(out, p, index_of_process);
    buf_printf(out, ", \"profiling_mode\": \"%s\", \"sampling_event\": ", mode_of(p));
    json_text(out, value_is_other(p) ? profile_text(p, p->meta.value) : STR("cpu-time"));
    buf_printf(out, ", \"sampling_mode\": \"frequency\", \"sampling_frequency\": %llu",
               (unsigned long long)frequency(p));
    buf_text(out, ", \"hwmetrics\": null, \"htmlblob\": null, \"flamegraph_html\": null");
    buf_text(out, ", \"start_time\": ");
    moment(out, p->meta.start_wall_ns);
    buf_text(out, ", \"end_time\": ");
    moment(out, p->meta.end_wall_ns);
    if (!copy_member(out, told, "pillion")) {
        own_totals(out, p);
    }
    buf_text(out, "}");
}
