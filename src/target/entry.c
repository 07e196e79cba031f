/* What a process was begun as, of its arguments and of where its links lead. An interpreter's options are read as
 * getopt reads them: letters stand together, and a value stands behind its letter or in the next argument. What follows
 * the script or the module is not looked at. */
#include "target/entry.h"

#include "base/ascii.h"

enum { PART_MAX_BYTES = 100 };

static const char program[] = "executable";

struct entry {
    struct str folder, name;
    const char *type; /* empty: not known */
};

/* The folder a path lies in, by its name; a path without one lies in `here`. */
static struct str folder_of(struct str path, struct str here)
{
    while (str_starts(path, STR("./"))) {
        path = str_sub(path, 2, path.len);
    }
    size_t slash = str_find_last(path, '/');
    struct str name = slash >= path.len ? here : str_sub(path, 0, slash);
    name = str_base_name(name);
    return str_eq(name, STR(".")) || str_eq(name, STR("..")) ? STR("") : name;
}

/* "app" of "app.py", ".app" of ".app". */
static struct str without_ending(struct str name)
{
    size_t point = str_find_last(name, '.');
    return point > 0 && point < name.len ? str_sub(name, 0, point) : name;
}

static bool is_module(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (!ascii_is_alnum(name.ptr[i]) && name.ptr[i] != '_' && name.ptr[i] != '.') {
            return false;
        }
    }
    return name.len > 0;
}

/* Of "-uc CODE" the 'c'; null: none of these has a value. What is left of the word, or the next one, is the value. */
static const char *valued_letter(struct str word, const char *options, struct str *rest, struct str *value)
{
    for (size_t i = 1; i < word.len; i++) {
        const char *letter = strchr(options, word.ptr[i]);
        if (letter != NULL) {
            *value = str_sub(word, i + 1, word.len);
            *value = value->len > 0 ? *value : str_cut(rest, '\0');
            return letter;
        }
    }
    return NULL;
}

static struct entry script(struct str path, struct str here)
{
    bool is_any = path.len > 0 && !str_eq(path, STR("-")); /* "-" is the standard input */
    return is_any ? (struct entry){folder_of(path, here), without_ending(str_base_name(path)), "script"}
                  : (struct entry){.type = ""};
}

/* As the interpreter finds it: behind its options, or behind "--". */
static struct entry script_of(const struct entry_facts *facts)
{
    struct str rest = facts->arguments, value = STR("");
    (void)str_cut(&rest, '\0');
    while (rest.len > 0) {
        struct str word = str_cut(&rest, '\0');
        if (str_eq(word, STR("--"))) {
            return script(str_cut(&rest, '\0'), facts->folder);
        }
        if (word.len < 2 || word.ptr[0] != '-') {
            return script(word, facts->folder);
        }
        const char *letter = word.ptr[1] == '-' ? NULL : valued_letter(word, facts->options, &rest, &value);
        if (letter == facts->options) {
            return (struct entry){str_base_name(facts->folder), STR("-c"), "script"};
        }
        if (letter == facts->options + 1) {
            return (struct entry){str_base_name(facts->folder), is_module(value) ? value : STR(""), "module"};
        }
    }
    return (struct entry){.type = ""};
}

static void put_line(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len && i < PART_MAX_BYTES; i++) {
        buf_byte(out, (unsigned char)text.ptr[i] < ' ' ? '_' : text.ptr[i]);
    }
    buf_byte(out, '\n');
}

void entry_describe(const struct entry_facts *facts, struct buf *out)
{
    const char *type = facts->exe.len > 0 ? program : "";
    struct entry e = facts->options != NULL
                         ? script_of(facts)
                         : (struct entry){folder_of(facts->exe, STR("")), str_base_name(facts->exe), type};
    put_line(out, e.folder);
    put_line(out, e.name);
    put_line(out, str_of(e.type));
    put_line(out, str_base_name(facts->folder));
}

bool entry_is_program(struct str lines)
{
    (void)str_cut(&lines, '\n');
    (void)str_cut(&lines, '\n');
    return str_eq(str_cut(&lines, '\n'), str_of(program));
}
