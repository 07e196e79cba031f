/* The rule of a function that has CFI, from its code: where CFI wants the frame pointer, which of a thread that sleeps
 * is not known until some callee has saved it. */
#include "unwind/analyse.h"
#include "unwind/arch.h"
#include "unwind/state.h"
#include "unwind/table.h"

#include <stdlib.h>

/* As its CFI has it, its first instruction finds the stack as a call left it. */
static bool begins_as_called(struct unwind_table *table, uint64_t start)
{
    bool analysed;
    const struct unwind_rule at_start = unwind_table_rule(table, start, &analysed);
    const struct unwind_rule entry = state_rule(&arch_entry_state);
    return at_start.kind == RULE_CFA && at_start.cfa_reg == arch_cfi.sp && at_start.cfa == entry.cfa;
}

bool unwind_table_rule_by_sp(struct unwind_table *table, uint64_t address, struct unwind_rule *out)
{
    uint64_t start, limit;
    bool good = unwind_table_function(table, address, &start, &limit) && limit - start <= UNWIND_BY_SP_MAX &&
                begins_as_called(table, start);
    unsigned char *bytes = good ? malloc((size_t)(limit - start)) : NULL;
    if (bytes == NULL) {
        return false;
    }
    const struct code code = {start, bytes, (size_t)(limit - start)};
    if (unwind_table_code(table, start, bytes, code.len)) {
        *out = analyse_by_sp(&code, address);
        good = out->kind != RULE_NONE;
    } else {
        good = false;
    }
    free(bytes);
    return good;
}
