/*
 * Any process as a JVM that is asked for a recording or for its threads' stacks: what /proc says of it, what it
 * answers, and which files there are come from the bytes, as texts with their length (16 bits) in front. An answer of
 * no bytes is the usual one, so that the next command is reached. Whatever it says, one signal at most is sent, nothing
 * that was made stays, and nothing stays open.
 */
#include "base/cursor.h"
#include "encode/moments_read.h"
#include "runtime/java/attach.h"
#include "runtime/java/private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    LISTENS = 1, HAS_HANDLER = 2, CWD_IS_READ_ONLY = 4, TMP_IS_READ_ONLY = 8, COMES_LATE = 16, WHOLE = 32,
    HIDES_PROC = 64, BY_MOMENTS = 128, /* flags */
    MADE_MAX = 4, PATH_BYTES = 96, NAMES_MAX = 200, REQUEST_MAX = 1200, POLLS = 3, PAUSES_MAX = 4000, ASKED_MAX = 40,
    PROFILE_BYTES = 1 << 20,
};

struct jvm {
    struct cursor rest; /* of the bytes */
    unsigned flags;
    unsigned signals, pauses, asked;
    int opened;
    char made[MADE_MAX][PATH_BYTES]; /* "": is gone */
};

static void must(bool promise)
{
    if (!promise) {
        abort();
    }
}

static struct str text_of(struct jvm *j)
{
    size_t len = cursor_u16(&j->rest);
    len = len < j->rest.len ? len : j->rest.len;
    struct str text = {(const char *)j->rest.ptr, len};
    cursor_skip(&j->rest, len);
    return text;
}

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    struct jvm *j = context;
    (void)name;
    if ((j->flags & HIDES_PROC) != 0) {
        return err_errno(err, EACCES, "cannot read %s", name);
    }
    buf_clear(out);
    buf_str(out, text_of(j));
    return !out->failed;
}

static bool list(void *context, const char *folder, void (*each)(void *to, const char *name), void *to)
{
    struct str names = text_of(context);
    must(folder[0] == '/');
    bool any = names.len > 0;
    for (unsigned i = 0; names.len > 0 && i < NAMES_MAX; i++) {
        char name[PATH_BYTES];
        struct str one = str_cut(&names, '\n');
        snprintf(name, sizeof name, "%.*s", (int)one.len, one.ptr);
        each(to, name);
    }
    return any;
}

static bool open_file(void *context, const char *path, int *file)
{
    struct jvm *j = context;
    bool is_there = cursor_u8(&j->rest) % 8 != 0;
    must(path[0] == '/'); /* its own paths are absolute */
    j->opened += is_there;
    *file = 7;
    return is_there;
}

static bool read_file(void *context, int file, struct buf *out, struct err *err)
{
    struct jvm *j = context;
    struct str bytes = text_of(j);
    must(file == 7 && j->opened > 0);
    buf_clear(out);
    buf_str(out, bytes);
    return bytes.len % 8 != 1 || err_errno(err, EIO, "cannot read the file");
}

static void close_file(void *context, int file)
{
    struct jvm *j = context;
    must(file == 7 && j->opened > 0);
    j->opened--;
}

static bool make(void *context, const char *path, struct str bytes, struct err *err)
{
    struct jvm *j = context;
    (void)bytes;
    must(strncmp(path, ".attach_pid7", 13) == 0 || strncmp(path, "/tmp/.", 6) == 0);
    if ((j->flags & (path[0] == '/' ? TMP_IS_READ_ONLY : CWD_IS_READ_ONLY)) != 0) {
        return err_errno(err, EROFS, "cannot make the file %s", path);
    }
    for (size_t i = 0; i < MADE_MAX; i++) {
        if (j->made[i][0] == '\0') {
            snprintf(j->made[i], PATH_BYTES, "%s", path);
            return true;
        }
    }
    abort();
}

static size_t made_count(const struct jvm *j)
{
    size_t count = 0;
    for (size_t i = 0; i < MADE_MAX; i++) {
        count += j->made[i][0] != '\0';
    }
    return count;
}

static void remove_file(void *context, const char *path)
{
    struct jvm *j = context;
    for (size_t i = 0; i < MADE_MAX; i++) {
        if (strcmp(j->made[i], path) == 0) {
            j->made[i][0] = '\0';
        }
    }
}

static bool send_signal(void *context, int number, struct err *err)
{
    struct jvm *j = context;
    must(number == SIGQUIT && made_count(j) == 1 && (j->flags & LISTENS) == 0);
    if ((j->flags & HAS_HANDLER) == 0) {
        return err_set(err, ERR_UNSUPPORTED, 0, "it has no handler for signal %d", number);
    }
    must(j->signals++ == 0);
    return true;
}

static bool listens(void *context, const char *path)
{
    struct jvm *j = context;
    must(strcmp(path, "/tmp/.java_pid7") == 0);
    return (j->flags & LISTENS) != 0 || (j->signals > 0 && (j->flags & COMES_LATE) != 0 && j->pauses > 2);
}

static struct str usual(const char *command)
{
    static const struct {
        const char *to;
        struct str answer;
    } answers[] = {
        {"VM.version", STR("0\nOpenJDK 64-Bit Server VM version 17.0.15+6\nJDK 17.0.15\n")},
        {"JFR.check", STR("0\nNo available recordings.\n")},
        {"JFR.start", STR("0\nStarted recording 1.\n")},
        {"JFR.configure", STR("0\nRepository path: /tmp/2026_11_28_02_42_06_7\n")},
        {"JFR.dump", STR("0\nDumped recording \"pillion\"\n")},
        {"JFR.stop", STR("0\nStopped recording \"pillion\".\n")},
        {"VM.uptime", STR("0\n12.345 s\n")},
        {"Thread.print", STR("0\n\"main\" #1 nid=0x10 runnable\n   java.lang.Thread.State: RUNNABLE\n"
                             "\tat A.b(A.java:1)\n")},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        if (str_starts(str_of(command), str_of(answers[i].to))) {
            return answers[i].answer;
        }
    }
    abort(); /* there are no other commands */
}

static bool ask(void *context, const char *path, struct str request, struct buf *answer, uint64_t timeout_ms,
                struct err *err)
{
    static const char head[] = "1\0jcmd";
    struct jvm *j = context;
    must(strcmp(path, "/tmp/.java_pid7") == 0 && timeout_ms > 0 && j->asked++ < ASKED_MAX);
    must(request.len > sizeof head && request.len <= REQUEST_MAX && memcmp(request.ptr, head, sizeof head) == 0);
    const char *command = request.ptr + sizeof head;
    must(request.len == sizeof head + strlen(command) + 3 && strchr(command, '\n') == NULL);
    bool answers = cursor_u8(&j->rest) != 0xff;
    struct str said = text_of(j);
    buf_clear(answer);
    if (!answers) {
        return err_errno(err, ETIMEDOUT, "it does not answer");
    }
    buf_str(answer, said.len > 0 ? said : usual(command));
    return !answer->failed;
}

static void pause_for(void *context, uint64_t ms)
{
    struct jvm *j = context;
    must(ms > 0 && j->pauses++ < PAUSES_MAX);
}

static uint32_t thread_of(void *context, uint32_t tid)
{
    (void)context;
    return tid % 2 == 0 ? tid : 0;
}

static void take_sample(void *context, const struct live_sample *sample)
{
    const struct profile *p = context;
    must(sample->tid != 0 && sample->thread < p->threads.len && sample->node < p->nodes.len);
}

/* Into a profile, as its window's sampler does. */
static void take(void *context, const char *type, struct buf *bytes)
{
    (void)type;
    (void)context;
    must(bytes->len > 0);
    if (moments_are(buf_slice(bytes))) {
        struct profile p = {0};
        struct live live = {
            .pid = 7, .start_ticks = 9, .thread = thread_of, .sample = take_sample, .context = &p};
        must(profile_init(&p, PROFILE_BYTES, NULL));
        moments_read(&p, buf_slice(bytes), FRAME_JVM, &live);
        profile_release(&p);
    }
    buf_release(bytes);
    buf_init(bytes, bytes->max);
}

/* A recording or dumps, begun, read some times and stopped. */
static void collect(const struct runtime_target *target, bool whole)
{
    const struct runtime_sink sink = {take, NULL};
    const struct jvm *j = target->port->context;
    struct err why = {0};
    void *collection = java_collect(target, &why);
    must((collection != NULL || why.kind != ERR_NONE) && made_count(j) == 0);
    for (unsigned i = 0; collection != NULL && i < POLLS; i++) {
        why = (struct err){0};
        (void)java_collect_tick(collection, 1000 * i);
        bool goes_on = java_collect_poll(collection, whole, &sink, &why);
        must(goes_on == (why.kind == ERR_NONE));
    }
    if (collection != NULL) {
        java_collect_stop(collection, &sink);
    }
    must(made_count(j) == 0 && j->opened == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jvm j = {.rest = cursor_of(data, size)};
    const struct process_port port = {
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
    j.flags = cursor_u8(&j.rest);
    const struct runtime_target target = {.port = &port,
                                          .wanted = cursor_u8(&j.rest) & 7,
                                          .frequency_hz = cursor_u8(&j.rest),
                                          .by_moments = (j.flags & BY_MOMENTS) != 0};
    collect(&target, (j.flags & WHOLE) != 0);
    return 0;
}
