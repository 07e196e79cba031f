/*
 * The child that opens and reads, and the parent's side of it. A request and its answer are in memory that both share;
 * a byte through a socket says that there is one. What belongs to a child is thrown away with it, but for its process,
 * which is waited for whenever the door is used.
 */
#include "os/door.h"
#include "base/time.h"
#include "os/clock.h"
#include "os/launch.h"
#include "os/proc.h"
#include "target/mounts.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    DATA_BYTES = 64 * 1024,
    PATH_BYTES = 4096,
    MOUNTS_BYTES = 1 << 20,
};

enum what { OPEN_MAPPED, OPEN_UNDER, OPEN_PERF_MAP, READ, CLOSE };

struct request {
    enum what what;
    uint32_t pid;
    struct foreign_mapping mapping; /* its path is `path` */
    char path[PATH_BYTES];
    int file;                       /* the child's descriptor; of what is opened it is the answer */
    uint64_t offset;
    size_t len;
};

/* What both sides see. */
struct table {
    struct request request;
    bool good;                      /* the answer */
    struct err err;
    char data[DATA_BYTES];
};

/* A file that a child has open. */
struct file {
    struct door *door;
    unsigned child; /* by its number */
    int fd;         /* there */
    char path[];
};

struct door {
    pthread_mutex_t lock;
    struct table *table;
    pid_t pid;
    int socket;           /* -1: there is no child */
    unsigned number;      /* of the child: files of an earlier one are lost */
    uint64_t shut_until_ns;
    pid_t left[DOOR_LEFT_MAX];
    unsigned left_count;  /* that may still be there */
    unsigned left_so_far;
    char silent[DOOR_PATH_MAX]; /* the file that the latest of them was asked for */
};

/* ---- the child ---- */

static bool serve(struct table *t, int root)
{
    struct request *r = &t->request;
    struct memory_reader reader = proc_file_reader(r->file);
    switch (r->what) {
    case OPEN_MAPPED:
        r->mapping.path = str_of(r->path);
        return foreign_open_mapped(r->pid, &r->mapping, &r->file, &t->err);
    case OPEN_UNDER:
        return foreign_open_under(root, r->path, &r->file);
    case OPEN_PERF_MAP:
        return foreign_open_perf_map(r->pid, &r->file);
    case READ:
        return reader.read(reader.context, r->offset, t->data, r->len, &t->err);
    default:
        proc_close(r->file);
        return true;
    }
}

/* The byte, and the descriptor that comes with it or -1. False: the parent is gone. */
static bool take_request(int socket, int *root)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    ssize_t got;
    while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) {
    }
    const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&message) : NULL;
    *root = -1;
    if (head != NULL && head->cmsg_type == SCM_RIGHTS) {
        memcpy(root, CMSG_DATA(head), sizeof *root);
    }
    return got == 1;
}

__attribute__((noreturn)) static void be_child(struct table *t, int socket)
{
    int root;
    (void)prctl(PR_SET_NAME, "pillion-files");
    launch_close_from(0, socket);
    while (take_request(socket, &root)) {
        t->err = (struct err){0};
        t->good = serve(t, root);
        if (root >= 0) {
            close(root);
        }
        if (send(socket, "x", 1, MSG_NOSIGNAL) != 1) {
            break;
        }
    }
    _exit(0);
}

/* ---- children that were left ---- */

static void reap(struct door *d)
{
    for (unsigned i = 0; i < d->left_count;) {
        if (waitpid(d->left[i], NULL, WNOHANG) == 0) {
            i++;
        } else {
            d->left[i] = d->left[--d->left_count];
        }
    }
}

static void leave(struct door *d, const char *path)
{
    (void)snprintf(d->silent, sizeof d->silent, "%s", path);
    (void)kill(d->pid, SIGKILL);
    close(d->socket);
    (void)munmap(d->table, sizeof *d->table);
    d->left[d->left_count++] = d->pid;
    d->left_so_far++;
    d->socket = -1;
    d->shut_until_ns = clock_mono_ns() + DOOR_SHUT_S * NS_PER_S;
    reap(d);
}

/* ---- requests, with the lock ---- */

static bool start(struct door *d)
{
    int ends[2];
    reap(d);
    if (d->socket >= 0) {
        return true;
    }
    if (d->left_count == DOOR_LEFT_MAX || clock_mono_ns() < d->shut_until_ns ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
        return false;
    }
    d->table = mmap(NULL, sizeof *d->table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    d->pid = d->table == MAP_FAILED ? -1 : fork();
    if (d->pid == 0) {
        be_child(d->table, ends[1]);
    }
    close(ends[1]);
    if (d->pid < 0) {
        close(ends[0]);
        if (d->table != MAP_FAILED) {
            (void)munmap(d->table, sizeof *d->table);
        }
        return false;
    }
    d->socket = ends[0];
    d->number++;
    return true;
}

static bool send_request(struct door *d, int root)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (root >= 0) {
        memcpy(CMSG_DATA(&control.head), &root, sizeof root);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int));
    }
    return sendmsg(d->socket, &message, MSG_NOSIGNAL) == 1;
}

/* The request is in the table. False: the child did not answer, and is gone. */
static bool ask(struct door *d, int root, const char *path)
{
    struct pollfd one = {.fd = d->socket, .events = POLLIN};
    uint64_t end_ns = clock_mono_ns() + DOOR_BOUND_MS * NS_PER_MS;
    int ready = -1;
    char byte;
    errno = EINTR;
    for (bool sent = send_request(d, root); sent && ready < 0 && errno == EINTR;) {
        uint64_t now_ns = clock_mono_ns();
        ready = poll(&one, 1, now_ns < end_ns ? (int)((end_ns - now_ns) / NS_PER_MS) + 1 : 0);
    }
    if (ready <= 0 || read(d->socket, &byte, 1) != 1) {
        leave(d, path);
        return false;
    }
    return true;
}

static bool refuse(struct err *err)
{
    return err_set(err, ERR_NETWORK, ETIMEDOUT, "its file system does not answer");
}

static bool read_file(void *context, uint64_t offset, void *to, size_t len, struct err *err)
{
    const struct file *file = context;
    struct door *d = file->door;
    char *at = to;
    bool good = true;
    pthread_mutex_lock(&d->lock);
    for (size_t part; good && len > 0; at += part, offset += part, len -= part) {
        struct table *t = d->table;
        part = len < DATA_BYTES ? len : (size_t)DATA_BYTES;
        if (d->socket < 0 || d->number != file->child) {
            good = refuse(err);
            break;
        }
        t->request.what = READ;
        t->request.file = file->fd;
        t->request.offset = offset;
        t->request.len = part;
        if (!ask(d, -1, file->path)) {
            good = refuse(err);
        } else if (!t->good) {
            good = err_set(err, t->err.kind, t->err.number, "%s", t->err.text);
        } else {
            memcpy(at, t->data, part);
        }
    }
    pthread_mutex_unlock(&d->lock);
    return good;
}

static bool open_file(struct door *d, const struct request *request, int root, struct memory_reader *out,
                      void **handle, struct err *err)
{
    size_t path_bytes = strlen(request->path) + 1;
    struct file *file = malloc(sizeof *file + path_bytes);
    if (file == NULL) {
        return err_set(err, ERR_MEMORY, 0, "no memory for a file");
    }
    pthread_mutex_lock(&d->lock);
    bool asked = start(d);
    if (asked) {
        d->table->request = *request;
        asked = ask(d, root, request->path);
    }
    bool good = asked && d->table->good;
    if (good) {
        file->door = d;
        file->child = d->number;
        file->fd = d->table->request.file;
        memcpy(file->path, request->path, path_bytes);
    } else if (asked) {
        (void)err_set(err, d->table->err.kind, d->table->err.number, "%s", d->table->err.text);
    } else {
        (void)refuse(err);
    }
    pthread_mutex_unlock(&d->lock);
    if (!good) {
        free(file);
        return false;
    }
    *out = (struct memory_reader){read_file, file};
    *handle = file;
    return true;
}

/* ---- what callers see ---- */

struct door *door_new(void)
{
    struct door *d = calloc(1, sizeof *d);
    if (d != NULL) {
        pthread_mutex_init(&d->lock, NULL);
        d->socket = -1;
    }
    return d;
}

void door_free(struct door *d)
{
    if (d == NULL) {
        return;
    }
    if (d->socket >= 0) {
        close(d->socket); /* its end, which is not waited for: closing a file may ask its file system, too */
        (void)munmap(d->table, sizeof *d->table);
    }
    reap(d);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

bool door_is_needed(uint32_t pid, struct str path)
{
    struct buf text;
    buf_init(&text, MOUNTS_BYTES);
    bool needed = proc_read(pid == 0 ? proc_own_pid() : pid, 0, "mountinfo", &text, NULL) &&
                  mounts_may_hang(buf_slice(&text), path);
    buf_release(&text);
    return needed;
}

/* False: the path is too long. */
static bool set_path(struct request *request, struct str path)
{
    if (path.len >= PATH_BYTES) {
        return false;
    }
    memcpy(request->path, path.ptr, path.len);
    return true;
}

bool door_open_mapped(struct door *d, uint32_t pid, const struct foreign_mapping *mapping, struct memory_reader *out,
                      void **handle, struct err *err)
{
    struct request request = {.what = OPEN_MAPPED, .pid = pid, .mapping = *mapping};
    if (!set_path(&request, mapping->path)) {
        return err_set(err, ERR_LIMIT, 0, "its path is longer than %d bytes", PATH_BYTES);
    }
    return open_file(d, &request, -1, out, handle, err);
}

bool door_open_under(struct door *d, int root, const char *path, struct memory_reader *out, void **handle)
{
    struct request request = {.what = OPEN_UNDER};
    return set_path(&request, str_of(path)) && open_file(d, &request, root, out, handle, NULL);
}

bool door_open_perf_map(struct door *d, uint32_t pid, struct memory_reader *out, void **handle)
{
    struct request request = {.what = OPEN_PERF_MAP, .pid = pid};
    snprintf(request.path, sizeof request.path, "the perf map of pid %u", pid);
    return open_file(d, &request, -1, out, handle, NULL);
}

void door_close(void *handle)
{
    struct file *file = handle;
    struct door *d = file->door;
    pthread_mutex_lock(&d->lock);
    if (d->socket >= 0 && d->number == file->child) {
        d->table->request.what = CLOSE;
        d->table->request.file = file->fd;
        (void)ask(d, -1, file->path);
    }
    pthread_mutex_unlock(&d->lock);
    free(file);
}

bool door_reads(const struct memory_reader *file)
{
    return file->read == read_file;
}

unsigned door_left_count(struct door *d, char path[static DOOR_PATH_MAX])
{
    pthread_mutex_lock(&d->lock);
    unsigned count = d->left_so_far;
    memcpy(path, d->silent, sizeof d->silent);
    pthread_mutex_unlock(&d->lock);
    return count;
}
