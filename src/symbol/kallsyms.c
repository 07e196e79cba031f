/* Reads the kernel's functions from /proc/kallsyms, which comes in pieces. The time goes into its many lines, so whole
 * lines are read where they stand, digits and line ends eight bytes at a time. One name per address is kept. Where all
 * addresses are 0 the kernel hides them, which is an error with its remedy. */
#include "symbol/private.h"

#include <endian.h>

/* The table covers 4 GiB around the first address: kernel text and modules are within 2 GiB of each
 * other because they call each other directly. */
#define REACH_BYTES (UINT64_C(2) << 30)

/* A byte eight times. */
#define ALL(byte) (UINT64_C(0x0101010101010101) * (byte))

enum {
    ADDRESS_DIGITS = 16,
    NAME_PLACE = ADDRESS_DIGITS + 3, /* "ffffffff81000000 T name" */
};

void kallsyms_init(struct kallsyms *k, struct symbols *symbols)
{
    *k = (struct kallsyms){.symbols = symbols};
    pairs_begin(&k->code);
}

static bool is_code(char type)
{
    return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

static bool is_no_function(struct str name)
{
    if (name.ptr[0] == '_') {
        return str_starts(name, STR("__pfx_")) || str_starts(name, STR("__cfi_"));
    }
    return name.ptr[0] == '$' || str_starts(name, STR(".L"));
}

static uint8_t binding_of(char type)
{
    return type == 'T' ? ELF_GLOBAL : type == 't' ? ELF_LOCAL : ELF_WEAK;
}

bool kallsyms_keep(struct kallsyms *k, uint64_t address, uint64_t limit, uint8_t binding, struct str name)
{
    struct symbols *s = k->symbols;
    struct elf_symbol symbol = {
        .address = address,
        .limit = limit,
        .table = ELF_SYMTAB,
        .binding = binding,
    };
    return pairs_add(&s->names, &k->code, name, &symbol.name) && symbols_add(s, &symbol);
}

static bool take_function(struct kallsyms *k, uint64_t address, char type, struct str name)
{
    struct symbols *s = k->symbols;
    if (!k->has_base) {
        k->has_base = true;
        s->base = address > REACH_BYTES ? address - REACH_BYTES : 0;
    }
    if (address < s->base || address - s->base > UINT32_MAX) {
        return true;
    }
    return k->few.gap != NULL ? kallsyms_few_take(k, address, binding_of(type), name)
                              : kallsyms_keep(k, address, UINT64_MAX, binding_of(type), name);
}

/* Eight bytes as one number, the first lowest. */
static uint64_t load_eight(const char *at)
{
    uint64_t eight;
    memcpy(&eight, at, sizeof eight);
    return le64toh(eight);
}

/* Eight lower-case digits at a time, without a branch: once per function of the kernel. */
static bool read_digits(const char *at, uint64_t *out)
{
    uint64_t text = load_eight(at), letters = text >> 6 & ALL(0x01);
    uint64_t digits = (text & ALL(0x0f)) + letters * 9;
    uint64_t above_nine = (digits + ALL(0x06)) >> 4 & ALL(0x01);
    bool good = digits + ALL('0') + above_nine * ('a' - '0' - 10) == text;
    uint64_t bytes = (digits << 4 | digits >> 8) & 0x00ff00ff00ff00ff;
    *out = *out << 32 | (bytes & 0xff) << 24 | (bytes >> 16 & 0xff) << 16 |
           (bytes >> 32 & 0xff) << 8 | bytes >> 48;
    return good;
}

static bool read_address(struct str digits, uint64_t *out)
{
    *out = 0;
    return digits.len == ADDRESS_DIGITS ? read_digits(digits.ptr, out) &&
                                              read_digits(digits.ptr + ADDRESS_DIGITS / 2, out)
                                        : str_hex(digits, out);
}

/* Half of the lines are skipped: what costs most comes last. */
static void take_line(struct kallsyms *k, struct str line)
{
    uint64_t address;
    bool usual = line.len > ADDRESS_DIGITS && line.ptr[ADDRESS_DIGITS] == ' ';
    size_t digits = usual ? ADDRESS_DIGITS : str_find(line, ' ');
    struct str rest = str_sub(line, digits + 1, line.len);
    if (rest.len < 3 || rest.ptr[1] != ' ' || !is_code(rest.ptr[0])) {
        return;
    }
    struct str name = str_trim(str_sub(rest, 2, rest.len));
    if (name.len == 0 || is_no_function(name) ||
        !read_address(str_sub(line, 0, digits), &address)) {
        return;
    }
    k->seen++;
    if (address == 0) {
        k->hidden++;
    } else if (!take_function(k, address, rest.ptr[0], name)) {
        k->full = true;
    }
}

static void end_line(struct kallsyms *k)
{
    char *tab = memchr(k->line, '\t', k->line_len);
    if (tab != NULL) {
        *tab = ' '; /* in front of a module */
    }
    if (!k->line_too_long) {
        take_line(k, (struct str){k->line, k->line_len});
    }
    k->line_len = 0;
    k->line_too_long = false;
}

static void extend_line(struct kallsyms *k, struct str piece)
{
    if (piece.len > sizeof k->line - k->line_len) {
        k->line_too_long = true;
        return;
    }
    memcpy(k->line + k->line_len, piece.ptr, piece.len);
    k->line_len += piece.len;
}

/* A line that is all here, and the kernel's own, is read where it stands. */
static bool is_plain(const struct kallsyms *k, struct str line)
{
    return k->line_len == 0 && !k->line_too_long && line.len > 0 && line.len <= sizeof k->line &&
           line.ptr[line.len - 1] != ']';
}

static bool check_room(const struct kallsyms *k, struct err *err)
{
    return !k->full || err_set(err, ERR_LIMIT, 0, "the kernel's symbols need more than %zu bytes",
                               k->symbols->max_bytes);
}

/* The next line's end. Lines begin alike, so that it is not looked for there; the rest is short, which
 * memchr is not made for. */
static size_t line_end(struct str rest)
{
    bool usual = rest.len > NAME_PLACE && rest.ptr[ADDRESS_DIGITS] == ' ' &&
                 rest.ptr[NAME_PLACE - 1] == ' ';
    size_t at = usual ? NAME_PLACE : 0;
    for (; at + 8 <= rest.len; at += 8) {
        uint64_t differ = load_eight(rest.ptr + at) ^ ALL('\n');
        uint64_t equal = (differ - ALL(0x01)) & ~differ & ALL(0x80);
        if (equal != 0) {
            return at + (size_t)__builtin_ctzll(equal) / 8;
        }
    }
    while (at < rest.len && rest.ptr[at] != '\n') {
        at++;
    }
    return at;
}

bool kallsyms_feed(struct kallsyms *k, const void *ptr, size_t len, struct err *err)
{
    struct str rest = {ptr, len};
    while (rest.len > 0 && !k->full && !k->few.over) {
        size_t end = line_end(rest);
        struct str line = str_sub(rest, 0, end);
        if (end < rest.len && is_plain(k, line)) {
            take_line(k, line);
        } else {
            extend_line(k, line);
            if (end < rest.len) {
                end_line(k);
            }
        }
        rest = str_sub(rest, end + 1, rest.len);
    }
    return check_room(k, err);
}

/* Among aliases of equal rank the names decide; here they are at hand, so one is kept. */
static void drop_aliases(struct symbols *s)
{
    size_t kept = 0;
    struct buf best, next;
    buf_init(&best, KALLSYMS_LINE_MAX);
    buf_init(&next, KALLSYMS_LINE_MAX);
    for (size_t i = 0; i < s->table.len; i++) {
        if (kept == 0 || s->table.at[kept - 1].start != s->table.at[i].start) {
            s->table.at[kept++] = s->table.at[i];
            continue;
        }
        buf_clear(&best);
        buf_clear(&next);
        pairs_get(&s->names, s->table.at[kept - 1].name, &best);
        pairs_get(&s->names, s->table.at[i].name, &next);
        if (symbols_prefers(buf_slice(&next), buf_slice(&best))) {
            s->table.at[kept - 1] = s->table.at[i];
        }
    }
    s->table.len = kept;
    buf_release(&best);
    buf_release(&next);
}

bool kallsyms_finish(struct kallsyms *k, struct err *err)
{
    struct symbols *s = k->symbols;
    end_line(k);
    bool few = k->few.gap != NULL;
    k->full = k->full || (few && !kallsyms_few_finish(k));
    kallsyms_few_release(k);
    bool good = check_room(k, err);
    if (good && k->seen > 0 && k->hidden == k->seen) {
        good = err_set(err, ERR_DENIED, 0,
                       "the kernel hides its addresses (kernel.kptr_restrict or "
                       "kernel.perf_event_paranoid); CAP_SYSLOG or kptr_restrict=0 shows them");
    } else if (good && !symbols_finish(s) && !(few && k->seen > 0)) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "/proc/kallsyms lists no functions");
    }
    if (!good) {
        symbols_release(s);
        return false;
    }
    pairs_finish(&s->names);
    drop_aliases(s);
    return true;
}
