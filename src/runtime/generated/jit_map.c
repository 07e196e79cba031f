#include "runtime/generated/jit_private.h"

/* A word of a line; some runtimes align their numbers with blanks. */
static struct str take_word(struct str *line)
{
    while (line->len > 0 && line->ptr[0] == ' ') {
        *line = str_sub(*line, 1, line->len);
    }
    return str_cut(line, ' ');
}

/* CPython and HotSpot write 0x, V8 does not. */
static bool take_number(struct str *line, uint64_t *out)
{
    struct str word = take_word(line);
    if (str_starts(word, STR("0x"))) {
        word = str_sub(word, 2, word.len);
    }
    return str_hex(word, out);
}

static void take_line(struct jit_names *names, struct str line)
{
    uint64_t start, bytes;
    bool good = take_number(&line, &start) && take_number(&line, &bytes);
    struct str name = str_trim(line);
    if (!good || name.len == 0 || bytes == 0 || bytes > UINT32_MAX || start > UINT64_MAX - bytes) {
        names->damaged++;
        return;
    }
    struct jit_code code = {.start = start, .bytes = (uint32_t)bytes};
    jit_index_add(&names->index, code, name, STR(""));
}

/* What is above the maximum is dropped: it ends the line's name. */
static void hold(struct jit_map *map, struct str piece)
{
    piece = str_sub(piece, 0, sizeof map->line - map->len);
    if (piece.len > 0) {
        memcpy(map->line + map->len, piece.ptr, piece.len);
        map->len += piece.len;
    }
}

static void end_line(struct jit_names *names, struct str piece)
{
    struct jit_map *map = &names->map;
    if (map->len == 0) {
        take_line(names, str_sub(piece, 0, JIT_LINE_MAX));
        return;
    }
    hold(map, piece);
    take_line(names, (struct str){map->line, map->len});
    map->len = 0;
}

void jit_feed_map(struct jit_names *names, const void *ptr, size_t len)
{
    struct str rest = {ptr, len};
    while (rest.len > 0) {
        size_t end = str_find(rest, '\n');
        if (end == rest.len) {
            hold(&names->map, rest);
            return;
        }
        end_line(names, str_sub(rest, 0, end));
        rest = str_sub(rest, end + 1, rest.len);
    }
}
