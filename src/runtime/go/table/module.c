/* What belongs to a Go symbol table and stands elsewhere: the module data, which says where the text and funcdata
 * begin. It has no mark and changes between versions: a candidate is believed when its pointers fit the table, a
 * funcdata word when the inlined calls of FITS_WANTED functions make sense with it. */

#include "base/cursor.h"
#include "runtime/go/table/private.h"

/* Words of runtime.moduledata since Go 1.18 (1.20 moved what follows the bss addresses by two). */
enum {
    MODULE_HEADER = 0,
    MODULE_NAMES = 1, /* a slice: address, length, capacity */
    MODULE_MIN_PC = 20,
    MODULE_TEXT = 22,
    MODULE_FUNCDATA_FIRST = 32, /* where a later version may have it */
    MODULE_FUNCDATA_LAST = 48,
    CANDIDATES_MAX = 4096,
    TEXT_NAMES_MAX = 1 << 18,
    FITS_WANTED = 32,     /* functions with inlined calls that have to make sense */
    FITS_TRIED = 8192,    /* functions looked at for them */
};

static bool module_word(struct go_table *t, uint64_t module, unsigned index, uint64_t *out)
{
    return go_pointer(&t->reader, &t->relocations,
                      module + index * go_word_bytes(t->reader.elf), out);
}

static bool module_fits(struct go_table *t, uint64_t module)
{
    uint64_t header, names, len, cap, min, text;
    uint32_t first;
    if (!module_word(t, module, MODULE_HEADER, &header) || header != t->address ||
        !module_word(t, module, MODULE_NAMES, &names) ||
        names - t->address != t->names.offset - t->whole.offset ||
        !module_word(t, module, MODULE_NAMES + 1, &len) ||
        !module_word(t, module, MODULE_NAMES + 2, &cap) || len == 0 || len != cap ||
        !module_word(t, module, MODULE_MIN_PC, &min) ||
        !module_word(t, module, MODULE_TEXT, &text) ||
        !go_u32(&t->reader, t->list, 0, &first) || min - text != first) {
        return false;
    }
    t->module = module;
    t->text = text;
    return true;
}

struct module_search {
    struct go_table *table;
    unsigned candidates;
};

static bool find_module(void *context, const struct go_piece *piece)
{
    struct module_search *s = context;
    struct go_table *t = s->table;
    size_t word = go_word_bytes(t->reader.elf);
    for (size_t at = 0; at + word <= piece->len; at += word) {
        struct cursor c = cursor_of(piece->bytes + at, word);
        uint64_t value = word == 8 ? cursor_u64(&c) : cursor_u32(&c);
        if (value == t->address && s->candidates++ < CANDIDATES_MAX &&
            module_fits(t, piece->address + at)) {
            return true;
        }
    }
    return false;
}

/* The pointer to the header is 0 in the file when lld linked: its relocation has the value. */
static bool find_module_by_relocation(struct go_table *t)
{
    unsigned candidates = 0;
    uint64_t address, value;
    for (uint64_t i = 0; go_relocation(&t->reader, &t->relocations, i, &address, &value); i++) {
        if (value == t->address && candidates++ < CANDIDATES_MAX && module_fits(t, address)) {
            return true;
        }
    }
    return false;
}

/* The program starts at the start of a Go function, if Go's own linker made it. */
static bool starts_at_a_function(struct go_table *t, uint64_t text)
{
    uint64_t entry = t->reader.elf->entry - text;
    uint64_t low = 0, high = t->function_count;
    uint32_t start = 0;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (!go_u32(&t->reader, t->list, middle * 8, &start)) {
            return false;
        }
        if (start == entry) {
            return true;
        }
        if (start < entry) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

struct text_search {
    struct elf *elf;
    uint64_t text; /* 0: not found */
    unsigned names;
};

static bool find_text_symbol(void *context, const struct elf_symbol *symbol)
{
    struct text_search *s = context;
    struct str name;
    if (elf_name(s->elf, (enum elf_table)symbol->table, symbol->name, &name) &&
        str_eq(name, STR("runtime.text"))) {
        s->text = symbol->address;
        return false;
    }
    return ++s->names < TEXT_NAMES_MAX;
}

/* Without module data: the header (until Go 1.25), the symbol, the section. */
static bool guess_text(struct go_table *t)
{
    struct text_search search = {.elf = t->reader.elf};
    if (go_word(&t->reader, t->whole, 8 + 2 * go_word_bytes(search.elf), &t->text) &&
        t->text != 0) {
        return true;
    }
    (void)elf_each_function(search.elf, ELF_SYMTAB, find_text_symbol, &search, NULL);
    const struct elf_section *section = elf_section(search.elf, ".text");
    uint64_t start = section != NULL ? section->address : search.elf->text_start;
    t->text = search.text != 0 ? search.text : start;
    return search.text != 0 || starts_at_a_function(t, start);
}

bool go_find_text(struct go_table *t, struct err *err)
{
    struct module_search search = {.table = t};
    if (!t->format->relative) {
        uint64_t list = t->address + (t->list.offset - t->whole.offset);
        t->first_relocation = go_relocation_of(&t->reader, &t->relocations, list);
        return true;
    }
    return go_scan(t->reader.elf, find_module, &search) || find_module_by_relocation(t) ||
           guess_text(t) ||
           err_set(err, ERR_UNSUPPORTED, 0, "Go symbol table whose text start is not known");
}

/* ---- inlined calls ---- */

static bool name_fits(struct go_table *t, uint32_t at)
{
    char name[GO_NAME_MAX];
    size_t len;
    if (!go_text(&t->reader, t->names, at, name, &len) || len == 0) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)name[i] < ' ') {
            return false;
        }
    }
    return true;
}

/* The first entry of a tree has no parent, its call is in the function, and lines count from 1. */
static bool tree_fits(struct go_table *t, const struct go_inline_layout *layout,
                      const struct go_function *f, struct go_span tree)
{
    struct go_inlined first;
    return go_inlined_at(t, layout, tree, 0, &first) && first.parent == -1 &&
           first.line > 0 && first.parent_pc >= -1 &&
           first.parent_pc < (int64_t)(f->limit - f->start) && name_fits(t, first.name);
}

static bool layout_fits(struct go_table *t, const struct go_inline_layout *layout)
{
    unsigned good = 0;
    for (uint64_t i = 0; i < t->function_count && i < FITS_TRIED && good < FITS_WANTED; i++) {
        struct go_function f;
        struct go_span tree;
        if (go_function_at(t, i, &f) && go_inline_tree(t, layout, &f, &tree)) {
            if (!tree_fits(t, layout, &f, tree)) {
                return false;
            }
            good++;
        }
    }
    return good > 0;
}

/* Is that word of the module data the one that funcdata count from? */
static bool take_funcdata(struct go_table *t, unsigned word)
{
    struct go_span span;
    if (!module_word(t, t->module, word, &t->funcdata) ||
        !go_span_of(t->reader.elf, t->funcdata, &span) ||
        !layout_fits(t, &t->format->layouts[0])) {
        return false;
    }
    t->inlines = t->format->layouts[0];
    return true;
}

void go_find_inlines(struct go_table *t)
{
    if (t->format->relative) {
        bool found = t->module == 0 || take_funcdata(t, t->format->funcdata_word);
        for (unsigned i = MODULE_FUNCDATA_FIRST; !found && i < MODULE_FUNCDATA_LAST; i++) {
            found = take_funcdata(t, i);
        }
        return;
    }
    for (size_t i = 0; i < sizeof t->format->layouts / sizeof t->format->layouts[0]; i++) {
        const struct go_inline_layout *layout = &t->format->layouts[i];
        if (layout->entry_bytes > 0 && layout_fits(t, layout)) {
            t->inlines = *layout;
            return;
        }
    }
}
