/* Application identifiers from the arguments of processes. */
#include "runtime/common/application.h"
#include "test.h"

static struct buf out;

/* Words stand behind each other with '|' between them. */
static const char *of(const char *words, const char *folder)
{
    char arguments[1024];
    size_t len = strlen(words);
    memcpy(arguments, words, len + 1);
    for (size_t i = 0; i < len; i++) {
        arguments[i] = arguments[i] == '|' ? '\0' : arguments[i];
    }
    const struct application_facts facts = {{arguments, len + 1}, str_of(folder)};
    buf_init(&out, 4096);
    application_describe(&facts, &out);
    buf_byte(&out, '\0');
    return out.ptr;
}

#define CHECK_IS(words, folder, expected)       \
    do {                                        \
        CHECK_TEXT(of(words, folder), expected); \
        buf_release(&out);                      \
    } while (0)

static void scripts(void)
{
    CHECK_IS("python3|-u|shop.py|--key|secret", "/srv", "python: shop.py (/srv/shop.py)");
    CHECK_IS("/usr/bin/python3.12|-X|dev|-Wd|/srv/a b.py", "/", "python: /srv/a b.py (/srv/a b.py)");
    CHECK_IS("python3|-m|http.server|8000", "/srv", "python: -m http.server");
    CHECK_IS("python3|-um|shop", "/srv", "python: -m shop");
    CHECK_IS("pypy3|--|-odd.py", "", "python: -odd.py");
    CHECK_IS("ruby|-I|lib|-rbundler/setup|bin/web|-p|80", "/srv", "ruby: bin/web (/srv/bin/web)");
    CHECK_IS("python3|-c|import secret", "/srv", "");
    CHECK_IS("ruby|-ne|puts secret", "/srv", "");
    CHECK_IS("python3", "/srv", "");
    CHECK_IS("python3|-", "/srv", "");
    CHECK_IS("python3|-W", "/srv", "");
    CHECK_IS("", "", "");
    CHECK_IS("bash|shop.sh", "/srv", "");
}

static void servers(void)
{
    CHECK_IS("python3|/usr/bin/gunicorn|-b|localhost:8000|shop.web:app", "/srv",
             "gunicorn: shop.web:app (/srv/shop/web.py)");
    CHECK_IS("python3|-m|gunicorn|--bind=0.0.0.0:80|web:make", "/srv", "gunicorn: web:make (/srv/web.py)");
    CHECK_IS("gunicorn: worker [shop.web:app]", "", "gunicorn: shop.web:app");
    CHECK_IS("gunicorn: master []", "", "");
    CHECK_IS("gunicorn: ][", "", "");
    CHECK_IS("python3|/usr/local/bin/uvicorn|--host|::1|api:app", "/srv", "uvicorn: api:app (/srv/api.py)");
    CHECK_IS("python3|/usr/bin/celery|-A|tasks|worker|-Q|mails", "/srv", "celery: tasks");
    CHECK_IS("python3|/usr/bin/celery|worker|--queues=mails,bills", "/srv", "celery queue: mails,bills");
    CHECK_IS("python3|-m|pyspark.daemon", "/", "pyspark");
    CHECK_IS("uwsgi|--http|:80|--wsgi-file|web.py", "/srv", "uwsgi: web.py");
    CHECK_IS("/usr/bin/uwsgi|--ini=/etc/shop.ini", "/srv", "uwsgi: /etc/shop.ini");
    CHECK_IS("uwsgi|--ini", "/srv", "");
}

static void java(void)
{
    CHECK_IS("java|-Xmx1g|-cp|a.jar:b.jar|org.example.Main|secret", "/", "java: org.example.Main");
    CHECK_IS("/opt/jdk/bin/java|-Dpassword=secret|-jar|/srv/shop.jar|--x", "/", "java: /srv/shop.jar");
    CHECK_IS("java|--module-path|mods|-m|shop/org.example.Main", "/", "java: shop/org.example.Main");
    CHECK_IS("java|@options|--add-opens|a/b=c|Main", "/", "java: Main");
    CHECK_IS("java|-Dspring.application.name=shop|-jar|/srv/shop.jar", "/", "spring: shop");
    CHECK_IS("java|-jar|/srv/shop.jar|--spring.application.name=shop", "/", "spring: shop");
    CHECK_IS("java|-jar|/srv/shop.jar|--spring.application.name=", "/", "java: /srv/shop.jar");
    CHECK_IS("java|-Dcatalina.base=/srv/shop|org.apache.catalina.startup.Bootstrap|start", "/", "tomcat: /srv/shop");
    CHECK_IS("java|org.apache.catalina.startup.Bootstrap|start", "/", "java: org.apache.catalina.startup.Bootstrap");
    CHECK_IS("java|-Dcatalina.base=/srv/shop|Other", "/", "java: Other");
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|--conf|spark.app.name=count|a.jar", "/", "spark: count");
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|--name|count|a.jar", "/", "spark: count");
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|a.jar", "/", "java: org.apache.spark.deploy.SparkSubmit");
    CHECK_IS("java|-version", "/", "");
    CHECK_IS("java|-cp", "/", "");
}

/* Not more than it may be, and no control character: lines and frames are made of it. */
static void odd_ones(void)
{
    char words[700] = "java|";
    memset(words + 5, 'x', 600);
    CHECK_INT(strlen(of(words, "/")), APPLICATION_MAX_BYTES);
    buf_release(&out);
    CHECK_IS("python3|a\nb.py", "/s\tv", "python: a_b.py (/s_v/a_b.py)");
}

TESTS({"a script or a module by its name, code not at all", scripts},
      {"servers and queues by what they run", servers},
      {"a JVM by its class, module or jar", java},
      {"long and odd names", odd_ones})
