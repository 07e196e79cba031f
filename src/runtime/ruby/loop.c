/* Which code of a file runs Ruby's frames. The loop of instructions has a table of where each of them begins, so it is
 * the function into whose middle a long row of pointers leads: that needs no symbols, and holds for every version and
 * processor. What calls it directly enters it. Of a stripped file the functions that no symbol names are static ones:
 * how the interpreter calls itself, and methods in C, whose names Ruby's own frames have. */
#include "runtime/ruby/private.h"

#include "runtime/common/image.h"

enum {
    TABLE_LEAST = 150, /* instructions: there are some 200; the next longest row of a Ruby has 98 */
    RANGES_MAX = 16384,
    CALLERS_MAX = 8,
};

/* How the interpreter calls itself, from vm_eval.c, vm_insnhelper.c and eval.c. */
static const char *const plumbing_names[] = {
    "vm_exec*", "vm_call*", "vm_sendish*", "vm_invoke*", "vm_yield*", "vm_search*", "vm_cfp*", "invoke_*",
    "call_cfunc*",
    "ractor_safe_call*", "rb_vm_call*", "rb_vm_invoke*", "rb_call", "rb_call0", "rb_call_super*", "rb_funcall*",
    "rb_yield*", "rb_iterate*", "rb_block_call*", "rb_ensure", "rb_rescue*", "rb_vrescue*", "rb_protect",
    "rb_iseq_eval*",
    "eval_make_iseq*", "eval_string*", "yield_under", "rb_obj_instance_*", "rb_send*", "send_internal*", "rb_f_send",
};

struct loop_search {
    struct elf *elf;
    const struct runtime_code *code;
    struct code_ranges *ranges;
    uint64_t start, limit; /* the loop */
    struct code_range callers[CALLERS_MAX];
    size_t caller_count;
};

static bool function_at(const struct loop_search *s, uint64_t address, uint64_t *start, uint64_t *limit)
{
    return s->code != NULL && s->code->function_at(s->code->context, address, start, limit) && *start <= address &&
           address < *limit;
}

/* ---- the loop ---- */

/* How many pointers from this one on stand in a row and lead into one function, and not to its start. */
static size_t row_at(const struct loop_search *s, const struct image_pointers *p, size_t first, uint64_t *start,
                     uint64_t *limit)
{
    size_t i = first;
    if (!function_at(s, p->relocated[i].to, start, limit)) {
        return 1;
    }
    while (i < p->count && p->relocated[i].at == p->relocated[first].at + 8 * (i - first) &&
           p->relocated[i].to > *start && p->relocated[i].to < *limit) {
        i++;
    }
    return i > first ? i - first : 1;
}

static bool is_row(const struct image_pointers *p, size_t first)
{
    size_t last = first + TABLE_LEAST - 1;
    return last < p->count && p->relocated[last].at == p->relocated[first].at + 8 * (TABLE_LEAST - 1);
}

static bool find_loop(struct loop_search *s)
{
    struct image_pointers p;
    size_t best = 0, row = 1;
    image_pointers_open(&p, s->elf);
    for (size_t i = 0; i < p.count; i += row) {
        uint64_t start, limit;
        row = is_row(&p, i) ? row_at(s, &p, i, &start, &limit) : 1;
        if (row >= TABLE_LEAST && row > best) {
            best = row;
            s->start = start;
            s->limit = limit;
        }
    }
    image_pointers_close(&p);
    return best != 0;
}

/* A program that is not relocated has the table's addresses in place; its symbols tell. */
static bool find_loop_by_name(struct loop_search *s)
{
    struct elf_symbol symbol;
    return elf_find_symbol(s->elf, ELF_SYMTAB, "vm_exec_core", &symbol) &&
           function_at(s, symbol.address, &s->start, &s->limit);
}

/* ---- its callers ---- */

static void add_caller(struct loop_search *s, uint64_t address)
{
    uint64_t start, limit;
    for (size_t i = 0; i < s->caller_count; i++) {
        if (address >= s->callers[i].start && address < s->callers[i].limit) {
            return;
        }
    }
    if (s->caller_count < CALLERS_MAX && function_at(s, address, &start, &limit) && start != s->start) {
        s->callers[s->caller_count++] = (struct code_range){start, limit, RUNTIME_NATIVE_ENTERS};
    }
}

/* Where a direct call at these bytes leads: E8 rel32; BL (Arm ARM C6.2.35). */
static uint64_t called(const unsigned char *at, uint64_t address, bool arm)
{
    uint32_t word = load_u32(at);
    if (arm) {
        return (word & 0xfc000000) == 0x94000000 ? address + (uint64_t)(int64_t)((int32_t)(word << 6) >> 4) : 0;
    }
    return at[0] == 0xe8 ? address + 5 + (uint64_t)(int64_t)(int32_t)load_u32(at + 1) : 0;
}

static bool take_calls(void *context, const struct image_piece *piece)
{
    struct loop_search *s = context;
    bool arm = s->elf->machine == ELF_AARCH64;
    for (size_t i = 0; i + 5 <= piece->len; i += arm ? 4 : 1) {
        if (called(piece->bytes + i, piece->address + i, arm) == s->start) {
            add_caller(s, piece->address + i);
        }
    }
    return false;
}

static void add_loop(struct loop_search *s)
{
    (void)image_scan(s->elf, IMAGE_EXECUTE, take_calls, s);
    for (size_t i = 0; i < s->caller_count; i++) {
        code_ranges_add_with_cold(s->ranges, s->elf, s->code, &s->callers[i]);
    }
    code_ranges_add_with_cold(s->ranges, s->elf, s->code,
                              &(struct code_range){s->start, s->limit, RUNTIME_NATIVE_LOOP});
}

void ruby_find_ranges(struct elf *elf, const struct runtime_code *code, struct ruby_binary *binary)
{
    struct loop_search s = {.elf = elf, .code = code, .ranges = &binary->ranges};
    if (!code_ranges_open(&binary->ranges, RANGES_MAX)) {
        return;
    }
    if ((find_loop(&s) || find_loop_by_name(&s)) && s.start != 0) { /* 0 is what calls nothing */
        add_loop(&s);
    }
    const struct code_plumbing plumbing = {plumbing_names, sizeof plumbing_names / sizeof plumbing_names[0], s.callers,
                                           s.caller_count};
    code_ranges_add_named(&binary->ranges, elf, &plumbing);
    code_ranges_close(&binary->ranges);
}

enum runtime_native ruby_native_at(const void *binary, uint64_t elf_address)
{
    return code_range_or_unnamed(&((const struct ruby_binary *)binary)->ranges, elf_address);
}
