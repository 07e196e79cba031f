/* A connection becomes one of messages by a request and its answer. Frames of a client are masked, those of a server
 * are not; a message may come in several, and between them such as have no text. What is there of a frame is kept
 * until all of it is. */
#include "runtime/v8/websocket.h"

#include <errno.h>

enum {
    PIECE = 65536,
    HEAD_MAX = 8192,
    SHORT_MAX = 125, IS_16_BITS = 126, IS_64_BITS = 127, /* of a length, and what stands there instead of one */
    FINAL = 0x80, MASKED = 0x80,
    MORE = 0, TEXT = 1, CLOSE = 8, PING = 9, PONG = 10,
    MASK_BYTES = 4,
    FRAMES_MAX = 4096, /* of a message, with such as come before it and in between */
    KEY_CHARS = 21, /* the last of sixteen bytes has no more than "A==" to tell */
};

static bool ended(struct err *err)
{
    return err_set(err, ERR_NETWORK, ECONNRESET, "its inspector closed the connection");
}

bool websocket_read(const struct stream *stream, struct buf *in, uint64_t deadline_ns, struct err *err)
{
    char *room = buf_room(in, PIECE);
    if (room == NULL) {
        return err_set(err, ERR_LIMIT, 0, "what its inspector tells is longer than %d MB", WEBSOCKET_MAX >> 20);
    }
    ptrdiff_t got = stream->read(stream->context, room, PIECE, deadline_ns, err);
    in->len += got > 0 ? (size_t)got : 0;
    return got > 0 || (got == 0 && ended(err));
}

static uint64_t draw(struct websocket *w)
{
    w->seed = hash_u64(w->seed + 1);
    return w->seed;
}

static void drop(struct websocket *w, size_t len)
{
    memmove(w->in.ptr, w->in.ptr + len, w->in.len - len);
    w->in.len -= len;
}

/* ---- opening ---- */

static bool ask(struct websocket *w, struct str path, uint16_t port, uint64_t deadline_ns, struct err *err)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct buf request;
    buf_init(&request, HEAD_MAX);
    buf_text(&request, "GET ");
    buf_str(&request, path);
    buf_printf(&request, " HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ", port);
    for (unsigned i = 0; i < KEY_CHARS; i++) {
        buf_byte(&request, digits[draw(w) % (sizeof digits - 1)]);
    }
    buf_text(&request, "A==\r\n\r\n");
    bool good = !request.failed && stream_write(&w->stream, buf_slice(&request), deadline_ns, err);
    buf_release(&request);
    return good;
}

bool websocket_open(struct websocket *w, const struct stream *stream, struct str path, uint16_t port, uint64_t seed,
                    uint64_t deadline_ns, struct err *err)
{
    static const char end[] = "\r\n\r\n";
    const char *at = NULL;
    *w = (struct websocket){.stream = *stream, .seed = seed};
    buf_init(&w->in, WEBSOCKET_MAX + PIECE);
    bool good = ask(w, path, port, deadline_ns, err);
    while (good && at == NULL) {
        good = (w->in.len < HEAD_MAX || ended(err)) && websocket_read(&w->stream, &w->in, deadline_ns, err);
        at = w->in.len > 0 ? memmem(w->in.ptr, w->in.len, end, sizeof end - 1) : NULL;
    }
    if (good && !str_starts(buf_slice(&w->in), STR("HTTP/1.1 101"))) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "what listens at port %u is no inspector", port);
    }
    if (!good) {
        websocket_close(w);
        return false;
    }
    drop(w, (size_t)(at - w->in.ptr) + sizeof end - 1);
    return true;
}

void websocket_close(struct websocket *w)
{
    w->stream.close(w->stream.context);
    buf_release(&w->in);
}

/* ---- frames ---- */

static bool send_frame(struct websocket *w, unsigned kind, struct str text, uint64_t deadline_ns, struct err *err)
{
    struct buf frame;
    buf_init(&frame, text.len + 16);
    buf_byte(&frame, (char)(FINAL | kind));
    bool is_short = text.len <= SHORT_MAX, is_wide = text.len > UINT16_MAX;
    buf_byte(&frame, (char)(MASKED | (is_short ? text.len : is_wide ? IS_64_BITS : IS_16_BITS)));
    for (int shift = is_short ? -1 : is_wide ? 56 : 8; shift >= 0; shift -= 8) {
        buf_byte(&frame, (char)((uint64_t)text.len >> shift));
    }
    uint64_t mask = draw(w);
    buf_add(&frame, &mask, MASK_BYTES);
    for (size_t i = 0; i < text.len; i++) {
        buf_byte(&frame, (char)(text.ptr[i] ^ (char)(mask >> 8 * (i % MASK_BYTES))));
    }
    bool good = !frame.failed ? stream_write(&w->stream, buf_slice(&frame), deadline_ns, err)
                              : err_set(err, ERR_MEMORY, 0, "no memory for a message");
    buf_release(&frame);
    return good;
}

bool websocket_send(struct websocket *w, struct str message, uint64_t deadline_ns, struct err *err)
{
    return send_frame(w, TEXT, message, deadline_ns, err);
}

struct frame_head {
    unsigned kind;
    bool is_final;
    size_t bytes; /* of the head, … */
    uint64_t len; /* … and of what follows */
};

/* False: there is not all of it yet. */
static bool read_head(const struct buf *in, struct frame_head *out)
{
    const unsigned char *at = (const unsigned char *)in->ptr;
    if (in->len < 2) {
        return false;
    }
    unsigned len = at[1] & ~MASKED;
    size_t wide = len == IS_16_BITS ? 2 : len == IS_64_BITS ? 8 : 0;
    *out = (struct frame_head){at[0] & 0xf, (at[0] & FINAL) != 0, 2 + wide, wide > 0 ? 0 : len};
    for (size_t i = 0; i < wide && in->len >= out->bytes; i++) {
        out->len = out->len << 8 | at[2 + i];
    }
    return in->len >= out->bytes;
}

/* The next frame whole in `in`, which is to be dropped afterwards. */
static bool next_frame(struct websocket *w, struct frame_head *out, uint64_t deadline_ns, struct err *err)
{
    for (;;) {
        bool any = read_head(&w->in, out);
        if (any && (out->len > WEBSOCKET_MAX || (w->in.ptr[1] & MASKED) != 0)) {
            return err_set(err, ERR_UNSUPPORTED, 0, "its inspector sends what no server of WebSockets sends");
        }
        if (any && w->in.len - out->bytes >= out->len) {
            return true;
        }
        if (!websocket_read(&w->stream, &w->in, deadline_ns, err)) {
            return false;
        }
    }
}

/* Is one that begins a message, or goes on with one. */
static bool take_frame(struct websocket *w, const struct frame_head *head, struct buf *message, uint64_t deadline_ns,
                       struct err *err)
{
    struct str text = {w->in.ptr + head->bytes, (size_t)head->len};
    if (head->kind == CLOSE) {
        return ended(err);
    }
    if (head->kind == PING) {
        return send_frame(w, PONG, str_sub(text, 0, SHORT_MAX), deadline_ns, err);
    }
    if (head->kind == MORE || head->kind == TEXT) {
        buf_str(message, text);
    }
    return !message->failed || err_set(err, ERR_LIMIT, 0, "a message of its inspector is longer than %d MB",
                                       WEBSOCKET_MAX >> 20);
}

bool websocket_receive(struct websocket *w, struct buf *message, uint64_t deadline_ns, struct err *err)
{
    struct frame_head head;
    bool goes_on = true;
    buf_clear(message);
    for (unsigned frames = 0; goes_on; frames++) {
        if (frames == FRAMES_MAX) {
            return err_set(err, ERR_LIMIT, 0, "its inspector sends %d frames without a message", FRAMES_MAX);
        }
        if (!next_frame(w, &head, deadline_ns, err) || !take_frame(w, &head, message, deadline_ns, err)) {
            return false;
        }
        goes_on = !head.is_final || head.kind > TEXT;
        drop(w, head.bytes + (size_t)head.len);
    }
    return true;
}

bool websocket_has_any(const struct websocket *w)
{
    return w->in.len > 0 || w->stream.readable(w->stream.context);
}
