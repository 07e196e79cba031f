/* Is a file Perl? Known by what it exports, never by its name: the program and the library export the same, also where
 * they are stripped. */
#include "runtime/perl/private.h"

#include <stdlib.h>

static uint64_t address_of(struct elf *elf, const char *name)
{
    struct elf_symbol symbol;
    bool found = elf_find_dynamic(elf, name, &symbol) || elf_find_symbol(elf, ELF_SYMTAB, name, &symbol);
    return found ? symbol.address : 0;
}

/* One byte of the file's constants. */
static bool number_of(struct elf *elf, const char *name, unsigned char *out)
{
    struct elf_symbol symbol;
    uint64_t offset;
    return elf_find_dynamic(elf, name, &symbol) && elf_offset_of(elf, symbol.address, &offset) &&
           elf_read(elf, offset, out, 1, NULL);
}

/* A build for one interpreter exports the variables, one for several the pointer to the structure that has them; with
 * threads also their key. */
static void find_roots(struct elf *elf, struct perl_binary *binary)
{
    binary->curcop = address_of(elf, "PL_curcop");
    binary->curstackinfo = address_of(elf, "PL_curstackinfo");
    binary->comppad = address_of(elf, "PL_comppad");
    binary->compiling = address_of(elf, "PL_compiling");
    binary->threads = address_of(elf, "PL_thr_key") != 0;
    binary->interpreter = binary->curcop == 0 ? address_of(elf, "PL_curinterp") : 0;
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
    (void)path;
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
    perl_find_code(elf, code, kept);
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
