/* Decodes the entries of .eh_frame and .debug_frame: CIEs, FDEs, augmentations and pointer encodings.
 * What they leave to be executed is program.c's matter. An entry that contradicts its format is
 * refused; its neighbours are not affected. */
#include "unwind/cfi.h"
#include "unwind/program.h"

enum {
    LENGTH_64BIT = 0xffffffff,

    /* Pointer encodings, DW_EH_PE_*: a form in the low half, what it is relative to above. */
    PE_OMIT = 0xff,
    PE_ABSOLUTE = 0x00,
    PE_ULEB = 0x01,
    PE_UDATA2 = 0x02,
    PE_UDATA4 = 0x03,
    PE_UDATA8 = 0x04,
    PE_SLEB = 0x09,
    PE_SDATA2 = 0x0a,
    PE_SDATA4 = 0x0b,
    PE_SDATA8 = 0x0c,
    PE_FORM = 0x0f,
    PE_PCREL = 0x10,
    PE_DATAREL = 0x30,
    PE_ALIGNED = 0x50,
    PE_BASE = 0x70,
};

static uint64_t take_form(struct cursor *c, uint8_t form)
{
    switch (form) {
    case PE_ABSOLUTE:
    case PE_UDATA8:
    case PE_SDATA8:
        return cursor_u64(c);
    case PE_ULEB:
        return cursor_uleb(c);
    case PE_SLEB:
        return (uint64_t)cursor_sleb(c);
    case PE_UDATA2:
        return cursor_u16(c);
    case PE_SDATA2:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(c);
    case PE_UDATA4:
        return cursor_u32(c);
    case PE_SDATA4:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(c);
    default:
        c->short_read = true;
        return 0;
    }
}

bool cfi_pointer(struct cursor *c, uint64_t field_address, uint64_t data, uint8_t encoding,
                 uint64_t *out)
{
    uint64_t value = take_form(c, encoding & PE_FORM);
    switch (encoding & ~PE_FORM) {
    case PE_ABSOLUTE:
        break;
    case PE_PCREL:
        value += field_address;
        break;
    case PE_DATAREL:
        value += data;
        break;
    default:
        return false;
    }
    if (c->short_read) {
        return false;
    }
    *out = value;
    return true;
}

bool cfi_entry_read(const struct cfi_bytes *in, struct cfi_entry *out)
{
    struct cursor c = cursor_of(in->bytes, in->len);
    *out = (struct cfi_entry){.format = in->format};
    uint64_t len = cursor_u32(&c);
    bool is_64bit = len == LENGTH_64BIT;
    len = is_64bit ? cursor_u64(&c) : len;
    size_t length_bytes = is_64bit ? 12 : 4;
    if (c.short_read || len > INT64_MAX) {
        return false;
    }
    out->bytes = length_bytes + len;
    out->kind = CFI_TERMINATOR;
    if (len == 0) {
        return true;
    }
    c = cursor_of(cursor_take(&c, len), len);
    if (c.ptr == NULL) {
        return false;
    }
    /* as wide as the length, in .eh_frame too: so readelf and elfutils read the 64-bit form */
    uint64_t id = is_64bit ? cursor_u64(&c) : cursor_u32(&c);
    if (in->format == CFI_DEBUG_FRAME) {
        out->kind = id == (is_64bit ? UINT64_MAX : UINT32_MAX) ? CFI_CIE : CFI_FDE;
        out->cie = id;
    } else {
        out->kind = id == 0 ? CFI_CIE : CFI_FDE;
        out->cie = in->address + length_bytes - id;
    }
    out->body = c;
    out->body_address = in->address + (uint64_t)(c.ptr - in->bytes);
    return !c.short_read;
}

/* P: a personality routine, stepped over. The aligned form pads to a word of the image. */
static bool skip_personality(struct cursor *c, const struct cfi_entry *entry)
{
    uint8_t encoding = cursor_u8(c);
    if (encoding == PE_OMIT) {
        return true;
    }
    if ((encoding & PE_BASE) == PE_ALIGNED) {
        uint64_t at = entry->body_address + (uint64_t)(c->ptr - entry->body.ptr);
        cursor_skip(c, (size_t)(-at & 7));
        encoding = PE_ABSOLUTE;
    }
    (void)take_form(c, encoding & PE_FORM);
    return !c->short_read;
}

/* Reads the letters after "z" in order; their bytes stand in the same order in `c`. */
static bool take_augmentation(struct cursor *c, const struct cfi_entry *entry, struct str letters,
                              struct cfi_cie *cie)
{
    for (size_t i = 0; i < letters.len; i++) {
        switch (letters.ptr[i]) {
        case 'R':
            cie->encoding = cursor_u8(c);
            break;
        case 'L': /* where exceptions land: not ours */
            cursor_skip(c, 1);
            break;
        case 'P':
            if (!skip_personality(c, entry)) {
                return false;
            }
            break;
        case 'S':
            cie->is_signal = true;
            break;
        case 'B': /* AArch64: signed with the B key */
        case 'G': /* AArch64: tagged stack */
            break;
        default: /* its bytes may be anything, so what follows cannot be found */
            return false;
        }
    }
    return !c->short_read;
}

bool cfi_cie_read(const struct cfi_machine *machine, const struct cfi_entry *entry,
                  struct cfi_cie *out)
{
    struct cursor c = entry->body;
    struct cfi_cie cie = {.encoding = PE_ABSOLUTE};
    uint8_t version = cursor_u8(&c);
    struct str augmentation = cursor_cstr(&c);
    if (entry->kind != CFI_CIE || (version != 1 && version != 3 && version != 4)) {
        return false;
    }
    if (version == 4 && (cursor_u8(&c) != 8 || cursor_u8(&c) != 0)) {
        return false; /* addresses of another width, or segments */
    }
    cie.code_align = cursor_uleb(&c);
    cie.data_align = cursor_sleb(&c);
    cie.ra_column = version == 1 ? cursor_u8(&c) : cursor_uleb(&c);
    if (augmentation.len > 0) {
        if (augmentation.ptr[0] != 'z') {
            return false; /* "eh" of before gcc 3 */
        }
        cie.has_augmentation = true;
        uint64_t len = cursor_uleb(&c);
        struct cursor bytes = cursor_of(cursor_take(&c, len), len);
        if (c.short_read ||
            !take_augmentation(&bytes, entry, str_sub(augmentation, 1, augmentation.len), &cie)) {
            return false;
        }
    }
    struct cfi_state initial = {.cfa_kind = RULE_NONE};
    if (c.short_read || !cfi_run(machine, &cie, c, &initial, 0, UINT64_MAX, NULL, NULL)) {
        return false;
    }
    cie.initial = initial;
    *out = cie;
    return true;
}

bool cfi_fde_read(const struct cfi_cie *cie, const struct cfi_entry *entry, struct cfi_fde *out)
{
    struct cursor c = entry->body;
    struct cfi_fde fde = {0};
    if (entry->kind != CFI_FDE ||
        !cfi_pointer(&c, entry->body_address, 0, cie->encoding, &fde.start)) {
        return false;
    }
    uint64_t len = take_form(&c, cie->encoding & PE_FORM);
    if (cie->has_augmentation) {
        cursor_skip(&c, cursor_uleb(&c));
    }
    if (c.short_read || len > UINT64_MAX - fde.start) {
        return false;
    }
    fde.limit = fde.start + len;
    fde.program = c;
    *out = fde;
    return true;
}

bool cfi_each_row(const struct cfi_machine *machine, const struct cfi_cie *cie,
                  const struct cfi_fde *fde,
                  bool (*row)(void *context, uint64_t address, const struct unwind_rule *rule),
                  void *context)
{
    struct cfi_state state = cie->initial;
    return fde->start >= fde->limit ||
           cfi_run(machine, cie, fde->program, &state, fde->start, fde->limit, row, context);
}
