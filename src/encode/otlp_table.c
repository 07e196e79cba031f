#include "encode/otlp_table.h"


static uint64_t hash_of(const void *owner, uint32_t id)
{
    return str_hash(otlp_table_row(owner, id));
}

static bool same(const void *owner, uint32_t id, const void *key)
{
    return str_eq(otlp_table_row(owner, id), *(const struct str *)key);
}

static const struct intern_owner ops = {hash_of, same};

void otlp_table_init(struct otlp_table *table)
{
    *table = (struct otlp_table){0};
    buf_init(&table->bytes, OTLP_TABLE_MAX_BYTES);
}

void otlp_table_release(struct otlp_table *table)
{
    buf_release(&table->bytes);
    vec_release(&table->ends);
    intern_release(&table->ids);
}

size_t otlp_table_rows(const struct otlp_table *table)
{
    return table->ends.len > 0 ? table->ends.len : 1;
}

struct str otlp_table_row(const struct otlp_table *table, size_t place)
{
    if (place == 0 || place >= table->ends.len) {
        return STR("");
    }
    uint32_t from = table->ends.at[place - 1];
    return str_sub(buf_slice(&table->bytes), from, table->ends.at[place] - from);
}

static bool append(struct otlp_table *table, struct str row, uint64_t hash)
{
    if (table->ends.len == 0 && vec_push(&table->ends) == NULL) {
        return false;
    }
    buf_str(&table->bytes, row);
    uint32_t *end = table->bytes.failed ? NULL : vec_push(&table->ends);
    if (end == NULL) {
        return false;
    }
    *end = (uint32_t)table->bytes.len;
    return intern_add(&table->ids, &ops, table, hash, (uint32_t)(table->ends.len - 1));
}

uint32_t otlp_table_add(struct otlp_table *table, struct str row)
{
    if (row.len == 0 || table->failed) {
        return 0;
    }
    uint64_t hash = str_hash(row);
    uint32_t place = intern_find(&table->ids, &ops, table, hash, &row);
    if (place != 0) {
        return place;
    }
    table->failed = !append(table, row, hash);
    return table->failed ? 0 : (uint32_t)(table->ends.len - 1);
}
