/* Rules concluded from AArch64 machine code. The processor's half is compiled in, so that it is
 * tested on any machine; the rest is the library's. In rules r31 is SP, r30 the link register. */
#include "analysed_text.h"
#include "unwind/aarch64/analyse.c"
#include "unwind/aarch64/decode.c"
#include "unwind/aarch64/leaf.c"

static const char record[] =
    "\xfd\x7b\xbd\xa9"  /*  0: stp x29, x30, [sp, #-48]! */
    "\xfd\x03\x00\x91"  /*  4: mov x29, sp */
    "\xf3\x0b\x00\xf9"  /*  8: str x19, [sp, #16] */
    "\x40\x00\x00\x94"  /*  c: bl 10c */
    "\xf3\x0b\x40\xf9"  /* 10: ldr x19, [sp, #16] */
    "\xfd\x7b\xc3\xa8"  /* 14: ldp x29, x30, [sp], #48 */
    "\xc0\x03\x5f\xd6"; /* 18: ret */

static const char lr_only[] =
    "\xfe\x0f\x1f\xf8"  /*  0: str x30, [sp, #-16]! */
    "\x40\x00\x00\xb4"  /*  4: cbz x0, c */
    "\x40\x00\x00\x94"  /*  8: bl 108 */
    "\xfe\x07\x41\xf8"  /*  c: ldr x30, [sp], #16 */
    "\x80\x00\x00\x14"; /* 10: b 210 */

static void frame_record(void)
{
    /* the return address is in the link register until it is stored */
    CHECK_TEXT(text_rows(BYTES(record)),
               "0: r31+0 ra:r30 fp=\n"
               "4: r31+48 ra-40 fp-48\n"
               "18: r31+0 ra:r30 fp=\n"
               "1c: none\n");
    CHECK_TEXT(text_rows(BYTES(lr_only)),
               "0: r31+0 ra:r30 fp=\n"
               "4: r31+16 ra-16 fp=\n"
               "10: r31+0 ra:r30 fp=\n"
               "14: none\n");
}

static const char offset[] =
    "\x3f\x23\x03\xd5"  /*  0: paciasp */
    "\xff\x03\x01\xd1"  /*  4: sub sp, sp, #0x40 */
    "\xfd\x7b\x03\xa9"  /*  8: stp x29, x30, [sp, #48] */
    "\xfd\xc3\x00\x91"  /*  c: add x29, sp, #0x30 */
    "\xff\x63\x20\xcb"  /* 10: sub sp, sp, x0 */
    "\x40\x00\x00\x94"  /* 14: bl 114 */
    "\xbf\xc3\x00\xd1"  /* 18: sub sp, x29, #0x30 */
    "\xfd\x7b\x43\xa9"  /* 1c: ldp x29, x30, [sp, #48] */
    "\xff\x03\x01\x91"  /* 20: add sp, sp, #0x40 */
    "\xbf\x23\x03\xd5"  /* 24: autiasp */
    "\xc0\x03\x5f\xd6"; /* 28: ret */

static void computed_stack(void)
{
    /* after sub sp, sp, x0 nobody knows SP, until it is computed from x29 again */
    CHECK_TEXT(text_rows(BYTES(offset)),
               "0: r31+0 ra:r30 fp=\n"
               "8: r31+64 ra:r30 fp=\n"
               "c: r31+64 ra-8 fp-16\n"
               "10: r29+16 ra-8 fp-16\n"
               "20: r31+64 ra-8 fp-16\n"
               "24: r31+0 ra:r30 fp=\n"
               "2c: none\n");
}

static const char large[] =
    "\x0c\x02\x80\xd2"  /*  0: mov x12, #0x10 */
    "\x4c\x00\xa0\xf2"  /*  4: movk x12, #0x2, lsl #16 */
    "\xff\x63\x2c\xcb"  /*  8: sub sp, sp, x12 */
    "\xfd\x7b\x00\xa9"  /*  c: stp x29, x30, [sp] */
    "\xfd\x03\x00\x91"  /* 10: mov x29, sp */
    "\xfd\x7b\x40\xa9"  /* 14: ldp x29, x30, [sp] */
    "\x0c\x02\x80\xd2"  /* 18: mov x12, #0x10 */
    "\x4c\x00\xa0\xf2"  /* 1c: movk x12, #0x2, lsl #16 */
    "\xff\x63\x2c\x8b"  /* 20: add sp, sp, x12 */
    "\xc0\x03\x5f\xd6"; /* 24: ret */

static void large_frame(void)
{
    /* 0x20010 bytes; what is stored at the lower end is reached from SP */
    CHECK_TEXT(text_rows(BYTES(large)),
               "0: r31+0 ra:r30 fp=\n"
               "c: r31+131088 ra:r30 fp=\n"
               "10: r31+131088 ra-131080 fp-131088\n"
               "24: r31+0 ra:r30 fp=\n"
               "28: none\n");
}

static const char disagree[] =
    "\x40\x00\x00\xb4"  /*  0: cbz x0, 8 */
    "\xff\x43\x00\xd1"  /*  4: sub sp, sp, #0x10 */
    "\x1f\x20\x03\xd5"  /*  8: nop */
    "\xc0\x03\x5f\xd6"; /*  c: ret */

/* A call takes the link register; were the return address not in the frame, it is lost. */
static void lost_return_address(void)
{
    static const char bytes[] = "\xff\x43\x00\xd1"  /*  0: sub sp, sp, #0x10 */
                                "\x00\x04\x00\x94"  /*  4: bl 1004 */
                                "\x1f\x00\x00\x71"  /*  8: cmp w0, #0x0 */
                                "\xfd\xff\xff\x17"; /*  c: b 0 */
    CHECK_TEXT(text_rows(BYTES(bytes)), "0: none\n");
}

static void disagreement(void)
{
    /* at 8 SP and SP + 16 meet */
    CHECK_TEXT(text_rows(BYTES(disagree)),
               "0: r31+0 ra:r30 fp=\n"
               "8: none\n");
}

static const char table[] =
    "\xfe\x0f\x1f\xf8"  /*  0: str x30, [sp, #-16]! */
    "\x1f\x0c\x00\x71"  /*  4: cmp w0, #0x3 */
    "\x08\x01\x00\x54"  /*  8: b.hi 28 */
    "\x01\x01\x00\x10"  /*  c: adr x1, 2c */
    "\x22\x48\x60\x38"  /* 10: ldrb w2, [x1, w0, uxtw] */
    "\x21\x88\x22\x8b"  /* 14: add x1, x1, w2, sxtb #2 */
    "\x20\x00\x1f\xd6"  /* 18: br x1 */
    "\x20\x00\x80\x52"  /* 1c: mov w0, #0x1 */
    "\x02\x00\x00\x14"  /* 20: b 28 */
    "\x40\x00\x80\x52"  /* 24: mov w0, #0x2 */
    "\xfe\x07\x41\xf8"  /* 28: ldr x30, [sp], #16 */
    "\xc0\x03\x5f\xd6"; /* 2c: ret */

static void jump_table(void)
{
    /* 1c and 24 are reached by the table only */
    CHECK_TEXT(text_rows(BYTES(table)),
               "0: r31+0 ra:r30 fp=\n"
               "4: r31+16 ra-16 fp=\n"
               "2c: r31+0 ra:r30 fp=\n"
               "30: none\n");
}

static const char clone_code[] =
    "\x20\x0c\xbf\xa9"  /*  0: stp x0, x3, [x1, #-16]! */
    "\x88\x1b\x80\xd2"  /*  4: mov x8, #0xdc */
    "\x01\x00\x00\xd4"  /*  8: svc #0x0 */
    "\x40\x00\x00\xb4"  /*  c: cbz x0, 14 */
    "\xc0\x03\x5f\xd6"  /* 10: ret */
    "\x1d\x00\x80\xd2"  /* 14: mov x29, #0x0 */
    "\xe1\x03\xc1\xa8"  /* 18: ldp x1, x0, [sp], #16 */
    "\x20\x00\x3f\xd6"  /* 1c: blr x1 */
    "\xa8\x0b\x80\xd2"  /* 20: mov x8, #0x5d */
    "\x01\x00\x00\xd4"; /* 24: svc #0x0 */

static const char program_start[] =
    "\x1d\x00\x80\xd2"  /*  0: mov x29, #0x0 */
    "\x1e\x00\x80\xd2"  /*  4: mov x30, #0x0 */
    "\xe0\x03\x00\x91"  /*  8: mov x0, sp */
    "\x1f\xec\x7c\x92"  /*  c: and sp, x0, #0xfffffffffffffff0 */
    "\x40\x00\x00\x94"; /* 10: bl 110 */

static void ends(void)
{
    /* mov x29, #0 where nobody has saved it: the child of clone, _start */
    CHECK_TEXT(text_rows(BYTES(clone_code)),
               "0: r31+0 ra:r30 fp=\n"
               "14: end\n"
               "28: none\n");
    CHECK_TEXT(text_rows(BYTES(program_start)),
               "0: end\n"
               "14: none\n");
}

static const char restore[] =
    "\x68\x11\x80\xd2"  /*  0: mov x8, #0x8b */
    "\x01\x00\x00\xd4"; /*  4: svc #0x0 */

static void signal_return(void)
{
    CHECK_TEXT(text_rows(BYTES(restore)),
               "0: signal\n"
               "8: none\n");
}

static const char functions[] =
    "\xfe\x0f\x1f\xf8"  /*  0: str x30, [sp, #-16]! */
    "\x07\x00\x00\x94"  /*  4: bl 20 */
    "\xfe\x07\x41\xf8"  /*  8: ldr x30, [sp], #16 */
    "\x08\x00\x00\x14"  /*  c: b 2c */
    "\xf3\x7b\xbf\xa9"  /* 10: stp x19, x30, [sp, #-16]! */
    "\x03\x00\x00\x94"  /* 14: bl 20 */
    "\xf3\x7b\xc1\xa8"  /* 18: ldp x19, x30, [sp], #16 */
    "\xc0\x03\x5f\xd6"  /* 1c: ret */
    "\xff\x43\x00\xd1"  /* 20: sub sp, sp, #0x10 */
    "\xff\x43\x00\x91"  /* 24: add sp, sp, #0x10 */
    "\xc0\x03\x5f\xd6"  /* 28: ret */
    "\xe0\x03\x01\xaa"  /* 2c: mov x0, x1 */
    "\xc0\x03\x5f\xd6"; /* 30: ret */

static void functions_found(void)
{
    /* 20 is called, 2c jumped to when the frame is gone, 10 found as what is left */
    CHECK_TEXT(text_rows(BYTES(functions)),
               "0: r31+0 ra:r30 fp=\n"
               "4: r31+16 ra-16 fp=\n"
               "c: r31+0 ra:r30 fp=\n"
               "14: r31+16 ra-8 fp=\n"
               "1c: r31+0 ra:r30 fp=\n"
               "24: r31+16 ra:r30 fp=\n"
               "28: r31+0 ra:r30 fp=\n"
               "34: none\n");
}

static const char vector[] =
    "\xdd\x87\xbf\x4e"  /*  0: add v29.4s, v30.4s, v31.4s */
    "\xfd\x7b\x40\xad"  /*  4: ldp q29, q30, [sp] */
    "\x83\x00\x66\x9e"  /*  8: fmov x3, d4 */
    "\x7d\x00\x62\x9e"  /*  c: scvtf d29, x3 */
    "\x5e\x00\x67\x9e"  /* 10: fmov d30, x2 */
    "\xc0\x03\x5f\xd6"; /* 14: ret */

static void vector_registers(void)
{
    /* v29, v30 and v31 are not x29, x30 and SP */
    CHECK_TEXT(text_rows(BYTES(vector)),
               "0: r31+0 ra:r30 fp=\n"
               "18: none\n");
}

static const char go[] =
    "\x90\x0b\x40\xf9"  /*  0: ldr x16, [x28, #16] */
    "\xff\x63\x30\xeb"  /*  4: cmp sp, x16 */
    "\x09\x08\x00\x54"  /*  8: b.ls 108 */
    "\xfe\x0f\x1d\xf8"  /*  c: str x30, [sp, #-48]! */
    "\xfd\x83\x1f\xf8"  /* 10: stur x29, [sp, #-8] */
    "\xfd\x23\x00\xd1"; /* 14: sub x29, sp, #0x8 */

static const char go_large[] =
    "\x90\x0b\x40\xf9"  /*  0: ldr x16, [x28, #16] */
    "\xf1\x03\x01\xd1"  /*  4: sub x17, sp, #0x40 */
    "\x3f\x02\x10\xeb"  /*  8: cmp x17, x16 */
    "\x09\x08\x00\x54"  /*  c: b.ls 10c */
    "\xf4\x43\x01\xd1"  /* 10: sub x20, sp, #0x50 */
    "\x9d\xfa\x3f\xa9"  /* 14: stp x29, x30, [x20, #-8] */
    "\x9f\x02\x00\x91"  /* 18: mov sp, x20 */
    "\xfd\x23\x00\xd1"; /* 1c: sub x29, sp, #0x8 */

static void leaf_frames(void)
{
    CHECK_TEXT(leaf_rule(BYTES(record), 0), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(record), 4), "r31+48 ra-40 fp-48");
    CHECK_TEXT(leaf_rule(BYTES(record), 8), "none"); /* x29 is right */
    CHECK_TEXT(leaf_rule(BYTES(record), 0x14), "none");
    CHECK_TEXT(leaf_rule(BYTES(record), 0x18), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 4), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 8), "r31+64 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0xc), "r31+64 ra-8 fp-16");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0x10), "none");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0x20), "r31+64 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0x24), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(offset), 0x2c), "none"); /* not among the bytes */
}

static void go_leaf_frames(void)
{
    CHECK_TEXT(leaf_rule(BYTES(go), 0), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go), 8), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go), 0xc), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go), 0x10), "r31+48 ra-48 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go), 0x14), "r31+48 ra-48 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go_large), 4), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go_large), 0xc), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go_large), 0x18), "r31+0 ra:r30 fp=");
    CHECK_TEXT(leaf_rule(BYTES(go_large), 0x1c), "r31+80 ra-80 fp=");
}

static void return_addresses(void)
{
    CHECK(behind_call(BYTES(record), 0x10)); /* behind bl */
    CHECK(!behind_call(BYTES(record), 0x14));
    CHECK(behind_call(BYTES(clone_code), 0x20)); /* behind blr */
    CHECK(!behind_call(BYTES(record), 2)); /* too few bytes before it to tell */
}

static void hostile_code(void)
{
    enum { WORDS = 1 << 14 };
    /* b.eq .+8; bl .+4; br x1; stp x29, x30, [sp, #-512]!; cbz x0, .; b .+4096; data */
    static const uint32_t words[] = {0x54000040, 0x94000001, 0xd61f0020, 0xa9a07bfd,
                                     0xb4000000, 0x14000400, 0xffffffff, 0};
    static uint32_t text[WORDS];
    struct code code = {TEXT_ADDRESS, (const unsigned char *)text, sizeof text};
    uint64_t starts[WORDS / 16];
    for (size_t i = 0; i < WORDS / 16; i++) {
        starts[i] = TEXT_ADDRESS + 64 * i;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        for (size_t at = 0; at < WORDS; at++) {
            text[at] = words[i];
        }
        struct analysed out = {0};
        CHECK(analyse_text(&code, starts, WORDS / 16, 100, &out));
        CHECK(out.functions <= 100 + 1);
        CHECK(out.rows.len <= WORDS + 1);
        vec_release(&out.rows);
    }
}

static size_t measure_aarch64(const unsigned char *bytes, size_t len, bool *padding)
{
    struct instruction in;
    *padding = !a64_decode(bytes, len, &in) || in.operation == OP_NOP;
    return INSTRUCTION_BYTES;
}

/* gcc takes the CFA from x29 wherever a function uses alloca; here that is the last resort. */
static void agrees_with_cfi(void)
{
    struct library l;
    if (!library_open(&l, "/usr/aarch64-linux-gnu/lib/libc.so.6") &&
        !library_open(&l, "/lib/aarch64-linux-gnu/libc.so.6")) {
        SKIP("no C library for AArch64 where Debian has it");
    }
    struct agreement a = compare_library(&l, measure_aarch64, 30, 29);
    printf("# %llu instructions, %llu with a rule, %llu of another form, %llu wrong\n",
           (unsigned long long)a.instructions, (unsigned long long)a.covered,
           (unsigned long long)a.other_form, (unsigned long long)a.wrong);
    CHECK(a.instructions > 100000);
    CHECK(a.covered * 100 > a.instructions * 97);
    CHECK(a.other_form * 100 < a.covered * 12);
    CHECK(a.wrong * 1000 < a.covered);
    library_close(&l);
}

TESTS({"the return address is followed from its register to the frame and back", frame_record},
      {"a frame pointer tells the CFA where the stack pointer is computed", computed_stack},
      {"a frame moved by a number in a register is followed", large_frame},
      {"a return address that is not stored is lost with the first call", lost_return_address},
      {"where two ways do not agree nothing is known", disagreement},
      {"what a jump table leads to has the frame of the jump", jump_table},
      {"a program's and a thread's first code is an end", ends},
      {"the signal return is told by its bytes", signal_return},
      {"functions are found by calls, by tail calls and as what is left", functions_found},
      {"vector registers are not taken for those of the frame", vector_registers},
      {"a prologue and an epilogue are told at a single instruction", leaf_frames},
      {"Go's stack check and frame are told at a single instruction", go_leaf_frames},
      {"a return address stands behind a call", return_addresses},
      {"hostile code costs bounded time and memory", hostile_code},
      {"the rules concluded from the C library are those of its CFI", agrees_with_cfi})
