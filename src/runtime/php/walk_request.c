/* Which request a thread serves (walk.h): its method, its script and, if that is asked for, its URL with the query, as
 * the server told PHP before the script began. They are read with the frames, so they are of the same moment. Texts are
 * whatever the client has sent: what is no character is shown as "?". */
#include "base/utf8.h"
#include "runtime/php/walk.h"

enum { TEXT_METHOD, TEXT_SCRIPT, TEXT_URL, TEXT_QUERY };
enum { TOLD_ALWAYS = TEXT_SCRIPT + 1, METHOD_MAX = 15, SCRIPT_MAX = 107, REPLACEMENT = 0xfffd };

static const uint32_t places[REQUEST_TEXTS] = {
    [TEXT_METHOD] = REQUEST_METHOD,
    [TEXT_SCRIPT] = REQUEST_SCRIPT,
    [TEXT_URL] = REQUEST_URL,
    [TEXT_QUERY] = REQUEST_QUERY,
};

static unsigned text_count(const struct walk *w)
{
    return w->request.at == 0 ? 0 : w->php->shows_urls ? REQUEST_TEXTS : TOLD_ALWAYS;
}

void php_stack_ask_request(struct walk *w)
{
    struct walk_request *r = &w->request;
    unsigned count = text_count(w);
    r->piece = count > 0 ? php_stack_ask(w, r->at, r->bytes, sizeof r->bytes) : 0;
    for (unsigned i = 0; i < count; i++) {
        r->text_piece[i] = php_stack_ask(w, w->plan->request[i], r->text[i], i == TEXT_METHOD ? METHOD_MAX + 1
                                                                                              : REQUEST_TEXT_BYTES);
    }
}

bool php_stack_has_request(struct walk *w)
{
    struct walk_request *r = &w->request;
    bool same = true, is_told = php_stack_got(w, r->piece);
    for (unsigned i = 0; i < text_count(w); i++) {
        uint64_t at = is_told ? load_u64(r->bytes + places[i] - REQUEST_AT) : 0;
        r->got[i] = r->text_piece[i] == 0 ? 0 : w->piece[r->text_piece[i] - 1].got;
        same = same && at == w->plan->request[i];
        w->plan->request[i] = at;
    }
    return same;
}

/* Up to its 0, or as much of it as was read; of one that is not there: nothing. */
static struct str text_of(const struct walk *w, unsigned text)
{
    const struct walk_request *r = &w->request;
    uint32_t got = text < text_count(w) ? r->got[text] : 0;
    const char *end = memchr(r->text[text], 0, got);
    return (struct str){r->text[text], end == NULL ? got : (size_t)(end - r->text[text])};
}

static bool is_method(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < 'A' || text.ptr[i] > 'Z') {
            return false;
        }
    }
    return text.len > 0 && text.len <= METHOD_MAX;
}

/* At most `most` bytes of it, whole characters. */
static void put(struct runtime_stack *out, struct str text, size_t most)
{
    while (text.len > 0) {
        struct str rest = text;
        uint32_t c = utf8_take(&rest);
        size_t len = text.len - rest.len;
        bool is_text = c >= ' ' && c != 127 && (c != REPLACEMENT || len > 1);
        len = is_text ? len : 1;
        if (len > most) {
            return;
        }
        memcpy(out->task + out->task_bytes, is_text ? text.ptr : "?", len);
        out->task_bytes += (uint8_t)len;
        most -= len;
        text = rest;
    }
}

static void end_text(struct runtime_stack *out)
{
    out->task[out->task_bytes++] = '\0';
}

void php_stack_tell_request(struct walk *w)
{
    struct runtime_stack *out = w->out;
    struct str method = text_of(w, TEXT_METHOD), query = text_of(w, TEXT_QUERY);
    if (text_count(w) == 0 || !is_method(method)) {
        return;
    }
    out->marks |= RUNTIME_OF_REQUEST;
    put(out, method, METHOD_MAX);
    end_text(out);
    put(out, text_of(w, TEXT_SCRIPT), SCRIPT_MAX);
    end_text(out);
    if (w->php->shows_urls) {
        put(out, text_of(w, TEXT_URL), (size_t)(RUNTIME_TASK_MAX - 1 - out->task_bytes));
        put(out, query.len > 0 ? STR("?") : query, (size_t)(RUNTIME_TASK_MAX - 1 - out->task_bytes));
        put(out, query, (size_t)(RUNTIME_TASK_MAX - 1 - out->task_bytes));
    }
    end_text(out);
}
