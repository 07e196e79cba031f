/*
 * The layouts of CPython 2.7 to 3.12, from the headers of each version: Include/{object,code,
 * frameobject,unicodeobject}.h, Include/cpython/{code,pystate,unicodeobject}.h and
 * Include/internal/pycore_{frame,interp,runtime,gil}.h, tags v2.7.18, v3.5.10, v3.6.15, v3.7.17,
 * v3.8.20, v3.9.25, v3.10.20, v3.11.14, v3.12.12.
 */
#include "runtime/python/private.h"

#include <stdio.h>

enum {
    VERSIONS = 9,
    NO = -1, /* LAYOUT_NONE */
    TRACE_REFS_BYTES = 16, /* two links in front of every object */
    AARCH64_GLIBC_BYTES = 16, /* its pthread_mutex_t is 48 bytes, elsewhere 40; two lie before */
    CURRENT_BEFORE_3_7_4 = 1392,
};

static const uint32_t versions[VERSIONS] = {
    PYTHON_VERSION(2, 7), PYTHON_VERSION(3, 5), PYTHON_VERSION(3, 6),
    PYTHON_VERSION(3, 7), PYTHON_VERSION(3, 8), PYTHON_VERSION(3, 9),
    PYTHON_VERSION(3, 10), PYTHON_VERSION(3, 11), PYTHON_VERSION(3, 12),
};

#define FIELD(name) offsetof(struct python_layout, name)

/* A field a line, a version a column: what differs between two versions is seen side by side. */
static const struct row {
    uint16_t field; /* in struct python_layout */
    int16_t at[VERSIONS];
} rows[] = {
    /*                              2.7  3.5  3.6   3.7   3.8  3.9 3.10 3.11 3.12 */
    {FIELD(runtime.head),         {   0,   0,   0,   24,   32,  32,  32,  40,  40}},
    {FIELD(runtime.current),      {  NO,  NO,  NO, 1480, 1368, 568, 568, 576,  NO}},
    {FIELD(runtime.finalizing),   {  NO,  NO,  NO,    8,   16,  16,  16,  24,  24}},
    {FIELD(interp.next),          {   0,   0,   0,    0,    0,   0,   0,   0,   0}},
    {FIELD(interp.threads),       {   8,   8,   8,    8,    8,   8,   8,  16,  72}},
    {FIELD(interp.id),            {  NO,  NO,  NO,   16,   16,  24,  24,  48,   8}},
    {FIELD(interp.modules),       {  16,  NO,  16,   40,   56, 856, 856, 888, 944}},
    {FIELD(interp.collecting),    {  NO,  NO,  NO,   NO,   NO, 816, 816, 848, 312}},
    {FIELD(interp.gil),           {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  NO, 384}},
    {FIELD(interp.gil_holder),    {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  NO,   8}},
    {FIELD(interp.gil_locked),    {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  NO,  16}},
    {FIELD(thread.next),          {   0,   8,   8,    8,    8,   8,   8,   8,   8}},
    {FIELD(thread.interp),        {   8,  16,  16,   16,   16,  16,  16,  16,  16}},
    {FIELD(thread.frame),         {  16,  24,  24,   24,   24,  24,  24,  56,  56}},
    {FIELD(thread.cframe_top),    {  NO,  NO,  NO,   NO,   NO,  NO,  NO,   8,   0}},
    {FIELD(thread.thread_id),     { 144, 152, 152,  176,  176, 176, 176, 152, 136}},
    {FIELD(thread.native_thread_id), {NO, NO,  NO,   NO,   NO,  NO,  NO, 160, 144}},
    {FIELD(thread.chunk),         {  NO,  NO,  NO,   NO,   NO,  NO,  NO, 296, 232}},
    {FIELD(thread.top),           {  NO,  NO,  NO,   NO,   NO,  NO,  NO, 304, 240}},
    {FIELD(thread.status),        {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  NO,  24}},
    {FIELD(frame.previous),       {  24,  24,  24,   24,   24,  24,  24,  48,   8}},
    {FIELD(frame.code),           {  32,  32,  32,   32,   32,  32,  32,  32,   0}},
    {FIELD(frame.position),       { 120, 120, 120,  104,  104, 104,  96,  56,  56}},
    {FIELD(frame.owner),          {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  69,  70}},
    {FIELD(frame.is_entry),       {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  68,  NO}},
    {FIELD(frame.locals),         { 376, 376, 376,  360,  360, 360, 352,  72,  72}},
    {FIELD(code.argcount),        {  16,  16,  16,   16,   16,  16,  16,  56,  52}},
    {FIELD(code.flags),           {  28,  32,  32,   32,   36,  36,  36,  48,  48}},
    {FIELD(code.first_line),      {  96, 112,  36,   36,   40,  40,  40,  72,  68}},
    {FIELD(code.file),            {  80,  96,  96,   96,  104, 104, 104, 112, 112}},
    {FIELD(code.name),            {  88, 104, 104,  104,  112, 112, 112, 120, 120}},
    {FIELD(code.qualname),        {  NO,  NO,  NO,   NO,   NO,  NO,  NO, 128, 128}},
    {FIELD(code.lines),           { 104, 120, 112,  112,  120, 120, 120, 136, 136}},
    {FIELD(code.bytecode),        {  32,  40,  40,   40,   48,  48,  48, 184, 192}},
    {FIELD(code.version),         {  NO,  NO,  NO,   NO,   NO,  NO,  NO,  NO,  92}},
    {FIELD(object.type),          {   8,   8,   8,    8,    8,   8,   8,   8,   8}},
    {FIELD(object.size),          {  16,  16,  16,   16,   16,  16,  16,  16,  16}},
    {FIELD(object.bytes_data),    {  36,  32,  32,   32,   32,  32,  32,  32,  32}},
    {FIELD(object.str_length),    {  16,  16,  16,   16,   16,  16,  16,  16,  16}},
    {FIELD(object.str_state),     {  NO,  32,  32,   32,   32,  32,  32,  32,  32}},
    {FIELD(object.str_ascii),     {  NO,  48,  48,   48,   48,  48,  48,  48,  40}},
    {FIELD(object.str_compact),   {  NO,  72,  72,   72,   72,  72,  72,  72,  56}},
    {FIELD(object.str_pointer),   {  24,  72,  72,   72,   72,  72,  72,  72,  56}},
    {FIELD(type.basicsize),       {  32,  32,  32,   32,   32,  32,  32,  32,  32}},
    {FIELD(type.members),         { 240, 240, 240,  240,  240, 240, 240, 240, 240}},
};

static uint32_t *field_of(struct python_layout *layout, uint16_t field)
{
    return (uint32_t *)(void *)((char *)layout + field);
}

/* ---- versions ---- */

uint32_t python_minor(uint32_t version)
{
    return version & 0xffff0000;
}

void python_version_text(uint32_t version, char out[static PYTHON_VERSION_TEXT])
{
    static const char *const levels[16] = {[0xa] = "a", [0xb] = "b", [0xc] = "rc"};
    unsigned level = version >> 4 & 15;
    int len = snprintf(out, PYTHON_VERSION_TEXT, "%u.%u", version >> 24, version >> 16 & 255);
    if (level != 0) { /* 0: no more than the minor version is known */
        len += snprintf(out + len, PYTHON_VERSION_TEXT - (size_t)len, ".%u", version >> 8 & 255);
    }
    if (levels[level] != NULL) {
        (void)snprintf(out + len, PYTHON_VERSION_TEXT - (size_t)len, "%s%u", levels[level],
                       version & 15);
    }
}

bool python_refuse(uint32_t version, struct err *err)
{
    char text[PYTHON_VERSION_TEXT];
    python_version_text(version, text);
    return err_set(err, ERR_UNSUPPORTED, 0,
                   "CPython %s is not known here; 2.7 and 3.5 to 3.15 can be read", text);
}

/* ---- what follows from the fields ---- */

static uint32_t reach(uint32_t so_far, uint32_t at, uint32_t width)
{
    return at != LAYOUT_NONE && at + width > so_far ? at + width : so_far;
}

static uint32_t reach_of(const uint32_t *fields, size_t count)
{
    uint32_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes = reach(bytes, fields[i], 8);
    }
    return bytes;
}

#define REACH(...)                                                                                 \
    reach_of((const uint32_t[]){__VA_ARGS__}, sizeof(uint32_t[]){__VA_ARGS__} / sizeof(uint32_t))

bool python_layout_sizes(struct python_layout *l)
{
    bool inline_bytecode = l->frames != PYTHON_FRAMES_HEAP;
    l->interp.bytes = REACH(l->interp.next, l->interp.threads, l->interp.id, l->interp.collecting,
                            l->interp.gil, l->interp.code_generation, l->interp.tlbc_generation);
    l->thread.bytes = REACH(l->thread.next, l->thread.interp, l->thread.frame, l->thread.thread_id,
                            l->thread.native_thread_id, l->thread.chunk, l->thread.top,
                            l->thread.status, l->thread.holds_gil, l->thread.gil_requested,
                            l->thread.base_frame);
    l->code.bytes = REACH(l->object.size, l->code.argcount, l->code.flags, l->code.first_line,
                          l->code.file, l->code.name, l->code.qualname, l->code.lines,
                          l->code.version, l->code.tlbc,
                          inline_bytecode ? LAYOUT_NONE : l->code.bytecode);
    l->frame.bytes = REACH(l->frame.previous, l->frame.code, l->frame.position);
    l->frame.bytes = reach(l->frame.bytes, l->frame.owner, 1);
    l->frame.bytes = reach(l->frame.bytes, l->frame.is_entry, 1);
    l->frame.bytes = reach(l->frame.bytes, l->frame.tlbc_index, 4);
    l->frame.bytes = (l->frame.bytes + 7) & ~7U;
    return l->thread.bytes <= LAYOUT_THREAD_MAX && l->frame.bytes <= LAYOUT_FRAME_MAX &&
           l->code.bytes <= LAYOUT_CODE_MAX;
}

static void set_none(struct python_layout *l)
{
    /* every byte of LAYOUT_NONE is 0xff */
    memset(&l->runtime, 0xff, sizeof l->runtime);
    memset(&l->interp, 0xff, sizeof l->interp);
    memset(&l->thread, 0xff, sizeof l->thread);
    memset(&l->frame, 0xff, sizeof l->frame);
    memset(&l->code, 0xff, sizeof l->code);
    memset(&l->generator, 0xff, sizeof l->generator);
    memset(&l->object, 0xff, sizeof l->object);
    memset(&l->type, 0xff, sizeof l->type);
}

void python_layout_kinds(struct python_layout *l)
{
    bool wide = l->free_threaded && python_minor(l->version) >= PYTHON_VERSION(3, 14);
    bool has_kinds = l->object.str_state != LAYOUT_NONE;
    /* `interned` is two bits, and a whole byte in free-threaded builds from 3.14 on */
    l->object.kind_shift = wide ? 8 : 2;
    l->object.kind_mask = !has_kinds ? 0 : wide ? 0x0700 : 0x1c;
    l->object.compact_bit = !has_kinds ? 0 : wide ? 0x0800 : 0x20;
    l->object.ascii_bit = !has_kinds ? 0 : wide ? 0x1000 : 0x40;
}

/* ---- the row ---- */

static void shift(uint32_t *field, uint32_t bytes)
{
    *field = *field == LAYOUT_NONE ? LAYOUT_NONE : *field + bytes;
}

/* Objects only: frames are objects up to 3.10, states of threads and interpreters never. */
static void shift_objects(struct python_layout *l)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint16_t field = rows[i].field;
        bool of_frame = field >= FIELD(frame) && field < FIELD(code);
        if (field >= FIELD(code) || (of_frame && l->frames == PYTHON_FRAMES_HEAP)) {
            shift(field_of(l, field), TRACE_REFS_BYTES);
        }
    }
}

static uint8_t frames_of(uint32_t minor)
{
    return minor < PYTHON_VERSION(3, 11)   ? PYTHON_FRAMES_HEAP
           : minor < PYTHON_VERSION(3, 13) ? PYTHON_FRAMES_CFRAME
                                           : PYTHON_FRAMES_CURRENT;
}

static uint8_t lines_of(uint32_t minor)
{
    return minor < PYTHON_VERSION(3, 6)    ? PYTHON_LNOTAB_UNSIGNED
           : minor < PYTHON_VERSION(3, 10) ? PYTHON_LNOTAB
           : minor < PYTHON_VERSION(3, 11) ? PYTHON_LINETABLE
                                           : PYTHON_LOCATIONS;
}

void python_layout_start(struct python_layout *l, uint32_t version, bool free_threaded)
{
    *l = (struct python_layout){.version = version, .free_threaded = free_threaded};
    l->frames = frames_of(python_minor(version));
    l->lines = lines_of(python_minor(version));
    set_none(l);
}

/* Release 3.7.4 put a lock before the field; a last byte of 0 is a release that is not known. */
static void move_current(struct python_layout *l, enum elf_machine machine, bool musl)
{
    bool old = python_minor(l->version) == PYTHON_VERSION(3, 7) && (l->version & 0xff) != 0 &&
               l->version < 0x03070400;
    if (l->runtime.current == LAYOUT_NONE) {
        return;
    }
    l->runtime.current = old ? CURRENT_BEFORE_3_7_4 : l->runtime.current;
    l->runtime.current += machine == ELF_AARCH64 && !musl ? AARCH64_GLIBC_BYTES : 0;
}

bool python_layout_of(uint32_t version, enum elf_machine machine, bool musl, bool trace_refs,
                      struct python_layout *out, struct err *err)
{
    size_t column = 0;
    while (column < VERSIONS && versions[column] != python_minor(version)) {
        column++;
    }
    if (column == VERSIONS) {
        return python_refuse(version, err);
    }
    python_layout_start(out, version, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int16_t at = rows[i].at[column];
        *field_of(out, rows[i].field) = at == NO ? LAYOUT_NONE : (uint32_t)at;
    }
    move_current(out, machine, musl);
    if (trace_refs) {
        shift_objects(out);
    }
    python_layout_kinds(out);
    return python_layout_sizes(out);
}
