/*
 * source_map: where the code of a script that another program has made (a compiler, a bundler) came from.
 *
 * Concept. A map is a JSON text beside the script, "app.js.map". Its `mappings` are segments in the script's order,
 * each with a place in one of `sources` and perhaps one of `names`. They are kept as they are written, with every
 * so-many-th segment known by its place, so a map takes little more memory than that text.
 *
 * Ownership. What is found is the map's, and valid until source_map_free.
 *
 * Units. Lines and columns count from 1, columns in UTF-16 units, as V8's do.
 *
 * Limits. A map that is no JSON, not of version 3, or made of parts ("sections") is none. Everything in it is hostile:
 * numbers out of range are places that are not known.
 *
 * Source: ECMA-426, "Source map format".
 */
#ifndef RUNTIME_V8_SOURCE_MAP_H
#define RUNTIME_V8_SOURCE_MAP_H

#include "base/str.h"

struct source_map;

struct source_place {
    struct str file; /* a path, or a URL that is none of a file */
    struct str name; /* what stood there; "": not told */
    uint32_t line, column;
    bool is_exact;   /* it is where the segment begins */
};

/* `path`: of the script; sources are named from there. Null: it is no map. */
struct source_map *source_map_read(struct str json, struct str path);
void source_map_free(struct source_map *m);

/* Memory that it takes. */
size_t source_map_bytes(const struct source_map *m);

/* False: nothing is known of that place. */
bool source_map_find(const struct source_map *m, uint32_t line, uint32_t column, struct source_place *out);

#endif
