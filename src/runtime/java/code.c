/* The code heaps. Each is divided into segments, of which a byte tells how far back the blob that it is in begins: 0
 * at its first one, 0xff in none. A blob begins with a structure that says what its code is. Heaps grow; of what is
 * not in one as it was read last, they are read again. */
#include "runtime/java/private.h"

enum {
    SEGMENTS_AT_ONCE = 256,
    HOPS_MAX = 4096, /* blobs of half a gigabyte */
    FREE_SEGMENT = 0xff,
    LOG2_MAX = 16,
    BLOB_MAX = 1 << 28,
    FRAME_MAX = 1 << 20,
    HEADS_MAX = JAVA_HEAPS_MAX,
};

static bool read_heap(struct java *j, uint64_t heap)
{
    const uint32_t *f = j->layout.field;
    struct java_heap *h = &j->heap[j->heap_count];
    uint64_t memory = heap + f[JAVA_CODEHEAP_MEMORY], map = heap + f[JAVA_CODEHEAP_SEGMAP];
    bool good = java_word(j, memory + f[JAVA_SPACE_LOW], &h->low) &&
                java_word(j, memory + f[JAVA_SPACE_HIGH], &h->high) &&
                java_word(j, map + f[JAVA_SPACE_LOW], &h->segments) &&
                java_read(j, heap + f[JAVA_CODEHEAP_LOG2], &h->log2, sizeof h->log2);
    good =
        good && h->low < h->high && h->log2 > 0 && h->log2 <= LOG2_MAX && plausible(h->low) && plausible(h->segments);
    j->heap_count += good;
    return good;
}

bool java_read_heaps(struct java *j)
{
    const uint32_t *f = j->layout.field;
    uint64_t list, data, heap;
    j->heap_count = 0;
    if (j->layout.variable[JAVA_HEAPS] == 0) {
        return java_word(j, j->layout.variable[JAVA_HEAP_8], &heap) && read_heap(j, heap);
    }
    uint32_t count, len = has(f[JAVA_ARRAY_LEN]) ? f[JAVA_ARRAY_LEN] : f[JAVA_ARRAY_LEN_OLD];
    if (!has(len) || !has(f[JAVA_ARRAY_DATA]) || !java_word(j, j->layout.variable[JAVA_HEAPS], &list) ||
        !java_read(j, list + len, &count, sizeof count) || !java_word(j, list + f[JAVA_ARRAY_DATA], &data)) {
        return false;
    }
    for (uint32_t i = 0; i < count && i < HEADS_MAX; i++) {
        if (!java_word(j, data + i * sizeof heap, &heap) || !read_heap(j, heap)) {
            return false;
        }
    }
    return j->heap_count > 0;
}

static const struct java_heap *heap_of(const struct java *j, uint64_t address)
{
    for (size_t i = 0; i < j->heap_count; i++) {
        if (address >= j->heap[i].low && address < j->heap[i].high) {
            return &j->heap[i];
        }
    }
    return NULL;
}

/* The segment in which the blob of this one begins. */
static bool first_segment(const struct java *j, const struct java_heap *h, uint64_t *segment)
{
    unsigned char bytes[SEGMENTS_AT_ONCE];
    uint64_t from = *segment + 1; /* bytes[] are those from here on; none yet */
    for (int i = 0; i < HOPS_MAX; i++) {
        if (*segment < from) {
            from = *segment >= SEGMENTS_AT_ONCE - 1 ? *segment - (SEGMENTS_AT_ONCE - 1) : 0;
            if (!java_read(j, h->segments + from, bytes, (uint32_t)(*segment - from + 1))) {
                return false;
            }
        }
        unsigned char back = bytes[*segment - from];
        if (back == 0 || back == FREE_SEGMENT || back > *segment) {
            return back == 0;
        }
        *segment -= back;
    }
    return false;
}

static uint64_t code_of(const struct java *j, const unsigned char *head, uint64_t at, enum java_field begin,
                        enum java_field offset)
{
    return has(j->layout.field[offset]) ? at + java_field_u32(j, head, offset) : java_field_u64(j, head, begin);
}

static enum java_kind kind_of(const char *name)
{
    static const struct {
        const char *name;
        enum java_kind kind;
    } kinds[] = {
        {"nmethod", JAVA_COMPILED},    {"native nmethod", JAVA_COMPILED},        {"Interpreter", JAVA_INTERPRETER},
        {"vtable chunks", JAVA_CHUNK}, {"vtable/itable chunks", JAVA_CHUNK},     {"I2C/C2I adapters", JAVA_CHUNK},
        {"adapter for ", JAVA_CHUNK},  {"MethodHandlesAdapterBlob", JAVA_CHUNK},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strncmp(kinds[i].name, name, strlen(kinds[i].name)) == 0) {
            return kinds[i].kind;
        }
    }
    return JAVA_STUB;
}

/* Where the tables of a compiled method are: they have moved with the versions. */
static void find_tables_of(const struct java *j, const unsigned char *head, struct java_blob *b)
{
    const uint32_t *f = j->layout.field;
    uint64_t immutable = java_field_u64(j, head, JAVA_NM_IMMUTABLE), base = immutable != 0 ? immutable : b->at;
    b->method = java_field_u64(j, head, has(f[JAVA_NM_METHOD]) ? JAVA_NM_METHOD : JAVA_NM_METHOD_OLD);
    b->compile_id = java_field_u32(j, head, JAVA_NM_COMPILE_ID);
    b->tier = has(f[JAVA_NM_TIER]) ? head[f[JAVA_NM_TIER]] : 0; /* it has come to be a byte */
    b->orig_pc = java_field_u32(j, head, JAVA_NM_ORIG_PC);
    b->pcs = base + java_field_u32(j, head, JAVA_NM_PCS_OFFSET);
    if (has(f[JAVA_NM_SCOPES_OFFSET])) {
        b->scopes = base + java_field_u32(j, head, JAVA_NM_SCOPES_OFFSET);
    } else {
        b->scopes = java_field_u64(
            j, head, has(f[JAVA_NM_SCOPES_BEGIN_8]) ? JAVA_NM_SCOPES_BEGIN_8 : JAVA_NM_SCOPES_BEGIN_OLD);
    }
    uint64_t behind = base + java_field_u32(j, head, immutable != 0 ? JAVA_NM_IMMUTABLE_SIZE : JAVA_NM_DEPENDENCIES);
    b->pcs_limit = b->scopes > b->pcs && b->scopes < behind ? b->scopes : behind;
    if (has(f[JAVA_BLOB_MUTABLE])) {
        b->metadata = java_field_u64(j, head, JAVA_BLOB_MUTABLE) + java_field_u32(j, head, JAVA_BLOB_RELOCATION_SIZE);
    } else if (immutable != 0) {
        b->metadata =
            b->at + java_field_u32(j, head, JAVA_BLOB_DATA_OFFSET) + java_field_u16(j, head, JAVA_NM_METADATA);
    } else {
        b->metadata = b->at + java_field_u32(j, head, JAVA_NM_METADATA);
    }
    static const uint8_t deopts[] = {JAVA_NM_DEOPT, JAVA_NM_DEOPT_ENTRY, JAVA_NM_DEOPT_8};
    b->deopt = java_field_u64(j, head, JAVA_NM_DEOPT_OLD);
    for (size_t i = 0; i < sizeof deopts; i++) {
        b->deopt = has(f[deopts[i]]) ? b->at + java_field_u32(j, head, deopts[i]) : b->deopt;
    }
}

static bool read_blob(struct java *j, uint64_t at, struct java_blob *b)
{
    unsigned char head[JAVA_BLOB_BYTES] = {0};
    struct memory_piece piece[] = {{at, head, sizeof head, 0}, {0, b->name, sizeof b->name - 1, 0}};
    if (!memory_batch_read(j->memory, piece, 1, NULL) || piece[0].got < sizeof head / 2) {
        return false;
    }
    piece[1].address = java_field_u64(j, head, JAVA_BLOB_NAME);
    if (!plausible(piece[1].address) || !memory_batch_read(j->memory, &piece[1], 1, NULL) || piece[1].got == 0) {
        return false;
    }
    uint64_t size = java_field_u32(j, head, JAVA_BLOB_SIZE);
    int32_t words = (int32_t)java_field_u32(j, head, JAVA_BLOB_FRAME_SIZE);
    b->at = at;
    b->kind = kind_of(b->name);
    b->code = code_of(j, head, at, JAVA_BLOB_CODE_BEGIN, JAVA_BLOB_CODE_OFFSET);
    b->limit = code_of(j, head, at, JAVA_BLOB_CODE_END, JAVA_BLOB_DATA_OFFSET);
    b->frame_bytes = words > 0 && words < FRAME_MAX ? (uint32_t)words * 8 : 0;
    b->frame_complete = has(j->layout.field[JAVA_BLOB_CODE_OFFSET])
                            ? java_field_u16(j, head, JAVA_BLOB_FRAME_COMPLETE)
                            : java_field_u32(j, head, JAVA_BLOB_FRAME_COMPLETE);
    if (b->kind == JAVA_COMPILED) {
        find_tables_of(j, head, b);
    }
    return size < BLOB_MAX && b->code >= at && b->code <= b->limit && b->limit - at <= size;
}

bool java_find_blob(struct java *j, uint64_t address, struct java_blob *out)
{
    const struct java_heap *h = heap_of(j, address);
    if (h == NULL && java_read_heaps(j)) {
        h = heap_of(j, address);
    }
    *out = (struct java_blob){0};
    if (h == NULL) {
        return false;
    }
    uint64_t segment = (address - h->low) >> h->log2;
    return first_segment(j, h, &segment) &&
           read_blob(j, h->low + (segment << h->log2) + j->layout.size[JAVA_SIZE_HEAP_BLOCK], out) &&
           address >= out->code && address < out->limit;
}
