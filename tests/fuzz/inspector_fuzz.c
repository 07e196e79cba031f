/*
 * Any process as a node that is asked for a profile by its inspector. The bytes decide what /proc says of it and how
 * each question is answered: as node does, which is what no more bytes mean, by a text that they hold, by a tree that
 * they are the numbers of, by raw bytes instead of a frame, by events before it, late, or not at all; and in pieces of
 * which size. Time moves by waiting, and a little by each reading. Whatever is answered: it ends after a bounded time,
 * nothing stays dialed, a signal is sent to one only that listens nowhere, moments are lines as moments_read.h has
 * them, and where all that was asked was answered as node does the port is closed.
 */
#include "base/cursor.h"
#include "base/json.h"
#include "base/time.h"
#include "encode/moments_read.h"
#include "runtime/v8/inspector.h"
#include "runtime/v8/websocket.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    WAS_OPEN = 1, IS_V6 = 2, COMES_LATE = 4, HAS_WORKERS = 8, WHOLE = 16, OWN_START = 32, IS_SHARED = 64,
    NEVER_COMES = 128, /* flags */
    PORT = 9229, PID = 7, OWN = 32117,
    TICKS = 40, SAYS_MAX = 1 << 22, SENT_MAX = 1 << 20, PROFILE_BYTES = 1 << 20, READS_MAX = 1 << 20, NODES = 64,
    TEXT_BYTES = 256, FINAL = 0x80, PING = 9, PONG = 10,
};

#define STEP_NS NS_PER_MS /* of a reading */
#define TICK_NS (700 * NS_PER_MS)
#define MOST_NS (1500 * NS_PER_S) /* 64 workers that are slow, in each of the ticks */

/* How a question is answered. */
enum way {
    AS_NODE, BY_MESSAGE, BY_RESULT, BY_ERROR, BY_PROFILE, BY_TREE, BY_RAW, BY_SILENCE, BY_CUT, BY_EVENT_FIRST, ATTACHED,
    DETACHED, LEAVES, PINGED, IN_PARTS, LATE, FROM_WORKER, FLOODED, WAYS,
};

struct played {
    struct cursor rest; /* of the bytes */
    unsigned flags;
    size_t step;
    uint64_t now_ns, opened_ns;
    unsigned signals, reads, odd; /* answers that are not node's */
    bool is_dialed, is_web, is_cut, floods;
    struct buf says, heard;
    size_t said;
};

struct question {
    unsigned long long id;
    const char *session; /* "": of the main thread */
    struct str method, params;
};

static void must(bool promise)
{
    if (!promise) {
        abort();
    }
}

static struct str text_of(struct played *n)
{
    size_t len = cursor_u16(&n->rest);
    len = len < n->rest.len ? len : n->rest.len;
    struct str text = {(const char *)n->rest.ptr, len};
    cursor_skip(&n->rest, len);
    return text;
}

static bool is_open(const struct played *n)
{
    return n->now_ns >= n->opened_ns;
}

/* ---- what is seen of it ---- */

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    struct played *n = context;
    bool is_own = (n->flags & OWN_START) != 0 && cursor_u8(&n->rest) % 4 == 1;
    buf_clear(out);
    if (is_own) {
        buf_str(out, text_of(n));
    } else if (strcmp(name, "cmdline") == 0) {
        buf_str(out, STR("node\0shop.js\0"));
    } else if (strcmp(name, "status") == 0) {
        buf_text(out, "Name:\tnode\nState:\tS (sleeping)\n");
    } else if (strcmp(name, "environ") == 0) {
        buf_str(out, STR("A=1\0NODE_OPTIONS=--no-opt\0"));
    } else if (is_open(n) && (strcmp(name, "net/tcp6") == 0) == ((n->flags & IS_V6) != 0)) {
        buf_printf(out, "   0: %s:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 %d 1\n",
                   (n->flags & IS_V6) != 0 ? "00000000000000000000000001000000" : "0100007F", PORT, OWN);
    }
    n->odd += is_own;
    return !out->failed || err_set(err, ERR_LIMIT, 0, "it is too long");
}

static bool send_signal(void *context, int number, struct err *err)
{
    struct played *n = context;
    must(number == SIGUSR1 && (!is_open(n) || n->odd > 0));
    if ((n->flags & OWN_START) != 0 && cursor_u8(&n->rest) % 8 == 1) {
        return err_set(err, cursor_u8(&n->rest) % 2 == 0 ? ERR_UNSUPPORTED : ERR_DENIED, 0, "it has no handler");
    }
    n->signals++;
    n->opened_ns = (n->flags & NEVER_COMES) != 0 ? UINT64_MAX : n->now_ns;
    n->opened_ns += (n->flags & (COMES_LATE | NEVER_COMES)) == COMES_LATE ? NS_PER_S : 0;
    return true;
}

static void pause_for(void *context, uint64_t ms)
{
    struct played *n = context;
    must(ms > 0);
    n->now_ns += ms * NS_PER_MS;
}

static uint64_t now_ns(void *context)
{
    return ((struct played *)context)->now_ns;
}

static bool owns(void *context, uint64_t inode)
{
    (void)context;
    return inode == OWN;
}

static bool shares_network(void *context)
{
    (void)context;
    return true;
}

static bool has_child_with(void *context, const char *variable)
{
    struct played *n = context;
    (void)variable;
    return (n->flags & OWN_START) != 0 && cursor_u8(&n->rest) % 8 == 1;
}

/* ---- what it says ---- */

static void put_frame(struct played *n, unsigned first, struct str text)
{
    buf_byte(&n->says, (char)first);
    unsigned bits = text.len > UINT16_MAX ? 64 : text.len > 125 ? 16 : 0;
    buf_byte(&n->says, (char)(bits == 64 ? 127 : bits == 16 ? 126 : text.len));
    for (unsigned shift = bits; shift > 0; shift -= 8) {
        buf_byte(&n->says, (char)((uint64_t)text.len >> (shift - 8)));
    }
    buf_str(&n->says, text);
}

static void say(struct played *n, struct str text)
{
    put_frame(n, FINAL | 1, text);
}

static void say_of_worker(struct played *n, const char *session, struct str message)
{
    struct buf text;
    buf_init(&text, SAYS_MAX);
    buf_printf(&text, "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"%s\","
                      "\"message\":", session);
    json_text(&text, message);
    buf_text(&text, "}}");
    say(n, buf_slice(&text));
    buf_release(&text);
}

static void answer(struct played *n, const struct question *q, const char *kind, struct str value)
{
    struct buf text;
    buf_init(&text, SAYS_MAX);
    buf_printf(&text, "{\"id\":%llu,\"%s\":", q->id, kind);
    buf_str(&text, value);
    buf_byte(&text, '}');
    if (q->session[0] != '\0') {
        say_of_worker(n, q->session, buf_slice(&text));
    } else {
        say(n, buf_slice(&text));
    }
    buf_release(&text);
}

static void answer_text(struct played *n, const struct question *q, const char *text)
{
    char value[TEXT_BYTES];
    snprintf(value, sizeof value, "{\"result\":{\"type\":\"string\",\"value\":\"%s\"}}", text);
    answer(n, q, "result", str_of(value));
}

static void tell_of_worker(struct played *n, const char *what, unsigned number)
{
    char text[TEXT_BYTES];
    snprintf(text, sizeof text, "{\"method\":\"NodeWorker.%s\",\"params\":{\"sessionId\":\"%u\"}}", what, number);
    say(n, str_of(text));
}

/* Of so many nodes: for each one a byte of its number, of its children's, of its hits, lines and names. */
static void answer_tree(struct played *n, const struct question *q, unsigned nodes)
{
    static const char *const names[] = {"f", "", "(idle)", "(program)", "(root)", "a\\nmoment 1", "\\u0000", "(eval)"};
    static const char *const urls[] = {"", "file:///x%0A%20y", "node:x", "/x\\n1 y"};
    struct buf text;
    buf_init(&text, SAYS_MAX);
    buf_text(&text, "{\"profile\":{\"nodes\":[");
    for (unsigned i = 0; i < nodes; i++) {
        unsigned bits = cursor_u8(&n->rest), id = cursor_u8(&n->rest), children = cursor_u8(&n->rest);
        unsigned hits = cursor_u8(&n->rest), ticks = cursor_u8(&n->rest) % 8;
        buf_printf(&text, "%s{\"id\":%u,\"callFrame\":{\"functionName\":\"%s\",\"url\":\"%s\",\"lineNumber\":%d,"
                          "\"columnNumber\":%u},\"hitCount\":%u,\"children\":[%u,%u],\"positionTicks\":[",
                   i > 0 ? "," : "", id % 16, names[bits % 8], urls[bits >> 3 & 3], (int)(bits >> 5) - 1, 100 * id,
                   hits, children % 16, children >> 4);
        buf_printf(&text, "{\"line\":%u,\"ticks\":%u}]}", bits, ticks);
    }
    buf_text(&text, "]}}");
    answer(n, q, "result", buf_slice(&text));
    buf_release(&text);
}

static const char usual_profile[] =
    "{\"profile\":{\"nodes\":[{\"id\":1,\"callFrame\":{\"functionName\":\"(root)\"},\"hitCount\":0,\"children\":[2]},"
    "{\"id\":2,\"callFrame\":{\"functionName\":\"f\",\"url\":\"file:///x.js\",\"lineNumber\":4,\"columnNumber\":2},"
    "\"hitCount\":3,\"positionTicks\":[{\"line\":6,\"ticks\":2}]}]}}";

static void answer_as_node(struct played *n, const struct question *q)
{
    char text[TEXT_BYTES];
    if (str_eq(q->method, STR("\"Profiler.stop\""))) {
        answer(n, q, "result", str_of(usual_profile));
    } else if (!str_eq(q->method, STR("\"Runtime.evaluate\""))) {
        if (str_eq(q->method, STR("\"NodeWorker.enable\"")) && (n->flags & HAS_WORKERS) != 0) {
            tell_of_worker(n, "attachedToWorker", 1);
            tell_of_worker(n, "attachedToWorker", 2);
        }
        answer(n, q, "result", STR("{}"));
    } else if (memmem(q->params.ptr, q->params.len, "_debugEnd", 9) != NULL) {
        n->opened_ns = UINT64_MAX;
        n->is_cut = true;
    } else if (q->session[0] != '\0') {
        snprintf(text, sizeof text, "%d/task/1%.8s", PID, q->session);
        answer_text(n, q, text);
    } else {
        answer_text(n, q, "7 v20.20.2");
    }
}

/* What is said before node's own answer. */
static void say_first(struct played *n, enum way way)
{
    if (way == BY_EVENT_FIRST) {
        say(n, text_of(n));
    } else if (way == ATTACHED) {
        for (unsigned from = cursor_u8(&n->rest), i = 0; i <= from % 80; i++) {
            tell_of_worker(n, "attachedToWorker", from + i);
        }
    } else if (way == DETACHED) {
        tell_of_worker(n, "detachedFromWorker", cursor_u8(&n->rest) % 4);
    } else if (way == LEAVES) {
        say(n, STR("{\"method\":\"NodeRuntime.waitingForDisconnect\"}"));
    } else if (way == PINGED) {
        put_frame(n, FINAL | PING, text_of(n));
    } else if (way == IN_PARTS) {
        put_frame(n, 1, STR(" "));
        put_frame(n, FINAL | PING, STR("x"));
        put_frame(n, FINAL, STR("{\"id\":0,\"result\":{}}"));
    } else if (way == LATE) {
        n->now_ns += cursor_u8(&n->rest) * 20 * NS_PER_MS;
    } else if (way == FROM_WORKER) {
        char session[TEXT_BYTES];
        snprintf(session, sizeof session, "%u", cursor_u8(&n->rest) % 4);
        say_of_worker(n, session, text_of(n));
    } else if (way == FLOODED) {
        n->floods = true;
    }
}

static void answer_by(struct played *n, const struct question *q, enum way way)
{
    struct buf text;
    buf_init(&text, SENT_MAX);
    if (way == BY_MESSAGE) {
        say(n, text_of(n));
    } else if (way == BY_RESULT || way == BY_ERROR) {
        answer(n, q, way == BY_RESULT ? "result" : "error", text_of(n));
    } else if (way == BY_PROFILE) {
        buf_text(&text, "{\"profile\":{\"nodes\":");
        buf_str(&text, text_of(n));
        buf_text(&text, "}}");
        answer(n, q, "result", buf_slice(&text));
    } else if (way == BY_TREE) {
        answer_tree(n, q, cursor_u8(&n->rest) % NODES);
    } else if (way == BY_RAW) {
        buf_str(&n->says, text_of(n));
    } else if (way == BY_CUT) {
        n->is_cut = true;
    } else if (way != BY_SILENCE) {
        say_first(n, way);
        answer_as_node(n, q);
    }
    buf_release(&text);
}

/* ---- what it hears ---- */

static void hear_question(struct played *n, struct str text, const char *session)
{
    uint64_t id = 0;
    struct question q = {
        .session = session, .method = json_member(text, "method"), .params = json_member(text, "params")};
    must(json_valid(text) && json_u64_of(json_member(text, "id"), &id) && id > 0 && q.method.len > 2);
    q.id = id;
    if (!str_eq(q.method, STR("\"NodeWorker.sendMessageToWorker\""))) {
        enum way way = (enum way)(cursor_u8(&n->rest) % WAYS);
        n->odd += way != AS_NODE;
        answer_by(n, &q, way);
        return;
    }
    struct buf inner, of;
    buf_init(&inner, SENT_MAX);
    buf_init(&of, TEXT_BYTES);
    must(session[0] == '\0' && json_text_of(json_member(q.params, "message"), &inner));
    must(json_text_of(json_member(q.params, "sessionId"), &of) && of.len < 24);
    answer(n, &q, "result", STR("{}"));
    hear_question(n, buf_slice(&inner), buf_cstr(&of)[0] != '\0' ? buf_cstr(&of) : "?");
    buf_release(&inner);
    buf_release(&of);
}

/* A whole one at the front of what was heard: its length; 0: there is none yet. */
static size_t hear_frame(struct played *n)
{
    unsigned char *at = (unsigned char *)n->heard.ptr;
    size_t len = n->heard.len < 2 ? 0 : at[1] & 0x7f, head = len == 127 ? 10 : len == 126 ? 4 : 2;
    if (n->heard.len < head + 4) {
        return 0;
    }
    must((at[0] & FINAL) != 0 && (at[1] & 0x80) != 0 && ((at[0] & 0xf) != PONG || len <= 125));
    for (size_t i = 2; i < head; i++) {
        len = i == 2 ? at[i] : len << 8 | at[i];
    }
    must(n->heard.len < SENT_MAX && !n->heard.failed && len < SENT_MAX);
    if (n->heard.len < head + 4 + len) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        at[head + 4 + i] ^= at[head + i % 4];
    }
    if ((at[0] & 0xf) == 1) {
        hear_question(n, (struct str){(const char *)at + head + 4, len}, "");
    }
    return head + 4 + len;
}

static size_t hear_request(struct played *n)
{
    static const char body[] = "[{\"id\":\"0f\",\"webSocketDebuggerUrl\":\"ws://127.0.0.1:9229/0f2c-b1\"}]";
    const char *end = memmem(n->heard.ptr, n->heard.len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    bool is_list = str_starts(buf_slice(&n->heard), STR("GET /json/list ")), is_own = cursor_u8(&n->rest) % 4 == 1;
    n->odd += is_own;
    if (is_own) {
        buf_str(&n->says, text_of(n));
    } else if (is_list) {
        buf_printf(&n->says, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s", sizeof body - 1, body);
    } else {
        buf_text(&n->says, "HTTP/1.1 101 Switching Protocols\r\n\r\n");
    }
    n->is_cut = is_list;
    n->is_web = !is_list;
    return (size_t)(end - n->heard.ptr) + 4;
}

/* ---- the connection ---- */

static ptrdiff_t stream_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct played *n = context;
    must(n->is_dialed && n->reads++ < READS_MAX && n->now_ns < MOST_NS);
    n->now_ns += STEP_NS;
    if (n->said == n->says.len && n->floods && !n->is_cut) {
        buf_clear(&n->says);
        n->said = 0;
        say(n, STR("{\"id\":1,\"result\":{}}"));
        put_frame(n, FINAL | PING, STR(""));
    }
    if (n->said == n->says.len) {
        n->now_ns = !n->is_cut && deadline_ns > n->now_ns ? deadline_ns : n->now_ns;
        return n->is_cut ? 0 : err_set(err, ERR_NETWORK, ETIMEDOUT, "it is silent") - 1;
    }
    struct str part = str_sub(buf_slice(&n->says), n->said, n->step < len ? n->step : len);
    memcpy(to, part.ptr, part.len);
    n->said += part.len;
    return (ptrdiff_t)part.len;
}

static ptrdiff_t played_write(void *context, const void *from, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct played *n = context;
    size_t used = 1;
    (void)deadline_ns;
    must(n->is_dialed && len > 0);
    if (n->is_cut) {
        return err_set(err, ERR_NETWORK, EPIPE, "it was cut") - 1;
    }
    buf_add(&n->heard, from, len);
    while (used > 0 && n->heard.len > 0 && !n->is_cut) {
        used = n->is_web ? hear_frame(n) : hear_request(n);
        memmove(n->heard.ptr, n->heard.ptr + used, n->heard.len - used);
        n->heard.len -= used;
    }
    return (ptrdiff_t)len;
}

static bool stream_readable(void *context)
{
    struct played *n = context;
    must(n->is_dialed);
    return n->said < n->says.len || n->is_cut || n->floods;
}

static void stream_close(void *context)
{
    struct played *n = context;
    must(n->is_dialed);
    n->is_dialed = false;
}

static bool dial(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err)
{
    struct played *n = context;
    must(!n->is_dialed && deadline_ns > n->now_ns);
    must(n->odd > 0 || (port == PORT && is_v6 == ((n->flags & IS_V6) != 0)));
    if (!is_open(n)) {
        return err_set(err, ERR_NETWORK, ECONNREFUSED, "nobody listens at port %u", port);
    }
    n->is_dialed = true;
    n->is_web = n->is_cut = n->floods = false;
    n->said = 0;
    buf_clear(&n->says);
    buf_clear(&n->heard);
    *out = (struct stream){stream_read, played_write, stream_readable, stream_close, n, {0}, 0};
    return true;
}

/* ---- what comes of it ---- */

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

/* "moment NS", "thread TID WAITS ", "runtime NAME", "LINE FUNCTION". */
static void check_line(struct str line)
{
    uint64_t number;
    struct str rest = line, word = str_cut(&rest, ' ');
    for (size_t i = 0; i < line.len; i++) {
        must((unsigned char)line.ptr[i] >= ' ');
    }
    if (str_eq(word, STR("moment"))) {
        must(str_u64(rest, &number) && number <= 60 * NS_PER_S);
    } else if (str_eq(word, STR("thread"))) {
        must(str_u64(str_cut(&rest, ' '), &number) && number > 0 && number <= UINT32_MAX);
        must(str_eq(rest, STR("0 ")) || str_eq(rest, STR("1 ")));
    } else {
        must(str_eq(word, STR("runtime")) || (str_u64(word, &number) && rest.len > 0));
    }
}

static void take(void *context, const char *type, struct buf *bytes)
{
    (void)type;
    struct profile p = {0};
    struct live live = {.pid = 4711, .start_ticks = 9, .thread = thread_of, .sample = take_sample, .context = &p};
    struct str rest = buf_slice(bytes);
    (void)context;
    must(moments_are(rest));
    while (rest.len > 0 && !bytes->failed) {
        check_line(str_cut(&rest, '\n'));
    }
    must(profile_init(&p, PROFILE_BYTES, NULL));
    moments_read(&p, buf_slice(bytes), FRAME_JS, &live);
    profile_release(&p);
    buf_release(bytes);
    buf_init(bytes, bytes->max);
}

static void collect(struct played *n, const struct process_port *port)
{
    const struct runtime_sink sink = {take, NULL};
    const void *turn = NULL;
    const struct runtime_target target = {.port = port,
                                          .wanted = RUNTIME_WANTS_CPU,
                                          .frequency_hz = cursor_u8(&n->rest),
                                          .peers = (n->flags & IS_SHARED) != 0 ? 5 : 1,
                                          .turn = &turn};
    struct err why = {0};
    void *c = v8_collect(&target, &why);
    must((c != NULL) == (why.kind == ERR_NONE));
    for (unsigned i = 0; c != NULL && i < TICKS; i++) {
        bool goes_on = v8_collect_tick(c, 0);
        must(turn == NULL || turn == c);
        if (!goes_on || i % 8 == 7) {
            why = (struct err){0};
            must(v8_collect_poll(c, (n->flags & WHOLE) != 0, &sink, &why) == goes_on);
            must(goes_on == (why.kind == ERR_NONE));
        }
        n->now_ns += TICK_NS;
    }
    if (c != NULL) {
        v8_collect_stop(c, &sink);
    }
    must(turn == NULL && !n->is_dialed);
    must(n->odd > 0 || is_open(n) == ((n->flags & WAS_OPEN) != 0) || (n->flags & COMES_LATE) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct played n = {.rest = cursor_of(data, size), .now_ns = NS_PER_S};
    const struct process_port port = {
        .pid = 4711,
        .inner_pid = PID,
        .text = read_text,
        .signal = send_signal,
        .pause = pause_for,
        .now_ns = now_ns,
        .owns = owns,
        .shares_network = shares_network,
        .dial = dial,
        .has_child_with = has_child_with,
        .context = &n,
    };
    n.flags = cursor_u8(&n.rest);
    n.step = cursor_u8(&n.rest);
    n.step = n.step == 0 ? SIZE_MAX : n.step;
    n.opened_ns = (n.flags & WAS_OPEN) != 0 ? 0 : UINT64_MAX;
    buf_init(&n.says, SAYS_MAX);
    buf_init(&n.heard, SENT_MAX);
    collect(&n, &port);
    buf_release(&n.says);
    buf_release(&n.heard);
    return 0;
}
