/* Whole files in, whole files out, in real directories. */
#include "os/file.h"
#include "child.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][256];
    static unsigned next;
    char *out = path[next++ % 4];
    snprintf(out, sizeof path[0], "%s/%s", dir, name);
    return out;
}

static void begin(void)
{
    snprintf(dir, sizeof dir, "/tmp/file_test.XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    CHECK_INT(chmod(dir, 0777), 0);
}

static void remove_entry(void *context, const char *name)
{
    (void)context;
    CHECK_INT(remove(in_dir(name)), 0);
}

static void end(void)
{
    CHECK(file_list(dir, remove_entry, NULL, NULL));
    CHECK_INT(rmdir(dir), 0);
}

static void count_entry(void *context, const char *name)
{
    CHECK(name[0] != '\0');
    ++*(unsigned *)context;
}

static unsigned entries(void)
{
    unsigned count = 0;
    CHECK(file_list(dir, count_entry, &count, NULL));
    return count;
}

/* What a symbolic link says; null when there is none. */
static const char *link_text(const char *name)
{
    static char text[256];
    ssize_t len = readlink(in_dir(name), text, sizeof text - 1);
    text[len > 0 ? len : 0] = '\0';
    return len > 0 ? text : NULL;
}

static void put(const char *name, const char *text)
{
    int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

static const char *content(const char *name)
{
    static char text[256];
    struct buf out;
    if (!file_read_all(in_dir(name), sizeof text - 1, &out, NULL)) {
        return "(none)";
    }
    snprintf(text, sizeof text, "%s", buf_cstr(&out));
    buf_release(&out);
    return text;
}

static struct file_writer writer; /* 24 KB */

static bool start(const char *name, struct sink *sink)
{
    if (!file_create_atomic(&writer, in_dir(name), NULL)) {
        return false;
    }
    *sink = file_sink(&writer);
    return true;
}

static bool add(struct sink *sink, const char *text)
{
    return sink_write(sink, text, strlen(text), NULL);
}

static unsigned open_descriptors(void)
{
    unsigned count = 0;
    CHECK(file_list("/proc/self/fd", count_entry, &count, NULL));
    return count;
}

/* ---- writing ---- */

static void old_or_new(void)
{
    begin();
    unsigned before = open_descriptors();
    put("x", "old");
    struct sink sink;
    CHECK(start("x", &sink));
    CHECK(add(&sink, "new") && add(&sink, " content"));
    CHECK_TEXT(content("x"), "old");
    CHECK_INT(entries(), writer.is_nameless ? 1 : 2);
    CHECK(file_commit(&writer, NULL));
    CHECK_TEXT(content("x"), "new content");
    CHECK_INT(entries(), 1);
    CHECK_INT(open_descriptors(), before);
    struct stat st;
    CHECK(stat(in_dir("x"), &st) == 0 && (st.st_mode & 0777) == 0644);
    end();
}

static void abandoned(void)
{
    begin();
    unsigned before = open_descriptors();
    put("x", "old");
    struct sink sink;
    CHECK(start("x", &sink));
    CHECK(add(&sink, "new"));
    file_abandon(&writer);
    CHECK_TEXT(content("x"), "old");
    CHECK_INT(entries(), 1);
    CHECK_INT(open_descriptors(), before);
    end();
}

static void every_size(void)
{
    begin();
    static char bytes[60000];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (char)(i * 7 + i / 251);
    }
    /* pieces around the size of the writer's own buffer, 16 KB */
    static const size_t pieces[] = {1, 1000, 16383, 16384, 16385, 40000};
    for (unsigned p = 0; p < sizeof pieces / sizeof pieces[0]; p++) {
        struct sink sink;
        CHECK(start("x", &sink));
        size_t sent = 0;
        while (sent < sizeof bytes) {
            size_t len = pieces[p] < sizeof bytes - sent ? pieces[p] : sizeof bytes - sent;
            CHECK(sink_write(&sink, bytes + sent, len, NULL));
            sent += len;
        }
        CHECK(file_commit(&writer, NULL));
        struct buf out;
        CHECK(file_read_all(in_dir("x"), sizeof bytes, &out, NULL));
        CHECK_INT(out.len, sizeof bytes);
        CHECK(memcmp(out.ptr, bytes, sizeof bytes) == 0);
        buf_release(&out);
    }
    end();
}

static void empty_file(void)
{
    begin();
    struct sink sink;
    CHECK(start("x", &sink));
    CHECK(add(&sink, ""));
    CHECK(file_commit(&writer, NULL));
    CHECK_TEXT(content("x"), "");
    CHECK(file_exists(in_dir("x")));
    end();
}

static void leftover(void)
{
    begin();
    char name[64];
    snprintf(name, sizeof name, "x.%ld.tmp", (long)getpid());
    put(name, "what a killed run with our pid left behind, longer than the new file");
    struct sink sink;
    CHECK(start("x", &sink));
    CHECK(add(&sink, "short"));
    CHECK(file_commit(&writer, NULL));
    CHECK_TEXT(content("x"), "short");
    CHECK_INT(entries(), 1);
    end();
}

static void planted_link(void)
{
    begin();
    char name[64];
    put("victim", "precious");
    snprintf(name, sizeof name, "x.%ld.tmp", (long)getpid());
    CHECK_INT(symlink("victim", in_dir(name)), 0); /* in a directory that others can write */
    struct sink sink;
    CHECK(start("x", &sink));
    CHECK(add(&sink, "new"));
    CHECK(file_commit(&writer, NULL));
    CHECK_TEXT(content("x"), "new");
    CHECK_TEXT(content("victim"), "precious");
    end();
}

/* ---- what cannot be written ---- */

static void missing_directory(void)
{
    begin();
    struct err err = {0};
    CHECK(!file_create_atomic(&writer, in_dir("no/x"), &err));
    char expected[256];
    snprintf(expected, sizeof expected,
             "cannot write %s/no/x (No such file or directory, ENOENT); give -o DIR", dir);
    CHECK_TEXT(err.text, expected);
    CHECK_INT(err.number, ENOENT);
    static char longest[5000];
    memset(longest, 'a', sizeof longest - 1);
    CHECK(!file_create_atomic(&writer, longest, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    end();
}

static void onto_a_directory(void)
{
    begin();
    CHECK_INT(mkdir(in_dir("x"), 0755), 0);
    unsigned before = open_descriptors();
    struct sink sink;
    struct err err = {0};
    CHECK(start("x", &sink));
    CHECK(add(&sink, "new"));
    CHECK(!file_commit(&writer, &err)); /* only the rename finds out */
    CHECK(str_starts(str_of(err.text), STR("cannot write ")));
    CHECK_INT(entries(), 1); /* no temporary file stays */
    CHECK_INT(open_descriptors(), before);
    end();
}

static bool limited_size(void *context)
{
    (void)context;
    struct rlimit limit = {100000, 100000};
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_IGN);
    static char bytes[50000];
    struct sink sink;
    struct err err = {0};
    CHECK(start("x", &sink));
    CHECK(sink_write(&sink, bytes, sizeof bytes, &err));
    CHECK(sink_write(&sink, bytes, sizeof bytes, &err));
    CHECK(!sink_write(&sink, bytes, sizeof bytes, &err));
    CHECK_INT(err.number, EFBIG);
    file_abandon(&writer);
    CHECK_INT(entries(), 0);

    CHECK(start("x", &sink)); /* and when only the last flush fails */
    for (unsigned i = 0; i < 10; i++) {
        CHECK(sink_write(&sink, bytes, 10000, &err) || i > 8);
    }
    CHECK(sink_write(&sink, bytes, 1000, &err));
    err = (struct err){0};
    CHECK(!file_commit(&writer, &err));
    CHECK_INT(err.number, EFBIG);
    CHECK_INT(entries(), 0);
    return true;
}

static void no_room(void)
{
    begin();
    CHECK(in_child(limited_size, NULL));
    end();
}

static bool full_disk_in_child(void *context)
{
    (void)context;
    if (!mount_small(dir, "size=64k")) {
        return false;
    }
    static char bytes[40000];
    struct sink sink;
    struct err err = {0};
    CHECK(start("first", &sink));
    CHECK(sink_write(&sink, bytes, sizeof bytes, &err));
    CHECK(file_commit(&writer, &err));
    CHECK(start("x", &sink));
    CHECK(!sink_write(&sink, bytes, sizeof bytes, &err));
    char expected[256];
    snprintf(expected, sizeof expected,
             "cannot write %s/x (disk full, ENOSPC); free space there or give -o DIR", dir);
    CHECK_TEXT(err.text, expected);
    file_abandon(&writer);
    CHECK_INT(entries(), 1);
    return true;
}

static void full_disk(void)
{
    begin();
    bool ran = in_child(full_disk_in_child, NULL);
    end();
    if (!ran) {
        SKIP("needs the right to mount (root)");
    }
}

/* ---- standard output ---- */

static bool write_to_stdout(void *context)
{
    int fd = *(const int *)context;
    struct err err = {0};
    fflush(stdout);
    if (fd >= 0) {
        dup2(fd, STDOUT_FILENO);
    } else {
        close(STDOUT_FILENO);
    }
    bool ok = file_create_atomic(&writer, "-", &err);
    struct sink sink = file_sink(&writer);
    ok = ok && add(&sink, "to standard output") && file_commit(&writer, &err);
    if (!ok) {
        file_abandon(&writer);
    }
    bool told =
        strcmp(err.text, "cannot write standard output: Bad file descriptor (EBADF)") == 0;
    _exit(fd >= 0 ? !ok : ok || !told);
}

static void standard_output(void)
{
    begin();
    int fd = open(in_dir("out"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(in_child(write_to_stdout, &fd));
    close(fd);
    CHECK_TEXT(content("out"), "to standard output");
    CHECK_INT(entries(), 1);
    int closed = -1;
    CHECK(in_child(write_to_stdout, &closed));
    end();
}

/* ---- devices and pipes ---- */

static bool write_named(const char *path, bool commits)
{
    struct err err = {0};
    bool ok = file_create_named(&writer, path, &err);
    struct sink sink = file_sink(&writer);
    ok = ok && add(&sink, "new");
    if (!commits) {
        file_abandon(&writer);
        return ok;
    }
    return ok && file_commit(&writer, &err);
}

static void into_a_pipe(void)
{
    begin();
    CHECK_INT(mkfifo(in_dir("pipe"), 0600), 0);
    int reader = open(in_dir("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    unsigned before = open_descriptors();
    char text[8] = "";
    CHECK(write_named(in_dir("pipe"), true));
    CHECK_INT(read(reader, text, sizeof text - 1), 3);
    CHECK_TEXT(text, "new");
    CHECK(write_named(in_dir("pipe"), false)); /* nothing was sent yet, and the pipe stays */
    CHECK_INT(read(reader, text, sizeof text - 1), 0);
    struct stat st;
    CHECK(stat(in_dir("pipe"), &st) == 0 && S_ISFIFO(st.st_mode));
    CHECK_INT(open_descriptors(), before);
    close(reader);
    end();
}

static void into_a_device(void)
{
    begin();
    struct err err = {0};
    CHECK_INT(symlink("/dev/null", in_dir("null")), 0); /* so a failing test replaces a link */
    CHECK(write_named(in_dir("null"), true));
    CHECK_TEXT(link_text("null"), "/dev/null");
    CHECK_INT(symlink("/dev/full", in_dir("full")), 0);
    CHECK(file_create_named(&writer, in_dir("full"), NULL));
    struct sink sink = file_sink(&writer);
    CHECK(add(&sink, "new"));
    CHECK(!file_commit(&writer, &err)); /* /dev/full refuses each byte */
    CHECK_INT(err.number, ENOSPC);
    CHECK_TEXT(link_text("full"), "/dev/full");
    CHECK_INT(entries(), 2);
    end();
}

static void named_file(void)
{
    begin();
    put("x", "old");
    CHECK(write_named(in_dir("x"), false));
    CHECK_TEXT(content("x"), "old");
    CHECK(write_named(in_dir("x"), true));
    CHECK_TEXT(content("x"), "new");
    CHECK_INT(entries(), 1);
    end();
}

/* ---- reading ---- */

static void read_limits(void)
{
    begin();
    put("ten", "0123456789");
    struct buf out;
    struct err err = {0};
    CHECK(file_read_all(in_dir("ten"), 10, &out, &err));
    CHECK_STR(buf_slice(&out), "0123456789");
    CHECK_TEXT(buf_cstr(&out), "0123456789"); /* with room for the NUL */
    buf_release(&out);
    unsigned before = open_descriptors();
    CHECK(!file_read_all(in_dir("ten"), 9, &out, &err));
    CHECK_INT(err.kind, ERR_LIMIT);
    CHECK(strstr(err.text, "larger than") != NULL && strstr(err.text, "than 0 ") == NULL);
    CHECK(!file_read_all(in_dir("ten"), 0, &out, &err));
    CHECK(!file_read_all(in_dir("none"), 9, &out, &err));
    CHECK_INT(err.kind, ERR_GONE);
    CHECK(!file_read_all(dir, 9, &out, &err)); /* a directory */
    CHECK_INT(open_descriptors(), before);
    put("none", "");
    CHECK(file_read_all(in_dir("none"), 9, &out, &err));
    CHECK_TEXT(buf_cstr(&out), "");
    buf_release(&out);
    end();
}

static void read_unsized(void)
{
    struct buf out;
    CHECK(file_read_all("/proc/self/maps", 1 << 20, &out, NULL)); /* its size is said to be 0 */
    CHECK(out.len > 100);
    buf_release(&out);
    int ends[2];
    char path[64];
    CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
    CHECK(write(ends[1], "through a pipe", 14) == 14);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
    close(ends[1]);
    CHECK(file_read_all(path, 100, &out, NULL));
    CHECK_STR(buf_slice(&out), "through a pipe");
    buf_release(&out);
    close(ends[0]);
}

struct looked {
    size_t bytes, pieces;
    bool overlaps, found;
};

static bool look(void *context, struct str piece)
{
    struct looked *l = context;
    l->overlaps &= l->pieces == 0 || piece.len > 32 * 1024;
    l->bytes += piece.len;
    l->pieces++;
    l->found = memmem(piece.ptr, piece.len, "the words", 9) != NULL;
    return l->found;
}

/* Words at every place around the edge of two pieces, and the pieces before them are not read. */
static void read_from_the_end(void)
{
    enum { BYTES = 100 * 1000, EDGE = 2 * 32 * 1024 };
    static char text[BYTES + 1];
    struct looked l = {.overlaps = true};
    begin();
    memset(text, 'x', BYTES);
    put("none", text);
    CHECK(file_look_back(in_dir("none"), look, &l));
    CHECK(!l.found && l.overlaps);
    CHECK_INT(l.pieces, 4);
    CHECK_INT(l.bytes, BYTES + 3 * FILE_PIECE_OVERLAP);
    for (size_t at = EDGE - 10; at <= EDGE + 1; at++) {
        memset(text, 'x', BYTES);
        memcpy(text + at, "the words", 9);
        put("words", text);
        l = (struct looked){0};
        CHECK(file_look_back(in_dir("words"), look, &l));
        CHECK(l.found);
        CHECK_INT(l.pieces, at < EDGE ? 3 : 2);
    }
    unsigned before = open_descriptors();
    put("empty", "");
    l = (struct looked){0};
    CHECK(file_look_back(in_dir("empty"), look, &l));
    CHECK(!file_look_back(in_dir("not there"), look, &l));
    CHECK(!file_look_back(dir, look, &l));
    CHECK_INT(l.pieces, 0);
    CHECK_INT(open_descriptors(), before);
    end();
}

/* ---- links, directories, our own file ---- */

static void links(void)
{
    begin();
    struct err err = {0};
    CHECK(link_text("last") == NULL);
    CHECK(file_link(dir, "last", "one", &err));
    CHECK_TEXT(link_text("last"), "one");
    char name[64];
    snprintf(name, sizeof name, "last.%ld.tmp", (long)getpid());
    put(name, "left by a killed run");
    CHECK(file_link(dir, "last", "two", &err));
    CHECK_TEXT(link_text("last"), "two");
    CHECK_INT(entries(), 1);
    CHECK(file_exists(in_dir("last"))); /* though it points nowhere */
    CHECK(!file_link(in_dir("no"), "last", "one", &err));
    CHECK_INT(mkdir(in_dir("taken"), 0755), 0);
    CHECK(!file_link(dir, "taken", "one", &err));
    CHECK_INT(entries(), 2); /* no temporary link stays */
    end();
}

/* The system calls from now on have no files without a name, as some file systems have not. */
static bool refuse_nameless(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, O_TMPFILE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, O_TMPFILE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static bool has_nameless(const char *path)
{
    int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

/* How many names came and went in a folder while it was prepared. */
static unsigned names_made(const char *path)
{
    char events[4096];
    unsigned count = 0;
    struct err err = {0};
    int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    CHECK(watch >= 0 && inotify_add_watch(watch, path, IN_CREATE | IN_DELETE | IN_MOVE) >= 0);
    CHECK(file_prepare_dir(path, &err));
    ssize_t len = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < len; count++) {
        const struct inotify_event *event = (const void *)(events + at);
        at += (ssize_t)(sizeof *event + event->len);
    }
    close(watch);
    return count;
}

static bool prepare_by_name(void *context)
{
    char probe[64];
    snprintf(probe, sizeof probe, "a/.pillion.%ld.tmp", (long)getpid());
    if (!refuse_nameless() || has_nameless(context)) {
        return false;
    }
    CHECK_INT(names_made(context), 2);
    CHECK_INT(mkfifo(in_dir(probe), 0666), 0); /* nobody will read it */
    CHECK_INT(names_made(context), 3);
    CHECK(!file_exists(in_dir(probe)));
    return true;
}

static void prepared_without_a_trace(void)
{
    char path[256];
    begin();
    snprintf(path, sizeof path, "%s", in_dir("a"));
    CHECK_INT(mkdir(path, 0755), 0);
    CHECK_INT(names_made(path), has_nameless(path) ? 0 : 2);
    bool ran = in_child(prepare_by_name, path);
    CHECK_INT(rmdir(path), 0); /* and empty: no probe stays */
    end();
    if (!ran) {
        SKIP("no filter of system calls here");
    }
}

static bool prepare_what_is_gone(void *context)
{
    struct err err = {0};
    bool small = mount_small(context, "size=64k");
    CHECK_INT(chdir(context), 0);
    CHECK(mkdir("gone", 0755) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
    CHECK(!file_prepare_dir(".", &err));
    CHECK_INT(err.number, ENOENT);
    return small;
}

static void removed_folder(void)
{
    begin();
    bool ran = in_child(prepare_what_is_gone, dir);
    end();
    if (!ran) {
        SKIP("no right to mount here");
    }
}

static void prepared(void)
{
    begin();
    struct err err = {0};
    CHECK(file_prepare_dir(in_dir("a"), &err));
    CHECK(file_prepare_dir(in_dir("a"), &err)); /* is there */
    CHECK_INT(rmdir(in_dir("a")), 0);           /* and empty: no probe stays */
    CHECK(file_prepare_dir("/", &err) == (access("/", W_OK) == 0));
    put("file", "");
    CHECK(!file_prepare_dir(in_dir("file"), &err));
    CHECK(!file_prepare_dir(in_dir("file/below"), &err));
    CHECK(!file_prepare_dir("/proc/nowhere", &err));
    CHECK(str_starts(str_of(err.text), STR("cannot write /proc/nowhere (")));
    CHECK(file_remove(in_dir("file"), &err));
    CHECK(file_remove(in_dir("file"), &err)); /* is no error */
    end();
}

/* Nobody may make a folder in /sys, which is mounted read-only in containers: the reason is the one that a mkdir of
 * our own is given, not that the folder is not there. */
static void reason_of_a_refusal(void)
{
    static const char folder[] = "/sys/pillion-test/below";
    struct err err = {0};
    CHECK(mkdir("/sys/pillion-test", 0755) < 0);
    int number = errno;
    if (number == ENOENT) {
        SKIP("no /sys here");
    }
    CHECK(!file_prepare_dir(folder, &err));
    CHECK_INT(err.number, number);
}

static bool stand_in(void *context)
{
    char here[256];
    CHECK_INT(chdir(context), 0);
    file_working_dir(here, sizeof here);
    CHECK_TEXT(here, context);
    CHECK_INT(chmod("..", 0), 0);
    CHECK(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0);
    file_working_dir(here, sizeof here);
    CHECK_TEXT(here, ".");
    return true;
}

static void below_what_is_closed(void)
{
    begin();
    char path[256];
    CHECK_INT(mkdir(in_dir("a"), 0755), 0);
    snprintf(path, sizeof path, "%s/a/b", dir);
    CHECK_INT(mkdir(path, 0755), 0);
    CHECK(in_child(stand_in, path));
    CHECK_INT(chmod(in_dir("a"), 0755), 0);
    CHECK_INT(rmdir(path), 0);
    end();
}

static void copied_self(void)
{
    begin();
    struct buf path, ours, theirs;
    struct err err = {0};
    buf_init(&path, 512);
    CHECK(file_copy_self(in_dir("bin"), &path, &err));
    CHECK_TEXT(buf_cstr(&path), in_dir("bin/pillion"));
    struct stat st;
    CHECK(stat(buf_cstr(&path), &st) == 0 && (st.st_mode & 07777) == 0755);
    CHECK(file_read_all("/proc/self/exe", 1 << 28, &ours, &err));
    CHECK(file_read_all(buf_cstr(&path), 1 << 28, &theirs, &err));
    CHECK(str_eq(buf_slice(&ours), buf_slice(&theirs)));
    buf_release(&ours);
    buf_release(&theirs);
    buf_release(&path);
    CHECK_INT(unlink(in_dir("bin/pillion")), 0);
    end();
}

TESTS({"a reader sees the old file or the whole new one", old_or_new},
      {"an abandoned file leaves nothing behind", abandoned},
      {"pieces of every size arrive in order", every_size},
      {"an empty file is a file", empty_file},
      {"a killed run's temporary file does not block the next", leftover},
      {"a link planted under the temporary name is not followed", planted_link},
      {"a missing directory is named with the remedy", missing_directory},
      {"a failed rename leaves no temporary file and no descriptor", onto_a_directory},
      {"a write or a last flush that fails is an error and leaves no file", no_room},
      {"a full disk is said to be full", full_disk},
      {"standard output is written directly, and a closed one is an error", standard_output},
      {"a pipe is written into, and stays a pipe", into_a_pipe},
      {"a device is written into, and what it refuses is an error", into_a_device},
      {"any other name that a user gives is a file, whole or as it was", named_file},
      {"a file of exactly the limit is read, a larger one refused", read_limits},
      {"files without a size and pipes are read to their end", read_unsized},
      {"a file is shown from its end, no further than wanted, and words at an edge are whole", read_from_the_end},
      {"a link is replaced in one step and leaves nothing behind", links},
      {"a directory is prepared by trying", prepared},
      {"no name is tried in it where a file needs none, and none stays elsewhere", prepared_without_a_trace},
      {"a directory that was removed is refused, also where it takes a file without a name", removed_folder},
      {"a directory that cannot be made is refused with the kernel's reason", reason_of_a_refusal},
      {"the own folder has no absolute name where one above it is closed", below_what_is_closed},
      {"this program copies itself, executable", copied_self})
