/* Any bytes as machine code. The first three choose: how many function starts are known, where the
 * one function begins, and which address's leaf frame is asked for. Rows are in order, differ, and
 * end within the code; the same bytes give the same rows. */
#include "unwind/analyse.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESS = 0x400000, CHOICES = 3, STARTS_MAX = 16, FUNCTIONS_MAX = 500 };

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

static void check_rule(const struct unwind_rule *rule)
{
    check(rule->kind <= RULE_END && rule->kind != RULE_PLT);
    check(rule->cfa_reg < 32);
    check(rule->ra_place != RA_REGISTER || (rule->ra >= 0 && rule->ra < 32));
    check(rule->fp_place != FP_AT_FP || rule->kind == RULE_DEREF || rule->kind == RULE_CFA);
}

static void check_rows(const struct analysed *a, const struct code *code)
{
    for (size_t i = 0; i < a->rows.len; i++) {
        const struct analysed_row *row = &a->rows.at[i];
        check_rule(&row->rule);
        check(row->address >= code->address && row->address <= code->address + code->len);
        check(i == 0 || row->address > a->rows.at[i - 1].address);
        check(i == 0 || memcmp(&row->rule, &a->rows.at[i - 1].rule, sizeof row->rule) != 0);
    }
    check(a->rows.len == 0 || a->rows.at[a->rows.len - 1].rule.kind == RULE_NONE);
}

static void analyse_all(const struct code *code, size_t starts, struct analysed *out)
{
    uint64_t start[STARTS_MAX];
    for (size_t i = 0; i < starts; i++) {
        start[i] = code->address + i * code->len / starts;
    }
    check(analyse_text(code, start, starts, FUNCTIONS_MAX, out));
    check(out->functions <= FUNCTIONS_MAX + 1);
    check_rows(out, code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < CHOICES) {
        return 0;
    }
    struct code code = {ADDRESS, data + CHOICES, size - CHOICES};
    struct analysed text = {0}, again = {0};
    analyse_all(&code, data[0] % (STARTS_MAX + 1), &text);
    analyse_all(&code, data[0] % (STARTS_MAX + 1), &again);
    check(text.rows.len == again.rows.len &&
          (text.rows.len == 0 ||
           memcmp(text.rows.at, again.rows.at, text.rows.len * sizeof *text.rows.at) == 0));
    struct unwind_rule leaf = analyse_leaf(&code, ADDRESS + data[2]);
    check_rule(&leaf);
    struct unwind_rule caller = analyse_caller(&code, ADDRESS + data[2]);
    check_rule(&caller);
    (void)analyse_is_behind_call(&code, ADDRESS + data[2]);
    vec_release(&text.rows);
    vec_release(&again.rows);
    return 0;
}
