/*
 * Asking a node process for a profile by its inspector, without a node: a process that follows a script, with what
 * /proc says of it, its signal, its port and what it answers there in memory. Time is a number that waiting moves
 * forward. What the script says is what nodes of 10 to 26 say; what is asked is kept, a line for each question.
 */
#include "base/json.h"
#include "base/time.h"
#include "memory_stream.h"
#include "runtime/v8/inspector.h"
#include "runtime/v8/websocket.h"
#include "test.h"

#include <signal.h>

#define NEVER UINT64_MAX
#define S NS_PER_S
#define MS NS_PER_MS
#define BEGINS_NS (1000 * S) /* no time of it is 0 */

enum {
    PORT = 9229, PID = 7, OWN = 32117, ANOTHER_S = 4711, /* numbers of sockets */
    LATER_MAX = 4, WORD_BYTES = 64, ASKED_MAX = 1 << 16, SAYS_MAX = 48 << 20, MOMENTS_MAX = 1 << 20,
    FINAL = 0x80, MORE = 0, TEXT = 1, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10,
};

/* How it puts a message into frames. */
enum framing { WHOLE, IN_THREE, BY_64_BITS };

struct question {
    uint64_t id;
    char session[WORD_BYTES], method[WORD_BYTES]; /* session "": of the main thread */
    struct str params;
};

/* What it tells by itself; text null: it ends the connection. */
struct later {
    uint64_t at_ns; /* 0: it is said */
    const char *text;
};

struct played {
    struct process_port port;
    uint64_t now_ns;
    struct str cmdline, environ;
    const char *state, *tcp, *tcp6; /* of its status; lines of others that listen */
    bool is_primary, is_elsewhere;
    enum err_kind refuses;   /* the signal; */
    bool is_untold;          /* because nothing tells whether it handles it; */
    uint64_t opens_after_ns; /* the signal */
    uint64_t opened_ns;      /* NEVER: it will not be open */
    uint16_t opens_at;
    bool is_v6, stays_open;  /* whatever it is told */
    unsigned signals, dials;

    /* the connection that is */
    bool is_dialed, is_web, is_cut;
    int cut_with; /* errno; 0: in order */
    struct buf says, heard;
    size_t said, step; /* bytes of a read at most; 0: all */
    struct str floods; /* what it says again and again */
    enum framing framing;
    unsigned pongs;

    struct str list, upgrade;           /* what it says to GET; null: as node says it */
    const char *identity, *thread;      /* what Runtime.evaluate is; null: as the session's number is */
    const char *profile, *of_worker;
    const char *workers[3];             /* sessions that it tells of when it is asked to; ended by null */
    struct later later[LATER_MAX];
    bool (*answers)(struct played *p, const struct question *q); /* false, or null: as usual */
    struct buf asked;
};

/* ---- what is seen of it ---- */

static bool is_open(const struct played *p)
{
    return p->now_ns >= p->opened_ns;
}

static bool read_text(void *context, const char *name, struct buf *out, struct err *err)
{
    static const char head[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n";
    struct played *p = context;
    bool is_tcp = strcmp(name, "net/tcp") == 0, is_tcp6 = strcmp(name, "net/tcp6") == 0;
    buf_clear(out);
    if (strcmp(name, "cmdline") == 0 || strcmp(name, "environ") == 0) {
        buf_str(out, name[0] == 'c' ? p->cmdline : p->environ);
    } else if (strcmp(name, "status") == 0) {
        buf_printf(out, "Name:\tnode\nUmask:\t0022\nState:\t%s\nTgid:\t7\n", p->state);
    } else if (is_tcp || is_tcp6) {
        buf_printf(out, "%s%s", head, is_tcp ? p->tcp : p->tcp6);
        if (is_open(p) && is_tcp6 == p->is_v6) {
            buf_printf(out, "   9: %s:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 %d 1 "
                            "0000000000000000 100 0 0 10 0\n",
                       is_tcp ? "0100007F" : "00000000000000000000000001000000", p->opens_at, OWN);
        }
    } else {
        return err_set(err, ERR_IO, 0, "there is no %s", name);
    }
    return !out->failed;
}

static bool send_signal(void *context, int number, struct err *err)
{
    struct played *p = context;
    CHECK_INT(number, SIGUSR1);
    if (p->refuses != ERR_NONE) {
        return err_set(err, p->refuses, p->is_untold ? 0 : EPERM, "it may not be sent signal %d", number);
    }
    p->signals++;
    p->opened_ns = p->opens_after_ns == NEVER ? NEVER : p->now_ns + p->opens_after_ns;
    return true;
}

static void pause_for(void *context, uint64_t ms)
{
    struct played *p = context;
    CHECK(ms > 0 && ms <= 20);
    p->now_ns += ms * MS;
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
    return !((struct played *)context)->is_elsewhere;
}

static bool has_child_with(void *context, const char *variable)
{
    CHECK_TEXT(variable, "NODE_UNIQUE_ID");
    return ((struct played *)context)->is_primary;
}

/* ---- what it says ---- */

static void put_frame(struct buf *out, unsigned first, struct str text, bool wide)
{
    buf_byte(out, (char)first);
    unsigned bits = wide || text.len > UINT16_MAX ? 64 : text.len > 125 ? 16 : 0;
    buf_byte(out, (char)(bits == 64 ? 127 : bits == 16 ? 126 : text.len));
    for (unsigned shift = bits; shift > 0; shift -= 8) {
        buf_byte(out, (char)((uint64_t)text.len >> (shift - 8)));
    }
    buf_str(out, text);
}

static void say(struct played *p, struct str text)
{
    if (p->framing == IN_THREE) {
        size_t third = text.len / 3;
        put_frame(&p->says, TEXT, str_sub(text, 0, third), false);
        put_frame(&p->says, FINAL | PING, STR("are you there"), false);
        put_frame(&p->says, MORE, str_sub(text, third, third), false);
        put_frame(&p->says, FINAL | PONG, STR(""), false);
        put_frame(&p->says, FINAL | MORE, str_sub(text, 2 * third, text.len), false);
    } else {
        put_frame(&p->says, FINAL | TEXT, text, p->framing == BY_64_BITS);
    }
}

static void cut(struct played *p, int with)
{
    p->is_cut = true;
    p->cut_with = with;
}

static void tell(struct played *p, const char *text)
{
    if (text == NULL) {
        cut(p, ECONNRESET);
    } else {
        say(p, str_of(text));
    }
}

/* As `kind` "result" or "error", through the main thread where a worker says it. */
static void answer(struct played *p, const struct question *q, const char *kind, const char *value)
{
    struct buf text, wrapped;
    buf_init(&text, SAYS_MAX);
    buf_init(&wrapped, SAYS_MAX);
    buf_printf(&text, "{\"id\":%llu,\"%s\":%s}", (unsigned long long)q->id, kind, value);
    if (q->session[0] != '\0') {
        buf_printf(&wrapped, "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"%s\","
                             "\"message\":", q->session);
        json_text(&wrapped, buf_slice(&text));
        buf_text(&wrapped, "}}");
    }
    say(p, buf_slice(q->session[0] != '\0' ? &wrapped : &text));
    buf_release(&text);
    buf_release(&wrapped);
}

static void answer_text(struct played *p, const struct question *q, const char *text)
{
    char value[256];
    snprintf(value, sizeof value, "{\"result\":{\"type\":\"string\",\"value\":\"%s\"}}", text);
    answer(p, q, "result", value);
}

static void tell_of_worker(struct played *p, const char *what, const char *session)
{
    char text[256];
    snprintf(text, sizeof text, "{\"method\":\"NodeWorker.%s\",\"params\":{\"sessionId\":\"%s\",\"workerInfo\":"
                                "{\"workerId\":\"1\",\"type\":\"worker\"},\"waitingForDebugger\":false}}",
             what, session);
    say(p, str_of(text));
}

static void answer_profile(struct played *p, const struct question *q, const char *profile)
{
    struct buf text;
    buf_init(&text, SAYS_MAX);
    buf_printf(&text, "{\"profile\":%s}", profile);
    answer(p, q, "result", buf_cstr(&text));
    buf_release(&text);
}

static bool is_close(const struct question *q)
{
    return memmem(q->params.ptr, q->params.len, "_debugEnd", 9) != NULL;
}

static void answer_as_usual(struct played *p, const struct question *q)
{
    char thread[WORD_BYTES];
    if (strcmp(q->method, "Profiler.stop") == 0) {
        answer_profile(p, q, q->session[0] != '\0' ? p->of_worker : p->profile);
    } else if (strcmp(q->method, "Runtime.evaluate") == 0 && is_close(q)) {
        p->opened_ns = p->stays_open ? p->opened_ns : NEVER;
        cut(p, 0);
    } else if (strcmp(q->method, "Runtime.evaluate") == 0 && q->session[0] != '\0') {
        snprintf(thread, sizeof thread, "%d/task/1%.20s", PID, q->session);
        answer_text(p, q, p->thread != NULL ? p->thread : thread);
    } else if (strcmp(q->method, "Runtime.evaluate") == 0) {
        answer_text(p, q, p->identity);
    } else {
        for (size_t i = 0; strcmp(q->method, "NodeWorker.enable") == 0 && p->workers[i] != NULL; i++) {
            tell_of_worker(p, "attachedToWorker", p->workers[i]);
        }
        answer(p, q, "result", "{}");
    }
}

/* ---- what it hears ---- */

static void copy_text(struct str value, char out[static WORD_BYTES])
{
    struct buf text;
    buf_init(&text, WORD_BYTES - 1);
    CHECK(json_text_of(value, &text) && !text.failed);
    snprintf(out, WORD_BYTES, "%s", buf_cstr(&text));
    buf_release(&text);
}

static void note(struct played *p, const struct question *q)
{
    const char *which = "";
    if (strcmp(q->method, "Runtime.evaluate") == 0) {
        bool asks_thread = memmem(q->params.ptr, q->params.len, "thread-self", 11) != NULL;
        which = is_close(q) ? " close" : asks_thread ? " thread" : " who";
    }
    buf_printf(&p->asked, "%s%s%s%s\n", q->session, q->session[0] != '\0' ? " " : "", q->method, which);
}

static void hear_question(struct played *p, struct str text, const char *session)
{
    struct question q = {.params = json_member(text, "params")};
    CHECK(json_valid(text) && json_u64_of(json_member(text, "id"), &q.id) && q.id > 0);
    copy_text(json_member(text, "method"), q.method);
    snprintf(q.session, sizeof q.session, "%s", session);
    if (strcmp(q.method, "NodeWorker.sendMessageToWorker") != 0) {
        note(p, &q);
        if (p->answers == NULL || !p->answers(p, &q)) {
            answer_as_usual(p, &q);
        }
        return;
    }
    struct buf inner;
    char of[WORD_BYTES];
    buf_init(&inner, ASKED_MAX);
    copy_text(json_member(q.params, "sessionId"), of);
    CHECK(json_text_of(json_member(q.params, "message"), &inner));
    answer(p, &q, "result", "{}");
    hear_question(p, buf_slice(&inner), of);
    buf_release(&inner);
}

/* A whole one at the front of what was heard: its length; 0: there is none yet. */
static size_t hear_frame(struct played *p)
{
    unsigned char *at = (unsigned char *)p->heard.ptr;
    size_t len = p->heard.len < 2 ? 0 : at[1] & 0x7f, head = len == 127 ? 10 : len == 126 ? 4 : 2;
    if (p->heard.len < head + 4) {
        return 0;
    }
    CHECK((at[0] & FINAL) != 0 && (at[1] & 0x80) != 0); /* masked, as a client's have to be */
    for (size_t i = 2; i < head; i++) {
        len = i == 2 ? at[i] : len << 8 | at[i];
    }
    if (p->heard.len < head + 4 + len) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        at[head + 4 + i] ^= at[head + i % 4];
    }
    struct str text = {(const char *)at + head + 4, len};
    if ((at[0] & 0xf) == PONG) {
        CHECK_STR(text, p->floods.len > 0 ? "" : "are you there");
        p->pongs++;
    } else {
        CHECK_INT(at[0] & 0xf, TEXT);
        hear_question(p, text, "");
    }
    return head + 4 + len;
}

static struct str list_of(const struct played *p)
{
    static char text[512];
    static const char body[] =
        "[ {\n  \"description\": \"node.js instance\",\n  \"id\": \"0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e\",\n"
        "  \"title\": \"shop.js\",\n"
        "  \"webSocketDebuggerUrl\": \"ws://127.0.0.1:9229/0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e\"\n} ]\n\n";
    snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\nContent-Type: application/json; charset=UTF-8\r\n"
                                "Cache-Control: no-cache\r\nContent-Length: %zu\r\n\r\n%s", sizeof body - 1, body);
    return p->list.ptr != NULL ? p->list : str_of(text);
}

static size_t hear_request(struct played *p)
{
    static const struct str upgrade = STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                          "Connection: Upgrade\r\n"
                                          "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    struct str all = buf_slice(&p->heard);
    const char *end = memmem(all.ptr, all.len, "\r\n\r\n", 4);
    if (end == NULL) {
        return 0;
    }
    if (str_starts(all, STR("GET /json/list HTTP/1.1\r\n"))) {
        buf_str(&p->says, list_of(p));
        cut(p, 0);
    } else {
        CHECK(str_starts(all, STR("GET /0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e HTTP/1.1\r\nHost: 127.0.0.1:")));
        CHECK(memmem(all.ptr, all.len, "\r\nUpgrade: websocket\r\n", 22) != NULL);
        buf_str(&p->says, p->upgrade.ptr != NULL ? p->upgrade : upgrade);
        p->is_web = true;
    }
    return (size_t)(end - all.ptr) + 4;
}

/* ---- the connection ---- */

static void tell_what_is_due(struct played *p)
{
    for (size_t i = 0; i < LATER_MAX; i++) {
        if (p->is_web && p->later[i].at_ns != 0 && p->later[i].at_ns <= p->now_ns) {
            p->later[i].at_ns = 0;
            tell(p, p->later[i].text);
        }
    }
}

/* Until something is due, or the deadline. */
static void wait_until(struct played *p, uint64_t deadline_ns)
{
    for (size_t i = 0; i < LATER_MAX; i++) {
        bool is_sooner = p->is_web && p->later[i].at_ns != 0 && p->later[i].at_ns < deadline_ns;
        deadline_ns = is_sooner ? p->later[i].at_ns : deadline_ns;
    }
    p->now_ns = deadline_ns > p->now_ns ? deadline_ns : p->now_ns;
    tell_what_is_due(p);
}

static ptrdiff_t stream_read(void *context, void *to, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct played *p = context;
    tell_what_is_due(p);
    if (p->said == p->says.len && !p->is_cut && p->is_web && p->floods.len > 0) {
        buf_str(&p->says, p->floods);
        p->now_ns += MS / 10;
    }
    if (p->said == p->says.len && !p->is_cut) {
        wait_until(p, deadline_ns);
    }
    if (p->said == p->says.len) {
        int number = p->is_cut ? p->cut_with : ETIMEDOUT;
        return number == 0 ? 0 : err_set(err, ERR_NETWORK, number, "%s", p->is_cut ? "it was cut" : "it is silent") - 1;
    }
    struct str part = str_sub(buf_slice(&p->says), p->said, p->step != 0 && p->step < len ? p->step : len);
    memcpy(to, part.ptr, part.len);
    p->said += part.len;
    return (ptrdiff_t)part.len;
}

static ptrdiff_t played_write(void *context, const void *from, size_t len, uint64_t deadline_ns, struct err *err)
{
    struct played *p = context;
    size_t used = 1;
    (void)deadline_ns;
    if (p->is_cut) {
        return err_set(err, ERR_NETWORK, EPIPE, "it was cut") - 1;
    }
    len = p->step != 0 && p->step < len ? p->step : len;
    buf_add(&p->heard, from, len);
    while (used > 0 && p->heard.len > 0 && !p->is_cut) {
        used = p->is_web ? hear_frame(p) : hear_request(p);
        memmove(p->heard.ptr, p->heard.ptr + used, p->heard.len - used);
        p->heard.len -= used;
    }
    return (ptrdiff_t)len;
}

static bool stream_readable(void *context)
{
    struct played *p = context;
    tell_what_is_due(p);
    return p->said < p->says.len || p->is_cut || (p->is_web && p->floods.len > 0);
}

static void stream_close(void *context)
{
    struct played *p = context;
    CHECK(p->is_dialed);
    p->is_dialed = false;
}

static bool dial(void *context, uint16_t port, bool is_v6, uint64_t deadline_ns, struct stream *out, struct err *err)
{
    struct played *p = context;
    CHECK(!p->is_dialed && deadline_ns > p->now_ns); /* one at a time */
    CHECK(port == p->opens_at && is_v6 == p->is_v6);
    if (!is_open(p)) {
        return err_set(err, ERR_NETWORK, ECONNREFUSED, "nobody listens at port %u", port);
    }
    p->is_dialed = true;
    p->is_web = p->is_cut = false;
    p->dials++;
    p->said = 0;
    buf_clear(&p->says);
    buf_clear(&p->heard);
    *out = (struct stream){stream_read, played_write, stream_readable, stream_close, p, {0}, 0};
    return true;
}

/* ---- a test ---- */

#define OF_CALL(name, url, line, column) \
    "\"callFrame\":{\"functionName\":\"" name "\",\"scriptId\":\"1\",\"url\":\"" url "\",\"lineNumber\":" line \
    ",\"columnNumber\":" column "}"
#define ROOT "{\"id\":1," OF_CALL("(root)", "", "-1", "-1") ",\"hitCount\":0,\"children\":[2,3,4,6,7]}"

static const char usual_profile[] =
    "{\"nodes\":[" ROOT ","
    "{\"id\":2," OF_CALL("(program)", "", "-1", "-1") ",\"hitCount\":2},"
    "{\"id\":3," OF_CALL("(idle)", "", "-1", "-1") ",\"hitCount\":500},"
    "{\"id\":4," OF_CALL("handle", "file:///srv/my%20shop.js", "9", "18") ",\"hitCount\":4,\"children\":[5],"
        "\"positionTicks\":[{\"line\":12,\"ticks\":2},{\"line\":15,\"ticks\":1}]},"
    "{\"id\":5," OF_CALL("", "node:internal/x", "3", "17") ",\"hitCount\":1},"
    "{\"id\":6," OF_CALL("run", "", "0", "4") ",\"hitCount\":1,\"positionTicks\":[{\"line\":3,\"ticks\":1}]},"
    "{\"id\":7," OF_CALL("(garbage collector)", "", "-1", "-1") ",\"hitCount\":1}"
    "],\"startTime\":1,\"endTime\":2}";
static const char usual_of_worker[] =
    "{\"nodes\":[{\"id\":1," OF_CALL("(root)", "", "-1", "-1") ",\"hitCount\":0,\"children\":[2]},"
    "{\"id\":2," OF_CALL("work", "file:///srv/w.mjs", "4", "0") ",\"hitCount\":2,"
        "\"positionTicks\":[{\"line\":6,\"ticks\":2}]}]}";

#define MOMENTS_OF_WORKER(once, twice) "moment " twice "\nthread 11 0 \n6 work /srv/w.mjs:5\n"
#define MOMENTS(once, twice)                                                                     \
    "moment " twice "\nthread 7 1 \n0 (program)\n"                                               \
    "moment " twice "\nthread 7 0 \n12 handle /srv/my shop.js:10\n"                              \
    "moment " once "\nthread 7 0 \n15 handle /srv/my shop.js:10\n"                               \
    "moment " once "\nthread 7 0 \n0 handle /srv/my shop.js:10\n"                                \
    "moment " once "\nthread 7 0 \n0 (anonymous) node:internal/x:4:18\n0 handle /srv/my shop.js:10\n" \
    "moment " once "\nthread 7 0 \n3 run (eval):1\n"                                             \
    "moment " once "\nthread 7 0 \n0 (garbage collector)\n"                                      \
    "runtime Node.js v20.20.2\n"
#define OPENING                                                                                  \
    "NodeRuntime.notifyWhenWaitingForDisconnect\nRuntime.evaluate who\nProfiler.enable\n"        \
    "Profiler.setSamplingInterval\nProfiler.start\nNodeWorker.enable\n"
#define OF_WORKER(name) \
    name " Profiler.enable\n" name " Profiler.setSamplingInterval\n" name " Profiler.start\n"
#define CLOSING "Profiler.stop\nRuntime.evaluate close\n"

/* One that opens its port a moment after the signal, and says the usual. */
static struct played *begin(void)
{
    struct played *p = calloc(1, sizeof *p);
    if (p == NULL) {
        abort();
    }
    *p = (struct played){.now_ns = BEGINS_NS,
                         .cmdline = STR("node\0shop.js\0"),
                         .environ = STR("PATH=/bin\0HOME=/\0"),
                         .state = "S (sleeping)",
                         .tcp = "",
                         .tcp6 = "",
                         .opened_ns = NEVER,
                         .opens_at = PORT,
                         .identity = "7 v20.20.2",
                         .profile = usual_profile,
                         .of_worker = usual_of_worker};
    p->port = (struct process_port){
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
        .context = p,
    };
    buf_init(&p->says, SAYS_MAX);
    buf_init(&p->heard, ASKED_MAX);
    buf_init(&p->asked, ASKED_MAX);
    return p;
}

static void end(struct played *p)
{
    CHECK(!p->is_dialed);
    buf_release(&p->says);
    buf_release(&p->heard);
    buf_release(&p->asked);
    free(p);
}

static void check_asked(struct played *p, const char *asked)
{
    CHECK_TEXT(buf_cstr(&p->asked), asked);
    buf_clear(&p->asked);
}

static void *collect(struct played *p, const void **turn, unsigned peers)
{
    struct err why = {0};
    const struct runtime_target target = {
        .port = &p->port, .frequency_hz = 100, .wanted = RUNTIME_WANTS_CPU, .peers = peers, .turn = turn};
    void *collection = v8_collect(&target, &why);
    CHECK(collection != NULL);
    CHECK_TEXT(why.text, "");
    return collection;
}

/* Ticks until so much time has passed; false: it is over. */
static bool run_for(struct played *p, void *collection, uint64_t ms)
{
    uint64_t until_ns = p->now_ns + ms * MS;
    bool goes_on = v8_collect_tick(collection, 0);
    while (goes_on && p->now_ns < until_ns) {
        uint64_t left_ns = until_ns - p->now_ns;
        p->now_ns += left_ns < 20 * MS ? left_ns : 20 * MS;
        goes_on = v8_collect_tick(collection, 0);
    }
    return goes_on;
}

static void take_text(void *context, const char *type, struct buf *bytes)
{
    CHECK(type == NULL);
    buf_str(context, buf_slice(bytes));
    buf_release(bytes);
}

/* What a poll hands over; `told` is why it is over, "": it goes on. */
static const char *polled(void *collection, bool whole, const char *told)
{
    static struct buf text;
    struct err why = {0};
    buf_release(&text);
    buf_init(&text, MOMENTS_MAX);
    bool goes_on = v8_collect_poll(collection, whole, &(struct runtime_sink){take_text, &text}, &why);
    CHECK(goes_on == (told[0] == '\0'));
    CHECK_TEXT(why.text, told);
    return buf_cstr(&text);
}

static const char *stopped(void *collection)
{
    static struct buf text;
    buf_release(&text);
    buf_init(&text, MOMENTS_MAX);
    v8_collect_stop(collection, &(struct runtime_sink){take_text, &text});
    return buf_cstr(&text);
}

/* ---- before it is asked ---- */

#define NEVER_WITH(flag) "it was started with " flag ", with which node's inspector cannot be used"
static const char shown[] = "its inspector would be opened where other machines reach it; give it an --inspect-port of "
                            "127.0.0.1";

struct start {
    struct str cmdline, environ;
    unsigned port;
    const char *why; /* "": it gets the signal */
};

static void check_starts(const struct start *starts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct played *p = begin();
        struct inspector_options o;
        struct err why = {0};
        int before = test_failures;
        p->cmdline = starts[i].cmdline;
        p->environ = starts[i].environ;
        bool may = inspector_may(&p->port, NULL);
        CHECK_INT(p->signals, 0);
        bool good = inspector_knock(&p->port, &o, &why);
        CHECK(good == (starts[i].why[0] == '\0') && (may || !good));
        CHECK(may == (strstr(starts[i].why, "cannot be used") == NULL));
        CHECK_TEXT(why.text, starts[i].why);
        CHECK_INT(o.port, starts[i].port);
        CHECK_INT(p->signals, good);
        if (test_failures > before) {
            printf("# by start %zu\n", i);
        }
        end(p);
    }
}

static void ports(void)
{
    static const struct start starts[] = {
        {STR("node\0shop.js\0"), STR(""), 9229, ""},
        {STR("node\0--inspect-port=9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect_port=9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect-port\09230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--debug-port=9230\0shop.js"), STR(""), 9230, ""},
        {STR("node\0--inspect=9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect-brk=127.0.0.1:9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect-wait=localhost:9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect-port=[::1]:9230\0shop.js\0"), STR(""), 9230, ""},
        {STR("node\0--inspect-port=localhost\0shop.js\0"), STR(""), 9229, ""},
        {STR("node\0--inspect-port=9230\0--inspect-port=9231\0shop.js\0"), STR(""), 9231, ""},
        {STR("node\0shop.js\0"), STR("A=1\0NODE_OPTIONS=--inspect-port=9230\0B=2\0"), 9230, ""},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=--no-warnings --inspect_port=9230 --no-opt\0"), 9230, ""},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=--inspect-port 9230\0"), 9230, ""},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=--inspect-port  9230\0"), 9230, ""},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=\"--inspect-port=9230\"\0"), 9230, ""},
        {STR("node\0--inspect-port=9231\0shop.js\0"), STR("NODE_OPTIONS=--inspect-port=9230\0"), 9231, ""},
        /* what looks alike */
        {STR("node\0shop.js\0--inspector-port=1\0-inspect-port=1\0inspect-port=1\0"),
         STR("MY_NODE_OPTIONS=--inspect-port=1\0"), 9229, ""},
        {STR("node\0--inspect-port=\0--inspect=\0shop.js\0"), STR("NODE_OPTIONS=\0"), 9229, ""},
        {STR(""), STR(""), 9229, ""},
        /* where others reach it, and where nobody knows */
        {STR("node\0--inspect-port=0.0.0.0:9230\0shop.js\0"), STR(""), 9230, shown},
        {STR("node\0--inspect-port=0.0.0.0\0shop.js\0"), STR(""), 9229, shown},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=--inspect=192.168.0.4:9230\0"), 9230, shown},
        {STR("node\0--inspect-port\0[::]:9230\0shop.js\0"), STR(""), 9230, shown},
        {STR("node\0--inspect-port=99999\0shop.js\0"), STR(""), 9229, shown},
        {STR("node\0--inspect-port=0\0shop.js\0"), STR(""), 0, ""},
        {STR("node\0--inspect=127.0.0.1:0\0shop.js\0"), STR(""), 0, ""},
    };
    check_starts(starts, sizeof starts / sizeof starts[0]);
}

static void flags(void)
{
    static const struct start starts[] = {
        {STR("node\0--permission\0shop.js\0"), STR(""), 9229, NEVER_WITH("--permission")},
        {STR("node\0--experimental-permission\0shop.js\0"), STR(""), 9229, NEVER_WITH("--experimental-permission")},
        {STR("node\0--experimental_permission\0shop.js\0"), STR(""), 9229, NEVER_WITH("--experimental-permission")},
        {STR("node\0--disable-sigusr1\0shop.js"), STR(""), 9229, NEVER_WITH("--disable-sigusr1")},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=--no-opt --disable-sigusr1\0"), 9229,
         NEVER_WITH("--disable-sigusr1")},
        {STR("node\0shop.js\0"), STR("NODE_OPTIONS=\"--permission\"\0"), 9229, NEVER_WITH("--permission")},
        {STR("node\0--inspect-publish-uid=stderr\0shop.js\0"), STR(""), 9229,
         NEVER_WITH("--inspect-publish-uid without http")},
        {STR("node\0--inspect-publish-uid=stderr,http\0shop.js\0"), STR(""), 9229, ""},
        {STR("node\0--inspect-publish-uid=http\0shop.js\0"), STR(""), 9229, ""},
        {STR("node\0--permissions\0--no-permission\0-permission\0shop.js\0permission\0"), STR(""), 9229, ""},
    };
    check_starts(starts, sizeof starts / sizeof starts[0]);
}

static void long_words(void)
{
    struct played *p = begin();
    struct inspector_options o;
    struct buf words;
    buf_init(&words, 1 << 16);
    buf_text(&words, "node --");
    for (unsigned i = 0; i < 1000; i++) {
        buf_byte(&words, 'x');
    }
    buf_text(&words, "=1 --inspect-port=9230");
    for (size_t i = 0; i < words.len; i++) {
        words.ptr[i] = words.ptr[i] == ' ' ? '\0' : words.ptr[i];
    }
    p->cmdline = buf_slice(&words);
    CHECK(inspector_knock(&p->port, &o, NULL));
    CHECK_INT(o.port, 9230);
    buf_release(&words);
    end(p);
}

/* Of a process that is as it is: the reason, whether it is one of now, and no signal. */
static void check_knock(struct played *p, const char *told, int number)
{
    struct inspector_options o;
    struct err why = {0};
    CHECK(!inspector_knock(&p->port, &o, &why));
    CHECK_TEXT(why.text, told);
    CHECK_INT(why.number, number);
    CHECK_INT(p->signals + p->dials, 0);
    end(p);
}

#define LISTENS(address, port, number)                                                        \
    "   0: " address ":" port " 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 " \
    "       0 " number " 1 00\n"

static void not_asked(void)
{
    struct played *p = begin();
    p->is_primary = true;
    CHECK(!inspector_may(&p->port, NULL));
    check_knock(p, "it is the primary of a cluster, which would open its workers' inspectors, too; the workers are "
                   "asked", 0);
    p = begin();
    p->is_elsewhere = true; /* what it opened could not be closed from here */
    check_knock(p, "it is in another network namespace; run pillion in its container or pod", 0);
    for (const char *state = "Tt"; *state != '\0'; state++) {
        char text[] = "T (stopped)";
        text[0] = *state;
        p = begin();
        p->state = text;
        check_knock(p, "it is stopped", EAGAIN);
    }
    p = begin();
    p->refuses = ERR_UNSUPPORTED; /* it has no handler yet */
    check_knock(p, "it may not be sent signal 10", EAGAIN);
    p = begin();
    p->refuses = ERR_DENIED;
    check_knock(p, "it may not be sent signal 10", EPERM);
    p = begin();
    p->refuses = ERR_DENIED;
    p->is_untold = true;
    check_knock(p, "it may not be sent signal 10; start it with --inspect", 0);
}

static void taken(void)
{
    static const char *const all[][2] = {
        {LISTENS("0100007F", "240D", "4711"), ""},
        {LISTENS("0100007F", "1F90", "4711") LISTENS("00000000", "240D", "4711"), ""},
        {"", LISTENS("00000000000000000000000000000000", "240D", "4711")},
        {"", LISTENS("0000000000000000FFFF00000100007F", "240D", "4711")},
        {"", LISTENS("00000000000000000000000001000000", "240D", "4711")},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct played *p = begin();
        p->tcp = all[i][0];
        p->tcp6 = all[i][1];
        check_knock(p, "port 9229, where its inspector would be, is taken", EAGAIN);
    }
}

/* Other addresses, other ports, connections, and what is no line. */
static void not_taken(void)
{
    static const char lines[] =
        LISTENS("0401A8C0", "240D", "4711") LISTENS("0100007F", "240E", "4711")
        "   1: 0100007F:240D 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4711 1\n"
        "   2: 0100007F:240D\n\n   3: 0100007F:240D 00000000:0000 0A 0 0 0 0 0 x 1\n 0100007F 240D\n"
        "   4: 0100007F:1240D 00000000:0000 0A 0 0 0 0 0 4711 1\n";
    struct played *p = begin();
    struct inspector_options o;
    p->tcp = lines;
    CHECK(inspector_knock(&p->port, &o, NULL));
    CHECK_INT(p->signals, 1);
    CHECK(!o.is_open);
    end(p);
}

/* Many services of one machine listen, and ours is behind them. */
static void among_many(void)
{
    struct played *p = begin();
    struct inspector_options o;
    struct buf lines;
    bool is_v6 = true;
    buf_init(&lines, 1 << 20);
    for (unsigned i = 0; i < 1500; i++) {
        buf_printf(&lines, "%4u: 00000000:%04X 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 %u 1\n", i,
                   20000 + i, 50000 + i);
    }
    p->tcp = buf_cstr(&lines);
    CHECK(inspector_knock(&p->port, &o, NULL));
    CHECK(inspector_listens(&p->port, &o, &is_v6) && !is_v6);
    buf_release(&lines);
    end(p);
}

/* ---- sessions ---- */

static void whole_session(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->opens_after_ns = 10 * S;
    p->workers[0] = "1";
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 5000) && turn == c);
    CHECK_INT(p->dials, 0);
    CHECK(run_for(p, c, 5000));
    check_asked(p, OPENING);
    CHECK(run_for(p, c, 1100)); /* a worker is asked when it has lived for a second */
    check_asked(p, OF_WORKER("1") "1 Runtime.evaluate thread\n");
    CHECK(run_for(p, c, 8800));
    check_asked(p, "");
    CHECK_TEXT(polled(c, false, ""), "");
    CHECK(is_open(p) && p->is_dialed && turn == c);
    CHECK(run_for(p, c, 100));
    check_asked(p, "1 Profiler.stop\n" CLOSING);
    CHECK(!is_open(p) && !p->is_dialed && turn == NULL);
    CHECK_TEXT(polled(c, false, ""), MOMENTS_OF_WORKER("20000000", "40000000") MOMENTS("20000000", "40000000"));
    CHECK_TEXT(polled(c, true, ""), "");

    /* another one after 20 s, for 40 s of which it was open for 10 */
    CHECK(run_for(p, c, 19900));
    CHECK_INT(p->signals, 1);
    CHECK(run_for(p, c, 20100));
    CHECK_INT(p->signals, 2);
    CHECK_INT(p->dials, 4);
    CHECK(!is_open(p));
    CHECK_TEXT(polled(c, false, ""), MOMENTS_OF_WORKER("40000000", "80000000") MOMENTS("40000000", "80000000"));
    CHECK_TEXT(stopped(c), "");
    end(p);
}

/* Of three processes each has a third of the time; of many, a second. */
static void shared_session(void)
{
    static const struct {
        unsigned peers;
        uint64_t ms;
    } shares[] = {{0, 10000}, {3, 3333}, {10, 1000}, {100, 1000}};
    for (size_t i = 0; i < sizeof shares / sizeof shares[0]; i++) {
        struct played *p = begin();
        const void *turn = NULL;
        void *c = collect(p, &turn, shares[i].peers);
        CHECK(run_for(p, c, shares[i].ms - 20) && is_open(p));
        CHECK(run_for(p, c, 60) && !is_open(p));
        CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
        end(p);
    }
}

static void other_wants(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    struct err why = {0};
    struct runtime_target target = {.port = &p->port, .wanted = RUNTIME_WANTS_ALLOC, .turn = &turn};
    CHECK(v8_collect(&target, &why) == NULL);
    CHECK_TEXT(why.text, "its inspector is asked for CPU time only");
    p->is_primary = true;
    target.wanted = RUNTIME_WANTS_CPU;
    CHECK(v8_collect(&target, &why) == NULL && strstr(why.text, "primary of a cluster") != NULL);
    CHECK_INT(p->signals, 0);
    end(p);
}

static void open_before(void)
{
    for (int is_v6 = 0; is_v6 < 2; is_v6++) {
        struct played *p = begin();
        const void *turn = NULL;
        p->opened_ns = 0;
        p->is_v6 = is_v6;
        p->cmdline = STR("node\0--inspect=0.0.0.0\0shop.js\0"); /* whoever reaches it, it is so already */
        void *c = collect(p, &turn, 1);
        CHECK(run_for(p, c, 10100));
        check_asked(p, OPENING "Profiler.stop\nProfiler.disable\n");
        CHECK(is_open(p) && !p->is_dialed && turn == NULL);
        CHECK_INT(p->signals, 0);
        CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
        end(p);
    }
}

static void asked_again(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->refuses = ERR_UNSUPPORTED;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 3000) && turn == NULL);
    CHECK_TEXT(polled(c, true, ""), "");
    p->refuses = ERR_NONE;
    p->tcp = LISTENS("0100007F", "240D", "4711");
    CHECK(run_for(p, c, 3000) && turn == NULL);
    p->tcp = "";
    p->state = "T (stopped)";
    CHECK(run_for(p, c, 3000) && turn == NULL);
    CHECK_INT(p->signals, 0);
    p->state = "R (running)";
    CHECK(run_for(p, c, 600) && turn == c);
    CHECK_INT(p->signals, 1);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL && !is_open(p));
    end(p);
    p = begin();
    p->refuses = ERR_DENIED;
    c = collect(p, &turn, 1);
    CHECK(!run_for(p, c, 1000));
    CHECK_TEXT(polled(c, true, "it may not be sent signal 10"), "");
    CHECK_TEXT(stopped(c), "");
    CHECK(turn == NULL);
    end(p);
}

static void never_opens(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->opens_after_ns = NEVER;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 29900) && turn == c);
    CHECK_TEXT(polled(c, true, ""), "");
    CHECK(!run_for(p, c, 200) && turn == NULL);
    CHECK_TEXT(polled(c, false, "it opened no inspector; has it a handler of its own for SIGUSR1?"), "");
    CHECK(!run_for(p, c, 200)); /* nor later */
    CHECK_INT(p->signals, 1);
    CHECK_INT(p->dials, 0);
    CHECK_TEXT(stopped(c), "");
    end(p);
}

static const char left_open[] = "its inspector's port 9229 is still open, for its main thread does not answer; it is "
                                "closed when it does, or ends";

/* What speaks at its port, and how that ends. */
static void check_enter(struct played *p, const char *told)
{
    const void *turn = NULL;
    void *c = collect(p, &turn, 1);
    CHECK(!run_for(p, c, 20000) && turn == NULL);
    CHECK_TEXT(polled(c, false, told), "");
    CHECK(is_open(p) == (told == left_open) && p->signals == 1);
    CHECK_TEXT(stopped(c), "");
    end(p);
}

static bool refuses_profiler(struct played *p, const struct question *q)
{
    if (strcmp(q->method, "Profiler.start") == 0) {
        answer(p, q, "error", "{\"code\":-32000,\"message\":\"No such thing\"}");
        return true;
    }
    return false;
}

static bool ignores(struct played *p, const struct question *q)
{
    (void)p;
    return !is_close(q);
}

static void not_the_right_one(void)
{
    static const char other[] = "its inspector says that it is another process";
    static const char *const identities[] = {"8 v20.20.2", "", "v20.20.2", "7v20.20.2", "-7 v20.20.2", "\\u00007 v1"};
    for (size_t i = 0; i < sizeof identities / sizeof identities[0]; i++) {
        struct played *p = begin();
        p->identity = identities[i];
        check_enter(p, other);
    }
    struct played *p = begin();
    p->answers = refuses_profiler;
    check_enter(p, "its inspector says \"No such thing\"");
    p = begin();
    p->answers = ignores;
    check_enter(p, "it is silent");
    p = begin();
    p->answers = ignores;
    p->stays_open = true;
    check_enter(p, left_open);
}

/* The answer to GET. */
static struct str list_saying(const char *body)
{
    static char text[512];
    snprintf(text, sizeof text, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
    return str_of(text);
}

#define URL(url) "[{\"webSocketDebuggerUrl\":\"" url "\"}]"

/* Of one that was open before, which is let alone. */
static void check_list(struct str list, const char *told)
{
    struct played *p = begin();
    struct inspector_options o;
    struct err why = {0};
    p->opened_ns = 0;
    p->list = list;
    CHECK(inspector_knock(&p->port, &o, &why) && o.is_open);
    CHECK(inspector_enter(&p->port, &o, false, 10000, &why) == NULL);
    CHECK_TEXT(why.text, told);
    CHECK(is_open(p) && p->signals == 0 && p->dials == 1);
    end(p);
}

static void no_inspector(void)
{
    static const char *const bodies[] = {
        "[]", "[}", "", "{}", "[{}]", "[7]", URL(""), URL("ws://127.0.0.1:9229/a z"), URL("wss://127.0.0.1:9229/a-0"),
        URL("ws://127.0.0.1:9229/"), URL("ws://127.0.0.1:9229"), URL("ws://h/0\\r\\nHost: x\\r\\n\\r\\n"),
    };
    static const struct str answers[] = {
        STR("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n[]"), STR("HTTP/1.0 200 OK\r\n\r\n[]"), STR("\r\n\r\n"),
        STR("HTTP/1.0 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n[]"), STR("SSH-2.0-OpenSSH_9.2\r\n"),
        STR("HTTP/1.0 200 OK\r\nContent-Length: 70000\r\n\r\n[]"), STR("Content-Length: 2\r\n\r"), STR(""),
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct played *p = begin();
        p->list = list_saying(bodies[i]);
        check_enter(p, left_open);
        check_list(list_saying(bodies[i]), "what listens at its port is no inspector");
    }
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct played *p = begin();
        p->list = answers[i];
        check_enter(p, left_open);
        check_list(answers[i], "its inspector closed the connection");
    }
    struct played *p = begin();
    p->upgrade = STR("HTTP/1.0 400 Bad Request\r\n\r\n");
    check_enter(p, left_open);
}

static void stays_open(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->stays_open = true;
    void *c = collect(p, &turn, 1);
    CHECK(!run_for(p, c, 20000) && turn == NULL);
    CHECK(strstr(polled(c, false, left_open), "0 (program)\n") != NULL);
    CHECK_INT(p->signals, 1);
    CHECK_TEXT(stopped(c), "");
    end(p);
}

static void waits_for_us(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->later[0] = (struct later){BEGINS_NS + 3 * S, "{\"method\":\"NodeRuntime.waitingForDisconnect\"}"};
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 2980));
    check_asked(p, OPENING);
    CHECK(run_for(p, c, 20) && !p->is_dialed); /* in the same look */
    check_asked(p, "Profiler.stop\n");
    CHECK_INT(p->now_ns - BEGINS_NS, 3 * S);
    CHECK(strstr(polled(c, false, ""), "\nruntime Node.js v20.20.2\n") != NULL);
    p->opened_ns = NEVER;
    CHECK_TEXT(stopped(c), "");
    end(p);
}

/* It says so while it is asked for something else, a worker first. */
static bool leaves_meanwhile(struct played *p, const struct question *q)
{
    if (strcmp(q->session, "1") == 0) {
        tell(p, "{\"method\":\"NodeRuntime.waitingForDisconnect\",\"params\":{}}");
    }
    return q->session[0] != '\0';
}

static void waits_for_us_meanwhile(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->workers[0] = "1";
    p->workers[1] = "2";
    p->answers = leaves_meanwhile;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 1040) && !p->is_dialed);
    check_asked(p, OPENING "1 Profiler.enable\nProfiler.stop\n");
    CHECK(p->now_ns - BEGINS_NS <= 1040 * MS);
    p->opened_ns = NEVER;
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    end(p);
}

static void is_cut(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->later[0] = (struct later){BEGINS_NS + 3 * S, NULL};
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 3000) && turn == NULL);
    check_asked(p, OPENING "Runtime.evaluate close\n");
    CHECK(!is_open(p) && !p->is_dialed);
    CHECK_INT(p->dials, 4);
    CHECK_TEXT(polled(c, false, ""), "");
    CHECK(run_for(p, c, 20100)); /* another session */
    CHECK_INT(p->signals, 2);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    end(p);
}

/* While it is asked for its profile. */
static bool cuts_at_stop(struct played *p, const struct question *q)
{
    if (strcmp(q->method, "Profiler.stop") == 0) {
        buf_add(&p->says, "\x81\x7f\0\0", 4); /* in the middle of a frame */
        cut(p, 0);
        return true;
    }
    return false;
}

static void is_cut_meanwhile(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->answers = cuts_at_stop;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 10100));
    check_asked(p, OPENING CLOSING);
    CHECK(!is_open(p) && p->dials == 4);
    CHECK_TEXT(stopped(c), "");
    end(p);
}

/* It runs native code until it is asked to close, which it then does. */
static bool is_busy_at_stop(struct played *p, const struct question *q)
{
    (void)p;
    return strcmp(q->method, "Profiler.stop") == 0;
}

static void does_not_answer(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->answers = is_busy_at_stop;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 10020) && !is_open(p));
    CHECK_INT(p->now_ns - BEGINS_NS, 12020 * MS);
    CHECK_TEXT(polled(c, false, ""), "");
    CHECK_TEXT(stopped(c), "");
    end(p);
}

/* ---- workers ---- */

static bool worker_is_busy(struct played *p, const struct question *q)
{
    (void)p;
    return strcmp(q->session, "1") == 0;
}

static void silent_worker(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->workers[0] = "1";
    p->workers[1] = "2";
    p->answers = worker_is_busy;
    p->of_worker = "{\"nodes\":[]}";
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 1040));
    check_asked(p, OPENING "1 Profiler.enable\n" OF_WORKER("2") "2 Runtime.evaluate thread\n");
    CHECK_INT(p->now_ns - BEGINS_NS, 1320 * MS);
    CHECK(run_for(p, c, 10000)); /* it is not asked again */
    check_asked(p, "2 Profiler.stop\n" CLOSING);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    end(p);
}

/* The first of three ends while the last is asked, which takes the first's place. */
static bool first_ends_meanwhile(struct played *p, const struct question *q)
{
    if (strcmp(q->session, "2") == 0 && strcmp(q->method, "Profiler.start") == 0 && p->workers[0] != NULL) {
        p->workers[0] = NULL;
        tell_of_worker(p, "detachedFromWorker", "1");
    }
    return false;
}

static void worker_ends_meanwhile(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->workers[0] = "1";
    p->workers[1] = "2";
    p->answers = first_ends_meanwhile;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 1060));
    check_asked(p, OPENING OF_WORKER("1") "1 Runtime.evaluate thread\n" OF_WORKER("2")
                /* once more, where it is now */
                OF_WORKER("2") "2 Runtime.evaluate thread\n");
    CHECK(run_for(p, c, 10000));
    check_asked(p, "2 Profiler.stop\n" CLOSING);
    CHECK(strstr(stopped(c), "thread 12 0 \n6 work ") != NULL);
    end(p);
}

/* It ends when it is asked for its profile; the other one's is not taken for its. */
static bool ends_at_stop(struct played *p, const struct question *q)
{
    bool ends = strcmp(q->session, "1") == 0 && strcmp(q->method, "Profiler.stop") == 0;
    if (ends) {
        tell_of_worker(p, "detachedFromWorker", "1");
    }
    return ends;
}

#define EVENT(what, session) "{\"method\":\"NodeWorker." what "\",\"params\":{\"sessionId\":\"" session "\"}}"

static void worker_ends(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->workers[0] = "1";
    p->answers = ends_at_stop;
    p->later[0] = (struct later){BEGINS_NS + 2 * S, EVENT("attachedToWorker", "3")};
    p->later[1] = (struct later){BEGINS_NS + 4 * S, EVENT("attachedToWorker", "4")};
    p->later[2] = (struct later){BEGINS_NS + 5 * S, EVENT("detachedFromWorker", "3")};
    p->later[3] = (struct later){BEGINS_NS + 6 * S, EVENT("detachedFromWorker", "9")};
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 9900));
    check_asked(p, OPENING OF_WORKER("1") "1 Runtime.evaluate thread\n" OF_WORKER("3") "3 Runtime.evaluate thread\n"
                OF_WORKER("4") "4 Runtime.evaluate thread\n");
    uint64_t before_ns = p->now_ns;
    CHECK(run_for(p, c, 120));
    CHECK(p->now_ns - before_ns < 300 * MS); /* nobody waited for it */
    const char *moments = stopped(c);
    CHECK(strstr(moments, "thread 11 ") == NULL && strstr(moments, "thread 13 ") == NULL);
    CHECK(strstr(moments, "thread 14 ") != NULL);
    end(p);
}

/* Node may crash where a worker ends while its profile runs: one that does not live for a second is not asked. */
static void short_workers(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->later[0] = (struct later){BEGINS_NS + 2 * S, EVENT("attachedToWorker", "3")};
    p->later[1] = (struct later){BEGINS_NS + 2900 * MS, EVENT("attachedToWorker", "4")};
    p->later[2] = (struct later){BEGINS_NS + 2950 * MS, EVENT("detachedFromWorker", "3")}; /* "4" has its place then */
    p->later[3] = (struct later){BEGINS_NS + 3850 * MS, EVENT("detachedFromWorker", "4")};
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 9900));
    check_asked(p, OPENING);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    end(p);
}

/* More than there is room for, and such as have no name that could be one. */
static void many_workers(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 20));
    buf_clear(&p->asked);
    p->of_worker = "{}";
    tell(p, "{\"method\":\"NodeWorker.attachedToWorker\"}");
    tell(p, "{\"method\":\"NodeWorker.attachedToWorker\",\"params\":{\"sessionId\":7}}");
    tell_of_worker(p, "attachedToWorker", "a name of more than twenty-three bytes");
    tell_of_worker(p, "detachedFromWorker", "a name of more than twenty-three bytes");
    for (unsigned i = 0; i < 100; i++) {
        char name[WORD_BYTES];
        snprintf(name, sizeof name, "%u", i + 1);
        tell_of_worker(p, "attachedToWorker", name);
    }
    CHECK(run_for(p, c, 1500));
    CHECK(strstr(buf_cstr(&p->asked), "64 Profiler.start\n") != NULL);
    CHECK(strstr(buf_cstr(&p->asked), "65 ") == NULL);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    end(p);
}

/* Which thread it is, it does not tell, or of another process: what it runs is not told, then. */
static void thread_of_worker(void)
{
    static const char *const texts[] = {"8/task/11", "7/task/", "7/task/99999999999", "7/tusk/11", "7", "",
                                        "7/task/11/x", "7/task/0", "7/task/11"};
    size_t count = sizeof texts / sizeof texts[0];
    for (size_t i = 0; i < count; i++) {
        struct played *p = begin();
        const void *turn = NULL;
        p->workers[0] = "1";
        p->thread = texts[i];
        void *c = collect(p, &turn, 1);
        CHECK(run_for(p, c, 2000));
        const char *moments = stopped(c);
        CHECK((strstr(moments, "thread 11 0 \n6 work ") != NULL) == (i == count - 1));
        CHECK((strstr(moments, "6 work ") != NULL) == (i == count - 1));
        CHECK(strstr(moments, "0 (program)\n") != NULL);
        end(p);
    }
}

/* ---- windows, ends, turns ---- */

static void polled_whole(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->opens_after_ns = 0;
    p->opened_ns = 0;
    p->workers[0] = "1";
    void *c = collect(p, &turn, 1);
    CHECK_TEXT(polled(c, true, ""), ""); /* nothing has begun */
    CHECK(run_for(p, c, 20)); /* it is asked at once, and met open 20 ms later */
    CHECK(run_for(p, c, 1980));
    buf_clear(&p->asked);
    CHECK(run_for(p, c, 3000));
    CHECK_TEXT(polled(c, false, ""), "");
    check_asked(p, "");
    const char *moments = polled(c, true, "");
    CHECK(strstr(moments, "moment 20080320\nthread 11 0 \n6 work ") != NULL); /* 5 s, of which 4.98 */
    check_asked(p, "1 Profiler.stop\nProfiler.stop\nProfiler.start\n" OF_WORKER("1"));
    CHECK(run_for(p, c, 3000));
    CHECK_TEXT(polled(c, true, ""), MOMENTS_OF_WORKER("10000000", "20000000") MOMENTS("10000000", "20000000"));
    CHECK(run_for(p, c, 2040) && !p->is_dialed); /* the session is no longer for it */
    CHECK_TEXT(polled(c, true, ""), MOMENTS_OF_WORKER("10000000", "20000000") MOMENTS("10000000", "20000000"));
    CHECK_TEXT(stopped(c), "");
    end(p);
}

static void stopped_before_it_opens(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    p->opens_after_ns = 100 * MS;
    CHECK_TEXT(stopped(collect(p, &turn, 1)), ""); /* nothing has begun */
    CHECK_INT(p->signals, 0);
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 40) && turn == c);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    CHECK(!is_open(p) && p->signals == 1 && turn == NULL);
    CHECK(p->now_ns - BEGINS_NS < 200 * MS);
    check_asked(p, OPENING CLOSING);
    c = collect(p, &turn, 1);
    p->opens_after_ns = NEVER;
    CHECK(run_for(p, c, 20));
    uint64_t before_ns = p->now_ns;
    CHECK_TEXT(stopped(c), "");
    CHECK(p->now_ns - before_ns >= 2 * S && p->now_ns - before_ns < 2100 * MS && turn == NULL);
    end(p);
}

static void stopped_while_it_is_open(void)
{
    struct played *p = begin();
    const void *turn = NULL;
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 1000) && is_open(p));
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL);
    CHECK(!is_open(p) && turn == NULL);
    end(p);
    p = begin();
    p->opens_after_ns = 100 * MS;
    p->identity = "8 v20.20.2"; /* it opens while we stop, and is another */
    c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 20));
    CHECK_TEXT(stopped(c), "");
    CHECK(!is_open(p) && turn == NULL);
    end(p);
    p = begin();
    c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 10100) && !is_open(p)); /* between sessions */
    buf_clear(&p->asked);
    CHECK(strstr(stopped(c), "0 (program)\n") != NULL); /* nobody has taken them yet */
    check_asked(p, "");
    end(p);
}

/* Two of one machine, and time that they share. */
static void turns(void)
{
    struct played *p[2] = {begin(), begin()};
    const void *turn = NULL;
    void *c[2];
    unsigned open_at_once = 0, sessions[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        p[i]->opens_after_ns = 40 * MS;
        c[i] = collect(p[i], &turn, 2);
    }
    for (uint64_t at_ns = BEGINS_NS; at_ns < BEGINS_NS + 60 * S; at_ns += 20 * MS) {
        for (size_t i = 0; i < 2; i++) {
            p[i]->now_ns = at_ns;
            CHECK(v8_collect_tick(c[i], 0));
        }
        open_at_once += is_open(p[0]) && is_open(p[1]);
    }
    for (size_t i = 0; i < 2; i++) {
        sessions[i] = p[i]->signals;
        CHECK(turn != c[i] || is_open(p[i]));
        CHECK(strstr(stopped(c[i]), "0 (program)\n") != NULL);
        CHECK(!is_open(p[i]));
        end(p[i]);
    }
    CHECK_INT(open_at_once, 0);
    CHECK_INT(sessions[0], 3); /* 5 s in 25 */
    CHECK_INT(sessions[1], 3);
    CHECK(turn == NULL);
}

/* One that is over, or stops, gives its turn to the other. */
static void turns_are_given(void)
{
    struct played *p[2] = {begin(), begin()};
    const void *turn = NULL;
    p[0]->opens_after_ns = NEVER;
    void *c[2] = {collect(p[0], &turn, 2), collect(p[1], &turn, 2)};
    CHECK(run_for(p[0], c[0], 1000) && turn == c[0]);
    CHECK(run_for(p[1], c[1], 1000) && p[1]->signals == 0);
    CHECK(!run_for(p[0], c[0], 30000) && turn == NULL);
    CHECK(run_for(p[1], c[1], 100) && turn == c[1]);
    CHECK_TEXT(stopped(c[0]), "");
    CHECK(turn == c[1]);
    CHECK(strstr(stopped(c[1]), "0 (program)\n") != NULL);
    CHECK(turn == NULL);
    end(p[0]);
    end(p[1]);
}

/* ---- frames ---- */

/* However it puts its messages into frames, and in whichever pieces they come. */
static void framings(void)
{
    static const size_t steps[] = {0, 1, 3, 1000};
    for (size_t i = 0; i < 12; i++) {
        struct played *p = begin();
        const void *turn = NULL;
        p->framing = (enum framing)(i / 4);
        p->step = steps[i % 4];
        p->opens_after_ns = 10 * S;
        p->workers[0] = "1";
        void *c = collect(p, &turn, 1);
        CHECK(run_for(p, c, 20000) && !is_open(p));
        CHECK((p->pongs > 10) == (p->framing == IN_THREE));
        CHECK_TEXT(stopped(c), MOMENTS_OF_WORKER("20000000", "40000000") MOMENTS("20000000", "40000000"));
        end(p);
    }
}

#define SWITCHES "HTTP/1.1 101 Switching Protocols\r\n\r\n"

/* A connection of such frames. */
static struct websocket open_web(struct memory_stream *m, const struct buf *frames, size_t step)
{
    static struct buf says;
    struct websocket w;
    struct stream stream = memory_stream_of(m);
    buf_release(&says);
    buf_init(&says, SAYS_MAX);
    buf_text(&says, SWITCHES);
    buf_str(&says, buf_slice(frames));
    memory_init(m, "");
    m->says = buf_slice(&says);
    m->step = step;
    m->ends_with = ETIMEDOUT;
    CHECK(websocket_open(&w, &stream, STR("/0-f"), PORT, 1, S, NULL));
    CHECK(str_starts(buf_slice(&m->heard), STR("GET /0-f HTTP/1.1\r\nHost: 127.0.0.1:9229\r\n")));
    buf_clear(&m->heard);
    return w;
}

static void close_web(struct websocket *w, struct memory_stream *m)
{
    CHECK(!m->closed);
    websocket_close(w);
    CHECK(m->closed);
    memory_release(m);
}

/* Messages of every way to tell a length, from one whole to the next. */
static void lengths(void)
{
    static const size_t all[] = {0, 1, 125, 126, 127, 65535, 65536, 200000};
    struct buf frames, text, message;
    buf_init(&frames, SAYS_MAX);
    buf_init(&text, SAYS_MAX);
    buf_init(&message, WEBSOCKET_MAX);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        buf_clear(&text);
        for (size_t n = 0; n < all[i]; n++) {
            buf_byte(&text, (char)('a' + n % 26));
        }
        put_frame(&frames, FINAL | TEXT, buf_slice(&text), false);
        put_frame(&frames, FINAL | TEXT, buf_slice(&text), true);
        put_frame(&frames, TEXT, buf_slice(&text), true);
        put_frame(&frames, FINAL | MORE, buf_slice(&text), true);
    }
    for (size_t step = 0; step < 4; step++) {
        struct memory_stream m;
        struct websocket w = open_web(&m, &frames, step * 1021);
        for (size_t i = 0; i < 3 * sizeof all / sizeof all[0]; i++) {
            CHECK(websocket_receive(&w, &message, S, NULL));
            CHECK_INT(message.len, all[i / 3] * (i % 3 == 2 ? 2 : 1));
            CHECK(message.len == 0 || message.ptr[message.len - 1] == (char)('a' + (all[i / 3] - 1) % 26));
        }
        CHECK(!websocket_has_any(&w) && !websocket_receive(&w, &message, S, NULL));
        close_web(&w, &m);
    }
    buf_release(&frames);
    buf_release(&text);
    buf_release(&message);
}

/* What ends a connection, and how it says so. */
static void check_refused(struct str frames, const char *told)
{
    struct buf bytes, message;
    struct memory_stream m;
    struct err why = {0};
    buf_init(&bytes, SAYS_MAX);
    buf_init(&message, WEBSOCKET_MAX);
    buf_str(&bytes, frames);
    struct websocket w = open_web(&m, &bytes, 0);
    CHECK(!websocket_receive(&w, &message, S, &why));
    CHECK_TEXT(why.text, told);
    CHECK((why.number == ETIMEDOUT) == (strcmp(told, "silence") == 0));
    close_web(&w, &m);
    buf_release(&bytes);
    buf_release(&message);
}

static void refused_frames(void)
{
    static const char no_server[] = "its inspector sends what no server of WebSockets sends";
    check_refused(STR("\x81\x82mask\0\0"), no_server);
    check_refused(STR("\x81\x7f\0\0\0\0\x02\0\0\x01"), no_server); /* a byte more than 32 MB */
    check_refused(STR("\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"), no_server);
    check_refused(STR("\x88\0"), "its inspector closed the connection");
    check_refused(STR("\x01\x01[\x88\x02\x03\xe8"), "its inspector closed the connection");
    check_refused(STR("\x81"), "silence");
    check_refused(STR("\x81\x05[]"), "silence");
    check_refused(STR("\x81\x7f\0\0\0\0\0\0\0"), "silence");
    check_refused(STR("\x01\x01[\x89\0"), "silence");
    check_refused(STR("\x8f\0\x82\x01x\x8a\0"), "silence"); /* nothing that has text */
}

/* Many parts, each of which may be. */
static void too_long_in_parts(void)
{
    struct buf frames, part, message;
    struct memory_stream m;
    struct err why = {0};
    buf_init(&frames, SAYS_MAX);
    buf_init(&part, SAYS_MAX);
    buf_init(&message, WEBSOCKET_MAX);
    for (size_t i = 0; i < 3 << 20; i++) {
        buf_byte(&part, 'x');
    }
    for (unsigned i = 0; i < 11; i++) {
        put_frame(&frames, i == 0 ? TEXT : MORE, buf_slice(&part), false);
    }
    struct websocket w = open_web(&m, &frames, 0);
    CHECK(!websocket_receive(&w, &message, S, &why));
    CHECK_TEXT(why.text, "a message of its inspector is longer than 32 MB");
    close_web(&w, &m);
    buf_release(&frames);
    buf_release(&part);
    buf_release(&message);
}

static void ping_is_answered(void)
{
    struct buf frames, message;
    struct memory_stream m;
    buf_init(&frames, 1024);
    buf_init(&message, 1024);
    put_frame(&frames, FINAL | PING, STR("hello"), false);
    put_frame(&frames, FINAL | PING, STR(""), false);
    put_frame(&frames, FINAL | TEXT, STR("{}"), false);
    struct websocket w = open_web(&m, &frames, 0);
    CHECK(websocket_has_any(&w)); /* came with the answer */
    CHECK(websocket_receive(&w, &message, S, NULL));
    CHECK_STR(buf_slice(&message), "{}");
    CHECK_INT(m.heard.len, 2 + 4 + 5 + 2 + 4);
    CHECK(memcmp(m.heard.ptr, "\x8a\x85", 2) == 0 && memcmp(m.heard.ptr + 11, "\x8a\x80", 2) == 0);
    for (size_t i = 0; i < 5; i++) {
        CHECK((m.heard.ptr[6 + i] ^ m.heard.ptr[2 + i % 4]) == "hello"[i]);
    }
    CHECK(memcmp(m.heard.ptr + 2, m.heard.ptr + 13, 4) != 0); /* each with a mask of its own */
    m.stuck_with = EPIPE;
    m.stuck_at = m.heard.len;
    CHECK(!websocket_send(&w, STR("{}"), S, NULL));
    close_web(&w, &m);
    buf_release(&frames);
    buf_release(&message);
}

/* Of no websocket it is closed at once; nothing is heard of an answer's head that has no end. */
static void not_opened(void)
{
    struct buf endless;
    struct websocket w;
    buf_init(&endless, SAYS_MAX);
    buf_text(&endless, "HTTP/1.1 101 ");
    for (unsigned i = 0; i < 1 << 18; i++) {
        buf_byte(&endless, 'x');
    }
    const struct str answers[] = {STR(""), STR("HTTP/1.1 101"), STR("HTTP/1.1 200 OK\r\n\r\n"), STR("\r\n\r\n"),
                                  buf_slice(&endless)};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct memory_stream m;
        struct err why = {0};
        memory_init(&m, "");
        m.says = answers[i];
        m.step = 1000;
        struct stream stream = memory_stream_of(&m);
        CHECK(!websocket_open(&w, &stream, STR("/0"), PORT, 1, S, &why));
        CHECK_TEXT(why.text, i == 2 || i == 3 ? "what listens at port 9229 is no inspector"
                                              : "its inspector closed the connection");
        CHECK(m.closed && m.bytes_read < 10000);
        memory_release(&m);
    }
    buf_release(&endless);
}

/* ---- what means it ill ---- */

/* It says more and more, and never an answer. */
static void floods(void)
{
    static const struct str all[] = {
        STR("\x89\0"), STR("\x01\0"), STR("\0\0"), STR("\x81\x02{}"), STR("\x81\0"),
        STR("\x81\x10{\"method\":\"a.b\"}"), STR("\x81\x0f{\"id\":1,\"r\":{}}"),
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct played *p = begin();
        const void *turn = NULL;
        int before = test_failures;
        void *c = collect(p, &turn, 1);
        CHECK(run_for(p, c, 1000));
        p->floods = all[i];
        uint64_t before_ns = p->now_ns;
        (void)v8_collect_tick(c, 0); /* returns */
        CHECK(p->now_ns - before_ns < 10 * S);
        (void)stopped(c);
        CHECK(p->now_ns - before_ns < 30 * S && p->says.len < SAYS_MAX / 2);
        if (test_failures > before) {
            printf("# by flood %zu\n", i);
        }
        end(p);
    }
}

/* What comes between answers and is none. */
static void odd_messages(void)
{
    static const char *const all[] = {
        "", "{", "null", "[]", "7", "\"\"", "{}", "{\"id\":4}", "{\"id\":-1,\"result\":{}}",
        "{\"id\":99,\"result\":{}}",
        "{\"id\":1e3,\"result\":{}}", "{\"id\":18446744073709551617,\"result\":{}}", "{\"id\":5,\"result\":{}} x",
        "{\"method\":7}", "{\"method\":\"NodeWorker.attachedToWorker\",\"params\":[]}",
        "{\"method\":\"NodeWorker.receivedMessageFromWorker\"}",
        "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"1\",\"message\":\"\"}}",
        "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"1\",\"message\":\"{\"}}",
        "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"1\",\"message\":{}}}",
        "{\"method\":\"NodeWorker.receivedMessageFromWorker\",\"params\":{\"sessionId\":\"1\",\"message\":"
        "\"{\\\"method\\\":\\\"NodeRuntime.waitingForDisconnect\\\"}\"}}",
        "{\"method\":\"Runtime.consoleAPICalled\",\"params\":{\"type\":\"log\"}}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    struct played *p = begin();
    const void *turn = NULL;
    p->workers[0] = "1";
    void *c = collect(p, &turn, 1);
    CHECK(run_for(p, c, 1000));
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tell(p, all[i]);
        CHECK(run_for(p, c, 20));
        tell(p, all[i]); /* and before an answer */
        if (i % 8 == 7) {
            CHECK(strstr(polled(c, true, ""), "0 (program)\n") != NULL);
        }
    }
    CHECK(strstr(stopped(c), "thread 11 0 \n6 work ") != NULL);
    CHECK(!is_open(p));
    end(p);
}

static void check_moments(const char *profile, uint64_t hit_ns, const char *moments)
{
    struct buf text;
    buf_init(&text, MOMENTS_MAX);
    CHECK(json_valid(str_of(profile)));
    cpuprofile_write(str_of(profile), PID, hit_ns, &text);
    CHECK_TEXT(buf_cstr(&text), moments);
    buf_release(&text);
}

#define NODES(...) "{\"nodes\":[" __VA_ARGS__ "]}"
#define TOP(children) "{\"id\":1," OF_CALL("(root)", "", "-1", "-1") ",\"hitCount\":0,\"children\":[" children "]},"

static void odd_trees(void)
{
    check_moments("{}", 1000, "");
    check_moments("[]", 1000, "");
    check_moments("{\"nodes\":{}}", 1000, "");
    check_moments("{\"nodes\":[7,\"x\",null,[]]}", 1000, "");
    check_moments(NODES("{\"id\":1,\"hitCount\":1}"), 1000, "moment 1000\nthread 7 0 \n");
    /* children that are not there, that were there before, or are their own parents */
    check_moments(NODES(TOP("9,2,2,1") "{\"id\":2,\"hitCount\":1,\"children\":[2,1]}"), 1000,
                  "moment 1000\nthread 7 0 \n0 (anonymous)\n");
    check_moments(NODES("{\"id\":1,\"hitCount\":1,\"children\":[1]},{\"id\":1,\"hitCount\":1,\"children\":[1]}"), 1000,
                  "moment 1000\nthread 7 0 \nmoment 1000\nthread 7 0 \n0 (anonymous)\n");
    /* no number where one has to be */
    check_moments(NODES(TOP("2") "{\"id\":\"2\",\"hitCount\":1},{\"id\":2,\"hitCount\":-1},"
                                 "{\"id\":2,\"hitCount\":1.5}"),
                  1000, "");
    check_moments(NODES(TOP("2") "{\"id\":2," OF_CALL("f", "/x", "4294967295", "1e3") ",\"hitCount\":1}"), 1000,
                  "moment 1000\nthread 7 0 \n0 f /x\n");
}

static void huge_counts(void)
{
    static const char ticks[] = NODES(TOP("2") "{\"id\":2," OF_CALL("f", "/x", "0", "0")
                                      ",\"hitCount\":18446744073709551615,\"positionTicks\":["
                                      "{\"line\":18446744073709551615,\"ticks\":18446744073709551614},"
                                      "{\"line\":2,\"ticks\":5},{\"line\":3,\"ticks\":0},{\"line\":4}]}");
    static const char one[] = NODES(TOP("2") "{\"id\":2," OF_CALL("f", "/x", "0", "0") ",\"hitCount\":1}");
    check_moments(ticks, 1000, "moment 60000000000\nthread 7 0 \n18446744073709551615 f /x:1\n"
                               "moment 1000\nthread 7 0 \n0 f /x:1\n");
    check_moments(one, 0, "moment 1\nthread 7 0 \n0 f /x:1\n");
    check_moments(one, UINT64_MAX, "moment 60000000000\nthread 7 0 \n0 f /x:1\n");
}

/* A line of a moment is a line, whatever a function or a file is called. */
static void odd_names(void)
{
    check_moments(NODES(TOP("2") "{\"id\":2," OF_CALL("a\\nmoment 1\\u0000\\tb", "/x\\r\\ny", "0", "0")
                                 ",\"hitCount\":1}"),
                  1000, "moment 1000\nthread 7 0 \n0 a moment 1  b /x  y:1\n");
    check_moments(NODES(TOP("2") "{\"id\":2," OF_CALL("f", "file:///x%0Amoment%2060%00%zz%4", "0", "0")
                                 ",\"hitCount\":1}"),
                  1000, "moment 1000\nthread 7 0 \n0 f /x moment 60 %zz%4:1\n");
    check_moments(NODES(TOP("2") "{\"id\":2,\"callFrame\":{\"functionName\":7,\"url\":[]},\"hitCount\":1}"), 1000,
                  "moment 1000\nthread 7 0 \n0 (anonymous)\n");
    check_moments(NODES(TOP("2") "{\"id\":2," OF_CALL("(anonymous)", "", "3", "0") ",\"hitCount\":1}"), 1000,
                  "moment 1000\nthread 7 0 \n0 (anonymous):4\n");
    check_moments(NODES(TOP("2") "{\"id\":2," OF_CALL("far", "/x", "3", "200") ",\"hitCount\":1}"), 1000,
                  "moment 1000\nthread 7 0 \n0 far /x:4:201\n");
}

/* A tree of so many nodes in a chain, each met once; the name of its first is so long. */
static struct str chain(unsigned nodes, size_t name_bytes)
{
    static struct buf text;
    buf_release(&text);
    buf_init(&text, SAYS_MAX);
    buf_text(&text, "{\"nodes\":[" "{\"id\":1,\"hitCount\":0,\"children\":[2]}");
    for (unsigned i = 2; i < nodes + 2; i++) {
        buf_printf(&text, ",{\"id\":%u,\"hitCount\":1,\"children\":[%u],\"callFrame\":{\"functionName\":\"f", i, i + 1);
        for (size_t n = 0; i == 2 && n < name_bytes; n++) {
            buf_byte(&text, 'x');
        }
        buf_text(&text, "\",\"url\":\"/x\",\"lineNumber\":0}}");
    }
    buf_text(&text, "]}");
    CHECK(!text.failed);
    return buf_slice(&text);
}

/* What there is of it is bounded, and so is how long it takes. */
static void large_trees(void)
{
    struct buf text;
    buf_init(&text, MOMENTS_MAX);
    cpuprofile_write(chain(1000, 0), PID, 1000, &text);
    CHECK(text.failed && text.len > MOMENTS_MAX - 20000); /* of the last one all its frames, too */
    CHECK(text.len > 10 && memcmp(text.ptr + text.len - 10, "\n0 f /x:1\n", 10) == 0);
    buf_clear(&text);
    cpuprofile_write(chain(200000, 0), PID, 1000, &text); /* most of them are where there is no more room */
    CHECK(text.failed);
    buf_clear(&text);
    cpuprofile_write(chain(300, 16 << 20), PID, 1000, &text); /* the long name is one of all of them */
    CHECK(text.len > 0);
    buf_release(&text);
}

TESTS({"the port is found wherever node takes options from, and a later option counts", ports},
      {"with options that forbid it there is no signal", flags},
      {"a word may be of any length", long_words},
      {"the primary of a cluster, one that is stopped, one without a handler get no signal", not_asked},
      {"where somebody else listens there is no signal", taken},
      {"other ports, addresses and connections are nobody that listens there", not_taken},
      {"it is found among many that listen", among_many},
      {"a session is a profile of all threads, scaled to the time since the last, and closes the port", whole_session},
      {"processes share the time that one may have", shared_session},
      {"other than CPU time is not asked for, nor of who may not be asked", other_wants},
      {"one that is open before is used without a signal, and not closed", open_before},
      {"who cannot be asked now is asked again, who refuses is not", asked_again},
      {"one that does not open it gets one signal, and is given up after half a minute", never_opens},
      {"another process, or one that answers with an error or not at all, is closed again", not_the_right_one},
      {"what listens and is no inspector is not spoken with", no_inspector},
      {"a port that stays open is told", stays_open},
      {"a process that ends and waits for us is let go of at once", waits_for_us},
      {"also while another question is open", waits_for_us_meanwhile},
      {"when the connection is cut another one closes the port", is_cut},
      {"also in the middle of an answer", is_cut_meanwhile},
      {"a main thread that does not answer loses its profile, and the port is closed", does_not_answer},
      {"a worker that does not answer is passed over, and asked no more", silent_worker},
      {"a worker that moves to another's place while it is asked is asked there", worker_ends_meanwhile},
      {"workers come and go, also while they are asked; the others' profiles are kept", worker_ends},
      {"a worker that lives shortly is not asked", short_workers},
      {"there may be more workers than there is room for", many_workers},
      {"a worker that does not tell its thread has no moments", thread_of_worker},
      {"at the end of a window there is all of it, and the profile goes on", polled_whole},
      {"stopped before it opens, it is waited for and closed, or given up soon", stopped_before_it_opens},
      {"stopped while it is open it is closed, and between sessions not asked", stopped_while_it_is_open},
      {"processes of one machine have it open by turns", turns},
      {"who is over gives the turn away", turns_are_given},
      {"a message may come in frames and pieces of any size, with pings between", framings},
      {"a frame's length is told in 7, 16 or 64 bits", lengths},
      {"a masked or too long frame ends the connection, and so does its own end", refused_frames},
      {"a message of many parts is no longer than one of one", too_long_in_parts},
      {"a ping is answered with what it has, masked", ping_is_answered},
      {"what does not switch protocols is no inspector", not_opened},
      {"who never stops to speak is not listened to for ever", floods},
      {"messages that answer nothing are passed over", odd_messages},
      {"a tree that is none has no moments", odd_trees},
      {"a moment stands for a minute at most", huge_counts},
      {"names have no line ends in them", odd_names},
      {"a large tree takes as long as its moments", large_trees})
