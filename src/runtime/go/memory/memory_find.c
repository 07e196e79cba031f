/* Where a Go process has its profiles' tables. Symbols tell, where the file has them. In a stripped program functions
 * are looked up in the pclntab, which every Go program has, and the variables that their instructions name are tried:
 * runtime.stkbucket names the three lists of buckets, runtime.allgadd the goroutines. Rather than by searching the
 * data for what looks like a list: that finds nothing as long as a list is empty, and may find an old copy. What is
 * tried is believed when it leads to buckets or goroutines, and which list is which is told by its first bucket each
 * time it is read.
 *
 * Single numbers (rates, the cycle) have no such proof. They are taken from one instruction of a function that all
 * versions have: see `numbers`. */
#include <stddef.h>
#include <stdlib.h>

#include "runtime/common/load.h"
#include "runtime/go/memory/memory_private.h"

enum {
    SCAN_BYTES = 64 << 10,
    SCAN_MAX_BYTES = 32 << 20, /* of data, for the texts of waiting */
};

static bool is_data(const struct go_memory *m, uint64_t elf_address)
{
    const struct elf *elf = m->process.elf;
    for (uint32_t i = 0; i < elf->load_count; i++) {
        const struct elf_load *load = &elf->loads[i];
        if ((load->prot & 2) != 0 && elf_address >= load->address &&
            elf_address - load->address < load->memory_bytes) {
            return true;
        }
    }
    return false;
}

/* The process's address of a variable by its symbol; 0: there is none. */
static uint64_t by_symbol(struct go_memory *m, const char *name)
{
    struct elf_symbol symbol;
    if (!elf_find_symbol(m->process.elf, ELF_SYMTAB, name, &symbol) || !is_data(m, symbol.address)) {
        return 0;
    }
    return symbol.address + m->process.bias;
}

/* ---- instructions ---- */

struct code_reader {
    struct go_memory *m;
    unsigned char bytes[GO_CODE_MAX_BYTES];
    struct go_operand operands[GO_OPERANDS_MAX];
    size_t count;
};

/* The operands of a function that lie in writable data, from the file's code. */
static void read_operands(struct code_reader *r, const struct go_code *code)
{
    uint64_t offset, len = code->limit - code->start;
    struct elf *elf = r->m->process.elf;
    r->count = 0;
    len = len < sizeof r->bytes ? len : sizeof r->bytes;
    if (code->limit == 0 || !elf_offset_of(elf, code->start, &offset) ||
        !elf_read(elf, offset, r->bytes, (size_t)len, NULL)) {
        return;
    }
    size_t found = go_operands(elf->machine, r->bytes, (size_t)len, code->start, r->operands);
    for (size_t i = 0; i < found; i++) {
        if (is_data(r->m, r->operands[i].address)) {
            r->operands[r->count++] = r->operands[i];
        }
    }
}

enum {
    STKBUCKET, ALLGADD, POST_SWEEP, FLUSH, BLOCK_EVENT, SEMACQUIRE, SCHEDINIT, INIT, TICKS, TICKS_OLD, REFILL,
    PROCRESIZE, CODES,
};

/* A number by the instruction that names it: in a function, the first one that does this to a variable. */
enum does { LOADS_4 = 1, LOADS_8, STORES_0, STORES_RATE, COMPARES_SECOND };

struct number {
    size_t field;       /* in struct go_memory */
    const char *symbol; /* null: none that all versions have */
    uint8_t code;       /* the function */
    uint8_t does;
};

#define FIELD(name) offsetof(struct go_memory, name)

/* A rate of memory 0 is stored when the linker knows that nothing asks for a heap profile: the first store of 0 to a
 * word in schedinit since Go 1.20; earlier the rate itself is stored when variables get their first values. Whoever
 * waits for a lock first asks whether blocking is sampled, then contention. */
static const struct number numbers[] = {
    {FIELD(memory_rate), "runtime.MemProfileRate", INIT, STORES_RATE},
    {FIELD(memory_rate), "runtime.MemProfileRate", SCHEDINIT, STORES_0},
    {FIELD(cycle), "runtime.mProfCycle", POST_SWEEP, LOADS_4},
    {FIELD(cycle), "runtime.mProf", POST_SWEEP, LOADS_4},
    {FIELD(cycle), NULL, FLUSH, LOADS_4}, /* where nothing calls runtime.GC; not in Go 1.18 */
    {FIELD(block_rate), "runtime.blockprofilerate", BLOCK_EVENT, LOADS_8},
    {FIELD(mutex_rate), "runtime.mutexprofilerate", SEMACQUIRE, COMPARES_SECOND},
    {FIELD(ticks), "runtime.ticks", TICKS, LOADS_8},
    {FIELD(ticks), "runtime.ticks", TICKS_OLD, LOADS_8},
};

/* AArch64: an atomic load has no offset, so the address is taken before it, as that of the cycle is since Go 1.19; and
 * comparing is loading. */
static bool does(const struct go_memory *m, const struct go_operand *o, unsigned what)
{
    bool is_arm = m->process.elf->machine == ELF_AARCH64, is_taken = is_arm && o->bytes == 0;
    bool is_word = o->bytes == 8 && o->address % 8 == 0;
    switch (what) {
    case LOADS_4: return ((is_taken && m->layout->cycle_has_flag) || o->bytes == 4) && o->address % 4 == 0;
    case LOADS_8: return (is_taken && o->address % 8 == 0) || is_word;
    case STORES_0: return is_word && o->stores_zero;
    case STORES_RATE: return is_word && o->after_rate;
    default: return is_word && (is_arm || o->compares);
    }
}

static uint64_t find_operand(const struct code_reader *r, unsigned what)
{
    unsigned skip = what == COMPARES_SECOND ? 1 : 0;
    for (size_t i = 0; i < r->count; i++) {
        if (does(r->m, &r->operands[i], what) && skip-- == 0) {
            return r->operands[i].address + r->m->process.bias;
        }
    }
    return 0;
}

static void find_numbers(struct code_reader *r, struct go_code *codes, bool has_symbols)
{
    struct go_memory *m = r->m;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *n = &numbers[i];
        uint64_t *field = (uint64_t *)((char *)m + n->field);
        if (*field == 0 && has_symbols && n->symbol != NULL) {
            *field = by_symbol(m, n->symbol);
            *field += *field != 0 && n->field == FIELD(ticks) ? m->layout->ticks : 0;
        } else if (*field == 0) {
            read_operands(r, &codes[n->code]);
            *field = find_operand(r, n->does);
        }
    }
}

/* ---- lists ---- */

static void add_head(struct go_memory *m, uint64_t at)
{
    for (size_t i = 0; i < m->head_count; i++) {
        if (m->heads[i] == at) {
            return;
        }
    }
    uint64_t first;
    if (m->head_count < GO_HEADS_MAX && at % 8 == 0 && go_peek_word(m, at, &first) &&
        (first == 0 || go_bucket_type(m, first) != 0)) {
        m->heads[m->head_count++] = at;
    }
}

static void find_heads(struct code_reader *r, const struct go_code *codes, bool has_symbols)
{
    static const char *const names[] = {"runtime.mbuckets", "runtime.bbuckets", "runtime.xbuckets"};
    struct go_memory *m = r->m;
    for (size_t i = 0; has_symbols && i < sizeof names / sizeof names[0]; i++) {
        add_head(m, by_symbol(m, names[i]));
    }
    if (m->head_count == 0) {
        read_operands(r, &codes[STKBUCKET]);
        for (size_t i = 0; i < r->count; i++) {
            add_head(m, r->operands[i].address + m->process.bias);
        }
    }
}

static void find_goroutines(struct code_reader *r, const struct go_code *codes, bool has_symbols)
{
    struct go_memory *m = r->m;
    uint64_t at = has_symbols ? by_symbol(m, "runtime.allgs") : 0;
    if (at != 0) {
        m->goroutines = go_count_goroutines(m, at) != 0 ? at : 0;
        return;
    }
    uint64_t most = 0;
    read_operands(r, &codes[ALLGADD]);
    for (size_t i = 0; i < r->count; i++) {
        at = r->operands[i].address + m->process.bias;
        uint64_t count = at % 8 == 0 ? go_count_goroutines(m, at) : 0;
        if (count > most) { /* runtime.allgptr leads to the same array, and any number may follow it */
            most = count;
            m->goroutines = at;
        }
    }
}

/* What is counted of the heap, whose place refilling a processor's cache names, and the list of processors. */
static uint64_t find_proven(struct code_reader *r, const struct go_code *code, uint64_t known, uint64_t offset,
                            bool (*is_it)(struct go_memory *m, uint64_t address))
{
    struct go_memory *m = r->m;
    if (known != 0) {
        return is_it(m, known) ? known : 0;
    }
    read_operands(r, code);
    for (size_t i = 0; i < r->count; i++) {
        uint64_t at = r->operands[i].address + m->process.bias - offset;
        if (is_it(m, at)) {
            return at;
        }
    }
    return 0;
}

static void find_counts(struct code_reader *r, const struct go_code *codes, bool has_symbols)
{
    struct go_memory *m = r->m;
    m->counts = find_proven(r, &codes[REFILL], has_symbols ? by_symbol(m, "runtime.memstats") : 0,
                            m->layout->heap_stats, go_are_counts);
    m->processors = find_proven(r, &codes[PROCRESIZE], has_symbols ? by_symbol(m, "runtime.allp") : 0, 0,
                                go_are_processors);
}

/* ---- why goroutines wait: runtime.waitReasonStrings ---- */

static bool read_reason(struct go_memory *m, const unsigned char *string, char out[static GO_REASON_MAX_BYTES])
{
    uint64_t at = load_u64(string), len = load_u64(string + 8);
    memset(out, 0, GO_REASON_MAX_BYTES);
    if (len == 0 || len >= GO_REASON_MAX_BYTES || !go_peek(m, at, out, (size_t)len)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (out[i] < ' ' || out[i] > '~') {
            return false;
        }
    }
    return true;
}

/* The array begins with "", "GC assist marking", "IO wait" in all versions. */
static bool is_reasons(struct go_memory *m, const unsigned char *words)
{
    static const char second[] = "GC assist marking", third[] = "IO wait";
    char text[GO_REASON_MAX_BYTES];
    return load_u64(words + 8) == 0 && load_u64(words + 24) == sizeof second - 1 &&
           load_u64(words + 40) == sizeof third - 1 && read_reason(m, words + 16, text) &&
           strcmp(text, second) == 0 && read_reason(m, words + 32, text) && strcmp(text, third) == 0;
}

static void take_reasons(struct go_memory *m, uint64_t at)
{
    unsigned char string[16];
    for (m->reason_count = 1; m->reason_count < GO_REASONS_MAX; m->reason_count++) {
        if (!go_peek(m, at + 16 * (uint64_t)m->reason_count, string, sizeof string) ||
            !read_reason(m, string, m->reasons[m->reason_count])) {
            return;
        }
    }
}

static void find_reasons(struct code_reader *r, bool has_symbols)
{
    struct go_memory *m = r->m;
    const struct elf *elf = m->process.elf;
    uint64_t known = has_symbols ? by_symbol(m, "runtime.waitReasonStrings") : 0, scanned = 0;
    if (known != 0 && go_peek(m, known, r->bytes, 48) && is_reasons(m, r->bytes)) {
        take_reasons(m, known);
        return;
    }
    for (uint32_t i = 0; i < elf->load_count && m->reason_count == 0; i++) {
        const struct elf_load *load = &elf->loads[i];
        uint64_t at = (load->address + m->process.bias + 7) & ~(uint64_t)7;
        uint64_t limit = load->address + m->process.bias + load->file_bytes;
        while ((load->prot & 2) != 0 && m->reason_count == 0 && at + 48 <= limit && scanned < SCAN_MAX_BYTES) {
            size_t len = limit - at < sizeof r->bytes ? (size_t)(limit - at) : sizeof r->bytes;
            bool there = go_peek(m, at, r->bytes, len);
            for (size_t j = 0; there && j + 48 <= len && m->reason_count == 0; j += 8) {
                if (is_reasons(m, r->bytes + j)) {
                    take_reasons(m, at + j);
                }
            }
            at += len > 48 ? (len - 40) & ~(size_t)7 : len;
            scanned += len;
        }
    }
}

bool go_memory_find(struct go_memory *m, struct err *why)
{
    struct go_code codes[CODES] = {
        [STKBUCKET] = {.name = "runtime.stkbucket"},
        [ALLGADD] = {.name = "runtime.allgadd"},
        [POST_SWEEP] = {.name = "runtime.mProf_PostSweep"},
        [FLUSH] = {.name = "runtime.mProf_Flush"},
        [BLOCK_EVENT] = {.name = "runtime.blockevent"},
        [SEMACQUIRE] = {.name = "runtime.semacquire1"},
        [SCHEDINIT] = {.name = "runtime.schedinit"},
        [INIT] = {.name = "runtime.init"},
        [TICKS] = {.name = "runtime.ticksPerSecond"},
        [TICKS_OLD] = {.name = "runtime.tickspersecond"},
        [REFILL] = {.name = "runtime.(*mcache).refill"},
        [PROCRESIZE] = {.name = "runtime.procresize"},
    };
    struct code_reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return err_set(why, ERR_MEMORY, 0, "no memory to find the tables of a Go program");
    }
    r->m = m;
    bool has_symbols = by_symbol(m, "runtime.mbuckets") != 0;
    if (!has_symbols) {
        go_table_find(m->process.table, codes, CODES);
    }
    find_heads(r, codes, has_symbols);
    find_goroutines(r, codes, has_symbols);
    find_numbers(r, codes, has_symbols);
    find_counts(r, codes, has_symbols);
    find_reasons(r, has_symbols);
    free(r);
    return true;
}
