/* The grammar is that of a text for people, and grows with Go's releases: so it is read by what stands at the ends of a
 * line. Parts that are known are taken off the end, from right to left; what remains is a name, which may hold blanks,
 * brackets and colons. Attributes of a goroutine that are not known are read over. */
#include "runtime/go/dump.h"

#include <stdio.h>

#define UNREADABLE STR("[unreadable]")

/* ---- the first line ---- */

static bool take_prefix(struct str *text, struct str prefix)
{
    bool has = str_starts(*text, prefix);
    *text = str_sub(*text, has ? prefix.len : 0, text->len);
    return has;
}

static bool take_suffix(struct str *text, struct str suffix)
{
    bool has = str_ends(*text, suffix);
    text->len -= has ? suffix.len : 0;
    return has;
}

/* Where the word first stands in the text; its length where it does not. */
static size_t find_word(struct str text, struct str word)
{
    for (size_t at = 0; at < text.len; at++) {
        at += str_find(str_sub(text, at, text.len), word.ptr[0]);
        if (str_starts(str_sub(text, at, text.len), word)) {
            return at;
        }
    }
    return text.len;
}

static void read_attribute(struct str attribute, struct go_goroutine_head *out)
{
    uint64_t minutes;
    if (str_eq(attribute, STR("locked to thread"))) {
        out->is_locked = true;
    } else if (take_suffix(&attribute, STR(" minutes")) && str_u64(attribute, &minutes)) {
        out->minutes = minutes;
    }
}

/* What stands in the brackets: "chan receive (scan), 5 minutes, locked to thread, synctest bubble 3". */
static void read_status(struct str status, struct go_goroutine_head *out)
{
    size_t comma = find_word(status, STR(", "));
    struct str rest = str_sub(status, comma + 2, status.len);
    out->state = str_sub(status, 0, comma);
    for (bool more = true; more;) {
        bool is_scan = take_suffix(&out->state, STR(" (scan)"));
        bool is_leaked = take_suffix(&out->state, STR(" (leaked)"));
        out->is_leaked |= is_leaked;
        more = is_scan || is_leaked;
    }
    while (rest.len > 0) {
        size_t end = find_word(rest, STR(", "));
        read_attribute(str_sub(rest, 0, end), out);
        rest = str_sub(rest, end + 2, rest.len);
    }
}

/* Takes from the text what stands in its brackets. Labels, which may hold anything, follow since Go 1.27:
 * "select] {user: 7}:". In Go 1.26, when asked for, they are inside: "select labels:{"user": "7"}]:". */
static bool cut_status(struct str *text)
{
    size_t close = str_find(*text, ']');
    struct str end = str_sub(*text, close, text->len), inside = str_sub(*text, 0, close);
    size_t labels = find_word(inside, STR(" labels:{"));
    bool ok = labels < inside.len ? str_ends(*text, STR("}]:"))
                                  : str_eq(end, STR("]:")) || (str_starts(end, STR("] {")) && str_ends(end, STR("}:")));
    text->len = labels;
    return ok;
}

/* Between number and brackets there may be the addresses of goroutine and thread: " gp=0xc000002380 m=nil". */
bool go_dump_head(struct str line, struct go_goroutine_head *out)
{
    if (!take_prefix(&line, STR("goroutine "))) {
        return false;
    }
    size_t open = find_word(line, STR(" ["));
    struct str status = str_sub(line, open + 2, line.len);
    uint64_t id;
    line.len = open;
    if (!cut_status(&status) || !str_u64(str_sub(line, 0, str_find(line, ' ')), &id)) {
        return false;
    }
    *out = (struct go_goroutine_head){.id = id};
    read_status(status, out);
    return true;
}

/* ---- frames ---- */

/* A block being read. */
struct block {
    struct go_goroutine *g;
    bool damaged;
    bool wants_place; /* the last frame has none yet */
    bool is_over;     /* what follows is not of this goroutine */
};

static void add_frame(struct block *b, struct str name, bool wants_place)
{
    struct go_goroutine *g = b->g;
    if (g->count == GO_DUMP_FRAMES_MAX || name.len == 0) {
        b->damaged = true;
        return;
    }
    g->frames[g->count++] = (struct go_frame){.name = name, .file = STR("")};
    b->wants_place = wants_place;
}

/* "main.(*T).M(0x1, {0x2, ...})" without its arguments, which may be "(...)". Frames of C have none. */
static struct str without_arguments(struct str line)
{
    size_t depth = 0;
    for (size_t i = str_ends(line, STR(")")) ? line.len : 0; i > 0; i--) {
        char c = line.ptr[i - 1];
        depth += c == ')';
        if (c == '(' && --depth == 0) {
            return str_sub(line, 0, i - 1);
        }
    }
    return depth == 0 ? line : (struct str){NULL, 0};
}

/* "main.serve in goroutine 7" without the end. */
static struct str without_creator(struct str name)
{
    static const struct str word = STR(" in goroutine ");
    uint64_t id;
    size_t at = str_find_last(name, ' ');
    struct str before = str_sub(name, 0, at + 1);
    return str_u64(str_sub(name, at + 1, name.len), &id) && take_suffix(&before, word) ? before : name;
}

/* "...50 frames elided..."; older ones do not know how many: "...additional frames elided...". */
static void add_omitted(struct block *b, struct str line)
{
    static const struct str end = STR(" frames elided...");
    uint64_t count;
    struct str number = str_sub(line, 3, line.len - 3);
    b->damaged |= b->g->omitted[0] != '\0' || !take_suffix(&number, end);
    if (str_u64(number, &count)) {
        snprintf(b->g->omitted, sizeof b->g->omitted, "[%llu frames omitted]", (unsigned long long)count);
    } else {
        snprintf(b->g->omitted, sizeof b->g->omitted, "[frames omitted]");
    }
    add_frame(b, str_of(b->g->omitted), false);
}

/* Is the last word of a place an address: "+0x1d", and what is printed when Go is told to print more? */
static bool is_address(struct str word)
{
    static const struct str kinds[] = {STR("+0x"), STR("fp=0x"), STR("sp=0x"), STR("pc=0x")};
    bool found = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        found |= str_starts(word, kinds[i]);
    }
    return found;
}

/* "/src/main.go:17 +0x1d"; of C code that has no line only "pc=0x4015d0". */
static bool read_place(struct str place, struct go_frame *out)
{
    uint64_t line;
    bool has_address = false;
    for (bool more = true; more && place.len > 0;) {
        size_t blank = str_find_last(place, ' ');
        size_t word = blank == place.len ? 0 : blank + 1;
        more = is_address(str_sub(place, word, place.len));
        has_address |= more;
        place.len = !more ? place.len : word == 0 ? 0 : blank;
    }
    size_t colon = str_find_last(place, ':');
    if (place.len == 0) {
        return has_address;
    }
    if (!str_u64(str_sub(place, colon + 1, place.len), &line) || line > INT32_MAX) {
        return false;
    }
    out->file = str_sub(place, 0, colon);
    out->line = (uint32_t)line;
    return true;
}

static void read_indented(struct block *b, struct str place)
{
    if (b->wants_place) {
        b->damaged |= !read_place(place, &b->g->frames[b->g->count - 1]);
        b->wants_place = false;
    } else if (str_starts(place, STR("goroutine running on other thread"))) {
        add_frame(b, UNREADABLE, false);
    } else {
        b->damaged = true;
    }
}

static void read_line(struct block *b, struct str line)
{
    if (b->is_over || b->damaged) {
        return;
    }
    if (take_prefix(&line, STR("\t"))) {
        read_indented(b, line);
    } else if (b->wants_place) {
        b->damaged = true;
    } else if (str_starts(line, STR("[originating from goroutine "))) {
        b->is_over = true;
    } else if (take_prefix(&line, STR("created by "))) {
        add_frame(b, without_creator(line), true);
    } else if (str_starts(line, STR("..."))) {
        add_omitted(b, line);
    } else if (str_starts(line, STR("non-Go function at pc="))) {
        add_frame(b, STR("non-Go function"), false);
    } else {
        add_frame(b, without_arguments(line), true);
    }
}

bool go_dump_next(struct str *rest, struct go_goroutine *out, bool *damaged)
{
    struct block b = {.g = out};
    struct go_goroutine_head next;
    struct str line = {NULL, 0};
    while (rest->len > 0 && line.len == 0) {
        line = str_cut(rest, '\n');
    }
    if (line.len == 0) {
        return false;
    }
    out->count = 0;
    out->omitted[0] = '\0';
    b.damaged = !go_dump_head(line, &out->head);
    while (rest->len > 0) {
        struct str following = *rest;
        line = str_cut(&following, '\n');
        if (go_dump_head(line, &next)) {
            break;
        }
        *rest = following;
        if (line.len == 0) {
            break;
        }
        read_line(&b, line);
    }
    if (out->count == 0 && !b.damaged) {
        add_frame(&b, UNREADABLE, false);
    }
    *damaged = b.damaged || b.wants_place;
    return true;
}
