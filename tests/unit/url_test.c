/* src/deliver/url and address. */
#include "deliver/url.h"
#include "deliver/address.h"
#include "test.h"

static struct url parsed(const char *text, uint16_t default_port)
{
    struct url url = {0};
    struct err err = {0};
    CHECK(url_parse(&url, str_of(text), default_port, &err));
    CHECK_TEXT(err.text, "");
    return url;
}

static void check(const char *text, bool tls, const char *host, uint16_t port, const char *path)
{
    struct url url = parsed(text, 4040);
    CHECK_INT(url.tls, tls);
    CHECK(!url.is_unix);
    CHECK_STR(url.host, host);
    CHECK_INT(url.port, port);
    CHECK_STR(url.path, path);
}

static void schemes_say_what_they_say(void)
{
    check("http://pyro.example", false, "pyro.example", 4040, "");
    check("HTTPS://pyro.example:8443/a/b", true, "pyro.example", 8443, "/a/b");
    check("https://pyro.example", true, "pyro.example", 443, "");
    check("https://10.1.2.3:80", true, "10.1.2.3", 80, "");
    check("  http://a-b_c.example.:1 \n", false, "a-b_c.example.", 1, "");
}

static void without_a_scheme_it_is_https_unless_it_is_plain(void)
{
    check("pyro.example", true, "pyro.example", 443, "");
    check("pyro.example:9000/x", true, "pyro.example", 9000, "/x");
    check("pyro.example:443", true, "pyro.example", 443, "");
    /* loopback, the usual plain ports, and the back end's own */
    check("localhost", false, "localhost", 4040, "");
    check("localhost:9000", false, "localhost", 9000, "");
    check("127.9.9.9", false, "127.9.9.9", 4040, "");
    check("[::1]:9000", false, "::1", 9000, "");
    check("pyro.example:80", false, "pyro.example", 80, "");
    check("pyro.example:8080", false, "pyro.example", 8080, "");
    check("pyro.example:4040", false, "pyro.example", 4040, "");
    CHECK(parsed("studio.example:443", 443).tls);
    CHECK_INT(parsed("http://x", 0).port, 80);
}

static void paths_and_queries_are_kept_without_the_last_slash(void)
{
    check("http://h/", false, "h", 4040, "");
    check("http://h/a/b//", false, "h", 4040, "/a/b");
    check("http://h/a/?x=/", false, "h", 4040, "/a/?x=/");
    check("http://h?x=1", false, "h", 4040, "?x=1");
    check("http://h/a#part", false, "h", 4040, "/a");
    check("http://h/user@example", false, "h", 4040, "/user@example");
}

static void ipv6_stands_in_brackets(void)
{
    check("http://[2001:db8::1]/x", false, "2001:db8::1", 4040, "/x");
    check("http://[fe80::1%eth0]:1", false, "fe80::1%eth0", 1, "");
    check("https://[::ffff:10.0.0.1]", true, "::ffff:10.0.0.1", 443, "");
}

static void unix_sockets_have_a_path_or_a_name(void)
{
    struct url url = parsed("unix:///run/agent.sock", 0);
    CHECK(url.is_unix && !url.tls && url.port == 0);
    CHECK_STR(url.host, "/run/agent.sock");
    CHECK_STR(parsed("unix:@agent", 0).host, "@agent");
    CHECK_STR(parsed("unix://@agent", 0).host, "@agent");
}

static void refused(const char *text, const char *part)
{
    struct url url;
    struct err err = {0};
    CHECK(!url_parse(&url, str_of(text), 80, &err));
    CHECK_INT(err.kind, ERR_USAGE);
    if (strstr(err.text, part) == NULL) {
        CHECK_TEXT(err.text, part);
    }
}

static void what_is_no_address_is_refused_with_a_reason(void)
{
    refused("", "the host is missing");
    refused("http://", "the host is missing");
    refused("http:///x", "the host is missing");
    refused("http://:80", "the host is missing");
    refused("ftp://h", "the scheme must be");
    refused("http://h:0", "the port after the colon");
    refused("http://h:65536", "the port after the colon");
    refused("http://h:8o", "the port after the colon");
    refused("http://::1", "in brackets");
    refused("2001:db8::1", "in brackets");
    refused("http://[10.0.0.1]", "only an IPv6 address");
    refused("http://[::1", "only an IPv6 address");
    refused("http://[", "only an IPv6 address");
    refused("http://[::1]8", "may follow ]");
    refused("http://[::1%e\r]", "only an IPv6 address");
    refused("http://a b/", "neither a name");
    refused("http://a\r\nHost: b/", "neither a name");
    refused("http://.a/", "neither a name");
    refused("http://m\xc3\xbcller.example/", "xn--");
    refused("http://h/a b", "percent-escaped");
    refused("http://h/a\r\nX: y", "percent-escaped");
    refused("unix:", "absolute path");
    refused("unix:relative", "absolute path");
    refused("unix:@", "absolute path");
}

static void long_names_are_refused(void)
{
    char text[400] = "unix:/";
    memset(text + 6, 'a', 106);
    CHECK_INT(parsed(text, 0).host.len, 107);
    text[6 + 106] = 'a';
    refused(text, "107 bytes");
    memcpy(text, "http://", 7);
    memset(text + 7, 'a', 255);
    refused(text, "neither a name");
}

static void a_password_is_refused_and_not_repeated(void)
{
    struct url url;
    struct err err = {0};
    CHECK(!url_parse(&url, STR("https://user:SECRET-1@h/x"), 80, &err));
    CHECK(strstr(err.text, "--token-file") != NULL);
    CHECK(strstr(err.text, "SECRET") == NULL);
    CHECK(!url_parse(&url, STR("SECRET-1@h"), 80, &err));
    CHECK(strstr(err.text, "SECRET") == NULL);
}

static void addresses_are_known_by_their_bits(void)
{
    struct address a, b;
    CHECK(address_parse(&a, STR("::ffff:10.0.0.1")) && address_parse(&b, STR("10.0.0.1")));
    CHECK(address_eq(&a, &b));
    CHECK(address_within(&a, &b, 32));
    CHECK(address_parse(&b, STR("10.0.0.2")));
    CHECK(!address_within(&a, &b, 32) && !address_within(&a, &b, 31) && address_within(&a, &b, 30));
    CHECK(address_within(&a, &b, 0) && !address_within(&a, &b, 33));
    CHECK(address_parse(&a, STR("fe80::1%eth0")) && address_is_link_local(&a));
    CHECK(address_parse(&a, STR("febf::")) && address_is_link_local(&a));
    CHECK(address_parse(&a, STR("fec0::")) && !address_is_link_local(&a));
    CHECK(address_parse(&a, STR("169.254.169.254")) && address_is_link_local(&a));
    CHECK(address_parse(&a, STR("::1")) && address_is_loopback(&a));
    CHECK(!address_parse(&a, STR("1.2.3")) && !address_parse(&a, STR("")));
    CHECK(!address_parse(&a, STR("10.0.0.1\0")) && !address_parse(&a, STR("h")));
    CHECK(host_is_loopback(STR("LocalHost.")) && host_is_loopback(STR("x.localhost")));
    CHECK(!host_is_loopback(STR("notlocalhost")) && !host_is_loopback(STR("10.0.0.1")));
}

TESTS({"schemes say what they say", schemes_say_what_they_say},
      {"without a scheme it is https unless it is plain",
       without_a_scheme_it_is_https_unless_it_is_plain},
      {"paths and queries are kept without the last slash",
       paths_and_queries_are_kept_without_the_last_slash},
      {"IPv6 stands in brackets", ipv6_stands_in_brackets},
      {"Unix sockets have a path or a name", unix_sockets_have_a_path_or_a_name},
      {"what is no address is refused with a reason", what_is_no_address_is_refused_with_a_reason},
      {"long names are refused", long_names_are_refused},
      {"a password is refused and not repeated", a_password_is_refused_and_not_repeated},
      {"addresses are known by their bits", addresses_are_known_by_their_bits})
