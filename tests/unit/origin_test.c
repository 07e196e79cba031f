/* src/capture/origin: texts of files, and what is known here. */
#include "capture/upload/origin_ask.h"
#include "os/net.h"
#include "test.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Weak: the program's own asks the kernel for a route. */
__attribute__((weak)) void net_own_address(char ip[static 64], char mac[static 24])
{
    strcpy(ip, "10.0.0.1");
    strcpy(mac, "02:00:00:00:00:01");
}

static void the_system_is_named_by_its_release_file(void)
{
    struct str text = STR("# x\nPRETTY_NAME=\"Debian 12\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID='12'\nID=debian\n");
    CHECK_STR(origin_os_value(text, STR("NAME")), "Debian GNU/Linux");
    CHECK_STR(origin_os_value(text, STR("VERSION_ID")), "12");
    CHECK_STR(origin_os_value(text, STR("ID")), "debian");
    CHECK_INT(origin_os_value(text, STR("VERSION")).len, 0);
    CHECK_INT(origin_os_value(STR("NAME"), STR("NAME")).len, 0);
    CHECK_STR(origin_os_value(STR("NAME=\""), STR("NAME")), "\"");
}

static void the_version_of_glibc_is_read_from_its_words(void)
{
    CHECK_STR(origin_glibc_version(STR("xx\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n")),
              "2.36");
    CHECK_STR(origin_glibc_version(STR("stable release version 2.31")), "2.31");
    CHECK_INT(origin_glibc_version(STR("stable release version ")).len, 0);
    CHECK_INT(origin_glibc_version(STR("nothing")).len, 0);
    CHECK_INT(origin_glibc_version(STR("")).len, 0);
}

static void memory_is_read_in_bytes(void)
{
    CHECK_INT(origin_memory_total(STR("MemTotal:       16384 kB\nMemFree: 1 kB\n")), 16384 * 1024);
    CHECK_INT(origin_memory_total(STR("MemFree: 1 kB\n")), 0);
    CHECK_INT(origin_memory_total(STR("MemTotal: x kB\n")), 0);
    CHECK_INT(origin_memory_total(STR("")), 0);
}

static struct str nothing(void *context, const char *name)
{
    (void)context;
    (void)name;
    return STR("");
}

static struct str kubernetes(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "KUBERNETES_SERVICE_HOST") == 0 ? STR("10.0.0.1") : STR("");
}

static void what_is_known_here_is_gathered(void)
{
    char command[] = "/usr/bin/serve";
    char *argv[] = {command, NULL};
    struct settings settings = {.scope.mode = TARGET_COMMAND, .scope.command = argv, .sampling.frequency_hz = 99,
                                .origin.metadata = true,
                                .sampling.window_ns = UINT64_C(60000000000), .output.dir = "/tmp"};
    struct origin_here here;
    origin_gather(&here, &settings, nothing, NULL);
    const struct origin *o = &here.facts;
    CHECK_STR(o->service, "serve");
    CHECK_STR(o->cloud_provider, "Unknown");
    CHECK(o->hostname.len > 0 && o->kernel_release.len > 0 && o->hardware_type.len > 0);
    CHECK(o->private_ip.len > 0 && o->mac_address.len > 0);
    CHECK(o->processors > 0 && o->memory_bytes > 16 << 20 && o->pid > 0);
    CHECK(o->spawn_wall_ns > UINT64_C(1700000000) * 1000000000 && o->boot_ns > 0);
    CHECK_INT(o->argument_count, 5);
    CHECK_STR(o->arguments[1].name, "profiling_duration");
    CHECK_STR(o->arguments[1].value, "60");
    origin_release(&here);
}

static void without_facts_there_is_a_name_and_nothing_else(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .service_name = "shop"};
    struct origin_here here;
    origin_gather(&here, &settings, kubernetes, NULL);
    const struct origin *o = &here.facts;
    CHECK_STR(o->service, "shop");
    CHECK(o->hostname.len > 0 && o->pid > 0 && o->spawn_wall_ns > 0);
    CHECK_INT(o->private_ip.len + o->mac_address.len + o->os_name.len + o->os_release.len +
                  o->kernel_release.len + o->kernel_version.len + o->hardware_type.len +
                  o->libc_type.len + o->libc_version.len + o->run_mode.len + o->deployment_type.len,
              0);
    CHECK_INT(o->processors + o->memory_bytes + o->boot_ns + o->resource_count, 0);
    origin_release(&here);
}

static void kubernetes_is_told_by_its_variable(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .service_name = "shop", .origin.metadata = true};
    struct origin_here here;
    origin_gather(&here, &settings, kubernetes, NULL);
    CHECK_STR(here.facts.run_mode, "k8s");
    CHECK_STR(here.facts.deployment_type, "k8s");
    CHECK_STR(here.facts.service, "shop");
    origin_release(&here);
}

static struct str in_a_pod(void *context, const char *name)
{
    static const char *const variables[][2] = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                                               {"POD_NAME", "shop-1"},
                                               {"POD_NAMESPACE", "prod"}};
    (void)context;
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(name, variables[i][0]) == 0) {
            return str_of(variables[i][1]);
        }
    }
    return STR("");
}

static struct str resource_of(const struct origin *origin, const char *name)
{
    for (size_t i = 0; i < origin->resource_count; i++) {
        if (str_eq(origin->resource[i].name, str_of(name))) {
            return origin->resource[i].value;
        }
    }
    return STR("");
}

static void the_platform_is_told_unless_nothing_may_be(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .origin.metadata = true};
    struct origin_here here;
    origin_gather(&here, &settings, in_a_pod, NULL);
    CHECK_STR(resource_of(origin_now(&here), "k8s.pod.name"), "shop-1");
    CHECK_STR(resource_of(origin_now(&here), "k8s.namespace.name"), "prod");
    origin_release(&here);
    settings.origin.metadata = false;
    origin_gather(&here, &settings, in_a_pod, NULL);
    CHECK_INT(origin_now(&here)->resource_count, 0);
    CHECK_INT(origin_now(&here)->container_id.len, 0);
    origin_release(&here);
}

/* Google's zone, and a task's limits: 0.25 processors and 512 MiB of whatever this machine has. */
static void what_is_learnt_takes_the_place_of_what_was_known(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .origin.metadata = true};
    struct origin_here here;
    struct origin later;
    origin_gather(&here, &settings, nothing, NULL);
    later = here.facts;
    struct facts place = here.place;
    facts_add(&place, "cloud.provider", STR("gcp"));
    facts_add(&place, "cloud.availability_zone", STR("europe-west1-b"));
    place.cpu_millis = 250;
    place.memory_bytes = UINT64_C(16) << 20;
    origin_place(&here, &place, &later);
    CHECK_STR(later.cloud_provider, "GCP");
    CHECK_STR(resource_of(&later, "cloud.availability_zone"), "europe-west1-b");
    CHECK_INT(later.processors, 1);
    CHECK_INT(later.memory_bytes, 16 << 20);
    CHECK_STR(here.facts.cloud_provider, "Unknown");
    place.cpu_millis = UINT64_C(100000) * 1000; /* more than there is limits nothing */
    place.memory_bytes = UINT64_C(1) << 59;
    origin_place(&here, &place, &later);
    CHECK_INT(later.processors, here.processors);
    CHECK_INT(later.memory_bytes, here.memory_bytes);
    origin_release(&here);
}

/* ---- the platform is asked ---- */

static char metadata_host[40];

static struct str of_google(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "GCE_METADATA_HOST") == 0 ? str_of(metadata_host) : STR("");
}

static int listen_here(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 4) == 0 &&
          getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    snprintf(metadata_host, sizeof metadata_host, "127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

/* Says "shop" to whatever is asked on one connection. */
static void *serve(void *context)
{
    static const char says[] =
        "HTTP/1.1 200 OK\r\nMetadata-Flavor: Google\r\nContent-Length: 4\r\n\r\nshop";
    char heard[4096];
    int fd = accept(*(int *)context, NULL, NULL);
    while (read(fd, heard, sizeof heard) > 0) {
        CHECK(send(fd, says, sizeof says - 1, MSG_NOSIGNAL) > 0);
    }
    close(fd);
    return NULL;
}

static void what_a_platform_says_is_there_when_it_is_known(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .origin.metadata = true};
    struct origin_here here;
    pthread_t server;
    int fd = listen_here();
    origin_gather(&here, &settings, of_google, NULL);
    const struct origin *first = origin_now(&here);
    origin_ask_start(&here, false, of_google, NULL);
    CHECK(here.ask != NULL && origin_now(&here) == first); /* nobody serves yet */
    CHECK(pthread_create(&server, NULL, serve, &fd) == 0);
    for (int i = 0; i < 20000 && origin_now(&here) == first; i++) {
        usleep(1000);
    }
    CHECK_STR(origin_now(&here)->cloud_provider, "GCP");
    CHECK_STR(resource_of(origin_now(&here), "cloud.account.id"), "shop");
    CHECK_STR(first->cloud_provider, "Unknown");
    origin_release(&here);
    pthread_join(server, NULL);
    close(fd);
}

static void asking_ends_at_once_when_it_is_cut(void)
{
    struct settings settings = {.scope.mode = TARGET_ALL, .origin.metadata = true};
    struct origin_here here;
    int fd = listen_here(); /* takes connections and never answers */
    struct timespec from, to;
    origin_gather(&here, &settings, of_google, NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    origin_ask_start(&here, false, of_google, NULL);
    origin_release(&here);
    clock_gettime(CLOCK_MONOTONIC, &to);
    CHECK(to.tv_sec - from.tv_sec < 2); /* its own patience is two seconds */
    close(fd);
}

TESTS_THAT_MEASURE({"what a platform says is there when it is known",
       what_a_platform_says_is_there_when_it_is_known},
      {"asking ends at once when it is cut", asking_ends_at_once_when_it_is_cut},
      {"the platform is told unless nothing may be", the_platform_is_told_unless_nothing_may_be},
      {"what is learnt takes the place of what was known",
       what_is_learnt_takes_the_place_of_what_was_known},
      {"the system is named by its release file", the_system_is_named_by_its_release_file},
      {"the version of glibc is read from its words", the_version_of_glibc_is_read_from_its_words},
      {"memory is read in bytes", memory_is_read_in_bytes},
      {"what is known here is gathered", what_is_known_here_is_gathered},
      {"without facts there is a name and nothing else",
       without_facts_there_is_a_name_and_nothing_else},
      {"Kubernetes is told by its variable", kubernetes_is_told_by_its_variable})
