/* The rule of a function that has CFI, from its code: where CFI wants the frame pointer, which of a thread that sleeps
 * is not known until some callee has saved it. */
#include "unwind/analyse.h"
#include "unwind/arch.h"
#include "unwind/private.h"
#include "unwind/state.h"

#include <stdlib.h>

/* As its CFI has it, its first instruction finds the stack as a call left it. */
static bool begins_as_called(struct unwind_table *table, uint64_t start)
{
    bool analysed;
    const struct unwind_rule at_start = unwind_table_rule(table, start, &analysed);
    const struct unwind_rule entry = state_rule(&arch_entry_state);
    return at_start.kind == RULE_CFA && at_start.cfa_reg == arch_cfi.sp && at_start.cfa == entry.cfa;
}

static struct unwind_rule rule_of(struct unwind_table *table, uint64_t address)
{
    uint64_t start, limit;
    struct unwind_rule rule = {.kind = RULE_NONE};
    bool may = unwind_table_function(table, address, &start, &limit) && limit - start <= UNWIND_BY_SP_MAX &&
               table->by_sp.analysed + (limit - start) <= UNWIND_BY_SP_ALL && begins_as_called(table, start);
    unsigned char *bytes = may ? malloc((size_t)(limit - start)) : NULL;
    if (bytes != NULL && unwind_table_code(table, start, bytes, (size_t)(limit - start))) {
        const struct code code = {start, bytes, (size_t)(limit - start)};
        rule = analyse_by_sp(&code, address);
        table->by_sp.analysed += code.len;
    }
    free(bytes);
    return rule;
}

/* Null: there is no room for one more. */
static const struct unwind_rule *remembered(struct unwind_table *table, uint64_t address)
{
    struct by_sp *b = &table->by_sp;
    const struct map_slot *slot = map_find(&b->at, address);
    if (slot != NULL) {
        return &b->rules.at[slot->value];
    }
    if (b->rules.len >= UNWIND_BY_SP_RULES || !map_put(&b->at, address, b->rules.len)) {
        return NULL;
    }
    const struct unwind_rule rule = rule_of(table, address);
    struct unwind_rule *place = vec_push(&b->rules);
    if (place == NULL) {
        map_remove(&b->at, map_find(&b->at, address));
        return NULL;
    }
    *place = rule;
    return place;
}

bool unwind_table_rule_by_sp(struct unwind_table *table, uint64_t address, struct unwind_rule *out)
{
    const struct unwind_rule *rule = remembered(table, address);
    bool found = rule != NULL && rule->kind != RULE_NONE;
    if (found) {
        *out = *rule;
    }
    return found;
}
