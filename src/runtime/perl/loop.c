/* Which code of a file runs Perl's calls. The loop is exported. The operations' functions (ops.c) lead to that of
 * calling a sub, and to what runs an eval in a loop of its own. Of a stripped file the functions that no symbol names
 * are static ones: how the interpreter calls itself, or parts of functions that have a name. */
#include "runtime/perl/private.h"

enum {
    RANGES_MAX = 16384,
    NAMED = 100, /* of a stripped file: plain, because it has a name */
    CALLED_MAX = 64,
    FUNCTION_MAX = 8192,
};

static const char *const loops[] = {"Perl_runops_standard", "Perl_runops_debug", "S_runops_standard"};

/* How the interpreter calls itself, from perl.c, pp_hot.c, pp_ctl.c, gv.c and pp_sort.c. */
static const char *const plumbing[] = {
    "perl_run", "S_run_body", "Perl_call_*", "S_call_body", "S_call_list_body", "Perl_eval_sv", "Perl_eval_pv",
    "Perl_pp_entersub", "Perl_pp_entertry", "Perl_pp_entertrycatch", "Perl_pp_entereval", "Perl_pp_require",
    "Perl_amagic_call", "Perl_try_amagic*", "S_sortcv*", "S_process_special_blocks*", "Perl_load_module*",
};

struct search {
    struct elf *elf;
    const struct runtime_code *code;
    struct perl_ops *ops;
    struct code_ranges *ranges;
    struct code_range docatch;
    struct code_range candidates[CALLED_MAX]; /* for it */
    size_t candidate_count;
    bool is_stripped;
};

/* ---- operations ---- */

static bool find_function(const struct search *s, uint64_t at, struct code_range *out)
{
    *out = (struct code_range){0};
    return at != 0 && s->code != NULL && s->code->function_at(s->code->context, at, &out->start, &out->limit) &&
           out->start <= at && out->limit > at && out->limit - out->start <= FUNCTION_MAX;
}

/* The function of the operation of this name; false: not found. */
static bool find_op(const struct search *s, const char *name, struct code_range *out)
{
    return find_function(s, perl_ops_find(s->ops, name), out);
}

/* Where a call or jump at these bytes leads: E8, E9 rel32; B, BL (Arm ARM C6.2.26, C6.2.35). 0: it is none. */
static uint64_t called_at(const unsigned char *at, uint64_t address, bool arm)
{
    uint32_t word = load_u32(at);
    if (arm) {
        return (word & 0x7c000000) == 0x14000000 ? address + (uint64_t)(int64_t)((int32_t)(word << 6) >> 4) : 0;
    }
    return (at[0] & 0xfe) == 0xe8 ? address + 5 + (uint64_t)(int64_t)(int32_t)load_u32(at + 1) : 0;
}

/* The other functions that an operation calls, or ends with a jump to. */
static size_t find_called(struct search *s, const char *name, struct code_range *out)
{
    struct code_range op;
    unsigned char bytes[FUNCTION_MAX];
    uint64_t offset;
    bool arm = s->elf->machine == ELF_AARCH64;
    size_t count = 0;
    if (!find_op(s, name, &op) || !elf_offset_of(s->elf, op.start, &offset) ||
        !elf_read(s->elf, offset, bytes, op.limit - op.start, NULL)) {
        return 0;
    }
    for (size_t i = 0; i + 5 <= op.limit - op.start && count < CALLED_MAX; i += arm ? 4 : 1) {
        uint64_t to = called_at(bytes + i, op.start + i, arm);
        struct code_range *found = &out[count];
        bool other = to != 0 && (to < op.start || to >= op.limit);
        count += other && s->code->function_at(s->code->context, to, &found->start, &found->limit) &&
                 found->start == to && found->limit > to;
    }
    return count;
}

/* It is exported: docatch is not. */
static bool drop_named(void *context, const struct elf_symbol *symbol)
{
    struct search *s = context;
    for (size_t i = 0; i < s->candidate_count; i++) {
        if (s->candidates[i].start == symbol->address) {
            s->candidates[i] = s->candidates[--s->candidate_count];
        }
    }
    return true;
}

/* What calls the loop for an eval where the loop that runs must not be left by an error: docatch, which both operations
 * that begin an eval call. */
static void find_docatch(struct search *s)
{
    struct code_range text[CALLED_MAX];
    size_t blocks = find_called(s, "entertry", s->candidates), texts = find_called(s, "entereval", text);
    for (size_t i = 0; i < blocks; i++) {
        bool both = false;
        for (size_t k = 0; k < texts; k++) {
            both = both || s->candidates[i].start == text[k].start;
        }
        for (size_t k = 0; k < s->candidate_count; k++) {
            both = both && s->candidates[i].start != s->candidates[k].start;
        }
        if (both) {
            s->candidates[s->candidate_count++] = s->candidates[i];
        }
    }
    (void)elf_each_function(s->elf, ELF_DYNSYM, drop_named, s, NULL);
    if (s->candidate_count == 1) {
        s->docatch = s->candidates[0];
    }
}

/* Operations have names also where no symbol gives them one. */
static void take_operations(struct search *s)
{
    static const char *const calls[] = {"entersub", "entertry", "entertrycatch", "entereval", "require", "dofile"};
    const char *name;
    struct code_range op;
    uint64_t at;
    for (size_t i = 0; perl_ops_at(s->ops, i, &at, &name); i++) {
        if (find_function(s, at, &op)) {
            bool is_call = code_name_among(str_of(name), calls, sizeof calls / sizeof calls[0]);
            code_ranges_add(s->ranges, op.start, op.limit, is_call ? RUNTIME_NATIVE_PLUMBING : NAMED);
        }
    }
}

/* ---- functions by their names ---- */

static bool take_function(void *context, const struct elf_symbol *symbol)
{
    struct search *s = context;
    struct str name;
    if (!elf_name(s->elf, symbol->table, symbol->name, &name) || symbol->address == s->docatch.start) {
        return true;
    }
    bool is_loop = code_name_among(name, loops, sizeof loops / sizeof loops[0]);
    bool is_plumbing = code_name_among(name, plumbing, sizeof plumbing / sizeof plumbing[0]);
    if (is_loop || is_plumbing || s->is_stripped) {
        code_ranges_add(s->ranges, symbol->address, symbol->address + symbol->size,
                        is_loop ? RUNTIME_NATIVE_LOOP : is_plumbing ? RUNTIME_NATIVE_PLUMBING : NAMED);
    }
    return true;
}

void perl_find_code(struct elf *elf, const struct runtime_code *code, struct perl_binary *binary)
{
    struct search s = {.elf = elf, .code = code, .ranges = &binary->ranges};
    struct code_range entersub;
    s.is_stripped = elf->tables[ELF_SYMTAB].count == 0;
    if (!code_ranges_open(&binary->ranges, RANGES_MAX)) {
        return;
    }
    s.ops = perl_ops_open(elf);
    if (find_op(&s, "entersub", &entersub)) {
        binary->entersub = entersub.start;
        binary->entersub_limit = entersub.limit;
    }
    find_docatch(&s);
    if (s.is_stripped) {
        take_operations(&s);
    }
    perl_ops_close(s.ops);
    code_ranges_add(s.ranges, s.docatch.start, s.docatch.limit, RUNTIME_NATIVE_GOES_ON);
    (void)elf_each_function(elf, s.is_stripped ? ELF_DYNSYM : ELF_SYMTAB, take_function, &s, NULL);
    binary->has_names_only = s.is_stripped && binary->ranges.count < RANGES_MAX;
    code_ranges_close(&binary->ranges);
}

enum runtime_native perl_native_at(const void *binary, uint64_t elf_address)
{
    const struct perl_binary *b = binary;
    unsigned native = code_range_at(&b->ranges, elf_address);
    if (native == RUNTIME_NATIVE_PLAIN && b->has_names_only) {
        return RUNTIME_NATIVE_PLUMBING;
    }
    return native == NAMED ? RUNTIME_NATIVE_PLAIN : (enum runtime_native)native;
}
