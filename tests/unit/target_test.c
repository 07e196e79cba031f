/* The texts of /proc, as kernels wrote them and as hostile processes can make them. */
#include "target/cgroup.h"
#include "target/cpulist.h"
#include "target/maps.h"
#include "target/stat.h"
#include "target/status.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX32 "0123456789abcdef0123456789abcdef"

static size_t read_proc(const char *path, char *out, size_t max)
{
    FILE *file = fopen(path, "r");
    size_t len = file == NULL ? 0 : fread(out, 1, max - 1, file);
    if (file != NULL) {
        fclose(file);
    }
    out[len] = '\0';
    return len;
}

static struct map_line one_line(const char *text)
{
    struct str rest = str_of(text);
    struct map_line line = {0};
    CHECK(maps_next(&rest, &line));
    CHECK_INT(rest.len, 0);
    return line;
}

static void maps_file_line(void)
{
    struct map_line m = one_line("7f0a1c028000-7f0a1c1bd000 r-xp 00028000 fe:01 1835063"
                                 "                    /usr/lib/x86_64-linux-gnu/libc.so.6\n");
    CHECK(m.start == 0x7f0a1c028000 && m.limit == 0x7f0a1c1bd000 && m.file_offset == 0x28000);
    CHECK_INT(m.prot, MAPPING_READ | MAPPING_EXEC);
    CHECK_INT(m.dev_major, 0xfe);
    CHECK_INT(m.dev_minor, 1);
    CHECK_INT(m.inode, 1835063);
    CHECK_INT(m.kind, MAPPING_FILE);
    CHECK_STR(m.path, "/usr/lib/x86_64-linux-gnu/libc.so.6");
}

static void maps_names(void)
{
    const char *start = "1000-2000 rwxs 00000000 00:00 0";
    static const struct {
        const char *name;
        enum mapping_kind kind;
    } rows[] = {
        {"", MAPPING_ANON},
        {"[vdso]", MAPPING_VDSO},
        {"[vsyscall]", MAPPING_VSYSCALL},
        {"[vvar]", MAPPING_SPECIAL},
        {"[heap]", MAPPING_HEAP},
        {"[stack]", MAPPING_STACK},
        {"[stack:77]", MAPPING_STACK},
        {"[anon:scudo:primary]", MAPPING_ANON},
        {"//anon", MAPPING_ANON},
        {"//toolong", MAPPING_UNNAMED},
        {"/memfd:jit (deleted)", MAPPING_MEMFD},
        {"/SYSV00000000 (deleted)", MAPPING_ANON},
        {"anon_inode:[perf_event]", MAPPING_SPECIAL},
        {"/opt/app", MAPPING_FILE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s %*s%s\n", start, *rows[i].name ? 40 : 0, "", rows[i].name);
        struct map_line m = one_line(text);
        CHECK_INT(m.kind, rows[i].kind);
        CHECK_INT(m.prot, MAPPING_READ | MAPPING_WRITE | MAPPING_EXEC);
    }
}

static void maps_deleted(void)
{
    struct map_line m = one_line("1000-2000 r-xp 00000000 08:01 5   /tmp/a b (deleted) (deleted)");
    CHECK_STR(m.path, "/tmp/a b (deleted)");
    m = one_line("1000-2000 r-xp 00000000 08:01 5   /tmp/trailing blank \n");
    CHECK_STR(m.path, "/tmp/trailing blank ");
}

static void maps_escapes(void)
{
    struct map_line m = one_line("1000-2000 r-xp 00000000 08:01 5   /a\\012b\\040\\012\\\n");
    struct buf out;
    buf_init(&out, 100);
    map_path_decode(m.path, &out);
    CHECK_STR(buf_slice(&out), "/a\nb\\040\n\\"); /* \040 was part of the real name */
    buf_release(&out);
}

static void maps_malformed(void)
{
    const char *bad[] = {"",
                         "\n\n",
                         "zz-10 r-xp 0 0:0 0\n",
                         "1000 r-xp 0 0:0 0\n",
                         "2000-1000 r-xp 0 0:0 0\n",
                         "1000-2000 r-x 0 0:0 0\n",
                         "1000-2000 r-xp\n",
                         "1000-2000 r-xp 0 00 0\n",
                         "11111111111111111-22222222222222222 r-xp 0 0:0 0\n",
                         "1000-2000 r-xp 00000000 08:01 x\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct str rest = str_of(bad[i]);
        struct map_line m;
        CHECK(!maps_next(&rest, &m));
        CHECK_INT(rest.len, 0);
    }
    struct str rest = STR("garbage\n1000-2000 r-xp 00000000 00:00 0\ngarbage");
    struct map_line m;
    CHECK(maps_next(&rest, &m) && m.start == 0x1000);
    CHECK(!maps_next(&rest, &m));
}

static void maps_own(void)
{
    static char text[1 << 20];
    struct str rest = {text, read_proc("/proc/self/maps", text, sizeof text)};
    struct map_line m;
    uint64_t here = (uint64_t)(uintptr_t)&maps_own, before = 0;
    unsigned lines = 0, vdso = 0, hits = 0;
    while (maps_next(&rest, &m)) {
        CHECK(m.start >= before);
        before = m.limit;
        lines++;
        vdso += m.kind == MAPPING_VDSO;
        hits += m.start <= here && here < m.limit && m.kind == MAPPING_FILE &&
                (m.prot & MAPPING_EXEC) && str_ends(m.path, STR("target_test"));
    }
    CHECK(lines > 5 && vdso <= 1);
    CHECK_INT(hits, 1);
}

static void stat_line(void)
{
    struct proc_stat s;
    struct str text = STR("4242 (a) R (b\n) S 77 4242 4242 34816 4242 4194304 120 5 6 7 11 22 33 44 20 0 9 0"
                          " 123456 1000 555 18446744073709551615 1 1 0 0 0 0 0 16781312 65538 0 0 0 17 3 0 0"
                          " 0 0 0 0 0 0 0 0 0 0 0\n");
    CHECK(stat_parse(text, &s, NULL));
    CHECK_INT(s.pid, 4242);
    CHECK_STR(s.comm, "a) R (b\n");
    CHECK_INT(s.state, 'S');
    CHECK_INT(s.ppid, 77);
    CHECK(s.utime_ticks == 11 && s.stime_ticks == 22);
    CHECK(s.cutime_ticks == 33 && s.cstime_ticks == 44);
    CHECK_INT(s.num_threads, 9);
    CHECK_INT(s.start_ticks, 123456);
    CHECK(!stat_is_kernel_thread(&s));
}

static void stat_kernel_thread(void)
{
    struct proc_stat s;
    CHECK(stat_parse(STR("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 15 0 0 20 -5 1 0 12 0 0\n"), &s,
                     NULL));
    CHECK(stat_is_kernel_thread(&s));
    CHECK_INT(s.stime_ticks, 15);
    CHECK_INT(s.num_threads, 1);
}

static void stat_malformed(void)
{
    const char *bad[] = {"", "12", "12 (x", "12 x)", "12 (x)", "12 (x) ", "x (x) S 1",
                         "12 (x) SS 1 2",
                         "12 )x( S 1 2 3", "12 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16",
                         "12 (x) S 1 2 3 4 5 6 7 8 9 10 x 12 13 14 15 16 17 18 19 20"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct err err = {0};
        struct proc_stat s;
        CHECK(!stat_parse(str_of(bad[i]), &s, &err));
        CHECK_INT(err.kind, ERR_MALFORMED);
    }
}

static void stat_own(void)
{
    char text[4096];
    struct proc_stat s;
    struct str whole = {text, read_proc("/proc/self/stat", text, sizeof text)};
    CHECK(stat_parse(whole, &s, NULL));
    CHECK_INT(s.pid, getpid());
    CHECK_INT(s.ppid, getppid());
    CHECK_INT(s.state, 'R');
    CHECK_STR(s.comm, "target_test");
}

static void schedstat_text(void)
{
    struct proc_schedstat s;
    CHECK(schedstat_parse(STR("123456789012 42 7\n"), &s, NULL));
    CHECK(s.cpu_ns == 123456789012 && s.wait_ns == 42 && s.slices == 7);
    CHECK(!schedstat_parse(STR("1 2\n"), &s, NULL));
    CHECK(!schedstat_parse(STR("1 2 x\n"), &s, NULL));
    CHECK(!schedstat_parse(STR(""), &s, NULL));
}

static const char status_text[] = "Name:\tmy \\n\\\\x\n"
                                  "Umask:\t0022\n"
                                  "State:\tS (sleeping)\n"
                                  "Tgid:\t100\n"
                                  "PPid:\t99\n"
                                  "TracerPid:\t12\n"
                                  "Uid:\t1000\t1001\t1002\t1003\n"
                                  "Gid:\t5\t6\t7\t8\n"
                                  "NSpid:\t100\t23\t4\n"
                                  "VmRSS:\t    2048 kB\n"
                                  "Threads:\t17\n"
                                  "SigCgt:\t0000000180004a02\n"
                                  "CapPrm:\t0000003fffffffff\n"
                                  "CapEff:\t0000000000080000\n"
                                  "CapBnd:\t00000000a80425fb\n"
                                  "NoNewPrivs:\t1\n"
                                  "Seccomp:\t2\n"
                                  "Seccomp_filters:\t1\n";

static void status_whole(void)
{
    struct proc_status s;
    CHECK(status_parse(str_of(status_text), &s, NULL));
    CHECK_TEXT(s.name, "my \n\\x");
    CHECK(s.uid.real == 1000 && s.uid.effective == 1001 && s.uid.saved == 1002 && s.uid.fs == 1003);
    CHECK(s.gid.real == 5 && s.gid.fs == 8);
    CHECK(s.tgid == 100 && s.ppid == 99 && s.tracer_pid == 12 && s.num_threads == 17);
    CHECK(s.ns_pid == 4 && s.ns_pid_depth == 3);
    CHECK_INT(s.rss_bytes, 2048 * 1024);
    CHECK(s.seccomp == 2 && s.no_new_privs == 1);
    CHECK(s.cap_permitted == 0x3fffffffff && s.cap_bounding == 0xa80425fb);
    CHECK(s.tells_caught && s.caught == 0x180004a02);
    CHECK(status_has_cap(&s, 19) && !status_has_cap(&s, 21) && !status_has_cap(&s, 200));
}

static void status_absent(void)
{
    struct proc_status s;
    CHECK(status_parse(STR("Uid:\t0\t0\t0\t0"), &s, NULL));
    CHECK(s.seccomp == -1 && s.no_new_privs == -1 && s.ns_pid == 0 && s.name[0] == '\0');
    CHECK(!s.tells_caught);
    struct err err = {0};
    CHECK(!status_parse(STR("Name:\tx\n"), &s, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
    CHECK(!status_parse(STR("Uid:\t0\t0\t0\n"), &s, NULL));
    CHECK(!status_parse(STR("Uid:\t0\t0\t0\t4294967296\n"), &s, NULL));
    CHECK(!status_parse(STR("Name:"), &s, NULL));
}

static void status_long_name(void)
{
    char text[400] = "Name:\t";
    memset(text + 6, 'x', 300);
    strcpy(text + 306, "\nUid:\t1\t1\t1\t1\n");
    struct proc_status s;
    CHECK(status_parse(str_of(text), &s, NULL));
    CHECK_INT(strlen(s.name), STATUS_NAME_MAX - 1);
}

static void status_own(void)
{
    static char text[16384];
    struct proc_status s;
    CHECK(status_parse((struct str){text, read_proc("/proc/self/status", text, sizeof text)}, &s,
                       NULL));
    CHECK_TEXT(s.name, "target_test");
    CHECK_INT(s.uid.effective, geteuid());
    CHECK(s.rss_bytes > 0 && s.num_threads >= 1);
    CHECK(s.ns_pid == (uint32_t)getpid() && s.ns_pid_depth >= 1);
}

static void container_ids(void)
{
    static const struct {
        const char *text, *id;
    } rows[] = {
        {"0::/\n", NULL},
        {"", NULL},
        {"12:memory:/docker/" HEX64 "\n", HEX64},
        {"0::/system.slice/docker-" HEX64 ".scope\n", HEX64},
        {"0::/system.slice/docker-" HEX64 ".scope/init.scope\n", HEX64},
        {"1:name=systemd:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod12345678_1234"
         "_1234_1234_123456789abc.slice/cri-containerd-" HEX64 ".scope\n", HEX64},
        {"0::/kubepods/besteffort/pod12345678-1234-1234-1234-123456789abc/crio-" HEX64, HEX64},
        {"0::/../../pod12345678-1234-1234-1234-123456789abc/" HEX64, HEX64},
        {"5:cpu:/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" HEX64, HEX64},
        {"9:cpu:/ecs/" HEX32 "/" HEX32 "-1234567890\n", HEX32 "-1234567890"},
        {"9:cpu:/ecs/" HEX32 "/" HEX64 "\n", HEX64},
        {"9:cpu:/garden/12345678-1234-1234-1234-123456789abc\n", "12345678-1234-1234-1234-123456789abc"},
        {"0::/kubepods/pod12345678-1234-1234-1234-123456789abc\n", NULL},
        {"0::/user.slice/user@1000.service/vte-spawn-12345678-1234-1234-1234-123456789abc.scope", NULL},
        {"0::/system.slice/run-r" HEX32 ".scope\n", NULL},
        {"0::/docker/a" HEX64 "\n", NULL},
        {"0::/ecs/" HEX32 "-\n", NULL},
        {"0::/ecs/" HEX32 "-1234567890123456789012345678901234567890\n", NULL},
        {"2:cpu:/\n1:pids:/docker/" HEX64 "\n0::/\n", HEX64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char id[CONTAINER_ID_MAX] = "untouched";
        bool found = cgroup_container_id(str_of(rows[i].text), id);
        CHECK_INT(found, rows[i].id != NULL);
        CHECK_TEXT(id, rows[i].id != NULL ? rows[i].id : "untouched");
    }
}

static void memory_group(void)
{
    static const struct {
        const char *text;
        unsigned version;
        const char *path;
    } rows[] = {
        {"0::/kubepods/pod1/c1\n", 2, "/kubepods/pod1/c1"},
        {"0::/\n", 2, "/"},
        {"5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/\n", 1, "/docker/b"},
        {"0::/init.scope\n7:hugetlb,memory:/c\n", 1, "/c"},
        {"5:cpu:/a\n1:name=systemd:/\n", 0, NULL},
        {"memory", 0, NULL},
        {"", 0, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct str path = STR("untouched");
        unsigned version = 9;
        CHECK_INT(cgroup_of_memory(str_of(rows[i].text), &version, &path), rows[i].path != NULL);
        CHECK_INT(version, rows[i].version);
        CHECK_STR(path, rows[i].path != NULL ? rows[i].path : "untouched");
    }
}

static void cpu_group(void)
{
    struct str path = STR("");
    unsigned version = 0;
    CHECK(cgroup_of(STR("5:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/\n"), STR("cpu"), &version, &path));
    CHECK_INT(version, 1);
    CHECK_STR(path, "/a");
    CHECK(cgroup_of(STR("4:cpuset:/b\n0::/c\n"), STR("cpu"), &version, &path)); /* a name is whole */
    CHECK_INT(version, 2);
    CHECK_STR(path, "/c");
}

static void cpu_of_groups(void)
{
    CHECK_INT(cgroup_cpu_millis(STR("200000 100000\n")), 2000);
    CHECK_INT(cgroup_cpu_millis(STR("25000\n100000\n")), 250); /* version 1: two files */
    CHECK_INT(cgroup_cpu_millis(STR("1 1000000\n")), 1);       /* never nothing */
    static const char *const none[] = {"max 100000\n", "-1\n100000\n", "", "5", "5 0", "5 x",
                                       "99999999999999999 1"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK_INT(cgroup_cpu_millis(str_of(none[i])), 0);
    }
}

static void parting_groups(void)
{
    static const struct {
        const char *first, *second;
        bool parts;
        const char *one, *other;
    } rows[] = {
        {"/", "/", false, NULL, NULL},
        {"/a/b", "/a/b", false, NULL, NULL},
        {"/a/b/c", "/a/d", true, "/a/b", "/a/d"},
        {"/a/b", "/a", true, "/a/b", ""},
        {"/", "/x/y", true, "", "/x"},
        {"/ab", "/a", true, "/ab", "/a"},
        {"/", "/../app", true, "", "/.."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cgroup_parting parting = {0};
        CHECK_INT(cgroup_part(str_of(rows[i].first), str_of(rows[i].second), &parting), rows[i].parts);
        if (rows[i].parts) {
            CHECK_STR(parting.first, rows[i].one);
            CHECK_STR(parting.second, rows[i].other);
        }
    }
}

static void container_id_of_mounts(void)
{
    char id[CONTAINER_ID_MAX] = "untouched";
    CHECK(mountinfo_container_id(
        STR("570 569 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/docker/x\n"
            "582 570 254:1 /var/lib/docker/containers/" HEX64 "/resolv.conf /etc/resolv.conf rw - ext4 /dev/v rw\n"),
        id));
    CHECK_TEXT(id, HEX64);
    CHECK(mountinfo_container_id(
        STR("582 570 0:1 /containerd/io.containerd.grpc.v1.cri/sandboxes/f" HEX64 "/hostname /etc/hostname rw\n"
            "583 570 0:1 /containerd/io.containerd.grpc.v1.cri/sandboxes/" HEX64 "/hostname /etc/hostname rw\n"),
        id));
    CHECK_TEXT(id, HEX64);
    CHECK(!mountinfo_own_container_id(
        STR("583 570 0:1 /containerd/io.containerd.grpc.v1.cri/sandboxes/" HEX64 "/hostname /etc/hostname rw\n"),
        id));
    CHECK(mountinfo_own_container_id(STR("1 2 0:1 /x/containers/" HEX64 "/hosts /etc/hosts rw\n"), id));
    strcpy(id, "untouched");
    CHECK(!mountinfo_container_id(STR("582 570 0:1 /x/containers/" HEX64 "/y /data rw\n\n5 6\n"), id));
    CHECK_TEXT(id, "untouched");
}

static void cpu_lists(void)
{
    uint32_t cpu[8];
    size_t count = 99;
    CHECK(cpulist_parse(STR("0-3,7\n"), cpu, 8, &count, NULL));
    CHECK_INT(count, 5);
    CHECK(cpu[0] == 0 && cpu[3] == 3 && cpu[4] == 7);
    CHECK(cpulist_parse(STR("\n"), cpu, 8, &count, NULL) && count == 0);
    CHECK(cpulist_parse(STR("0-7"), cpu, 8, &count, NULL) && count == 8);
    struct err err = {0};
    CHECK(!cpulist_parse(STR("0-8"), cpu, 8, &count, &err) && err.kind == ERR_LIMIT);
    const char *bad[] = {"a", "1-", "-1", "3-1", "1,1", "0-2,2", "1,,2", "0-8192", "1;2",
                         "0-18446744073709551615"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK(!cpulist_parse(str_of(bad[i]), cpu, 8, &count, &err) && err.kind == ERR_MALFORMED);
    }
    CHECK_INT(count, 8);
}

TESTS({"a mapped library is start, limit, rights, offset, device, inode and path", maps_file_line},
      {"a mapping's name tells its kind", maps_names},
      {"only the kernel's own (deleted) is cut off a path", maps_deleted},
      {"an escaped newline in a path is undone, a backslash stays", maps_escapes},
      {"lines that are no mapping are skipped", maps_malformed},
      {"the test's own maps hold its own code once", maps_own},
      {"a name with parentheses and newline does not shift the fields", stat_line},
      {"a kernel thread with a negative nice value is read", stat_kernel_thread},
      {"a cut stat is refused", stat_malformed},
      {"the test's own stat is its own", stat_own},
      {"schedstat is three numbers", schedstat_text},
      {"a whole status is read", status_whole},
      {"missing lines of a status leave the named defaults", status_absent},
      {"an overlong name is cut, not overrun", status_long_name},
      {"the test's own status is its own", status_own},
      {"container ids are found in the paths of all runtimes and nowhere else", container_ids},
      {"the group that bounds memory is found in both versions", memory_group},
      {"the group that is weighed is found by its whole name", cpu_group},
      {"two groups part at the first name that differs", parting_groups},
      {"container ids are found by the files the runtime mounts", container_id_of_mounts},
      {"CPU time of a group is a quota and a period", cpu_of_groups},
      {"CPU lists are rising ranges", cpu_lists})
