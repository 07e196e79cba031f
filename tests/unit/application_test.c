/* Application identifiers: every row of the table, from the arguments of processes, their titles, and what a rule asks
 * for besides. */
#include "runtime/common/application.h"
#include "test.h"

/* What a process tells when it is asked; null: nothing. */
struct told {
    const char *folder, *environment, *path, *file;
    unsigned asked;
};

static struct buf out;
static const char *filters[4];
static size_t filter_count;

static bool put(const char *text, struct buf *to)
{
    buf_clear(to);
    for (; text != NULL && *text != '\0'; text++) {
        buf_byte(to, *text == '|' ? '\0' : *text);
    }
    return text != NULL;
}

static bool text_of(void *context, const char *name, struct buf *to)
{
    struct told *told = context;
    told->asked++;
    return put(strcmp(name, "cwd") == 0 ? told->folder : strcmp(name, "environ") == 0 ? told->environment : NULL, to);
}

static bool file_of(void *context, const char *path, struct buf *to)
{
    const struct told *told = context;
    return told->path != NULL && strcmp(told->path, path) == 0 && put(told->file, to);
}

/* Words stand behind each other with '|' between them. */
static const char *told_of(const char *words, struct told *told)
{
    struct buf arguments;
    buf_init(&arguments, 1 << 20);
    (void)put(words, &arguments);
    buf_byte(&arguments, '\0');
    const struct application_process process = {buf_slice(&arguments), text_of, file_of, told, filters, filter_count};
    buf_init(&out, 4096);
    application_describe(&process, &out);
    buf_release(&arguments);
    return buf_cstr(&out);
}

#define CHECK_TOLD(words, told, expected)               \
    do {                                                \
        CHECK_TEXT(told_of(words, &told), expected);     \
        buf_release(&out);                              \
    } while (0)

#define CHECK_IS(words, where, expected)                \
    do {                                                \
        struct told told = {.folder = where};           \
        CHECK_TOLD(words, told, expected);              \
    } while (0)

static void scripts(void)
{
    CHECK_IS("python3|-u|shop.py|--key|secret", "/srv", "python: shop.py (/srv/shop.py)");
    CHECK_IS("/usr/bin/python3.12|-X|dev|-Wd|/srv/a b.py", "/", "python: /srv/a b.py (/srv/a b.py)");
    CHECK_IS("python3|-m|http.server|8000", "/srv", "python: -m http.server");
    CHECK_IS("python3|-um|shop", "/srv", "python: -m shop");
    CHECK_IS("pypy3|--|-odd.py", NULL, "python: -odd.py");
    CHECK_IS("ruby|-I|lib|-rbundler/setup|bin/web|-p|80", "/srv", "ruby: bin/web (/srv/bin/web)");
    CHECK_IS("ruby3.1|-r|set|a.rb", "/srv", "ruby: a.rb (/srv/a.rb)");
    CHECK_IS("ruby|--encoding|utf-8|a.rb", "/srv", "ruby: a.rb (/srv/a.rb)");
    CHECK_IS("python3|-c|import secret", "/srv", "");
    CHECK_IS("ruby|-ne|puts secret", "/srv", "");
    CHECK_IS("python3", "/srv", "");
    CHECK_IS("python3|-", "/srv", "");
    CHECK_IS("python3|-W", "/srv", "");
    CHECK_IS("", "", "");
    CHECK_IS("bash|shop.sh", "/srv", "");
    CHECK_IS("python-like-program|shop.py", "/srv", "");
}

static void node(void)
{
    CHECK_IS("node|a.js|--key=secret", "/srv", "nodejs: a.js (/srv/a.js)");
    CHECK_IS("/usr/bin/node|-r|trace.js|--require|x.js|--require=y.js|/srv/a.js", "/", "nodejs: /srv/a.js (/srv/a.js)");
    CHECK_IS("nodejs|--max-old-space-size=4096|--import|./hook.mjs|server.mjs", "/srv",
             "nodejs: server.mjs (/srv/server.mjs)");
    CHECK_IS("node|--enable-source-maps|dist/main", "/srv", "nodejs: dist/main (/srv/dist/main)");
    CHECK_IS("node|/srv/node_modules/.bin/next|start", "/srv",
             "nodejs: /srv/node_modules/.bin/next (/srv/node_modules/.bin/next)");
    CHECK_IS("node|--unheard-of|secret|a.js", "/srv", ""); /* its value, or what runs? */
    CHECK_IS("node|--unheard-of|a.js", "/srv", "nodejs: a.js (/srv/a.js)");
    CHECK_IS("node|-e|secret()", "/srv", "");
    CHECK_IS("node|-pe|secret()", "/srv", "");
    CHECK_IS("node|--eval=secret()|a.js", "/srv", "");
    CHECK_IS("node", "/srv", "");
}

static void servers(void)
{
    CHECK_IS("python3|/usr/bin/gunicorn|-b|localhost:8000|shop.web:app", "/srv",
             "gunicorn: shop.web:app (/srv/shop/web.py)");
    CHECK_IS("python3|-m|gunicorn|--bind=0.0.0.0:80|web:make", "/srv", "gunicorn: web:make (/srv/web.py)");
    CHECK_IS("gunicorn|-w|4|--preload|shop.wsgi", "/srv", "gunicorn: shop.wsgi (/srv/shop/wsgi.py)");
    CHECK_IS("gunicorn: worker [shop.web:app]", NULL, "gunicorn: shop.web:app");
    CHECK_IS("gunicorn: master [shop.wsgi]||", "/srv", "gunicorn: shop.wsgi (/srv/shop/wsgi.py)");
    CHECK_IS("gunicorn: master []", "", "");
    CHECK_IS("gunicorn: ][", "", "");
    CHECK_IS("gunicorn: worker [shop", "", "");
    CHECK_IS("python3|/usr/local/bin/uvicorn|--host|::1|--factory|api:app", "/srv", "uvicorn: api:app (/srv/api.py)");
    CHECK_IS("python3|/usr/bin/uvicorn|--header|key:secret|api:app", "/srv", "uvicorn: api:app (/srv/api.py)");
    CHECK_IS("python3|/usr/bin/uvicorn|--header|key:secret", "/srv",
             "python: /usr/bin/uvicorn (/usr/bin/uvicorn)");
    CHECK_IS("python3|/usr/bin/celery|-A|tasks|worker|-Q|mails", "/srv", "celery: tasks (/srv/tasks.py)");
    CHECK_IS("python3|-m|celery|-Ashop.tasks|worker", "/srv", "celery: shop.tasks (/srv/shop/tasks.py)");
    CHECK_IS("celery|--app=tasks|--broker=redis://:secret@host|worker", "/srv", "celery: tasks (/srv/tasks.py)");
    CHECK_IS("python3|/usr/bin/celery|worker|--queues=mails,bills", "/srv", "celery queue: mails,bills (/srv)");
    CHECK_IS("[celeryd: celery@host:ForkPoolWorker-1]", "/srv", "");
    CHECK_IS("python3|-m|pyspark.daemon", "/", "pyspark");
    CHECK_IS("ruby|/usr/bin/puma|-C|config.rb", "/srv/shop", "puma: shop (/srv/shop)");
    CHECK_IS("puma 5.6.5 (tcp://0.0.0.0:9292) [shop]", "/srv/shop", "puma: shop (/srv/shop)");
    CHECK_IS("puma: cluster worker 0: 4711 [shop]", "/srv/shop", "puma: shop (/srv/shop)");
    CHECK_IS("puma 6.4.0 (tcp://[::1]:9292) [shop]", NULL, "puma: shop");
    CHECK_IS("puma 6.4.0 (unix:///run/a.sock)", "/srv", "");
    CHECK_IS("ruby|/usr/bin/unicorn|-c|unicorn.rb", "/srv/shop", "unicorn: shop (/srv/shop)");
    CHECK_IS("unicorn worker[0] -c unicorn.rb -E secret", "/srv/shop", "unicorn: shop (/srv/shop)");
    CHECK_IS("unicorn master -D", NULL, "");
    CHECK_IS("php-fpm: pool www  ", "/", "php-fpm: www");
    CHECK_IS("php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)", "/", "");
    CHECK_IS("php-fpm8.2|-F", "/", "");
}

static void uwsgi(void)
{
    struct told ini = {.folder = "/srv", .path = "/srv/conf/shop.ini",
                       .file = "[uwsgi]\nkey=secret\n module = shop.web:app\n"};
    struct told none = {.folder = "/srv", .path = "/srv/conf/shop.ini", .file = "[uwsgi]\nkey=secret\nmodules\n"};
    CHECK_IS("uwsgi|--http|:80|--wsgi-file|web.py", "/srv", "uwsgi: web.py (/srv/web.py)");
    CHECK_IS("uwsgi|-w|shop.web:app", "/srv", "uwsgi: shop.web:app (/srv/shop/web.py)");
    CHECK_IS("uwsgi|--wsgi-file=/opt/web.py", NULL, "uwsgi: /opt/web.py (/opt/web.py)");
    CHECK_IS("/usr/bin/uwsgi|--ini=/etc/shop.ini", "/srv", "uwsgi: /etc/shop.ini");
    CHECK_TOLD("uwsgi|conf/shop.ini", ini, "uwsgi: conf/shop.ini (/srv/shop/web.py)");
    CHECK_TOLD("uwsgi|--ini|conf/shop.ini", none, "uwsgi: conf/shop.ini");
    CHECK_IS("uwsgi|--ini", "/srv", "");
    CHECK_IS("uwsgi|--http|:80", "/srv", "");
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
    CHECK_IS("java|-version", "/", "");
    CHECK_IS("java|-cp", "/", "");
}

#define EXECUTOR "org.apache.spark.executor.CoarseGrainedExecutorBackend"

static void jobs(void)
{
    struct told yarn = {.folder = "/y", .path = "/y/__spark_conf__/__spark_conf__.properties",
                        .file = "#made by\nspark.app.id=7\nspark.app.name=count words\n"};
    struct told beam = {.environment = "KEY=secret|PIPELINE_OPTIONS={\"beam:option:job_name:v1\": \"count\"}|A=b"};
    struct told older = {.environment = "PIPELINE_OPTIONS={\"options\": {\"jobName\": \"count\"}}"};
    struct told odd = {.environment = "PIPELINE_OPTIONS={\"options\": {\"jobName\": [1"};
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|--conf|spark.app.name=count|a.jar", "/", "spark: count");
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|--name|count|a.jar", "/", "spark: count");
    CHECK_IS("java|org.apache.spark.deploy.SparkSubmit|a.jar", "/", "java: org.apache.spark.deploy.SparkSubmit");
    CHECK_TOLD("java|" EXECUTOR "|--executor-id|1", yarn, "java: " EXECUTOR ", spark: count words");
    CHECK_IS("java|" EXECUTOR "|--executor-id|1", "/y", "java: " EXECUTOR);
    CHECK_TOLD("python3|-m|apache_beam.runners.worker.sdk_worker_main", beam, "beam: count");
    CHECK_TOLD("python3|-m|apache_beam.runners.worker.sdk_worker_main", older, "beam: count");
    CHECK_TOLD("java|-cp|x|org.apache.beam.fn.harness.FnHarness", beam, "beam: count");
    CHECK_TOLD("python3|-m|apache_beam.runners.worker.sdk_worker_main", odd,
               "python: -m apache_beam.runners.worker.sdk_worker_main");
    CHECK_TOLD("java|org.apache.beam.fn.harness.FnHarness", odd, "java: org.apache.beam.fn.harness.FnHarness");
}

/* Only what the user asked for, and only of a JVM's own arguments. */
static void filtered(void)
{
    filters[0] = "^-D(tier|shard)=";
    filters[1] = "Xmx";
    filter_count = 2;
    CHECK_IS("java|-Dtier=a|-Xmx1g|-Dpassword=secret|-Dshard=2|-jar|a.jar|-Dtier=c", "/",
             "java: a.jar (-Dtier=a -Dshard=2 -Xmx1g)");
    CHECK_IS("java|-jar|a.jar", "/", "java: a.jar");
    CHECK_IS("python3|shop.py|-Xmx", "/srv", "python: shop.py (/srv/shop.py)");
    filters[0] = "(";
    filter_count = 1;
    CHECK_IS("java|-Dtier=a|-jar|a.jar", "/", "java: a.jar");
    filter_count = 0;
}

/* Nothing is asked for where no rule needs it. */
static void questions(void)
{
    struct told told = {.folder = "/srv"};
    CHECK_TOLD("bash|-c|sleep 1", told, "");
    CHECK_TOLD("java|Main", told, "java: Main");
    CHECK_TOLD("python3|-m|shop", told, "python: -m shop");
    CHECK_TOLD("nginx: worker process", told, "");
    CHECK_INT(told.asked, 0);
    CHECK_TOLD("python3|shop.py", told, "python: shop.py (/srv/shop.py)");
    CHECK_INT(told.asked, 1);
}

static void titles(void)
{
    CHECK(application_is_title(STR("[celeryd: celery@host:MainProcess] -active-")));
    CHECK(application_is_title(STR("nginx: worker process")));
    CHECK(!application_is_title(STR("/usr/bin/python3\0shop: a.py")));
    CHECK(!application_is_title(STR("sh\0-c\0echo a b")));
    CHECK(!application_is_title(STR("")));
}

/* Not more than it may be, not half a character, no control character: lines and frames are made of it. */
static void odd_ones(void)
{
    char words[700] = "java|";
    memset(words + 5, 'x', 600);
    CHECK_INT(strlen(told_of(words, &(struct told){0})), APPLICATION_MAX_BYTES);
    buf_release(&out);
    memcpy(words + 5 + APPLICATION_MAX_BYTES - 7, "\xc3\xa9", 2);
    CHECK_INT(strlen(told_of(words, &(struct told){0})), APPLICATION_MAX_BYTES - 1);
    buf_release(&out);
    CHECK_IS("python3|a\nb.py", "/s\tv", "python: a_b.py (/s_v/a_b.py)");
    CHECK_IS("gunicorn: worker [a\r;b]", "/srv", "gunicorn: a_;b (/srv/a_;b.py)"); /* ";" is the writer's matter */
    CHECK_IS("|||", "/", "");
}

/* Of any length, also without a NUL at the end, and nobody answers. */
static void hostile_ones(void)
{
    static const char *const heads[] = {"python3", "node", "ruby", "java", "gunicorn", "uvicorn", "celery", "uwsgi",
                                        "puma", "php-fpm: pool ", "unicorn worker[", "gunicorn: ["};
    enum { LONG = 128 * 1024 };
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        for (unsigned byte = 0; byte < 256; byte += 5) {
            size_t head = strlen(heads[i]);
            char *arguments = malloc(LONG);
            CHECK(arguments != NULL);
            memset(arguments, (int)byte, LONG);
            memcpy(arguments, heads[i], head);
            arguments[head] = '\0';
            memcpy(arguments + head + 1, "-", 1);
            const struct application_process process = {.arguments = {arguments, LONG}};
            buf_init(&out, 4096);
            application_describe(&process, &out);
            CHECK(out.len <= APPLICATION_MAX_BYTES);
            CHECK(memchr(out.ptr == NULL ? "" : out.ptr, '\n', out.len) == NULL);
            buf_release(&out);
            free(arguments);
        }
    }
}

TESTS({"a script or a module by its name, code not at all", scripts},
      {"node by its script, never by an option's value", node},
      {"servers and queues by what they run", servers},
      {"uwsgi by its module or its file", uwsgi},
      {"a JVM by its class, module or jar", java},
      {"spark and beam by their jobs", jobs},
      {"further arguments of a JVM as the user asks for them", filtered},
      {"no question without need", questions},
      {"titles are no programs", titles},
      {"long and odd names", odd_ones},
      {"hostile arguments", hostile_ones})
