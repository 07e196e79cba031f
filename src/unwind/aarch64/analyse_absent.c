/* Stands in until x86_64/analyse.c and aarch64/analyse.c are there. */
#include "unwind/analyse.h"

#define STAND_IN __attribute__((weak))

STAND_IN bool analyse_function(const struct code *code, uint64_t start, uint64_t limit,
                               struct analysed *out)
{
    (void)code, (void)start, (void)limit, (void)out;
    return true;
}

STAND_IN bool analyse_text(const struct code *code, const uint64_t *starts, size_t start_count,
                           size_t max_functions, struct analysed *out)
{
    (void)code, (void)starts, (void)start_count, (void)max_functions, (void)out;
    return true;
}

STAND_IN struct unwind_rule analyse_leaf(const struct code *code, uint64_t address)
{
    (void)code, (void)address;
    return (struct unwind_rule){.kind = RULE_NONE};
}

STAND_IN bool analyse_is_behind_call(const struct code *code, uint64_t address)
{
    (void)code, (void)address;
    return true;
}
