/* Gathers what is known of this place without asking anybody: host, operating system, C library,
 * processors, memory, container, and the settings of the run. The result is what back ends are told
 * of where profiles come from. */
#include "capture/upload/origin.h"

#include "capture/upload/origin_ask.h"
#include "origin/container.h"
#include "origin/environment.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/host.h"
#include "os/net.h"
#include "os/proc.h"
#include "target/cpulist.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    TEXTS_MAX_BYTES = 64 * 1024,
    FILE_MAX_BYTES = 64 * 1024,
    MOUNTS_MAX_BYTES = 1024 * 1024,
};

static struct str keep(struct origin_here *here, const char *text)
{
    return arena_copy(&here->texts, str_of(text));
}

/* ---- texts of files ---- */

struct str origin_os_value(struct str text, struct str name)
{
    while (text.len > 0) {
        struct str value = str_trim(str_cut(&text, '\n'));
        struct str key = str_cut(&value, '=');
        if (!str_eq(key, name)) {
            continue;
        }
        bool is_quoted = value.len > 1 && (value.ptr[0] == '"' || value.ptr[0] == '\'') &&
                         value.ptr[value.len - 1] == value.ptr[0];
        return is_quoted ? str_sub(value, 1, value.len - 2) : value;
    }
    return STR("");
}

struct str origin_glibc_version(struct str library)
{
    static const char words[] = "stable release version ";
    const char *found = NULL;
    if (library.len > 0) {
        found = memmem(library.ptr, library.len, words, sizeof words - 1);
    }
    if (found == NULL) {
        return STR("");
    }
    struct str rest = str_sub(library, (size_t)(found - library.ptr) + sizeof words - 1, 16);
    size_t len = 0;
    while (len < rest.len && ((rest.ptr[len] >= '0' && rest.ptr[len] <= '9') ||
                              (rest.ptr[len] == '.' && len + 1 < rest.len &&
                               rest.ptr[len + 1] >= '0' && rest.ptr[len + 1] <= '9'))) {
        len++;
    }
    return str_sub(rest, 0, len);
}

uint64_t origin_memory_total(struct str text)
{
    while (text.len > 0) {
        struct str value = str_cut(&text, '\n');
        struct str key = str_cut(&value, ':');
        uint64_t kilobytes;
        value = str_trim(value);
        if (str_eq(key, STR("MemTotal")) &&
            str_u64(str_sub(value, 0, str_find(value, ' ')), &kilobytes)) {
            return kilobytes * 1024;
        }
    }
    return 0;
}

static bool read_any(const char *const *paths, size_t max_bytes, struct buf *out)
{
    buf_init(out, 0);
    for (; *paths != NULL; paths++) {
        if (file_read_all(*paths, max_bytes, out, NULL)) {
            return true;
        }
    }
    return false;
}

/* ---- the machine ---- */

static void gather_os(struct origin_here *here)
{
    static const char *const paths[] = {"/etc/os-release", "/usr/lib/os-release", NULL};
    struct buf text;
    if (read_any(paths, FILE_MAX_BYTES, &text)) {
        struct str all = buf_slice(&text);
        here->facts.os_name = arena_copy(&here->texts, origin_os_value(all, STR("NAME")));
        here->facts.os_release = arena_copy(&here->texts, origin_os_value(all, STR("VERSION_ID")));
    }
    buf_release(&text);
}

static bool find_version(void *context, struct str piece)
{
    struct origin_here *here = context;
    here->facts.libc_version = arena_copy(&here->texts, origin_glibc_version(piece));
    return here->facts.libc_version.len > 0;
}

/* By the library itself: nothing is executed to ask it. It is 2 MB, and its constants come after its code. */
static void gather_libc(struct origin_here *here)
{
    static const char *const glibc[] = {
        "/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
        "/usr/lib/libc.so.6", NULL,
    };
    static const char *const musl[] = {"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1",
                                       NULL};
    bool is_glibc = false;
    for (size_t i = 0; !is_glibc && glibc[i] != NULL; i++) {
        is_glibc = file_look_back(glibc[i], find_version, here);
    }
    here->facts.libc_type = is_glibc ? STR("glibc") : STR("");
    for (size_t i = 0; here->facts.libc_type.len == 0 && musl[i] != NULL; i++) {
        here->facts.libc_type = file_exists(musl[i]) ? STR("musl") : STR("");
    }
}

static unsigned count_processors(void)
{
    static const char *const paths[] = {"/sys/devices/system/cpu/online", NULL};
    struct buf text;
    size_t count = 0;
    uint32_t *cpus = calloc(CPU_COUNT_MAX, sizeof *cpus);
    if (cpus != NULL && read_any(paths, FILE_MAX_BYTES, &text)) {
        (void)cpulist_parse(str_trim(buf_slice(&text)), cpus, CPU_COUNT_MAX, &count, NULL);
    }
    if (cpus != NULL) {
        buf_release(&text);
    }
    free(cpus);
    return (unsigned)count;
}

static void gather_host_name(struct origin_here *here)
{
    char host[256];
    proc_host_name(host, sizeof host);
    here->facts.hostname = keep(here, host);
}

static void gather_machine(struct origin_here *here)
{
    static const char *const meminfo[] = {"/proc/meminfo", NULL};
    struct origin *facts = &here->facts;
    struct host_names names;
    struct buf text;
    char ip[64] = "", mac[24] = "";
    host_names(&names);
    net_own_address(ip, mac);
    gather_host_name(here);
    facts->private_ip = keep(here, ip);
    for (char *c = mac; *c != '\0'; c++) { /* the studio knows an instance by it, from other agents in capitals */
        *c = (char)(*c >= 'a' && *c <= 'f' ? *c - 'a' + 'A' : *c);
    }
    facts->mac_address = keep(here, mac);
    facts->kernel_release = keep(here, names.release);
    facts->kernel_version = keep(here, names.version);
    facts->hardware_type = keep(here, names.machine);
    here->processors = count_processors();
    if (read_any(meminfo, FILE_MAX_BYTES, &text)) {
        here->memory_bytes = origin_memory_total(buf_slice(&text));
    }
    buf_release(&text);
}

/* ---- what runs the container ---- */

static void read_own(const char *name, size_t max_bytes, struct buf *out)
{
    buf_init(out, max_bytes);
    (void)proc_read(proc_own_pid(), 0, name, out, NULL);
}

static void gather_container(struct facts *place)
{
    struct buf cgroup, mounts;
    read_own("cgroup", FILE_MAX_BYTES, &cgroup);
    read_own("mountinfo", MOUNTS_MAX_BYTES, &mounts);
    container_take(place, buf_slice(&cgroup), buf_slice(&mounts));
    buf_release(&mounts);
    buf_release(&cgroup);
}

/* A pod on the network of its host has the host's name; the kubelet notes that in the file. */
static void gather_pod(struct origin_here *here)
{
    static const char *const spaces[] = {"/var/run/secrets/kubernetes.io/serviceaccount/namespace",
                                         NULL};
    static const char *const hosts[] = {"/etc/hosts", NULL};
    struct buf text;
    if (read_any(spaces, FILE_MAX_BYTES, &text)) {
        facts_add(&here->place, "k8s.namespace.name", facts_line(buf_slice(&text)));
    }
    buf_release(&text);
    if (read_any(hosts, FILE_MAX_BYTES, &text) &&
        str_starts(buf_slice(&text), STR("# Kubernetes-managed hosts file.\n"))) {
        facts_add(&here->place, "k8s.pod.name", here->facts.hostname);
    }
    buf_release(&text);
}

static void gather_place(struct origin_here *here, const struct environment *environment)
{
    gather_container(&here->place);
    environment_take(&here->place, environment);
    if (environment_has(environment, "KUBERNETES_SERVICE_HOST")) {
        gather_pod(here);
    }
    here->facts.cgroup_inode = proc_own_cgroup_inode();
}

/* ---- what runs us ---- */

static void gather_run(struct origin *facts, const struct environment *environment)
{
    bool in_kubernetes = environment_has(environment, "KUBERNETES_SERVICE_HOST");
    bool in_ecs = environment_has(environment, "ECS_CONTAINER_METADATA_URI_V4");
    bool in_container = in_kubernetes || in_ecs || file_exists("/.dockerenv") ||
                        file_exists("/run/.containerenv");
    facts->run_mode = in_kubernetes  ? STR("k8s")
                      : in_container ? STR("container")
                                     : STR("standalone_executable");
    facts->deployment_type = in_kubernetes  ? STR("k8s")
                             : in_container ? STR("containers")
                                            : STR("instances");
}

static void add_argument(struct origin_here *here, const char *name, const char *value)
{
    struct origin *facts = &here->facts;
    size_t max = sizeof facts->arguments / sizeof facts->arguments[0];
    struct str kept = value == NULL ? STR("") : keep(here, value);
    if (value != NULL && kept.ptr != NULL && facts->argument_count < max) {
        facts->arguments[facts->argument_count++] = (struct fact){str_of(name), kept};
    }
}

static const char *service_of(const struct settings *settings)
{
    if (settings->service_name != NULL) {
        return settings->service_name;
    }
    if (settings->scope.mode != TARGET_COMMAND) {
        return "all processes";
    }
    const char *slash = strrchr(settings->scope.command[0], '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : settings->scope.command[0];
}

static void gather_settings(struct origin_here *here, const struct settings *settings)
{
    static const char *const modes[] = {
        [PERF_SMART] = "smart",
        [PERF_FP] = "fp",
        [PERF_DWARF] = "dwarf",
        [PERF_DISABLED] = "disabled",
    };
    char hz[16], seconds[32];
    snprintf(hz, sizeof hz, "%u", settings->sampling.frequency_hz);
    snprintf(seconds, sizeof seconds, "%g", (double)settings->sampling.window_ns / 1e9);
    here->facts.service = keep(here, service_of(settings));
    add_argument(here, "profiling_frequency", hz);
    add_argument(here, "profiling_duration", seconds);
    add_argument(here, "perf_mode", modes[settings->sampling.perf_mode]);
    add_argument(here, "continuous", settings->sampling.continuous ? "true" : "false");
    add_argument(here, "output_dir", settings->output.dir);
}

void origin_gather(struct origin_here *here, const struct settings *settings,
                   struct str (*get)(void *context, const char *name), void *context)
{
    const struct environment environment = {get, context};
    *here = (struct origin_here){.facts = {.pid = proc_own_pid()}};
    arena_init(&here->texts, TEXTS_MAX_BYTES);
    facts_init(&here->place, &here->texts);
    here->facts.spawn_wall_ns = clock_wall_ns();
    if (settings->origin.metadata) {
        here->facts.boot_ns = clock_boot_ns();
        gather_machine(here);
        gather_os(here);
        gather_libc(here);
        gather_run(&here->facts, &environment);
    } else {
        gather_host_name(here);
    }
    gather_settings(here, settings);
    if (settings->origin.metadata) {
        gather_place(here, &environment);
        origin_place(here, &here->place, &here->facts);
    }
}

const struct origin *origin_now(const struct origin_here *here)
{
    const struct origin *now = __atomic_load_n(&here->now, __ATOMIC_ACQUIRE);
    return now != NULL ? now : &here->facts;
}

void origin_release(struct origin_here *here)
{
    origin_ask_stop(here);
    arena_release(&here->texts);
}
