/* Any bytes as a server's answer. The first chooses the method and the size of the pieces it comes in; whole or in
 * pieces it is the same answer, and what it holds is bounded and fit to be shown. */
#include "deliver/response.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct taken {
    struct http_response answer;
    bool any;
    struct err err;
};

static void take(struct taken *t, const char *method, struct str bytes, size_t step)
{
    struct response a;
    enum response_state state = RESPONSE_MORE;
    *t = (struct taken){0};
    response_init(&a, &t->answer, method, UINT64_C(1700000000000000000));
    for (size_t at = 0; at < bytes.len && state == RESPONSE_MORE; at += step) {
        state = response_feed(&a, str_sub(bytes, at, step), &t->err);
    }
    t->any = response_end(&a, true);
    check((state == RESPONSE_BAD) == (t->err.kind != ERR_NONE));
    check(state != RESPONSE_BAD || !t->any);
    check(state != RESPONSE_DONE || t->any);
    response_release(&a);
}

static void check_shown(const char *text, size_t max)
{
    size_t len = strnlen(text, max);
    check(len < max);
    for (size_t i = 0; i < len; i++) {
        check(text[i] >= ' ' && text[i] < 0x7f);
    }
}

static void check_answer(const struct http_response *a)
{
    check(a->status >= 200 && a->status <= 599);
    check_shown(a->reason, sizeof a->reason);
    check_shown(a->location, sizeof a->location);
    check(strchr(a->location, ' ') == NULL);
    check(a->body.len <= HTTP_BODY_MAX);
    check(a->retry_after_ns <= UINT64_C(86400000000000));
    check(a->whole || !a->keeps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"POST", "GET", "HEAD", "CONNECT"};
    if (size == 0) {
        return 0;
    }
    struct str bytes = {(const char *)data + 1, size - 1};
    const char *method = methods[data[0] & 3];
    struct taken whole, pieces;
    take(&whole, method, bytes, size);
    take(&pieces, method, bytes, (size_t)(data[0] >> 2) + 1);
    check(whole.any == pieces.any);
    if (whole.any) {
        check_answer(&whole.answer);
        check(whole.answer.status == pieces.answer.status);
        check(whole.answer.whole == pieces.answer.whole);
        check(strcmp(whole.answer.location, pieces.answer.location) == 0);
        check(whole.answer.retry_after_ns == pieces.answer.retry_after_ns);
        check(str_eq(buf_slice(&whole.answer.body), buf_slice(&pieces.answer.body)));
    }
    http_response_release(&whole.answer);
    http_response_release(&pieces.answer);
    return 0;
}
