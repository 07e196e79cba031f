/* What stands where in a command line: values of options, the script of an interpreter, the class of a JVM. An option
 * that is not known here may have a value in the next argument, and that is nobody's business: what could be one is not
 * taken for a name. */
#include "runtime/common/application_words.h"

#include "base/ascii.h"

bool application_is_one_of(struct str word, const char *list)
{
    struct str rest = str_of(list);
    while (rest.len > 0) {
        if (str_eq(str_cut(&rest, ' '), word)) {
            return true;
        }
    }
    return false;
}

static bool is_long(struct str word)
{
    return str_starts(word, STR("--")) && word.len > 2;
}

struct str application_value(struct str arguments, const char *options)
{
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0'), value = word;
        if (application_is_one_of(word, options)) {
            return str_cut(&arguments, '\0');
        }
        struct str option = is_long(word) ? str_cut(&value, '=') : str_sub(word, 0, 2);
        value = is_long(word) ? value : str_sub(word, 2, word.len);
        if (value.len > 0 && application_is_one_of(option, options)) {
            return value;
        }
    }
    return STR("");
}

struct str application_behind(struct str arguments, struct str head)
{
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (str_starts(word, head)) {
            return str_sub(word, head.len, word.len);
        }
    }
    return STR("");
}

struct str application_setting(struct str text, struct str key)
{
    while (text.len > 0) {
        struct str line = str_cut(&text, '\n'), value = line, name = str_cut(&value, '=');
        if (name.len < line.len && str_eq(str_trim(name), key)) {
            return str_trim(value);
        }
    }
    return STR("");
}

/* Of gunicorn and uvicorn: those that stand alone. */
static const char flags[] =
    "--preload --daemon -D --reload --no-sendfile --check-config --print-config --spew --capture-output -R "
    "--enable-stdio-inheritance --no-control-socket --factory --access-log --no-access-log --proxy-headers "
    "--no-proxy-headers --server-header --no-server-header --date-header --no-date-header --use-colors --no-use-colors";

/* Identifiers with dots between, and at most one colon. */
static bool is_spec(struct str word, char needs)
{
    size_t colons = 0;
    bool has_needed = false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.ptr[i];
        colons += c == ':';
        has_needed = has_needed || (c == needs && i > 0 && i + 1 < word.len);
        if (!ascii_is_alnum(c) && c != ':' && c != '_' && c != '.') {
            return false;
        }
    }
    return has_needed && colons <= 1 && !ascii_is_digit(word.ptr[0]);
}

static struct str find_spec(struct str arguments, char needs)
{
    bool may_be_value = false;
    while (arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0');
        if (!may_be_value && is_spec(word, needs)) {
            return word;
        }
        bool is_option = word.len > 1 && word.ptr[0] == '-';
        may_be_value = is_option && !application_is_one_of(word, flags) && str_find(word, '=') == word.len;
    }
    return STR("");
}

struct str application_spec(struct str arguments)
{
    struct str spec = find_spec(arguments, ':');
    return spec.len > 0 ? spec : find_spec(arguments, '.');
}

/* ---- interpreters ---- */

#define NODE_VALUED "--require --import --loader --experimental-loader --conditions"
#define NODE_FLAGS                                                                                                     \
    "--enable-source-maps --expose-gc --inspect --inspect-brk --no-warnings --trace-warnings --trace-deprecation "     \
    "--no-deprecation --experimental-vm-modules --preserve-symlinks --watch --perf-prof --perf-basic-prof"
#define NODE_ENDINGS ".js .mjs .cjs .ts .mts .cts .jsx .tsx"

static const struct interpreter {
    const char *program; /* begins so */
    const char *behind;  /* letters that may follow it */
    const char *kind;
    const char *code;    /* letters: code to run */
    char module;         /* a letter: a module, in place of a script */
    const char *valued;  /* further letters that have a value */
    const char *long_code, *long_valued, *long_flags;
    const char *endings; /* of scripts: what follows any other long option is one only if it ends so. Null: any is */
} interpreters[] = {
    {"python", "0123456789.tdm", "python", "c", 'm', "WX", "", "--check-hash-based-pycs", "", NULL},
    {"pypy", "0123456789.", "python", "c", 'm', "WX", "", "--jit", "", NULL},
    {"ruby", "0123456789.", "ruby", "e", 0, "CEIr", "",
     "--encoding --external-encoding --internal-encoding --enable --disable --backtrace-limit --parser", "", NULL},
    {"nodejs", "", "nodejs", "ep", 0, "rC", "--eval --print",
     NODE_VALUED, NODE_FLAGS, NODE_ENDINGS},
    {"node", "0123456789", "nodejs", "ep", 0, "rC", "--eval --print",
     NODE_VALUED, NODE_FLAGS, NODE_ENDINGS},
};

static const struct interpreter *interpreter_of(struct str program)
{
    enum { COUNT = sizeof interpreters / sizeof interpreters[0] };
    for (size_t i = 0; i < COUNT; i++) {
        struct str name = str_of(interpreters[i].program);
        size_t at = name.len;
        while (at < program.len && program.ptr[at] != '\0' && strchr(interpreters[i].behind, program.ptr[at]) != NULL) {
            at++;
        }
        if (str_starts(program, name) && at >= program.len) {
            return &interpreters[i];
        }
    }
    return NULL;
}

static bool has_ending(struct str word, const char *endings)
{
    struct str rest = str_of(endings);
    while (rest.len > 0) {
        if (str_ends(word, str_cut(&rest, ' '))) {
            return true;
        }
    }
    return false;
}

/* Of letters that stand together the first one that has a value: it is the rest of the word, or the next one. */
static char valued_letter(const struct interpreter *own, struct str word, struct str *rest, struct str *value)
{
    for (size_t i = 1; i < word.len; i++) {
        char letter = word.ptr[i];
        if (letter != 0 && (letter == own->module || strchr(own->code, letter) != NULL ||
                            strchr(own->valued, letter) != NULL)) {
            *value = str_sub(word, i + 1, word.len);
            *value = value->len > 0 ? *value : str_cut(rest, '\0');
            return letter;
        }
    }
    return 0;
}

/* False: it runs code that stands in the arguments. */
static bool skip_long(const struct interpreter *own, struct str word, struct str *rest, bool *may_be_value)
{
    struct str value = word, name = str_cut(&value, '=');
    bool has_value = name.len < word.len;
    if (application_is_one_of(name, own->long_code)) {
        return false;
    }
    if (!has_value && application_is_one_of(name, own->long_valued)) {
        (void)str_cut(rest, '\0');
    } else {
        *may_be_value = !has_value && own->endings != NULL && !application_is_one_of(name, own->long_flags);
    }
    return true;
}

struct application_script application_script_of(struct str program, struct str arguments)
{
    const struct interpreter *own = interpreter_of(program);
    struct application_script out = {.kind = own != NULL ? own->kind : NULL};
    bool may_be_value = false;
    while (own != NULL && arguments.len > 0) {
        struct str word = str_cut(&arguments, '\0'), value = STR("");
        bool is_option = word.len > 1 && word.ptr[0] == '-', ends = str_eq(word, STR("--"));
        if (!is_option || ends) {
            word = ends ? str_cut(&arguments, '\0') : word;
            bool is_none = str_eq(word, STR("-")) || (may_be_value && !ends && !has_ending(word, own->endings));
            out.name = is_none ? STR("") : word;
            break;
        }
        may_be_value = false;
        if (is_long(word)) {
            if (!skip_long(own, word, &arguments, &may_be_value)) {
                break;
            }
            continue;
        }
        char letter = valued_letter(own, word, &arguments, &value);
        out.is_module = letter != 0 && letter == own->module;
        if (letter != 0 && (out.is_module || strchr(own->code, letter) != NULL)) {
            out.name = out.is_module ? value : STR("");
            break;
        }
    }
    out.rest = arguments;
    return out;
}

/* ---- java ---- */

static const char java_valued[] =
    "-cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --add-opens --add-exports "
    "--add-reads --patch-module --limit-modules --enable-native-access --source";

struct str application_main_of(struct str arguments, struct str *before)
{
    struct str all = arguments, found = STR("");
    size_t at = 0;
    while (arguments.len > 0 && found.len == 0) {
        at = all.len - arguments.len;
        struct str word = str_cut(&arguments, '\0');
        if (application_is_one_of(word, "-jar -m --module")) {
            found = str_cut(&arguments, '\0');
            break;
        }
        if (application_is_one_of(word, java_valued)) {
            (void)str_cut(&arguments, '\0');
        } else if (word.len > 0 && word.ptr[0] != '-' && word.ptr[0] != '@') {
            found = word;
        }
    }
    if (before != NULL) {
        *before = str_sub(all, 0, at);
    }
    return found;
}
