/*
 * cfi: call frame information as compilers write it, decoded into rules.
 *
 * Concept. A CFI section is a list of entries: CIEs hold what many functions share, FDEs hold one
 * function's range and a little program that says how the rule changes along it. cfi_entry_read
 * finds one entry in bytes, cfi_cie_read and cfi_fde_read decode it, cfi_each_row runs the program
 * and reports a row wherever the rule changes. Of all registers only the CFA, the return address
 * and the frame pointer are followed, see rule.h.
 *
 * Expressions are not evaluated but recognised: what compilers and assemblers write in them are
 * register + k, *(register + k) + c, and the PLT's sum. A row that says anything else has a rule of
 * kind RULE_NONE; the rows around it are not lost by it.
 *
 * Pure: bytes in, values out. Every function returns false for bytes that contradict their format.
 * An FDE costs time in proportion to its bytes.
 *
 * The machine is a value, so that either processor's CFI can be read anywhere (tests).
 *
 * Formats: DWARF 5 section 6.4 and 7.24 (.debug_frame: versions 1, 3, 4); LSB Core 5.0 chapter 10
 * (.eh_frame: version 1, augmentations "zPLRSBG", pointer encodings); GNU's operations 0x2d–0x2f.
 * remember_state and restore_state cover the CFA too, as GNU tools have it.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include "base/cursor.h"
#include "unwind/rule.h"

enum cfi_format { CFI_EH_FRAME, CFI_DEBUG_FRAME };

enum {
    CFI_REMEMBERED_MAX = 8, /* nesting of remember_state; 2 is the deepest seen */
};

/* DWARF numbers of the registers that are followed. */
struct cfi_machine {
    uint8_t sp, fp;
    uint8_t ra;            /* the column of the return address */
    bool ra_is_register;   /* the column is a real register: no rule means it is still there */
    uint8_t ip;            /* as expressions name it, for the PLT; equal to ra without one */
};

/* Some bytes of a section. Addresses are the image's; in .debug_frame, offsets in the section. */
struct cfi_bytes {
    enum cfi_format format;
    uint64_t address; /* of bytes[0] */
    const unsigned char *bytes;
    size_t len;
};

enum cfi_kind { CFI_CIE, CFI_FDE, CFI_TERMINATOR };

struct cfi_entry {
    enum cfi_kind kind;
    enum cfi_format format;
    uint64_t bytes;        /* of the whole entry: the next one follows */
    uint64_t cie;          /* an FDE's: address of its CIE */
    uint64_t body_address;
    struct cursor body;    /* after the CIE pointer, borrowed */
};

enum cfi_place_kind {
    CFI_UNSPECIFIED,
    CFI_UNDEFINED,
    CFI_SAME,
    CFI_AT_CFA,      /* *(CFA + offset) */
    CFI_IN_REGISTER,
    CFI_AT_REGISTER, /* *(reg + offset) */
    CFI_UNKNOWN,     /* described in a way that no rule expresses */
};

struct cfi_place {
    uint8_t kind; /* enum cfi_place_kind */
    uint8_t reg;
    int32_t offset;
};

struct cfi_state { /* the rule while the program runs */
    uint8_t cfa_kind; /* RULE_CFA, RULE_DEREF, RULE_PLT, or RULE_NONE: not expressible */
    uint8_t cfa_reg;
    int32_t cfa, addend;
    struct cfi_place ra, fp;
};

struct cfi_cie {
    uint64_t code_align;
    int64_t data_align;
    uint64_t ra_column;
    uint8_t encoding;      /* of an FDE's addresses */
    bool has_augmentation; /* FDEs have a block of augmentation bytes */
    bool is_signal;        /* its functions are signal trampolines */
    struct cfi_state initial;
};

struct cfi_fde {
    uint64_t start, limit; /* of the code */
    struct cursor program; /* borrowed */
};

/* The entry at the beginning of `in`. When the bytes end before the entry does, false, and
 * *out holds in `bytes` how long the entry is (0: not even that is known). */
bool cfi_entry_read(const struct cfi_bytes *in, struct cfi_entry *out);

bool cfi_cie_read(const struct cfi_machine *machine, const struct cfi_entry *entry,
                  struct cfi_cie *out);
bool cfi_fde_read(const struct cfi_cie *cie, const struct cfi_entry *entry, struct cfi_fde *out);

/* Calls `row` for the function's first address and for every later one where the rule may have
 * changed, in rising order and within the function; false from `row` ends the walk with true.
 * False for a program that contradicts itself: what was reported before it did so is void. */
bool cfi_each_row(const struct cfi_machine *machine, const struct cfi_cie *cie,
                  const struct cfi_fde *fde,
                  bool (*row)(void *context, uint64_t address, const struct unwind_rule *rule),
                  void *context);

/* A pointer as .eh_frame and .eh_frame_hdr encode it: absolute, or relative to its own address or
 * to `data`. Indirect ones and those relative to other bases are refused. */
bool cfi_pointer(struct cursor *c, uint64_t field_address, uint64_t data, uint8_t encoding,
                 uint64_t *out);

#endif
