/* src/deliver/plain: any profile to any address. */
#include "deliver.h"

static const struct backend *row(void)
{
    return backends[2];
}

static void sent_of(const char *type, const char *path, const char *method, const char *target)
{
    struct origin origin = origin_of_test();
    origin.service = STR("a b/c");
    struct backend_context context = {.origin = &origin, .method = str_of(method),
                                      .url = {.host = STR("h"), .path = str_of(path)}};
    struct delivery delivery = delivery_of("pprof", STR("bytes"));
    delivery.type = str_of(type);
    struct http_request request;
    struct buf text;
    struct err err;
    buf_init(&text, 10000);
    for (unsigned again = 0; again < 3; again++) {
        CHECK(row()->request(&context, &delivery, &request, &text, &err));
        CHECK_STR(request.target, target);
        CHECK_STR(request.body, "bytes");
        CHECK_INT(context.url.path.len, 0); /* the client puts it before the target */
        if (again > 0) {
            context.url.path = str_of(path); /* the address is read anew */
        }
        CHECK_TEXT(request.method, strcmp(method, "POST") == 0 ? "POST" : "PUT");
    }
    buf_release(&text);
}

static void sent(const char *path, const char *method, const char *target)
{
    sent_of("", path, method, target);
}

static void a_further_profile_has_a_place_of_its_own(void)
{
    sent_of("alloc_space", "/in", "PUT", "/in.alloc_space");
    sent_of("alloc_space", "/in?x=1", "PUT", "/in.alloc_space?x=1");
    sent_of("alloc_space", "/{sequence}.{format}?x", "PUT", "/7.alloc_space.pprof?x");
    sent_of("alloc_space", "/{type}/{start}", "PUT", "/alloc_space/20251120T103104Z");
    sent_of("", "/{type}/{start}", "PUT", "/cpu/20251120T103104Z");
}

static void names_in_an_address_are_filled_in(void)
{
    sent("", "", "/");
    sent("/in", "POST", "/in");
    sent("/p/{service}/{host}/{start}-{end}-{sequence}.{format}?x=1", "PUT",
         "/p/a%20b%2Fc/web-1/20251120T103104Z-20251120T103204Z-7.pprof?x=1");
    sent("/{other}/{}/{start", "PUT", "/%7Bother}/%7B}/%7Bstart");
}

static void headers_are(struct backend_context *context, const char *name, const char *value)
{
    struct origin origin = origin_of_test();
    struct delivery delivery = delivery_of("col", STR("x"));
    delivery.mime = STR("text/plain; charset=utf-8");
    struct http_request request;
    struct buf text;
    struct err err;
    context->origin = &origin;
    buf_init(&text, 10000);
    CHECK(row()->request(context, &delivery, &request, &text, &err));
    CHECK_STR(header_of(&request, name), value);
    for (size_t i = 0; i < request.header_count; i++) {
        CHECK(request.headers[i].secret == (i > 0)); /* all but Content-Type */
    }
    buf_release(&text);
}

static void a_token_is_a_bearer_or_a_user_and_password(void)
{
    headers_are(&(struct backend_context){.token = STR("")}, "Authorization", "(none)");
    headers_are(&(struct backend_context){.token = STR("abc")}, "Authorization", "Bearer abc");
    headers_are(&(struct backend_context){.token = STR("Aladdin:open sesame")}, "Authorization",
                "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="); /* RFC 7617 2 */
}

static void headers_of_ones_own_are_sent_and_win(void)
{
    struct backend_context context = {.token = STR("abc"), .header_count = 2,
                                      .headers = {{STR("authorization"), STR("Custom 1")},
                                                  {STR("X-Key"), STR("k")}}};
    headers_are(&context, "X-Key", "k");
    headers_are(&context, "authorization", "Custom 1");
    headers_are(&context, "Authorization", "(none)");
    headers_are(&context, "Content-Type", "text/plain; charset=utf-8");
}

static void what_cannot_be_sent_is_refused(void)
{
    struct origin origin = origin_of_test();
    struct delivery delivery = delivery_of("col", STR("x"));
    struct backend_context wrong[] = {
        {.origin = &origin, .method = STR("DELETE")},
        {.origin = &origin, .token = STR("a\r\nX: y")},
        {.origin = &origin, .headers = {{STR("X"), STR("a\nb")}}, .header_count = 1},
        {.origin = &origin, .headers = {{STR("X\n"), STR("a")}}, .header_count = 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct http_request request;
        struct buf text;
        struct err err = {0};
        buf_init(&text, 10000);
        CHECK(!row()->request(&wrong[i], &delivery, &request, &text, &err));
        CHECK_INT(err.kind, ERR_USAGE);
        buf_release(&text);
    }
}

TESTS({"a further profile has a place of its own", a_further_profile_has_a_place_of_its_own},
      {"names in an address are filled in, others stay", names_in_an_address_are_filled_in},
      {"a token is a bearer, or a user and a password", a_token_is_a_bearer_or_a_user_and_password},
      {"headers of one's own are sent, and win", headers_of_ones_own_are_sent_and_win},
      {"what cannot be sent is refused, with a reason", what_cannot_be_sent_is_refused})
