/* src/os/foreign, src/os/door, src/target/mounts: files of other processes, whatever those put in their place. Every
 * test runs twice: with openat2, and where a filter refuses it, so that names are resolved by hand. */
#include "os/foreign.h"
#include "base/time.h"
#include "child.h"
#include "os/clock.h"
#include "os/door.h"
#include "os/proc.h"
#include "target/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static char root[64];
static int root_fd;

static const char *in_root(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s%s", root, name);
    return path;
}

static void put(const char *name, const char *text)
{
    int fd = open(in_root(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void lead(const char *name, const char *to)
{
    CHECK_INT(symlink(to, in_root(name)), 0);
}

static void make_root(void)
{
    snprintf(root, sizeof root, "/tmp/foreign-XXXXXX");
    CHECK(mkdtemp(root) != NULL);
    CHECK(mkdir(in_root("/lib"), 0755) == 0 && mkdir(in_root("/lib/deep"), 0755) == 0);
    put("/lib/x", "inside");
    put("/etc", "a file of this name"); /* as outside there is a folder */
    lead("/absolute", "/lib/x");
    lead("/lib/relative", "x");
    lead("/lib/deep/up", "../../../../../lib/x"); /* the root's parent is the root */
    lead("/folder", "lib/deep/..");
    lead("/out", "/etc/passwd");
    lead("/far", "../../../../../../etc/passwd");
    lead("/loop", "/loop");
    CHECK_INT(mkfifo(in_root("/pipe"), 0644), 0);
    lead("/device", "/dev/null");
    lead("/magic", "/proc/self/exe");
    root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    CHECK(root_fd >= 0);
}

static void remove_root(void)
{
    char command[128];
    close(root_fd);
    snprintf(command, sizeof command, "rm -r %s", root);
    CHECK_INT(system(command), 0);
}

static bool refuse_openat2(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* What a descriptor reads as; "" when nothing was opened. */
static const char *content(bool opened, int fd)
{
    static char text[64];
    ssize_t len = opened ? read(fd, text, sizeof text - 1) : 0;
    text[len < 0 ? 0 : len] = '\0';
    if (opened) {
        close(fd);
    }
    return text;
}

static const char *under(const char *path)
{
    int fd = -1;
    bool opened = foreign_open_under(root_fd, path, &fd);
    return content(opened, fd);
}

static bool names_stay_within(void *by_hand)
{
    if (by_hand != NULL && !refuse_openat2()) {
        return false;
    }
    make_root();
    static const char *const good[] = {"/lib/x", "//lib//./x", "/lib/deep/../x", "/absolute", "/lib/relative",
                                       "/lib/deep/up", "/folder/x", "/../lib/x"};
    static const char *const bad[] = {"/out", "/far",  "/loop", "/pipe",       "/device",  "/magic", "/lib",
                                      "/",    "/none", "lib/x", "/etc/passwd", "/lib/x/y", ""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CHECK_TEXT(under(good[i]), "inside");
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_TEXT(under(bad[i]), "");
    }
    remove_root();
    return true;
}

static void twice(bool (*part)(void *context))
{
    static int by_hand;
    CHECK(in_child(part, NULL));
    if (!in_child(part, &by_hand)) {
        SKIP("no seccomp filter can be set here");
    }
}

static void links_lead_nowhere_else(void)
{
    twice(names_stay_within);
}

static const char *mapped(const struct foreign_mapping *mapping)
{
    int fd = -1;
    bool opened = foreign_open_mapped(proc_own_pid(), mapping, &fd, NULL);
    return content(opened, fd);
}

/* A mapping's name has no links: where one is now, it is another file. */
static bool mapped_by_name(void *by_hand)
{
    if (by_hand != NULL && !refuse_openat2()) {
        return false;
    }
    make_root();
    struct stat st;
    char name[128];
    CHECK_INT(stat(in_root("/lib/x"), &st), 0);
    snprintf(name, sizeof name, "%s", in_root("/lib/x"));
    struct foreign_mapping mapping = {str_of(name), st.st_ino, 0, 4096};
    CHECK_TEXT(mapped(&mapping), "inside");
    mapping.inode++;
    CHECK_TEXT(mapped(&mapping), "");
    mapping.inode--;
    snprintf(name, sizeof name, "%s", in_root("/absolute"));
    mapping.path = str_of(name);
    CHECK_TEXT(mapped(&mapping), "");
    remove_root();
    return true;
}

static void mapped_files_have_no_links(void)
{
    twice(mapped_by_name);
}

/* ---- mounts ---- */

static const char mountinfo[] =
    "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "22 21 0:20 / /proc rw shared:5 - proc proc rw\n"
    "23 22 0:30 / /proc/cpuinfo rw - fuse.lxcfs lxcfs rw\n"
    "24 21 0:31 / /data rw shared:9 master:3 - nfs4 server:/data rw\n"
    "25 24 0:32 / /data/fast rw - tmpfs tmpfs rw\n"
    "26 21 0:33 / /with\\040space rw - fuse.sshfs me@there rw\n"
    "27 21 0:34 / /hidden rw - fuse x rw\n"
    "28 27 0:35 / /hidden rw - xfs /dev/vdb rw\n"
    "damaged\n29 21 0:36\n";

static bool hangs(const char *path)
{
    return mounts_may_hang(str_of(mountinfo), str_of(path));
}

static void mounts_that_may_hang(void)
{
    CHECK(!hangs("/usr/bin/x") && !hangs("/database/x"));
    CHECK(hangs("/data") && hangs("/data/x") && !hangs("/data/fast/x"));
    CHECK(hangs("/with space/x") && !hangs("/with/x"));
    CHECK(!hangs("/hidden/x")); /* mounted over */
    CHECK(hangs(""));
    CHECK(!mounts_may_hang(STR("23 22 0:30 / /proc/cpuinfo rw - fuse.lxcfs lxcfs rw\n"), STR("")));
    CHECK(!mounts_may_hang(STR(""), STR("/x")) && !mounts_may_hang(STR(""), STR("")));
}

/* ---- the door ---- */

static bool starts(struct memory_reader *file, char text[static 7])
{
    return file->read(file->context, 0, text, 6, NULL);
}

static void through_the_door(void)
{
    make_root();
    struct door *door = door_new();
    struct memory_reader file, large;
    void *handle, *other;
    char text[7] = "", *bytes = malloc(200000);
    CHECK(!door_open_under(door, root_fd, "/out", &file, &handle));
    CHECK(!door_open_under(door, root_fd, "/none", &file, &handle));
    CHECK(door_open_under(door, root_fd, "/absolute", &file, &handle));
    CHECK(starts(&file, text) && door_reads(&file));
    CHECK_TEXT(text, "inside");
    int fd = open(in_root("/large"), O_WRONLY | O_CREAT, 0644);
    memset(bytes, 'y', 200000);
    bytes[199999] = 'z';
    CHECK(write(fd, bytes, 200000) == 200000 && close(fd) == 0);
    memset(bytes, 0, 200000);
    CHECK(door_open_under(door, root_fd, "/large", &large, &other));
    CHECK(large.read(large.context, 0, bytes, 200000, NULL)); /* in pieces */
    CHECK(bytes[0] == 'y' && bytes[150000] == 'y' && bytes[199999] == 'z');
    CHECK(!large.read(large.context, 199999, bytes, 2, NULL));
    door_close(other);
    CHECK(starts(&file, text));
    door_close(handle);
    free(bytes);
    door_free(door);
    remove_root();
}

/* The child, by its name. */
static pid_t child_of_the_door(void)
{
    char command[96];
    int pid = 0;
    snprintf(command, sizeof command, "pgrep -n -P %d -x pillion-files", getpid());
    FILE *found = popen(command, "r");
    CHECK(found != NULL && fscanf(found, "%d", &pid) == 1);
    pclose(found);
    return pid;
}

static void a_child_that_does_not_answer_is_left(void)
{
    make_root();
    struct door *door = door_new();
    struct memory_reader file, later;
    void *handle, *other;
    struct err err = {0};
    char text[7], path[DOOR_PATH_MAX];
    CHECK(door_open_under(door, root_fd, "/lib/x", &file, &handle));
    unsigned before = door_left_count(door, path);
    CHECK_INT(kill(child_of_the_door(), SIGSTOP), 0); /* stands still, as in a wait that does not end */
    uint64_t start_ns = clock_mono_ns();
    CHECK(!file.read(file.context, 0, text, 6, &err) && err.kind == ERR_NETWORK);
    uint64_t took_ns = clock_mono_ns() - start_ns;
    CHECK(took_ns >= (DOOR_BOUND_MS - 10) * NS_PER_MS && took_ns < 4 * DOOR_BOUND_MS * NS_PER_MS);
    CHECK_INT(door_left_count(door, path), before + 1);
    CHECK_TEXT(path, "/lib/x");
    CHECK(!file.read(file.context, 0, text, 6, &err)); /* at once */
    CHECK(clock_mono_ns() - start_ns < took_ns + DOOR_BOUND_MS * NS_PER_MS);
    CHECK(!door_open_under(door, root_fd, "/lib/x", &later, &other)); /* nobody else is tried for a while */
    door_close(handle);
    door_free(door);
    remove_root();
}

TESTS_THAT_MEASURE({"links lead nowhere else, pipes and devices are not opened", links_lead_nowhere_else},
                   {"a mapped file is opened by a name without links", mapped_files_have_no_links},
                   {"the file system that holds a path is found", mounts_that_may_hang},
                   {"a child opens and reads", through_the_door},
                   {"a child that does not answer is left", a_child_that_does_not_answer_is_left})
