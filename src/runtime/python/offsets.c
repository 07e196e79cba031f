/*
 * _Py_DebugOffsets: from 3.13 on a process declares at the start of its _PyRuntime where the fields of
 * its structures are, as a list of 64-bit numbers whose places depend on the version only.
 *
 * Source: Include/internal/pycore_debug_offsets.h (3.13: pycore_runtime.h), tags v3.13.0, v3.14.0,
 * v3.15.0. Not declared there: the flags and the version of a code object, which stand 4 bytes before
 * and 40 behind co_argcount (Include/cpython/code.h, unchanged since 3.12); tstate.datastack_top,
 * behind datastack_chunk; holds_gil of 3.14, behind the status bits; sizes of non-ASCII str before
 * 3.15.
 */
#include "runtime/python/private.h"

#include "base/cursor.h"

enum {
    TABLES = 3,
    COOKIE_BYTES = 8,
    FREE_THREADED_AT = 16,
    SIZE_MAX_BYTES = 1 << 20, /* of any structure: CPython's own check has the same */
    NONE = 0,                 /* this version does not tell it */
};

enum part { RUNTIME, INTERP, THREAD, FRAME, CODE, OBJECT, BYTES, TEXT, COLLECTOR, PARTS };

/* Where the size of each structure stands. */
static const uint16_t sizes[PARTS][TABLES] = {
    /*            3.13 3.14 3.15 */
    [RUNTIME] =   { 24,  24,  24},
    [INTERP] =    { 48,  48,  48},
    [THREAD] =    {152, 176, 176},
    [FRAME] =     {224, 248, 312},
    [CODE] =      {272, 312, 376},
    [OBJECT] =    {352, 400, 464},
    [BYTES] =     {512, 592, 688},
    [TEXT] =      {536, 616, 712},
    [COLLECTOR] = {568, 648, 752},
};

/* What is being read; the last ones are no offsets yet. */
struct declared {
    struct python_layout layout;
    uint32_t size[PARTS];
    uint32_t collector, collecting; /* in the interpreter's state; in the collector's */
    uint32_t own_gil, holder, locked; /* in the interpreter's state */
};

#define FIELD(name) offsetof(struct declared, layout.name)
#define RAW(name) offsetof(struct declared, name)

static const struct row {
    uint16_t field;
    uint8_t part;
    uint8_t width; /* bytes of the field, which is aligned to it */
    bool free_threaded; /* only such builds have it, 0 in others */
    uint16_t at[TABLES];
} rows[] = {
    /*                                                           3.13 3.14 3.15 */
    {FIELD(runtime.finalizing),       RUNTIME,   8, false, {      32,  32,  32}},
    {FIELD(runtime.head),             RUNTIME,   8, false, {      40,  40,  40}},
    {FIELD(interp.id),                INTERP,    8, false, {      56,  56,  56}},
    {FIELD(interp.next),              INTERP,    8, false, {      64,  64,  64}},
    {FIELD(interp.threads),           INTERP,    8, false, {      72,  72,  72}},
    {RAW(collector),                  INTERP,    8, false, {      80,  88,  88}},
    {FIELD(interp.modules),           INTERP,    8, false, {      88, NONE, NONE}},
    {FIELD(interp.gil),               INTERP,    8, false, {     112, 120, 120}},
    {RAW(own_gil),                    INTERP,    8, false, {     120, 128, 128}},
    {RAW(locked),                     INTERP,    4, false, {     136, 144, 144}},
    {RAW(holder),                     INTERP,    8, false, {     144, 152, 152}},
    {FIELD(interp.code_generation),   INTERP,    8, false, {    NONE, 160, 160}},
    {FIELD(interp.tlbc_generation),   INTERP,    4, true,  {    NONE, 168, 168}},
    {FIELD(thread.next),              THREAD,    8, false, {     168, 192, 192}},
    {FIELD(thread.interp),            THREAD,    8, false, {     176, 200, 200}},
    {FIELD(thread.frame),             THREAD,    8, false, {     184, 208, 208}},
    {FIELD(thread.base_frame),        THREAD,    8, false, {    NONE, NONE, 216}},
    {FIELD(thread.thread_id),         THREAD,    8, false, {     192, 216, 240}},
    {FIELD(thread.native_thread_id),  THREAD,    8, false, {     200, 224, 248}},
    {FIELD(thread.chunk),             THREAD,    8, false, {     208, 232, 256}},
    {FIELD(thread.status),            THREAD,    4, false, {     216, 240, 264}},
    {FIELD(thread.holds_gil),         THREAD,    4, false, {    NONE, NONE, 272}},
    {FIELD(thread.gil_requested),     THREAD,    4, false, {    NONE, NONE, 280}},
    {FIELD(frame.previous),           FRAME,     8, false, {     232, 256, 320}},
    {FIELD(frame.code),               FRAME,     8, false, {     240, 264, 328}},
    {FIELD(frame.position),           FRAME,     8, false, {     248, 272, 336}},
    {FIELD(frame.locals),             FRAME,     8, false, {     256, 280, 344}},
    {FIELD(frame.owner),              FRAME,     1, false, {     264, 288, 352}},
    {FIELD(frame.tlbc_index),         FRAME,     4, true,  {    NONE, 304, 368}},
    {FIELD(code.file),                CODE,      8, false, {     280, 320, 384}},
    {FIELD(code.name),                CODE,      8, false, {     288, 328, 392}},
    {FIELD(code.qualname),            CODE,      8, false, {     296, 336, 400}},
    {FIELD(code.lines),               CODE,      8, false, {     304, 344, 408}},
    {FIELD(code.first_line),          CODE,      4, false, {     312, 352, 416}},
    {FIELD(code.argcount),            CODE,      4, false, {     320, 360, 424}},
    {FIELD(code.bytecode),            CODE,      1, false, {     344, 384, 448}},
    {FIELD(code.tlbc),                CODE,      8, true,  {    NONE, 392, 456}},
    {FIELD(object.type),              OBJECT,    8, false, {     360, 408, 472}},
    {FIELD(object.size),              BYTES,     8, false, {     520, 600, 696}},
    {FIELD(object.bytes_data),        BYTES,     1, false, {     528, 608, 704}},
    {FIELD(object.str_state),         TEXT,      4, false, {     544, 624, 720}},
    {FIELD(object.str_length),        TEXT,      8, false, {     552, 632, 728}},
    {RAW(collecting),                 COLLECTOR, 4, false, {     576, 656, 760}},
};

/* Where the sizes of str objects stand: they are sizes, and as offsets one past the end. */
static const uint16_t ascii_at[TABLES] = {560, 640, 736};
static const uint16_t compact_at[TABLES] = {NONE, NONE, 744};

/* Where a generator's size and two fields stand, and the stack pointer of a frame. */
enum { GENERATOR_FRAME = 16, GENERATOR_STATE = 24, GENERATOR_MAX = 256 };
static const uint16_t generator_at[TABLES] = {NONE, 664, 792};
static const uint16_t top_at[TABLES] = {NONE, 296, 360};

static uint64_t number_at(struct str runtime, size_t at)
{
    struct cursor c = cursor_of(runtime.ptr, runtime.len);
    cursor_skip(&c, at);
    return cursor_u64(&c);
}

static bool refuse(const struct declared *declared, struct err *err, const char *what)
{
    char text[PYTHON_VERSION_TEXT];
    python_version_text(declared->layout.version, text);
    return err_set(err, ERR_UNSUPPORTED, 0,
                   "CPython %s describes its memory in a way not known here (%s)", text, what);
}

/* ---- version ---- */

/* The list moved while these versions were being made. */
static bool is_early(uint32_t version)
{
    uint32_t first = python_minor(version) == PYTHON_VERSION(3, 15) ? 0xb4 : 0xc1;
    return (version & 0xff00) == 0 && (version & 0xff) < first;
}

bool python_tells_layout(const void *runtime, size_t len)
{
    return len >= COOKIE_BYTES && memcmp(runtime, "xdebugpy", COOKIE_BYTES) == 0;
}

static bool start(struct declared *declared, struct str runtime, size_t *table, struct err *err)
{
    uint32_t version = (uint32_t)number_at(runtime, COOKIE_BYTES);
    uint64_t free_threaded = number_at(runtime, FREE_THREADED_AT);
    uint32_t minor = python_minor(version);
    char text[PYTHON_VERSION_TEXT];
    if (!python_tells_layout(runtime.ptr, runtime.len) || free_threaded > 1) {
        return err_set(err, ERR_MALFORMED, 0, "_PyRuntime does not begin with _Py_DebugOffsets");
    }
    if (minor < PYTHON_VERSION(3, 13) || minor >= PYTHON_VERSION(4, 0)) {
        return python_refuse(version, err);
    }
    python_version_text(version, text);
    if (is_early(version)) {
        return err_set(err, ERR_UNSUPPORTED, 0,
                       "CPython %s is a test release whose layout was not final", text);
    }
    *table = minor == PYTHON_VERSION(3, 13) ? 0 : minor == PYTHON_VERSION(3, 14) ? 1 : 2;
    python_layout_start(&declared->layout, version, free_threaded == 1);
    return true;
}

/* ---- numbers ---- */

static bool read_sizes(struct declared *declared, struct str runtime, size_t table)
{
    for (size_t i = 0; i < PARTS; i++) {
        uint64_t size = number_at(runtime, sizes[i][table]);
        if (size == 0 || size >= SIZE_MAX_BYTES) {
            return false;
        }
        declared->size[i] = (uint32_t)size;
    }
    return true;
}

static bool read_row(struct declared *declared, struct str runtime, size_t table, const struct row *row)
{
    uint32_t *out = (uint32_t *)(void *)((char *)declared + row->field);
    uint64_t at = number_at(runtime, row->at[table]);
    *out = LAYOUT_NONE;
    if (row->at[table] == NONE || (row->free_threaded && !declared->layout.free_threaded)) {
        return true;
    }
    if (row->at[table] + 8U > runtime.len || at % row->width != 0 || at >= declared->size[row->part] ||
        declared->size[row->part] - at < row->width) {
        return false;
    }
    *out = (uint32_t)at;
    return true;
}

static bool read_rows(struct declared *declared, struct str runtime, size_t table)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (!read_row(declared, runtime, table, &rows[i])) {
            return false;
        }
    }
    return true;
}

static bool read_text_sizes(struct declared *declared, struct str runtime, size_t table)
{
    struct python_layout *l = &declared->layout;
    uint64_t ascii = number_at(runtime, ascii_at[table]), compact = ascii + 16;
    if (compact_at[table] != NONE) {
        compact = number_at(runtime, compact_at[table]);
    }
    l->object.str_ascii = (uint32_t)ascii;
    l->object.str_compact = l->object.str_pointer = (uint32_t)compact;
    return ascii > l->object.str_state && ascii <= 256 && compact > ascii && compact <= 256;
}

/* Only dumps want it: without it there are no tasks that wait, nor holders of locks. */
static void read_generator(struct declared *declared, struct str runtime, size_t table)
{
    size_t at = generator_at[table];
    uint64_t size = number_at(runtime, at), top = number_at(runtime, top_at[table]);
    uint64_t frame = number_at(runtime, at + GENERATOR_FRAME), state = number_at(runtime, at + GENERATOR_STATE);
    if (at != NONE && size <= GENERATOR_MAX && frame % 8 == 0 && frame < size && state < size && top % 8 == 0 &&
        top + 8 <= declared->size[FRAME] && top + 8 <= LAYOUT_FRAME_MAX && declared->size[FRAME] <= size - frame) {
        declared->layout.generator.bytes = (uint32_t)size;
        declared->layout.generator.state = (uint32_t)state;
        declared->layout.generator.frame = (uint32_t)frame;
        declared->layout.frame.top = (uint32_t)top;
    }
}

/* ---- what is not declared ---- */

static bool add_undeclared(struct declared *declared)
{
    struct python_layout *l = &declared->layout;
    if (l->code.argcount < 4 || l->code.argcount + 44 > declared->size[CODE] ||
        l->thread.chunk + 16 > declared->size[THREAD]) {
        return false;
    }
    l->code.flags = l->code.argcount - 4;
    l->code.version = l->code.argcount + 40;
    l->thread.top = l->thread.chunk + 8;
    if (python_minor(l->version) == PYTHON_VERSION(3, 14)) {
        l->thread.holds_gil = l->thread.status + 4;
    }
    l->type.basicsize = l->object.type + 24;
    l->type.members = l->object.type + 232;
    return true;
}

/* The holder is declared as a field of the interpreter's own GIL, and wanted in the one it uses. */
static bool place_nested(struct declared *declared)
{
    struct python_layout *l = &declared->layout;
    if (declared->holder < declared->own_gil || declared->locked < declared->own_gil ||
        declared->collector + declared->size[COLLECTOR] > declared->size[INTERP]) {
        return false;
    }
    l->interp.gil_holder = declared->holder - declared->own_gil;
    l->interp.gil_locked = declared->locked - declared->own_gil;
    l->interp.collecting = declared->collector + declared->collecting;
    return true;
}

/* A version newer than this file: only when what it tells could well be the layout of 3.15. */
static bool is_plausible(const struct declared *declared)
{
    uint32_t text = declared->layout.object.str_ascii;
    return python_minor(declared->layout.version) <= PYTHON_VERSION(3, 15) ||
           (declared->size[FRAME] >= 80 && declared->size[FRAME] <= 128 && declared->size[CODE] >= 200 &&
            declared->size[CODE] <= 320 && text >= 40 && text <= 64);
}

bool python_layout_read(const void *runtime, size_t len, struct python_layout *out, struct err *err)
{
    struct str bytes = {runtime, len};
    struct declared declared;
    size_t table = 0;
    memset(&declared, 0, sizeof declared);
    if (!start(&declared, bytes, &table, err)) {
        return false;
    }
    if (!read_sizes(&declared, bytes, table)) {
        return refuse(&declared, err, "sizes");
    }
    if (!read_rows(&declared, bytes, table) || !read_text_sizes(&declared, bytes, table)) {
        return refuse(&declared, err, "offsets");
    }
    if (!place_nested(&declared) || !add_undeclared(&declared) || !is_plausible(&declared) ||
        !python_layout_sizes(&declared.layout)) {
        return refuse(&declared, err, "structures");
    }
    read_generator(&declared, bytes, table);
    python_layout_kinds(&declared.layout);
    *out = declared.layout;
    return true;
}
