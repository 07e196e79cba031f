/*
 * Plumbing without names: in a stripped file the functions that call builtins are known to nobody,
 * but others hand them out. PyCMethod_New and PyDescr_NewMethod put the address of one of a handful
 * of functions into what they make, by its calling convention (Objects/methodobject.c,
 * descrobject.c), so every address of a function that their code takes is one. Exported static
 * types name some more, and a table in Objects/typeobject.c (slotdefs) has all that call a class's
 * "__methods__": records {char *name; int offset; void *function; wrapper; char *doc; int flags;
 * PyObject *name_object}, found by a name that stands in it. And whatever calls the loop itself, by
 * a call of its first address, runs a function in Python or resumes a generator: Python/ceval.c and
 * Objects/genobject.c do, and what a compiler put them into.
 */
#include "runtime/python/binary.h"

#include "base/cursor.h"
#include "runtime/common/image.h"

#include <stdlib.h>

enum {
    CODE_MAX_BYTES = 16384,
    CALL = 128,     /* tp_call in PyTypeObject, Include/cpython/object.h: unchanged since 2.7 */
    NEXT = 224,     /* tp_iternext */
    RECORD_BYTES = 56,
    RECORD_FUNCTION = 16,
    RECORD_WRAPPER = 24,
    RECORDS_MAX = 128, /* 2.7 to 3.15 have 80 to 100 */
    PLACES_MAX = 8,    /* where the name stands, and where pointers to it do */
};

static const char *const makers[] = {"PyCMethod_New", "PyCFunction_NewEx", "PyDescr_NewMethod",
                                     "PyMethod_New", "PyFunction_NewWithQualName"};

static const struct {
    const char *type;
    uint64_t slot;
} slots[] = {
    {"PyType_Type", CALL},        {"PyCFunction_Type", CALL},        {"PyMethod_Type", CALL},
    {"PyFunction_Type", CALL},    {"PyMethodDescr_Type", CALL},      {"PyWrapperDescr_Type", CALL},
    {"PyClassMethodDescr_Type", CALL}, {"_PyMethodWrapper_Type", CALL}, {"PyGen_Type", NEXT},
};

struct taking {
    struct elf *elf;
    const struct runtime_code *code;
    struct python_binary *binary;
    struct image_pointers pointers;
};

/* Is it where a function begins? */
static void add(struct taking *t, uint64_t address)
{
    uint64_t start, limit;
    if (address >= t->elf->text_start && address < t->elf->text_limit &&
        t->code->function_at(t->code->context, address, &start, &limit) && start == address) {
        code_ranges_add(&t->binary->ranges, start, limit, RUNTIME_NATIVE_PLUMBING);
    }
}

/* ---- addresses in code ---- */

/* mov qword [REG + disp], imm32: where the number is, 0 for another instruction. */
static size_t stored_at(const unsigned char *p, size_t len)
{
    static const size_t displacement[] = {0, 1, 4};
    unsigned mode = p[2] >> 6, base = p[2] & 7;
    size_t at = mode < 3 ? 3 + displacement[mode] + (base == 4) : 0;
    bool is_store = p[1] == 0xc7 && (p[2] & 0x38) == 0 && mode < 3 && (mode > 0 || base != 5);
    return is_store && at + 4 <= len ? at : 0;
}

/* lea REG, [rip + disp32]; mov REG, imm32, as 32 bits and sign-extended to 64, and into memory. */
static void take_x86(struct taking *t, const unsigned char *code, size_t len, uint64_t address)
{
    for (size_t at = 0; at + 7 <= len; at++) {
        const unsigned char *p = code + at;
        bool wide = (p[0] & 0xfa) == 0x48; /* REX.W, with any register */
        size_t stored = wide && !t->elf->is_pie ? stored_at(p, len - at) : 0;
        if (wide && p[1] == 0x8d && (p[2] & 0xc7) == 0x05) {
            struct cursor c = cursor_of(p + 3, 4);
            add(t, address + at + 7 + (uint64_t)(int64_t)(int32_t)cursor_u32(&c));
        } else if (!t->elf->is_pie &&
                   ((p[0] & 0xf8) == 0xb8 || (wide && p[1] == 0xc7 && (p[2] & 0xf8) == 0xc0))) {
            struct cursor c = cursor_of(p + (wide ? 3 : 1), 4);
            add(t, cursor_u32(&c));
        } else if (stored != 0) {
            struct cursor c = cursor_of(p + stored, 4);
            add(t, cursor_u32(&c));
        }
    }
}

/* adrp REG, page; add REG2, REG, low bits (Arm ARM C6.2). */
static void take_aarch64(struct taking *t, const unsigned char *code, size_t len,
                         uint64_t address)
{
    uint64_t page[32] = {0};
    for (size_t at = 0; at + 4 <= len; at += 4) {
        struct cursor c = cursor_of(code + at, 4);
        uint32_t word = cursor_u32(&c), from = word >> 5 & 31;
        if ((word & 0x9f000000) == 0x90000000) {
            uint32_t pages = (word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3);
            uint64_t distance = (((uint64_t)pages ^ 0x100000) - 0x100000) << 12;
            page[word & 31] = ((address + at) & ~(uint64_t)0xfff) + distance;
        } else if ((word & 0xffc00000) == 0x91000000 && page[from] != 0) {
            add(t, page[from] + (word >> 10 & 0xfff));
        }
    }
}

static void take_from(struct taking *t, const char *maker)
{
    struct elf_symbol symbol;
    uint64_t offset, start, limit;
    if (!elf_find_dynamic(t->elf, maker, &symbol) ||
        !t->code->function_at(t->code->context, symbol.address, &start, &limit) ||
        start != symbol.address || limit - start > CODE_MAX_BYTES || limit <= start ||
        !elf_offset_of(t->elf, start, &offset)) {
        return;
    }
    size_t len = (size_t)(limit - start);
    unsigned char *code = malloc(len);
    if (code != NULL && elf_read(t->elf, offset, code, len, NULL)) {
        (t->elf->machine == ELF_AARCH64 ? take_aarch64 : take_x86)(t, code, len, start);
    }
    free(code);
}

/* ---- calls of the loop ---- */

struct calls {
    struct taking *taking;
    uint64_t loop;
};

static void add_around(struct taking *t, uint64_t address)
{
    uint64_t start, limit;
    if (t->code->function_at(t->code->context, address, &start, &limit)) {
        code_ranges_add(&t->binary->ranges, start, limit, RUNTIME_NATIVE_PLUMBING);
    }
}

static bool take_calls_x86(void *context, const struct image_piece *piece)
{
    const struct calls *calls = context;
    const unsigned char *from = piece->bytes, *end = piece->bytes + piece->len;
    while (end - from >= 5 && (from = memchr(from, 0xe8, (size_t)(end - from) - 4)) != NULL) {
        struct cursor c = cursor_of(++from, 4);
        uint64_t next = piece->address + (uint64_t)(from - piece->bytes) + 4;
        if (next + (uint64_t)(int64_t)(int32_t)cursor_u32(&c) == calls->loop) {
            add_around(calls->taking, next - 1);
        }
    }
    return false;
}

/* bl (Arm ARM C6.2). */
static bool take_calls_aarch64(void *context, const struct image_piece *piece)
{
    const struct calls *calls = context;
    for (size_t at = (4 - piece->address % 4) % 4; at + 4 <= piece->len; at += 4) {
        struct cursor c = cursor_of(piece->bytes + at, 4);
        uint32_t word = cursor_u32(&c);
        uint64_t distance = (((uint64_t)word & 0x3ffffff) ^ 0x2000000) * 4 - 0x2000000 * 4ull;
        if ((word & 0xfc000000) == 0x94000000 && piece->address + at + distance == calls->loop) {
            add_around(calls->taking, piece->address + at);
        }
    }
    return false;
}

static void take_callers(struct taking *t)
{
    const struct python_binary *b = t->binary;
    for (size_t i = 0; i < b->ranges.count; i++) {
        if (b->ranges.at[i].native == RUNTIME_NATIVE_LOOP) {
            struct calls calls = {t, b->ranges.at[i].start};
            (void)image_scan(t->elf, IMAGE_EXECUTE,
                                    t->elf->machine == ELF_AARCH64 ? take_calls_aarch64
                                                                   : take_calls_x86,
                                    &calls);
            return; /* its other parts are never called */
        }
    }
}

/* ---- addresses in data ---- */

static void take_slot(struct taking *t, const char *type, uint64_t slot)
{
    struct elf_symbol symbol;
    if (elf_find_dynamic(t->elf, type, &symbol)) {
        add(t, image_pointer_at(&t->pointers, symbol.address + slot));
    }
}

struct places {
    uint64_t at[PLACES_MAX];
    size_t count;
};

/* Linkers let a text be the end of a longer one: any of these may be the one that is pointed to. */
static bool find_name(void *context, const struct image_piece *piece)
{
    static const char name[] = "__getattribute__";
    struct places *places = context;
    const unsigned char *from = piece->bytes, *end = piece->bytes + piece->len;
    while (places->count < PLACES_MAX &&
           (from = memmem(from, (size_t)(end - from), name, sizeof name)) != NULL) {
        places->at[places->count++] = piece->address + (uint64_t)(from++ - piece->bytes);
    }
    return places->count == PLACES_MAX;
}

/* "__NAME__"; in 2.7 one is "next". */
static bool is_method_name(struct taking *t, uint64_t address)
{
    unsigned char bytes[2];
    uint64_t offset;
    return address != 0 && elf_offset_of(t->elf, address, &offset) &&
           elf_read(t->elf, offset, bytes, sizeof bytes, NULL) &&
           (memcmp(bytes, "__", 2) == 0 || memcmp(bytes, "ne", 2) == 0);
}

/* From a record on, in steps of `step` bytes. */
static void take_records(struct taking *t, uint64_t record, uint64_t step)
{
    for (unsigned i = 0; i < RECORDS_MAX; i++, record += step) {
        if (!is_method_name(t, image_pointer_at(&t->pointers, record))) {
            return;
        }
        add(t, image_pointer_at(&t->pointers, record + RECORD_FUNCTION));
        add(t, image_pointer_at(&t->pointers, record + RECORD_WRAPPER));
    }
}

static void take_tables(struct taking *t)
{
    struct places names = {.count = 0};
    uint64_t at[PLACES_MAX];
    (void)image_scan(t->elf, 0, find_name, &names);
    if (names.count == 0) { /* older linkers: with the code */
        (void)image_scan(t->elf, IMAGE_EXECUTE, find_name, &names);
    }
    for (size_t i = 0; i < names.count; i++) {
        size_t count = image_pointers_to(&t->pointers, names.at[i], at, PLACES_MAX);
        for (size_t k = 0; k < count; k++) {
            take_records(t, at[k], RECORD_BYTES);
            take_records(t, at[k] - RECORD_BYTES, -(uint64_t)RECORD_BYTES);
        }
    }
}

void python_add_nameless(struct elf *elf, const struct runtime_code *code,
                         struct python_binary *binary)
{
    struct taking t = {.elf = elf, .code = code, .binary = binary};
    image_pointers_open(&t.pointers, elf);
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        take_from(&t, makers[i]);
    }
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        take_slot(&t, slots[i].type, slots[i].slot);
    }
    take_tables(&t);
    take_callers(&t);
    image_pointers_close(&t.pointers);
}
