/* Files, a socket and a signal of another process, as its user. Each call takes the user's ids, does one thing and
 * gives them back. What is waited for is waited for as ourselves.
 */
#include "os/client.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/foreign.h"
#include "os/net.h"
#include "os/proc.h"
#include "target/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    STATUS_BYTES = 16384,
    OWN_PATH_BYTES = 40,
    ENVIRONMENT_BYTES = 1 << 20,
    CHILDREN_MAX = 4096,
    MODE = 0600,
    PIECE_BYTES = 16384,
    PIDFD_SEND_SIGNAL = 424, PIDFD_OPEN = 434, /* not in every kernel's headers */
};

static bool as_user(struct client *c)
{
    return c->as_user && identity_take_effective(&c->user);
}

static void as_self(bool was_user)
{
    if (was_user) {
        identity_leave_effective();
    }
}

static bool read_status(uint32_t pid, struct proc_status *out, struct err *err)
{
    struct buf text;
    buf_init(&text, STATUS_BYTES);
    bool good = proc_read(pid, 0, "status", &text, err) && status_parse(buf_slice(&text), out, err);
    buf_release(&text);
    return good;
}

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    struct client *c = context;
    return proc_read(c->port.pid, 0, name, out, err);
}

/* ---- files ---- */

/* What a path leads to, not opened. */
static int find(struct client *c, const char *path)
{
    int fd = -1;
    bool user = as_user(c);
    int from = path[0] == '/' ? c->root : c->cwd;
    bool found = from >= 0 && foreign_find_under(from, path, &fd);
    as_self(user);
    return found ? fd : -1;
}

static bool list(void *context, const char *folder, void (*each)(void *to, const char *name), void *to)
{
    struct client *c = context;
    char own[OWN_PATH_BYTES];
    int fd = find(c, folder);
    bool user = as_user(c);
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    DIR *dir = fd < 0 ? NULL : opendir(own);
    as_self(user);
    if (fd >= 0) {
        close(fd);
    }
    for (const struct dirent *one; dir != NULL && (one = readdir(dir)) != NULL;) {
        each(to, one->d_name);
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return dir != NULL;
}

static bool open_file(void *context, const char *path, int *file)
{
    struct client *c = context;
    bool user = as_user(c);
    bool good = foreign_open_under(c->root, path, file);
    as_self(user);
    return good;
}

static bool read_file(void *context, int file, struct buf *out, struct err *err)
{
    ssize_t got = 1;
    (void)context;
    buf_clear(out);
    while (got > 0) {
        char *room = buf_room(out, PIECE_BYTES);
        if (room == NULL) {
            return err_set(err, ERR_LIMIT, 0, "the file is larger than %zu MB", out->max >> 20);
        }
        got = pread(file, room, PIECE_BYTES, (off_t)out->len);
        if (got < 0) {
            return err_errno(err, errno, "cannot read the file");
        }
        out->len += (size_t)got;
    }
    return true;
}

static void close_file(void *context, int file)
{
    (void)context;
    close(file);
}

/* Below a folder that is open, so that no link of a path's middle leads out of the root. */
static int folder_of(struct client *c, const char *path, const char **name)
{
    char folder[OWN_PATH_BYTES * 4];
    const char *last = strrchr(path, '/');
    if (last == NULL) {
        *name = path;
        return c->cwd < 0 ? -1 : fcntl(c->cwd, F_DUPFD_CLOEXEC, 0);
    }
    *name = last + 1;
    snprintf(folder, sizeof folder, "%.*s", last == path ? 1 : (int)(last - path), path);
    return find(c, folder);
}

/* Its owner is looked at: a file system may give files another one. */
static bool make(void *context, const char *path, struct str bytes, struct err *err)
{
    struct client *c = context;
    struct proc_status status;
    struct stat st;
    const char *name;
    int folder = folder_of(c, path, &name);
    bool user = as_user(c);
    int fd = folder < 0 ? -1 : openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, MODE);
    int number = errno;
    bool made = fd >= 0 && write(fd, bytes.ptr, bytes.len) == (ssize_t)bytes.len;
    bool good = made && fstat(fd, &st) == 0 && read_status(c->port.pid, &status, NULL) &&
                st.st_uid == status.uid.effective;
    if (fd >= 0 && !good) {
        (void)unlinkat(folder, name, 0);
    }
    as_self(user);
    if (fd >= 0) {
        close(fd);
    }
    if (folder >= 0) {
        close(folder);
    }
    if (fd < 0) {
        return err_errno(err, number, "cannot make the file %s", path);
    }
    return good || err_set(err, ERR_DENIED, EPERM, "the file %s would not be of the process's user", path);
}

static void remove_file(void *context, const char *path)
{
    struct client *c = context;
    const char *name;
    int folder = folder_of(c, path, &name);
    bool user = as_user(c);
    if (folder >= 0) {
        (void)unlinkat(folder, name, 0);
    }
    as_self(user);
    if (folder >= 0) {
        close(folder);
    }
}

/* ---- the signal ---- */

static bool send_signal(void *context, int number, struct err *err)
{
    struct client *c = context;
    struct proc_status status;
    int process = (int)syscall(PIDFD_OPEN, c->port.pid, 0);
    bool good = read_status(c->port.pid, &status, err);
    if (good && !status.tells_caught) {
        good = err_set(err, ERR_DENIED, 0, "this kernel does not tell which signals a process handles (gVisor), and "
                                           "one without a handler would end it");
    } else if (good && (status.caught >> (number - 1) & 1) == 0) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "it has no handler for signal %d", number);
    }
    if (good) {
        bool user = as_user(c);
        long failed = process >= 0 ? syscall(PIDFD_SEND_SIGNAL, process, number, NULL, 0)
                                   : kill((pid_t)c->port.pid, number);
        int why = errno;
        as_self(user);
        good = failed == 0 || err_errno(err, why, "cannot send signal %d", number);
    }
    if (process >= 0) {
        close(process);
    }
    return good;
}

/* ---- the socket ---- */

/* In a folder where anybody may make files it has to be its own. */
static int find_socket(struct client *c, const char *path)
{
    struct proc_status status;
    struct stat st;
    int fd = find(c, path);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || !read_status(c->port.pid, &status, NULL) ||
                    st.st_uid != status.uid.effective)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool listens(void *context, const char *path)
{
    int fd = find_socket(context, path);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* Waits until there is something to read; false: the time is up. */
static bool wait_for(int fd, uint64_t until_ns)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN};
    int ready = -1;
    errno = EINTR;
    while (ready < 0 && errno == EINTR) {
        uint64_t now_ns = clock_mono_ns();
        ready = poll(&wanted, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) : 0);
    }
    return ready > 0;
}

static bool converse(int fd, struct str request, struct buf *answer, uint64_t until_ns, struct err *err)
{
    ssize_t sent = send(fd, request.ptr, request.len, MSG_NOSIGNAL); /* it fits into the socket's buffer */
    if (sent != (ssize_t)request.len) {
        return err_errno(err, sent < 0 ? errno : EMSGSIZE, "cannot write to its socket");
    }
    for (ssize_t got = 1; got != 0;) {
        char *room = buf_room(answer, PIECE_BYTES);
        if (room == NULL) {
            return err_set(err, ERR_LIMIT, 0, "its answer is longer than %zu bytes", answer->max);
        }
        if (!wait_for(fd, until_ns)) {
            return err_set(err, ERR_NETWORK, ETIMEDOUT, "it does not answer");
        }
        got = recv(fd, room, PIECE_BYTES, MSG_DONTWAIT);
        if (got < 0 && errno != EAGAIN && errno != EINTR) {
            return err_errno(err, errno, "cannot read from its socket");
        }
        answer->len += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static bool ask(void *context, const char *path, struct str request, struct buf *answer, uint64_t timeout_ms,
                struct err *err)
{
    struct client *c = context;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    uint64_t until_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
    int found = find_socket(c, path), fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    buf_clear(answer);
    snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d", found);
    bool user = as_user(c);
    bool good = found >= 0 && fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    int number = found < 0 ? ENOENT : errno;
    as_self(user);
    good = good ? converse(fd, request, answer, until_ns, err)
                : err_errno(err, number, "cannot connect to its socket %s", path);
    if (fd >= 0) {
        close(fd);
    }
    if (found >= 0) {
        close(found);
    }
    return good;
}

/* ---- TCP ---- */

static bool owns(void *context, uint64_t inode)
{
    struct client *c = context;
    char path[OWN_PATH_BYTES], wanted[OWN_PATH_BYTES], target[OWN_PATH_BYTES];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%u/fd", c->port.pid);
    snprintf(wanted, sizeof wanted, "socket:[%llu]", (unsigned long long)inode);
    bool user = as_user(c);
    DIR *dir = opendir(path);
    for (const struct dirent *one; dir != NULL && !found && (one = readdir(dir)) != NULL;) {
        ssize_t len = readlinkat(dirfd(dir), one->d_name, target, sizeof target - 1);
        found = len > 0 && str_eq((struct str){target, (size_t)len}, str_of(wanted));
    }
    as_self(user);
    if (dir != NULL) {
        closedir(dir);
    }
    return found;
}

static bool shares_network(void *context)
{
    struct client *c = context;
    struct stat own, other;
    char path[OWN_PATH_BYTES];
    snprintf(path, sizeof path, "/proc/%u/ns/net", c->port.pid);
    bool user = as_user(c);
    bool good = stat(path, &other) == 0;
    as_self(user);
    return good && stat("/proc/self/ns/net", &own) == 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

static bool dial(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err)
{
    struct client *c = context;
    if (!shares_network(c)) {
        return err_set(err, ERR_DENIED, 0, "it is in another network namespace");
    }
    c->net = c->net != NULL ? c->net : net_new(-1, err);
    struct dialer dialer = c->net != NULL ? net_dialer(c->net) : (struct dialer){0};
    return c->net != NULL &&
           dialer.dial(dialer.context, is_v6 ? STR("::1") : STR("127.0.0.1"), port, deadline_ns, out, err);
}

static uint64_t now_ns(void *context)
{
    (void)context;
    return clock_mono_ns();
}

/* ---- its children ---- */

static bool was_started_with(uint32_t pid, const char *variable, struct buf *text)
{
    size_t len = strlen(variable);
    struct str rest = proc_read(pid, 0, "environ", text, NULL) ? buf_slice(text) : (struct str){0};
    while (rest.len > 0) {
        struct str one = str_cut(&rest, '\0');
        if (one.len > len && one.ptr[len] == '=' && memcmp(one.ptr, variable, len) == 0) {
            return true;
        }
    }
    return false;
}

/* Those of its first thread: who starts others is that one. */
static bool has_child_with(void *context, const char *variable)
{
    struct client *c = context;
    struct buf list, text;
    bool found = false;
    uint64_t child;
    buf_init(&list, ENVIRONMENT_BYTES);
    buf_init(&text, ENVIRONMENT_BYTES);
    struct str rest =
        proc_read(c->port.pid, c->port.pid, "children", &list, NULL) ? buf_slice(&list) : (struct str){0};
    for (unsigned i = 0; i < CHILDREN_MAX && rest.len > 0 && !found; i++) {
        found = str_u64(str_cut(&rest, ' '), &child) && was_started_with((uint32_t)child, variable, &text);
    }
    buf_release(&list);
    buf_release(&text);
    return found;
}

/* ---- the program and its memory ---- */

static bool open_program(void *context, struct memory_reader *out, struct err *err)
{
    struct client *c = context;
    char path[OWN_PATH_BYTES];
    if (c->program < 0) {
        snprintf(path, sizeof path, "/proc/%u/exe", c->port.pid);
        bool user = as_user(c);
        c->program = open(path, O_RDONLY | O_CLOEXEC);
        int number = errno;
        as_self(user);
        if (c->program < 0) {
            return err_errno(err, number, "its program cannot be opened");
        }
    }
    *out = proc_file_reader(c->program);
    return true;
}

static bool open_memory(void *context, uint64_t probe, struct memory_batch *out, struct err *err)
{
    struct client *c = context;
    remote_close(&c->remote);
    bool user = as_user(c);
    bool good = remote_open(&c->remote, c->port.pid, probe, err);
    as_self(user);
    c->caller = (struct remote_caller){.remote = &c->remote};
    *out = remote_batch(&c->caller);
    return good;
}

static uint64_t wall_ns(void *context)
{
    (void)context;
    return clock_wall_ns();
}

static uint64_t cycles(void *context)
{
    (void)context;
    return clock_cycles();
}

static void pause_for(void *context, uint64_t ms)
{
    (void)context;
    (void)wait_for(-1, clock_mono_ns() + ms * NS_PER_MS);
}

/* ---- opening ---- */

bool client_open(struct client *c, uint32_t pid, struct err *err)
{
    struct proc_status status;
    *c = (struct client){.root = -1, .cwd = -1, .program = -1, .remote = {.mem = -1}};
    if (!read_status(pid, &status, err)) {
        return false;
    }
    c->port = (struct process_port){
        .pid = pid,
        .inner_pid = status.ns_pid != 0 ? status.ns_pid : pid,
        .text = read_text,
        .list = list,
        .open = open_file,
        .read = read_file,
        .close = close_file,
        .make = make,
        .remove = remove_file,
        .signal = send_signal,
        .listens = listens,
        .ask = ask,
        .pause = pause_for,
        .now_ns = now_ns,
        .owns = owns,
        .shares_network = shares_network,
        .dial = dial,
        .has_child_with = has_child_with,
        .program = open_program,
        .memory = open_memory,
        .wall_ns = wall_ns,
        .cycles = cycles,
        .context = c,
    };
    c->as_user = identity_of(pid, &c->user);
    if (!foreign_open_root(pid, &c->root)) {
        return err_errno(err, errno, "its files cannot be reached");
    }
    (void)foreign_open_cwd(pid, &c->cwd);
    return true;
}

void client_close(struct client *c)
{
    net_free(c->net);
    c->net = NULL;
    if (c->root >= 0) {
        close(c->root);
    }
    if (c->cwd >= 0) {
        close(c->cwd);
    }
    if (c->program >= 0) {
        close(c->program);
    }
    remote_close(&c->remote);
    c->root = c->cwd = c->program = -1;
}
