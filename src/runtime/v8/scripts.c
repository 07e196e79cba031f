/* Scripts: their names, and which line a position is in, for which their text's line ends are counted once. V8 counts
 * them itself, but not before somebody asks. A script whose text or name is another object than before is another
 * one. Where it is wanted, a script that another program made is told by its source map, a file beside it. */
#include "runtime/v8/private.h"

enum {
    SOURCE_MAX = 64 << 20, /* characters */
    PIECE_CHARS = 8192,
    SCRIPTS_MAX = 1 << 14,
    MAP_FILE_MAX = 32 << 20, MAPS_BYTES_MAX = 64 << 20,
    PATH_MAX_BYTES = 4096,
};

static const struct str file_scheme = STR("file://");

void v8_tidy_url(struct buf *name)
{
    struct str text = buf_slice(name);
    if (!str_starts(text, file_scheme)) {
        return;
    }
    size_t out = 0;
    for (size_t i = file_scheme.len; i < text.len; i++, out++) {
        int high = text.ptr[i] == '%' && i + 2 < text.len ? str_digit(text.ptr[i + 1]) : 99;
        int low = high < 16 ? str_digit(text.ptr[i + 2]) : 99;
        name->ptr[out] = low < 16 ? (char)(high << 4 | low) : text.ptr[i];
        i += low < 16 ? 2 : 0;
    }
    name->len = out;
}

uint32_t v8_script(struct v8 *v, uint64_t word)
{
    struct v8_head head;
    if (!v8_read_head(v, word, &head) || head.type != v8_at(v, V8_TYPE_SCRIPT)) {
        return 0;
    }
    uint64_t name_at = v8_field(&head, v8_at(v, V8_SCRIPT_NAME)), source = v8_field(&head, v8_at(v, V8_SCRIPT_SOURCE));
    const struct map_slot *slot = map_find(&v->script_of, head.at);
    if (slot != NULL && v->scripts.at[slot->value].name_at == name_at && v->scripts.at[slot->value].source == source) {
        return (uint32_t)slot->value + 1;
    }
    struct buf name;
    struct v8_script *script = v->scripts.len < SCRIPTS_MAX ? vec_push(&v->scripts) : NULL;
    if (script == NULL || !map_put(&v->script_of, head.at, v->scripts.len - 1)) {
        return 0;
    }
    *script = (struct v8_script){.name_at = name_at, .source = source};
    buf_init(&name, 4 * V8_NAME_MAX);
    if (v8_read_string(v, name_at, &name) && !name.failed) {
        v8_tidy_url(&name);
        script->name = arena_copy(&v->texts, buf_slice(&name));
    } else {
        script->name = STR("(eval)"); /* the text of a string */
    }
    buf_release(&name);
    return (uint32_t)v->scripts.len;
}

static bool ends_line(uint32_t c, uint32_t next)
{
    return c == '\n' || (c == '\r' && next != '\n') || c == 0x2028 || c == 0x2029;
}

/* Ends of lines of the source, as far as there is room. */
struct line_ends {
    VEC(uint32_t) all;
    uint32_t last; /* the character before; it is known when the next one is */
    uint32_t position;
};

static bool take_char(struct line_ends *ends, uint32_t c)
{
    if (ends->position > 0 && ends_line(ends->last, c)) {
        uint32_t *end = vec_push(&ends->all);
        if (end == NULL) {
            return false;
        }
        *end = ends->position;
    }
    ends->last = c;
    ends->position++;
    return true;
}

static bool count_lines(const struct v8 *v, const struct v8_chars *chars, struct line_ends *ends)
{
    unsigned char bytes[2 * PIECE_CHARS];
    uint32_t width = chars->is_one_byte ? 1 : 2;
    for (uint32_t at = 0; at < chars->len; at += PIECE_CHARS) {
        uint32_t len = chars->len - at < PIECE_CHARS ? chars->len - at : PIECE_CHARS;
        if (!v8_read(v, chars->at + (uint64_t)at * width, bytes, len * width)) {
            return false;
        }
        for (uint32_t i = 0; i < len; i++) {
            if (!take_char(ends, width == 1 ? bytes[i] : (uint32_t)(bytes[2 * i] | bytes[2 * i + 1] << 8))) {
                return false;
            }
        }
    }
    return true;
}

static void read_lines(struct v8 *v, struct v8_script *script)
{
    struct v8_chars chars;
    struct line_ends ends = {.last = 0};
    script->has_lines = true;
    if (v8_find_chars(v, script->source, &chars) && chars.len <= SOURCE_MAX && count_lines(v, &chars, &ends)) {
        uint32_t *kept = arena_alloc(&v->lines, (ends.all.len + 1) * sizeof *kept);
        if (kept != NULL) {
            if (ends.all.len > 0) {
                memcpy(kept, ends.all.at, ends.all.len * sizeof *kept);
            }
            script->line_end = kept;
            script->line_count = (uint32_t)ends.all.len;
        }
    }
    vec_release(&ends.all);
}

bool v8_line_at(struct v8 *v, uint32_t script, uint32_t position, uint32_t *line, uint32_t *column)
{
    if (script == 0 || script > v->scripts.len) {
        return false;
    }
    struct v8_script *s = &v->scripts.at[script - 1];
    if (!s->has_lines) {
        read_lines(v, s);
    }
    if (s->line_end == NULL) {
        return false;
    }
    uint32_t low = 0, high = s->line_count; /* lines that end at or before the position */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        *(s->line_end[middle] <= position ? &low : &high) = middle + (s->line_end[middle] <= position);
    }
    *line = low + 1;
    *column = position - (low > 0 ? s->line_end[low - 1] : 0) + 1;
    return true;
}

/* ---- source maps ---- */

static void read_map(struct v8 *v, struct v8_script *script)
{
    static const char ending[] = ".map";
    char path[PATH_MAX_BYTES];
    struct buf text;
    script->has_map = true;
    if (script->name.len == 0 || script->name.ptr[0] != '/' || script->name.len + sizeof ending > sizeof path ||
        v->map_bytes > MAPS_BYTES_MAX) {
        return;
    }
    memcpy(path, script->name.ptr, script->name.len);
    memcpy(path + script->name.len, ending, sizeof ending);
    buf_init(&text, MAP_FILE_MAX);
    if (v->file(v->files, path, &text)) {
        script->map = source_map_read(buf_slice(&text), script->name);
        v->map_bytes += script->map != NULL ? source_map_bytes(script->map) : 0;
    }
    buf_release(&text);
}

bool v8_original(struct v8 *v, uint32_t script, uint32_t line, uint32_t column, struct source_place *out)
{
    if (v->file == NULL || script == 0 || script > v->scripts.len) {
        return false;
    }
    struct v8_script *s = &v->scripts.at[script - 1];
    if (!s->has_map) {
        read_map(v, s);
    }
    return s->map != NULL && source_map_find(s->map, line, column, out);
}

void v8_forget_scripts(struct v8 *v)
{
    vec_each(&v->scripts, script)
    {
        source_map_free(script->map);
    }
    vec_clear(&v->scripts);
    v->map_bytes = 0;
}
