/* Rules concluded from x86-64 machine code. The processor's half is compiled in, so that it is
 * tested on any machine; the rest is the library's. In rules r7 is RSP, r6 RBP. */
#include "analysed_text.h"
#include "unwind/x86_64/analyse.c"
#include "unwind/x86_64/decode.c"
#include "unwind/x86_64/leaf.c"

static const char saves[] =
    "\x55"              /*  0: push %rbp */
    "\x53"              /*  1: push %rbx */
    "\x48\x83\xec\x18"  /*  2: sub $0x18,%rsp */
    "\x89\xfd"          /*  6: mov %edi,%ebp */
    "\x48\x83\xc4\x18"  /*  8: add $0x18,%rsp */
    "\x5b"              /*  c: pop %rbx */
    "\x5d"              /*  d: pop %rbp */
    "\xc3";             /*  e: ret */

static void stack_depth(void)
{
    /* the return address is at RSP at first; what is pushed and subtracted adds up */
    CHECK_TEXT(text_rows(BYTES(saves)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+16 ra-8 fp-16\n"
               "2: r7+24 ra-8 fp-16\n"
               "6: r7+48 ra-8 fp-16\n"
               "c: r7+24 ra-8 fp-16\n"
               "d: r7+16 ra-8 fp-16\n"
               "e: r7+8 ra-8 fp=\n"
               "f: none\n");
}

static const char alloca_code[] =
    "\x55"                  /*  0: push %rbp */
    "\x48\x89\xe5"          /*  1: mov %rsp,%rbp */
    "\x53"                  /*  4: push %rbx */
    "\x48\x29\xc4"          /*  5: sub %rax,%rsp */
    "\xe8\xfb\x00\x00\x00"  /*  8: call 0x108 */
    "\x48\x8d\x65\xf8"      /*  d: lea -0x8(%rbp),%rsp */
    "\x5b"                  /* 11: pop %rbx */
    "\xc9"                  /* 12: leave */
    "\xc3";                 /* 13: ret */

static void frame_pointer(void)
{
    /* after sub %rax nobody knows RSP, until it is computed from RBP again */
    CHECK_TEXT(text_rows(BYTES(alloca_code)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+16 ra-8 fp-16\n"
               "4: r6+16 ra-8 fp-16\n"
               "13: r7+8 ra-8 fp=\n"
               "14: none\n");
}

static void without_frame_pointer(void)
{
    /* in the prologue RSP is known, and nothing else is asked; after sub %rax it is not */
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 0), "r7+8 ra-8 fp=");
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 4), "r7+16 ra-8 fp-16");
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 7), "r7+24 ra-8 fp-16"); /* within sub */
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 0xc), "none");
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 0x11), "r7+24 ra-8 fp-16"); /* from RBP again */
    CHECK_TEXT(rule_by_sp(BYTES(alloca_code), 0x14), "none"); /* behind its end */
    CHECK_TEXT(rule_by_sp(BYTES(saves), 8), "r7+48 ra-8 fp-16");
    CHECK_TEXT(rule_by_sp("", 0, 0), "none");
}

static const char realigned[] =
    "\x4c\x8d\x54\x24\x08"  /*  0: lea 0x8(%rsp),%r10 */
    "\x48\x83\xe4\xe0"      /*  5: and $0xffffffffffffffe0,%rsp */
    "\x41\xff\x72\xf8"      /*  9: push -0x8(%r10) */
    "\x55"                  /*  d: push %rbp */
    "\x48\x89\xe5"          /*  e: mov %rsp,%rbp */
    "\x41\x52"              /* 11: push %r10 */
    "\x48\x83\xec\x28"      /* 13: sub $0x28,%rsp */
    "\xe8\xfb\x00\x00\x00"  /* 17: call 0x117 */
    "\x48\x83\xc4\x28"      /* 1c: add $0x28,%rsp */
    "\x41\x5a"              /* 20: pop %r10 */
    "\x5d"                  /* 22: pop %rbp */
    "\x49\x8d\x62\xf8"      /* 23: lea -0x8(%r10),%rsp */
    "\xc3";                 /* 27: ret */

static void realigned_stack(void)
{
    /* gcc keeps the CFA in r10 and in a word of the frame; a callee loses r10, the word stays */
    CHECK_TEXT(text_rows(BYTES(realigned)),
               "0: r7+8 ra-8 fp=\n"
               "9: r10+0 ra-8 fp=\n"
               "11: r10+0 ra-8 fp*+0\n"
               "13: *(r6-8)+0 ra-8 fp*+0\n"
               "22: r10+0 ra-8 fp*+0\n"
               "23: r10+0 ra-8 fp=\n"
               "27: r7+8 ra-8 fp=\n"
               "28: none\n");
}

static const char disagree[] =
    "\x85\xff"  /*  0: test %edi,%edi */
    "\x74\x01"  /*  2: je 0x5 */
    "\x50"      /*  4: push %rax */
    "\x90"      /*  5: nop */
    "\xc3";     /*  6: ret */

static void disagreement(void)
{
    /* at 5 RSP + 8 and RSP + 16 meet */
    CHECK_TEXT(text_rows(BYTES(disagree)),
               "0: r7+8 ra-8 fp=\n"
               "5: none\n");
}

static const char wrap[] =
    "\x85\xff"              /*  0: test %edi,%edi */
    "\x74\x09"              /*  2: je 0xd */
    "\x48\x83\xec\x18"      /*  4: sub $0x18,%rsp */
    "\xe8\xfb\x00\x00\x00"  /*  8: call 0x108 */
    "\x31\xc0"              /*  d: xor %eax,%eax */
    "\xc3";                 /*  f: ret */

static const char never_back[] =
    "\x53"                  /*  0: push %rbx */
    "\x85\xff"              /*  1: test %edi,%edi */
    "\x74\x02"              /*  3: je 0x7 */
    "\x5b"                  /*  5: pop %rbx */
    "\xc3"                  /*  6: ret */
    "\xe8\xfb\x0f\x00\x00"  /*  7: call 0x1007 */
    "\x66\x90"              /*  c: xchg %ax,%ax */
    "\x66\x90"              /*  e: xchg %ax,%ax */
    "\x55"                  /* 10: push %rbp */
    "\xe8\x02\x00\x00\x00"  /* 11: call 0x18 */
    "\x5d"                  /* 16: pop %rbp */
    "\xc3"                  /* 17: ret */
    "\x48\x83\xec\x28"      /* 18: sub $0x28,%rsp */
    "\x85\xff"              /* 1c: test %edi,%edi */
    "\x75\x05"              /* 1e: jne 0x25 */
    "\x48\x83\xc4\x28"      /* 20: add $0x28,%rsp */
    "\xc3"                  /* 24: ret */
    "\xe8\xb1\x0f\x00\x00"; /* 25: call 0xfdb */

static void call_without_return(void)
{
    /* were the first call to return, two depths would meet at d; behind both calls of 0x1007
     * another function begins, so it never comes back, and what stands at c is padding */
    CHECK_TEXT(text_rows(BYTES(wrap)),
               "0: r7+8 ra-8 fp=\n"
               "8: r7+32 ra-8 fp=\n"
               "d: r7+8 ra-8 fp=\n"
               "10: none\n");
    CHECK_TEXT(text_rows(BYTES(never_back)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+16 ra-8 fp=\n"
               "6: r7+8 ra-8 fp=\n"
               "7: r7+16 ra-8 fp=\n"
               "c: none\n"
               "10: r7+8 ra-8 fp=\n"
               "11: r7+16 ra-8 fp-16\n"
               "17: r7+8 ra-8 fp=\n"
               "1c: r7+48 ra-8 fp=\n"
               "24: r7+8 ra-8 fp=\n"
               "25: r7+48 ra-8 fp=\n"
               "2a: none\n");
}

static const char votes[] =
    "\x74\x04"              /*  0: je 0x6 */
    "\x7f\x07"              /*  2: jg 0xb */
    "\xeb\x16"              /*  4: jmp 0x1c */
    "\xe8\x05\x00\x00\x00"  /*  6: call 0x10 */
    "\xe8\x06\x00\x00\x00"  /*  b: call 0x16 */
    "\x53"                  /* 10: push %rbx */
    "\xe8\xfb\x0f\x00\x00"  /* 11: call X */
    "\x55"                  /* 16: push %rbp */
    "\xe8\xf5\x0f\x00\x00"  /* 17: call X */
    "\x41\x54"              /* 1c: push %r12 */
    "\xe8\xee\x0f\x00\x00"  /* 1e: call X */
    "\x31\xc0"              /* 23: xor %eax,%eax */
    "\xc3";                 /* 25: ret */

/* Behind two of three calls of X something begins that is called itself: X never returns. So the
 * third call is an end too, and what stands behind it a function of its own. */
static void judged_by_others(void)
{
    CHECK_TEXT(text_rows(BYTES(votes)),
               "0: r7+8 ra-8 fp=\n"
               "11: r7+16 ra-8 fp=\n"
               "16: r7+8 ra-8 fp=\n"
               "17: r7+16 ra-8 fp-16\n"
               "1c: r7+8 ra-8 fp=\n"
               "1e: r7+16 ra-8 fp=\n"
               "23: r7+8 ra-8 fp=\n"
               "26: none\n");
}

static const char table[] =
    "\x53"                          /*  0: push %rbx */
    "\x83\xff\x03"                  /*  1: cmp $0x3,%edi */
    "\x77\x1c"                      /*  4: ja 0x22 */
    "\x48\x8d\x15\x00\x01\x00\x00"  /*  6: lea 0x100(%rip),%rdx */
    "\x48\x63\x04\xba"              /*  d: movslq (%rdx,%rdi,4),%rax */
    "\x48\x01\xd0"                  /* 11: add %rdx,%rax */
    "\xff\xe0"                      /* 14: jmp *%rax */
    "\xbb\x01\x00\x00\x00"          /* 16: mov $0x1,%ebx */
    "\xeb\x05"                      /* 1b: jmp 0x22 */
    "\xbb\x02\x00\x00\x00"          /* 1d: mov $0x2,%ebx */
    "\x5b"                          /* 22: pop %rbx */
    "\xc3";                         /* 23: ret */

static void jump_table(void)
{
    /* 16 and 1d are reached by the table only: they have the depth of the jump */
    CHECK_TEXT(text_rows(BYTES(table)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+16 ra-8 fp=\n"
               "23: r7+8 ra-8 fp=\n"
               "24: none\n");
}

static const char program_start[] =
    "\xf3\x0f\x1e\xfa"      /*  0: endbr64 */
    "\x31\xed"              /*  4: xor %ebp,%ebp */
    "\x48\x89\xe7"          /*  6: mov %rsp,%rdi */
    "\x48\x83\xe4\xf0"      /*  9: and $0xfffffffffffffff0,%rsp */
    "\xe8\xfb\x00\x00\x00"  /*  d: call 0x10d */
    "\xf4";                 /* 12: hlt */

static const char clone_code[] =
    "\x31\xc0"      /*  0: xor %eax,%eax */
    "\xb0\x38"      /*  2: mov $0x38,%al */
    "\x48\x89\x0e"  /*  4: mov %rcx,(%rsi) */
    "\x0f\x05"      /*  7: syscall */
    "\x85\xc0"      /*  9: test %eax,%eax */
    "\x75\x0b"      /*  b: jne 0x18 */
    "\x31\xed"      /*  d: xor %ebp,%ebp */
    "\x5f"          /*  f: pop %rdi */
    "\x41\xff\xd1"  /* 10: call *%r9 */
    "\xb0\x3c"      /* 13: mov $0x3c,%al */
    "\x0f\x05"      /* 15: syscall */
    "\xf4"          /* 17: hlt */
    "\xc3";         /* 18: ret */

static void ends(void)
{
    /* xor %ebp,%ebp where nobody has saved it: the child of clone, _start */
    CHECK_TEXT(text_rows(BYTES(program_start)),
               "0: end\n"
               "13: none\n");
    CHECK_TEXT(text_rows(BYTES(clone_code)),
               "0: r7+8 ra-8 fp=\n"
               "d: end\n"
               "17: none\n"
               "18: r7+8 ra-8 fp=\n"
               "19: none\n");
}

static const char restore[] =
    "\x90"                          /*  0: nop */
    "\x48\xc7\xc0\x0f\x00\x00\x00"  /*  1: mov $0xf,%rax */
    "\x0f\x05";                     /*  8: syscall */

static void signal_return(void)
{
    CHECK_TEXT(text_rows(BYTES(restore)),
               "0: r7+8 ra-8 fp=\n"
               "1: signal\n"
               "a: none\n");
}

static const char vfork_code[] =
    "\x5a"                  /*  0: pop %rdx */
    "\xb8\x3a\x00\x00\x00"  /*  1: mov $0x3a,%eax */
    "\x0f\x05"              /*  6: syscall */
    "\x52"                  /*  8: push %rdx */
    "\x48\x89\xc7"          /*  9: mov %rax,%rdi */
    "\xe9\xfb\x00\x00\x00"; /*  c: jmp 0x10c */

static void vfork_register(void)
{
    /* musl keeps the return address in rdx (r1), because the child overwrites the stack */
    CHECK_TEXT(text_rows(BYTES(vfork_code)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+0 ra:r1 fp=\n"
               "9: r7+8 ra-8 fp=\n"
               "11: none\n");
}

static const char probe[] =
    "\x4c\x8d\x9c\x24\x00\xb0\xff\xff"  /*  0: lea -0x5000(%rsp),%r11 */
    "\x48\x81\xec\x00\x10\x00\x00"      /*  8: sub $0x1000,%rsp */
    "\x48\x83\x0c\x24\x00"              /*  f: orq $0x0,(%rsp) */
    "\x4c\x39\xdc"                      /* 14: cmp %r11,%rsp */
    "\x75\xef"                          /* 17: jne 0x8 */
    "\x48\x83\xec\x18"                  /* 19: sub $0x18,%rsp */
    "\x48\x81\xc4\x18\x50\x00\x00"      /* 1d: add $0x5018,%rsp */
    "\xc3";                             /* 24: ret */

static void probed_frame(void)
{
    /* -fstack-clash-protection: RSP changes in the loop, r11 is where it will end */
    CHECK_TEXT(text_rows(BYTES(probe)),
               "0: r7+8 ra-8 fp=\n"
               "8: r11+20488 ra-8 fp=\n"
               "19: r7+20488 ra-8 fp=\n"
               "1d: r7+20512 ra-8 fp=\n"
               "24: r7+8 ra-8 fp=\n"
               "25: none\n");
}

static const char functions[] =
    "\x50"                              /*  0: push %rax */
    "\xe8\x1a\x00\x00\x00"              /*  1: call 0x20 */
    "\x5a"                              /*  6: pop %rdx */
    "\xeb\x1a"                          /*  7: jmp 0x23 */
    "\x0f\x1f\x80\x00\x00\x00\x00"      /*  9: nopl 0x0(%rax) */
    "\x53"                              /* 10: push %rbx */
    "\xe8\x0a\x00\x00\x00"              /* 11: call 0x20 */
    "\x5b"                              /* 16: pop %rbx */
    "\xc3"                              /* 17: ret */
    "\x0f\x1f\x84\x00\x00\x00\x00\x00"  /* 18: nopl 0x0(%rax,%rax,1) */
    "\x51"                              /* 20: push %rcx */
    "\x59"                              /* 21: pop %rcx */
    "\xc3"                              /* 22: ret */
    "\x41\x54"                          /* 23: push %r12 */
    "\x41\x5c"                          /* 25: pop %r12 */
    "\xc3";                             /* 27: ret */

static void functions_found(void)
{
    /* 20 is called, 23 jumped to when the frame is gone, 10 stands behind padding */
    CHECK_TEXT(text_rows(BYTES(functions)),
               "0: r7+8 ra-8 fp=\n"
               "1: r7+16 ra-8 fp=\n"
               "7: r7+8 ra-8 fp=\n"
               "9: none\n"
               "10: r7+8 ra-8 fp=\n"
               "11: r7+16 ra-8 fp=\n"
               "17: r7+8 ra-8 fp=\n"
               "18: none\n"
               "20: r7+8 ra-8 fp=\n"
               "21: r7+16 ra-8 fp=\n"
               "22: r7+8 ra-8 fp=\n"
               "25: r7+16 ra-8 fp=\n"
               "27: r7+8 ra-8 fp=\n"
               "28: none\n");
}

static const char assembler[] =
    "\xe8\x0b\x00\x00\x00"              /*  0: call 0x10 */
    "\x0f\x1f\x44\x00\x00"              /*  5: nopl 0x0(%rax,%rax,1) */
    "\xeb\x29"                          /*  a: jmp 0x35 */
    "\x0f\x1f\x40\x00"                  /*  c: nopl 0x0(%rax) */
    "\x48\x89\xf5"                      /* 10: mov %rsi,%rbp */
    "\x48\x83\xc0\x01"                  /* 13: add $0x1,%rax */
    "\xc3"                              /* 17: ret */
    "\x0f\x1f\x84\x00\x00\x00\x00\x00"  /* 18: nopl 0x0(%rax,%rax,1) */
    "\x48\x01\xd0"                      /* 20: add %rdx,%rax */
    "\xff\xce"                          /* 23: dec %esi */
    "\x75\xf9"                          /* 25: jne 0x20 */
    "\xc3"                              /* 27: ret */
    "\x0f\x1f\x84\x00\x00\x00\x00\x00"  /* 28: nopl 0x0(%rax,%rax,1) */
    "\xe8\xdb\xff\xff\xff"              /* 30: call 0x10 */
    "\x48\x01\xd0"                      /* 35: add %rdx,%rax */
    "\xc3"                              /* 38: ret */
    "\x0f\x1f\x80\x00\x00\x00\x00"      /* 39: nopl 0x0(%rax) */
    "\xe8\xce\xff\xff\xff"              /* 40: call 0x13 */
    "\xc3";                             /* 45: ret */

static void functions_of_assembler(void)
{
    /* 40 calls into the middle of 10, where rbp has changed: it is known there no more; 20 is a loop from its start on;
     * 30 goes on where another function jumps to, after a callee that returns */
    CHECK_TEXT(text_rows(BYTES(assembler)),
               "0: r7+8 ra-8 fp=\n"
               "c: none\n"
               "10: r7+8 ra-8 fp=\n"
               "13: r7+8 ra-8 fp?\n"
               "18: none\n"
               "20: r7+8 ra-8 fp=\n"
               "28: none\n"
               "30: r7+8 ra-8 fp=\n"
               "39: none\n"
               "40: r7+8 ra-8 fp=\n"
               "46: none\n");
}

static const char tail_target[] =
    "\xeb\x02"  /*  0: jmp 0x4 */
    "\x90"      /*  2: nop */
    "\x90"      /*  3: nop */
    "\x50"      /*  4: push %rax */
    "\xeb\xfe"; /*  5: jmp 0x5 */

/* The target neither returns nor calls, so that nothing but the jump tells what it is. */
static void tail_call(void)
{
    CHECK_TEXT(text_rows(BYTES(tail_target)), "0: r7+8 ra-8 fp=\n"
                                              "2: none\n"
                                              "4: r7+8 ra-8 fp=\n"
                                              "5: r7+16 ra-8 fp=\n"
                                              "7: none\n");
}

/* What is no code, or not followed, has no rule; and the function behind it has its own. */
static void data_between(void)
{
    static const char bytes[] = "\x50"                          /*  0: push %rax */
                                "\xe8\x0b\x00\x00\x00"          /*  1: call 0x11 */
                                "\x58"                          /*  6: pop %rax */
                                "\xc3"                          /*  7: ret */
                                "\x06\x06\x06\x06\x06\x06\x06\x06\x06" /* 8: data */
                                "\x51"                          /* 11: push %rcx */
                                "\x59"                          /* 12: pop %rcx */
                                "\xc3";                         /* 13: ret */
    CHECK_TEXT(text_rows(BYTES(bytes)), "0: r7+8 ra-8 fp=\n"
                                        "1: r7+16 ra-8 fp=\n"
                                        "7: r7+8 ra-8 fp=\n"
                                        "8: none\n"
                                        "11: r7+8 ra-8 fp=\n"
                                        "12: r7+16 ra-8 fp=\n"
                                        "13: r7+8 ra-8 fp=\n"
                                        "14: none\n");
}

/* A return that does not find its frame: the function was misread, and all of it is forgotten. */
static void broken_return(void)
{
    static const char bytes[] = "\x50"  /* 0: push %rax */
                                "\xc3"; /* 1: ret */
    CHECK_TEXT(text_rows(BYTES(bytes)), "0: none\n");
}

static void no_code(void)
{
    CHECK_TEXT(text_rows("", 0), "0: none\n");
}

static void leaf_frames(void)
{
    static const char usual[] = "\xf3\x0f\x1e\xfa"  /* 0: endbr64 */
                                "\x55"              /* 4: push %rbp */
                                "\x48\x89\xe5"      /* 5: mov %rsp,%rbp */
                                "\x53"              /* 8: push %rbx */
                                "\xe8\x00\x01\x00\x00" /* 9: call */
                                "\x5b"              /* e: pop %rbx */
                                "\x5d"              /* f: pop %rbp */
                                "\xc3";             /* 10: ret */
    CHECK_TEXT(leaf_rule(BYTES(usual), 0), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(usual), 4), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(usual), 5), "r7+16 ra-8 fp-16");
    CHECK_TEXT(leaf_rule(BYTES(usual), 8), "none"); /* RBP is right */
    CHECK_TEXT(leaf_rule(BYTES(usual), 0xe), "none");
    CHECK_TEXT(leaf_rule(BYTES(usual), 0xf), "none");
    CHECK_TEXT(leaf_rule(BYTES(usual), 0x10), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(usual), 0x11), "none"); /* not among the bytes */
    static const char left[] = "\xc9"                  /* 0: leave */
                               "\xe9\x00\x10\x00\x00"; /* 1: jmp */
    CHECK_TEXT(leaf_rule(BYTES(left), 1), "r7+8 ra-8 fp=");
    static const char popped[] = "\x5d"      /* 0: pop %rbp */
                                 "\xff\xe0"; /* 1: jmp *%rax */
    CHECK_TEXT(leaf_rule(BYTES(popped), 1), "r7+8 ra-8 fp=");
    static const char cleared[] = "\x31\xc9"              /* 0: xor %ecx,%ecx; the byte of leave */
                                  "\xe9\x00\x10\x00\x00"; /* 2: jmp */
    CHECK_TEXT(leaf_rule(BYTES(cleared), 2), "none");
    static const char no_frame[] = "\x31\xc0"          /* 0: xor %eax,%eax */
                                   "\x48\x83\xc4\x18"  /* 2: add $0x18,%rsp */
                                   "\xc3";             /* 6: ret */
    CHECK_TEXT(leaf_rule(BYTES(no_frame), 0), "r7+32 ra-8 fp=");
}

static void callers_without_frame(void)
{
    static const char trampoline[] = "\x48\x83\xec\x08"  /* 0: sub $0x8,%rsp */
                                     "\xff\xd1"          /* 4: call *%rcx */
                                     "\x48\x83\xc4\x08"  /* 6: add $0x8,%rsp */
                                     "\xc3";             /* a: ret */
    CHECK_TEXT(caller_rule(BYTES(trampoline), 6), "r7+16 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(trampoline), 0), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(trampoline), 4), "r7+16 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(trampoline), 6), "r7+16 ra-8 fp=");
    CHECK_TEXT(caller_rule(BYTES(trampoline), 0xb), "none"); /* not among the bytes */
    static const char with_frame[] = "\x55"             /* 0: push %rbp */
                                     "\x48\x89\xe5"     /* 1: mov %rsp,%rbp */
                                     "\xff\xd1"         /* 4: call *%rcx */
                                     "\x5d"             /* 6: pop %rbp */
                                     "\xc3";            /* 7: ret */
    CHECK_TEXT(caller_rule(BYTES(with_frame), 6), "none"); /* RBP is right */
    static const char more[] = "\xff\xd1"         /* 0: call *%rcx */
                               "\xff\xd1"         /* 2: call *%rcx */
                               "\xc3";            /* 4: ret */
    CHECK_TEXT(caller_rule(BYTES(more), 2), "none");
}

static void go_leaf_frames(void)
{
    static const char checked[] = "\x49\x3b\x66\x10" /* 0: cmp 0x10(%r14),%rsp */
                                  "\x76\x40"         /* 4: jbe */
                                  "\x55"             /* 6: push %rbp */
                                  "\x48\x89\xe5"     /* 7: mov %rsp,%rbp */
                                  "\x48\x83\xec\x18"; /* a: sub $0x18,%rsp */
    CHECK_TEXT(leaf_rule(BYTES(checked), 0), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(checked), 4), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(checked), 6), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(checked), 7), "r7+16 ra-8 fp-16");
    CHECK_TEXT(leaf_rule(BYTES(checked), 0xa), "none");
    static const char before_1_21[] = "\x48\x83\xec\x20"      /* 0: sub $0x20,%rsp */
                                      "\x48\x89\x6c\x24\x18"  /* 4: mov %rbp,0x18(%rsp) */
                                      "\x48\x8d\x6c\x24\x18"  /* 9: lea 0x18(%rsp),%rbp */
                                      "\xe8\x00\x10\x00\x00"  /* e: call */
                                      "\x48\x8b\x6c\x24\x18"  /* 13: mov 0x18(%rsp),%rbp */
                                      "\x48\x83\xc4\x20"      /* 18: add $0x20,%rsp */
                                      "\xc3";                 /* 1c: ret */
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 0), "r7+8 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 4), "r7+40 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 9), "r7+40 ra-8 fp-16");
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 0xe), "none");
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 0x18), "r7+40 ra-8 fp=");
    CHECK_TEXT(leaf_rule(BYTES(before_1_21), 0x1c), "r7+8 ra-8 fp=");
}

static void return_addresses(void)
{
    static const char direct[] = "\x90\x90\x90\xe8\x00\x01\x00\x00\x90"; /* 3: call */
    CHECK(behind_call(BYTES(direct), 8));
    CHECK(!behind_call(BYTES(direct), 9));
    CHECK(!behind_call(BYTES(direct), 7)); /* too few bytes before it to tell */
    /* 7: call *%r12 */
    static const char by_register[] = "\x90\x90\x90\x90\x90\x90\x90\x41\xff\xd4";
    CHECK(behind_call(BYTES(by_register), 10));
    /* 3: call *0x100(%rip) */
    static const char by_table[] = "\x90\x90\x90\xff\x15\x00\x01\x00\x00";
    CHECK(behind_call(BYTES(by_table), 9));
    static const char by_object[] = "\x90\x90\x90\x90\x90\xff\x50\x18"; /* 5: call *0x18(%rax) */
    CHECK(behind_call(BYTES(by_object), 8));
    static const char jump[] = "\x90\x90\x90\x90\x90\xff\x60\x18"; /* 5: jmp *0x18(%rax) */
    CHECK(!behind_call(BYTES(jump), 8));
}

static int length_of(const char *bytes, size_t len)
{
    struct instruction in;
    return x86_decode((const unsigned char *)bytes, len, &in) ? in.len : -1;
}

static void lengths(void)
{
    static const struct {
        const char *bytes;
        uint8_t len;
        const char *text;
    } list[] = {
        {"\x90", 1, "nop"},
        {"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", 9, "nopw 0x0(%rax,%rax,1)"},
        {"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, "movabs $..., %rax"},
        {"\x66\xb8\x01\x02", 4, "mov $0x201,%ax"},
        {"\x66\x81\xc3\x01\x02", 5, "add $0x201,%bx"},
        {"\xf7\xc1\x01\x02\x03\x04", 6, "test $...,%ecx"},
        {"\xf7\xd9", 2, "neg %ecx"},
        {"\xf6\x00\x05", 3, "testb $0x5,(%rax)"},
        {"\x48\xa1\x01\x02\x03\x04\x05\x06\x07\x08", 10, "movabs ...,%rax"},
        {"\x67\xa0\x01\x02\x03\x04", 6, "addr32 mov ...,%al"},
        {"\xc8\x10\x00\x00", 4, "enter $0x10,$0x0"},
        {"\xc2\x08\x00", 3, "ret $0x8"},
        {"\x0f\x84\x01\x02\x03\x04", 6, "je"},
        {"\xe3\x05", 2, "jrcxz"},
        {"\x8b\x04\x25\x01\x02\x03\x04", 7, "mov 0x4030201,%eax"},
        {"\x8b\x44\x24\x08", 4, "mov 0x8(%rsp),%eax"},
        {"\x8b\x05\x01\x02\x03\x04", 6, "mov 0x4030201(%rip),%eax"},
        {"\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, "mov %fs:0x28,%rax"},
        {"\x66\x0f\x38\x00\xc1", 5, "pshufb %xmm1,%xmm0"},
        {"\x66\x0f\x3a\x0f\xc1\x08", 6, "palignr $0x8,%xmm1,%xmm0"},
        {"\x0f\xc6\xc0\x1b", 4, "shufps $0x1b,%xmm0,%xmm0"},
        {"\xc5\xf8\x77", 3, "vzeroupper"},
        {"\xc5\xfd\x70\xc1\x08", 5, "vpshufd $0x8,%ymm1,%ymm0"},
        {"\xc4\xe3\x75\x38\xc2\x01", 6, "vinserti128 $0x1,%xmm2,%ymm1,%ymm0"},
        {"\xc4\xe2\xf3\xf6\xd3", 5, "mulx %rbx,%rcx,%rdx"},
        {"\x62\xf1\x7c\x48\x10\x46\x01", 7, "vmovups 0x40(%rsi),%zmm0"},
        {"\x62\xf3\x75\x48\x3e\xc2\x05", 7, "vpcmpub $0x5,%zmm2,%zmm1,%k0"},
        {"\x8f\xe8\x78\xa2\xc1\x20", 6, "vpcmov (XOP map 8)"},
        {"\x8f\x45\xf8", 3, "pop -0x8(%rbp)"},
        {"\xf3\x48\x0f\xae\xc0", 5, "rdfsbase %rax"},
        {"\xf0\x48\x0f\xb1\x0f", 5, "lock cmpxchg %rcx,(%rdi)"},
        {"\x66\x66\x48\xe8\x01\x02\x03\x04", 8, "data16 data16 rex.W call"},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        CHECK_INT(length_of(list[i].bytes, list[i].len), list[i].len);
        CHECK_INT(length_of(list[i].bytes, list[i].len - 1u), -1); /* cut */
    }
    CHECK_INT(length_of("\x06\x90\x90", 3), -1); /* push %es: not in 64-bit code */
    static const char longest[] = "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90";
    static const char longer[] = "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90";
    CHECK_INT(length_of(BYTES(longest)), 15);
    CHECK_INT(length_of(BYTES(longer)), -1);
}

/* Registers by number: AX 0, CX 1, DX 2, BX 3, SP 4, FP 5, SI 6, DI 7. */
static uint32_t writes_of(const char *bytes, size_t len)
{
    struct instruction in;
    CHECK(x86_decode((const unsigned char *)bytes, len, &in));
    return x86_writes(&in);
}

static void written_registers(void)
{
    CHECK_INT(writes_of(BYTES("\x01\xd5")), 1 << 5);              /* add %edx,%ebp */
    CHECK_INT(writes_of(BYTES("\x39\xd5")), 0);                   /* cmp %edx,%ebp */
    CHECK_INT(writes_of(BYTES("\x83\xfd\x01")), 0);               /* cmp $1,%ebp */
    CHECK_INT(writes_of(BYTES("\x83\xe5\x01")), 1 << 5);          /* and $1,%ebp */
    CHECK_INT(writes_of(BYTES("\xb5\x01")), 1 << 1);              /* mov $1,%ch */
    CHECK_INT(writes_of(BYTES("\x40\xb5\x01")), 1 << 5);          /* mov $1,%bpl */
    CHECK_INT(writes_of(BYTES("\x0f\x94\xc5")), 1 << 1);          /* sete %ch */
    CHECK_INT(writes_of(BYTES("\x0f\xb6\x6c\x24\x08")), 1 << 5);  /* movzbl 8(%rsp),%ebp */
    CHECK_INT(writes_of(BYTES("\x0f\xa3\xc5")), 0);               /* bt %eax,%ebp */
    CHECK_INT(writes_of(BYTES("\x66\x0f\x6f\xe9")), 0);           /* movdqa %xmm1,%xmm5 */
    CHECK_INT(writes_of(BYTES("\x66\x0f\x7e\xc5")), 1 << 5);      /* movd %xmm0,%ebp */
    CHECK_INT(writes_of(BYTES("\xf3\x0f\x7e\xe9")), 0);           /* movq %xmm1,%xmm5 */
    CHECK_INT(writes_of(BYTES("\x66\x0f\xd7\xe9")), 1 << 5);      /* pmovmskb %xmm1,%ebp */
    CHECK_INT(writes_of(BYTES("\xc5\xf5\xfe\xea")), 0);           /* vpaddd %ymm2,%ymm1,%ymm5 */
    CHECK_INT(writes_of(BYTES("\xc5\xfd\xd7\xe9")), 1 << 5);      /* vpmovmskb %ymm1,%ebp */
    CHECK_INT(writes_of(BYTES("\x87\xec")), 1 << 4 | 1 << 5);     /* xchg %ebp,%esp */
    CHECK_INT(writes_of(BYTES("\x48\x95")), 1 << 0 | 1 << 5);     /* xchg %rax,%rbp */
    CHECK_INT(writes_of(BYTES("\x49\x0f\xcd")), 1 << 13);         /* bswap %r13 */
}

/* As many branches, calls, prefixes, pushes, loops and indirect jumps as there can be. */
static void hostile_code(void)
{
    enum { LEN = 1 << 16 };
    static const char *const pieces[] = {"\x70\x00", "\xe8\x00\x00\x00\x00", "\x66", "\x50",
                                         "\x75\xfe", "\xff\xe0", "\xeb\x01\x70\x80"};
    static unsigned char bytes[LEN];
    struct code code = {TEXT_ADDRESS, bytes, LEN};
    uint64_t starts[LEN / 64];
    for (size_t i = 0; i < LEN / 64; i++) {
        starts[i] = TEXT_ADDRESS + 64 * i;
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t piece = i == 1 ? 5 : strlen(pieces[i]) > 2 ? 4 : i == 0 ? 2 : strlen(pieces[i]);
        for (size_t at = 0; at < LEN; at++) {
            bytes[at] = (unsigned char)pieces[i][at % piece];
        }
        struct analysed out = {0};
        CHECK(analyse_text(&code, starts, LEN / 64, 100, &out));
        CHECK(out.functions <= 100 + 1);
        CHECK(out.rows.len <= LEN + 1);
        vec_release(&out.rows);
    }
}

static size_t measure_x86(const unsigned char *bytes, size_t len, bool *padding)
{
    struct survey survey;
    bool good = arch_survey(bytes, len, 0, &survey);
    *padding = !good || survey.padding;
    return good ? survey.len : 1;
}

/* With the starts that .dynsym tells; CFI is only compared with. What is wrong beyond a thousandth
 * would be a mistake here: the rest are hand-written functions whose CFI leaves pushes out. */
static void agrees_with_cfi(void)
{
    struct library l;
    if (!library_open(&l, "/lib/x86_64-linux-gnu/libc.so.6")) {
        SKIP("no C library for x86-64 where Debian has it");
    }
    struct agreement a = compare_library(&l, measure_x86, 16, 6);
    printf("# %llu instructions, %llu with a rule, %llu of another form, %llu wrong\n",
           (unsigned long long)a.instructions, (unsigned long long)a.covered,
           (unsigned long long)a.other_form, (unsigned long long)a.wrong);
    CHECK(a.instructions > 100000);
    CHECK(a.covered * 1000 > a.instructions * 985);
    CHECK(a.other_form * 1000 < a.covered);
    CHECK(a.wrong * 1000 < a.covered);
    library_close(&l);
}

TESTS({"pushes, pops and subtractions move the CFA by what they move", stack_depth},
      {"a frame pointer tells the CFA where the stack pointer is computed", frame_pointer},
      {"for who does not know the frame pointer a function is told by the stack pointer, or not at all",
       without_frame_pointer},
      {"a realigned frame is left by the word that keeps its CFA", realigned_stack},
      {"where two ways do not agree nothing is known", disagreement},
      {"a call that never returns is found by what begins behind it", call_without_return},
      {"a function elsewhere is judged by what stands behind all calls of it", judged_by_others},
      {"what a jump table leads to has the frame of the jump", jump_table},
      {"a program's and a thread's first code is an end", ends},
      {"the signal return is told by its bytes", signal_return},
      {"a return address taken into a register is known there", vfork_register},
      {"a loop that probes a large frame has the frame's end in a register", probed_frame},
      {"functions are found by calls, by tail calls and behind padding", functions_found},
      {"and where assembler shares code, loops from a start, and begins with a call", functions_of_assembler},
      {"a jump whose frame is gone leads to a function", tail_call},
      {"data between functions has no rules", data_between},
      {"a function whose return finds no frame gives no rules", broken_return},
      {"of no code there is one row that says so", no_code},
      {"a prologue and an epilogue are told at a single instruction", leaf_frames},
      {"a caller without a frame is told by its way to a return", callers_without_frame},
      {"Go's stack check and frame are told at a single instruction", go_leaf_frames},
      {"a return address stands behind a call", return_addresses},
      {"every encoding has its length, and is no instruction when it is cut", lengths},
      {"the registers an instruction writes are known", written_registers},
      {"hostile code costs bounded time and memory", hostile_code},
      {"the rules concluded from the C library are those of its CFI", agrees_with_cfi})
