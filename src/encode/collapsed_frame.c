/* How a frame or another field is spelled in collapsed stacks, and read back: what may not stand in a
 * field is replaced, the kind of code becomes a suffix, and a name that happens to end in one gets
 * round brackets. */
#include "encode/collapsed.h"
#include "base/utf8.h"

static enum frame_kind suffix_kind(struct str frame, struct str *suffix)
{
    for (unsigned k = 0; k < FRAME_KIND_COUNT; k++) {
        *suffix = str_of(languages[k].suffix);
        if (suffix->len > 0 && frame.len > suffix->len && str_ends(frame, *suffix)) {
            return (enum frame_kind)k;
        }
    }
    *suffix = STR("");
    return FRAME_NATIVE;
}

enum frame_kind collapsed_kind(struct str *frame)
{
    struct str suffix;
    enum frame_kind kind = suffix_kind(*frame, &suffix);
    if (suffix.len == 0) {
        return language_by_mark(*frame);
    }
    frame->len -= suffix.len;
    return kind;
}

uint32_t collapsed_line(struct str *frame, enum frame_kind kind)
{
    size_t colon = str_find_last(*frame, ':');
    uint64_t line;
    if (languages[kind].form != NAME_WITH_FILE || colon == 0 || colon == frame->len || frame->ptr[colon - 1] != ')' ||
        !str_u64(str_sub(*frame, colon + 1, frame->len), &line) || line > UINT32_MAX) {
        return 0;
    }
    frame->len = colon;
    return (uint32_t)line;
}

static bool is_separator(uint32_t c)
{
    /* everything that some reader takes for the end of a line, and other controls with it */
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

static bool is_plain(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c < 0x20 || c >= 0x7f || c == ';') {
            return false;
        }
    }
    return text.len > 0 && text.ptr[0] != ' ' && text.ptr[text.len - 1] != ' ';
}

void collapsed_field(struct buf *out, struct str text)
{
    if (is_plain(text)) {
        buf_str(out, text);
        return;
    }
    size_t start = out->len, end = out->len;
    while (text.len > 0 && !out->failed) {
        uint32_t c = utf8_take(&text);
        bool blank = c == ' ' || is_separator(c);
        if (blank && out->len == start) {
            continue;
        }
        utf8_put(out, blank ? ' ' : c == ';' ? ':' : c);
        end = blank ? end : out->len;
    }
    if (!out->failed) {
        out->len = end;
    }
    if (end == start) {
        buf_text(out, "[unknown]");
    }
}

/* "f_[k]" to "f_(k)". */
static void disarm(struct buf *out, size_t start)
{
    for (size_t i = out->len; i > start; i--) {
        char *c = &out->ptr[i - 1];
        if (*c == ']') {
            *c = ')';
        } else if (*c == '[') {
            *c = '(';
            return;
        }
    }
}

void collapsed_frame(struct buf *out, struct str name, enum frame_kind kind)
{
    size_t start = out->len;
    collapsed_field(out, name);
    if (out->failed) {
        return;
    }
    struct str written = {out->ptr + start, out->len - start};
    struct str wanted = str_of(languages[kind].suffix);
    if (wanted.len > 0) {
        if (language_by_mark(written) != kind) {
            buf_str(out, wanted);
        }
        return;
    }
    struct str suffix;
    suffix_kind(written, &suffix);
    bool is_v8 = language_by_mark(written) == FRAME_JS; /* what V8 calls so is V8's */
    if (suffix.len > 0 || (language_by_mark(written) != FRAME_NATIVE && !is_v8)) {
        disarm(out, start);
    }
}
