/* The conversation. Each question has a number, which its answer has, too; what the process tells by itself may come in
 * between. A worker is spoken with through the main thread, in messages within messages. What does not answer in
 * time, because it runs native code, is passed over; the one question that is always asked is the last. */
#include "runtime/v8/inspector.h"
#include "base/json.h"
#include "base/time.h"
#include "runtime/v8/websocket.h"

#include <errno.h>
#include <stdio.h>

enum {
    TEXT_MAX = 65536,
    SESSION_BYTES = 24,
    WORKERS_MAX = 64,
    ANSWER_MS = 2000,       /* of the main thread; */
    WORKER_MS = 300,        /* of a worker, whatever it runs; */
    WORKERS_MS = 1000,      /* of all of them: others are asked the next time */
    WORKER_AGE_MS = 1000,   /* of one that is asked: node has crashed where one ended while its profile ran, so that a
                               program that begins one for each task is not asked for each */
    CLOSED_MS = 3000, LOOK_MS = 5,
    TEXT_SHOWN = 120,
};

struct worker {
    char session[SESSION_BYTES];
    uint64_t met_ns;
    uint32_t tid;
    bool runs, is_silent; /* its profile; it did not answer, and is not asked again */
};

struct inspector {
    const struct process_port *port;
    struct inspector_options options;
    struct websocket socket;
    struct buf message, inner; /* the last one, and what it had for us of a worker */
    uint64_t interval_us;
    struct worker workers[WORKERS_MAX];
    size_t worker_count;
    char release[TEXT_SHOWN];    /* "v20.20.2" */
    uint32_t last_id;
    bool is_v6, is_connected;
    bool is_leaving; /* the process, which waits for us; … */
    bool is_cut;     /* … the connection is over */
};

static uint64_t within(const struct inspector *i, uint64_t ms)
{
    return i->port->now_ns(i->port->context) + ms * NS_PER_MS;
}

/* ---- what comes ---- */

static struct worker *worker_of(struct inspector *i, struct str params)
{
    char name[SESSION_BYTES];
    struct buf text;
    buf_init(&text, SESSION_BYTES - 1);
    bool good = json_text_of(json_member(params, "sessionId"), &text) && !text.failed;
    snprintf(name, sizeof name, "%s", good ? buf_cstr(&text) : "");
    buf_release(&text);
    for (size_t n = 0; n < i->worker_count; n++) {
        if (strcmp(i->workers[n].session, name) == 0) {
            return &i->workers[n];
        }
    }
    struct worker *added = good && i->worker_count < WORKERS_MAX ? &i->workers[i->worker_count++] : NULL;
    if (added != NULL) {
        *added = (struct worker){.met_ns = within(i, 0)};
        memcpy(added->session, name, sizeof name);
    }
    return added;
}

static void note_event(struct inspector *i, struct str method, struct str params)
{
    if (str_eq(method, STR("\"NodeRuntime.waitingForDisconnect\""))) {
        i->is_leaving = true;
    } else if (str_eq(method, STR("\"NodeWorker.attachedToWorker\""))) {
        (void)worker_of(i, params);
    } else if (str_eq(method, STR("\"NodeWorker.detachedFromWorker\""))) {
        struct worker *w = worker_of(i, params);
        if (w != NULL) {
            *w = i->workers[--i->worker_count];
        }
    }
}

/* The next message. True: it is an answer, of a worker or (null) of the main thread. */
static bool take_message(struct inspector *i, const struct worker **from, struct str *answer)
{
    *answer = buf_slice(&i->message);
    *from = NULL;
    if (!json_valid(*answer)) {
        return false;
    }
    struct str method = json_member(*answer, "method"), params = json_member(*answer, "params");
    if (!str_eq(method, STR("\"NodeWorker.receivedMessageFromWorker\""))) {
        note_event(i, method, params);
        return method.len == 0;
    }
    *from = worker_of(i, params);
    buf_clear(&i->inner);
    bool good = *from != NULL && json_text_of(json_member(params, "message"), &i->inner) && !i->inner.failed;
    *answer = buf_slice(&i->inner);
    return good && json_valid(*answer) && json_member(*answer, "method").len == 0;
}

/* Is a question to it without use by now? */
static bool is_gone(const struct inspector *i, const struct worker *w, const char *session)
{
    return w != NULL && (i->is_leaving || w >= i->workers + i->worker_count || strcmp(w->session, session) != 0);
}

/* The result of a question; false: it failed, or did not come in time. Who speaks of other things all the time is not
 * listened to for longer than one that is silent. */
static bool wait_for(struct inspector *i, const struct worker *of, uint32_t id, uint64_t deadline_ns,
                     struct str *result, struct err *why)
{
    const struct worker *from;
    struct str answer;
    uint64_t number;
    char session[SESSION_BYTES] = "";
    bool in_time = true;
    if (of != NULL) {
        memcpy(session, of->session, sizeof session);
    }
    while (in_time && !is_gone(i, of, session) && websocket_receive(&i->socket, &i->message, deadline_ns, why)) {
        if (!take_message(i, &from, &answer) || from != of || !json_u64_of(json_member(answer, "id"), &number) ||
            number != id) {
            in_time = within(i, 0) < deadline_ns ||
                      err_set(why, ERR_NETWORK, ETIMEDOUT, "its inspector does not answer");
            continue;
        }
        *result = json_member(answer, "result");
        struct str said = str_sub(json_member(json_member(answer, "error"), "message"), 0, TEXT_SHOWN);
        return result->len > 0 || err_set(why, ERR_UNSUPPORTED, 0, "its inspector says %.*s", (int)said.len, said.ptr);
    }
    return false;
}

/* ---- questions ---- */

static void write_question(struct buf *out, uint32_t id, const char *method, const char *params)
{
    buf_printf(out, "{\"id\":%u,\"method\":\"%s\",\"params\":{%s}}", id, method, params);
}

/* `of`: null, the main thread. */
static bool send(struct inspector *i, const struct worker *of, const char *method, const char *params,
                 uint64_t deadline_ns, struct err *why)
{
    struct buf question, wrapped;
    buf_init(&question, TEXT_MAX);
    buf_init(&wrapped, TEXT_MAX);
    write_question(&question, ++i->last_id, method, params);
    if (of != NULL) {
        buf_printf(&wrapped, "{\"id\":%u,\"method\":\"NodeWorker.sendMessageToWorker\",\"params\":{\"sessionId\":",
                   i->last_id);
        json_text(&wrapped, str_of(of->session));
        buf_text(&wrapped, ",\"message\":");
        json_text(&wrapped, buf_slice(&question));
        buf_text(&wrapped, "}}");
    }
    bool good = !question.failed && !wrapped.failed &&
                websocket_send(&i->socket, buf_slice(of != NULL ? &wrapped : &question), deadline_ns, why);
    buf_release(&question);
    buf_release(&wrapped);
    return good;
}

static bool ask(struct inspector *i, const struct worker *of, const char *method, const char *params,
                struct str *result, struct err *why)
{
    uint64_t deadline_ns = within(i, of != NULL ? WORKER_MS : ANSWER_MS);
    return send(i, of, method, params, deadline_ns, why) && wait_for(i, of, i->last_id, deadline_ns, result, why);
}

/* What is only done. */
static bool tell(struct inspector *i, const struct worker *of, const char *method, const char *params, struct err *why)
{
    struct str result;
    return ask(i, of, method, params, &result, why);
}

/* ---- profiles ---- */

static bool start_profile(struct inspector *i, const struct worker *of, struct err *why)
{
    char interval[TEXT_SHOWN];
    snprintf(interval, sizeof interval, "\"interval\":%llu", (unsigned long long)i->interval_us);
    return tell(i, of, "Profiler.enable", "", why) &&
           tell(i, of, "Profiler.setSamplingInterval", interval, why) && tell(i, of, "Profiler.start", "", why);
}

/* Which thread it runs on, only itself can tell: as "PID/task/TID". */
static uint32_t thread_of(struct inspector *i, const struct worker *w)
{
    static const char params[] =
        "\"expression\":\"require('fs').readlinkSync('/proc/thread-self')\",\"includeCommandLineAPI\":true,"
        "\"returnByValue\":true";
    struct str result;
    struct buf text;
    uint64_t pid = 0, tid = 0;
    buf_init(&text, TEXT_SHOWN);
    if (ask(i, w, "Runtime.evaluate", params, &result, NULL) &&
        json_text_of(json_member(json_member(result, "result"), "value"), &text)) {
        struct str rest = buf_slice(&text);
        struct str process = str_cut(&rest, '/'), word = str_cut(&rest, '/');
        bool good = str_u64(process, &pid) && pid == i->port->inner_pid && str_eq(word, STR("task")) &&
                    str_u64(rest, &tid) && tid <= UINT32_MAX;
        tid = good ? tid : 0;
    }
    buf_release(&text);
    return (uint32_t)tid;
}

/* Workers that came since. An event that comes meanwhile may end one, and move the last to its place. Such as come
 * meanwhile, or were moved while they were asked, are met the next time. */
static void start_workers(struct inspector *i)
{
    uint64_t until_ns = within(i, WORKERS_MS);
    for (size_t n = 0; n < i->worker_count && !i->is_leaving && within(i, 0) < until_ns; n++) {
        struct worker *w = &i->workers[n];
        struct worker asked = *w;
        if (asked.runs || asked.is_silent || within(i, 0) < asked.met_ns + WORKER_AGE_MS * NS_PER_MS) {
            continue;
        }
        bool runs = start_profile(i, w, NULL);
        uint32_t tid = runs && asked.tid == 0 ? thread_of(i, w) : asked.tid;
        if (n < i->worker_count && strcmp(w->session, asked.session) == 0) {
            w->runs = runs;
            w->is_silent = !runs;
            w->tid = tid;
        }
    }
}

static void take_of(struct inspector *i, const struct worker *of, uint32_t tid, uint64_t hit_ns, struct buf *out)
{
    struct str result;
    if (ask(i, of, "Profiler.stop", "", &result, NULL)) {
        cpuprofile_write(json_member(result, "profile"), tid, hit_ns, out);
    }
}

/* From the last worker on: one that ends meanwhile has its place taken by one that was asked before. */
void inspector_take(struct inspector *i, uint64_t hit_ns, struct buf *out)
{
    for (size_t n = i->worker_count; n-- > 0 && !i->is_leaving;) {
        if (n < i->worker_count && i->workers[n].runs) {
            i->workers[n].runs = false;
            take_of(i, &i->workers[n], i->workers[n].tid, hit_ns, out);
        }
    }
    size_t before = out->len;
    take_of(i, NULL, i->port->inner_pid, hit_ns, out);
    if (out->len > before) {
        buf_printf(out, "runtime Node.js %s\n", i->release);
    }
}

void inspector_restart(struct inspector *i)
{
    (void)tell(i, NULL, "Profiler.start", "", NULL);
    start_workers(i);
}

bool inspector_attend(struct inspector *i)
{
    const struct worker *from;
    struct str answer;
    struct err why = {0};
    uint64_t until_ns = within(i, LOOK_MS);
    bool goes_on = true;
    while (goes_on && !i->is_leaving && websocket_has_any(&i->socket)) {
        goes_on = websocket_receive(&i->socket, &i->message, until_ns, &why);
        i->is_cut = !goes_on && why.number != ETIMEDOUT;
        if (goes_on) {
            (void)take_message(i, &from, &answer);
            goes_on = within(i, 0) < until_ns; /* the rest the next time */
        }
    }
    if (!i->is_leaving && !i->is_cut) {
        start_workers(i);
    }
    return !i->is_leaving && !i->is_cut;
}

/* ---- coming and going ---- */

/* Of "ws://127.0.0.1:9229/0f2c…" the end; a JSON text. */
static bool read_path(struct str list, struct buf *out, struct err *why)
{
    struct str first;
    struct buf url;
    buf_init(&url, TEXT_SHOWN);
    bool good = json_valid(list) && json_next(&list, NULL, &first) &&
                json_text_of(json_member(first, "webSocketDebuggerUrl"), &url) &&
                str_starts(buf_slice(&url), STR("ws://"));
    struct str rest = buf_slice(&url);
    for (int slashes = 0; slashes < 3; slashes++) {
        (void)str_cut(&rest, '/');
    }
    for (size_t n = 0; n < rest.len; n++) {
        good = good && (str_digit(rest.ptr[n]) < 16 || rest.ptr[n] == '-');
    }
    buf_byte(out, '/');
    buf_str(out, rest);
    buf_release(&url);
    return (good && rest.len > 0) || err_set(why, ERR_UNSUPPORTED, 0, "what listens at its port is no inspector");
}

/* Where the body is and how long; false: not yet known. */
static bool find_body(const struct buf *answer, size_t *at, uint64_t *len)
{
    static const char end[] = "\r\n\r\n", field[] = "Content-Length: ";
    const char *behind = answer->len > 0 ? memmem(answer->ptr, answer->len, end, sizeof end - 1) : NULL;
    size_t head = behind != NULL ? (size_t)(behind - answer->ptr) : 0;
    const char *told = head > 0 ? memmem(answer->ptr, head, field, sizeof field - 1) : NULL;
    if (told == NULL) {
        return false;
    }
    size_t from = (size_t)(told - answer->ptr) + sizeof field - 1;
    struct str rest = str_sub(buf_slice(answer), from, head - from);
    *at = head + sizeof end - 1;
    return str_u64(str_cut(&rest, '\r'), len) && *len < TEXT_MAX;
}

/* The name that the process is asked by. */
static bool ask_for_path(struct inspector *i, struct buf *out, struct err *why)
{
    char request[TEXT_SHOWN];
    struct buf answer;
    struct stream stream;
    size_t at = 0;
    uint64_t len = 0, deadline_ns = within(i, ANSWER_MS);
    if (!i->port->dial(i->port->context, i->options.port, i->is_v6, deadline_ns, &stream, why)) {
        return false;
    }
    buf_init(&answer, 2 * TEXT_MAX);
    snprintf(request, sizeof request, "GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nConnection: close\r\n\r\n",
             i->options.port);
    bool good = stream_write(&stream, str_of(request), deadline_ns, why);
    while (good && !(find_body(&answer, &at, &len) && answer.len - at >= len)) {
        good = websocket_read(&stream, &answer, deadline_ns, why);
    }
    good = good && read_path(str_sub(buf_slice(&answer), at, (size_t)len), out, why);
    stream.close(stream.context);
    buf_release(&answer);
    return good;
}

static bool connect_to(struct inspector *i, struct err *why)
{
    struct buf path;
    struct stream stream;
    uint64_t deadline_ns = within(i, ANSWER_MS);
    buf_init(&path, TEXT_SHOWN);
    bool good = ask_for_path(i, &path, why) &&
                i->port->dial(i->port->context, i->options.port, i->is_v6, deadline_ns, &stream, why) &&
                websocket_open(&i->socket, &stream, buf_slice(&path), i->options.port, deadline_ns,
                               deadline_ns, why);
    buf_release(&path);
    i->is_connected = good;
    return good;
}

/* The listener is this process's, by its descriptors; and says so. */
static bool is_itself(struct inspector *i, struct err *why)
{
    static const char params[] = "\"expression\":\"process.pid+' '+process.version\",\"returnByValue\":true";
    struct str result;
    struct buf text;
    uint64_t pid = 0;
    buf_init(&text, TEXT_SHOWN);
    bool good = ask(i, NULL, "Runtime.evaluate", params, &result, why);
    bool told = good && json_text_of(json_member(json_member(result, "result"), "value"), &text);
    struct str rest = buf_slice(&text);
    struct str first = str_cut(&rest, ' ');
    good = good && ((told && str_u64(first, &pid) && pid == i->port->inner_pid) ||
                    err_set(why, ERR_UNSUPPORTED, 0, "its inspector says that it is another process"));
    for (size_t n = 0; good && n < rest.len && n + 1 < sizeof i->release; n++) {
        i->release[n] = rest.ptr[n] > ' ' ? rest.ptr[n] : ' ';
    }
    buf_release(&text);
    return good;
}

struct inspector *inspector_enter(const struct process_port *port, const struct inspector_options *o, bool is_v6,
                                  uint64_t interval_us, struct err *why)
{
    struct inspector *i = calloc(1, sizeof *i);
    if (i == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for its inspector");
        return NULL;
    }
    *i = (struct inspector){.port = port, .options = *o, .is_v6 = is_v6, .interval_us = interval_us};
    buf_init(&i->message, WEBSOCKET_MAX);
    buf_init(&i->inner, WEBSOCKET_MAX);
    /* Without the first question a process that ends would wait for us, and not tell. Workers do not wait; some
     * versions crash when one is asked it and ends. */
    if (connect_to(i, why) &&
        tell(i, NULL, "NodeRuntime.notifyWhenWaitingForDisconnect", "\"enabled\":true", why) && is_itself(i, why) &&
        start_profile(i, NULL, why)) {
        (void)tell(i, NULL, "NodeWorker.enable", "\"waitForDebuggerOnStart\":false", NULL);
        return i;
    }
    (void)inspector_leave(i, why); /* that it is still open is told rather than why it was left */
    return NULL;
}

/* The answer is that the connection ends. */
static void ask_to_close(struct inspector *i, uint64_t until_ns)
{
    struct str result;
    (void)send(i, NULL, "Runtime.evaluate", "\"expression\":\"process._debugEnd()\"", until_ns, NULL);
    (void)wait_for(i, NULL, i->last_id, until_ns, &result, NULL);
}

static void disconnect(struct inspector *i)
{
    if (i->is_connected) {
        websocket_close(&i->socket);
    }
    i->is_connected = false;
}

/* By this connection, or where it is none any more by another. */
static bool close_port(struct inspector *i)
{
    uint64_t until_ns = within(i, CLOSED_MS);
    bool is_v6;
    if (i->is_connected && !i->is_cut) {
        ask_to_close(i, until_ns);
    }
    disconnect(i);
    if (inspector_listens(i->port, &i->options, &is_v6) && connect_to(i, NULL)) {
        ask_to_close(i, until_ns);
        disconnect(i);
    }
    bool listens;
    while ((listens = inspector_listens(i->port, &i->options, &is_v6)) && within(i, 0) < until_ns) {
        i->port->pause(i->port->context, LOOK_MS);
    }
    return !listens;
}

bool inspector_leave(struct inspector *i, struct err *why)
{
    unsigned at = i->options.port;
    if (i->options.is_open && i->is_connected && !i->is_leaving) {
        (void)tell(i, NULL, "Profiler.disable", "", NULL);
    }
    bool closed = i->options.is_open || i->is_leaving || close_port(i);
    disconnect(i);
    buf_release(&i->message);
    buf_release(&i->inner);
    free(i);
    return closed || err_set(why, ERR_UNSUPPORTED, 0, "its inspector's port %u is still open, for its main thread does "
                                                      "not answer; it is closed when it does, or ends", at);
}
