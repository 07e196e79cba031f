/* Root without SYS_PTRACE looks into processes of another user. Each test is a child of this program that gives
 * rights up, and looks at a child of its own. */
#include "os/identity.h"
#include "child.h"
#include "os/foreign.h"
#include "os/proc.h"
#include "os/remote.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static uint64_t word = 4711;

static void give_up(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];
    CHECK_INT(syscall(SYS_capget, &header, data), 0);
    data[capability / 32].effective &= ~(UINT32_C(1) << capability % 32);
    data[capability / 32].permitted &= ~(UINT32_C(1) << capability % 32);
    CHECK_INT(syscall(SYS_capset, &header, data), 0);
}

static uint64_t effective(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {0};
    CHECK_INT(syscall(SYS_capget, &header, data), 0);
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

enum kind { OF_NOBODY, UNDUMPABLE, OF_TWO_USERS, OF_ROOT };

static void become(enum kind kind)
{
    if (kind == OF_NOBODY || kind == UNDUMPABLE) {
        drop_root();
    } else if (kind == OF_TWO_USERS) {
        CHECK_INT(setresuid(CHILD_NOBODY, 0, 0), 0);
    }
    prctl(PR_SET_DUMPABLE, kind != UNDUMPABLE); /* another user made it undumpable, until an exec */
}

static pid_t start(enum kind kind)
{
    int ends[2];
    char byte;
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        become(kind);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!write(ends[1], "", 1);
        for (;;) {
            pause();
        }
    }
    CHECK_INT(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static bool stop(pid_t pid, bool ran)
{
    kill(pid, SIGKILL);
    CHECK_INT(waitpid(pid, NULL, 0), pid);
    return ran;
}

static bool is_refused(pid_t pid)
{
    char path[64], target[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return readlink(path, target, sizeof target) < 0 && errno == EACCES;
}

/* As root of a stock container. PERFMON, and with it SYS_ADMIN, opens maps on newer kernels. */
static void give_up_tracing(void)
{
    give_up(CAP_SYS_PTRACE);
    give_up(CAP_SYS_ADMIN);
    give_up(38); /* PERFMON, which older headers do not name */
}

#define IN_CHILD(part)                                                                             \
    if (geteuid() != 0) {                                                                          \
        SKIP("needs root");                                                                        \
    }                                                                                              \
    if (!in_child(part, NULL)) {                                                                   \
        SKIP("no process is refused here");                                                        \
    }

/* ---- another user ---- */

static void look_into(uint32_t pid)
{
    struct buf text;
    struct err err = {0};
    char exe[4096], own_exe[4096];
    struct foreign_root root, own_root;
    int fd;
    buf_init(&text, 1 << 20);
    CHECK(proc_read(pid, 0, "maps", &text, &err));
    CHECK(text.len > 0);
    CHECK(proc_link(pid, "exe", exe, sizeof exe) && proc_link(proc_own_pid(), "exe", own_exe, sizeof own_exe));
    CHECK_TEXT(exe, own_exe);
    CHECK(foreign_root_of(pid, &root) && foreign_root_of(proc_own_pid(), &own_root));
    CHECK(memcmp(&root, &own_root, sizeof root) == 0);
    CHECK(foreign_open_root(pid, &fd));
    close(fd);
    buf_release(&text);
}

static void read_memory(uint32_t pid)
{
    struct remote remote;
    struct err err = {0};
    uint64_t out = 0;
    CHECK(remote_open(&remote, pid, (uint64_t)(uintptr_t)&word, &err));
    struct remote_caller caller = {.remote = &remote};
    struct memory_batch memory = remote_batch(&caller);
    struct memory_piece piece = {(uint64_t)(uintptr_t)&word, &out, sizeof out, 0};
    CHECK(memory_batch_read(&memory, &piece, 1, &err));
    CHECK_INT(out, 4711);
    remote_close(&remote);
    struct memory_reader reader = remote_reader(pid);
    out = 0;
    CHECK(reader.read(reader.context, (uint64_t)(uintptr_t)&word, &out, sizeof out, &err));
    CHECK_INT(out, 4711);
}

static void nothing_is_left(uint64_t rights)
{
    struct stat st;
    int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) {
        CHECK(fstat(fd, &st) == 0 && st.st_uid == 0 && st.st_gid == 0); /* our own files are ours */
        close(fd);
    }
    CHECK_INT(prctl(PR_GET_DUMPABLE), 1);
    CHECK(effective() == rights);
    CHECK(getuid() == 0 && getgid() == 0);
}

static bool as_its_user(void *context)
{
    (void)context;
    pid_t pid = start(OF_NOBODY);
    give_up_tracing();
    uint64_t rights = effective();
    if (!is_refused(pid)) {
        return stop(pid, false);
    }
    look_into((uint32_t)pid);
    read_memory((uint32_t)pid);
    CHECK(is_refused(pid));
    nothing_is_left(rights);
    return stop(pid, true);
}

static void another_user(void)
{
    IN_CHILD(as_its_user);
}

static bool real_ids(void *context)
{
    struct identity identity;
    (void)context;
    pid_t pid = start(OF_NOBODY);
    uint64_t rights = effective();
    CHECK(identity_of((uint32_t)pid, &identity));
    CHECK(identity.uid == CHILD_NOBODY && identity.gid == CHILD_NOBODY);
    CHECK(identity_take_real(&identity));
    CHECK(getuid() == CHILD_NOBODY && getgid() == CHILD_NOBODY && geteuid() == 0);
    identity_leave_real();
    nothing_is_left(rights);
    return stop(pid, true);
}

static void real(void)
{
    IN_CHILD(real_ids);
}

/* ---- where it does not help ---- */

static void refused_with(pid_t pid, const char *words)
{
    struct remote remote;
    struct err err = {0};
    CHECK(!remote_open(&remote, (uint32_t)pid, (uint64_t)(uintptr_t)&word, &err));
    CHECK_INT(err.kind, ERR_DENIED);
    if (strstr(err.text, words) == NULL) {
        CHECK_TEXT(err.text, words);
    }
}

static bool without_setuid(void *context)
{
    (void)context;
    pid_t pid = start(OF_NOBODY);
    give_up_tracing();
    give_up(CAP_SETUID);
    uint64_t rights = effective();
    struct identity identity = {CHILD_NOBODY, CHILD_NOBODY};
    if (!is_refused(pid)) {
        return stop(pid, false);
    }
    errno = ENOENT;
    CHECK(!identity_visit((uint32_t)pid, EACCES));
    CHECK_INT(errno, EACCES);
    CHECK(!identity_take_real(&identity));
    nothing_is_left(rights);
    refused_with(pid, "another user");
    return stop(pid, true);
}

static void no_right_to_change(void)
{
    IN_CHILD(without_setuid);
}

static bool undumpable(void *context)
{
    (void)context;
    pid_t pid = start(UNDUMPABLE);
    give_up_tracing();
    if (!is_refused(pid)) {
        return stop(pid, false);
    }
    refused_with(pid, "not dumpable");
    return stop(pid, true);
}

static void not_dumpable(void)
{
    IN_CHILD(undumpable);
}

static bool more_rights(void *context)
{
    (void)context;
    pid_t pid = start(OF_ROOT);
    give_up_tracing();
    if (!is_refused(pid)) {
        return stop(pid, false);
    }
    refused_with(pid, "it has capabilities that pillion lacks (SYS_PTRACE");
    return stop(pid, true);
}

static void more_capabilities(void)
{
    IN_CHILD(more_rights);
}

static bool two_users(void *context)
{
    struct identity identity;
    (void)context;
    pid_t pid = start(OF_TWO_USERS);
    CHECK(!identity_of((uint32_t)pid, &identity));
    CHECK(!identity_of((uint32_t)getpid(), &identity)); /* our own */
    CHECK(!identity_of(0x7ffffff0, &identity));
    CHECK(!identity_visit((uint32_t)pid, ENOENT)); /* no refusal */
    return stop(pid, true);
}

static void no_one_user(void)
{
    IN_CHILD(two_users);
}

TESTS({"without SYS_PTRACE a process of another user is read as that user, and nothing of it is left",
       another_user},
      {"the real ids are taken and given back", real},
      {"without the right to change users it stays refused", no_right_to_change},
      {"a process that is not dumpable stays refused, and that is said", not_dumpable},
      {"a process with more capabilities stays refused, by name", more_capabilities},
      {"a process of several users at once is nobody's", no_one_user})
