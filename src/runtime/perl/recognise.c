/* Is a file Perl, and which of its code is the interpreter's? Known by what it exports, never by its name: the program
 * and the library export the same, also where they are stripped. Functions that no symbol names are static ones: how
 * the interpreter calls itself, or parts of functions that have a name. */
#include "runtime/perl/private.h"

#include <stdlib.h>

enum {
    RANGES_MAX = 16384,
    NAMED = 100, /* of a stripped file: plain, because it has a name */
};

static const char *const loops[] = {"Perl_runops_standard", "Perl_runops_debug", "S_runops_standard"};

/* How the interpreter calls itself, from perl.c, pp_hot.c, pp_ctl.c, gv.c and pp_sort.c. */
static const char *const plumbing[] = {
    "perl_run", "S_run_body", "Perl_call_*", "S_call_body", "S_call_list_body", "Perl_eval_sv", "Perl_eval_pv",
    "S_docatch", "Perl_pp_entersub", "Perl_pp_entertry", "Perl_pp_entertrycatch", "Perl_pp_entereval",
    "Perl_pp_require", "Perl_pp_dofile", "Perl_amagic_call", "Perl_try_amagic*", "S_sortcv*", "S_process_special_blocks*",
    "Perl_load_module*",
};

struct search {
    struct elf *elf;
    struct code_ranges *ranges;
    bool is_stripped;
};

static bool find(struct elf *elf, const char *name, struct elf_symbol *out)
{
    return elf_find_dynamic(elf, name, out) || elf_find_symbol(elf, ELF_SYMTAB, name, out);
}

static uint64_t address_of(struct elf *elf, const char *name)
{
    struct elf_symbol symbol;
    return find(elf, name, &symbol) ? symbol.address : 0;
}

/* One byte of the file's constants. */
static bool number_of(struct elf *elf, const char *name, unsigned char *out)
{
    struct elf_symbol symbol;
    uint64_t offset;
    return elf_find_dynamic(elf, name, &symbol) && elf_offset_of(elf, symbol.address, &offset) &&
           elf_read(elf, offset, out, 1, NULL);
}

static bool take_function(void *context, const struct elf_symbol *symbol)
{
    struct search *s = context;
    struct str name;
    if (!elf_name(s->elf, symbol->table, symbol->name, &name)) {
        return true;
    }
    bool is_loop = code_name_among(name, loops, sizeof loops / sizeof loops[0]);
    bool is_plumbing = code_name_among(name, plumbing, sizeof plumbing / sizeof plumbing[0]);
    if (is_loop || is_plumbing || s->is_stripped) {
        code_ranges_add(s->ranges, symbol->address, symbol->address + symbol->size,
                        is_loop ? RUNTIME_NATIVE_LOOP : is_plumbing ? RUNTIME_NATIVE_PLUMBING : NAMED);
    }
    return true;
}

static void find_code(struct elf *elf, struct perl_binary *binary)
{
    struct search s = {.elf = elf, .ranges = &binary->ranges, .is_stripped = elf->tables[ELF_SYMTAB].count == 0};
    struct elf_symbol entersub;
    if (find(elf, "Perl_pp_entersub", &entersub)) {
        binary->entersub = entersub.address;
        binary->entersub_limit = entersub.address + entersub.size;
    }
    if (!code_ranges_open(&binary->ranges, RANGES_MAX)) {
        return;
    }
    (void)elf_each_function(elf, s.is_stripped ? ELF_DYNSYM : ELF_SYMTAB, take_function, &s, NULL);
    binary->has_names_only = s.is_stripped && binary->ranges.count < RANGES_MAX;
    code_ranges_close(&binary->ranges);
}

static void find_roots(struct elf *elf, struct perl_binary *binary)
{
    binary->interpreter = address_of(elf, "PL_curinterp");
    if (binary->interpreter == 0) {
        binary->curcop = address_of(elf, "PL_curcop");
        binary->curstackinfo = address_of(elf, "PL_curstackinfo");
        binary->comppad = address_of(elf, "PL_comppad");
        binary->op = address_of(elf, "PL_op");
        binary->compiling = address_of(elf, "PL_compiling");
    }
}

static bool can_be_read(struct elf *elf, struct perl_binary *found, struct err *why)
{
    struct perl_layout layout;
    unsigned char version[3];
    if (elf->is_32bit || !number_of(elf, "PL_revision", &version[0]) || !number_of(elf, "PL_version", &version[1]) ||
        !number_of(elf, "PL_subversion", &version[2]) || version[0] != 5) {
        return err_set(why, ERR_UNSUPPORTED, 0, "%s is not read",
                       elf->is_32bit ? "a 32-bit Perl" : "a Perl that does not tell its version");
    }
    found->version = PERL_VERSION(version[1], version[2]);
    find_roots(elf, found);
    if (found->interpreter == 0 && (found->curcop == 0 || found->curstackinfo == 0)) {
        return err_set(why, ERR_UNSUPPORTED, 0, "a Perl that does not export its interpreter is not read");
    }
    return perl_layout_of(found->version, &layout, why);
}

enum runtime_answer perl_recognise(struct elf *elf, struct str path, const struct runtime_code *code, void **binary,
                                   struct err *why)
{
    (void)path, (void)code;
    struct elf_symbol symbol;
    struct perl_binary found = {0};
    if (!elf_find_dynamic(elf, "Perl_runops_standard", &symbol) || symbol.address == 0) {
        return RUNTIME_NO;
    }
    if (!can_be_read(elf, &found, why)) {
        return RUNTIME_UNSUPPORTED;
    }
    struct perl_binary *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        (void)err_set(why, ERR_MEMORY, 0, "no memory for a Perl");
        return RUNTIME_UNSUPPORTED;
    }
    *kept = found;
    find_code(elf, kept);
    *binary = kept;
    return RUNTIME_YES;
}

void perl_forget(void *binary)
{
    struct perl_binary *b = binary;
    if (b != NULL) {
        code_ranges_release(&b->ranges);
    }
    free(b);
}

enum runtime_native perl_native_at(const void *binary, uint64_t elf_address)
{
    const struct perl_binary *b = binary;
    unsigned native = code_range_at(&b->ranges, elf_address);
    if (native == RUNTIME_NATIVE_PLAIN && b->has_names_only) {
        return RUNTIME_NATIVE_PLUMBING;
    }
    return native == NAMED ? RUNTIME_NATIVE_PLAIN : (enum runtime_native)native;
}
