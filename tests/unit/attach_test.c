/*
 * Asking a JVM for a recording of its own, without a JVM: one that follows a script, with the files, the socket and the
 * signal of struct process_port in memory. What may not be sent is counted; answers are those of real JVMs of 8 to 25.
 */
#include "runtime/java/attach.h"
#include "runtime/java/private.h"
#include "test.h"

#include <errno.h>
#include <signal.h>

#define SOCKET "/tmp/.java_pid7"
#define REPOSITORY "/tmp/2026_11_28_02_42_06_7"
#define SETTINGS_FILE "/tmp/.pillion-7.jfc"

enum { FILES = 80, PATH_BYTES = 96, FILE_BYTES = 1024, REQUEST_BYTES = 2048, NEVER = 0, AT_ONCE = 1 };

struct file {
    char path[PATH_BYTES];
    struct buf bytes;
    unsigned opened;
    bool has_name;
};

/* What it says to a command that begins so; the whole answer. */
struct saying {
    const char *to;
    struct str answer;
};

struct jvm {
    struct process_port port;
    struct str cmdline, environ, sockets, maps; /* of /proc; null: it cannot be read */
    const char *version;
    struct saying sayings[4];
    bool listens, has_handler, cwd_is_writable, tmp_is_writable;
    unsigned listens_after;  /* so many looks after the signal; NEVER */
    const char *chunk_by_dump; /* a file that there is after JFR.dump */
    bool tidies;             /* its files go when it stops recording */
    unsigned signals, looks, made;
    bool is_untold;          /* whether it has a handler for the signal */
    bool is_triggered;       /* there was a trigger when the signal came */
    bool is_silent;          /* it takes commands and says nothing */
    struct file files[FILES];
    struct buf asked;        /* command lines */
    struct buf settings;     /* what the settings' file said when a recording was started */
    struct buf request;      /* the newest, as it was written */
    uint64_t timeout_ms;     /* of it */
};

/* ---- the port ---- */

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    struct jvm *j = context;
    struct str text = strcmp(name, "cmdline") == 0    ? j->cmdline
                      : strcmp(name, "environ") == 0  ? j->environ
                      : strcmp(name, "net/unix") == 0 ? j->sockets
                      : strcmp(name, "maps") == 0     ? j->maps
                                                      : STR("");
    if (text.ptr == NULL) {
        return err_errno(err, EACCES, "cannot read %s", name);
    }
    buf_clear(out);
    buf_str(out, text);
    return !out->failed;
}

static struct file *file_named(struct jvm *j, const char *path)
{
    for (size_t i = 0; i < FILES; i++) {
        if (j->files[i].has_name && strcmp(j->files[i].path, path) == 0) {
            return &j->files[i];
        }
    }
    return NULL;
}

static struct file *put_file(struct jvm *j, const char *path, struct str bytes)
{
    struct file *f = file_named(j, path);
    for (size_t i = 0; f == NULL && i < FILES; i++) {
        f = j->files[i].path[0] == '\0' ? &j->files[i] : NULL;
    }
    CHECK(f != NULL);
    if (f != NULL) {
        snprintf(f->path, sizeof f->path, "%s", path);
        f->has_name = true;
        buf_release(&f->bytes);
        buf_init(&f->bytes, FILE_BYTES);
        buf_str(&f->bytes, bytes);
    }
    return f;
}

static void put_chunk(struct jvm *j, const char *name, const char *bytes)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", REPOSITORY, name);
    put_file(j, path, str_of(bytes));
}

static bool list(void *context, const char *folder, void (*each)(void *to, const char *name), void *to)
{
    struct jvm *j = context;
    size_t len = strlen(folder), count = 0;
    for (size_t i = 0; i < FILES; i++) {
        if (j->files[i].has_name && strncmp(j->files[i].path, folder, len) == 0 && j->files[i].path[len] == '/') {
            each(to, j->files[i].path + len + 1);
            count++;
        }
    }
    return count > 0;
}

static bool open_file(void *context, const char *path, int *file)
{
    struct jvm *j = context;
    struct file *f = file_named(j, path);
    if (f != NULL) {
        f->opened++;
        *file = (int)(f - j->files);
    }
    return f != NULL;
}

static bool read_file(void *context, int file, struct buf *out, struct err *err)
{
    struct jvm *j = context;
    (void)err;
    CHECK(file >= 0 && file < FILES && j->files[file].opened > 0);
    buf_clear(out);
    buf_str(out, buf_slice(&j->files[file].bytes));
    return !out->failed;
}

static void close_file(void *context, int file)
{
    struct jvm *j = context;
    CHECK(file >= 0 && file < FILES && j->files[file].opened > 0);
    j->files[file].opened--;
}

static bool make(void *context, const char *path, struct str bytes, struct err *err)
{
    struct jvm *j = context;
    bool writable = path[0] != '/' ? j->cwd_is_writable : j->tmp_is_writable;
    if (!writable || file_named(j, path) != NULL) {
        return err_errno(err, writable ? EEXIST : EROFS, "cannot make the file %s", path);
    }
    j->made++;
    return put_file(j, path, bytes) != NULL;
}

static void remove_file(void *context, const char *path)
{
    struct file *f = file_named(context, path);
    if (f != NULL) {
        f->has_name = false;
    }
}

static bool send_signal(void *context, int number, struct err *err)
{
    struct jvm *j = context;
    CHECK_INT(number, SIGQUIT);
    if (j->is_untold) {
        return err_set(err, ERR_DENIED, 0, "nothing tells whether it has a handler");
    }
    if (!j->has_handler) {
        return err_set(err, ERR_UNSUPPORTED, 0, "it has no handler for signal %d", number);
    }
    j->signals++;
    j->is_triggered = file_named(j, ".attach_pid7") != NULL || file_named(j, "/tmp/.attach_pid7") != NULL;
    j->listens = j->listens || j->listens_after == AT_ONCE;
    return true;
}

static bool listens(void *context, const char *path)
{
    struct jvm *j = context;
    CHECK_TEXT(path, SOCKET);
    return j->listens;
}

static void pause_for(void *context, uint64_t ms)
{
    struct jvm *j = context;
    CHECK(ms > 0 && ms <= 20);
    j->looks++;
    j->listens = j->listens || (j->signals > 0 && j->listens_after != NEVER && j->looks >= j->listens_after);
}

static struct str answer_to(struct jvm *j, const char *command)
{
    static char version[200];
    static const struct saying usual[] = {
        {"JFR.check", STR("0\nNo available recordings.\n\nUse jcmd 7 JFR.start to start a recording.\n")},
        {"JFR.configure stackdepth", STR("0\nStack depth: 256\n")},
        {"JFR.configure", STR("0\nCurrent configuration:\n\nRepository path: " REPOSITORY "\n\nStack depth: 64\n")},
        {"JFR.start", STR("0\nStarted recording 1. No limit specified, using maxsize=250MB as default.\n\n"
                          "Use jcmd 7 JFR.dump name=pillion filename=FILEPATH to copy recording data to file.\n")},
        {"JFR.dump", STR("0\nDumped recording \"pillion\", 302.2 kB written to:\n\n/dev/null\n")},
        {"JFR.stop", STR("0\nStopped recording \"pillion\".\n")},
    };
    for (size_t i = 0; i < sizeof j->sayings / sizeof j->sayings[0] && j->sayings[i].to != NULL; i++) {
        if (str_starts(str_of(command), str_of(j->sayings[i].to))) {
            return j->sayings[i].answer;
        }
    }
    if (strcmp(command, "VM.version") == 0) {
        snprintf(version, sizeof version, "0\nOpenJDK 64-Bit Server VM version %s\n", j->version);
        return str_of(version);
    }
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
        if (str_starts(str_of(command), str_of(usual[i].to))) {
            return usual[i].answer;
        }
    }
    return STR("-1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n");
}

static void drop_repository(struct jvm *j)
{
    for (size_t i = 0; i < FILES; i++) {
        j->files[i].has_name = j->files[i].has_name && strncmp(j->files[i].path, REPOSITORY, strlen(REPOSITORY)) != 0;
    }
}

/* What it does before it answers. */
static void obey(struct jvm *j, const char *command)
{
    const char *at = strstr(command, "settings=/");
    char path[PATH_BYTES];
    if (at != NULL && sscanf(at, "settings=%95s", path) == 1) {
        struct file *f = file_named(j, path);
        buf_clear(&j->settings);
        buf_str(&j->settings, f != NULL ? buf_slice(&f->bytes) : STR("there is no such file"));
    }
    if (strncmp(command, "JFR.dump", 8) == 0 && j->chunk_by_dump != NULL) {
        put_chunk(j, j->chunk_by_dump, "by the dump");
    }
    if (strncmp(command, "JFR.stop", 8) == 0 && j->tidies) {
        drop_repository(j);
    }
}

static bool ask(void *context, const char *path, struct str request, struct buf *answer, uint64_t timeout_ms,
                struct err *err)
{
    static const char head[] = "1\0jcmd";
    struct jvm *j = context;
    CHECK_TEXT(path, SOCKET);
    CHECK(request.len > sizeof head && memcmp(request.ptr, head, sizeof head) == 0);
    const char *command = request.ptr + sizeof head;
    CHECK_INT(request.len, sizeof head + strlen(command) + 3);
    buf_clear(&j->request);
    buf_str(&j->request, request);
    buf_text(&j->asked, command);
    buf_text(&j->asked, "\n");
    j->timeout_ms = timeout_ms;
    buf_clear(answer);
    if (!j->listens || j->is_silent) {
        return err_errno(err, j->listens ? ETIMEDOUT : ECONNREFUSED, "cannot connect to its socket %s", path);
    }
    obey(j, command);
    buf_str(answer, answer_to(j, command));
    return !answer->failed || err_set(err, ERR_LIMIT, 0, "its answer is longer than %zu bytes", answer->max);
}

/* One that anything may be asked of. */
static struct jvm *begin(void)
{
    static struct jvm j;
    j = (struct jvm){.cmdline = STR("java\0-Xmx1g\0-jar\0shop.jar\0"),
                     .environ = STR("PATH=/bin\0HOME=/\0"),
                     .sockets = STR("Num       RefCount Protocol Flags    Type St Inode Path\n"),
                     .version = "17.0.15+6-Debian-1deb12u1\nJDK 17.0.15",
                     .has_handler = true,
                     .cwd_is_writable = true,
                     .tmp_is_writable = true,
                     .listens_after = AT_ONCE};
    j.port = (struct process_port){
        .pid = 4711,
        .inner_pid = 7,
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
        .context = &j,
    };
    buf_init(&j.asked, 1 << 16);
    buf_init(&j.settings, FILE_BYTES);
    buf_init(&j.request, REQUEST_BYTES);
    return &j;
}

/* Whatever has happened: at most one signal, with a trigger there; nothing of ours is left, and nothing open. */
static void end(struct jvm *j)
{
    CHECK(j->signals <= 1 && (j->signals == 0 || j->is_triggered));
    CHECK(file_named(j, ".attach_pid7") == NULL && file_named(j, "/tmp/.attach_pid7") == NULL);
    CHECK(file_named(j, SETTINGS_FILE) == NULL);
    for (size_t i = 0; i < FILES; i++) {
        CHECK_INT(j->files[i].opened, 0);
        buf_release(&j->files[i].bytes);
    }
    buf_release(&j->asked);
    buf_release(&j->settings);
    buf_release(&j->request);
}

/* The reason, "" when it can be asked. */
static const char *attach(struct jvm *j)
{
    static struct err why;
    why = (struct err){0};
    bool good = attach_open(&j->port, &why);
    CHECK(good == (why.kind == ERR_NONE));
    return good ? "" : why.text;
}

/* ---- guards ---- */

static const char disabled[] =
    "the JVM was started with -XX:+DisableAttachMechanism; without it its functions are seen";
static const char reduced[] = "the JVM was started with -Xrs and does not listen at " SOCKET
                              "; without -Xrs its functions are seen";

struct guard {
    struct str cmdline, environ;
    const char *why; /* "": it is asked */
};

static void check_guards(const struct guard *guards, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct jvm *j = begin();
        j->cmdline = guards[i].cmdline;
        j->environ = guards[i].environ;
        int before = test_failures;
        CHECK(attach_may(&j->port, NULL) == (guards[i].why[0] == '\0')); /* without doing anything */
        CHECK_INT(j->signals + j->made + j->looks, 0);
        CHECK_TEXT(attach(j), guards[i].why);
        CHECK_INT(j->signals, guards[i].why[0] == '\0');
        CHECK_INT(j->made, guards[i].why[0] == '\0');
        if (test_failures > before) {
            printf("# by flags %zu\n", i);
        }
        end(j);
    }
}

#define ON "-XX:+DisableAttachMechanism"
#define OFF "-XX:-DisableAttachMechanism"

static void flags(void)
{
    static const struct guard guards[] = {
        {STR("java\0" ON "\0Shop\0"), STR(""), disabled},
        {STR("java\0-Xmx1g\0Shop\0" ON), STR("A=1\0"), disabled}, /* without an end */
        {STR("java\0Shop\0"), STR("A=1\0JAVA_TOOL_OPTIONS=" ON "\0B=2\0"), disabled},
        {STR("java\0Shop\0"), STR("JDK_JAVA_OPTIONS=-Xmx1g " ON " -Xms1g\0"), disabled},
        {STR("java\0Shop\0"), STR("_JAVA_OPTIONS=-Xmx1g " ON "\0"), disabled},
        {STR("java\0" ON "\0" OFF "\0Shop\0"), STR(""), ""},
        {STR("java\0" OFF "\0" ON "\0Shop\0"), STR(""), disabled},
        {STR("java\0" OFF "\0Shop\0"), STR("JAVA_TOOL_OPTIONS=" ON "\0"), ""},
        {STR("java\0Shop\0"), STR("JAVA_TOOL_OPTIONS=" ON " " OFF "\0"), ""},
        {STR("java\0" ON "\0Shop\0"), STR("JAVA_TOOL_OPTIONS=" OFF "\0"), disabled},
        {STR("java\0-Xrs\0Shop\0"), STR(""), reduced},
        {STR("java\0Shop\0"), STR("JAVA_TOOL_OPTIONS=-Xrs\0"), reduced},
        {STR("java\0-XX:+ReduceSignalUsage\0Shop\0"), STR(""), reduced},
        {STR("java\0-XX:+ReduceSignalUsage\0-XX:-ReduceSignalUsage\0Shop\0"), STR(""), ""},
        /* what looks alike */
        {STR("java\0-Xrsx\0" ON "x\0x" ON "\0Shop\0"), STR("MY_JAVA_TOOL_OPTIONS=" ON "\0JAVA_OPTIONS=-Xrs\0"), ""},
        {STR(""), STR(""), ""},
        {{NULL, 0}, {NULL, 0}, ""}, /* cannot be read: the system says whether it has a handler */
    };
    check_guards(guards, sizeof guards / sizeof guards[0]);
}

/* By trying, with 17. */
static void flags_as_the_jvm_orders_them(void)
{
    static const struct guard guards[] = {
        {STR("java\0" OFF "\0Shop\0"), STR("_JAVA_OPTIONS=" ON "\0"), disabled},
        {STR("java\0" ON "\0Shop\0"), STR("_JAVA_OPTIONS=" OFF "\0"), ""},
        {STR("java\0Shop\0"), STR("_JAVA_OPTIONS=" ON "\0JAVA_TOOL_OPTIONS=" OFF "\0"), disabled},
    };
    check_guards(guards, sizeof guards / sizeof guards[0]);
}

static void flags_between_blanks_and_quotes(void)
{
    static const struct guard guards[] = {
        {STR("java\0Shop\0"), STR("JAVA_TOOL_OPTIONS=-Dx=y\t" ON "\0"), disabled},
        {STR("java\0Shop\0"), STR("JAVA_TOOL_OPTIONS=-Dx=y\n" ON "\n\0"), disabled},
        {STR("java\0Shop\0"), STR("JAVA_TOOL_OPTIONS=\"" ON "\"\0"), disabled},
        {STR("java\0Shop\0"), STR("_JAVA_OPTIONS='" ON "' -Dx=y\0"), disabled},
    };
    check_guards(guards, sizeof guards / sizeof guards[0]);
}

/* With -Xrs it listens from its start. */
static void socket_is_there(void)
{
    static const struct guard guards[] = {
        {STR("java\0Shop\0"), STR(""), ""},
        {STR("java\0-Xrs\0Shop\0"), STR(""), ""},
        {STR("java\0-XX:+ReduceSignalUsage\0Shop\0"), STR(""), ""},
        {STR("java\0" ON "\0Shop\0"), STR(""), disabled},
    };
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct jvm *j = begin();
        j->listens = true;
        j->sockets = STR("0000: 00000002 00000000 00010000 0001 01 4711 " SOCKET "\n"); /* and its file is there */
        j->cmdline = guards[i].cmdline;
        CHECK_TEXT(attach(j), guards[i].why);
        CHECK_INT(j->signals + j->made + j->looks, 0);
        end(j);
    }
}

static const char removed[] = "the JVM listens at " SOCKET ", but that file was removed; keep cleaners of /tmp from "
                              "it, and start the JVM again";

#define SOCKETS "Num       RefCount Protocol Flags    Type St Inode Path\n" \
                "0000000011111111: 00000003 00000000 00000000 0001 03 17001 /run/dbus/socket\n"

static void socket_was_removed(void)
{
    static const struct {
        struct str sockets;
        const char *why;
    } lists[] = {
        {STR(SOCKETS "000000001: 00000002 00000000 00010000 0001 01 18003 " SOCKET "\n"), removed},
        {STR(SOCKETS "000000001: 00000002 00000000 00010000 0001 01 18003 " SOCKET), removed},
        {STR(SOCKETS "000000001: 00000002 00000000 00010000 0001 01 18003 /tmp/.java_pid71\n"), ""},
        {STR(SOCKETS), ""},
        {{NULL, 0}, ""},
    };
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct jvm *j = begin();
        j->sockets = lists[i].sockets;
        CHECK_TEXT(attach(j), lists[i].why);
        CHECK_INT(j->signals, lists[i].why[0] == '\0');
        end(j);
    }
}

/* HotSpot binds it as .java_pidPID.tmp and renames the file; the system lists the name that was bound. */
static void socket_was_removed_by_its_first_name(void)
{
    struct jvm *j = begin();
    j->sockets = STR(SOCKETS "000000001: 00000002 00000000 00010000 0001 01 18003 " SOCKET ".tmp\n");
    CHECK_TEXT(attach(j), removed);
    CHECK_INT(j->signals, 0);
    end(j);
}

#define MAPPED(path) "7f0000000000-7f0000100000 r--p 00000000 08:01 4711   " path "\n"

/* Newer ones make another one, and their files say what they are. */
static void socket_is_made_again(void)
{
    static const char of_11[] = MAPPED("/opt/jdk/bin/java") MAPPED("/opt/jdk/lib/server/libjvm.so");
    static const char of_8[] = MAPPED("/lib/ld.so") MAPPED("/opt/jdk/jre/lib/amd64/server/libjvm.so");
    static const char of_another[] = MAPPED("/opt/jdk/bin/java");
    static const struct {
        const char *maps, *release, *why;
    } cases[] = {
        {of_11, "IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\nJAVA_VERSION_DATE=\"2025-04-15\"\n", ""},
        {of_11, "JAVA_VERSION=\"21\"\n", ""},
        {of_11, "JAVA_VERSION=\"11.0.24\"\n", ""},
        {of_11, "JAVA_VERSION=\"11.0.9\"\n", removed},
        {of_11, "JAVA_VERSION=\"11\"\n", removed},
        {of_11, "JAVA_VERSION=\"12.0.2\"\n", removed},
        {of_11, "JAVA_VERSION=\"\"\n", removed},
        {of_11, "IMPLEMENTOR=\"Debian\"\n", removed},
        {of_11, "", removed},
        {of_11, NULL, removed}, /* there is no such file */
        {of_8, "JAVA_VERSION=\"1.8.0_452\"\n", ""},
        {of_8, "JAVA_VERSION=\"1.8.0_202\"\n", removed},
        {of_8, "JAVA_VERSION=\"1.8.0\"\n", removed},
        {of_another, "JAVA_VERSION=\"21\"\n", removed},
        {"", "JAVA_VERSION=\"21\"\n", removed},
        {NULL, "JAVA_VERSION=\"21\"\n", removed},
        {MAPPED("/libjvm.so"), "JAVA_VERSION=\"21\"\n", removed},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct jvm *j = begin();
        int before = test_failures;
        j->sockets = STR(SOCKETS "000000001: 00000002 00000000 00010000 0001 01 18003 " SOCKET ".tmp\n");
        j->maps = str_of(cases[i].maps);
        if (cases[i].release != NULL) {
            put_file(j, "/opt/jdk/release", str_of(cases[i].release));
        }
        CHECK_TEXT(attach(j), cases[i].why);
        CHECK_INT(j->signals, cases[i].why[0] == '\0');
        if (test_failures > before) {
            printf("# by release %zu\n", i);
        }
        end(j);
    }
}

static void no_handler(void)
{
    struct jvm *j = begin();
    j->is_untold = true;
    CHECK_TEXT(attach(j), "the JVM cannot be asked for its stacks: nothing tells whether it has a handler; start it "
                          "with -XX:+StartAttachListener");
    CHECK_INT(j->signals, 0);
    end(j);
    j = begin();
    j->has_handler = false;
    CHECK_TEXT(attach(j), "the JVM cannot be asked for its stacks: it has no handler for signal 3");
    CHECK_INT(j->signals, 0);
    CHECK_INT(j->made, 1); /* and gone again, by end() */
    CHECK_INT(j->looks, 0);
    end(j);
}

static void triggers(void)
{
    struct jvm *j = begin();
    CHECK_TEXT(attach(j), "");
    CHECK(j->files[0].path[0] != '/' && !j->files[0].has_name);
    CHECK_TEXT(j->files[0].path, ".attach_pid7");
    CHECK_INT(j->files[0].bytes.len, 0);
    end(j);
    j = begin();
    j->cwd_is_writable = false;
    CHECK_TEXT(attach(j), "");
    CHECK_TEXT(j->files[0].path, "/tmp/.attach_pid7");
    CHECK_INT(j->signals, 1);
    end(j);
    j = begin();
    j->cwd_is_writable = j->tmp_is_writable = false;
    const char *why = attach(j);
    CHECK(strncmp(why, "the JVM cannot be asked for its stacks: cannot make the file /tmp/.attach_pid7: ", 80) == 0);
    CHECK(strstr(why, "(EROFS); run as its user, or make its /tmp writable") != NULL);
    CHECK_INT(j->signals, 0);
    end(j);
}

static void socket_comes_late(void)
{
    struct jvm *j = begin();
    j->listens_after = 200; /* a second */
    CHECK_TEXT(attach(j), "");
    CHECK_INT(j->looks, 200);
    CHECK_INT(j->signals, 1);
    CHECK_TEXT(attach(j), ""); /* then it is there */
    CHECK_INT(j->signals, 1);
    end(j);
    j = begin();
    j->listens_after = NEVER;
    CHECK_TEXT(attach(j), "the JVM made no socket " SOCKET "; is its /tmp writable?");
    CHECK_INT(j->signals, 1);
    CHECK(j->looks >= 500 && j->looks <= 4000); /* some seconds */
    end(j);
}

/* ---- commands ---- */

/* What is left of an answer, or why it is none. */
static const char *said(struct jvm *j, struct str answer)
{
    static struct buf out;
    static struct err why;
    static char text[ERR_TEXT_MAX];
    j->sayings[0] = (struct saying){"GC.run", answer};
    j->listens = true;
    buf_release(&out);
    buf_init(&out, ATTACH_ANSWER_MAX);
    why = (struct err){0};
    bool good = attach_ask(&j->port, "GC.run", &out, 1234, &why);
    CHECK(good == (why.kind == ERR_NONE));
    snprintf(text, sizeof text, "%s", good ? buf_cstr(&out) : why.text);
    buf_release(&out);
    return text;
}

static void answers(void)
{
    struct jvm *j = begin();
    CHECK_TEXT(said(j, STR("0\nCommand executed successfully\n")), "Command executed successfully\n");
    CHECK_INT(j->timeout_ms, 1234);
    CHECK_TEXT(said(j, STR("0\n")), "");
    CHECK_TEXT(said(j, STR("0")), "");
    CHECK_TEXT(said(j, STR("0\r\none\ntwo")), "one\ntwo");
    CHECK_TEXT(said(j, STR("")), "the JVM refuses: ");
    CHECK_TEXT(said(j, STR("\n")), "the JVM refuses: ");
    CHECK_TEXT(said(j, STR("00\n")), "the JVM refuses: ");
    CHECK_TEXT(said(j, STR("101\n")), "the JVM refuses: ");
    CHECK_TEXT(said(j, STR("-1\nOperation x not recognized!\n")), "the JVM refuses: Operation x not recognized!");
    CHECK_TEXT(said(j, STR("-1\njava.lang.Error: no\n\tat Shop.main()\n")), "the JVM refuses: java.lang.Error: no");
    CHECK_TEXT(said(j, STR("no number, no line")), "the JVM refuses: ");
    end(j);
}

static void huge_answers(void)
{
    struct jvm *j = begin();
    struct buf huge, out;
    buf_init(&huge, 4 << 20);
    buf_text(&huge, "-1\n");
    for (size_t i = 0; i < 1000; i++) {
        buf_text(&huge, "a thousand lines");
    }
    CHECK_INT(strlen(said(j, buf_slice(&huge))), strlen("the JVM refuses: ") + 200);
    huge.ptr[0] = '0', huge.ptr[1] = '\n';
    j->sayings[0].answer = buf_slice(&huge);
    buf_init(&out, ATTACH_ANSWER_MAX);
    CHECK(attach_ask(&j->port, "GC.run", &out, 1, NULL));
    CHECK_INT(out.len, huge.len - 2);
    CHECK(out.ptr[0] == '\n' && out.ptr[out.len - 1] == 's');
    buf_release(&out);
    while (huge.len <= ATTACH_ANSWER_MAX) {
        buf_text(&huge, "more than there is room for");
    }
    CHECK_TEXT(said(j, buf_slice(&huge)), "its answer is longer than 1048576 bytes");
    buf_release(&huge);
    end(j);
}

static void requests(void)
{
    static const char expected[] = "1\0jcmd\0VM.version\0\0";
    struct jvm *j = begin();
    struct buf out;
    struct err why = {0};
    char line[1400];
    j->listens = true;
    buf_init(&out, ATTACH_ANSWER_MAX);
    CHECK(attach_ask(&j->port, "VM.version", &out, 1, NULL));
    CHECK_INT(j->request.len, sizeof expected); /* with its own end */
    CHECK(memcmp(j->request.ptr, expected, sizeof expected) == 0);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\0';
    CHECK(!attach_ask(&j->port, line, &out, 1, &why));
    CHECK_TEXT(why.text, "a command for the JVM is too long");
    CHECK_TEXT(buf_cstr(&j->asked), "VM.version\n");
    buf_release(&out);
    end(j);
}

/* ---- beginning a recording ---- */

/* The recording, which is stopped again, or why there is none. */
static const char *record(struct jvm *j, unsigned wanted, uint64_t frequency_hz, void **recording)
{
    static struct err why;
    const struct runtime_target target = {.port = &j->port, .frequency_hz = frequency_hz, .wanted = wanted};
    why = (struct err){0};
    *recording = java_record(&target, 0, &why);
    CHECK((*recording != NULL) == (why.kind == ERR_NONE));
    return why.text;
}

static void no_file(void *context, const char *type, struct buf *bytes)
{
    (void)context, (void)type, (void)bytes;
    CHECK(false);
}

static const struct runtime_sink nothing = {no_file, NULL};

/* A JVM of a version is asked for CPU time. What it was asked. */
static void check_commands(const char *version, uint64_t frequency_hz, const char *commands, const char *settings)
{
    struct jvm *j = begin();
    void *recording;
    j->version = version;
    put_chunk(j, "2026_11_28_02_42_06.jfr", "");
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, frequency_hz, &recording), "");
    CHECK_TEXT(buf_cstr(&j->asked), commands);
    CHECK_TEXT(buf_cstr(&j->settings), settings);
    CHECK_INT(j->signals, 1);
    if (recording != NULL) {
        java_stop_recording(recording, &nothing);
    }
    end(j);
}

#define BEFORE "VM.version\nJFR.check\nJFR.configure stackdepth=256\n"
#define TOLD_ALWAYS "+jdk.JVMInformation#enabled=true +jdk.JVMInformation#period=beginChunk "
#define SAMPLED "<event name=\"jdk.JVMInformation\"><setting name=\"enabled\">true</setting>" \
                "<setting name=\"period\">beginChunk</setting></event>\n"                      \
                "<event name=\"jdk.ExecutionSample\"><setting name=\"enabled\">true</setting>" \
                "<setting name=\"period\">20 ms</setting></event>\n"                           \
                "<event name=\"jdk.NativeMethodSample\"><setting name=\"enabled\">true</setting>" \
                "<setting name=\"period\">20 ms</setting></event>\n"
#define CONFIGURED(events) "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n" events \
                           "</configuration>\n"

static void by_version(void)
{
    static const char by_words[] =
        BEFORE "JFR.start name=pillion settings=none maxage=5m " TOLD_ALWAYS
               "+jdk.ExecutionSample#enabled=true +jdk.ExecutionSample#period=20ms "
               "+jdk.NativeMethodSample#enabled=true +jdk.NativeMethodSample#period=20ms\nJFR.configure\n";
    static const char by_file[] =
        BEFORE "JFR.start name=pillion settings=" SETTINGS_FILE " maxage=5m\nJFR.configure\n";
    static const char by_cpu_time[] =
        BEFORE "JFR.start name=pillion settings=none maxage=5m " TOLD_ALWAYS
               "+jdk.CPUTimeSample#enabled=true +jdk.CPUTimeSample#throttle=20ms\nJFR.configure\n";
    check_commands("25.432-b06\nJDK 8.0_432", 99, by_file, CONFIGURED(SAMPLED)); /* the first line does not count */
    check_commands("11.0.24+8-post-Debian-2deb11u1\nJDK 11.0.24", 99, by_file, CONFIGURED(SAMPLED));
    check_commands("17.0.15+6-Debian-1deb12u1\nJDK 17.0.15", 99, by_words, "");
    check_commands("21.0.12+7-LTS\nJDK 21.0.12", 99, by_words, "");
    check_commands("25.0.3+9-LTS\nJDK 25.0.3", 99, by_cpu_time, "");
    check_commands("25-ea+1\nJDK 25", 99, by_cpu_time, "");
    check_commands("26.0.1+2\nJDK 26.0.1", 99, by_cpu_time, "");
}

static void period(void)
{
    static const struct {
        uint64_t frequency_hz;
        const char *words;
    } rates[] = {{10, "period=100ms "}, {1, "period=1000ms "}, {49, "period=20ms "}, {1000, "period=20ms "},
                 {UINT64_MAX, "period=20ms "}, {0, "period=1000ms "}};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct jvm *j = begin();
        void *recording;
        put_chunk(j, "2026_11_28_02_42_06.jfr", "");
        CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, rates[i].frequency_hz, &recording), "");
        CHECK(strstr(buf_cstr(&j->asked), rates[i].words) != NULL);
        java_stop_recording(recording, &nothing);
        end(j);
    }
}

static void all_that_can_be_wanted(void)
{
    static const char *const versions[] = {"25.432-b06\nJDK 8.0_432", "11.0.24+8\nJDK 11.0.24",
                                           "17.0.15+6\nJDK 17.0.15", "25.0.3+9\nJDK 25.0.3"};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        struct jvm *j = begin();
        void *recording;
        j->version = versions[i];
        put_chunk(j, "2026_11_28_02_42_06.jfr", "");
        CHECK_TEXT(record(j, RUNTIME_WANTS_CPU | RUNTIME_WANTS_ALLOC | RUNTIME_WANTS_LOCK, 99, &recording), "");
        bool by_file = j->settings.len > 0;
        const char *text = by_file ? buf_cstr(&j->settings) : buf_cstr(&j->asked);
        CHECK(strstr(text, "Sample") != NULL);
        CHECK(strstr(text, i < 2 ? "jdk.ObjectAllocationOutsideTLAB" : "+jdk.ObjectAllocationSample#throttle="));
        CHECK(strstr(text, by_file ? "<setting name=\"threshold\">1 ms<" : "+jdk.JavaMonitorEnter#threshold=1ms"));
        CHECK(!by_file || strstr(text, "</configuration>\n") != NULL);
        if (recording != NULL) {
            java_stop_recording(recording, &nothing);
        }
        end(j);
    }
}

/* What is asked when the recorder says so, and what is said of it. */
static void check_check(struct str answer, const char *why, const char *commands)
{
    struct jvm *j = begin();
    void *recording;
    j->sayings[0] = (struct saying){"JFR.check", answer};
    put_chunk(j, "2026_11_28_02_42_06.jfr", "");
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), why);
    struct str asked = buf_slice(&j->asked), head = str_of(commands);
    CHECK(str_starts(asked, head) && (why[0] == '\0' || asked.len == head.len));
    if (recording != NULL) {
        java_stop_recording(recording, &nothing);
    }
    end(j);
}

static void what_was_there(void)
{
    static const char ended[] = "VM.version\nJFR.check\nJFR.stop name=pillion\nJFR.start ";
    check_check(STR("0\nRecording 1: name=pillion maxage=5m (running)\n"), "", ended);
    check_check(STR("0\nRecording: recording=1 name=\"pillion\" (running)\n"), "", ended);
    check_check(STR("0\nRecording 1: name=theirs (running)\n\nRecording 2: name=pillion maxage=5m (running)\n"), "",
                ended);
    check_check(STR("0\nRecording 1: name=theirs (running)\n"), "", "VM.version\nJFR.check\nJFR.start ");
    check_check(STR("0\nModule jdk.jfr not found.\n"), "the JVM's recorder cannot be used: Module jdk.jfr not found.",
                "VM.version\nJFR.check\n");
    check_check(STR("0\nFlight Recorder can not be enabled.\n"),
                "the JVM's recorder cannot be used: Flight Recorder can not be enabled.", "VM.version\nJFR.check\n");
    check_check(STR("0\n"), "the JVM's recorder cannot be used: ", "VM.version\nJFR.check\n");
    check_check(STR("-1\njava.lang.SecurityException: no\n\tat Shop.main(Shop.java:1)\n"),
                "the JVM refuses: java.lang.SecurityException: no", "VM.version\nJFR.check\n");
}

#define UNKNOWN STR("-1\njava.lang.IllegalArgumentException: Unknown diagnostic command\n")

/* Its commands are not all there while it starts: that is no last word. */
static void starts(void)
{
    static const struct {
        struct str answer, uptime;
        const char *asked;
        int number;
    } said[] = {
        {UNKNOWN, UNKNOWN, "VM.version\nJFR.check\nVM.uptime\n", EAGAIN},
        {UNKNOWN, STR("0\n9.999 s\n"), "VM.version\nJFR.check\nVM.uptime\n", EAGAIN},
        {UNKNOWN, STR("0\n10.001 s\n"), "VM.version\nJFR.check\nVM.uptime\n", 0},
        {STR("0\nModule jdk.jfr not found.\n"), STR("0\n"), "VM.version\nJFR.check\n", 0},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct jvm *j = begin();
        const struct runtime_target target = {.port = &j->port, .frequency_hz = 99, .wanted = RUNTIME_WANTS_CPU};
        struct err why = {0};
        j->sayings[0] = (struct saying){"JFR.check", said[i].answer};
        j->sayings[1] = (struct saying){"VM.uptime", said[i].uptime};
        CHECK(java_record(&target, 0, &why) == NULL);
        CHECK_INT(why.kind, ERR_UNSUPPORTED);
        CHECK_INT(why.number, said[i].number);
        CHECK_TEXT(buf_cstr(&j->asked), said[i].asked);
        end(j);
    }
}

/* Somebody else's recording, whose name begins as ours does. */
static void another_name(void)
{
    struct jvm *j = begin();
    void *recording;
    j->sayings[0] = (struct saying){"JFR.check", STR("0\nRecording 1: name=pillion2 (running)\n")};
    j->sayings[1] = (struct saying){"JFR.stop", STR("0\nCould not find pillion.\n\nUse JFR.check to list them.\n")};
    put_chunk(j, "2026_11_28_02_42_06.jfr", "");
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), "");
    if (recording != NULL) {
        java_stop_recording(recording, &nothing);
    }
    end(j);
}

static void versions(void)
{
    static const struct {
        const char *version, *why;
    } refused[] = {
        {"1.7.0_80\nJDK 7.0_80", "a JVM of version 7 has no recorder"},
        {"1\nJDK ", "a JVM of version 0 has no recorder"},
        {"1\nJDK -17", "a JVM of version 0 has no recorder"},
        {"21", "the JVM's recorder cannot be used: OpenJDK 64-Bit Server VM version 21"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct jvm *j = begin();
        void *recording;
        j->version = refused[i].version;
        CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), refused[i].why);
        CHECK_TEXT(buf_cstr(&j->asked), "VM.version\n");
        end(j);
    }
    struct jvm *j = begin();
    void *recording;
    j->version = "1\nJDK 99999999999999999999999999";
    put_chunk(j, "2026_11_28_02_42_06.jfr", "");
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), "");
    java_stop_recording(recording, &nothing);
    end(j);
}

static void settings_file(void)
{
    struct jvm *j = begin();
    void *recording;
    j->version = "11.0.24+8\nJDK 11.0.24";
    j->tmp_is_writable = false;
    const char *why = record(j, RUNTIME_WANTS_CPU, 99, &recording);
    CHECK(strncmp(why, "cannot make the file " SETTINGS_FILE, strlen("cannot make the file " SETTINGS_FILE)) == 0);
    CHECK_TEXT(buf_cstr(&j->asked), BEFORE "JFR.stop name=pillion\n");
    end(j);
    j = begin(); /* refused: it goes, too */
    j->version = "11.0.24+8\nJDK 11.0.24";
    j->sayings[0] = (struct saying){"JFR.start", STR("0\nCould not parse setting " SETTINGS_FILE "\nand more\n")};
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording),
               "the JVM's recorder cannot be used: Could not parse setting " SETTINGS_FILE);
    CHECK_INT(j->made, 2); /* the trigger, and this */
    end(j);
    j = begin(); /* a killed profiler's, with other settings */
    j->version = "11.0.24+8\nJDK 11.0.24";
    put_file(j, SETTINGS_FILE, STR("of long ago"));
    put_chunk(j, "2026_11_28_02_42_06.jfr", "");
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), "");
    CHECK_TEXT(buf_cstr(&j->settings), CONFIGURED(SAMPLED));
    java_stop_recording(recording, &nothing);
    end(j);
}

static void no_repository(void)
{
    static const struct {
        struct str answer;
        const char *why;
    } said[] = {
        {STR("0\nNothing was configured\n"), "the JVM's recorder cannot be used: Nothing was configured"},
        {STR("0\nRepository path: \n"), "the JVM's recorder writes to , which is no whole path"},
        {STR("0\nRepository path: files/1\n"), "the JVM's recorder writes to files/1, which is no whole path"},
    };
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        struct jvm *j = begin();
        void *recording;
        j->sayings[0] = (struct saying){"JFR.configure stackdepth", STR("0\nStack depth: 256\n")};
        j->sayings[1] = (struct saying){"JFR.configure", said[i].answer};
        CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), said[i].why);
        struct str asked = buf_slice(&j->asked);
        CHECK(str_ends(asked, STR("\nJFR.configure\nJFR.stop name=pillion\n"))); /* it does not go on without us */
        end(j);
    }
    struct jvm *j = begin();
    void *recording;
    char path[700];
    int len = snprintf(path, sizeof path, "0\nRepository path: /%0600d\n", 0);
    j->sayings[0] = (struct saying){"JFR.configure stackdepth", STR("0\nStack depth: 256\n")};
    j->sayings[1] = (struct saying){"JFR.configure", {path, (size_t)len}};
    CHECK(strncmp(record(j, RUNTIME_WANTS_CPU, 99, &recording), "the JVM's recorder writes to /000", 32) == 0);
    end(j);
}

/* It may do it nevertheless, later. */
static void no_answer_to_start(void)
{
    struct jvm *j = begin();
    void *recording;
    j->sayings[0] = (struct saying){"JFR.start", STR("")};
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), "the JVM refuses: ");
    CHECK(str_ends(buf_slice(&j->asked), STR("\nJFR.stop name=pillion\n")));
    end(j);
}

static void silence(void)
{
    struct jvm *j = begin();
    void *recording;
    j->is_silent = true;
    const char *why = record(j, RUNTIME_WANTS_CPU, 99, &recording);
    CHECK(strncmp(why, "cannot connect to its socket " SOCKET, strlen("cannot connect to its socket " SOCKET)) == 0);
    CHECK_TEXT(buf_cstr(&j->asked), "VM.version\n");
    CHECK_INT(j->timeout_ms, ATTACH_MS);
    end(j);
}

/* ---- files ---- */

/* Their texts, one behind the other. */
static struct buf brought;

static void take(void *context, const char *type, struct buf *bytes)
{
    CHECK(type == NULL);
    (void)context;
    CHECK(bytes->len > 0);
    buf_text(&brought, brought.len > 0 ? ", " : "");
    buf_str(&brought, buf_slice(bytes));
    buf_release(bytes);
    buf_init(bytes, bytes->max);
}

static const struct runtime_sink sink = {take, NULL};

/* What is handed over when it is read once more; or why it is over. */
static const char *polled(void *recording, bool whole)
{
    static char text[ERR_TEXT_MAX];
    struct err why = {0};
    buf_release(&brought);
    buf_init(&brought, 4096);
    bool goes_on = java_read_recording(recording, whole, &sink, &why);
    CHECK(goes_on == (why.kind == ERR_NONE));
    snprintf(text, sizeof text, "%s", goes_on ? buf_cstr(&brought) : why.text);
    return text;
}

static const char *stopped(void *recording)
{
    static char text[ERR_TEXT_MAX];
    buf_release(&brought);
    buf_init(&brought, 4096);
    java_stop_recording(recording, &sink);
    snprintf(text, sizeof text, "%s", buf_cstr(&brought));
    buf_release(&brought);
    return text;
}

static const char *asked_since(struct jvm *j)
{
    static char text[ERR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", buf_cstr(&j->asked));
    buf_clear(&j->asked);
    return text;
}

static void *recorded(struct jvm *j)
{
    void *recording;
    CHECK_TEXT(record(j, RUNTIME_WANTS_CPU, 99, &recording), "");
    buf_clear(&j->asked);
    return recording;
}

static void files_in_order(void)
{
    struct jvm *j = begin();
    put_chunk(j, "2026_11_28_02_42_07.jfr", "ours");
    put_chunk(j, "2026_11_28_02_10_00.jfr", "older");
    put_chunk(j, "2026_11_28_02_42_07_tmp.part", "no chunk");
    void *r = recorded(j);
    CHECK_TEXT(polled(r, false), ""); /* it is still written */
    CHECK_TEXT(polled(r, true), "ours");
    put_chunk(j, "2026_11_28_02_42_07.jfr", "ours, longer");
    CHECK_TEXT(polled(r, true), "ours, longer"); /* again and again */
    CHECK_TEXT(polled(r, true), "ours, longer");
    put_chunk(j, "2026_11_28_02_42_07_01.jfr", "third");
    put_chunk(j, "2026_11_28_02_42_07_02.jfr", "fourth");
    put_chunk(j, "2026_11_28_02_42_07.jfr", "second");
    CHECK_TEXT(polled(r, false), "second, third");
    CHECK_TEXT(polled(r, false), "");
    CHECK_TEXT(polled(r, true), "fourth");
    remove_file(j, REPOSITORY "/2026_11_28_02_42_07.jfr"); /* older than five minutes */
    put_chunk(j, "2026_11_28_02_50_00.jfr", "fifth");
    CHECK_TEXT(polled(r, false), "fourth");
    CHECK_TEXT(asked_since(j), ""); /* nothing for all of that */
    j->tidies = true;
    CHECK_TEXT(stopped(r), "fifth");
    CHECK_TEXT(asked_since(j), "JFR.stop name=pillion\n");
    end(j);
}

/* A name that is listed and gone when it is opened. */
static void file_goes_meanwhile(void)
{
    struct jvm *j = begin();
    put_chunk(j, "1.jfr", "first");
    void *r = recorded(j);
    put_chunk(j, "2.jfr", "second");
    put_chunk(j, "3.jfr", "third");
    CHECK_TEXT(polled(r, false), "first, second");
    drop_repository(j);
    CHECK_TEXT(polled(r, true), "the JVM's recording has ended");
    CHECK_TEXT(stopped(r), "third");
    end(j);
}

/* Written to the end when it is stopped: what is read is what is there then. */
static void the_end_is_written_late(void)
{
    struct jvm *j = begin();
    put_chunk(j, "1.jfr", "begun");
    void *r = recorded(j);
    drop_repository(j);
    for (size_t i = 0; i < FILES; i++) {
        if (j->files[i].opened > 0) {
            buf_text(&j->files[i].bytes, " and ended");
        }
    }
    CHECK_TEXT(stopped(r), "begun and ended");
    end(j);
}

static void no_files_yet(void)
{
    struct jvm *j = begin();
    void *r = recorded(j);
    CHECK_TEXT(polled(r, true), "the JVM's recording has ended"); /* there is not even a repository */
    put_chunk(j, "1.jfr", "");
    CHECK_TEXT(polled(r, true), ""); /* nothing in it */
    CHECK_TEXT(stopped(r), "");
    end(j);
}

/* Many, of recordings of somebody else that keep all: the newest are ours. */
static void many_files(void)
{
    struct jvm *j = begin();
    char name[16];
    for (unsigned i = 0; i < 70; i++) {
        snprintf(name, sizeof name, "%03u.jfr", i);
        put_chunk(j, name, i < 69 ? "theirs" : "ours");
    }
    void *r = recorded(j);
    CHECK_TEXT(polled(r, true), "ours");
    CHECK_TEXT(stopped(r), "ours");
    end(j);
}

/* 8 and 11 keep what they record to themselves until they are asked for a copy. */
static void dumped(void)
{
    struct jvm *j = begin();
    j->version = "11.0.24+8\nJDK 11.0.24";
    put_chunk(j, "1.jfr", "");
    void *r = recorded(j);
    put_chunk(j, "1.jfr", "first");
    j->chunk_by_dump = "2.jfr";
    CHECK_TEXT(polled(r, false), "first");
    CHECK_TEXT(asked_since(j), "JFR.dump name=pillion filename=/dev/null\n");
    j->chunk_by_dump = "3.jfr";
    CHECK_TEXT(polled(r, true), "by the dump, by the dump");
    j->chunk_by_dump = "4.jfr";
    buf_clear(&j->asked);
    j->tidies = true;
    CHECK_TEXT(stopped(r), "by the dump"); /* the last one has nothing that was recorded before the stop */
    CHECK_TEXT(asked_since(j), "JFR.dump name=pillion filename=/dev/null\nJFR.stop name=pillion\n");
    end(j);
}

static void somebody_else_ended_it(void)
{
    struct jvm *j = begin();
    j->version = "11.0.24+8\nJDK 11.0.24";
    put_chunk(j, "1.jfr", "first");
    void *r = recorded(j);
    j->sayings[0] = (struct saying){"JFR.dump", STR("0\nCould not find pillion.\n\nUse JFR.check to list them.\n")};
    CHECK_TEXT(polled(r, false), "the JVM's recorder cannot be used: Could not find pillion.");
    j->listens = false; /* and the JVM with it */
    CHECK(strstr(polled(r, true), "cannot connect to its socket") != NULL);
    CHECK_TEXT(stopped(r), "");
    end(j);
}

/* ---- without a recorder ---- */

#define MS UINT64_C(1000000)
#define DUMP STR("0\nFull thread dump OpenJDK:\n\n\"main\" #1 nid=0x10 runnable\n" \
                 "   java.lang.Thread.State: RUNNABLE\n"                              \
                 "\tat Shop.main(Shop.java:3)\n")
#define MOMENT "thread 16 0 main\n3 Shop.main\n"

static void take_text(void *context, const char *type, struct buf *bytes)
{
    CHECK(type == NULL);
    buf_str(context, buf_slice(bytes));
    buf_clear(bytes);
}

/* Asked `how` of a JVM whose recorder says `check`: what it was asked, why its stacks are coarse or none, and the
 * moments of two ticks. */
static void check_dumps(struct str check, struct str dump, struct runtime_target how, const char *asked,
                        const char *told, const char *moments)
{
    struct jvm *j = begin();
    struct err why = {0};
    struct buf text;
    const struct runtime_sink to_text = {take_text, &text};
    buf_init(&text, 1 << 16);
    how.port = &j->port;
    how.frequency_hz = 99;
    j->sayings[0] = (struct saying){"JFR.check", check};
    j->sayings[1] = (struct saying){"Thread.print", dump};
    void *collection = java_collect(&how, &why);
    CHECK_TEXT(buf_cstr(&j->asked), asked);
    CHECK_TEXT(why.text, told);
    CHECK((collection != NULL) == (moments != NULL));
    if (collection != NULL) {
        CHECK(java_collect_tick(collection, 100) && java_collect_tick(collection, 150));
        CHECK(java_collect_poll(collection, false, &to_text, &why));
        CHECK_TEXT(buf_cstr(&text), moments);
        buf_clear(&text);
        j->is_silent = true;
        CHECK(java_collect_tick(collection, 100) && java_collect_poll(collection, false, &to_text, &why));
        j->is_silent = false;
        CHECK(java_collect_tick(collection, 100) && java_collect_poll(collection, false, &to_text, &why));
        CHECK_TEXT(buf_cstr(&text), "moment 100\n" MOMENT);
        buf_clear(&text);
        j->is_silent = true;
        CHECK(java_collect_tick(collection, 100) && java_collect_tick(collection, 100));
        CHECK(!java_collect_tick(collection, 100) && !java_collect_poll(collection, false, &to_text, &why));
        CHECK_INT(why.number, ETIMEDOUT);
        java_collect_stop(collection, &to_text);
        CHECK_INT(text.len, 0);
    }
    CHECK_INT(j->signals, 1);
    buf_release(&text);
    end(j);
}

#define MOMENTS "moment 0\n" MOMENT "moment 100\n" MOMENT "moment 150\n" MOMENT

static void by_dumps(void)
{
    const struct runtime_target cpu = {.wanted = RUNTIME_WANTS_CPU}, lock = {.wanted = RUNTIME_WANTS_LOCK},
                                dumps = {.wanted = RUNTIME_WANTS_CPU, .by_moments = true};
    const struct str none = STR("0\nModule jdk.jfr not found.\n");
    static const char why_none[] = "the JVM's recorder cannot be used: Module jdk.jfr not found.";
    check_dumps(none, DUMP, cpu, "Thread.print\nVM.version\nJFR.check\nThread.print\n",
                "they are those of safepoints, asked for up to ten times a second, because the JVM's recorder cannot "
                "be used: Module jdk.jfr not found.", MOMENTS);
    check_dumps(none, DUMP, dumps, "Thread.print\n", "", MOMENTS);
    check_dumps(none, UNKNOWN, cpu, "Thread.print\nVM.version\nJFR.check\nThread.print\n", why_none, NULL);
    check_dumps(none, UNKNOWN, dumps, "Thread.print\n",
                "the JVM refuses: java.lang.IllegalArgumentException: Unknown diagnostic command", NULL);
    check_dumps(none, DUMP, lock, "VM.version\nJFR.check\n", why_none, NULL);
    check_dumps(UNKNOWN, DUMP, cpu, "Thread.print\nVM.version\nJFR.check\nVM.uptime\n",
                "the JVM has no flight recorder (jdk.jfr)", NULL); /* it is starting */
}

/* A dump in which so many threads run, and the last one of them in native code. */
static struct str crowd(unsigned running)
{
    static struct buf text;
    buf_release(&text);
    buf_init(&text, 1 << 16);
    buf_text(&text, "0\nFull thread dump OpenJDK:\n\n");
    for (unsigned i = 1; i <= running + 1; i++) {
        buf_printf(&text, "\"worker\" #1 nid=0x%x runnable\n   java.lang.Thread.State: RUNNABLE\n", i);
        buf_printf(&text, "\tat Shop.work(%s)\n\n", i <= running ? "Shop.java:3" : "Native Method");
    }
    return buf_slice(&text);
}

/* What a JVM is asked first when so many run, and whether it records then. */
static void check_crowd(const char *version, unsigned running, unsigned processors, const char *told, bool records)
{
    struct jvm *j = begin();
    struct err why = {0};
    struct buf text;
    const struct runtime_sink to_text = {take_text, &text};
    const struct runtime_target target = {
        .port = &j->port, .frequency_hz = 99, .wanted = RUNTIME_WANTS_CPU, .processors = processors};
    buf_init(&text, 1 << 16);
    put_chunk(j, "1.jfr", "first");
    j->version = version;
    j->sayings[0] = (struct saying){"Thread.print", crowd(running)};
    void *collection = java_collect(&target, &why);
    CHECK(collection != NULL && (strstr(buf_cstr(&j->asked), "JFR.start") != NULL) == records);
    CHECK_TEXT(why.text, told);
    java_collect_stop(collection, &to_text);
    buf_release(&text);
    end(j);
}

static void many_that_run(void)
{
    check_crowd("17.0.15+6\nJDK 17.0.15", 16, 2, "", true);
    check_crowd("17.0.15+6\nJDK 17.0.15", 20, 5, "", true);
    check_crowd("17.0.15+6\nJDK 17.0.15", 17, 4,
                "they are those of safepoints, asked for up to ten times a second, because 17 threads run at once, of "
                "which its recorder would meet few", false);
    check_crowd("25.0.3+9-LTS\nJDK 25.0.3", 17, 2, "", true);
}

/* Moments that are told beside a recording, in so many ticks of 5 s each. */
static unsigned moments_beside(const char *version, unsigned running, unsigned ticks)
{
    struct jvm *j = begin();
    struct err why = {0};
    struct buf text;
    const struct runtime_sink to_text = {take_text, &text};
    const struct runtime_target target = {
        .port = &j->port, .frequency_hz = 99, .wanted = RUNTIME_WANTS_CPU, .processors = 2};
    unsigned moments = 0;
    buf_init(&text, 1 << 16);
    put_chunk(j, "1.jfr", "first");
    j->version = version;
    void *collection = java_collect(&target, &why);
    j->sayings[0] = (struct saying){"Thread.print", crowd(running)};
    for (unsigned i = 0; i < ticks && java_collect_tick(collection, 5000 * MS); i++) {
    }
    CHECK(java_collect_poll(collection, false, &to_text, &why));
    for (const char *at = buf_cstr(&text); (at = strstr(at, "moment ")) != NULL; at++) {
        moments++;
    }
    java_collect_stop(collection, &to_text);
    buf_release(&text);
    end(j);
    return moments;
}

static void more_come_to_run(void)
{
    CHECK_INT(moments_beside("17.0.15+6\nJDK 17.0.15", 5, 10), 0);
    CHECK_INT(moments_beside("17.0.15+6\nJDK 17.0.15", 6, 10), 9); /* from the second tick on */
    CHECK_INT(moments_beside("17.0.15+6\nJDK 17.0.15", 6, 1), 0);
    CHECK_INT(moments_beside("25.0.3+9-LTS\nJDK 25.0.3", 6, 10), 0);
}

/* One that cannot be asked gets no second signal for it. */
static void nobody_is_asked_twice(void)
{
    struct jvm *j = begin();
    struct err why = {0};
    const struct runtime_target target = {.port = &j->port, .frequency_hz = 99, .wanted = RUNTIME_WANTS_CPU};
    j->listens_after = NEVER;
    CHECK(java_collect(&target, &why) == NULL);
    CHECK_INT(j->signals, 1);
    CHECK_TEXT(buf_cstr(&j->asked), "");
    end(j);
}

TESTS({"a flag against it is found wherever the JVM takes flags from, and undone by a later one", flags},
      {"flags count in the JVM's order: JAVA_TOOL_OPTIONS, its command line, _JAVA_OPTIONS",
       flags_as_the_jvm_orders_them},
      {"flags in variables stand between any blanks, and in quotes", flags_between_blanks_and_quotes},
      {"a JVM that listens is asked without a signal, with -Xrs, too", socket_is_there},
      {"a JVM whose socket was removed gets no signal", socket_was_removed},
      {"the socket is listed as it was bound, .java_pidPID.tmp", socket_was_removed_by_its_first_name},
      {"where a JVM makes another socket, by its release, it is asked", socket_is_made_again},
      {"without a handler it gets no signal, and no trigger stays", no_handler},
      {"the trigger is made in its working directory, else in /tmp, and goes again; without one there is no signal",
       triggers},
      {"a socket may be late; when none comes that is said, after one signal", socket_comes_late},
      {"an answer is a 0 and what is said, all else a refusal", answers},
      {"an answer may be long, and no longer than there is room for", huge_answers},
      {"a request has a command and three arguments; a long one is not sent", requests},
      {"each version gets its settings as it takes them, words or a file that goes again", by_version},
      {"a period is that of the session, 20 ms at least", period},
      {"all that can be wanted has room", all_that_can_be_wanted},
      {"what a killed profiler left is ended, others' recordings go on, and a refusal is told", what_was_there},
      {"a JVM that does not know the command yet is asked again", starts},
      {"a recording whose name begins as ours is another", another_name},
      {"only versions that have a recorder are asked for one", versions},
      {"a file of settings goes in every case, also one that was left", settings_file},
      {"a repository that cannot be found ends the recording", no_repository},
      {"a start that was not answered is ended: it may still come", no_answer_to_start},
      {"a JVM that does not answer is asked one thing", silence},
      {"files are handed over in order, the newest as often as wanted, and none from before", files_in_order},
      {"what was open is handed over when its name is gone, and the end is told", file_goes_meanwhile},
      {"what is written while it stops is handed over", the_end_is_written_late},
      {"a repository without files, or with an empty one, hands over nothing", no_files_yet},
      {"among many files the newest is ours", many_files},
      {"8 and 11 are asked for a copy before each reading", dumped},
      {"when somebody else ended it that is the reason, and stopping it is in vain", somebody_else_ended_it},
      {"a JVM without a recorder is asked for its threads' stacks, for CPU time alone", by_dumps},
      {"where so many run that its recorder would meet few, they are asked for at once", many_that_run},
      {"where more come to run than it meets each time, they are asked for, too", more_come_to_run},
      {"one that cannot be asked gets one signal", nobody_is_asked_twice})
