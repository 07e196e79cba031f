/* The rules, one row per application, the first that fits wins: by the title that a process gave itself, by the name of
 * its program or of the script or module that an interpreter runs, which may be a server's or a queue's, and last by
 * the interpreter. */
#include "runtime/common/application.h"

#include "base/json.h"
#include "runtime/common/application_words.h"
#include "runtime/common/expression.h"

enum { TEXT_MAX = 256 * 1024, PATH_MAX_BYTES = 4096 };

enum place {
    PLACE_NONE,
    PLACE_FILE,   /* `path`, made absolute */
    PLACE_MODULE, /* where the module `path` would lie: "package.module:attribute" */
    PLACE_FOLDER, /* the working folder */
};

struct application {
    struct str kind, name;
    const char *between; /* these two; null: ": " */
    enum place place;    /* what follows, in brackets */
    struct str path;
    const char *joint;   /* before `after`, which is last */
    struct str after;
};

/* Who is described, and what was asked about it so far. */
struct subject {
    const struct application_process *process;
    struct str title;    /* its first argument, or its title */
    struct str program;  /* the name of that */
    struct application_script script;
    struct str rest;     /* what follows the program, or the script */
    bool folder_known;
    struct buf folder, text, line;
};

/* ---- what is asked for ---- */

static struct str folder_of(struct subject *s)
{
    const struct application_process *process = s->process;
    if (!s->folder_known) {
        s->folder_known = true;
        if (process->text == NULL || !process->text(process->context, "cwd", &s->folder) || s->folder.failed) {
            buf_clear(&s->folder);
        }
    }
    return buf_slice(&s->folder);
}

/* Empty: it cannot be read. */
static struct str file_of(struct subject *s, struct str path)
{
    const struct application_process *process = s->process;
    bool is_absolute = path.len > 0 && path.ptr[0] == '/';
    buf_clear(&s->line);
    buf_str(&s->line, is_absolute ? STR("") : folder_of(s));
    buf_text(&s->line, is_absolute ? "" : "/");
    buf_str(&s->line, path);
    buf_clear(&s->text);
    bool good = process->file != NULL && path.len > 0 && process->file(process->context, buf_cstr(&s->line), &s->text);
    return good ? buf_slice(&s->text) : STR("");
}

/* The value of a variable of its environment. */
static struct str variable_of(struct subject *s, struct str head)
{
    const struct application_process *process = s->process;
    buf_clear(&s->text);
    bool good = process->text != NULL && process->text(process->context, "environ", &s->text);
    return good ? application_behind(buf_slice(&s->text), head) : STR("");
}

/* ---- by the title ---- */

static struct str in_brackets(struct str title)
{
    size_t begin = str_find(title, '['), end = str_find_last(title, ']');
    return begin < end && end < title.len ? str_sub(title, begin + 1, end - begin - 1) : STR("");
}

/* "gunicorn: worker [shop.web:app]" */
static void gunicorn_title(struct subject *s, struct application *out)
{
    out->name = out->path = in_brackets(s->title);
    out->place = PLACE_MODULE;
}

/* "puma 5.6.5 (tcp://0.0.0.0:80) [shop]", "puma: cluster worker 0: 12 [shop]" */
static void puma_title(struct subject *s, struct application *out)
{
    struct str title = s->title;
    while (str_find(title, '[') < title.len && str_find_last(title, '[') > str_find(title, '[')) {
        title = str_sub(title, str_find(title, '[') + 1, title.len); /* of an IPv6 address */
    }
    out->name = in_brackets(title);
    out->place = PLACE_FOLDER;
}

/* "php-fpm: pool www" */
static void php_pool(struct subject *s, struct application *out)
{
    out->name = str_trim(str_sub(s->title, sizeof "php-fpm: pool" - 1, s->title.len));
}

/* ---- by the name ---- */

/* Servers that have no name but their folder's. */
static void in_folder(struct subject *s, struct application *out)
{
    out->name = str_base_name(folder_of(s));
    out->place = PLACE_FOLDER;
}

static void python_server(struct subject *s, struct application *out)
{
    out->name = out->path = application_spec(s->rest);
    out->place = PLACE_MODULE;
}

static void celery(struct subject *s, struct application *out)
{
    struct str app = application_value(s->rest, "-A --app");
    out->kind = app.len > 0 ? STR("celery") : STR("celery queue");
    out->name = out->path = app.len > 0 ? app : application_value(s->rest, "-Q --queues");
    out->place = app.len > 0 ? PLACE_MODULE : PLACE_FOLDER;
}

/* A file of settings stands for its application, which is the module that it names. */
static void uwsgi(struct subject *s, struct application *out)
{
    out->name = out->path = application_value(s->rest, "-w --module --wsgi-file --wsgi");
    out->place = PLACE_MODULE;
    if (out->name.len > 0) {
        return;
    }
    out->name = application_value(s->rest, "--ini --ini-paste --ini-paste-logged");
    for (struct str rest = s->rest; out->name.len == 0 && rest.len > 0;) {
        struct str word = str_cut(&rest, '\0');
        out->name = str_ends(word, STR(".ini")) && word.ptr[0] != '-' ? word : STR("");
    }
    out->path = application_setting(file_of(s, out->name), STR("module"));
    out->place = out->path.len > 0 ? PLACE_MODULE : PLACE_NONE;
}

static void pyspark(struct subject *s, struct application *out)
{
    (void)s;
    out->name = STR("pyspark");
    out->between = "";
}

/* What Apache Beam starts workers of a job with. */
static struct str beam_job(struct subject *s)
{
    static const char *const keys[] = {"beam:option:job_name:v1", "job_name", "jobName"};
    struct str options = variable_of(s, STR("PIPELINE_OPTIONS=")), job = STR("");
    if (!json_valid(options)) {
        return STR("");
    }
    struct str inner = json_member(options, "options");
    options = inner.len > 0 ? inner : options;
    for (size_t i = 0; job.len == 0 && i < sizeof keys / sizeof keys[0]; i++) {
        job = json_member(options, keys[i]);
    }
    buf_clear(&s->line);
    return job.len > 0 && json_text_of(job, &s->line) ? buf_slice(&s->line) : STR("");
}

static void beam(struct subject *s, struct application *out)
{
    out->name = beam_job(s);
}

/* ---- java ---- */

/* Appends the arguments that fit. */
static void put_fitting(const char *filter, struct str arguments, struct buf *out)
{
    struct expression expression;
    struct err err;
    if (!expression_parse(&expression, filter, &err)) {
        return;
    }
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (word.len > 0 && word.len <= APPLICATION_MAX_BYTES && expression_finds(&expression, word)) {
            buf_text(out, out->len == 0 ? " (" : " ");
            buf_str(out, word);
        }
    }
}

static struct str fitting(struct subject *s, struct str arguments)
{
    buf_clear(&s->line);
    for (size_t i = 0; i < s->process->filter_count; i++) {
        put_fitting(s->process->filters[i], arguments, &s->line);
    }
    buf_text(&s->line, s->line.len > 0 ? ")" : "");
    return buf_slice(&s->line);
}

static struct str spark_name(struct subject *s)
{
    static const char *const options[] = {"-Dspark.app.name=", "spark.app.name="};
    struct str name = STR("");
    for (size_t i = 0; name.len == 0 && i < sizeof options / sizeof options[0]; i++) {
        name = application_behind(s->rest, str_of(options[i]));
    }
    return name.len > 0 ? name : application_value(s->rest, "--name");
}

/* Programs of these frameworks are all of the same class: they have names of their own. */
static bool of_framework(struct subject *s, struct str class, struct application *out)
{
    struct str name;
    if ((name = application_behind(s->rest, STR("-Dspring.application.name="))).len > 0 ||
        (name = application_behind(s->rest, STR("--spring.application.name="))).len > 0) {
        out->kind = STR("spring");
    } else if (str_eq(class, STR("org.apache.catalina.startup.Bootstrap")) &&
               (name = application_behind(s->rest, STR("-Dcatalina.base="))).len > 0) {
        out->kind = STR("tomcat");
    } else if (str_starts(class, STR("org.apache.spark.deploy.")) && (name = spark_name(s)).len > 0) {
        out->kind = STR("spark");
    } else if (str_eq(class, STR("org.apache.beam.fn.harness.FnHarness")) && (name = beam_job(s)).len > 0) {
        out->kind = STR("beam");
    }
    out->name = name;
    return name.len > 0;
}

/* An executor is started alike for all applications; where YARN starts it, it has the settings beside it. */
static void java(struct subject *s, struct application *out)
{
    struct str before, class = application_main_of(s->rest, &before);
    if (of_framework(s, class, out)) {
        return;
    }
    out->name = class;
    if (str_starts(class, STR("org.apache.spark.executor."))) {
        struct str name = spark_name(s);
        out->after = name.len > 0 ? name
                                  : application_setting(file_of(s, STR("__spark_conf__/__spark_conf__.properties")),
                                                        STR("spark.app.name"));
        out->joint = ", spark: ";
    }
    if (out->after.len == 0) {
        out->joint = "";
        out->after = fitting(s, before);
    }
}

/* ---- by the interpreter ---- */

static void script(struct subject *s, struct application *out)
{
    out->kind = str_of(s->script.kind);
    out->name = out->path = s->script.name;
    out->between = s->script.is_module ? ": -m " : NULL;
    out->place = s->script.is_module ? PLACE_NONE : PLACE_FILE;
}

/* ---- the table ---- */

enum by { BY_TITLE, BY_NAME, BY_SCRIPT };

static const struct rule {
    enum by by;
    const char *name; /* how the title begins; or the program's, the script's or the module's, blanks between */
    const char *kind;
    void (*describe)(struct subject *s, struct application *out); /* leaves the name empty where it does not fit */
} rules[] = {
    {BY_TITLE, "gunicorn: ", "gunicorn", gunicorn_title},
    {BY_TITLE, "puma", "puma", puma_title},
    {BY_TITLE, "unicorn master ", "unicorn", in_folder},
    {BY_TITLE, "unicorn worker[", "unicorn", in_folder},
    {BY_TITLE, "unicorn_rails ", "unicorn", in_folder},
    {BY_TITLE, "php-fpm: pool ", "php-fpm", php_pool},
    {BY_NAME, "gunicorn", "gunicorn", python_server},
    {BY_NAME, "uvicorn", "uvicorn", python_server},
    {BY_NAME, "uwsgi uwsgi-core uwsgi_python3", "uwsgi", uwsgi},
    {BY_NAME, "celery", "", celery},
    {BY_NAME, "pyspark.daemon", "", pyspark},
    {BY_NAME, "apache_beam.runners.worker.sdk_worker_main", "beam", beam},
    {BY_NAME, "puma", "puma", in_folder},
    {BY_NAME, "unicorn unicorn_rails", "unicorn", in_folder},
    {BY_NAME, "java", "java", java},
    {BY_SCRIPT, NULL, "", script},
};

static bool fits(const struct rule *rule, const struct subject *s)
{
    switch (rule->by) {
    case BY_TITLE:
        return str_starts(s->title, str_of(rule->name));
    case BY_NAME: {
        struct str name = s->script.kind != NULL ? str_base_name(s->script.name) : s->program;
        return name.len > 0 && application_is_one_of(name, rule->name);
    }
    default:
        return s->script.kind != NULL;
    }
}

/* ---- the line ---- */

/* No more of each part than the whole may have. */
static void put(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len && i <= APPLICATION_MAX_BYTES; i++) {
        buf_byte(out, (unsigned char)text.ptr[i] < ' ' || text.ptr[i] == 0x7f ? '_' : text.ptr[i]);
    }
}

static void put_module(struct buf *out, struct str folder, struct str spec)
{
    struct str module = str_cut(&spec, ':');
    bool is_file = str_ends(module, STR(".py")), is_absolute = module.len > 0 && module.ptr[0] == '/';
    put(out, is_absolute ? STR("") : folder);
    buf_text(out, is_absolute ? "" : "/");
    for (size_t i = 0; i < module.len && i <= APPLICATION_MAX_BYTES && !is_file; i++) {
        char byte = module.ptr[i] == '.' ? '/' : module.ptr[i];
        put(out, (struct str){&byte, 1});
    }
    put(out, is_file ? module : STR(".py"));
}

static void put_place(struct subject *s, struct buf *out, const struct application *a)
{
    bool is_absolute = a->path.len > 0 && a->path.ptr[0] == '/';
    if (a->place == PLACE_NONE || (folder_of(s).len == 0 && (!is_absolute || a->place == PLACE_FOLDER))) {
        return;
    }
    buf_text(out, " (");
    if (a->place == PLACE_MODULE) {
        put_module(out, folder_of(s), a->path);
    } else {
        put(out, is_absolute && a->place == PLACE_FILE ? STR("") : folder_of(s));
        buf_text(out, a->place == PLACE_FILE && !is_absolute ? "/" : "");
        put(out, a->place == PLACE_FILE ? a->path : STR(""));
    }
    buf_text(out, ")");
}

/* Not within a character. */
static size_t shortened(const char *text, size_t len)
{
    size_t end = len < APPLICATION_MAX_BYTES ? len : APPLICATION_MAX_BYTES;
    while (end < len && end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) {
        end--;
    }
    return end;
}

static void put_line(struct subject *s, const struct application *a, struct buf *out)
{
    size_t begins = out->len;
    put(out, a->kind);
    buf_text(out, a->between != NULL ? a->between : ": ");
    put(out, a->name);
    put_place(s, out, a);
    buf_text(out, a->after.len > 0 ? a->joint : "");
    put(out, a->after);
    if (!out->failed) {
        out->len = begins + shortened(out->ptr + begins, out->len - begins);
    }
}

void application_describe(const struct application_process *process, struct buf *out)
{
    struct subject s = {.process = process};
    struct application found = {0};
    s.rest = process->arguments;
    s.title = str_cut(&s.rest, '\0');
    s.program = str_base_name(s.title);
    s.script = application_script_of(s.program, s.rest);
    s.rest = s.script.kind != NULL ? s.script.rest : s.rest;
    buf_init(&s.folder, PATH_MAX_BYTES);
    buf_init(&s.text, TEXT_MAX);
    buf_init(&s.line, TEXT_MAX);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && found.name.len == 0; i++) {
        if (fits(&rules[i], &s)) {
            found = (struct application){.kind = str_of(rules[i].kind)};
            rules[i].describe(&s, &found);
        }
    }
    if (found.name.len > 0) {
        put_line(&s, &found, out);
    }
    buf_release(&s.folder);
    buf_release(&s.text);
    buf_release(&s.line);
}

bool application_is_title(struct str arguments)
{
    struct str first = str_cut(&arguments, '\0');
    static const char marks[] = " :[(";
    for (size_t i = 0; i < sizeof marks - 1; i++) {
        if (str_find(first, marks[i]) < first.len) {
            return true;
        }
    }
    return false;
}
