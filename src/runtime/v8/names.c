/* What V8 calls the code it generates, in perf maps and jitdumps: a kind, how far it was compiled, a name and a place.
 *
 *     JS:*handle file:///srv/app.js:12:5    kind, how far it was compiled (~ ^ + *, later also *' o* and the like),
 *     LazyCompile:~handle /srv/app.js:12    name, place; "Function:", "Script:", "Eval:"
 *                                           and "InterpretedFunction:" are the like
 *
 * They become "handle /srv/app.js:12" of kind FRAME_JS, with source file and line apart.
 * Its own "Builtin:", "BytecodeHandler:" and "RegExp:" are no functions of a program and stay as they are:
 * another row takes them. How far a function was compiled is omitted, so it stays one frame. */
#include "runtime/v8/private.h"

static const struct str v8_kinds[] = {
    STR("JS:"),       STR("LazyCompile:"), STR("InterpretedFunction:"),
    STR("Function:"), STR("Script:"),      STR("Eval:"),
};

/* Takes ":digits" off the end. */
static bool take_number(struct str *text, uint32_t *number)
{
    uint64_t value;
    size_t colon = str_find_last(*text, ':');
    if (colon == text->len || !str_u64(str_sub(*text, colon + 1, text->len), &value) ||
        value > UINT32_MAX) {
        return false;
    }
    *number = (uint32_t)value;
    text->len = colon;
    return true;
}

/* Cuts the name off the front of "name place". Both may have blanks in them ("get size", a folder's
 * name): the place begins at the first blank before what looks like one, else at the last. */
static struct str cut_name(struct str *text)
{
    size_t cut = str_find_last(*text, ' ');
    for (size_t i = 0; i < text->len; i++) {
        struct str rest = str_sub(*text, i + 1, text->len);
        if (text->ptr[i] == ' ' && (str_starts(rest, STR("/")) || str_starts(rest, STR("file:")) ||
                                    str_starts(rest, STR("node:")))) {
            cut = i;
            break;
        }
    }
    struct str name = str_sub(*text, 0, cut);
    *text = str_sub(*text, cut + 1, text->len);
    return name;
}

/* "name place:line[:column]". Without a name it is a script's outer code or a function nobody
 * named. */
static struct runtime_named named_by(struct str text, struct buf *out)
{
    static const struct str scheme = STR("file://");
    uint32_t number = 0, line = 0;
    if (str_starts(text, STR("o+")) || str_starts(text, STR("o*"))) { /* within one of its loops */
        text = str_sub(text, 1, text.len);
    }
    if (text.len > 0 && strchr("~^+*", text.ptr[0]) != NULL) { /* for one place that calls it: ' */
        text = str_sub(text, text.len > 1 && text.ptr[1] == '\'' ? 2 : 1, text.len);
    }
    struct str place = text, name = cut_name(&place);
    if (take_number(&place, &number)) {
        line = number;
        line = take_number(&place, &number) ? number : line;
    }
    if (str_starts(place, scheme)) {
        place = str_sub(place, scheme.len, place.len);
    }
    buf_str(out, name.len > 0 ? name : STR("(anonymous)"));
    if (place.len > 0) {
        buf_printf(out, " %.*s", (int)str_sub(place, 0, 4096).len, place.ptr);
    }
    if (line > 0) {
        buf_printf(out, ":%u", line);
    }
    return (struct runtime_named){FRAME_JS, place, line};
}

bool v8_read_name(struct str raw, struct buf *out, struct runtime_named *named)
{
    for (size_t i = 0; i < sizeof v8_kinds / sizeof v8_kinds[0]; i++) {
        if (str_starts(raw, v8_kinds[i])) {
            *named = named_by(str_sub(raw, v8_kinds[i].len, raw.len), out);
            return true;
        }
    }
    return false;
}
