/*
 * otlp_table: the rows of one table of an OpenTelemetry profile, each once, by their bytes.
 *
 * The tables of a dictionary must hold no row twice, none that is not referred to, and as row 0 the
 * zero value: what is referred to is added, and its place is what was said of it. Rows are encoded
 * messages, or texts.
 *
 * Failure (OTLP_TABLE_MAX_BYTES of rows, or the end of memory) is sticky; every place is 0 then.
 *
 * Memory: the rows' bytes, and about 10 more for each.
 */
#ifndef ENCODE_OTLP_TABLE_H
#define ENCODE_OTLP_TABLE_H

#include "base/intern.h"
#include "base/str.h"
#include "base/vec.h"

enum { OTLP_TABLE_MAX_BYTES = 64 * 1024 * 1024 };

struct otlp_table {
    struct buf bytes;
    VEC(uint32_t) ends; /* of the rows in `bytes`; row 0 is there from the first row on */
    struct intern ids;
    bool failed;
};

void otlp_table_init(struct otlp_table *table);
void otlp_table_release(struct otlp_table *table);

/* The row's place; 0 for the empty one. */
uint32_t otlp_table_add(struct otlp_table *table, struct str row);

/* How many there are, row 0 among them. */
size_t otlp_table_rows(const struct otlp_table *table);
struct str otlp_table_row(const struct otlp_table *table, size_t place);

#endif
