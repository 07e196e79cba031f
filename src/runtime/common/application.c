/* The rules, first match wins: by the name of the program, and for scripts of Python by the name of the script, which
 * may be a server's or a queue's. What an interpreter's options are is in a row; of java's those that have a value in
 * the next argument are listed. */
#include "runtime/common/application.h"

#include "base/ascii.h"

struct application {
    struct str kind, name, path; /* empty path: none */
};

/* ---- words ---- */

static bool is_one_of(struct str word, const char *list)
{
    struct str rest = str_of(list);
    while (rest.len > 0) {
        if (str_eq(str_cut(&rest, ' '), word)) {
            return true;
        }
    }
    return false;
}

/* The value of the first of these options, in the next argument or behind '='; empty: there is none. */
static struct str value_of(struct str arguments, const char *options)
{
    while (arguments.len > 0) {
        struct str value = str_cut(&arguments, '\0');
        if (is_one_of(value, options)) {
            return str_cut(&arguments, '\0');
        }
        struct str option = str_cut(&value, '=');
        if (value.len > 0 && str_starts(option, STR("--")) && is_one_of(option, options)) {
            return value;
        }
    }
    return STR("");
}

/* "package.module:attribute", as servers of Python name an application. An address to listen on is none. */
static struct str application_in(struct str arguments)
{
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (is_one_of(word, "-b --bind --host --uds")) {
            (void)str_cut(&arguments, '\0');
            continue;
        }
        size_t colon = str_find(word, ':');
        bool fits = colon > 0 && colon < word.len && !ascii_is_digit(word.ptr[0]);
        for (size_t i = 0; fits && i < word.len; i++) {
            fits = ascii_is_alnum(word.ptr[i]) || i == colon || word.ptr[i] == '_' || word.ptr[i] == '.';
        }
        if (fits) {
            return word;
        }
    }
    return STR("");
}

/* ---- interpreters ---- */

static const struct {
    const char *program, *kind;
    char code, module;    /* options: code to run; a module, in place of a script */
    const char *valued;   /* further ones that have a value */
} interpreters[] = {
    {"python", "python", 'c', 'm', "WX"},
    {"pypy", "python", 'c', 'm', "WX"},
    {"ruby", "ruby", 'e', 0, "CEIr"},
};

/* Of letters that stand together the first one that has a value: it is the rest of the word, or the next one. */
static char valued_letter(struct str word, size_t row, struct str *rest, struct str *value)
{
    for (size_t i = 1; i < word.len && word.ptr[1] != '-'; i++) {
        char letter = word.ptr[i];
        bool is_named = letter == interpreters[row].code || letter == interpreters[row].module;
        if (letter != 0 && (is_named || strchr(interpreters[row].valued, letter) != NULL)) {
            *value = str_sub(word, i + 1, word.len);
            *value = value->len > 0 ? *value : str_cut(rest, '\0');
            return letter;
        }
    }
    return 0;
}

/* What runs, by the name that follows `arguments`; those behind it are left there. */
static struct str script_of(size_t row, struct str *arguments, bool *is_module)
{
    *is_module = false;
    while (arguments->len > 0) {
        struct str word = str_cut(arguments, '\0'), value = STR("");
        if (str_eq(word, STR("--"))) {
            return str_cut(arguments, '\0');
        }
        if (word.len < 2 || word.ptr[0] != '-') {
            return str_eq(word, STR("-")) ? STR("") : word;
        }
        char letter = valued_letter(word, row, arguments, &value);
        if (letter != 0 && letter == interpreters[row].module) {
            *is_module = true;
            return value;
        }
        if (letter == interpreters[row].code) {
            return STR("");
        }
    }
    return STR("");
}

/* Of a server or a queue that runs an application of its own. */
static bool by_script(struct str script, struct str arguments, struct application *out)
{
    struct str name = str_base_name(script);
    if (is_one_of(name, "gunicorn uvicorn")) {
        *out = (struct application){name, application_in(arguments), STR("")};
    } else if (str_eq(name, STR("celery"))) {
        struct str app = value_of(arguments, "-A --app"), queue = value_of(arguments, "-Q --queues");
        *out = app.len > 0 ? (struct application){STR("celery"), app, STR("")}
                           : (struct application){STR("celery queue"), queue, STR("")};
    } else if (str_eq(name, STR("pyspark.daemon"))) {
        *out = (struct application){STR(""), STR("pyspark"), STR("")};
    }
    return out->name.len > 0;
}

static bool by_interpreter(struct str program, struct str arguments, struct application *out, bool *is_module)
{
    enum { COUNT = sizeof interpreters / sizeof interpreters[0] };
    size_t row = 0;
    while (row < COUNT && !str_starts(program, str_of(interpreters[row].program))) {
        row++;
    }
    struct str script = row < COUNT ? script_of(row, &arguments, is_module) : STR("");
    if (script.len == 0 || by_script(script, arguments, out)) {
        return out->name.len > 0;
    }
    *out = (struct application){str_of(interpreters[row].kind), script, *is_module ? STR("") : script};
    return true;
}

/* ---- others ---- */

static const char java_valued[] =
    "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-opens --add-exports "
    "--add-reads --patch-module --limit-modules --enable-native-access --source";

/* The jar, the module or the class that java runs: what follows its options. */
static struct str main_of(struct str arguments)
{
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (is_one_of(word, "-jar -m --module")) {
            return str_cut(&arguments, '\0');
        }
        if (is_one_of(word, java_valued)) {
            (void)str_cut(&arguments, '\0');
        } else if (word.len > 0 && word.ptr[0] != '-' && word.ptr[0] != '@') {
            return word;
        }
    }
    return STR("");
}

/* What stands behind the first of the words that begins so; empty: there is none. */
static struct str behind(struct str arguments, struct str head)
{
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (str_starts(word, head)) {
            return str_sub(word, head.len, word.len);
        }
    }
    return STR("");
}

/* Programs of these frameworks are all of the same class: they have names of their own. */
static struct application of_java(struct str arguments)
{
    struct str class = main_of(arguments), name;
    if ((name = behind(arguments, STR("-Dspring.application.name="))).len > 0 ||
        (name = behind(arguments, STR("--spring.application.name="))).len > 0) {
        return (struct application){STR("spring"), name, STR("")};
    }
    if (str_eq(class, STR("org.apache.catalina.startup.Bootstrap")) &&
        (name = behind(arguments, STR("-Dcatalina.base="))).len > 0) {
        return (struct application){STR("tomcat"), name, STR("")};
    }
    if (str_starts(class, STR("org.apache.spark.")) &&
        ((name = behind(arguments, STR("-Dspark.app.name="))).len > 0 ||
         (name = behind(arguments, STR("spark.app.name="))).len > 0 ||
         (name = value_of(arguments, "--name")).len > 0)) {
        return (struct application){STR("spark"), name, STR("")};
    }
    return (struct application){STR("java"), class, STR("")};
}

/* "gunicorn: worker [shop.web:app]", as it calls itself where it can. */
static struct str in_title(struct str title)
{
    size_t begin = str_find(title, '['), end = str_find_last(title, ']');
    return begin < end && end < title.len ? str_sub(title, begin + 1, end - begin - 1) : STR("");
}

/* ---- the line ---- */

static void put(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        buf_byte(out, (unsigned char)text.ptr[i] < ' ' ? '_' : text.ptr[i]);
    }
}

/* Where "package.module" of "package.module:attribute" would lie. */
static void put_module_path(struct buf *out, struct str folder, struct str application)
{
    struct str module = str_cut(&application, ':');
    put(out, folder);
    buf_byte(out, '/');
    for (size_t i = 0; i < module.len; i++) {
        buf_byte(out, module.ptr[i] == '.' ? '/' : module.ptr[i]);
    }
    buf_text(out, ".py");
}

static void put_path(struct buf *out, struct str folder, const struct application *a)
{
    bool is_module = a->path.len == 0, is_absolute = !is_module && a->path.ptr[0] == '/';
    if (!is_absolute && folder.len == 0) {
        return;
    }
    buf_text(out, " (");
    if (is_module) {
        put_module_path(out, folder, a->name);
    } else {
        put(out, is_absolute ? STR("") : folder);
        buf_text(out, is_absolute ? "" : "/");
        put(out, a->path);
    }
    buf_text(out, ")");
}

void application_describe(const struct application_facts *facts, struct buf *out)
{
    struct application a = {0};
    struct str rest = facts->arguments, first = str_cut(&rest, '\0'), program = str_base_name(first);
    bool is_module = false;
    if (str_starts(first, STR("gunicorn: "))) {
        a = (struct application){STR("gunicorn"), in_title(first), STR("")};
    } else if (str_eq(program, STR("java"))) {
        a = of_java(rest);
    } else if (str_eq(program, STR("uwsgi"))) {
        a = (struct application){STR("uwsgi"), value_of(rest, "-w --module --wsgi-file --wsgi --ini"), STR("")};
    } else if (!by_interpreter(program, rest, &a, &is_module)) {
        return;
    }
    size_t begins = out->len;
    put(out, a.kind);
    buf_text(out, a.kind.len > 0 && a.name.len > 0 ? ": " : "");
    buf_text(out, is_module && str_eq(a.kind, STR("python")) ? "-m " : "");
    put(out, a.name);
    if (a.path.len > 0 || str_find(a.name, ':') < a.name.len) {
        put_path(out, facts->folder, &a);
    }
    size_t len = a.name.len == 0 ? 0 : out->len - begins;
    out->len = begins + (len < APPLICATION_MAX_BYTES ? len : APPLICATION_MAX_BYTES);
}
