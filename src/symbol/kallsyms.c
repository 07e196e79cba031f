#include "symbol/private.h"

#include <stdlib.h>

/* The table covers 4 GiB around the first address: kernel text and modules are within 2 GiB of each
 * other because they call each other directly. */
#define REACH_BYTES (UINT64_C(2) << 30)

void kallsyms_init(struct kallsyms *k, struct symbols *symbols)
{
    *k = (struct kallsyms){.symbols = symbols};
}

static bool is_no_function(struct str name)
{
    return str_starts(name, STR("__pfx_")) || str_starts(name, STR("__cfi_")) ||
           str_starts(name, STR(".L")) || name.ptr[0] == '$';
}

static bool add_function(struct symbols *s, uint64_t address, char type, struct str name)
{
    if (s->table.len == 0) {
        s->base = address > REACH_BYTES ? address - REACH_BYTES : 0;
    }
    struct elf_symbol symbol = {
        .address = address,
        .limit = s->base + 2 * REACH_BYTES - 1,
        .table = ELF_SYMTAB,
        .binding = type == 'T' ? ELF_GLOBAL : type == 't' ? ELF_LOCAL : ELF_WEAK,
    };
    return words_add(&s->names, name, &symbol.name) && symbols_add(s, &symbol);
}

static void take_line(struct kallsyms *k, struct str line)
{
    uint64_t address;
    struct str number = str_cut(&line, ' '), type = str_cut(&line, ' ');
    struct str name = str_trim(line);
    if (!str_hex(number, &address) || type.len != 1 || memchr("tTwW", type.ptr[0], 4) == NULL ||
        name.len == 0 || is_no_function(name)) {
        return;
    }
    k->seen++;
    if (address == 0) {
        k->hidden++;
    } else if (!add_function(k->symbols, address, type.ptr[0], name)) {
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

static bool check_room(const struct kallsyms *k, struct err *err)
{
    return !k->full || err_set(err, ERR_LIMIT, 0, "the kernel's symbols need more than %zu bytes",
                               k->symbols->max_bytes);
}

bool kallsyms_feed(struct kallsyms *k, const void *ptr, size_t len, struct err *err)
{
    struct str rest = {ptr, len};
    while (rest.len > 0 && !k->full) {
        size_t end = str_find(rest, '\n');
        extend_line(k, str_sub(rest, 0, end));
        if (end < rest.len) {
            end_line(k);
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
        words_get(&s->names, s->table.at[kept - 1].name, &best);
        words_get(&s->names, s->table.at[i].name, &next);
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
    bool good = check_room(k, err);
    if (good && k->seen > 0 && k->hidden == k->seen) {
        good = err_set(err, ERR_DENIED, 0,
                       "the kernel hides its addresses (kernel.kptr_restrict or "
                       "kernel.perf_event_paranoid); CAP_SYSLOG or kptr_restrict=0 shows them");
    } else if (good && !symbols_finish(s)) {
        good = err_set(err, ERR_UNSUPPORTED, 0, "/proc/kallsyms lists no functions");
    }
    if (!good) {
        symbols_release(s);
        return false;
    }
    words_finish(&s->names);
    drop_aliases(s);
    return true;
}
