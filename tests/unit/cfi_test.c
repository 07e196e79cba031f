/* Call frame information, from bytes to rules, and the tables made of them. */
#include "compile_all.h"
#include "frame_image.h"
#include "rule_text.h"
#include "test.h"
#include "unwind/cfi.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

static const struct cfi_machine x86 = {.sp = 7, .fp = 6, .ra = 16, .ip = 16};
static const struct cfi_machine arm = {
    .sp = 31, .fp = 29, .ra = 30, .ra_is_register = true, .ip = 30};

/* What x86-64 CIEs say: CFA = rsp + 8, return address at CFA - 8. */
#define USUAL "\x0c\x07\x08\x90\x01"

/* The same for this processor's tables: their return address column. */
#if defined __aarch64__
#define USUAL_HERE "\x0c\x07\x08\x9e\x01"
#else
#define USUAL_HERE USUAL
#endif
#define BYTES(text) text, sizeof(text) - 1

static bool append_row(void *context, uint64_t address, const struct unwind_rule *rule)
{
    struct buf *out = context;
    buf_printf(out, "%llx: %s\n", (unsigned long long)address, rule_text(*rule));
    return true;
}

/* The rows of a function at 0x1000 … 0x1100, one a line; "refused" for a bad program. */
static const char *rows_of(const struct cfi_machine *machine, int64_t data_align,
                           const char *initial, size_t initial_len, const char *program, size_t len)
{
    static struct buf out;
    unsigned char bytes[2000] = {0};
    struct cfi_entry entry = {.kind = CFI_CIE};
    struct cfi_cie cie;
    /* version 1, no augmentation, code alignment 1, data alignment, return address column */
    memcpy(bytes, "\x01\0\x01", 3);
    bytes[3] = (unsigned char)(data_align & 0x7f);
    bytes[4] = machine->ra;
    memcpy(bytes + 5, initial, initial_len);
    entry.body = cursor_of(bytes, 5 + initial_len);
    buf_release(&out);
    buf_init(&out, 10000);
    if (!cfi_cie_read(machine, &entry, &cie)) {
        return "no CIE";
    }
    struct cfi_fde fde = {0x1000, 0x1100, cursor_of(program, len)};
    return cfi_each_row(machine, &cie, &fde, append_row, &out) ? buf_cstr(&out) : "refused";
}

#define ROWS(program) rows_of(&x86, -8, BYTES(USUAL), BYTES(program))
#define ARM_ROWS(program) rows_of(&arm, -8, BYTES("\x0c\x1f\x00"), BYTES(program))

static void prologue_and_epilogue(void)
{
    /* push rbp (1 byte); mov rbp,rsp (3); … leave; ret: as gcc writes it */
    CHECK_TEXT(ROWS("\x41\x0e\x10\x86\x02\x43\x0d\x06\x02\x80\x0c\x07\x08"),
               "1000: r7+8 ra-8 fp=\n"
               "1001: r7+16 ra-8 fp-16\n"
               "1004: r6+16 ra-8 fp-16\n"
               "1084: r7+8 ra-8 fp=\n"); /* the slot is below SP: it was popped */
    /* without a frame pointer: sub rsp,24 … add rsp,24 */
    CHECK_TEXT(ROWS("\x44\x0e\x20\x03\x00\x01\x0e\x08"), "1000: r7+8 ra-8 fp=\n"
                                                         "1004: r7+32 ra-8 fp=\n");
    /* the second advance, by 256, leaves the function: what follows it has no address */
}

static void every_operation(void)
{
    /* advance_loc1, 2, 4 and GNU's 8 */
    CHECK_TEXT(ROWS("\x02\x01\x0e\x10\x03\x02\0\x0e\x18\x04\x03\0\0\0\x0e\x20"
                    "\x1d\x04\0\0\0\0\0\0\0\x0e\x28"),
               "1000: r7+8 ra-8 fp=\n1001: r7+16 ra-8 fp=\n1003: r7+24 ra-8 fp=\n"
               "1006: r7+32 ra-8 fp=\n100a: r7+40 ra-8 fp=\n");
    /* offset_extended, offset_extended_sf, negative_offset_extended of rbp */
    CHECK_TEXT(ROWS("\x0e\x40\x05\x06\x02"), "1000: r7+64 ra-8 fp-16\n");
    CHECK_TEXT(ROWS("\x0e\x40\x11\x06\x7f"), "1000: r7+64 ra-8 fp+8\n");
    CHECK_TEXT(ROWS("\x0e\x40\x2f\x06\x02"), "1000: r7+64 ra-8 fp+16\n");
    /* undefined, same_value, register, restore, restore_extended */
    CHECK_TEXT(ROWS("\x07\x06"), "1000: r7+8 ra-8 fp?\n");
    CHECK_TEXT(ROWS("\x07\x06\x41\x08\x06"), "1000: r7+8 ra-8 fp?\n1001: r7+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x09\x06\x03"), "1000: r7+8 ra-8 fp?\n");
    CHECK_TEXT(ROWS("\x09\x10\x05"), "1000: r7+8 ra:r5 fp=\n"); /* __vfork: in rdi */
    CHECK_TEXT(ROWS("\x90\x04\x41\xd0"), "1000: r7+8 ra-32 fp=\n1001: r7+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x90\x04\x41\x06\x10"), "1000: r7+8 ra-32 fp=\n1001: r7+8 ra-8 fp=\n");
    /* def_cfa_sf, def_cfa_offset_sf: factored by -8 */
    CHECK_TEXT(ROWS("\x12\x06\x7d"), "1000: r6+24 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x13\x7c"), "1000: r7+32 ra-8 fp=\n");
    /* val_offset, val_expression: values that no rule expresses */
    CHECK_TEXT(ROWS("\x14\x06\x01"), "1000: r7+8 ra-8 fp?\n");
    CHECK_TEXT(ROWS("\x16\x06\x02\x77\x08"), "1000: r7+8 ra-8 fp?\n");
    /* args_size is skipped, other registers too, and nop */
    CHECK_TEXT(ROWS("\x2e\x10\x83\x02\x8c\x03\x05\x0d\x04\x0a\x0b\0\0"), "1000: r7+8 ra-8 fp=\n");
    /* the outermost frame */
    CHECK_TEXT(ROWS("\x07\x10"), "1000: end\n");
    /* an operation that does not exist; a cut operand; a register without a number in range */
    CHECK_TEXT(ROWS("\x41\x3f"), "refused");
    CHECK_TEXT(ROWS("\x0c\x07"), "refused");
    CHECK_TEXT(ROWS("\x0c\x80\x02\x08"), "1000: none\n");
    CHECK_TEXT(ROWS("\x0e\xff\xff\xff\xff\x0f"), "1000: none\n");
}

static void remembered_states(void)
{
    /* remember; CFA and FP change; restore: all three are back, the CFA too (as GNU has it) */
    CHECK_TEXT(ROWS("\x0a\x41\x0c\x06\x10\x86\x02\x41\x0b"),
               "1000: r7+8 ra-8 fp=\n1001: r6+16 ra-8 fp-16\n1002: r7+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"),
               "1000: r7+8 ra-8 fp=\n"); /* eight deep */
    CHECK_TEXT(ROWS("\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a\x0a"), "refused");
    CHECK_TEXT(ROWS("\x0b"), "refused");
}

static void expressions(void)
{
    /* the PLT, SP + 8 + ((ip & 15) >= 11) * 8; the 11 is the linker's choice */
    CHECK_TEXT(ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"),
               "1000: plt11 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x39\x2a\x33\x24\x22"),
               "1000: plt9 ra-8 fp=\n");
    /* a realigned stack: CFA = *(rbp - 8), rbp at *(rbp + 0) */
    CHECK_TEXT(ROWS("\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00"), "1000: *(r6-8)+0 ra-8 fp*+0\n");
    /* OpenSSL: CFA = *(rsp + 40) + 8 */
    CHECK_TEXT(ROWS("\x0f\x05\x77\x28\x06\x23\x08"), "1000: *(r7+40)+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0f\x05\x77\x28\x06\x38\x22"), "1000: *(r7+40)+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0f\x06\x77\x28\x06\x08\x10\x1c"), "1000: *(r7+40)-16 ra-8 fp=\n");
    /* a plain register + offset, bregx too; FP at SP + 16 where CFA is SP + 32 */
    CHECK_TEXT(ROWS("\x0f\x02\x77\x20"), "1000: r7+32 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0f\x03\x92\x03\x10"), "1000: r3+16 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0e\x20\x10\x06\x02\x77\x10"), "1000: r7+32 ra-8 fp-16\n");
    /* OpenSSL's bn_mul_mont counts the place in a register: *(SP + 8 + r9 * 8) + 8 is somewhere */
    CHECK_TEXT(ROWS("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08"),
               "1000: *(r7-2147483648)+8 ra-8 fp=\n");
    /* other multiplications are not expressed, and only these rows are lost */
    CHECK_TEXT(ROWS("\x0a\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x38\x22\x41\x0b"),
               "1000: none\n1001: r7+8 ra-8 fp=\n");
    CHECK_TEXT(ROWS("\x0f\x04\x77\x08\x06\x06"), "1000: none\n"); /* two dereferences */
    CHECK_TEXT(ROWS("\x0f\x00"), "1000: none\n");
    /* the return address at an expression is expressed where the CFA has the same base */
    CHECK_TEXT(ROWS("\x0e\x20\x10\x10\x02\x77\x10"), "1000: r7+32 ra-16 fp=\n");
    CHECK_TEXT(ROWS("\x0e\x20\x10\x10\x02\x73\x10"), "1000: none\n");
    CHECK_TEXT(ROWS("\x0f\x7f\x77"), "refused"); /* longer than the program */
}

static void aarch64(void)
{
    /* stp x29,x30,[sp,#-32]!; mov x29,sp; …; ldp; ret. Around them the return address is in LR */
    CHECK_TEXT(ARM_ROWS("\x44\x0e\x20\x9d\x04\x9e\x03\x44\x0d\x1d\x48\xdd\xde\x0c\x1f\x00"),
               "1000: r31+0 ra:r30 fp=\n1004: r31+32 ra-24 fp-32\n1008: r29+32 ra-24 fp-32\n"
               "1010: r31+0 ra:r30 fp=\n");
    /* paciasp: the address is signed from here on, and stripped when it is used */
    CHECK_TEXT(ARM_ROWS("\x44\x2d\x44\x0e\x10\x9e\x02"),
               "1000: r31+0 ra:r30 fp=\n1004: r31+0 ra:r30 fp=\n1008: r31+16 ra-16 fp=\n");
    CHECK_TEXT(ARM_ROWS("\x07\x1e"), "1000: end\n");
    /* a frame of 33392 bytes whose record is at its lower end: too far from the CFA for a rule */
    CHECK_TEXT(ARM_ROWS("\x0e\xf0\x84\x02\x9d\xce\x20\x9e\xcd\x20"),
               "1000: r31+33392 ra-33384 fp-33392\n");
    /* but not by another base */
    CHECK_TEXT(ARM_ROWS("\x0c\x1d\x10\x9e\xcd\x20"), "1000: none\n");
    CHECK_TEXT(ARM_ROWS("\x0c\x1d\x10\x9e\x01\x9d\xcd\x20"), "1000: r29+16 ra-8 fp?\n");
}

static bool read_entry(struct cfi_entry *out, enum cfi_format format, uint64_t address,
                       const char *bytes, size_t len)
{
    struct cfi_bytes in = {format, address, (const unsigned char *)bytes, len};
    return cfi_entry_read(&in, out);
}

#define ENTRY(format, address, bytes) read_entry(&entry, format, address, BYTES(bytes))

static void entries(void)
{
    struct cfi_entry entry;
    CHECK(ENTRY(CFI_EH_FRAME, 0x100, "\x08\0\0\0\0\0\0\0\x01\0\0\0"));
    CHECK(entry.kind == CFI_CIE && entry.bytes == 12 && entry.body.len == 4);
    CHECK_INT(entry.body_address, 0x108);
    /* an FDE's pointer counts back from itself */
    CHECK(ENTRY(CFI_EH_FRAME, 0x120, "\x08\0\0\0\x24\0\0\0\x01\0\0\0"));
    CHECK(entry.kind == CFI_FDE && entry.cie == 0x100);
    CHECK(ENTRY(CFI_DEBUG_FRAME, 0, "\x08\0\0\0\xff\xff\xff\xff\x01\0\0\0"));
    CHECK(entry.kind == CFI_CIE);
    CHECK(ENTRY(CFI_DEBUG_FRAME, 0x40, "\x08\0\0\0\x10\0\0\0\x01\0\0\0"));
    CHECK(entry.kind == CFI_FDE && entry.cie == 0x10);
    /* a 64-bit length, and a terminator */
    CHECK(ENTRY(CFI_DEBUG_FRAME, 0, "\xff\xff\xff\xff\x0a\0\0\0\0\0\0\0"
                                    "\xff\xff\xff\xff\xff\xff\xff\xff\x01\0"));
    CHECK(entry.kind == CFI_CIE && entry.bytes == 22 && entry.body.len == 2);
    CHECK(ENTRY(CFI_EH_FRAME, 0x120, "\xff\xff\xff\xff\x0a\0\0\0\0\0\0\0"
                                     "\x2c\0\0\0\0\0\0\0\x01\0"));
    CHECK(entry.kind == CFI_FDE && entry.cie == 0x100); /* 0x2c before its place at 0x12c */
    CHECK(ENTRY(CFI_EH_FRAME, 0, "\0\0\0\0") && entry.kind == CFI_TERMINATOR);
    /* cut: how long it is can be told, unless even that is cut */
    CHECK(!ENTRY(CFI_EH_FRAME, 0, "\x20\0\0\0\0\0\0\0") && entry.bytes == 0x24);
    CHECK(!ENTRY(CFI_EH_FRAME, 0, "\x20\0\0") && entry.bytes == 0);
    CHECK(!ENTRY(CFI_EH_FRAME, 0, "\x02\0\0\0\0\0") && entry.bytes == 6); /* no room for the id */
}

static bool read_cie(struct cfi_cie *out, const char *bytes, size_t len)
{
    struct cfi_entry entry = {.kind = CFI_CIE, .body = cursor_of(bytes, len)};
    entry.body_address = 0x108;
    return cfi_cie_read(&x86, &entry, out);
}

#define CIE(bytes) read_cie(&cie, BYTES(bytes))

static void augmentations(void)
{
    struct cfi_cie cie;
    CHECK(CIE("\x01zR\0\x01\x78\x10\x01\x1b" USUAL));
    CHECK(cie.encoding == 0x1b && cie.has_augmentation && !cie.is_signal);
    CHECK(cie.code_align == 1 && cie.data_align == -8 && cie.ra_column == 16);
    /* P: a personality, pcrel|sdata4 here; L: what exceptions use; R comes last */
    CHECK(CIE("\x01zPLR\0\x01\x78\x10\x07\x9b\1\2\3\4\x1b\x1b" USUAL) && cie.encoding == 0x1b);
    /* an aligned personality at 0x108 + 10 is padded to 0x118 */
    CHECK(CIE("\x01zPR\0\x01\x78\x10\x10\x50\0\0\0\0\0\0\1\2\3\4\5\6\7\x08\x1b" USUAL) &&
          cie.encoding == 0x1b);
    CHECK(CIE("\x01zRS\0\x01\x78\x10\x01\x1b" USUAL) && cie.is_signal);
    CHECK(CIE("\x01zRB\0\x01\x78\x10\x01\x1b" USUAL) && !cie.is_signal);
    CHECK(CIE("\x01zRG\0\x01\x78\x10\x01\x1b" USUAL));
    CHECK(CIE("\x01\0\x01\x78\x10" USUAL) && !cie.has_augmentation && cie.encoding == 0);
    /* versions 3 (the column is a uleb) and 4 (address and segment sizes) */
    CHECK(CIE("\x03\0\x01\x78\x90\x00" USUAL) && cie.ra_column == 16);
    CHECK(CIE("\x04\0\x08\x00\x01\x78\x10" USUAL) && cie.ra_column == 16);
    CHECK(!CIE("\x04\0\x04\x00\x01\x78\x10" USUAL)); /* addresses of 4 bytes */
    CHECK(!CIE("\x02\0\x01\x78\x10" USUAL));
    CHECK(!CIE("\x01" "eh\0\x01\x78\x10" USUAL));
    CHECK(!CIE("\x01zX\0\x01\x78\x10\x01\x1b" USUAL)); /* an unknown letter */
    CHECK(!CIE("\x01zR\0\x01\x78\x10\x00" USUAL));     /* R without its byte */
    CHECK(!CIE("\x01zR\0\x01\x78"));
    /* a signal trampoline's rows say so whatever its program says */
    struct cfi_fde fde = {0x1000, 0x1010, cursor_of("\x0f\x03\x77\xa0\x01", 5)};
    struct buf out;
    buf_init(&out, 100);
    CHECK(CIE("\x01zRS\0\x01\x78\x10\x01\x1b" USUAL));
    CHECK(cfi_each_row(&x86, &cie, &fde, append_row, &out));
    CHECK_STR(buf_slice(&out), "1000: signal\n");
    buf_release(&out);
}

static bool pointer(uint8_t encoding, const char *bytes, size_t len, uint64_t *out)
{
    struct cursor c = cursor_of(bytes, len);
    return cfi_pointer(&c, 0x1000, 0x5000, encoding, out) && c.len == 0;
}

#define POINTER(encoding, bytes) (pointer(encoding, BYTES(bytes), &value) ? value : 0)

static void pointers(void)
{
    uint64_t value;
    CHECK_INT(POINTER(0x00, "\x78\x56\x34\x12\0\0\0\0"), 0x12345678);
    CHECK_INT(POINTER(0x01, "\x80\x01"), 0x80);
    CHECK_INT(POINTER(0x02, "\xfe\xff"), 0xfffe);
    CHECK_INT(POINTER(0x03, "\xfe\xff\xff\xff"), 0xfffffffe);
    CHECK_INT(POINTER(0x19, "\x7e"), 0xffe);
    CHECK_INT(POINTER(0x1a, "\xfe\xff"), 0xffe);
    CHECK_INT(POINTER(0x1b, "\xf0\xff\xff\xff"), 0xff0);
    CHECK_INT(POINTER(0x1c, "\xf0\xff\xff\xff\xff\xff\xff\xff"), 0xff0);
    CHECK_INT(POINTER(0x3b, "\x10\0\0\0"), 0x5010);
    CHECK_INT(POINTER(0x1b, "\xf0\xff\xff"), 0);     /* cut */
    CHECK_INT(POINTER(0x9b, "\xf0\xff\xff\xff"), 0); /* indirect */
    CHECK_INT(POINTER(0x2b, "\xf0\xff\xff\xff"), 0); /* relative to the text's base */
    CHECK_INT(POINTER(0x07, "\xf0\xff\xff\xff"), 0); /* no such form */
}

/*
 * Tables. The programs are x86-64's, in rows that are the same everywhere: CFA = register 7 + n.
 */
#define PUSHED "\x41\x0e\x10" /* one byte further, CFA = r7 + 16 */

struct fixture {
    struct frame_image *image;
    struct elf elf;
    struct unwind_table *table;
};

static void fixture_open(struct fixture *f, size_t max_bytes)
{
    CHECK(elf_open_bytes(&f->elf, f->image->bytes, f->image->len, NULL));
    f->table = unwind_table_new(&f->elf, max_bytes);
    unwind_table_no_analysis(f->table);
}

static void fixture_close(struct fixture *f)
{
    unwind_table_free(f->table);
    elf_release(&f->elf);
    free(f->image);
}

static const char *rule_at(struct fixture *f, uint64_t address)
{
    bool analysed;
    struct unwind_rule rule = unwind_table_rule(f->table, address, &analysed);
    CHECK(!analysed);
    return rule_text(rule);
}

/* [+0x100, +0x140) and [+0x140, +0x180) and [+0xfff0, +0x10010), which spans two pages */
static void three_functions(struct fixture *f, unsigned begin, unsigned end)
{
    f->image = frame_image_begin(begin);
    const char *augmentation = begin & IMAGE_DEBUG ? "" : "zR";
    uint64_t cie = frame_image_cie(f->image, augmentation, BYTES(USUAL_HERE));
    frame_image_fde(f->image, cie, IMAGE_TEXT + 0x100, 0x40, BYTES(PUSHED));
    frame_image_fde(f->image, cie, IMAGE_TEXT + 0x140, 0x40, BYTES("\x0e\x20"));
    frame_image_fde(f->image, cie, IMAGE_TEXT + 0xfff0, 0x20, BYTES("\x58\x0e\x30"));
    frame_image_end(f->image, end);
    fixture_open(f, 1 << 20);
}

static void check_three(struct fixture *f)
{
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0xff), "none");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x100), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x13f), "r7+16 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x140), "r7+32 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x180), "none");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0xffff), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x10007), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x10008), "r7+48 ra-8 fp=");
    CHECK_TEXT(rule_at(f, IMAGE_TEXT + 0x10010), "none");
    CHECK_TEXT(rule_at(f, 0), "none");
    CHECK_TEXT(rule_at(f, UINT64_MAX), "none");
}

static void by_sorted_table(void)
{
    struct fixture f;
    three_functions(&f, 0, IMAGE_HEADER);
    CHECK_INT(unwind_table_stats(f.table).pages, 0); /* nothing is read before it is asked for */
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x100), "r7+8 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).pages, 1);
    check_three(&f);
    CHECK_INT(unwind_table_stats(f.table).pages, 3);
    CHECK_INT(unwind_table_stats(f.table).rules, 4);
    fixture_close(&f);
    three_functions(&f, 0, IMAGE_HEADER | IMAGE_SECTIONS);
    check_three(&f);
    fixture_close(&f);
}

static void by_scan(void)
{
    struct fixture f;
    three_functions(&f, 0, IMAGE_SECTIONS);
    check_three(&f);
    fixture_close(&f);
}

static void incomplete_sorted_table(void)
{
    struct fixture f;
    f.image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f.image, "zR", BYTES(USUAL_HERE));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x100, 0x40, BYTES(PUSHED));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x200, 0x40, BYTES("\x0e\x20"));
    f.image->in_table = 1;
    frame_image_end(f.image, IMAGE_HEADER | IMAGE_SECTIONS);
    fixture_open(&f, 1 << 20);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x210), "r7+32 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    fixture_close(&f);
}

static void debug_frame(void)
{
    struct fixture f;
    three_functions(&f, IMAGE_DEBUG, IMAGE_SECTIONS);
    check_three(&f);
    fixture_close(&f);
}

/* A zstd frame (RFC 8878) of one block that is not compressed: its size less 256 in 16 bits, and shifted by 3 in 24. */
static size_t store_as_zstd(unsigned char *out, const unsigned char *bytes, size_t len)
{
    const unsigned char head[] = {
        0x28, 0xb5, 0x2f, 0xfd, 0x60, (unsigned char)(len - 256), (unsigned char)((len - 256) >> 8),
        (unsigned char)(len << 3 | 1), (unsigned char)(len >> 5), (unsigned char)(len >> 13)};
    memcpy(out, head, sizeof head);
    memcpy(out + sizeof head, bytes, len);
    return sizeof head + len;
}

/* Replaces the image's .debug_frame by its zlib or zstd form behind `header`. */
static void compress_cfi(struct frame_image *image, const void *header, size_t header_len, bool zstd)
{
    static unsigned char packed[IMAGE_CFI_MAX];
    uLongf len = sizeof packed;
    unsigned char *cfi = image->bytes + IMAGE_CFI_OFFSET;
    if (zstd) {
        len = store_as_zstd(packed, cfi, image->cfi_len);
    } else {
        CHECK(compress(packed, &len, cfi, image->cfi_len) == Z_OK);
    }
    memcpy(cfi, header, header_len);
    memcpy(cfi + header_len, packed, len);
    image->cfi_len = header_len + len;
}

static void compressed_debug_frame(void)
{
    struct fixture f;
    for (int zstd = 0; zstd < 2; zstd++) {
        three_functions(&f, IMAGE_DEBUG, 0);
        unwind_table_free(f.table);
        elf_release(&f.elf);
        f.image->cfi_len += zstd ? 256 : 0; /* zeros: terminators */
        Elf64_Chdr header = {.ch_type = zstd ? 2 : ELFCOMPRESS_ZLIB, .ch_size = f.image->cfi_len};
        compress_cfi(f.image, &header, sizeof header, zstd);
        frame_image_end(f.image, IMAGE_SECTIONS | IMAGE_ZLIB);
        fixture_open(&f, 1 << 20);
        check_three(&f);
        fixture_close(&f);
    }

    three_functions(&f, IMAGE_DEBUG, 0);
    unwind_table_free(f.table);
    elf_release(&f.elf);
    unsigned char legacy[12] = "ZLIB";
    legacy[11] = (unsigned char)f.image->cfi_len; /* big-endian, and small */
    legacy[10] = (unsigned char)(f.image->cfi_len >> 8);
    compress_cfi(f.image, legacy, sizeof legacy, false);
    frame_image_end(f.image, IMAGE_SECTIONS | IMAGE_ZDEBUG);
    fixture_open(&f, 1 << 20);
    check_three(&f);
    fixture_close(&f);
}

static void overlapping_and_malformed(void)
{
    struct fixture f;
    f.image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f.image, "zR", BYTES(USUAL_HERE));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x100, 0x100, BYTES("\x0e\x10"));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x140, 0x40, BYTES("\x0e\x20"));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x200, 0x40,
                    BYTES("\x48\x0e\x30\x48\x0e\x38\x48\x0e\x40\x48\x0e\x48\x3f"));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x240, 0x40, BYTES("\x0e\x40"));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x280, 0, BYTES("\x0e\x50"));
    frame_image_end(f.image, IMAGE_HEADER);
    fixture_open(&f, 1 << 20);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x13f), "r7+16 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x140), "r7+32 ra-8 fp="); /* the later start wins */
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x17f), "r7+32 ra-8 fp=");
    for (unsigned i = 0; i < 0x40; i += 4) { /* a bad operation at its end voids all of it */
        CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x200 + i), "none");
    }
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x240), "r7+64 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x280), "none");
    CHECK_INT(unwind_table_stats(f.table).malformed, 1);
    fixture_close(&f);
}

static void equal_rows(void)
{
    struct fixture f;
    f.image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f.image, "zR", BYTES(USUAL_HERE));
    for (unsigned i = 0; i < 100; i++) { /* neighbours that say the same, in three rows each */
        frame_image_fde(f.image, cie, IMAGE_TEXT + 0x100 + i * 0x10, 0x10,
                        BYTES("\x41\x83\x02\x41\x8c\x03"));
    }
    frame_image_end(f.image, IMAGE_HEADER);
    fixture_open(&f, 1 << 20);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x100), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x73f), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x740), "none");
    CHECK_INT(unwind_table_stats(f.table).rows, 3); /* before, all of them, behind */
    fixture_close(&f);
}

static void eviction(void)
{
    struct fixture f;
    f.image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f.image, "zR", BYTES(USUAL_HERE));
    for (unsigned i = 0; i < 600; i++) { /* 200 in each page, and in each a third rule of its own */
        uint64_t start = IMAGE_TEXT + i / 200 * 0x8000 + 0x10 * (i % 200 + 1);
        char program[] = PUSHED "\x41\x0e\x20";
        program[5] = (char)(program[5] + 8 * (i / 200));
        frame_image_fde(f.image, cie, start, 0x10, BYTES(program));
    }
    frame_image_end(f.image, IMAGE_HEADER);
    fixture_open(&f, 1 << 20);
    compile_all(f.table);
    struct unwind_table_stats all = unwind_table_stats(f.table);
    CHECK_INT(all.pages, 5); /* the last two have no functions: one row that says so each */
    CHECK_INT(all.rows, 3 * (2 + 3 * 200) + 2);
    CHECK_INT(all.text_bytes, 5 * UNWIND_PAGE_BYTES);
    unwind_table_free(f.table);
    f.table = unwind_table_new(&f.elf, all.bytes - 1000); /* room for two */
    unwind_table_no_analysis(f.table);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x12), "r7+32 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x8012), "r7+40 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x12), "r7+32 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).evicted, 0);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x10012), "r7+48 ra-8 fp="); /* the second goes */
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x12), "r7+32 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).evicted, 1);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x10012), "r7+48 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x8012), "r7+40 ra-8 fp="); /* the first goes */
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x10012), "r7+48 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).evicted, 2);
    CHECK_INT(unwind_table_stats(f.table).pages, 2);
    CHECK(unwind_table_stats(f.table).bytes <= all.bytes - 1000);
    fixture_close(&f);
    /* one page there always is */
    f.image = frame_image_begin(0);
    cie = frame_image_cie(f.image, "zR", BYTES(USUAL_HERE));
    frame_image_fde(f.image, cie, IMAGE_TEXT + 0x100, 0x40, BYTES(PUSHED));
    frame_image_end(f.image, IMAGE_HEADER);
    fixture_open(&f, 1);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    fixture_close(&f);
}

#if !defined __aarch64__
/* sub rsp,24; nop; nop; add rsp,24; ret */
#define FUNCTION "\x48\x83\xec\x18\x90\x90\x48\x83\xc4\x18\xc3"

static void open_with_code(struct fixture *f, unsigned flags)
{
    f->image = frame_image_begin(0);
    uint64_t cie = frame_image_cie(f->image, "zR", BYTES(USUAL_HERE));
    frame_image_fde(f->image, cie, IMAGE_TEXT + 0x100, 0x40, BYTES(PUSHED));
    frame_image_fde(f->image, cie, IMAGE_TEXT + 0x148, 0x40, BYTES(PUSHED));
    frame_image_code(f->image, IMAGE_TEXT + 0x140, "\x90\x90\x90\x90\x90\x90\x90\x90", 8);
    frame_image_code(f->image, IMAGE_TEXT + 0x1000, BYTES(FUNCTION));
    /* the gap begins at 0x188, so that this one is cut in two by its second 64 KiB */
    frame_image_code(f->image, IMAGE_TEXT + 0x10180, BYTES(FUNCTION));
    frame_image_symbol(f->image, "first", IMAGE_TEXT + 0x1000, 11);
    frame_image_symbol(f->image, "second", IMAGE_TEXT + 0x10180, 11);
    frame_image_end(f->image, flags | IMAGE_HEADER | IMAGE_SECTIONS);
    CHECK(elf_open_bytes(&f->elf, f->image->bytes, f->image->len, NULL));
    f->table = unwind_table_new(&f->elf, 1 << 20);
}

static const char *analysed_at(struct fixture *f, uint64_t address)
{
    bool analysed = false;
    struct unwind_rule rule = unwind_table_rule(f->table, address, &analysed);
    CHECK_INT(analysed, rule.kind != RULE_NONE);
    return rule_text(rule);
}

static void code_without_cfi(void)
{
    struct fixture f;
    open_with_code(&f, 0);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    uint64_t bytes = unwind_table_stats(f.table).bytes;
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x144), "none"); /* padding has no gaps looked for */
    CHECK_INT(unwind_table_stats(f.table).bytes, bytes);
    CHECK_INT(unwind_table_stats(f.table).analysed, 0);
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x1000), "r7+8 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x1004), "r7+32 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x100a), "r7+8 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x1010), "none");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x10187), "r7+32 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x10188), "r7+32 ra-8 fp=");
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x1018a), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x101), "r7+16 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).analysed, 3 + 2 + 2);
    uint64_t rows = unwind_table_stats(f.table).rows;
    CHECK_TEXT(analysed_at(&f, IMAGE_TEXT + 0x1004), "r7+32 ra-8 fp=");
    CHECK_INT(unwind_table_stats(f.table).rows, rows); /* once */
    fixture_close(&f);
    open_with_code(&f, 0);
    unwind_table_no_analysis(f.table);
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x1004), "none");
    fixture_close(&f);
    open_with_code(&f, IMAGE_GO);
    CHECK(unwind_table_is_go(f.table));
    CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x1004), "none");
    fixture_close(&f);
}
#endif

static void program_entry(void)
{
    struct fixture f;
    for (int at_entry = 0; at_entry < 2; at_entry++) {
        three_functions(&f, 0, IMAGE_HEADER | (at_entry ? IMAGE_ENTRY : 0));
        CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0xfff), "none");
        CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x1000), at_entry ? "end" : "none");
        CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x100f), at_entry ? "end" : "none");
        CHECK_TEXT(rule_at(&f, IMAGE_TEXT + 0x1010), "none");
        fixture_close(&f);
    }
}

static void functions(void)
{
    struct fixture f;
    uint64_t start, limit;
    for (int sections = 0; sections < 2; sections++) {
        three_functions(&f, 0, sections ? IMAGE_SECTIONS : IMAGE_HEADER);
        CHECK(unwind_table_function(f.table, IMAGE_TEXT + 0x17f, &start, &limit));
        CHECK_INT(start, IMAGE_TEXT + 0x140);
        CHECK_INT(limit, IMAGE_TEXT + 0x180);
        CHECK(!unwind_table_function(f.table, IMAGE_TEXT + 0x180, &start, &limit));
        CHECK(!unwind_table_function(f.table, IMAGE_TEXT, &start, &limit));
        fixture_close(&f);
    }
}

static void hostile_headers(void)
{
    /* each byte of .eh_frame_hdr, of the CIE and of the first FDE, spoiled in turn */
    struct fixture f;
    for (unsigned i = 0; i < 12 + 24 + 64; i++) {
        for (unsigned flip = 1; flip < 256; flip *= 4) {
            three_functions(&f, 0, IMAGE_HEADER | IMAGE_SECTIONS);
            unwind_table_free(f.table);
            f.image->bytes[i < 36 ? IMAGE_HEADER_OFFSET + i : IMAGE_CFI_OFFSET + i - 36] ^=
                (unsigned char)flip;
            f.table = unwind_table_new(&f.elf, 1 << 20);
            compile_all(f.table);
            CHECK(unwind_table_stats(f.table).pages <= 8);
            fixture_close(&f);
        }
    }
}

/*
 * Real files, against libdw.
 */
static bool read_fd(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    return pread((int)(intptr_t)context, out, len, (off_t)address) == (ssize_t)len ||
           err_set(err, ERR_IO, 0, "short read");
}

/* A location of libdw in rule_text's words: "ra-8", "ra:r5", "fp*+0"; `same` for no operations. */
static void place_text(char *out, size_t room, const char *name, int result, const Dwarf_Op *op,
                       size_t count, const char *same)
{
    long long offset = count > 1 ? (long long)op[1].number : 0;
    if (result != 0) {
        snprintf(out, room, "?");
    } else if (count == 0) {
        snprintf(out, room, "%s", op == NULL ? same : "undefined");
    } else if (op[0].atom == DW_OP_call_frame_cfa && count == 2 && op[1].atom == DW_OP_breg6) {
        snprintf(out, room, "%s*%+lld", name, offset);
    } else if (op[0].atom == DW_OP_call_frame_cfa && count <= 2) {
        snprintf(out, room, "%s%+lld", name, offset);
    } else if (op[0].atom == DW_OP_regx) {
        /* of FP, no rule says in which register it is */
        snprintf(out, room, name[0] == 'f' ? "fp?" : "%s:r%lld", name, (long long)op[0].number);
    } else {
        snprintf(out, room, "%s?", name);
    }
}

static void cfa_text(char *out, size_t room, const Dwarf_Op *op, size_t count)
{
    bool is_breg = op[0].atom >= DW_OP_breg0 && op[0].atom <= DW_OP_breg31;
    int reg = op[0].atom - DW_OP_breg0;
    long long offset = (long long)op[0].number;
    if (count == 1 && op[0].atom == DW_OP_bregx) {
        snprintf(out, room, "r%lld%+lld", offset, (long long)op[0].number2);
    } else if (count == 1 && is_breg) {
        snprintf(out, room, "r%d%+lld", reg, offset);
    } else if (count <= 3 && is_breg && op[1].atom == DW_OP_deref) {
        snprintf(out, room, "*(r%d%+lld)%+lld", reg, offset,
                 count == 3 ? (long long)op[2].number : 0);
    } else if (count >= 8 && op[count - 1].atom == DW_OP_plus && op[0].atom == DW_OP_breg7) {
        snprintf(out, room, "plt%d", op[4].atom - DW_OP_lit0);
    } else {
        snprintf(out, room, "?");
    }
}

/* The whole row as libdw has it. */
static const char *libdw_text(Dwarf_CFI *cfi, uint64_t address)
{
    static char text[120];
    char cfa[40], ra[40], fp[40];
    Dwarf_Frame *frame;
    Dwarf_Op *op, memory[3];
    size_t count;
    bool is_signal;
    if (dwarf_cfi_addrframe(cfi, address, &frame) != 0) {
        return "none";
    }
    int column = dwarf_frame_info(frame, NULL, NULL, &is_signal);
    int result = dwarf_frame_cfa(frame, &op, &count);
    cfa_text(cfa, sizeof cfa, op, result == 0 ? count : 0);
    result = dwarf_frame_register(frame, column, memory, &op, &count);
    place_text(ra, sizeof ra, "ra", result, op, count, "ra:r30");
    result = dwarf_frame_register(frame, column == 16 ? 6 : 29, memory, &op, &count);
    place_text(fp, sizeof fp, "fp", result, op, count, "fp=");
    snprintf(text, sizeof text, "%s %s %s", cfa, ra, fp);
    free(frame);
    return is_signal ? "signal" : strcmp(ra, "undefined") == 0 ? "end" : text;
}

/* Ours says "fp=" for a slot below SP, which an epilogue has popped; libdw says where it was. */
static bool agree(struct unwind_rule rule, const char *ours, const char *theirs)
{
    int below;
    const char *fp = strstr(theirs, " fp-");
    return strcmp(ours, theirs) == 0 ||
           (fp != NULL && rule.fp_place == FP_SAME && sscanf(fp, " fp-%d", &below) == 1 &&
            below > rule.cfa && strncmp(ours, theirs, (size_t)(fp - theirs)) == 0);
}

static void compare_with_libdw(const char *path, unsigned step)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0) {
        SKIP("no shared library where Debian has it");
    }
    struct memory_reader file = {read_fd, (void *)(intptr_t)fd};
    struct elf e;
    unsigned long rows = 0, different = 0;
    elf_version(EV_CURRENT);
    Elf *libelf = elf_begin(fd, ELF_C_READ, NULL);
    Dwarf_CFI *cfi = dwarf_getcfi_elf(libelf);
    CHECK(cfi != NULL && elf_open(&e, &file, NULL));
    struct unwind_table *table = unwind_table_new(&e, 16 << 20);
    unwind_table_no_analysis(table);
    for (uint64_t at = e.text_start; at < e.text_limit; at += step) {
        bool analysed;
        struct unwind_rule rule = unwind_table_rule(table, at, &analysed);
        const char *ours = rule_text(rule), *theirs = libdw_text(cfi, at);
        rows += rule.kind != RULE_NONE;
        if (!agree(rule, ours, theirs) && different++ < 10) {
            printf("# %s %llx: %s, libdw %s\n", path, (unsigned long long)at, ours, theirs);
        }
    }
    CHECK_INT(different, 0);
    CHECK(rows > (e.text_limit - e.text_start) / step * 9 / 10);
    struct unwind_table_stats stats = unwind_table_stats(table);
    CHECK_INT(stats.malformed, 0);
    CHECK(stats.bytes <= 5 * stats.rows);
    unwind_table_free(table);
    elf_release(&e);
    dwarf_cfi_end(cfi);
    elf_end(libelf);
    close(fd);
}

#if defined __aarch64__
#define LIBRARIES "/usr/lib/aarch64-linux-gnu/"
#else
#define LIBRARIES "/usr/lib/x86_64-linux-gnu/"
#endif

static void c_library(void)
{
    compare_with_libdw(LIBRARIES "libc.so.6", 7);
}

static void cxx_library(void)
{
    compare_with_libdw(LIBRARIES "libstdc++.so.6", 7);
}

TESTS({"prologue and epilogue become rows", prologue_and_epilogue},
      {"every operation has its effect or is refused", every_operation},
      {"remembered states nest, and hold the CFA", remembered_states},
      {"expressions that compilers write are recognised, others lose their row", expressions},
      {"AArch64's leaf has its return address in LR", aarch64},
      {"entries are found in both formats, and cut ones are refused", entries},
      {"augmentations and versions are read or refused", augmentations},
      {"pointers of every encoding", pointers},
      {"rules come by .eh_frame_hdr's table, page by page", by_sorted_table},
      {"without that table the section is scanned", by_scan},
      {"FDEs that the table does not know are found", incomplete_sorted_table},
      {".debug_frame serves where .eh_frame does not", debug_frame},
      {".debug_frame is unpacked, in all three forms", compressed_debug_frame},
      {"a later FDE wins, a malformed one is lost alone and counted", overlapping_and_malformed},
      {"neighbouring rows that say the same are one", equal_rows},
      {"pages that were not used for long make room", eviction},
#if !defined __aarch64__
      {"code without CFI is analysed, unless it keeps frame pointers", code_without_cfi},
#endif
      {"a program's first code without CFI is the end of a stack", program_entry},
      {"an FDE's range is told as a function", functions},
      {"spoiled bytes neither crash nor hang", hostile_headers},
      {"every row of the C library is libdw's", c_library},
      {"every row of the C++ library is libdw's", cxx_library})
