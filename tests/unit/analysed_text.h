/* analysed_text: what analyse.h concludes from literal bytes, as text; and how far it agrees with
 * the call frame information of a real library. For the tests of both processors' halves. */
#ifndef ANALYSED_TEXT_H
#define ANALYSED_TEXT_H

#include "base/str.h"
#include "rule_text.h"
#include "test.h"
#include "unwind/analyse.h"

#include <elfutils/libdw.h>
#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

/* In tests the code stands at 0x1000, and functions outside are 0x1000 or more behind it. */
enum { TEXT_ADDRESS = 0x1000 };

#define BYTES(text) (text), sizeof(text) - 1

static const char *analysed_rows(const struct analysed *a)
{
    static struct buf out;
    buf_release(&out);
    buf_init(&out, 10000);
    vec_each(&a->rows, row) {
        buf_printf(&out, "%llx: %s\n", (unsigned long long)(row->address - TEXT_ADDRESS),
                   rule_text(row->rule));
    }
    return buf_cstr(&out);
}

/* The rows of a text with one function that is known, at its start: lines "offset: rule". */
static inline const char *text_rows(const char *bytes, size_t len)
{
    static const uint64_t starts[] = {TEXT_ADDRESS};
    struct code code = {TEXT_ADDRESS, (const unsigned char *)bytes, len};
    struct analysed out = {0};
    CHECK(analyse_text(&code, starts, 1, 1000, &out));
    const char *text = analysed_rows(&out);
    vec_release(&out.rows);
    return text;
}

static inline const char *leaf_rule(const char *bytes, size_t len, size_t at)
{
    struct code code = {TEXT_ADDRESS, (const unsigned char *)bytes, len};
    return rule_text(analyse_leaf(&code, TEXT_ADDRESS + at));
}

static inline const char *caller_rule(const char *bytes, size_t len, size_t at)
{
    struct code code = {TEXT_ADDRESS, (const unsigned char *)bytes, len};
    return rule_text(analyse_caller(&code, TEXT_ADDRESS + at));
}

static inline const char *rule_by_sp(const char *bytes, size_t len, size_t at)
{
    struct code code = {TEXT_ADDRESS, (const unsigned char *)bytes, len};
    return rule_text(analyse_by_sp(&code, TEXT_ADDRESS + at));
}

static inline bool behind_call(const char *bytes, size_t len, size_t at)
{
    struct code code = {TEXT_ADDRESS, (const unsigned char *)bytes, len};
    return analyse_is_behind_call(&code, TEXT_ADDRESS + at);
}

/* How the rules concluded from a library's code compare with its CFI, at every instruction. */
struct agreement {
    uint64_t instructions; /* that CFI describes */
    uint64_t covered;      /* of those, with a rule */
    uint64_t other_form;   /* the CFA comes from another register than CFI takes it from */
    uint64_t wrong;        /* CFA, return address or FP elsewhere */
};

struct library {
    int fd;
    Elf *elf;
    GElf_Shdr text;
    Elf_Data *bytes;
    VEC(uint64_t) starts; /* of functions in .dynsym */
};

static inline void library_close(struct library *l)
{
    vec_release(&l->starts);
    elf_end(l->elf);
    close(l->fd);
}

static inline int by_address(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static inline void take_symbols(struct library *l, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    for (size_t i = 0; i < header->sh_size / header->sh_entsize; i++) {
        GElf_Sym symbol;
        uint64_t *start = NULL;
        if (gelf_getsym(data, (int)i, &symbol) != NULL && symbol.st_shndx != SHN_UNDEF &&
            GELF_ST_TYPE(symbol.st_info) == STT_FUNC) {
            start = vec_push(&l->starts);
        }
        if (start != NULL) {
            *start = symbol.st_value;
        }
    }
    if (l->starts.len > 0) {
        qsort(l->starts.at, l->starts.len, sizeof *l->starts.at, by_address);
    }
}

/* False when there is no such file. */
static inline bool library_open(struct library *l, const char *path)
{
    size_t names;
    Elf_Scn *section = NULL;
    *l = (struct library){.fd = open(path, O_RDONLY)};
    if (l->fd < 0) {
        return false;
    }
    elf_version(EV_CURRENT);
    l->elf = elf_begin(l->fd, ELF_C_READ, NULL);
    elf_getshdrstrndx(l->elf, &names);
    while ((section = elf_nextscn(l->elf, section)) != NULL) {
        GElf_Shdr header;
        gelf_getshdr(section, &header);
        if (strcmp(elf_strptr(l->elf, names, header.sh_name), ".text") == 0) {
            l->text = header;
            l->bytes = elf_getdata(section, NULL);
        } else if (header.sh_type == SHT_DYNSYM) {
            take_symbols(l, section, &header);
        }
    }
    return l->bytes != NULL;
}

/* A place that CFI names: a register, a distance from the CFA, unchanged, or something else. */
struct truth_place {
    enum { TRUTH_SAME, TRUTH_REGISTER, TRUTH_AT_CFA, TRUTH_OTHER, TRUTH_UNDEFINED } kind;
    int64_t number;
};

struct truth {
    bool simple; /* CFA = reg + off */
    int64_t reg, off;
    struct truth_place ra, fp;
};

static inline struct truth_place truth_place(Dwarf_Frame *frame, int number)
{
    Dwarf_Op room[3], *ops;
    size_t count;
    if (dwarf_frame_register(frame, number, room, &ops, &count) != 0) {
        return (struct truth_place){TRUTH_UNDEFINED, 0};
    }
    if (count == 0) {
        return (struct truth_place){ops == room ? TRUTH_UNDEFINED : TRUTH_SAME, 0};
    }
    if (ops[0].atom == DW_OP_call_frame_cfa && count == 1) {
        return (struct truth_place){TRUTH_AT_CFA, 0};
    }
    if (ops[0].atom == DW_OP_call_frame_cfa && count == 2 && ops[1].atom == DW_OP_plus_uconst) {
        return (struct truth_place){TRUTH_AT_CFA, (int64_t)ops[1].number};
    }
    if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31) {
        return (struct truth_place){TRUTH_REGISTER, ops[0].atom - DW_OP_reg0};
    }
    return (struct truth_place){TRUTH_OTHER, 0};
}

static inline struct truth truth_of(Dwarf_Frame *frame, int ra, int fp)
{
    struct truth t = {.ra = truth_place(frame, ra), .fp = truth_place(frame, fp)};
    Dwarf_Op *ops;
    size_t count;
    if (dwarf_frame_cfa(frame, &ops, &count) == 0 && count == 1 && ops[0].atom == DW_OP_bregx) {
        t.simple = true;
        t.reg = (int64_t)ops[0].number;
        t.off = (int64_t)ops[0].number2;
    }
    return t;
}

/* A register that is still unchanged when its copy is in the frame already, and one that is back
 * while CFI still names its copy below SP, are right in both places. */
static inline bool fp_agrees(const struct unwind_rule *r, const struct truth *t)
{
    int64_t off = r->fp_place == FP_AT_BASE ? r->fp - r->cfa : r->fp;
    switch (r->fp_place) {
    case FP_SAME:
        return t->fp.kind == TRUTH_SAME ||
               (t->fp.kind == TRUTH_AT_CFA && t->fp.number < -(int64_t)r->cfa);
    case FP_AT_CFA:
    case FP_AT_BASE:
        return t->fp.kind == TRUTH_SAME || (t->fp.kind == TRUTH_AT_CFA && t->fp.number == off);
    case FP_UNKNOWN:
        return true; /* claims nothing */
    default:
        return t->fp.kind == TRUTH_OTHER;
    }
}

static inline bool ra_agrees(const struct unwind_rule *r, const struct truth *t, int ra_number)
{
    int64_t off = r->ra_place == RA_AT_BASE ? r->ra - r->cfa : r->ra;
    bool in_register = t->ra.kind == TRUTH_SAME || t->ra.kind == TRUTH_REGISTER;
    if (r->ra_place == RA_REGISTER) {
        return in_register ? r->ra == (t->ra.kind == TRUTH_SAME ? ra_number : t->ra.number)
                           : t->ra.kind == TRUTH_AT_CFA && t->ra.number < -(int64_t)r->cfa;
    }
    return t->ra.kind == TRUTH_SAME || (t->ra.kind == TRUTH_AT_CFA && t->ra.number == off);
}

static inline void compare_rule(struct agreement *a, const struct unwind_rule *r,
                                const struct truth *t, int ra_number)
{
    a->instructions++;
    a->covered += r->kind != RULE_NONE;
    if (r->kind == RULE_END || t->ra.kind == TRUTH_UNDEFINED) {
        a->wrong += r->kind != RULE_NONE && r->kind != RULE_END;
    } else if (r->kind == RULE_CFA && t->simple && r->cfa_reg == t->reg) {
        a->wrong += r->cfa != t->off || !ra_agrees(r, t, ra_number) || !fp_agrees(r, t);
    } else {
        a->other_form += r->kind != RULE_NONE && r->kind != RULE_SIGNAL;
    }
}

/* The length of an instruction and whether it is padding, which no rule has to cover. */
typedef size_t (*measure_instruction)(const unsigned char *bytes, size_t len, bool *padding);

static inline struct agreement compare_library(struct library *l, measure_instruction measure_,
                                               int ra_number, int fp_number)
{
    struct code code = {l->text.sh_addr, l->bytes->d_buf, l->bytes->d_size};
    struct agreement a = {0};
    struct analysed out = {0};
    Dwarf_CFI *cfi = dwarf_getcfi_elf(l->elf);
    Dwarf_Addr start = 0, end = 0;
    struct truth truth = {0};
    bool known = false, padding = false;
    size_t row = 0;
    CHECK(analyse_text(&code, l->starts.at, l->starts.len, 100000, &out));
    for (size_t at = 0, len; at < code.len; at += len) {
        uint64_t address = code.address + at;
        len = measure_(code.bytes + at, code.len - at, &padding);
        while (row + 1 < out.rows.len && out.rows.at[row + 1].address <= address) {
            row++;
        }
        if (address < start || address >= end || !known) {
            Dwarf_Frame *frame = NULL;
            known = dwarf_cfi_addrframe(cfi, address, &frame) == 0 &&
                    dwarf_frame_info(frame, &start, &end, NULL) >= 0;
            truth = known ? truth_of(frame, ra_number, fp_number) : truth;
            free(frame);
        }
        if (known && !padding) {
            compare_rule(&a, &out.rows.at[row].rule, &truth, ra_number);
        }
    }
    dwarf_cfi_end(cfi);
    vec_release(&out.rows);
    return a;
}

#endif
