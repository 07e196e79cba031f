/* src/deliver/http and answer: what goes out, and what may come back. */
#include "deliver/response.h"
#include "base/version.h"
#include "deliver/http.h"
#include "memory_stream.h"
#include "test.h"

/* Sun, 06 Nov 1994 08:49:37 GMT, RFC 9110's own example, as `date -d` has it. */
#define EXAMPLE_S UINT64_C(784111777)
#define SECOND_NS UINT64_C(1000000000)

static const struct http_request get = {.method = "GET", .target = {"/", 1}, .host = {"h", 1}};

static struct http_request post_of(struct str body)
{
    return (struct http_request){
        .method = "POST", .target = STR("/up?x=1"), .host = STR("h:81"), .body = body};
}

/* What comes of one exchange; released by `done`. */
struct result {
    struct memory_stream server;
    struct http_response answer;
    struct err err;
    bool ok;
};

static void run(struct result *r, const struct http_request *request)
{
    struct stream stream = memory_stream_of(&r->server);
    r->err = (struct err){0};
    r->ok = http_exchange(&stream, request, EXAMPLE_S * SECOND_NS, UINT64_MAX, &r->answer, &r->err);
}

static void done(struct result *r)
{
    http_response_release(&r->answer);
    memory_release(&r->server);
}

static struct result ask(const char *says)
{
    struct result r;
    memory_init(&r.server, says);
    run(&r, &get);
    return r;
}

/* ---- requests ---- */

static void a_request_tells_its_length_and_goes_out_at_once(void)
{
    struct result r;
    struct http_request request = post_of(STR("12345"));
    CHECK(http_add(&request, STR("Authorization"), STR("Bearer SECRET-1"), true));
    CHECK(http_add(&request, STR("Content-Type"), STR("text/plain"), false));
    memory_init(&r.server, "HTTP/1.1 204 Done\r\n\r\n");
    run(&r, &request);
    CHECK(r.ok && r.answer.sent_all && r.answer.sent && r.answer.began && r.answer.keeps);
    CHECK_INT(r.server.writes, 1);
    CHECK_STR(buf_slice(&r.server.heard), "POST /up?x=1 HTTP/1.1\r\n"
                                          "Host: h:81\r\n"
                                          "User-Agent: pillion/" PILLION_VERSION "\r\n"
                                          "Accept: */*\r\n"
                                          "Authorization: Bearer SECRET-1\r\n"
                                          "Content-Type: text/plain\r\n"
                                          "Content-Length: 5\r\n"
                                          "\r\n"
                                          "12345");
    done(&r);
}

static void a_body_of_any_length_arrives_whole(void)
{
    enum { LEN = 300000 };
    char *body = malloc(LEN);
    for (size_t i = 0; i < LEN; i++) {
        body[i] = (char)(i * 7 % 251);
    }
    for (size_t len = 0; len <= LEN; len = len * 3 + 1) {
        struct http_request request = post_of((struct str){body, len});
        struct result r;
        memory_init(&r.server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        r.server.takes = 997;
        run(&r, &request);
        CHECK(r.ok && r.answer.sent_all);
        struct str heard = buf_slice(&r.server.heard);
        char length[64];
        snprintf(length, sizeof length, "Content-Length: %zu\r\n\r\n", len);
        CHECK(str_eq(str_sub(heard, heard.len - len, len), request.body));
        CHECK(str_ends(str_sub(heard, 0, heard.len - len), str_of(length)));
        done(&r);
    }
    free(body);
}

static void a_get_has_no_length_and_a_given_name_takes_the_place_of_ours(void)
{
    struct result r;
    struct http_request request = get;
    CHECK(http_add(&request, STR("user-agent"), STR("x"), false));
    CHECK(http_add(&request, STR("ACCEPT"), STR("y"), false));
    CHECK(http_add(&request, STR("Host"), STR("z"), false));
    memory_init(&r.server, "HTTP/1.1 204\r\n\r\n");
    run(&r, &request);
    CHECK(r.ok);
    CHECK_STR(buf_slice(&r.server.heard),
              "GET / HTTP/1.1\r\nuser-agent: x\r\nACCEPT: y\r\nHost: z\r\n\r\n");
    done(&r);
}

static void refused(struct http_request request, const char *part)
{
    struct result r;
    memory_init(&r.server, "HTTP/1.1 204 Done\r\n\r\n");
    run(&r, &request);
    CHECK(!r.ok && r.err.kind == ERR_USAGE);
    CHECK(strstr(r.err.text, part) != NULL);
    CHECK(strstr(r.err.text, "SECRET") == NULL);
    CHECK_INT(r.server.heard.len, 0);
    CHECK(!r.answer.sent);
    done(&r);
}

static void a_line_end_in_any_part_is_refused_before_anything_is_sent(void)
{
    static const struct str values[] = {{"SECRET\r\nX: y", 12}, {"SECRET\n", 7}, {"\rSECRET", 7},
                                        {"SECRET\0", 7},        {"SECRET\x1b", 7}};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        struct http_request request = get;
        CHECK(http_add(&request, STR("X-Token"), values[i], true));
        refused(request, "the header X-Token has a line end");
        request = get;
        CHECK(http_add(&request, values[i], STR("x"), true));
        refused(request, "a header's name");
        request = get;
        request.target = values[i];
        refused(request, "the path");
        request.target = get.target;
        request.host = values[i];
        refused(request, "the host");
    }
    struct http_request request = get;
    request.method = "GET / HTTP/1.1\r\n";
    refused(request, "the method");
    request = get;
    request.target = STR("");
    refused(request, "the path");
    request = get;
    CHECK(http_add(&request, STR(""), STR("x"), false));
    refused(request, "a header's name");
}

static void the_framing_is_nobody_elses_to_set(void)
{
    static const char *const names[] = {"content-length", "Transfer-Encoding", "CONNECTION"};
    for (size_t i = 0; i < 3; i++) {
        struct http_request request = get;
        CHECK(http_add(&request, str_of(names[i]), STR("1"), false));
        refused(request, "is not for others to set");
    }
}

static void there_is_room_for_24_headers(void)
{
    struct http_request request = get;
    for (int i = 0; i < HTTP_HEADERS_MAX; i++) {
        CHECK(http_add(&request, STR("A"), STR("b"), false));
    }
    CHECK(!http_add(&request, STR("A"), STR("b"), false));
}

static void what_is_shown_has_no_secret_and_no_body(void)
{
    struct buf out;
    struct http_request request = post_of(STR("12345"));
    CHECK(http_add(&request, STR("Authorization"), STR("Bearer SECRET-1"), true));
    buf_init(&out, 4096);
    http_show(&request, &out);
    CHECK_TEXT(buf_cstr(&out), "POST /up?x=1 HTTP/1.1\n"
                               "Host: h:81\n"
                               "User-Agent: pillion/" PILLION_VERSION "\n"
                               "Accept: */*\n"
                               "Authorization: ***\n"
                               "Content-Length: 5\n"
                               "\n"
                               "(5 bytes)\n");
    buf_clear(&out);
    CHECK(http_add(&request, STR("X"), STR("SECRET\n"), true));
    http_show(&request, &out);
    CHECK(strstr(buf_cstr(&out), "not sent") != NULL && strstr(buf_cstr(&out), "SECRET") == NULL);
    buf_release(&out);
}

/* ---- answers ---- */

static const char by_length[] = "HTTP/1.1 200 All is well\r\nServer: x\r\ncontent-LENGTH:  11 \r\n\r\n"
                                "hello again";
static const char by_chunks[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                "5;name=\"value\"\r\nhello\r\n1 \r\n \r\n005\r\nagain\r\n"
                                "0\r\nX-Sum: 12\r\nContent-Length: 7\r\n\r\n";
static const char by_end[] = "HTTP/1.0 200 OK\nServer: x\n\nhello again";

static void every_framing_is_read_in_pieces_of_any_size(void)
{
    static const char *const answers[] = {by_length, by_chunks, by_end};
    for (size_t i = 0; i < 3; i++) {
        for (size_t step = 1; step <= 64; step++) {
            struct result r;
            memory_init(&r.server, answers[i]);
            r.server.step = step;
            run(&r, &get);
            CHECK(r.ok && r.answer.whole && r.answer.began);
            CHECK_INT(r.answer.status, 200);
            CHECK_TEXT(r.answer.reason, i == 0 ? "All is well" : "OK");
            CHECK_STR(buf_slice(&r.answer.body), "hello again");
            CHECK_INT(r.answer.keeps, i != 2); /* the end of the connection is the end of the body */
            done(&r);
        }
    }
}

/* An answer counts once its head is there; what is missing of the body is told. */
static void cut_anywhere_the_head_decides(void)
{
    static const char *const answers[] = {by_length, by_chunks};
    for (size_t i = 0; i < 2; i++) {
        size_t head = (size_t)(strstr(answers[i], "\r\n\r\n") - answers[i]) + 4;
        for (size_t len = 0; len < strlen(answers[i]); len++) {
            for (int how = 0; how < 2; how++) {
                struct result r;
                memory_init(&r.server, answers[i]);
                r.server.says.len = len;
                r.server.ends_with = how == 0 ? 0 : ECONNRESET;
                run(&r, &get);
                CHECK_INT(r.ok, len >= head);
                CHECK(!r.answer.whole && !r.answer.keeps);
                CHECK_INT(r.answer.began, len > 0);
                CHECK(r.ok ? r.answer.status == 200 : r.err.kind == ERR_NETWORK);
                done(&r);
            }
        }
    }
}

static void an_end_without_an_answer_says_when_it_came(void)
{
    struct result r = ask("");
    CHECK_TEXT(r.err.text, "the connection was closed instead of a response");
    CHECK(r.answer.sent_all && !r.answer.began);
    done(&r);
    r = ask("HTTP/1.1 2");
    CHECK_TEXT(r.err.text, "the connection was closed in the middle of the response's headers");
    done(&r);
}

static void interim_answers_are_passed_over(void)
{
    struct result r = ask("HTTP/1.1 100 Continue\r\nLocation: /x\r\n\r\n"
                          "HTTP/1.1 103 Hints\r\nContent-Length: 5\r\nConnection: close\r\n\r\n"
                          "HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno");
    CHECK(r.ok && r.answer.whole && r.answer.keeps);
    CHECK_INT(r.answer.status, 404);
    CHECK_TEXT(r.answer.location, "");
    CHECK_STR(buf_slice(&r.answer.body), "no");
    done(&r);
    r = ask("HTTP/1.1 101 Switching\r\n\r\n");
    CHECK(!r.ok && strstr(r.err.text, "another protocol") != NULL);
    done(&r);
}

static void answers_without_a_body_have_none_whatever_they_say(void)
{
    struct result r = ask("HTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n");
    CHECK(r.ok && r.answer.whole && r.answer.keeps && r.answer.body.len == 0);
    done(&r);
    r = ask("HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n");
    CHECK(r.ok && r.answer.whole && r.answer.keeps);
    done(&r);
    struct http_request request = get;
    request.method = "HEAD";
    memory_init(&r.server, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    run(&r, &request);
    CHECK(r.ok && r.answer.whole && r.answer.keeps);
    done(&r);
    request.method = "CONNECT";
    memory_init(&r.server, "HTTP/1.0 200 Connection established\r\nContent-Length: 9\r\n\r\n");
    run(&r, &request);
    CHECK(r.ok && r.answer.keeps);
    done(&r);
    memory_init(&r.server, "HTTP/1.1 200 OK\r\n\r\nSSH-2.0");
    run(&r, &request);
    CHECK(r.ok && !r.answer.keeps); /* the tunnel's other end has nothing to say yet */
    done(&r);
}

static void a_connection_is_kept_only_when_both_sides_mean_it(void)
{
    static const struct {
        const char *says;
        bool keeps;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", true},
        {"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 0\r\n\r\n", false},
        {"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", false},
        {"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", true},
        {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabc", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result r = ask(cases[i].says);
        CHECK(r.ok);
        CHECK_INT(r.answer.keeps, cases[i].keeps);
        done(&r);
    }
}

static void retry_after_is_seconds_or_a_date(void)
{
    static const struct {
        const char *value;
        uint64_t seconds;
    } cases[] = {
        {"120", 120},
        {"0", 0},
        {"86401", 86400}, /* a day at most */
        {"18446744073709551615", 86400},
        {"Sun, 06 Nov 1994 08:51:37 GMT", 120}, /* the example's time, 2 minutes later, in three forms */
        {"Sunday, 06-Nov-94 08:51:37 GMT", 120},
        {"Sun Nov  6 08:51:37 1994", 120},
        {"Sun, 06 Nov 1994 08:49:36 GMT", 0}, /* a second ago */
        {"Mon, 06 Nov 2094 08:49:36 GMT", 86400},
        {"Mon, 07 Nov 1994 08:49:37 GMT", 86400},
        {"Tue, 01 Nov 1994 00:00:00 GMT", 0},
        {"Sun, 06 Nov 1994 24:49:37 GMT", 0},
        {"Sun, 06 Nox 1994 08:51:37 GMT", 0},
        {"soon", 0},
        {"-1", 0},
        {"1.5", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char says[200];
        snprintf(says, sizeof says, "HTTP/1.1 429 Slow\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n",
                 cases[i].value);
        struct result r = ask(says);
        CHECK(r.ok && r.answer.status == 429);
        CHECK_INT(r.answer.retry_after_ns, cases[i].seconds * SECOND_NS);
        done(&r);
    }
}

/* 29 February 2000 and 1 March 2100 by the same rule: `date -ud '2000-02-29' +%s` is 951782400. */
static void leap_days_are_counted(void)
{
    struct result r;
    struct stream stream = memory_stream_of(&r.server);
    memory_init(&r.server, "HTTP/1.1 503 x\r\nRetry-After: Tue, 29 Feb 2000 00:00:07 GMT\r\n"
                           "Content-Length: 0\r\n\r\n");
    CHECK(http_exchange(&stream, &get, UINT64_C(951782400) * SECOND_NS, 1, &r.answer, &r.err));
    CHECK_INT(r.answer.retry_after_ns, 7 * SECOND_NS);
    done(&r);
}

static void a_location_is_taken_only_when_it_can_be_one(void)
{
    struct result r = ask("HTTP/1.1 307 x\r\nLocation: https://h/a?b=c\r\nContent-Length: 0\r\n\r\n");
    CHECK_TEXT(r.answer.location, "https://h/a?b=c");
    done(&r);
    r = ask("HTTP/1.1 307 x\r\nLocation: https://h/\rX: y\r\nContent-Length: 0\r\n\r\n");
    CHECK_TEXT(r.answer.location, "");
    done(&r);
    r = ask("HTTP/1.1 307 x\r\nLocation: https://h/ a\r\nContent-Length: 0\r\n\r\n");
    CHECK_TEXT(r.answer.location, "");
    done(&r);
    r = ask("HTTP/1.1 307 x\r\nLocation: /a\r\n b\r\nContent-Length: 0\r\n\r\n");
    CHECK_TEXT(r.answer.location, ""); /* folded: "/a  b" */
    done(&r);
    char says[1400] = "HTTP/1.1 307 x\r\nContent-Length: 0\r\nLocation: /";
    size_t at = strlen(says);
    memset(says + at, 'a', 1022); /* 1023 bytes in all */
    strcpy(says + at + 1022, "\r\n\r\n");
    r = ask(says);
    CHECK_INT(strlen(r.answer.location), 1023);
    done(&r);
    strcpy(says + at + 1022, "a\r\n\r\n");
    r = ask(says);
    CHECK_TEXT(r.answer.location, "");
    done(&r);
}

static void the_reason_drives_no_terminal(void)
{
    struct result r = ask("HTTP/1.1 500 \x1b[2J\x07 \xc3\xa4 \t!\r\nContent-Length: 0\r\n\r\n");
    CHECK_TEXT(r.answer.reason, "?[2J? ?? ?!");
    done(&r);
    r = ask("HTTP/1.1 500\r\nContent-Length: 0\r\n\r\n");
    CHECK(r.ok);
    CHECK_TEXT(r.answer.reason, "");
    done(&r);
}

static void folded_lines_go_on_with_the_one_before(void)
{
    struct result r = ask("HTTP/1.1 200 OK\r\nConnection: x,\r\n\tclose\r\n"
                          "X: a\r\n Content-Length: 99\r\nContent-Length: 0\r\n\r\n");
    CHECK(r.ok && r.answer.whole && !r.answer.keeps);
    done(&r);
}

static void bad(const char *says, const char *part)
{
    struct result r = ask(says);
    CHECK(!r.ok && r.err.kind == ERR_NETWORK && !r.answer.keeps);
    if (strstr(r.err.text, part) == NULL) {
        CHECK_TEXT(r.err.text, part);
    }
    done(&r);
}

static void what_may_be_two_answers_in_one_is_none(void)
{
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "both a Content-Length and a Transfer-Encoding");
    bad("HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\nContent-Length : 5\r\n\r\n0\r\n\r\n",
        "both a Content-Length and a Transfer-Encoding");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "contradictory");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\nhello", "contradictory");
    bad("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "contradictory");
    bad("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nhello", "contradictory");
    struct result r = ask("HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\nhello");
    CHECK(r.ok && r.answer.keeps);
    done(&r);
}

static void other_protocols_are_known_by_their_first_bytes(void)
{
    bad("\x15\x03\x01\x00\x02\x02\x46", "expects https");
    bad("SSH-2.0-OpenSSH_9\r\n", "another service");
    bad("HTTP/2 200 OK\r\n\r\n", "HTTP/2");
    bad("HTTP/1.1 20 OK\r\n\r\n", "does not have");
    bad("HTTP/1.1 099 OK\r\n\r\n", "does not have");
    bad("HTTP/1.1 600 OK\r\n\r\n", "does not have");
    bad("HTTP/1.x 200 OK\r\n\r\n", "does not have");
    bad("HTTP/1.1\r\n\r\n", "does not have");
    /* and without waiting for a line to end */
    struct result r;
    memory_init(&r.server, "xxxxxxxx");
    r.server.endless = true;
    run(&r, &get);
    CHECK(!r.ok && r.server.reads == 1);
    done(&r);
}

static void odd_chunks_end_the_body_but_not_the_answer(void)
{
    static const char *const bodies[] = {"x\r\n",
                                         "\r\n",
                                         ";a=b\r\n",
                                         "-1\r\n",
                                         "5\r\nhelloX\r\n0\r\n\r\n",
                                         "10000000000000000\r\nx",
                                         /* modulo 2^64 it would be 5 */
                                         "10000000000000005\r\nhello\r\n0\r\n\r\n",
                                         "fffffffffffffffff\r\nx"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        char says[200];
        snprintf(says, sizeof says, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n%s",
                 bodies[i]);
        struct result r = ask(says);
        CHECK(r.ok && r.answer.status == 200 && !r.answer.whole && !r.answer.keeps);
        done(&r);
    }
}

/* ---- servers that want to be read for ever ---- */

static struct result ask_endless(const char *says, const char *again)
{
    struct result r;
    memory_init(&r.server, says);
    r.server.endless = true;
    r.server.repeats_from = (size_t)(strstr(says, again) - says);
    run(&r, &get);
    return r;
}

static void endless_heads_end_at_64_kib(void)
{
    static const char *const heads[] = {
        "HTTP/1.1 200 OK\r\nX: y\r\n",
        "HTTP/1.1 200 yyyyyyyyyyyyyyyy",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "\r\n\r\n",
    };
    static const char *const again[] = {"X: y\r\n", "yyyy", "HTTP", "\r\n"};
    for (size_t i = 0; i < 4; i++) {
        struct result r = ask_endless(heads[i], again[i]);
        CHECK(!r.ok && strstr(r.err.text, "64 KiB") != NULL);
        CHECK(r.server.bytes_read <= RESPONSE_HEADS_MAX + 16 * 1024);
        done(&r);
    }
}

static void endless_bodies_are_read_for_a_mebibyte(void)
{
    static const char *const bodies[] = {
        "HTTP/1.1 200 OK\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxx",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\nxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;aaaaaaaaaaaaaaaaaaaaaaa",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0000000000",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: x\r\n",
    };
    static const char *const again[] = {"xx", "xx", "1\r\nx", "aaaa", "0000", "T: x"};
    for (size_t i = 0; i < 6; i++) {
        struct result r = ask_endless(bodies[i], again[i]);
        CHECK(r.ok && r.answer.status == 200 && !r.answer.whole && !r.answer.keeps);
        CHECK(r.server.bytes_read <= RESPONSE_DROP_MAX + HTTP_BODY_MAX + 16 * 1024 + 200);
        CHECK(r.answer.body.len <= HTTP_BODY_MAX);
        done(&r);
    }
}

static void a_long_body_is_read_to_its_end_and_kept_in_part(void)
{
    enum { LEN = 1000000 };
    char *says = malloc(LEN + 100);
    int head = snprintf(says, 100, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LEN);
    memset(says + head, 'b', LEN);
    says[head + LEN] = '\0';
    struct result r = ask(says);
    CHECK(r.ok && r.answer.whole && r.answer.keeps);
    CHECK_INT(r.answer.body.len, HTTP_BODY_MAX);
    done(&r);
    free(says);
}

static void a_request_says_how_much_is_kept_and_which_field_it_wants(void)
{
    static const char says[] = "HTTP/1.1 100 Go on\r\nmetadata-flavor: no\r\n\r\n"
                               "HTTP/1.1 200 OK\r\nX: y\r\nMETADATA-flavor:  Google \r\n"
                               "Content-Length: 6\r\n\r\nabcdef";
    struct http_request request = get;
    struct result r;
    request.watch = "Metadata-Flavor";
    request.most_kept = 5;
    memory_init(&r.server, says);
    run(&r, &request);
    CHECK(r.ok && r.answer.whole);
    CHECK_TEXT(r.answer.watched, "Google");
    CHECK_STR(buf_slice(&r.answer.body), "abcde");
    done(&r);
    r = ask(says);
    CHECK_TEXT(r.answer.watched, "");
    CHECK_STR(buf_slice(&r.answer.body), "abcdef");
    done(&r);
    memory_init(&r.server, "HTTP/1.1 100 Go on\r\nMetadata-Flavor: Google\r\n\r\nHTTP/1.1 204 x\r\n\r\n");
    run(&r, &request);
    CHECK(r.ok);
    CHECK_TEXT(r.answer.watched, ""); /* an interim answer's field is not the answer's */
    done(&r);
}

static void a_length_that_lies_ends_with_the_connection(void)
{
    struct result r;
    memory_init(&r.server, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello");
    r.server.ends_with = ETIMEDOUT;
    run(&r, &get);
    CHECK(r.ok && r.answer.status == 200 && !r.answer.whole && !r.answer.keeps);
    CHECK_STR(buf_slice(&r.answer.body), "hello");
    done(&r);
}

/* ---- servers that do not hear us out ---- */

static const char too_large[] = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno!";

static void run_large(struct result *r, size_t len)
{
    char *body = calloc(1, len);
    struct http_request request = post_of((struct str){body, len});
    run(r, &request);
    free(body);
}

static void an_early_answer_ends_the_sending(void)
{
    struct result r;
    memory_init(&r.server, too_large);
    r.server.speaks_at = 100000;
    run_large(&r, 5000000);
    CHECK(r.ok && r.answer.status == 413 && r.answer.whole);
    CHECK(r.answer.sent && !r.answer.sent_all && r.answer.is_early && !r.answer.keeps);
    CHECK(r.server.heard.len >= 100000 && r.server.heard.len < 200000);
    done(&r);
}

static void an_interim_answer_does_not_end_it(void)
{
    struct result r;
    memory_init(&r.server, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    r.server.step = r.server.speaks_until = 25; /* the first answer alone */
    r.server.speaks_at = 100000;
    run_large(&r, 5000000);
    CHECK(r.ok && r.answer.status == 200 && r.answer.sent_all && !r.answer.is_early && r.answer.keeps);
    CHECK(r.server.heard.len > 5000000);
    done(&r);
}

static void a_write_that_asks_to_read_first_goes_on_afterwards(void)
{
    struct result r;
    memory_init(&r.server, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    r.server.step = r.server.speaks_until = 25;
    r.server.speaks_stuck = true;
    r.server.stuck_at = 100000;
    r.server.stuck_with = EAGAIN;
    run_large(&r, 5000000);
    CHECK(r.ok && r.answer.status == 200 && r.answer.sent_all && !r.answer.is_early && r.answer.keeps);
    CHECK(r.server.heard.len > 5000000);
    done(&r);
}

static void a_cut_while_sending_does_not_hide_the_answer(void)
{
    static const int errors[] = {EPIPE, ECONNRESET, ETIMEDOUT};
    for (size_t i = 0; i < 3; i++) {
        struct result r;
        memory_init(&r.server, too_large);
        r.server.ends_with = ECONNRESET;
        r.server.stuck_at = 70000;
        r.server.stuck_with = errors[i];
        run_large(&r, 5000000);
        CHECK(r.ok && r.answer.status == 413 && !r.answer.sent_all && !r.answer.keeps);
        CHECK_STR(buf_slice(&r.answer.body), "no!");
        done(&r);
    }
}

static void a_cut_while_sending_without_an_answer_is_told_as_it_was(void)
{
    struct result r;
    memory_init(&r.server, "");
    r.server.ends_with = ECONNRESET;
    r.server.stuck_at = 70000;
    r.server.stuck_with = EPIPE;
    run_large(&r, 5000000);
    CHECK(!r.ok && r.err.number == EPIPE && r.answer.sent && !r.answer.sent_all && !r.answer.began);
    done(&r);
    memory_init(&r.server, "");
    r.server.stuck_with = EPIPE;
    run_large(&r, 1);
    CHECK(!r.ok && !r.answer.sent);
    done(&r);
}

static void who_breaks_it_off_waits_for_no_answer(void)
{
    struct result r;
    memory_init(&r.server, too_large);
    r.server.stuck_at = 70000;
    r.server.stuck_with = ECANCELED;
    run_large(&r, 5000000);
    CHECK(!r.ok && r.err.number == ECANCELED && r.server.reads == 0);
    done(&r);
}

TESTS({"a request tells its length and goes out at once",
       a_request_tells_its_length_and_goes_out_at_once},
      {"a body of any length arrives whole", a_body_of_any_length_arrives_whole},
      {"a GET has no length, and a given name takes the place of ours",
       a_get_has_no_length_and_a_given_name_takes_the_place_of_ours},
      {"a line end in any part is refused before anything is sent",
       a_line_end_in_any_part_is_refused_before_anything_is_sent},
      {"the framing is nobody else's to set", the_framing_is_nobody_elses_to_set},
      {"there is room for 24 headers", there_is_room_for_24_headers},
      {"what is shown has no secret and no body", what_is_shown_has_no_secret_and_no_body},
      {"every framing is read in pieces of any size", every_framing_is_read_in_pieces_of_any_size},
      {"cut anywhere, the head decides", cut_anywhere_the_head_decides},
      {"an end without an answer says when it came", an_end_without_an_answer_says_when_it_came},
      {"interim answers are passed over", interim_answers_are_passed_over},
      {"answers without a body have none, whatever they say",
       answers_without_a_body_have_none_whatever_they_say},
      {"a connection is kept only when both sides mean it",
       a_connection_is_kept_only_when_both_sides_mean_it},
      {"Retry-After is seconds or a date", retry_after_is_seconds_or_a_date},
      {"leap days are counted", leap_days_are_counted},
      {"a Location is taken only when it can be one", a_location_is_taken_only_when_it_can_be_one},
      {"the reason drives no terminal", the_reason_drives_no_terminal},
      {"folded lines go on with the one before", folded_lines_go_on_with_the_one_before},
      {"what may be two answers in one is none", what_may_be_two_answers_in_one_is_none},
      {"other protocols are known by their first bytes",
       other_protocols_are_known_by_their_first_bytes},
      {"odd chunks end the body but not the answer", odd_chunks_end_the_body_but_not_the_answer},
      {"endless heads end at 64 KiB", endless_heads_end_at_64_kib},
      {"endless bodies are read for a mebibyte", endless_bodies_are_read_for_a_mebibyte},
      {"a long body is read to its end and kept in part",
       a_long_body_is_read_to_its_end_and_kept_in_part},
      {"a request says how much is kept and which field it wants",
       a_request_says_how_much_is_kept_and_which_field_it_wants},
      {"a length that lies ends with the connection", a_length_that_lies_ends_with_the_connection},
      {"an early answer ends the sending", an_early_answer_ends_the_sending},
      {"an interim answer does not end it", an_interim_answer_does_not_end_it},
      {"a write that asks to read first goes on afterwards",
       a_write_that_asks_to_read_first_goes_on_afterwards},
      {"a cut while sending does not hide the answer", a_cut_while_sending_does_not_hide_the_answer},
      {"a cut while sending without an answer is told as it was",
       a_cut_while_sending_without_an_answer_is_told_as_it_was},
      {"who breaks it off waits for no answer", who_breaks_it_off_waits_for_no_answer})
