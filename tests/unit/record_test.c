/* Records of a perf ring as kernels write them (captured layouts, numbers made readable), and cut or
 * wrong ones. Every input lies in an allocation of exactly its size, so a read past its end is seen. */
#include "sample/record.h"
#include "test.h"

#include <linux/perf_event.h>

/* What the sampler's events ask for. */
#define MASK                                                                                       \
    ((uint64_t)(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |            \
                PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN))

#define TAIL /* tid: pid 7 tid 8, time 0x1122334455, cpu 3 */                                      \
    "\x07\0\0\0\x08\0\0\0"                                                                         \
    "\x55\x44\x33\x22\x11\0\0\0"                                                                   \
    "\x03\0\0\0\0\0\0\0"

#define BYTES(literal) literal, sizeof(literal) - 1

static bool parse_as(uint64_t mask, const char *bytes, size_t len, struct record *out,
                     struct err *err)
{
    static void *held; /* texts and chains are borrowed until the next call */
    free(held);
    held = malloc(len == 0 ? 1 : len);
    memcpy(held, bytes, len);
    const struct record_format format = {mask, 0x1c0}; /* BP, SP, IP */
    return record_parse(held, len, &format, out, err);
}

static bool parse(const char *bytes, size_t len, struct record *out)
{
    struct err err = {0};
    bool ok = parse_as(MASK, bytes, len, out, &err);
    CHECK_INT(err.kind, ok ? ERR_NONE : ERR_MALFORMED);
    return ok;
}

/* ---- stacks ---- */

#define STACK_MASK (MASK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

#define STACK_SAMPLE(size, dyn)                                                                    \
    "\x09\0\0\0\x02\0" size             /* SAMPLE, in user code */                                 \
    "\0\x10\x40\0\0\0\0\0"               /* ip */                                                  \
    "\x07\0\0\0\x08\0\0\0"               /* pid, tid */                                            \
    "\x55\x44\x33\x22\x11\0\0\0"         /* time */                                                \
    "\x03\0\0\0\0\0\0\0"                 /* cpu, reserved */                                       \
    "\x75\x23\x9a\0\0\0\0\0"             /* period 10101621 */                                     \
    "\0\0\0\0\0\0\0\0"                   /* no kernel frames */                                    \
    "\x02\0\0\0\0\0\0\0"                 /* registers of a 64-bit task */                          \
    "\x01\0\0\0\0\0\0\0"                 /* BP */                                                  \
    "\0\x80\xff\xff\xff\x7f\0\0"         /* SP */                                                  \
    "\0\x10\x40\0\0\0\0\0"               /* IP */                                                  \
    "\x20\0\0\0\0\0\0\0"                 /* 32 bytes of stack were asked for */                    \
    "abcdefgh" "ijklmnop" "\0\0\0\0\0\0\0\0" "\0\0\0\0\0\0\0\0"                                  \
    dyn "\0\0\0\0\0\0\0"                /* of which so many could be copied */

static void registers_and_stack_are_borrowed(void)
{
    struct record r;
    struct err err = {0};
    CHECK(parse_as(STACK_MASK, BYTES(STACK_SAMPLE("\x88\0", "\x10")), &r, &err));
    CHECK_INT(r.as.sample.registers[0], 1);
    CHECK_INT(r.as.sample.registers[1], 0x7fffffff8000);
    CHECK_INT(r.as.sample.registers[2], 0x401000);
    CHECK_INT(r.as.sample.stack_len, 16);
    CHECK_INT(r.as.sample.stack_room, 32);
    CHECK(memcmp(r.as.sample.stack, "abcdefghijklmnop", 16) == 0);
    CHECK(!r.as.sample.is_32bit);
}

static void a_copied_size_beyond_the_dump_is_refused(void)
{
    struct record r;
    struct err err = {0};
    CHECK(!parse_as(STACK_MASK, BYTES(STACK_SAMPLE("\x88\0", "\x28")), &r, &err));
    CHECK_INT(err.kind, ERR_MALFORMED);
}

static void a_trimmed_sample_is_the_same_without_the_empty_part(void)
{
    struct record r, again;
    struct err err = {0};
    _Alignas(8) char sample[] = STACK_SAMPLE("\x88\0", "\x0c");
    _Alignas(8) char copy[sizeof sample];
    const struct record_format format = {STACK_MASK, 0x1c0};
    CHECK(record_parse(sample, sizeof sample - 1, &format, &r, &err));
    size_t len = record_trimmed_bytes(&r, sizeof sample - 1);
    CHECK_INT(len, 0x88 - 16); /* 12 bytes are kept in 16 of 32 */
    record_trim(sample, sizeof sample - 1, &r, copy);
    CHECK(record_parse(copy, len, &format, &again, &err));
    CHECK_INT(again.as.sample.stack_len, 12);
    CHECK(memcmp(again.as.sample.stack, "abcdefghijkl", 12) == 0);
    CHECK_INT(again.as.sample.registers[2], 0x401000);
    CHECK_INT(again.time_ns, r.time_ns);
}

static void a_trimmed_sample_may_have_no_stack_at_all(void)
{
    struct record r, again;
    struct err err = {0};
    _Alignas(8) char sample[] = STACK_SAMPLE("\x88\0", "\0");
    _Alignas(8) char copy[sizeof sample];
    const struct record_format format = {STACK_MASK, 0x1c0};
    CHECK(record_parse(sample, sizeof sample - 1, &format, &r, &err));
    record_trim(sample, sizeof sample - 1, &r, copy);
    CHECK(record_parse(copy, record_trimmed_bytes(&r, sizeof sample - 1), &format, &again, &err));
    CHECK_INT(again.as.sample.stack_len, 0);
}

/* ---- samples ---- */

#define SAMPLE                                                                                     \
    "\x09\0\0\0\x01\0\x68\0"             /* SAMPLE, in the kernel, 104 bytes */                    \
    "\x10\0\0\x81\xff\xff\xff\xff"       /* ip */                                                  \
    "\x07\0\0\0\x08\0\0\0"               /* pid, tid */                                            \
    "\x55\x44\x33\x22\x11\0\0\0"         /* time */                                                \
    "\x03\0\0\0\0\0\0\0"                 /* cpu, reserved */                                       \
    "\x75\x23\x9a\0\0\0\0\0"             /* period 10101621 */                                     \
    "\x06\0\0\0\0\0\0\0"                 /* 6 entries */                                           \
    "\x80\xff\xff\xff\xff\xff\xff\xff"   /* kernel: */                                             \
    "\x10\0\0\x81\xff\xff\xff\xff"                                                                 \
    "\0\x02\0\x81\xff\xff\xff\xff"                                                                 \
    "\0\xfe\xff\xff\xff\xff\xff\xff"     /* user: */                                               \
    "\0\x10\x40\0\0\0\0\0"                                                                         \
    "\x34\x12\x40\0\0\0\0\0"

static void sample_with_both_halves(void)
{
    struct record r;
    CHECK(parse(BYTES(SAMPLE), &r));
    CHECK_INT(r.kind, RECORD_SAMPLE);
    CHECK_INT(r.pid, 7);
    CHECK_INT(r.tid, 8);
    CHECK_INT(r.cpu, 3);
    CHECK_INT(r.time_ns, 0x1122334455);
    CHECK(!r.user);
    CHECK(r.as.sample.ip == 0xffffffff81000010);
    CHECK_INT(r.as.sample.period_ns, 10101621);
    CHECK_INT(r.as.sample.chain_len, 6);
    static const uint64_t chain[] = {CHAIN_MARK_KERNEL, 0xffffffff81000010, 0xffffffff81000200,
                                     CHAIN_MARK_USER,   0x401000,           0x401234};
    CHECK(memcmp(r.as.sample.chain, chain, sizeof chain) == 0);
    CHECK(chain[0] >= CHAIN_MARK_LEAST && chain[3] >= CHAIN_MARK_LEAST);
    CHECK(chain[1] < CHAIN_MARK_LEAST);
}

static void sample_in_user_code(void)
{
    static const char bytes[] = "\x09\0\0\0\x02\x40\x48\0" /* user; bit 14: an exact address */
                                "\0\x10\x40\0\0\0\0\0"
                                "\x07\0\0\0\x08\0\0\0"
                                "\x01\0\0\0\0\0\0\0"
                                "\0\0\0\0\0\0\0\0"
                                "\x75\x23\x9a\0\0\0\0\0"
                                "\x02\0\0\0\0\0\0\0"
                                "\0\xfe\xff\xff\xff\xff\xff\xff"
                                "\0\x10\x40\0\0\0\0\0";
    struct record r;
    CHECK(parse(BYTES(bytes), &r));
    CHECK(r.user);
    CHECK_INT(r.as.sample.chain_len, 2);
}

static void sample_without_chain(void)
{
    static const char bytes[] = "\x09\0\0\0\x01\0\x38\0"
                                "\0\0\0\0\0\0\0\0"
                                "\xff\xff\xff\xff\xff\xff\xff\xff"
                                "\x01\0\0\0\0\0\0\0"
                                "\0\0\0\0\0\0\0\0"
                                "\x01\0\0\0\0\0\0\0"
                                "\0\0\0\0\0\0\0\0";
    struct record r;
    CHECK(parse(BYTES(bytes), &r));
    CHECK_INT(r.as.sample.chain_len, 0);
    CHECK(r.pid == UINT32_MAX && r.tid == UINT32_MAX);
}

static void sample_with_identifier(void)
{
    static const char bytes[] = "\x09\0\0\0\x02\0\x28\0"
                                "\x99\x99\0\0\0\0\0\0" /* identifier: first in a sample */
                                "\x07\0\0\0\x08\0\0\0"
                                "\x55\x44\x33\x22\x11\0\0\0"
                                "\x03\0\0\0\0\0\0\0";
    struct record r;
    uint64_t mask =
        PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    CHECK(parse_as(mask, BYTES(bytes), &r, NULL));
    CHECK_INT(r.pid, 7);
    CHECK_INT(r.time_ns, 0x1122334455);
    CHECK_INT(r.event, 0x9999);
    CHECK_INT(r.as.sample.chain_len, 0);
}

static void sample_chain_too_long(void)
{
    char bytes[] = SAMPLE;
    struct record r;
    static const char counts[][9] = {"\x07\0\0\0\0\0\0\0", "\xff\xff\xff\xff\xff\xff\xff\xff",
                                     "\0\0\0\0\0\0\0\x20" /* times 8 is 0 */,
                                     "\x01\0\0\0\0\0\0\x20", "\x01\x20\0\0\0\0\0\0"};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memcpy(bytes + 48, counts[i], 8);
        CHECK(!parse(bytes, sizeof bytes - 1, &r));
    }
}

/* ---- the other kinds ---- */

#define MMAP2                                                                                      \
    "\x0a\0\0\0\x02\0\x70\0"                                                                       \
    "\x07\0\0\0\x08\0\0\0"                                                                         \
    "\0\x10\x02\0\0\x7f\0\0"             /* start */                                               \
    "\0\x30\0\0\0\0\0\0"                 /* length */                                              \
    "\0\x20\0\0\0\0\0\0"                 /* file offset */                                         \
    "\x08\0\0\0\x01\0\0\0"               /* device 8:1 */                                          \
    "\x39\x30\0\0\0\0\0\0"               /* inode 12345 */                                         \
    "\x05\0\0\0\0\0\0\0"                 /* its generation */                                      \
    "\x05\0\0\0\x02\0\0\0"               /* read and execute, private */                           \
    "/lib/a.so\0\0\0\0\0\0\0" TAIL

static void mmap2_of_a_file(void)
{
    struct record r;
    CHECK(parse(BYTES(MMAP2), &r));
    CHECK_INT(r.kind, RECORD_MMAP);
    CHECK_INT(r.pid, 7);
    CHECK_INT(r.tid, 8);
    CHECK_INT(r.time_ns, 0x1122334455);
    CHECK_INT(r.as.mmap.start, 0x7f0000021000);
    CHECK_INT(r.as.mmap.bytes, 0x3000);
    CHECK_INT(r.as.mmap.file_offset, 0x2000);
    CHECK_INT(r.as.mmap.major, 8);
    CHECK_INT(r.as.mmap.minor, 1);
    CHECK_INT(r.as.mmap.inode, 12345);
    CHECK(r.as.mmap.executable);
    CHECK_STR(r.as.mmap.path, "/lib/a.so");
}

static void mmap2_with_build_id(void)
{
    char bytes[] = MMAP2;
    bytes[5] = 0x40; /* PERF_RECORD_MISC_MMAP_BUILD_ID */
    memset(bytes + 40, 0xab, 24);
    struct record r;
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK(r.as.mmap.major == 0 && r.as.mmap.minor == 0 && r.as.mmap.inode == 0);
    CHECK(r.as.mmap.executable);
    CHECK_STR(r.as.mmap.path, "/lib/a.so");
}

static void mmap2_of_data(void)
{
    char bytes[] = MMAP2;
    bytes[64] = 3; /* read and write */
    struct record r;
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK(!r.as.mmap.executable);
}

static void text_without_end(void)
{
    char bytes[] = MMAP2;
    memset(bytes + 72, 'x', 16); /* no NUL before the id tail, which begins with one */
    struct record r;
    CHECK(!parse(bytes, sizeof bytes - 1, &r));
}

#define COMM                                                                                       \
    "\x03\0\0\0\0\x20\x38\0"             /* COMM by exec */                                        \
    "\x09\0\0\0\x0a\0\0\0"                                                                         \
    "redis-server\0\0\0\0" TAIL

static void comm_by_exec(void)
{
    struct record r;
    char bytes[] = COMM;
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK_INT(r.kind, RECORD_COMM);
    CHECK_INT(r.pid, 9);
    CHECK_INT(r.tid, 10);
    CHECK(r.as.comm.exec);
    CHECK_STR(r.as.comm.name, "redis-server");
    bytes[5] = 0;
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK(!r.as.comm.exec);
}

#define FORK                                                                                       \
    "\x07\0\0\0\0\0\x38\0"                                                                         \
    "\x14\0\0\0\x0a\0\0\0"               /* pid 20, parent 10 */                                   \
    "\x15\0\0\0\x0b\0\0\0"               /* tid 21, parent 11 */                                   \
    "\x01\0\0\0\0\0\0\0" TAIL

static void fork_names_both(void)
{
    struct record r;
    CHECK(parse(BYTES(FORK), &r));
    CHECK_INT(r.kind, RECORD_FORK);
    CHECK_INT(r.pid, 20);
    CHECK_INT(r.tid, 21);
    CHECK_INT(r.as.fork.parent_pid, 10);
    CHECK_INT(r.as.fork.parent_tid, 11);
    CHECK_INT(r.time_ns, 0x1122334455);
}

static void exit_is_the_same_shape(void)
{
    char bytes[] = FORK;
    bytes[0] = 4;
    struct record r;
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK_INT(r.kind, RECORD_EXIT);
    CHECK_INT(r.pid, 20);
    CHECK_INT(r.tid, 21);
}

#define LOST                                                                                       \
    "\x02\0\0\0\0\0\x30\0"                                                                         \
    "\x63\0\0\0\0\0\0\0"                                                                           \
    "\x2a\x01\0\0\0\0\0\0" TAIL

static void lost_counts(void)
{
    struct record r;
    CHECK(parse(BYTES(LOST), &r));
    CHECK_INT(r.kind, RECORD_LOST);
    CHECK_INT(r.as.lost.count, 298);
    CHECK_INT(r.pid, 7); /* whoever was running */
    CHECK_INT(r.tid, 8);
}

/* Type 14, misc, 32 bytes: nothing but the tail, which names the task that left or came. */
static void switches(void)
{
    static const char in[] = "\x0e\0\0\0\0\0\x20\0" TAIL;
    static const char slept[] = "\x0e\0\0\0\0\x20\x20\0" TAIL;     /* SWITCH_OUT, 1 << 13 */
    static const char preempted[] = "\x0e\0\0\0\0\x60\x20\0" TAIL; /* and PREEMPT, 1 << 14 */
    struct record r;
    CHECK(parse(BYTES(in), &r));
    CHECK_INT(r.kind, RECORD_SWITCH);
    CHECK_INT(r.tid, 8);
    CHECK(!r.as.sched.out && !r.as.sched.preempt);
    CHECK(parse(BYTES(slept), &r));
    CHECK(r.as.sched.out && !r.as.sched.preempt);
    CHECK(parse(BYTES(preempted), &r));
    CHECK(r.as.sched.out && r.as.sched.preempt);
}

static void tags(void)
{
    _Alignas(8) char bytes[] = "\x0e\0\0\0\0\0\x20\0" TAIL;
    struct record r;
    CHECK_INT(record_tag(bytes, sizeof bytes - 1), 0);
    record_set_tag(bytes, sizeof bytes - 1, 5);
    CHECK_INT(record_tag(bytes, sizeof bytes - 1), 5);
    CHECK_INT(record_bytes(bytes, sizeof bytes), 32);
    CHECK(parse(bytes, sizeof bytes - 1, &r));
    CHECK_INT(r.kind, RECORD_SWITCH);
    CHECK_INT(r.tid, 8);
    record_set_tag(bytes, sizeof bytes - 1, 0xffff);
    CHECK_INT(record_tag(bytes, sizeof bytes - 1), 0xffff);
    CHECK(parse(bytes, sizeof bytes - 1, &r) && r.kind == RECORD_SWITCH);
    CHECK_INT(record_tag(bytes, 7), 0); /* cut */
}

static void length_of_a_record(void)
{
    static const char bytes[] = "\x0e\0\0\0\0\0\x20\0" TAIL "behind it";
    CHECK_INT(record_bytes(bytes, sizeof bytes), 32);
    CHECK_INT(record_bytes(bytes, 24), 24); /* cut: no more than there is */
    CHECK_INT(record_bytes(bytes, 4), 4);
}

static void identifier_in_the_tail(void)
{
    static const char bytes[] = "\x03\0\0\0\0\0\x38\0"
                                "\x09\0\0\0\x0a\0\0\0"
                                "sh\0\0\0\0\0\0" TAIL "\x99\x99\0\0\0\0\0\0";
    struct record r;
    CHECK(parse_as(MASK | PERF_SAMPLE_IDENTIFIER, BYTES(bytes), &r, NULL));
    CHECK_STR(r.as.comm.name, "sh");
    CHECK_INT(r.time_ns, 0x1122334455);
    CHECK_INT(r.cpu, 3);
}

static void unknown_types(void)
{
    struct record r;
    for (unsigned type = 0; type < 256; type++) {
        char bytes[] = LOST;
        bytes[0] = (char)type;
        bytes[3] = type > 200 ? 0x7f : 0;
        if (type != PERF_RECORD_SAMPLE && type != PERF_RECORD_MMAP2 && type != PERF_RECORD_COMM &&
            type != PERF_RECORD_FORK && type != PERF_RECORD_EXIT && type != PERF_RECORD_LOST) {
            CHECK(parse(bytes, sizeof bytes - 1, &r));
            CHECK_INT(r.kind, type == PERF_RECORD_THROTTLE ? RECORD_THROTTLE
                              : type == PERF_RECORD_SWITCH ? RECORD_SWITCH
                                                           : RECORD_OTHER);
            CHECK_INT(r.time_ns, 0x1122334455); /* it still takes its place in time */
        }
    }
}

/* ---- refusals ---- */

static const struct {
    const char *name, *bytes;
    size_t len;
} whole[] = {{"SAMPLE", BYTES(SAMPLE)}, {"MMAP2", BYTES(MMAP2)}, {"COMM", BYTES(COMM)},
             {"FORK", BYTES(FORK)},     {"LOST", BYTES(LOST)}};

static void set_size(char *bytes, size_t len)
{
    bytes[6] = (char)(len & 0xff);
    bytes[7] = (char)(len >> 8);
}

static void cut_records(void)
{
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        for (size_t len = 0; len < whole[i].len; len++) {
            struct record r = {.pid = 4711};
            char bytes[256];
            memcpy(bytes, whole[i].bytes, whole[i].len);
            bool refused = !parse(bytes, len, &r); /* the header promises more */
            if (len >= 8) {
                set_size(bytes, len);
                refused = refused && !parse(bytes, len, &r); /* the header tells the cut size */
            }
            if (!refused) {
                printf("# %s cut to %zu bytes was taken\n", whole[i].name, len);
            }
            CHECK(refused);
            CHECK_INT(r.pid, 4711); /* nothing is written without success */
        }
    }
}

static void wrong_sizes(void)
{
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        static const size_t sizes[] = {0, 1, 7, 8, 9, 65535};
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
            char bytes[256];
            struct record r;
            memcpy(bytes, whole[i].bytes, whole[i].len);
            set_size(bytes, sizes[k]);
            CHECK(!parse(bytes, whole[i].len, &r));
        }
    }
}

static void every_flipped_byte(void)
{
    unsigned taken = 0;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        for (size_t at = 0; at < whole[i].len; at++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                char bytes[256];
                struct record r;
                memcpy(bytes, whole[i].bytes, whole[i].len);
                bytes[at] ^= (char)(1 << bit);
                taken += parse(bytes, whole[i].len, &r);
            }
        }
    }
    CHECK(taken > 0); /* most flips are in numbers, which may be anything */
}

static void masks_not_known(void)
{
    static const uint64_t masks[] = {0,
                                     MASK & ~(uint64_t)PERF_SAMPLE_TIME,
                                     MASK & ~(uint64_t)PERF_SAMPLE_TID,
                                     MASK & ~(uint64_t)PERF_SAMPLE_CPU,
                                     MASK | PERF_SAMPLE_ADDR,
                                     MASK | PERF_SAMPLE_READ,
                                     MASK | PERF_SAMPLE_RAW,
                                     MASK | (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        struct record r;
        struct err err = {0};
        CHECK(!parse_as(masks[i], BYTES(SAMPLE), &r, &err));
        CHECK_INT(err.kind, ERR_UNSUPPORTED);
    }
}

TESTS({"a sample gives its kernel and its user half with their marks", sample_with_both_halves},
      {"a sample taken in user code says so", sample_in_user_code},
      {"a sample without a chain is whole", sample_without_chain},
      {"an identifier in front of a sample is stepped over", sample_with_identifier},
      {"a chain longer than its record is refused, also where the length overflows",
       sample_chain_too_long},
      {"a mapping of a file is read to its path", mmap2_of_a_file},
      {"a mapping with a build id has no inode", mmap2_with_build_id},
      {"a mapping without the right to execute is told from code", mmap2_of_data},
      {"a path without its end does not run into what follows", text_without_end},
      {"a name by exec is told from a rename", comm_by_exec},
      {"a fork names child and parent", fork_names_both},
      {"an exit names the thread", exit_is_the_same_shape},
      {"a loss is counted", lost_counts},
      {"a switch tells who left its CPU, and whether it was preempted", switches},
      {"a record carries a tag and is the same record", tags},
      {"a record says how long it is", length_of_a_record},
      {"an identifier behind the tail is stepped over", identifier_in_the_tail},
      {"unknown kinds keep their time and are no error", unknown_types},
      {"a record cut at any length is refused and nothing is written", cut_records},
      {"a size that is not the record's is refused", wrong_sizes},
      {"no flipped bit leads outside the record", every_flipped_byte},
      {"a sample type with fields not known here is refused", masks_not_known},
      {"registers and the copied stack are borrowed", registers_and_stack_are_borrowed},
      {"a copied size beyond the stack that was asked for is refused",
       a_copied_size_beyond_the_dump_is_refused},
      {"a trimmed sample is the same record without the empty part of its stack",
       a_trimmed_sample_is_the_same_without_the_empty_part},
      {"a trimmed sample may have no stack at all", a_trimmed_sample_may_have_no_stack_at_all})
