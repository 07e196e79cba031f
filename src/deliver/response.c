/* Parses an HTTP/1.1 response as it comes in: heads, chunks, lengths, the few fields that matter.
 * Everything a server can make us hold or read is bounded; what could be two responses in one is
 * refused. */
#include "deliver/response.h"
#include "base/time.h"
#include "base/ascii.h"

#include <errno.h>

enum step {
    STEP_HEAD,
    STEP_LENGTH,     /* a body of known length */
    STEP_UNTIL_END,  /* one that ends with the connection */
    STEP_CHUNK_SIZE, /* its digits */
    STEP_CHUNK_NOTE, /* what else stands in that line */
    STEP_CHUNK,
    STEP_CHUNK_END, /* the line end behind a chunk */
    STEP_TRAILER,
    STEP_DONE,
    STEP_BAD,
};

#define RETRY_AFTER_MAX_S UINT64_C(86400)

static bool bad(struct response *a, struct err *err, const char *why)
{
    a->step = STEP_BAD;
    return err_set(err, ERR_NETWORK, EPROTO, "the response %s", why);
}

/* ---- dates (RFC 9110, 5.6.7: three forms, one of them wanted, all to be read) ---- */

static bool take_word(struct str *rest, struct str *word)
{
    while (rest->len > 0 && strchr(" ,-", rest->ptr[0]) != NULL && rest->ptr[0] != '\0') {
        *rest = str_sub(*rest, 1, rest->len);
    }
    size_t len = 0;
    while (len < rest->len && strchr(" ,-", rest->ptr[len]) == NULL) {
        len++;
    }
    *word = str_sub(*rest, 0, len);
    *rest = str_sub(*rest, len, rest->len);
    return len > 0;
}

static unsigned month_of(struct str word)
{
    static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";
    for (unsigned i = 0; i < 12; i++) {
        if (ascii_same(word, (struct str){names + 3 * i, 3})) {
            return i + 1;
        }
    }
    return 0;
}

static bool clock_of(struct str word, uint64_t *seconds)
{
    uint64_t hour, minute, second;
    if (!str_u64(str_cut(&word, ':'), &hour) || !str_u64(str_cut(&word, ':'), &minute) ||
        !str_u64(word, &second) || hour > 23 || minute > 59 || second > 60) {
        return false;
    }
    *seconds = hour * 3600 + minute * 60 + second;
    return true;
}

/* Days since 1970 of a date of the Gregorian calendar, counted in years that begin in March. */
static uint64_t days_of(uint64_t year, unsigned month, uint64_t day)
{
    uint64_t shifted_year = month <= 2 ? year - 1 : year;
    uint64_t shifted_month = month <= 2 ? month + 9 : month - 3;
    uint64_t before = 365 * shifted_year + shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    return before + (153 * shifted_month + 2) / 5 + day - 1 - 719468;
}

/* Of "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT" and "Sun Nov  6 08:49:37 1994" the words are
 * distinguished by their form; of the numbers the day always stands before the year. */
static bool date_of(struct str text, uint64_t *wall_s)
{
    uint64_t day = 0, year = 0, seconds = 0, number;
    unsigned month = 0;
    bool has_clock = false;
    struct str word;
    for (int words = 0; words < 8 && take_word(&text, &word); words++) {
        if (str_find(word, ':') < word.len) {
            has_clock = clock_of(word, &seconds);
        } else if (str_u64(word, &number) && day == 0) {
            day = number;
        } else if (str_u64(word, &number)) {
            year = word.len > 2 ? number : number + (number < 70 ? 2000 : 1900);
        } else if (month == 0) {
            month = month_of(word);
        }
    }
    if (!has_clock || month == 0 || day == 0 || day > 31 || year < 1970 || year > 9999) {
        return false;
    }
    *wall_s = days_of(year, month, day) * 86400 + seconds;
    return true;
}

/* 0: not given, or nothing that has a meaning. */
static uint64_t retry_after_of(struct str value, uint64_t wall_ns)
{
    uint64_t seconds, now_s = wall_ns / NS_PER_S;
    if (!str_u64(value, &seconds)) {
        if (!date_of(value, &seconds)) {
            return 0;
        }
        seconds = seconds > now_s ? seconds - now_s : 0;
    }
    return (seconds < RETRY_AFTER_MAX_S ? seconds : RETRY_AFTER_MAX_S) * NS_PER_S;
}

/* ---- the head ---- */

/* For people's eyes: no byte of it may drive a terminal or begin a line. */
static void copy_shown(char *out, size_t max, struct str text)
{
    size_t len = text.len < max - 1 ? text.len : max - 1;
    for (size_t i = 0; i < len; i++) {
        char c = text.ptr[i];
        out[i] = c == ' ' || ascii_is_visible(c) ? c : '?';
    }
    out[len] = '\0';
}

static void take_location(struct response *a, struct str value)
{
    if (a->out->location[0] != '\0' || value.len >= sizeof a->out->location) {
        return;
    }
    for (size_t i = 0; i < value.len; i++) {
        if (!ascii_is_visible(value.ptr[i])) {
            return;
        }
    }
    copy_shown(a->out->location, sizeof a->out->location, value);
}

/* "5" and "5, 5" are a length; "5, 6" is two answers in one (RFC 9112, 6.3). */
static bool take_length(struct response *a, struct str value)
{
    do {
        uint64_t length;
        if (!str_u64(str_trim(str_cut(&value, ',')), &length) ||
            (a->has_length && length != a->length)) {
            return false;
        }
        a->has_length = true;
        a->length = length;
    } while (value.len > 0);
    return true;
}

static void take_codings(struct response *a, struct str value)
{
    while (value.len > 0) {
        a->coded = true;
        a->chunked = ascii_same(str_trim(str_cut(&value, ',')), STR("chunked")); /* the last one counts */
    }
}

static void take_connection(struct response *a, struct str value)
{
    while (value.len > 0) {
        struct str word = str_trim(str_cut(&value, ','));
        a->close = a->close || ascii_same(word, STR("close"));
        a->stays_open = a->stays_open || ascii_same(word, STR("keep-alive"));
    }
}

static bool take_field(struct response *a, struct str name, struct str value)
{
    if (ascii_same(name, STR("content-length"))) {
        return take_length(a, value);
    }
    if (ascii_same(name, STR("transfer-encoding"))) {
        take_codings(a, value);
    } else if (ascii_same(name, STR("connection"))) {
        take_connection(a, value);
    } else if (ascii_same(name, STR("location"))) {
        take_location(a, value);
    } else if (ascii_same(name, STR("retry-after"))) {
        a->out->retry_after_ns = retry_after_of(value, a->wall_ns);
    } else if (name.len > 0 && ascii_same(name, a->watch)) {
        copy_shown(a->out->watched, sizeof a->out->watched, value);
    }
    return true;
}

/* A line that begins with a blank goes on with the one before (RFC 9112, 5.2). */
static void unfold(struct buf *head)
{
    for (size_t i = 0; i + 1 < head->len; i++) {
        if (head->ptr[i] == '\n' && (head->ptr[i + 1] == ' ' || head->ptr[i + 1] == '\t')) {
            head->ptr[i] = ' ';
        }
    }
}

static bool take_status(struct response *a, struct str line, struct err *err)
{
    uint64_t minor, status;
    struct str version = str_cut(&line, ' ');
    line = str_trim(line);
    struct str code = str_cut(&line, ' ');
    if (str_starts(version, STR("HTTP/2")) || str_starts(version, STR("HTTP/3"))) {
        return bad(a, err, "is in HTTP/2 alone, which is not spoken here; let the server speak HTTP/1.1, too");
    }
    if (version.len != 8 || !str_starts(version, STR("HTTP/1.")) ||
        !str_u64(str_sub(version, 7, 1), &minor) || code.len != 3 || !str_u64(code, &status) ||
        status < 100 || status > 599) {
        return bad(a, err, "begins with a line that HTTP/1.1 does not have");
    }
    a->is_10 = minor == 0;
    a->out->status = (unsigned)status;
    copy_shown(a->out->reason, sizeof a->out->reason, str_trim(line));
    return true;
}

static bool parse_head(struct response *a, struct err *err)
{
    unfold(&a->head);
    struct str rest = buf_slice(&a->head);
    if (!take_status(a, str_trim(str_cut(&rest, '\n')), err)) {
        return false;
    }
    while (rest.len > 0) {
        struct str line = str_trim(str_cut(&rest, '\n'));
        struct str name = str_trim(str_cut(&line, ':'));
        if (!take_field(a, name, str_trim(line))) {
            return bad(a, err, "has length headers that are contradictory or not numbers");
        }
    }
    return true;
}

static bool is_tunnel(const struct response *a)
{
    return strcmp(a->method, "CONNECT") == 0 && a->out->status / 100 == 2;
}

static bool has_no_body(const struct response *a)
{
    unsigned status = a->out->status;
    return status == 204 || status == 304 || is_tunnel(a) || strcmp(a->method, "HEAD") == 0;
}

/* A tunnel stays open whatever its head says; proxies of HTTP/1.0 are common. */
static void finish(struct response *a, bool whole)
{
    a->step = STEP_DONE;
    a->out->whole = whole;
    a->out->keeps = is_tunnel(a) || (whole && !a->close && (!a->is_10 || a->stays_open));
}

static void begin_body(struct response *a)
{
    a->line = 0;
    a->digits = 0;
    a->left = a->length;
    if (has_no_body(a) || (!a->coded && a->has_length && a->length == 0)) {
        finish(a, true);
    } else if (a->chunked) {
        a->left = 0;
        a->step = STEP_CHUNK_SIZE;
    } else if (!a->coded && a->has_length) {
        a->step = STEP_LENGTH;
    } else {
        a->step = STEP_UNTIL_END;
        a->close = true;
    }
}

static void forget_head(struct response *a)
{
    struct http_response *out = a->out;
    buf_clear(&a->head);
    a->line = 0;
    a->chunked = a->coded = a->has_length = a->close = a->stays_open = a->is_10 = false;
    out->status = 0;
    out->reason[0] = out->location[0] = out->watched[0] = '\0';
    out->retry_after_ns = 0;
}

static bool end_head(struct response *a, struct err *err)
{
    if (!parse_head(a, err)) {
        return false;
    }
    if (a->out->status == 101) {
        return bad(a, err, "changes to another protocol, which was not asked for");
    }
    if (a->out->status / 100 == 1) {
        forget_head(a);
        return true;
    }
    if (a->coded && a->has_length && !has_no_body(a)) {
        return bad(a, err, "has both a Content-Length and a Transfer-Encoding, as forged answers do");
    }
    begin_body(a);
    return true;
}

/* What does not even begin as HTTP does would else be waited for until a line ends. */
static bool begins_well(const struct buf *head)
{
    size_t len = head->len < 5 ? head->len : 5;
    return memcmp(head->ptr, "HTTP/", len) == 0;
}

/* By its first byte: an alert of TLS, or the length of a frame of HTTP/2, which is below 65536. */
static const char *other_protocol(const struct buf *head)
{
    return head->len == 1 && head->ptr[0] == 0x15 ? "is TLS; the server expects https, not http"
           : head->len == 1 && head->ptr[0] == 0
               ? "is HTTP/2 alone, as gRPC is; give the port that speaks HTTP/1.1 (of OpenTelemetry usually 4318)"
               : "is not HTTP; another service listens there";
}

static bool head_byte(struct response *a, char byte, struct err *err)
{
    if (++a->heads > RESPONSE_HEADS_MAX) {
        return bad(a, err, "has headers of more than 64 KiB");
    }
    if (a->head.len == 0 && (byte == '\r' || byte == '\n')) {
        return true; /* a line end too many behind the response before */
    }
    buf_byte(&a->head, byte);
    if (a->head.failed) {
        a->step = STEP_BAD;
        return err_set(err, ERR_MEMORY, ENOMEM, "no memory for a response's head");
    }
    if (a->head.len <= 5 && !begins_well(&a->head)) {
        (void)bad(a, err, other_protocol(&a->head));
        err->number = EPROTONOSUPPORT; /* which does not pass by itself */
        return false;
    }
    if (byte != '\n') {
        a->line += byte != '\r';
        return true;
    }
    bool ends = a->line == 0;
    a->line = 0;
    return ends ? end_head(a, err) : true;
}

/* ---- the body ---- */

static void keep(struct response *a, struct str bytes)
{
    struct buf *body = &a->out->body;
    size_t room = body->max - body->len;
    if (!body->failed) {
        buf_add(body, bytes.ptr, bytes.len < room ? bytes.len : room);
    }
}

static void end_size_line(struct response *a)
{
    if (a->digits == 0) {
        finish(a, false);
    } else {
        a->step = a->left == 0 ? STEP_TRAILER : STEP_CHUNK;
        a->line = 0;
    }
}

static void size_byte(struct response *a, char byte)
{
    uint64_t digit;
    if (str_hex((struct str){&byte, 1}, &digit) && a->left <= UINT64_MAX >> 4) {
        a->left = a->left << 4 | digit;
        a->digits = 1;
    } else if (byte == '\n') {
        end_size_line(a);
    } else if (byte == ';' || byte == ' ' || byte == '\t' || byte == '\r') {
        a->step = STEP_CHUNK_NOTE;
    } else {
        finish(a, false);
    }
}

static void chunk_end_byte(struct response *a, char byte)
{
    if (byte == '\n') {
        a->step = STEP_CHUNK_SIZE;
        a->digits = 0;
        a->left = 0;
    } else if (byte != '\r') {
        finish(a, false);
    }
}

static void trailer_byte(struct response *a, char byte)
{
    if (byte == '\n' && a->line == 0) {
        finish(a, true);
    } else if (byte == '\n') {
        a->line = 0;
    } else {
        a->line += byte != '\r';
    }
}

/* Takes what belongs to the body or the chunk. */
static size_t take_content(struct response *a, struct str bytes)
{
    size_t len = bytes.len;
    if (a->step != STEP_UNTIL_END) {
        len = a->left < len ? (size_t)a->left : len;
        a->left -= len;
    }
    keep(a, str_sub(bytes, 0, len));
    if (a->step != STEP_UNTIL_END && a->left == 0) {
        if (a->step == STEP_LENGTH) {
            finish(a, true);
        } else {
            a->step = STEP_CHUNK_END;
        }
    }
    return len;
}

static size_t body_step(struct response *a, struct str bytes)
{
    switch (a->step) {
    case STEP_CHUNK_SIZE:
        size_byte(a, bytes.ptr[0]);
        return 1;
    case STEP_CHUNK_NOTE:
        if (bytes.ptr[0] == '\n') {
            end_size_line(a);
        }
        return 1;
    case STEP_CHUNK_END:
        chunk_end_byte(a, bytes.ptr[0]);
        return 1;
    case STEP_TRAILER:
        trailer_byte(a, bytes.ptr[0]);
        return 1;
    default:
        return take_content(a, bytes);
    }
}

enum response_state response_feed(struct response *a, struct str bytes, struct err *err)
{
    a->out->began = a->out->began || bytes.len > 0;
    while (bytes.len > 0 && a->step < STEP_DONE) {
        size_t used = 1;
        if (a->step == STEP_HEAD) {
            (void)head_byte(a, bytes.ptr[0], err);
        } else {
            used = body_step(a, bytes);
            a->passed += used;
        }
        bytes = str_sub(bytes, used, bytes.len);
        if (a->step < STEP_DONE && a->passed > HTTP_BODY_MAX + RESPONSE_DROP_MAX) {
            finish(a, false);
        }
    }
    if (bytes.len > 0 && a->step == STEP_DONE) {
        a->out->keeps = false; /* more than was asked for: whose response would that be? */
    }
    return a->step == STEP_BAD ? RESPONSE_BAD : a->step == STEP_DONE ? RESPONSE_DONE : RESPONSE_MORE;
}

bool response_end(struct response *a, bool in_order)
{
    if (a->step == STEP_HEAD || a->step == STEP_BAD) {
        return false;
    }
    if (a->step != STEP_DONE) {
        finish(a, in_order && a->step == STEP_UNTIL_END);
    }
    return true;
}

void response_init(struct response *a, struct http_response *out, const char *method, uint64_t wall_ns)
{
    *a = (struct response){.out = out, .method = method, .wall_ns = wall_ns, .step = STEP_HEAD};
    *out = (struct http_response){0};
    buf_init(&out->body, HTTP_BODY_MAX);
    buf_init(&a->head, RESPONSE_HEADS_MAX);
}

void response_release(struct response *a)
{
    buf_release(&a->head);
}
