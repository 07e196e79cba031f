/*
 * pprof_ids: numbers for the texts, functions and locations of one profile; equal ones have one number.
 *
 * Numbers count from 1 in the order of first use, 0 is none. Texts are kept; a function is known by its two texts, a
 * location by a key of 64 bits: its address or, where it has none, its function and line.
 *
 * Where memory ends or a limit is passed, `failed` is set and stays so; what is given out then must not be used.
 */
#ifndef RUNTIME_GO_PPROF_IDS_H
#define RUNTIME_GO_PPROF_IDS_H

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"

struct go_function_names {
    uint32_t name, file; /* texts */
};

struct go_pprof_ids {
    struct arena chars;
    VEC(struct str) texts; /* by number; the first is empty */
    VEC(struct go_function_names) functions;
    VEC(uint64_t) keys; /* of locations */
    struct intern text_ids, function_ids;
    struct intern by_address, by_name; /* locations: what their key is */
    bool failed;
};

/* False: no memory. Released in every case. */
bool go_ids_init(struct go_pprof_ids *ids);
void go_ids_release(struct go_pprof_ids *ids);

uint32_t go_ids_text(struct go_pprof_ids *ids, struct str text);

/* *is_new: it has not been met before. */
uint32_t go_ids_function(struct go_pprof_ids *ids, struct go_function_names names, bool *is_new);

/* The location with this key among by_address or by_name, or 0; a new one (among null: that will not be found). */
uint32_t go_ids_find(const struct go_pprof_ids *ids, const struct intern *among, uint64_t key);
uint32_t go_ids_new(struct go_pprof_ids *ids, struct intern *among, uint64_t key);

size_t go_ids_bytes(const struct go_pprof_ids *ids);

#endif
