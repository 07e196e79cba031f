/* src/deliver/proxy. */
#include "deliver/proxy.h"
#include "test.h"

/* "name=value" lines. */
static struct str look_up(void *context, const char *name)
{
    struct str rest = str_of(context);
    while (rest.len > 0) {
        struct str line = str_cut(&rest, '\n');
        if (str_eq(str_cut(&line, '='), str_of(name))) {
            return line;
        }
    }
    return STR("");
}

static struct proxies from(const char *environment)
{
    struct proxies proxies;
    proxies_from(&proxies, look_up, (void *)(uintptr_t)environment);
    return proxies;
}

static void lower_case_wins_and_all_is_the_last(void)
{
    struct proxies p = from("HTTPS_PROXY=http://a:1\nhttps_proxy=http://b:2\nALL_PROXY=http://c:3");
    CHECK_STR(p.https, "http://b:2");
    CHECK_STR(p.http, "http://c:3");
    CHECK_STR(from("HTTPS_PROXY=http://a:1\nall_proxy=http://c:3").https, "http://a:1");
    CHECK_STR(from("no_proxy=\nNO_PROXY=x").exempt, "x");
    CHECK_STR(from("").https, "");
}

static void http_proxy_in_capitals_is_not_read(void)
{
    CHECK_STR(from("HTTP_PROXY=http://evil:1").http, "");
    CHECK_STR(from("http_proxy=http://good:1").http, "http://good:1");
}

static bool is_proxied_at(const char *exempt, const char *host, uint16_t port)
{
    struct proxies proxies = {STR("http://proxy:3128"), STR("http://proxy:3128"), str_of(exempt)};
    struct proxy proxy;
    struct err err = {0};
    bool found = proxy_for(&proxies, true, str_of(host), port, &proxy, &err);
    CHECK_INT(err.kind, ERR_NONE);
    return found;
}

static bool is_proxied(const char *exempt, const char *host)
{
    return is_proxied_at(exempt, host, 443);
}

static void exemptions_are_names_and_what_is_below_them(void)
{
    CHECK(is_proxied("", "example.com"));
    CHECK(!is_proxied("*", "example.com"));
    CHECK(!is_proxied("example.com", "example.com"));
    CHECK(!is_proxied("example.com", "a.b.EXAMPLE.com"));
    CHECK(!is_proxied(".example.com", "example.com"));
    CHECK(!is_proxied(".example.com", "a.example.com"));
    CHECK(!is_proxied("*.example.com", "a.example.com"));
    CHECK(!is_proxied("example.com.", "example.com"));
    CHECK(!is_proxied("example.com", "example.com."));
    CHECK(is_proxied("example.com", "notexample.com"));
    CHECK(is_proxied("a.example.com", "example.com"));
    CHECK(!is_proxied("x, example.com ,y", "example.com"));
    CHECK(!is_proxied("x example.com", "example.com"));
    CHECK(is_proxied(",, , .", "example.com"));
}

static void exemptions_may_name_a_port(void)
{
    CHECK(!is_proxied("example.com:443", "example.com"));
    CHECK(is_proxied("example.com:444", "example.com"));
    CHECK(!is_proxied_at("10.0.0.1:8080", "10.0.0.1", 8080));
    CHECK(is_proxied_at("10.0.0.1:8080", "10.0.0.1", 80));
    CHECK(!is_proxied_at("[2001:db8::1]:8080", "2001:db8::1", 8080));
    CHECK(is_proxied_at("[2001:db8::1]:8080", "2001:db8::1", 80));
}

static void exemptions_are_addresses_and_networks(void)
{
    CHECK(!is_proxied("10.0.0.1", "10.0.0.1"));
    CHECK(is_proxied("10.0.0.1", "10.0.0.11"));
    CHECK(is_proxied("0.0.1", "10.0.0.1")); /* no label's boundary in an address */
    CHECK(!is_proxied("10.0.0.0/8", "10.255.0.1"));
    CHECK(is_proxied("10.0.0.0/8", "11.0.0.1"));
    CHECK(!is_proxied("192.168.4.0/22", "192.168.7.255"));
    CHECK(is_proxied("192.168.4.0/22", "192.168.8.0"));
    CHECK(is_proxied("10.0.0.0/8", "ten.example.com")); /* names are not resolved for it */
    CHECK(!is_proxied("2001:db8::/32", "2001:db8:1::1"));
    CHECK(is_proxied("2001:db8::/32", "2001:db9::1"));
    CHECK(!is_proxied("2001:db8::1", "2001:db8:0:0::1"));
    CHECK(!is_proxied("[2001:db8::1]", "2001:db8::1"));
    CHECK(!is_proxied("0.0.0.0/0", "9.9.9.9"));
    CHECK(is_proxied("10.0.0.0/33", "10.0.0.1") && is_proxied("10.0.0.0/", "10.0.0.1"));
}

static void this_machine_and_the_metadata_services_are_never_proxied(void)
{
    const char *never[] = {"localhost", "a.localhost", "127.0.0.1", "127.3.2.1", "::1",
                           "::ffff:127.0.0.1", "169.254.169.254", "169.254.170.2", "fe80::1%eth0",
                           "fd00:ec2::254", "metadata.google.internal", "Metadata.Google.Internal."};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        CHECK(!is_proxied("", never[i]));
    }
    CHECK(is_proxied("", "xmetadata.google.internal"));
    CHECK(is_proxied("", "fd00:ec2::253"));
}

static struct proxy found(const char *url, bool tls)
{
    struct proxies proxies = {.https = str_of(tls ? url : ""), .http = str_of(tls ? "" : url)};
    struct proxy proxy = {0};
    struct err err = {0};
    CHECK(proxy_for(&proxies, tls, STR("example.com"), 443, &proxy, &err));
    CHECK_TEXT(err.text, "");
    return proxy;
}

static void a_proxy_is_a_host_a_port_and_perhaps_a_user(void)
{
    struct proxy p = found("http://user:p%40ss:w@proxy.example:3128/", true);
    CHECK_STR(p.host, "proxy.example");
    CHECK_INT(p.port, 3128);
    CHECK_STR(p.user, "user");
    CHECK_STR(p.password, "p%40ss:w");
    p = found("proxy.example:8080", false);
    CHECK_STR(p.host, "proxy.example");
    CHECK_INT(p.port, 8080);
    CHECK_STR(p.user, "");
    CHECK_STR(found("http://u@[::2]:1", true).host, "::2");
    CHECK_STR(found("http://a@b:c@h:1", true).user, "a@b");
}

static void refused(const char *url, enum err_kind kind, const char *part)
{
    struct proxies proxies = {.https = str_of(url)};
    struct proxy proxy;
    struct err err = {0};
    CHECK(!proxy_for(&proxies, true, STR("example.com"), 443, &proxy, &err));
    CHECK_INT(err.kind, kind);
    if (strstr(err.text, part) == NULL) {
        CHECK_TEXT(err.text, part);
    }
    CHECK(strstr(err.text, "SECRET") == NULL);
}

static void proxies_that_cannot_be_spoken_to_are_named(void)
{
    refused("https://u:SECRET@proxy:3128", ERR_UNSUPPORTED, "itself spoken to by TLS");
    refused("socks5h://u:SECRET@proxy:1080", ERR_UNSUPPORTED, "SOCKS");
    refused("ftp://u:SECRET@proxy:1080", ERR_UNSUPPORTED, "not known");
    refused("http://u:SECRET@proxy", ERR_USAGE, "proxy has no port");
    refused("http://u:SECRET@:3128", ERR_USAGE, "host is missing");
    refused("http://u:SECRET@pro xy:3128", ERR_USAGE, "neither a name");
    refused("http://u:SECRET@proxy:99999", ERR_USAGE, "the port after the colon");
}

TESTS({"lower case wins and all_proxy is the last", lower_case_wins_and_all_is_the_last},
      {"HTTP_PROXY in capitals is not read", http_proxy_in_capitals_is_not_read},
      {"exemptions are names and what is below them", exemptions_are_names_and_what_is_below_them},
      {"exemptions may name a port", exemptions_may_name_a_port},
      {"exemptions are addresses and networks", exemptions_are_addresses_and_networks},
      {"this machine and the metadata services are never proxied",
       this_machine_and_the_metadata_services_are_never_proxied},
      {"a proxy is a host, a port and perhaps a user", a_proxy_is_a_host_a_port_and_perhaps_a_user},
      {"proxies that cannot be spoken to are named", proxies_that_cannot_be_spoken_to_are_named})
