/*
 * Java on HotSpot where samples have no registers: the JVM's own flight recorder, asked for one recording for as long
 * as we are here, and the files that it writes into its repository, a folder in its own /tmp.
 *
 * From 17 on the file being written is complete up to a second ago: it is read as it is, and nothing more is asked.
 * Older JVMs keep what they record to themselves until they are asked for a copy; it goes to /dev/null, and what had to
 * be written for it stands in the repository then. What a killed profiler left running is found by its name and ended.
 *
 * Sources: OpenJDK's jdk.jfr.internal.dcmd of 8u262 to 25, by its facts and by trying.
 */
#include "runtime/java/attach.h"
#include "runtime/java/private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define NAME "pillion"

enum {
    FILE_MAX = 24 << 20, /* a file of the repository is ended at 12 MB */
    COMMAND_MAX = 1000,
    PATH_MAX_BYTES = 512,
    NAME_BYTES = 64,
    FILES_MAX = 64,     /* of a repository: somebody else's recordings may keep many */
    LIVE_SINCE = 17,    /* what is being written can be read */
    WORDS_SINCE = 17,   /* settings may be words of the command */
    CPU_TIME_SINCE = 25,
    START_MS = 30000,   /* the first recording loads hundreds of classes */
    STARTS_S = 10,      /* so long it may be without one of its commands */
    PERIOD_LEAST_MS = 20,
    RUNNING_MOST = 16, CROWD = 4, /* threads, in all and for each processor, but where it meets all */
    DEPTH = 256,        /* frames; it keeps 64 otherwise, and cuts at the root */
};

struct recording {
    const struct process_port *port;
    struct runtime_target target;
    unsigned version;
    char repository[PATH_MAX_BYTES];
    char newest[NAME_BYTES]; /* of its files, that was handed over; "": none */
    int file;                /* it, open, for when its name is gone; -1: none is */
    struct buf answer;
};

/* ---- what is asked ---- */

static bool ask(struct recording *r, uint64_t timeout_ms, const char *expected, struct err *why,
                const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Words that say that it was done; null: whatever it says. */
static bool ask(struct recording *r, uint64_t timeout_ms, const char *expected, struct err *why,
                const char *format, ...)
{
    char command[COMMAND_MAX];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    if (len < 0 || len >= (int)sizeof command) {
        return err_set(why, ERR_LIMIT, 0, "a command for the JVM is too long");
    }
    if (!attach_ask(r->port, command, &r->answer, timeout_ms, why)) {
        return false;
    }
    if (expected != NULL && strstr(buf_cstr(&r->answer), expected) == NULL) {
        struct str said = str_trim(buf_slice(&r->answer));
        said = str_cut(&said, '\n');
        return err_set(why, ERR_UNSUPPORTED, 0, "the JVM's recorder cannot be used: %.*s", (int)said.len, said.ptr);
    }
    return true;
}

/* "JDK 17.0.15", "JDK 8.0_432" */
static bool read_version(struct recording *r, struct err *why)
{
    static const char head[] = "\nJDK "; /* after "OpenJDK 64-Bit Server VM version …" */
    if (!ask(r, ATTACH_MS, head, why, "VM.version")) {
        return false;
    }
    const char *at = strstr(buf_cstr(&r->answer), head) + sizeof head - 1;
    for (; *at >= '0' && *at <= '9' && r->version < 1000; at++) {
        r->version = 10 * r->version + (unsigned)(*at - '0');
    }
    return r->version >= 8 || err_set(why, ERR_UNSUPPORTED, 0, "a JVM of version %u has no recorder", r->version);
}

/* ---- settings ---- */

struct setting {
    unsigned wanted;         /* enum runtime_wanted */
    unsigned since, before;  /* versions that have the event, and need no other; before 0: all later ones */
    const char *event, *name, *value; /* value null: the period */
};

static const struct setting settings[] = {
    {UINT32_MAX, 0, 0, "jdk.JVMInformation", "period", "beginChunk"},
    {RUNTIME_WANTS_CPU, CPU_TIME_SINCE, 0, "jdk.CPUTimeSample", "throttle", NULL},
    {RUNTIME_WANTS_CPU, 0, CPU_TIME_SINCE, "jdk.ExecutionSample", "period", NULL},
    {RUNTIME_WANTS_CPU, 0, CPU_TIME_SINCE, "jdk.NativeMethodSample", "period", NULL},
    {RUNTIME_WANTS_ALLOC, 16, 0, "jdk.ObjectAllocationSample", "throttle", "300/s"},
    {RUNTIME_WANTS_ALLOC, 0, 16, "jdk.ObjectAllocationInNewTLAB", "stackTrace", "true"},
    {RUNTIME_WANTS_ALLOC, 0, 16, "jdk.ObjectAllocationOutsideTLAB", "stackTrace", "true"},
    {RUNTIME_WANTS_LOCK, 0, 0, "jdk.JavaMonitorEnter", "threshold", "1ms"},
};

static bool applies(const struct recording *r, const struct setting *s)
{
    return (r->target.wanted & s->wanted) != 0 && r->version >= s->since && (s->before == 0 || r->version < s->before);
}

static const char *value_of(const struct recording *r, const struct setting *s, char period[static 16])
{
    uint64_t ms = 1000 / (r->target.frequency_hz > 0 ? r->target.frequency_hz : 1);
    snprintf(period, 16, "%ums", (unsigned)(ms > PERIOD_LEAST_MS ? ms : PERIOD_LEAST_MS));
    return s->value != NULL ? s->value : period;
}

/* As words of the command. */
static void put_words(const struct recording *r, struct buf *out)
{
    char period[16];
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const struct setting *s = &settings[i];
        if (applies(r, s)) {
            buf_printf(out, " +%s#enabled=true +%s#%s=%s", s->event, s->event, s->name, value_of(r, s, period));
        }
    }
}

/* As a file. */
static void put_file(const struct recording *r, struct buf *out)
{
    char period[16];
    buf_text(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">\n");
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const struct setting *s = &settings[i];
        if (applies(r, s)) {
            const char *value = value_of(r, s, period);
            size_t digits = strspn(value, "0123456789");
            const char *blank = digits > 0 && strncmp(value + digits, "ms", 2) == 0 ? " " : ""; /* "20 ms", "true" */
            buf_printf(out, "<event name=\"%s\"><setting name=\"enabled\">true</setting>"
                            "<setting name=\"%s\">%.*s%s%s</setting></event>\n",
                       s->event, s->name, (int)digits, value, blank, value + digits);
        }
    }
    buf_text(out, "</configuration>\n");
}

/* ---- beginning ---- */

/* Its commands come late. */
static bool is_starting(struct recording *r)
{
    double uptime_s = 0;
    return !ask(r, ATTACH_MS, NULL, NULL, "VM.uptime") ||
           (sscanf(buf_cstr(&r->answer), "%lf", &uptime_s) == 1 && uptime_s < STARTS_S);
}

/* Nothing is begun twice under one name: what is there is of a profiler that was killed. A JVM without any recording so
 * far may be told how deep its stacks are to be. */
static bool prepare(struct recording *r, struct err *why)
{
    if (!ask(r, START_MS, "ecording", why, "JFR.check")) {
        bool is_unknown = why != NULL && strstr(why->text, "Unknown diagnostic command") != NULL;
        return is_unknown ? err_set(why, ERR_UNSUPPORTED, is_starting(r) ? EAGAIN : 0,
                                    "the JVM has no flight recorder (jdk.jfr)")
                          : false;
    }
    const char *said = buf_cstr(&r->answer);
    bool is_left = strstr(said, "name=" NAME " ") != NULL || strstr(said, "name=\"" NAME "\"") != NULL;
    bool is_first = strstr(said, "No available recordings") != NULL;
    return is_left    ? ask(r, ATTACH_MS, NULL, why, "JFR.stop name=" NAME)
           : is_first ? ask(r, START_MS, NULL, why, "JFR.configure stackdepth=%d", DEPTH)
                      : true;
}

static bool start_by_words(struct recording *r, struct err *why)
{
    struct buf words;
    buf_init(&words, COMMAND_MAX);
    put_words(r, &words);
    bool good = !words.failed || err_set(why, ERR_LIMIT, 0, "the JVM's settings are too long");
    good = good && ask(r, START_MS, "Started recording", why, "JFR.start name=" NAME " settings=none maxage=5m%s",
                       buf_cstr(&words));
    buf_release(&words);
    return good;
}

static bool start_by_file(struct recording *r, struct err *why)
{
    char path[NAME_BYTES];
    struct buf text;
    snprintf(path, sizeof path, "/tmp/." NAME "-%u.jfc", r->port->inner_pid);
    buf_init(&text, COMMAND_MAX);
    put_file(r, &text);
    r->port->remove(r->port->context, path); /* a killed profiler's */
    bool made = r->port->make(r->port->context, path, buf_slice(&text), why);
    buf_release(&text);
    bool good = made && ask(r, START_MS, "Started recording", why,
                            "JFR.start name=" NAME " settings=%s maxage=5m", path);
    if (made) {
        r->port->remove(r->port->context, path);
    }
    return good;
}

static bool find_repository(struct recording *r, struct err *why)
{
    static const char head[] = "Repository path: ";
    if (!ask(r, ATTACH_MS, head, why, "JFR.configure")) {
        return false;
    }
    struct str rest = str_of(strstr(buf_cstr(&r->answer), head) + sizeof head - 1);
    struct str path = str_trim(str_cut(&rest, '\n'));
    bool good = path.len > 0 && path.ptr[0] == '/' && path.len < sizeof r->repository;
    snprintf(r->repository, sizeof r->repository, "%.*s", good ? (int)path.len : 0, path.ptr);
    return good || err_set(why, ERR_UNSUPPORTED, 0, "the JVM's recorder writes to %.*s, which is no whole path",
                           (int)path.len, path.ptr);
}

static void release(struct recording *r)
{
    if (r->file >= 0) {
        r->port->close(r->port->context, r->file);
    }
    buf_release(&r->answer);
    free(r);
}

/* ---- reading ---- */

struct names {
    char at[FILES_MAX][NAME_BYTES];
    size_t count;
    const char *from; /* earlier ones do not matter */
};

/* Their names are their times. Of too many the newest are kept, in their order. */
static void note_name(void *to, const char *name)
{
    struct names *n = to;
    if (!str_ends(str_of(name), STR(".jfr")) || strlen(name) >= NAME_BYTES || strcmp(name, n->from) < 0) {
        return;
    }
    size_t at = n->count;
    while (at > 0 && strcmp(name, n->at[at - 1]) < 0) {
        at--;
    }
    if (n->count == FILES_MAX && at == 0) {
        return;
    }
    size_t moved = n->count == FILES_MAX ? 1 : 0; /* the oldest one goes */
    memmove(n->at, n->at + moved, (at - moved) * NAME_BYTES);
    memmove(n->at + at + 1 - moved, n->at + at, (n->count - at) * NAME_BYTES);
    snprintf(n->at[at - moved], NAME_BYTES, "%s", name);
    n->count += 1 - moved;
}

static bool hand_over(struct recording *r, int file, const struct runtime_sink *sink, struct err *why)
{
    struct buf bytes;
    buf_init(&bytes, FILE_MAX);
    bool good = r->port->read(r->port->context, file, &bytes, why);
    if (good && bytes.len > 0) {
        sink->file(sink->context, NULL, &bytes);
    }
    buf_release(&bytes);
    return good;
}

/* Of those that are there all but the last are complete, and that is kept open, for when its name is gone. `whole`: it
 * is handed over, too. Sink null: nothing is, for what was written so far is older than we. */
static bool read_files(struct recording *r, bool whole, const struct runtime_sink *sink, struct err *why)
{
    struct names n = {.count = 0, .from = r->newest};
    char path[PATH_MAX_BYTES + NAME_BYTES];
    bool good = true;
    if (!r->port->list(r->port->context, r->repository, note_name, &n)) {
        return err_set(why, ERR_GONE, 0, "the JVM's recording has ended");
    }
    for (size_t i = 0; i < n.count; i++) {
        int file;
        snprintf(path, sizeof path, "%s/%s", r->repository, n.at[i]);
        if (!r->port->open(r->port->context, path, &file)) {
            continue;
        }
        if (r->file >= 0) {
            r->port->close(r->port->context, r->file);
        }
        r->file = file;
        snprintf(r->newest, sizeof r->newest, "%s", n.at[i]);
        if (sink != NULL && (whole || i + 1 < n.count)) {
            good = hand_over(r, file, sink, why) && good;
        }
    }
    return good;
}

/* ---- the verb ---- */

bool java_meets_all(const struct recording *r)
{
    return r->version >= CPU_TIME_SINCE || (r->target.wanted & RUNTIME_WANTS_CPU) == 0;
}

/* Beginning takes it a second of CPU time in one thread, and then it meets few of so many. */
static bool meets_enough(const struct recording *r, unsigned running, struct err *why)
{
    bool is_crowd = running > RUNNING_MOST && running > CROWD * r->target.processors;
    return java_meets_all(r) || !is_crowd ||
           err_set(why, ERR_UNSUPPORTED, 0, "%u threads run at once, of which its recorder would meet few", running);
}

struct recording *java_record(const struct runtime_target *target, unsigned running, struct err *why)
{
    struct recording *r = calloc(1, sizeof *r);
    if (r == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for a recording");
        return NULL;
    }
    r->port = target->port;
    r->target = *target;
    r->file = -1;
    buf_init(&r->answer, ATTACH_ANSWER_MAX);
    bool is_ready = attach_open(r->port, why) && read_version(r, why) && meets_enough(r, running, why) &&
                    prepare(r, why);
    bool good = is_ready && (r->version >= WORDS_SINCE ? start_by_words(r, why) : start_by_file(r, why)) &&
                find_repository(r, why);
    if (!good) {
        if (is_ready) { /* what was not answered may have been done */
            (void)ask(r, ATTACH_MS, NULL, NULL, "JFR.stop name=" NAME);
        }
        release(r);
        return NULL;
    }
    (void)read_files(r, false, NULL, NULL);
    return r;
}

bool java_read_recording(struct recording *r, bool whole, const struct runtime_sink *sink, struct err *why)
{
    bool is_live = r->version >= LIVE_SINCE;
    return (is_live || ask(r, ATTACH_MS, "Dumped recording", why, "JFR.dump name=" NAME " filename=/dev/null")) &&
           read_files(r, whole, sink, why);
}

/* What is stopped is written to its end first, and then gone but for who has it open. */
void java_stop_recording(struct recording *r, const struct runtime_sink *sink)
{
    bool is_live = r->version >= LIVE_SINCE;
    (void)java_read_recording(r, false, sink, NULL);
    (void)ask(r, ATTACH_MS, NULL, NULL, "JFR.stop name=" NAME);
    if (is_live && r->file >= 0) {
        (void)hand_over(r, r->file, sink, NULL);
    }
    release(r);
}
