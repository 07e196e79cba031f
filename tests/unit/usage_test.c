/* src/target/usage, src/os/usage: what the kernel's texts say of a machine and of a control group. */
#include "os/usage.h"
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#define KB UINT64_C(1024)
#define MB (1024 * KB)

static void the_machines_times_are_added_up(void)
{
    struct usage_machine m;
    CHECK(usage_of_stat(STR("cpu  100 20 30 1000 50 6 7 8 90 10\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5 0 0\n"), &m));
    CHECK_INT(m.busy_ticks, 100 + 20 + 30 + 6 + 7 + 8); /* neither idle nor waiting; guests are in user */
    CHECK_INT(m.all_ticks, 171 + 1000 + 50);
    CHECK_INT(m.processors, 2);
    CHECK(usage_of_stat(STR("cpu 1 2 3 4\n"), &m)); /* an old kernel tells four */
    CHECK_INT(m.busy_ticks, 6);
    CHECK_INT(m.all_ticks, 10);
    CHECK_INT(m.processors, 0);
    static const char *const damaged[] = {"", "cpu", "cpu 1 2 3", "cpu 1 x 3 4", "cpu0 1 2 3 4", "intr 1 2 3 4"};
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        CHECK(!usage_of_stat(str_of(damaged[i]), &m));
    }
}

static void memory_that_can_be_given_back_is_not_used(void)
{
    uint64_t total = 0, used = 0;
    CHECK(usage_of_meminfo(STR("MemTotal:       16000 kB\nMemFree:        1000 kB\nMemAvailable:    4000 kB\n"
                               "Buffers:          10 kB\nCached:         5000 kB\n"), &total, &used));
    CHECK_INT(total, 16000 * KB);
    CHECK_INT(used, 12000 * KB);
    CHECK(usage_of_meminfo(STR("MemTotal: 100 kB\nMemFree: 10 kB\nBuffers: 20 kB\nCached: 30 kB\n"), &total, &used));
    CHECK_INT(used, 40 * KB); /* before 3.14 */
    CHECK(usage_of_meminfo(STR("MemTotal: 100 kB\nMemAvailable: 200 kB\n"), &total, &used));
    CHECK_INT(used, 0);
    CHECK(!usage_of_meminfo(STR("MemTotal: 100 kB\n"), &total, &used));
    CHECK(!usage_of_meminfo(STR("MemAvailable: 100 kB\n"), &total, &used));
    CHECK(!usage_of_meminfo(STR("MemTotal: 99999999999999999999 kB\nMemAvailable: 1 kB\n"), &total, &used));
    CHECK(!usage_of_meminfo(STR(""), &total, &used));
}

static void quotas_of_both_versions_are_cores(void)
{
    double cores = 0;
    CHECK(usage_cpu_max(STR("150000 100000\n"), &cores));
    CHECK_INT(cores * 100, 150);
    CHECK(usage_quota(STR("25000\n"), STR("100000\n"), &cores));
    CHECK_INT(cores * 100, 25);
    CHECK(!usage_cpu_max(STR("max 100000\n"), &cores));
    CHECK(!usage_cpu_max(STR("100000"), &cores));
    CHECK(!usage_cpu_max(STR(""), &cores));
    CHECK(!usage_quota(STR("-1\n"), STR("100000\n"), &cores)); /* there is none */
    CHECK(!usage_quota(STR("0\n"), STR("100000\n"), &cores));
    CHECK(!usage_quota(STR("1\n"), STR("0\n"), &cores));
    CHECK_INT(cores * 100, 25);
}

static void numbers_stand_behind_their_names(void)
{
    uint64_t value = 7;
    struct str text = STR("usage_usec_x 1\nusage_usec 5250\nuser_usec 4000\n");
    CHECK(usage_value(text, STR("usage_usec"), &value));
    CHECK_INT(value, 5250);
    CHECK(!usage_value(text, STR("usage"), &value));
    CHECK(!usage_value(STR("a b\n"), STR("a"), &value));
    CHECK(usage_number(STR("4096\n"), &value));
    CHECK_INT(value, 4096);
    CHECK(!usage_number(STR("max\n"), &value));
    CHECK(!usage_number(STR("9223372036854771712\n"), &value)); /* version 1's word for none */
    CHECK_INT(value, 4096);
}

/* Rounded to a hundredth. */
static int hundredths(double percent)
{
    return (int)(percent * 100 + (percent < 0 ? -0.5 : 0.5));
}

static void two_looks_make_a_percentage(void)
{
    struct usage a = {.used = 1000, .there = 10000, .memory_used = 20, .memory_there = 100};
    struct usage b = {.used = 1250, .there = 11000, .memory_used = 40, .memory_there = 100};
    CHECK_INT(hundredths(usage_cpu_percent(&a, &b)), 2500);
    CHECK_INT(hundredths(usage_memory_percent(&a, &b)), 3000); /* the mean of 20 and 40 */
    a.cores = b.cores = 0.5; /* 250 of 1000 by half a core */
    CHECK_INT(hundredths(usage_cpu_percent(&a, &b)), 5000);
    b.used = 1900; /* a burst */
    CHECK_INT(hundredths(usage_cpu_percent(&a, &b)), 10000);
}

static void what_cannot_be_compared_is_not_known(void)
{
    struct usage a = {.used = 10, .there = 100}, b = {.used = 20, .there = 200}, none = {0};
    CHECK(usage_cpu_percent(&none, &b) < 0);
    CHECK(usage_cpu_percent(&a, &none) < 0);
    CHECK(usage_cpu_percent(&a, &a) < 0);
    CHECK(usage_cpu_percent(&b, &a) < 0);
    b.cores = 2; /* the quota is new */
    CHECK(usage_cpu_percent(&a, &b) < 0);
    CHECK(usage_memory_percent(&a, &b) < 0);
}

/* ---- files ---- */

static char root[] = "/tmp/usage-XXXXXX";

/* Folders are made as needed. */
static void put(const char *path, const char *text)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = strchr(whole + sizeof root, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(whole, 0755);
        *slash = '/';
    }
    FILE *file = fopen(whole, "w");
    CHECK(file != NULL);
    if (file != NULL) {
        fputs(text, file);
        fclose(file);
    }
}

static void begin(const char *groups)
{
    strcpy(root, "/tmp/usage-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
    put("/proc/stat", "cpu 100 0 0 300\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\n");
    put("/proc/meminfo", "MemTotal: 8192 kB\nMemAvailable: 2048 kB\n");
    put("/proc/self/cgroup", groups);
}

static void clear(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT(system(command), 0);
}

static struct usage looked(void)
{
    struct usage usage;
    usage_read(root, &usage);
    clear();
    return usage;
}

static void without_limits_it_is_the_machine(void)
{
    begin("0::/\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/memory.max", "max\n");
    struct usage u = looked();
    CHECK(!(u.cores > 0));
    CHECK_INT(u.used, 100);
    CHECK_INT(u.there, 400);
    CHECK_INT(u.memory_used, 6144 * KB);
    CHECK_INT(u.memory_there, 8192 * KB);
}

static void a_container_of_version_2_is_told_of_alone(void)
{
    begin("0::/\n");
    put("/sys/fs/cgroup/cpu.max", "50000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec 1500\nuser_usec 1\n");
    put("/sys/fs/cgroup/memory.max", "4194304\n");
    put("/sys/fs/cgroup/memory.current", "3145728\n");
    put("/sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1048576\n");
    struct usage u = looked();
    CHECK_INT(u.cores * 100, 50);
    CHECK_INT(u.used, 1500000);
    CHECK(u.there > 0);
    CHECK_INT(u.memory_used, 2 * MB); /* less what is kept of files */
    CHECK_INT(u.memory_there, 4 * MB);
}

/* A pod that has less than its containers together; the groups are visible up to it. */
static void the_least_of_the_groups_around_us_counts(void)
{
    begin("0::/pod/container\n");
    put("/sys/fs/cgroup/pod/cpu.max", "100000 100000\n");
    put("/sys/fs/cgroup/pod/cpu.stat", "usage_usec 77\n");
    put("/sys/fs/cgroup/pod/container/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/pod/container/cpu.stat", "usage_usec 11\n");
    put("/sys/fs/cgroup/pod/memory.max", "4194304\n");
    put("/sys/fs/cgroup/pod/memory.current", "100\n");
    put("/sys/fs/cgroup/pod/container/memory.max", "2097152\n");
    put("/sys/fs/cgroup/pod/container/memory.current", "50\n");
    struct usage u = looked();
    CHECK_INT(u.cores * 100, 100);
    CHECK_INT(u.used, 77000);
    CHECK_INT(u.memory_there, 2 * MB);
    CHECK_INT(u.memory_used, 50);
}

static void a_container_of_version_1_is_told_of_alone(void)
{
    /* The host's paths, of which the container sees its own group as the root. */
    begin("4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "50000\n");
    put("/sys/fs/cgroup/cpuacct/cpuacct.usage", "987654321\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
    put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 524288\n");
    struct usage u = looked();
    CHECK_INT(u.cores * 100, 50);
    CHECK_INT(u.used, 987654321);
    CHECK_INT(u.memory_there, 2 * MB);
    CHECK_INT(u.memory_used, 512 * KB);
}

static void groups_that_limit_nothing_are_passed_over(void)
{
    begin("4:memory:/\n3:cpu,cpuacct:/\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "800000\n"); /* eight of four */
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpuacct/cpuacct.usage", "5\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
    struct usage u = looked();
    CHECK(!(u.cores > 0));
    CHECK_INT(u.used, 100);
    CHECK_INT(u.memory_there, 8192 * KB);
    /* quota and counter of different groups are not about the same processes */
    begin("3:cpu:/a\n2:cpuacct:/b\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpuacct/a/cpuacct.usage", "5\n");
    CHECK(!(looked().cores > 0));
}

static struct usage_room room(void)
{
    struct usage_room out = {0};
    CHECK(usage_memory_room(root, &out));
    return out;
}

static void room_is_where_least_is_left(void)
{
    begin("0::/pod/container\n");
    put("/sys/fs/cgroup/pod/memory.max", "10485760\n");
    put("/sys/fs/cgroup/pod/memory.current", "9437184\n");
    put("/sys/fs/cgroup/pod/container/memory.max", "4194304\n");
    put("/sys/fs/cgroup/pod/container/memory.current", "3145728\n");
    put("/sys/fs/cgroup/pod/container/memory.stat", "anon 1\ninactive_file 524288\nactive_file 524288\n");
    struct usage_room r = room();
    CHECK_INT(r.limit_bytes, 10 * MB);
    CHECK_INT(r.left_bytes, 1 * MB);
    CHECK(!r.together);
    put("/sys/fs/cgroup/pod/container/memory.oom.group", "1\n"); /* the pod's end takes all of this one */
    put("/sys/fs/cgroup/pod/memory.oom.group", "0\n");
    CHECK(room().together);
    put("/sys/fs/cgroup/pod/memory.max", "max\n");
    r = room();
    CHECK_INT(r.limit_bytes, 4 * MB);
    CHECK_INT(r.left_bytes, 2 * MB); /* files can be given back */
    put("/sys/fs/cgroup/pod/container/memory.current", "5242880\n");
    put("/sys/fs/cgroup/pod/container/memory.stat", "anon 1\n");
    CHECK_INT(room().left_bytes, 0);
    clear();
    begin("4:memory:/docker/abc\n0::/\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2097152\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
    put("/sys/fs/cgroup/memory/memory.stat", "inactive_file 7\ntotal_inactive_file 524288\n");
    CHECK_INT(room().left_bytes, 1536 * KB);
    clear();
    begin("0::/\n");
    CHECK(!usage_memory_room(root, &r));
    clear();
}

static void where_nothing_can_be_read_nothing_is_known(void)
{
    struct usage u;
    usage_read("/nowhere", &u);
    CHECK_INT(u.there + u.memory_there, 0);
    usage_read("", &u);
    CHECK(u.there > 0 && u.memory_there > 0 && u.memory_used < u.memory_there);
}

TESTS_THAT_MEASURE({"the machine's times are added up", the_machines_times_are_added_up},
      {"memory that can be given back is not used", memory_that_can_be_given_back_is_not_used},
      {"quotas of both versions are cores", quotas_of_both_versions_are_cores},
      {"numbers stand behind their names", numbers_stand_behind_their_names},
      {"two looks make a percentage", two_looks_make_a_percentage},
      {"what cannot be compared is not known", what_cannot_be_compared_is_not_known},
      {"without limits it is the machine", without_limits_it_is_the_machine},
      {"a container of version 2 is told of alone", a_container_of_version_2_is_told_of_alone},
      {"the least of the groups around us counts", the_least_of_the_groups_around_us_counts},
      {"a container of version 1 is told of alone", a_container_of_version_1_is_told_of_alone},
      {"groups that limit nothing are passed over", groups_that_limit_nothing_are_passed_over},
      {"room is where least is left, and known to end together", room_is_where_least_is_left},
      {"where nothing can be read nothing is known", where_nothing_can_be_read_nothing_is_known})
