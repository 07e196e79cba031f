/* The rows of a page of code, four bytes each, and the set of rules that they name by number. A page
 * is built in rising order of addresses; an FDE that turns out to be damaged is taken back as a
 * whole. */
#include "unwind/private.h"

#include <stdlib.h>

static uint64_t hash_of_rule(const struct unwind_rule *rule)
{
    uint64_t words[2];
    memcpy(words, rule, sizeof words);
    uint64_t hash = (words[0] ^ words[1] << 17) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 32;
}

static uint64_t hash_of_id(const void *owner, uint32_t id)
{
    const struct unwind_table *table = owner;
    return hash_of_rule(&table->rules.at[id]);
}

static bool same_rule(const void *owner, uint32_t id, const void *key)
{
    const struct unwind_table *table = owner;
    return memcmp(&table->rules.at[id], key, sizeof(struct unwind_rule)) == 0;
}

static const struct intern_owner rule_owner = {hash_of_id, same_rule};

/* The number of a rule; RULE_GAP when there are too many different ones. */
static uint16_t intern_rule(struct unwind_table *table, const struct unwind_rule *rule,
                            uint64_t hash)
{
    uint32_t id = intern_find(&table->rule_ids, &rule_owner, table, hash, rule);
    if (id != 0 || table->rules.len == UNWIND_RULES_MAX) {
        return (uint16_t)id;
    }
    struct unwind_rule *stored = vec_push(&table->rules);
    if (stored == NULL) {
        return RULE_GAP;
    }
    *stored = *rule;
    id = (uint32_t)(table->rules.len - 1);
    if (!intern_add(&table->rule_ids, &rule_owner, table, hash, id)) {
        table->rules.len--;
        return RULE_GAP;
    }
    return (uint16_t)id;
}

/* The few rules that most rows have are found without the interning table. */
static uint16_t rule_id(struct row_builder *b, const struct unwind_rule *rule)
{
    uint64_t hash = hash_of_rule(rule);
    uint16_t *recent = &b->recent[hash % RECENT_RULES];
    if (*recent == RULE_GAP ||
        memcmp(&b->table->rules.at[*recent], rule, sizeof *rule) != 0) {
        *recent = intern_rule(b->table, rule, hash);
    }
    return *recent;
}

void rows_begin(struct row_builder *b, struct unwind_table *table, uint64_t start)
{
    *b = (struct row_builder){
        .table = table, .start = start, .limit = start + UNWIND_PAGE_BYTES, .clip = UINT64_MAX};
    rows_gap(b, start);
}

static uint16_t low_of(const struct row_builder *b, uint64_t address)
{
    return (uint16_t)(address < b->start ? 0 : address - b->start);
}

static void add_id(struct row_builder *b, uint64_t address, uint16_t id)
{
    size_t len = b->rows.len;
    uint16_t low = low_of(b, address);
    if (len > 0 && b->rows.at[len - 1].low == low) {
        b->rows.len = --len;
    }
    if (len > 0 && b->rows.at[len - 1].rule == id) {
        return; /* says what the row before says */
    }
    struct row *row = len < UNWIND_PAGE_ROWS_MAX ? vec_push(&b->rows) : NULL;
    b->failed |= row == NULL;
    if (row != NULL) {
        *row = (struct row){low, id};
    }
}

void rows_add(struct row_builder *b, uint64_t address, const struct unwind_rule *rule)
{
    add_id(b, address, rule_id(b, rule));
}

void rows_gap(struct row_builder *b, uint64_t address)
{
    if (address < b->limit) {
        add_id(b, address, RULE_GAP);
    }
}

void rows_revert(struct row_builder *b, uint64_t address)
{
    while (b->rows.len > 0 && b->rows.at[b->rows.len - 1].low >= low_of(b, address)) {
        b->rows.len--;
    }
    rows_gap(b, address);
}

bool rows_end(struct row_builder *b, struct rows *out)
{
    size_t count = b->rows.len;
    uint16_t *stored = b->failed ? NULL : malloc(2 * count * sizeof *stored);
    for (size_t i = 0; stored != NULL && i < count; i++) {
        stored[i] = b->rows.at[i].low;
        stored[count + i] = b->rows.at[i].rule;
    }
    vec_release(&b->rows);
    if (stored != NULL) {
        *out = (struct rows){stored, (uint32_t)count};
    }
    return stored != NULL;
}

uint16_t rows_find(const struct rows *rows, uint16_t low, size_t *row)
{
    const uint16_t *base = rows->at;
    for (size_t len = rows->count; len > 1;) {
        size_t half = len / 2;
        base += base[half] <= low ? half : 0;
        len -= half;
    }
    *row = (size_t)(base - rows->at);
    return base[rows->count];
}
