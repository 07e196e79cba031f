/* HotSpot describes itself to debuggers: tables of {structure, field, offset or address}, which its library exports.
 * They are read from the process, where their texts' addresses are right; all of it is bounded, for a file may say
 * anything. */
#include "runtime/java/private.h"

#include <errno.h>
#include <stddef.h>

enum {
    ENTRIES_MAX = 1 << 14,
    STRIDE_MAX = 256,
    TEXT_MAX = 64, /* longer ones are none of ours */
    AT_ONCE = 64,
    OFFSET_MAX = 1 << 16,
};

#define FIELD_ROW(id, type, field) {type, field},
#define SIZE_ROW(id, type)         {type, NULL},
static const struct {
    const char *type, *field;
} fields[] = {JAVA_FIELDS(FIELD_ROW)}, statics[] = {JAVA_STATICS(FIELD_ROW)}, sizes[] = {JAVA_SIZES(SIZE_ROW)};

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
    {"gHotSpotVMStructs", offsetof(struct java_tables, structs)},
    {"gHotSpotVMStructEntryTypeNameOffset", offsetof(struct java_tables, type_name)},
    {"gHotSpotVMStructEntryFieldNameOffset", offsetof(struct java_tables, field_name)},
    {"gHotSpotVMStructEntryIsStaticOffset", offsetof(struct java_tables, is_static)},
    {"gHotSpotVMStructEntryOffsetOffset", offsetof(struct java_tables, offset)},
    {"gHotSpotVMStructEntryAddressOffset", offsetof(struct java_tables, address)},
    {"gHotSpotVMStructEntryArrayStride", offsetof(struct java_tables, stride)},
    {"gHotSpotVMTypes", offsetof(struct java_tables, types)},
    {"gHotSpotVMTypeEntryTypeNameOffset", offsetof(struct java_tables, size_name)},
    {"gHotSpotVMTypeEntrySizeOffset", offsetof(struct java_tables, size_size)},
    {"gHotSpotVMTypeEntryArrayStride", offsetof(struct java_tables, size_stride)},
};
enum { SYMBOL_COUNT = sizeof symbols / sizeof symbols[0] };

bool java_find_tables(struct elf *elf, struct java_tables *out)
{
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        struct elf_symbol symbol;
        if (!elf_find_dynamic(elf, symbols[i].name, &symbol)) {
            return false;
        }
        memcpy((char *)out + symbols[i].at, &symbol.address, sizeof symbol.address);
    }
    return true;
}

struct table { /* one of the two, of a process */
    struct memory_batch *memory;
    uint64_t at, stride;
    uint64_t text[2]; /* offsets in an entry */
    unsigned texts;
};

struct entry {
    unsigned char bytes[STRIDE_MAX];
    char text[2][TEXT_MAX];
};

static bool read_pieces(struct memory_batch *memory, struct memory_piece *pieces, size_t count)
{
    return memory_batch_read(memory, pieces, count, NULL);
}

/* The next entries and their texts. Returns how many there are before the end; -1: cannot be read. */
static int read_entries(const struct table *t, struct entry *entries)
{
    struct memory_piece piece[2 * AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        piece[i] = (struct memory_piece){t->at + (uint64_t)i * t->stride, entries[i].bytes, (uint32_t)t->stride, 0};
    }
    if (!read_pieces(t->memory, piece, AT_ONCE)) {
        return -1;
    }
    int count = 0;
    while (count < AT_ONCE && piece[count].got == t->stride && load_u64(entries[count].bytes + t->text[0]) != 0) {
        count++;
    }
    if (count < AT_ONCE && piece[count].got != t->stride) {
        return -1;
    }
    size_t wanted = 0;
    for (int i = 0; i < count; i++) {
        memset(entries[i].text, 0, sizeof entries[i].text);
        for (unsigned k = 0; k < t->texts; k++) {
            piece[wanted++] =
                (struct memory_piece){load_u64(entries[i].bytes + t->text[k]), entries[i].text[k], TEXT_MAX - 1, 0};
        }
    }
    return count == 0 || read_pieces(t->memory, piece, wanted) ? count : -1;
}

/* What is read at once of a structure has the field whole, or the field is none. */
static uint64_t farthest(size_t field)
{
    bool of_blob = field >= JAVA_BLOB_NAME && field <= JAVA_NM_DEOPT_ENTRY;
    bool of_method = field >= JAVA_CONST_POOL && field <= JAVA_POOL_FILE;
    bool of_symbol = field == JAVA_SYMBOL_LENGTH || field == JAVA_SYMBOL_LENGTH_HIGH;
    uint64_t bytes = of_blob     ? JAVA_BLOB_BYTES
                     : of_method ? JAVA_METHOD_BYTES
                     : of_symbol ? JAVA_SYMBOL_BYTES
                                 : OFFSET_MAX;
    return bytes - sizeof(uint64_t);
}

static void take_field(struct java_layout *l, const struct java_tables *t, const struct entry *entry)
{
    bool is_static = load_u32(entry->bytes + t->is_static) != 0;
    for (size_t i = 0; is_static && i < JAVA_STATIC_COUNT; i++) {
        if (strcmp(statics[i].type, entry->text[0]) == 0 && strcmp(statics[i].field, entry->text[1]) == 0) {
            l->variable[i] = load_u64(entry->bytes + t->address);
        }
    }
    for (size_t i = 0; !is_static && i < JAVA_FIELD_COUNT; i++) {
        uint64_t offset = load_u64(entry->bytes + t->offset);
        if (offset <= farthest(i) && strcmp(fields[i].type, entry->text[0]) == 0 &&
            strcmp(fields[i].field, entry->text[1]) == 0) {
            l->field[i] = (uint32_t)offset;
        }
    }
}

static void take_size(struct java_layout *l, const struct java_tables *t, const struct entry *entry)
{
    for (size_t i = 0; i < JAVA_SIZE_COUNT; i++) {
        uint64_t size = load_u64(entry->bytes + t->size_size);
        if (size < OFFSET_MAX && strcmp(sizes[i].type, entry->text[0]) == 0) {
            l->size[i] = (uint32_t)size;
        }
    }
}

static bool walk_table(struct table *t, const struct java_tables *tables, struct java_layout *l,
                       void (*take)(struct java_layout *, const struct java_tables *, const struct entry *))
{
    struct entry *entries = malloc(AT_ONCE * sizeof *entries);
    int count = entries != NULL ? AT_ONCE : -1;
    for (int all = 0; count == AT_ONCE && all < ENTRIES_MAX; all += count) {
        count = read_entries(t, entries);
        for (int i = 0; i < count; i++) {
            take(l, tables, &entries[i]);
        }
        t->at += (uint64_t)AT_ONCE * t->stride;
    }
    free(entries);
    return count >= 0 && count < AT_ONCE;
}

/* The exported variables' values. */
static bool read_tables(const struct java_tables *of, const struct runtime_process *process, struct java_tables *out)
{
    struct memory_piece piece[SYMBOL_COUNT];
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        uint64_t at;
        memcpy(&at, (const char *)of + symbols[i].at, sizeof at);
        piece[i] = (struct memory_piece){at + process->bias, (char *)out + symbols[i].at, sizeof at, 0};
    }
    bool good = read_pieces(process->memory, piece, SYMBOL_COUNT);
    for (size_t i = 0; i < SYMBOL_COUNT; i++) {
        good = good && piece[i].got == sizeof(uint64_t);
    }
    uint64_t most_at = STRIDE_MAX - 8;
    return good && out->stride <= STRIDE_MAX && out->stride >= 8 && out->size_stride <= STRIDE_MAX &&
           out->size_stride >= 8 && out->type_name <= most_at && out->field_name <= most_at &&
           out->is_static <= most_at && out->offset <= most_at && out->address <= most_at &&
           out->size_name <= most_at && out->size_size <= most_at;
}

static void read_version(const struct runtime_process *process, struct java_layout *l)
{
    static const uint8_t parts[] = {JAVA_MAJOR, JAVA_MINOR, JAVA_SECURITY};
    struct memory_piece piece[4];
    uint32_t packed = 0;
    for (size_t i = 0; i < 3; i++) {
        piece[i] = (struct memory_piece){l->variable[parts[i]], &l->version[i], sizeof l->version[i], 0};
    }
    piece[3] = (struct memory_piece){l->variable[JAVA_VERSION_8], &packed, sizeof packed, 0};
    (void)read_pieces(process->memory, piece, 4);
    if (packed != 0 && l->variable[JAVA_VERSION_8] != 0) { /* where the JVM's version is not the JDK's: 25.372 */
        l->version[0] = packed & 0xff;
        l->version[1] = packed >> 8 & 0xff;
        l->version[2] = packed >> 16 & 0xff;
    }
}

static bool is_whole(const struct java_layout *l)
{
    static const uint8_t needed[] = {
        JAVA_CODEHEAP_MEMORY, JAVA_CODEHEAP_SEGMAP, JAVA_CODEHEAP_LOG2,   JAVA_SPACE_LOW,     JAVA_SPACE_HIGH,
        JAVA_BLOB_NAME,       JAVA_BLOB_SIZE,       JAVA_BLOB_FRAME_SIZE, JAVA_METHOD_CONST,  JAVA_CONST_POOL,
        JAVA_CONST_CODE_SIZE, JAVA_CONST_NAME,      JAVA_POOL_HOLDER,     JAVA_KLASS_NAME,    JAVA_SYMBOL_BODY,
        JAVA_STUBS_BUFFER,    JAVA_STUBS_LIMIT,     JAVA_NM_PCS_OFFSET,   JAVA_NM_COMPILE_ID,
    };
    for (size_t i = 0; i < sizeof needed; i++) {
        if (!has(l->field[needed[i]])) {
            return false;
        }
    }
    for (size_t i = 0; i < JAVA_SIZE_COUNT; i++) {
        if (l->size[i] == 0) {
            return false;
        }
    }
    return (l->variable[JAVA_HEAPS] != 0 || l->variable[JAVA_HEAP_8] != 0) && l->variable[JAVA_STUB_QUEUE] != 0;
}

bool java_read_layout(const struct java_tables *tables, const struct runtime_process *process,
                      struct java_layout *out, struct err *why)
{
    struct java_tables here = {0};
    *out = (struct java_layout){0};
    for (size_t i = 0; i < JAVA_FIELD_COUNT; i++) {
        out->field[i] = LAYOUT_NONE;
    }
    bool good = read_tables(tables, process, &here);
    struct table structs = {process->memory, here.structs, here.stride, {here.type_name, here.field_name}, 2};
    struct table types = {process->memory, here.types, here.size_stride, {here.size_name, 0}, 1};
    good = good && walk_table(&structs, &here, out, take_field) && walk_table(&types, &here, out, take_size);
    if (!good) {
        return err_set(why, ERR_UNSUPPORTED, EAGAIN, "the JVM's tables cannot be read yet");
    }
    read_version(process, out);
    /* a library that is being loaded has not all its texts' addresses yet */
    return is_whole(out) ||
           err_set(why, ERR_UNSUPPORTED, EAGAIN, "this JVM does not describe its code as HotSpot does");
}
