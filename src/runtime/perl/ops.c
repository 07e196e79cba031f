/* The functions of Perl's operations. Two tables that are exported have the operations' names and their functions, so
 * that these have names where no symbol gives them one (Debian's since 5.38). How long a function is the sorted table
 * of unwind information tells, which knows where each one begins. */
#include "runtime/perl/private.h"

#include "runtime/common/image.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    OPS_MAX = 1024, OP_NAME_MAX = 32,
    HEADER_BYTES = 12, ENTRY_BYTES = 8, /* of .eh_frame_hdr, and of its table: two distances from its start */
    ENTRIES_MAX = 1 << 20,
    POINTER = 0x1b, COUNT = 0x03, TABLE = 0x3b, /* how it has its numbers: 4 bytes each */
};

struct op {
    uint64_t start, limit;
    unsigned number;
    char name[OP_NAME_MAX];
};

struct perl_ops {
    struct op at[OPS_MAX]; /* by start, once it is open for names */
    size_t count;
    char text[OP_NAME_MAX + 8]; /* the last answer */
};

static uint64_t exported(struct elf *elf, const char *name)
{
    struct elf_symbol symbol;
    return elf_find_dynamic(elf, name, &symbol) ? symbol.address : 0;
}

static bool is_name(const char *text)
{
    size_t len = 0;
    for (; len < OP_NAME_MAX && text[len] != '\0'; len++) {
        if ((text[len] < 'a' || text[len] > 'z') && text[len] != '_' && (text[len] < '0' || text[len] > '9')) {
            return false;
        }
    }
    return len > 0 && len < OP_NAME_MAX;
}

struct perl_ops *perl_ops_open(struct elf *elf)
{
    uint64_t names = exported(elf, "PL_op_name"), functions = exported(elf, "PL_ppaddr"), offset;
    struct perl_ops *ops = calloc(1, sizeof *ops);
    struct image_pointers pointers;
    bool good = names != 0 && functions != 0 && ops != NULL;
    image_pointers_open(&pointers, elf);
    while (good && ops->count < OPS_MAX) {
        struct op *op = &ops->at[ops->count];
        uint64_t name = image_pointer_at(&pointers, names + 8 * ops->count);
        op->number = (unsigned)ops->count;
        op->start = image_pointer_at(&pointers, functions + 8 * ops->count);
        good = name != 0 && op->start != 0 && elf_offset_of(elf, name, &offset) &&
               elf_read(elf, offset, op->name, OP_NAME_MAX, NULL) && is_name(op->name);
        ops->count += good;
    }
    image_pointers_close(&pointers);
    return ops;
}

void perl_ops_close(void *ops)
{
    free(ops);
}

uint64_t perl_ops_find(const struct perl_ops *ops, const char *name)
{
    for (size_t i = 0; ops != NULL && i < ops->count; i++) {
        if (strcmp(ops->at[i].name, name) == 0) {
            return ops->at[i].start;
        }
    }
    return 0;
}

bool perl_ops_at(const struct perl_ops *ops, size_t number, uint64_t *start, const char **name)
{
    if (ops == NULL || number >= ops->count) {
        return false;
    }
    *start = ops->at[number].start;
    *name = ops->at[number].name;
    return true;
}

/* ---- names for their functions ---- */

static int by_start(const void *left, const void *right)
{
    const struct op *a = left, *b = right;
    return a->start != b->start ? (a->start < b->start ? -1 : 1) : (a->number > b->number) - (a->number < b->number);
}

/* Of operations that share a function the first one names it. */
static void set_in_order(struct perl_ops *ops)
{
    size_t kept = 0;
    qsort(ops->at, ops->count, sizeof ops->at[0], by_start);
    for (size_t i = 0; i < ops->count; i++) {
        if (kept == 0 || ops->at[i].start != ops->at[kept - 1].start) {
            ops->at[kept++] = ops->at[i];
        }
    }
    ops->count = kept;
}

/* Each operation ends where the next function begins: both lists are in order. */
static void find_limits(struct perl_ops *ops, const unsigned char *table, size_t count, uint64_t base)
{
    size_t at = 0;
    for (size_t i = 0; i + 1 < count && at < ops->count; i++) {
        uint64_t start = base + (uint64_t)(int64_t)(int32_t)load_u32(table + i * ENTRY_BYTES);
        uint64_t next = base + (uint64_t)(int64_t)(int32_t)load_u32(table + (i + 1) * ENTRY_BYTES);
        while (at < ops->count && ops->at[at].start < start) {
            at++;
        }
        if (at < ops->count && ops->at[at].start == start) {
            ops->at[at].limit = next;
        }
    }
}

static bool take_limits(struct perl_ops *ops, struct elf *elf)
{
    const struct elf_range *range = &elf->eh_frame_hdr;
    unsigned char header[HEADER_BYTES];
    if (range->bytes < HEADER_BYTES || !elf_read(elf, range->offset, header, sizeof header, NULL) ||
        header[1] != POINTER || header[2] != COUNT || header[3] != TABLE) {
        return false;
    }
    size_t count = load_u32(header + 8), room = (size_t)least((range->bytes - HEADER_BYTES) / ENTRY_BYTES, ENTRIES_MAX);
    count = count < room ? count : room;
    unsigned char *table = malloc(count * ENTRY_BYTES + 1);
    bool good = table != NULL && elf_read(elf, range->offset + HEADER_BYTES, table, count * ENTRY_BYTES, NULL);
    if (good) {
        find_limits(ops, table, count, range->address);
    }
    free(table);
    return good;
}

/* Only of a file whose symbols do not name them. */
void *perl_open_code(struct elf *elf, struct err *why)
{
    (void)why;
    if (exported(elf, "Perl_runops_standard") == 0 || exported(elf, "Perl_pp_null") != 0 || elf->is_32bit ||
        elf->tables[ELF_SYMTAB].count != 0) {
        return NULL;
    }
    struct perl_ops *ops = perl_ops_open(elf);
    if (ops != NULL) {
        set_in_order(ops);
    }
    if (ops == NULL || ops->count == 0 || !take_limits(ops, elf)) {
        perl_ops_close(ops);
        return NULL;
    }
    return ops;
}

bool perl_resolve(void *code, const struct runtime_place *at, struct runtime_resolved *out)
{
    struct perl_ops *ops = code;
    size_t low = 0, high = ops->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ops->at[middle].start <= at->address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || at->address >= ops->at[low - 1].limit) {
        return false;
    }
    (void)snprintf(ops->text, sizeof ops->text, "Perl_pp_%s", ops->at[low - 1].name);
    struct str name = str_of(ops->text);
    out->caller = (struct runtime_caller){.rule = RUNTIME_RULE_NONE};
    out->lines.kind = FRAME_NATIVE;
    out->lines.count = 1;
    out->lines.line[0] = (struct source_line){.name = name, .system_name = name};
    return true;
}
