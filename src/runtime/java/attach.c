/* The attach protocol of HotSpot, version 1, which all have, and the guards before the one signal that it takes. What
 * forbids to ask is looked for in flags, in the socket and in the JDK's own version; the trigger file is seen to be the
 * JVM's user's before the signal is sent, and gone when the socket is there. */
#include "runtime/java/attach.h"
#include "runtime/common/outside.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum {
    PATH_BYTES = 64,
    TEXT_MAX = 1 << 20,
    REQUEST_MAX = 1200, /* an argument may have 1,024 bytes */
    LOOK_MS = 5, LOOKS_MAX = 1200, /* for the socket: six seconds */
    SHOWN_MAX = 200,
    RELEASE_PATH_MAX = 512,
};

/* ---- guards ---- */

struct flag {
    const char *on, *off; /* off: null, nothing undoes it */
    bool is_on;           /* by the last word that says so */
};

static void read_word(struct flag *f, struct str word)
{
    f->is_on = str_eq(word, str_of(f->on)) || (f->is_on && !(f->off != NULL && str_eq(word, str_of(f->off))));
}

/* As the JVM splits a variable: at blanks, tabs and line ends, quotes around a word taken off. */
static void read_variable(struct flag *f, struct str all, const char *name)
{
    static const char separators[] = " \t\n\r\v\f\"'";
    while (all.len > 0) {
        struct str one = str_cut(&all, '\0');
        if (!str_starts(one, str_of(name))) {
            continue;
        }
        one = str_sub(one, strlen(name), one.len);
        while (one.len > 0) {
            size_t len = 0;
            while (len < one.len && strchr(separators, one.ptr[len]) == NULL) {
                len++;
            }
            read_word(f, str_sub(one, 0, len));
            one = str_sub(one, len + 1, one.len);
        }
    }
}

/* In the order in which the JVM takes them: the last one counts. */
static bool has_flag(const struct process_port *port, const char *on, const char *off)
{
    struct flag f = {on, off, false};
    struct buf environment, arguments;
    buf_init(&environment, TEXT_MAX);
    buf_init(&arguments, TEXT_MAX);
    (void)port->text(port->context, "environ", &environment, NULL);
    (void)port->text(port->context, "cmdline", &arguments, NULL);
    read_variable(&f, buf_slice(&environment), "JAVA_TOOL_OPTIONS=");
    read_variable(&f, buf_slice(&environment), "JDK_JAVA_OPTIONS=");
    for (struct str rest = buf_slice(&arguments); rest.len > 0;) {
        read_word(&f, str_cut(&rest, '\0'));
    }
    read_variable(&f, buf_slice(&environment), "_JAVA_OPTIONS=");
    buf_release(&environment);
    buf_release(&arguments);
    return f.is_on;
}

/* It listens, but the file is gone. The socket was made under this name, and that given another one. */
static bool is_deleted(const struct process_port *port, const char *path)
{
    char made[PATH_BYTES + sizeof ".tmp"];
    struct buf text;
    bool is = false;
    snprintf(made, sizeof made, "%s.tmp", path);
    buf_init(&text, TEXT_MAX);
    if (port->text(port->context, "net/unix", &text, NULL)) {
        struct str rest = buf_slice(&text);
        while (rest.len > 0 && !is) {
            struct str line = str_cut(&rest, '\n');
            is = str_ends(line, str_of(path)) || str_ends(line, str_of(made));
        }
    }
    buf_release(&text);
    return is;
}

/* JAVA_VERSION="11.0.24" or "1.8.0_452" of the file `release` in the JDK's folder. */
static bool read_release(const struct process_port *port, struct str library, struct buf *text)
{
    static const char *const folders[] = {"/lib/server/", "/jre/lib/", "/lib/"};
    char path[RELEASE_PATH_MAX];
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *at = strstr(library.ptr, folders[i]);
        int file;
        if (library.ptr[0] != '/' || at == NULL || at >= library.ptr + library.len ||
            snprintf(path, sizeof path, "%.*s/release", (int)(at - library.ptr), library.ptr) >= RELEASE_PATH_MAX ||
            !port->open(port->context, path, &file)) {
            continue;
        }
        bool good = port->read(port->context, file, text, NULL);
        port->close(port->context, file);
        return good;
    }
    return false;
}

/* Does a JVM whose socket was removed make another one? Since 14, and since some update of the older ones: these have.
 * The others answer the signal with all their threads' stacks, on their standard output. */
static bool makes_another(const struct process_port *port)
{
    struct buf maps, release;
    unsigned major = 0, minor = 0, update = 0;
    buf_init(&maps, TEXT_MAX);
    buf_init(&release, TEXT_MAX);
    const char *library =
        port->text(port->context, "maps", &maps, NULL) ? strstr(buf_cstr(&maps), "/libjvm.so") : NULL;
    while (library != NULL && library > maps.ptr && library[-1] != ' ') {
        library--;
    }
    const char *version = library != NULL && read_release(port, (struct str){library, strcspn(library, "\n")}, &release)
                              ? strstr(buf_cstr(&release), "JAVA_VERSION=\"")
                              : NULL;
    if (version != NULL && sscanf(version, "JAVA_VERSION=\"1.8.0_%u", &update) == 1) {
        major = 8;
    } else if (version != NULL) {
        (void)sscanf(version, "JAVA_VERSION=\"%u.%u.%u", &major, &minor, &update);
    }
    buf_release(&maps);
    buf_release(&release);
    return major >= 14 || (major == 11 && update >= 20) || (major == 8 && update >= 400);
}

/* ---- the socket ---- */

static void socket_path(const struct process_port *port, char out[static PATH_BYTES])
{
    snprintf(out, PATH_BYTES, "/tmp/.java_pid%u", port->inner_pid);
}

/* In its working directory, where it looks first, or in /tmp. */
static bool make_trigger(const struct process_port *port, char path[static PATH_BYTES], struct err *why)
{
    static const char *const folders[] = {"", "/tmp/"};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, PATH_BYTES, "%s.attach_pid%u", folders[i], port->inner_pid);
        if (port->make(port->context, path, STR(""), why)) {
            return true;
        }
    }
    return false;
}

static bool wait_for_socket(const struct process_port *port, const char *path)
{
    bool listens = false;
    for (unsigned i = 0; i < LOOKS_MAX && !listens; i++) {
        port->pause(port->context, LOOK_MS);
        listens = port->listens(port->context, path);
    }
    return listens;
}

bool attach_may(const struct process_port *port, struct err *why)
{
    char path[PATH_BYTES];
    socket_path(port, path);
    if (has_flag(port, "-XX:+DisableAttachMechanism", "-XX:-DisableAttachMechanism")) {
        return err_set(why, ERR_UNSUPPORTED, 0, "the JVM was started with -XX:+DisableAttachMechanism; without it its "
                                                "functions are seen");
    }
    if (port->listens(port->context, path)) {
        return true;
    }
    if (has_flag(port, "-Xrs", NULL) || has_flag(port, "-XX:+ReduceSignalUsage", "-XX:-ReduceSignalUsage")) {
        return err_set(why, ERR_UNSUPPORTED, 0, "the JVM was started with -Xrs and does not listen at %s; without -Xrs "
                                                "its functions are seen", path);
    }
    if (is_deleted(port, path) && !makes_another(port)) {
        return err_set(why, ERR_UNSUPPORTED, 0, "the JVM listens at %s, but that file was removed; keep cleaners of "
                                                "/tmp from it, and start the JVM again", path);
    }
    return true;
}

bool attach_open(const struct process_port *port, struct err *why)
{
    char path[PATH_BYTES], trigger[PATH_BYTES];
    struct err cause = {0};
    socket_path(port, path);
    if (!attach_may(port, why)) {
        return false;
    }
    if (port->listens(port->context, path)) {
        return true;
    }
    if (outside_is_stopped(port)) { /* the signal would come when the trigger is gone */
        return err_set(why, ERR_UNSUPPORTED, EAGAIN, "the JVM is stopped");
    }
    if (!make_trigger(port, trigger, &cause)) {
        return err_set(why, ERR_DENIED, cause.number, "the JVM cannot be asked for its stacks: %s; run as its user, or "
                                                      "make its /tmp writable", cause.text);
    }
    bool sent = port->signal(port->context, SIGQUIT, &cause);
    bool listens = sent && wait_for_socket(port, path);
    port->remove(port->context, trigger);
    if (!sent) {
        bool is_untold = cause.kind == ERR_DENIED && cause.number == 0; /* whether it handles the signal */
        return err_set(why, cause.kind, cause.number, "the JVM cannot be asked for its stacks: %s%s", cause.text,
                       is_untold ? "; start it with -XX:+StartAttachListener" : "");
    }
    return listens || err_set(why, ERR_UNSUPPORTED, 0, "the JVM made no socket %s; is its /tmp writable?", path);
}

/* ---- commands ---- */

/* A number, 0 for what was understood; then the words. */
static bool is_good(struct buf *answer, struct err *why)
{
    struct str text = buf_slice(answer);
    struct str code = str_cut(&text, '\n');
    bool good = str_eq(str_trim(code), STR("0"));
    if (!good) {
        struct str shown = str_cut(&text, '\n');
        shown = str_sub(shown, 0, SHOWN_MAX);
        return err_set(why, ERR_UNSUPPORTED, 0, "the JVM refuses: %.*s", (int)shown.len, shown.ptr);
    }
    size_t skipped = (size_t)(text.ptr - answer->ptr);
    memmove(answer->ptr, text.ptr, text.len);
    answer->len -= skipped;
    return true;
}

bool attach_ask(const struct process_port *port, const char *command, struct buf *answer, uint64_t timeout_ms,
                struct err *why)
{
    static const char head[] = "1\0jcmd", tail[] = "\0\0";
    char path[PATH_BYTES];
    struct buf request;
    socket_path(port, path);
    buf_init(&request, REQUEST_MAX);
    buf_add(&request, head, sizeof head);
    buf_add(&request, command, strlen(command) + 1);
    buf_add(&request, tail, sizeof tail - 1);
    bool good = (!request.failed || err_set(why, ERR_LIMIT, 0, "a command for the JVM is too long")) &&
                port->ask(port->context, path, buf_slice(&request), answer, timeout_ms, why) && is_good(answer, why);
    buf_release(&request);
    return good;
}
