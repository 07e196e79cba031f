/* The constants that V8's binary has for debuggers: variables of four bytes, whose values stand in the file. Those that
 * a version lacks are known by version. A constant that is neither told nor known refuses the binary: nothing is read
 * by the nearest layout. */
#include "runtime/v8/private.h"

#include <stdio.h>

enum {
    NAMES_MAX = 4,
    SYMBOL_MAX = 128,
    VALUE_MAX = 1 << 16,
    INT_LENGTH_SINCE = 7, /* version: before it a string's length is a small number */
    BY_VERSION = 14,
    TAGGED_SIZE = 8,
    BITS_MAX = 8,
    NEVER = VALUE_MAX - 1,
};

#define CONSTANT_ROW(id, otherwise, ...) {(int32_t)(otherwise), {__VA_ARGS__}},
static const struct {
    int32_t otherwise;
    const char *names[NAMES_MAX];
} constants[V8_CONSTANT_COUNT] = {V8_CONSTANTS(CONSTANT_ROW)};

static bool read_number(struct elf *elf, const char *name, int32_t *out, uint64_t *address)
{
    struct elf_symbol symbol;
    uint64_t offset;
    if (!elf_find_dynamic(elf, name, &symbol)) {
        return false;
    }
    *address = symbol.address;
    *out = 0; /* of .bss */
    return !elf_offset_of(elf, symbol.address, &offset) || elf_read(elf, offset, out, sizeof *out, NULL);
}

/* How long each instruction of the bytecode is, by how wide its operands are. */
static void read_bytecode_bytes(struct elf *elf, struct v8_layout *l)
{
    static const char name[] = "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE";
    struct elf_symbol symbol;
    uint64_t offset;
    if ((elf_find_dynamic(elf, name, &symbol) || elf_find_symbol(elf, ELF_SYMTAB, name, &symbol)) &&
        symbol.size <= sizeof l->bytecode_bytes && symbol.size % V8_SCALES == 0 &&
        elf_offset_of(elf, symbol.address, &offset) && elf_read(elf, offset, l->bytecode_bytes, symbol.size, NULL)) {
        l->bytecodes = (uint32_t)symbol.size / V8_SCALES;
    }
}

static bool read_version(struct elf *elf, struct v8_layout *l)
{
    static const char *const names[] = {"patch", "build", "minor", "major"};
    bool good = true;
    for (int i = 0; i < 4; i++) {
        char name[SYMBOL_MAX];
        snprintf(name, sizeof name, "_ZN2v88internal7Version%zu%s_E", strlen(names[i]) + 1, names[i]);
        good = good && read_number(elf, name, &l->version[3 - i], &l->version_at);
    }
    return good;
}

bool v8_is_sound(size_t which, int32_t value)
{
    if (which <= V8_FRAME_OFFSET) {
        return value < 0 && value >= -V8_HEAD_BYTES && value % 8 == 0;
    }
    if (which == V8_MAP_TYPE) {
        return value >= 0 && value <= V8_MAP_BYTES - 2;
    }
    if (which == V8_POSITION_MARKS || which == V8_POSITION_OTHERS) {
        return value >= 0 && value <= BITS_MAX;
    }
    bool is_field = which <= V8_CODE_POSITIONS;
    return which == V8_NOT_STRING ||
           (value >= 0 && value < VALUE_MAX && (!is_field || value <= V8_HEAD_BYTES - 8));
}

/* What versions do not tell of themselves, by what was seen in their memory: the last row that is not newer holds. */
static const struct {
    int32_t since;
    int32_t at[BY_VERSION];
} versions[] = {
    {6, {16, NEVER, -24, 54, 32, 40, 44, 0x3e, 8, 16, 24, 0, 0, 8}},
    {7, {16, NEVER, -24, 54, 32, 40, 44, 0x3e, 8, 16, 24, 0, 1, 7}},
    {9, {8, NEVER, -32, 54, 32, 40, 48, 0xf, 3, 16, 24, 0, 1, 7}},
    {10, {8, 75, -32, 56, 32, 40, 48, 0xf, 3, 16, 24, 0, 1, 7}},
    {11, {8, 75, -32, 54, 32, 56, 48, 0xf, 3, 16, 24, 0, 1, 7}},
    {12, {8, 75, -32, 64, 24, 52, 48, 0xf, 3, 8, 16, 0, 1, 7}},
    {13, {8, 75, -32, 64, 24, 56, 52, 0xf, 3, 8, 16, 0, 1, 7}},
    {14, {8, 75, -32, 64, 24, 56, 52, 0xf, 4, 8, 16, 2, 1, 8}},
};
static const uint8_t by_version[BY_VERSION] = {
    V8_SCOPE_SLOTS, V8_LOCALS_IN_TABLE, V8_FRAME_BYTECODE, V8_BYTECODE_DATA, V8_BYTECODE_POSITIONS,
    V8_CODE_SIZE,   V8_CODE_FLAGS,      V8_CODE_KIND_MASK, V8_CODE_REGEXP,   V8_CODE_DEOPTIMIZATION,
    V8_CODE_POSITIONS, V8_POSITION_MARKS, V8_POSITION_OTHERS, V8_DEOPT_INLININGS,
};

static void fill(int32_t *constant, int32_t value)
{
    if (*constant == (int32_t)LAYOUT_NONE) {
        *constant = value;
    }
}

static void take_by_version(struct v8_layout *l)
{
    size_t i = sizeof versions / sizeof versions[0];
    while (i > 1 && versions[i - 1].since > l->version[0]) {
        i--;
    }
    i--;
    for (size_t k = 0; k < BY_VERSION; k++) {
        fill(&l->at[by_version[k]], versions[i].at[k]);
    }
    fill(&l->at[V8_FRAME_OFFSET], l->at[V8_FRAME_BYTECODE] - 8);
}

bool v8_read_layout(struct elf *elf, struct v8_layout *out, struct err *why)
{
    uint64_t unused;
    *out = (struct v8_layout){0};
    if (!read_version(elf, out)) {
        return err_set(why, ERR_UNSUPPORTED, 0, "this V8 does not tell its version; with perf, node --perf-basic-prof "
                                                "names its functions");
    }
    for (size_t i = 0; i < V8_CONSTANT_COUNT; i++) {
        out->at[i] = constants[i].otherwise;
        bool found = false;
        for (size_t k = 0; k < NAMES_MAX && constants[i].names[k] != NULL && !found; k++) {
            char name[SYMBOL_MAX];
            snprintf(name, sizeof name, "v8dbg_%s", constants[i].names[k]);
            found = read_number(elf, name, &out->at[i], &unused);
        }
    }
    if (out->at[V8_TAGGED_SIZE] != TAGGED_SIZE) {
        return err_set(why, ERR_UNSUPPORTED, 0,
                       "this V8 compresses its pointers, and its functions are not read; with perf, node "
                       "--perf-basic-prof names them");
    }
    take_by_version(out);
    out->is_stripped = elf->tables[ELF_SYMTAB].count == 0;
    read_bytecode_bytes(elf, out);
    if (out->version[0] < INT_LENGTH_SINCE) {
        out->at[V8_STRING_LENGTH] += 4; /* the upper half of a small number */
    }
    for (size_t i = 0; i < V8_CONSTANT_COUNT; i++) {
        if (out->at[i] == (int32_t)LAYOUT_NONE || !v8_is_sound(i, out->at[i])) {
            return err_set(why, ERR_UNSUPPORTED, 0,
                           "V8 %d.%d does not tell what its functions look like (%s); with perf, "
                           "node --perf-basic-prof names them",
                           out->version[0], out->version[1], constants[i].names[0]);
        }
    }
    return true;
}
