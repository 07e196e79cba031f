/*
 * The layouts of Ruby 2.3 to 4.0 (x86-64, and AArch64 from 3.1 on), from the headers of each version: vm_core.h,
 * ractor_core.h, thread_pthread.h, iseq.h, internal/class.h, method.h, gc.c. A row holds for every teeny version from
 * the one named to the next row's; attach.c holds it against the process.
 */
#include "runtime/ruby/private.h"

enum {
    VERSIONS = 15,
    NO = -1, /* LAYOUT_NONE */
    MUTEX_MORE = 8, /* bytes: glibc's pthread_mutex_t on AArch64 is 48, elsewhere 40 */
};

static const uint32_t versions[VERSIONS] = {
    RUBY_VERSION(2, 3, 0), RUBY_VERSION(2, 3, 5), RUBY_VERSION(2, 4, 0), RUBY_VERSION(2, 4, 2),
    RUBY_VERSION(2, 5, 0), RUBY_VERSION(2, 5, 4), RUBY_VERSION(2, 6, 0), RUBY_VERSION(2, 7, 0),
    RUBY_VERSION(3, 0, 0), RUBY_VERSION(3, 1, 0), RUBY_VERSION(3, 2, 0), RUBY_VERSION(3, 3, 0),
    RUBY_VERSION(3, 4, 0), RUBY_VERSION(4, 0, 0), RUBY_VERSION(4, 0, 6),
};

#define FIELD(name) offsetof(struct ruby_layout, name)

/* A field a line, a version a column. `mutexes`: how many lie before it, where that is not in its own structure's
 * head. */
static const struct row {
    uint16_t field, mutexes;
    int16_t at[VERSIONS];
} rows[] = {
    /*                           2.3   .5  2.4   .2  2.5   .4  2.6   2.7  3.0   3.1   3.2   3.3   3.4   4.0    .6 */
    {FIELD(vm.main_thread),  0, {280, 280, 280, 280, 280, 280, 192,  192,  40,   40,   40,   40,   40,   40,   40}},
    {FIELD(vm.threads),      0, {296, 312, 296, 312, 312, 320, 312,  312,  NO,   NO,   NO,   NO,   NO,   NO,   NO}},
    {FIELD(vm.ractors),      0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO,   8,    8,    8,    8,    8,    8,    8}},
    {FIELD(vm.running),      0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,    8,  NO,   NO,   NO,   NO,   NO,   NO,   NO}},
    {FIELD(vm.objspace),     0, { NO,  NO,  NO,  NO,  NO,  NO,  NO, 1152,  NO, 1104, 1128, 1304, 1296, 1248, 1256}},
    {FIELD(vm.gc_flags),     0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   16,  NO,   16,   16,   16,   20,   28,   28}},
    {FIELD(ractor.node),     2, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO, 568,  568,  568,  432,  432,  360,  368}},
    {FIELD(ractor.threads),  1, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO, 304,  304,  304,  256,  256,  184,  184}},
    {FIELD(ractor.running),  0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO, 336,  336,  336,  328,  328,  256,  256}},
    {FIELD(thread.vm),       0, { 24,  24,  24,  24,  24,  24,  24,   24,  32,   32,   32,   32,   32,   32,   32}},
    {FIELD(thread.ec),       0, { 32,  32,  32,  32,  32,  32,  32,   32,  40,   40,   48,   48,   48,   48,   48}},
    {FIELD(thread.native),   0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO,  NO,   NO,   40,   40,   40,   40,   40}},
    {FIELD(thread.pthread),  0, {144, 144, 136, 136,  72,  72,  72,   72,  80,   80,    8,   16,   16,   16,   16}},
    {FIELD(ec_thread),       0, { NO,  NO,  NO,  NO,  72,  72,  56,   56,  56,   48,   48,   48,   48,   48,   48}},
    {FIELD(frame_bytes),     0, { 64,  64,  48,  48,  48,  48,  56,   56,  56,   64,   64,   56,   56,   56,   56}},
    {FIELD(frame_ep),        0, { 40,  40,  32,  32,  32,  32,  32,   32,  32,   32,   32,   32,   32,   32,   32}},
    {FIELD(frame_flags),     0, { 24,  24,  NO,  NO,  NO,  NO,  NO,   NO,  NO,   NO,   NO,   NO,   NO,   NO,   NO}},
    {FIELD(old_kinds),       0, {  1,   1,   1,   1,   0,   0,   0,    0,   0,    0,    0,    0,    0,    0,    0}},
    {FIELD(imemo_mask),      0, {  7,   7,   7,   7,  15,  15,  15,   15,  15,   15,   15,   15,   15,   15,   15}},
    {FIELD(body.shift),      0, {  8,   8,   0,   0,   0,   0,   0,    0,   0,    0,    0,    0,    0,    0,    0}},
    {FIELD(body.old_place),  0, {  1,   1,   1,   1,   0,   0,   0,    0,   0,    0,    0,    0,    0,    0,    0}},
    {FIELD(body.local),      0, {144, 144, 136, 136, 144, 144, 176,  176, 176,  176,  168,  168,  168,  176,  176}},
    {FIELD(body.lines),      0, {112, 112, 104, 104, 112, 112, 120,  120, 120,  120,  112,  112,  112,  112,  112}},
    {FIELD(body.line_count), 0, {200, 200, 192, 192, 200, 200, 136,  136, 136,  136,  128,  128,  128,  128,  128}},
    {FIELD(body.line_index), 0, { NO,  NO,  NO,  NO,  NO,  NO, 144,  144, 144,  144,  136,  136,  136,  136,  136}},
    {FIELD(body.line_bytes), 0, {  8,   8,   8,   8,  12,  12,   8,    8,   8,   12,   12,   12,   12,   12,   12}},
    {FIELD(tagged_line),     0, {  1,   1,   1,   1,   1,   1,   1,    1,   1,    1,    0,    0,    0,    0,    0}},
    {FIELD(new_strings),     0, {  0,   0,   0,   0,   0,   0,   0,    0,   0,    0,    1,    1,    1,    1,    1}},
    {FIELD(original_id),     0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   32,  32,   32,   32,   32,   32,   32,   32}},
    {FIELD(last_operator),   0, {170, 170, 170, 170, 166, 166, 164,  168, 168,  169,  169,  169,  170,  171,  171}},
    {FIELD(class_path),      0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO,  NO,   NO,   NO,  152,  152,  152,  152}},
    {FIELD(singleton_bit),   0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO,  NO,   NO,   NO,   12,   13,   13,   13}},
    {FIELD(attached),        0, { NO,  NO,  NO,  NO,  NO,  NO,  NO,   NO,  NO,   NO,   NO,  128,  128,  136,  136}},
};

static uint32_t *field_of(struct ruby_layout *layout, uint16_t field)
{
    return (uint32_t *)(void *)((char *)layout + field);
}

/* ractor.running follows the lock of the scheduler from 3.3 on, and goes before it up to 3.2; vm.objspace is 24 bytes
 * further on with glibc up to 3.2, 16 in 3.3, 24 later (values of running programs). */
static void move_behind_mutexes(struct ruby_layout *l, uint32_t version)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *field_of(l, rows[i].field) += rows[i].mutexes * MUTEX_MORE;
    }
    l->ractor.running += version < RUBY_VERSION(3, 3, 0) ? MUTEX_MORE : 2 * MUTEX_MORE;
    l->vm.objspace += version >= RUBY_VERSION(3, 3, 0) && version < RUBY_VERSION(3, 4, 0) ? 2 * MUTEX_MORE
                                                                                         : 3 * MUTEX_MORE;
}

bool ruby_layout_of(uint32_t version, enum elf_machine machine, bool musl, struct ruby_layout *out, struct err *err)
{
    char text[RUBY_VERSION_TEXT];
    bool arm = machine == ELF_AARCH64;
    size_t column = VERSIONS;
    while (column > 0 && version < versions[column - 1]) {
        column--;
    }
    if (column == 0 || version >> 8 != versions[column - 1] >> 8 || (arm && version < RUBY_VERSION(3, 1, 0))) {
        ruby_version_text(version, text);
        return err_set(err, ERR_UNSUPPORTED, 0, "Ruby %s is not known here; %s to 4.0 can be read", text,
                       arm ? "3.1" : "2.3");
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int16_t at = rows[i].at[column - 1];
        *field_of(out, rows[i].field) = at == NO ? LAYOUT_NONE : (uint32_t)at;
    }
    if (arm && !musl) {
        move_behind_mutexes(out, version);
    }
    return true;
}
