/*
 * vec: growing arrays of one element type.
 *
 *     VEC(struct mapping) maps = {0};
 *     struct mapping *m = vec_push(&maps);      // zeroed element, or null when memory ends
 *     vec_each(&maps, m) { ... }
 *     vec_release(&maps);
 *
 * Elements move when the array grows: keep indices, not pointers. The owner bounds the length; an
 * array never shrinks by itself, so the steady state allocates nothing.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *at;                                                                                  \
        size_t len;                                                                                \
        size_t cap;                                                                                \
    }

/* Makes room for one more element of `size` bytes after `len`; zeroes it. */
bool vec_grow(void **at, size_t len, size_t *cap, size_t size);

#define vec_push(vec)                                                                              \
    (vec_grow((void **)&(vec)->at, (vec)->len, &(vec)->cap, sizeof *(vec)->at)                     \
         ? &(vec)->at[(vec)->len++]                                                                \
         : NULL)

/* Each element, by its place: the vector may grow meanwhile, which moves it; what comes anew is met, too. */
#define vec_each(vec, item)                                                                        \
    for (size_t item##_at = 0, item##_goes = 1; item##_goes != 0 && item##_at < (vec)->len;        \
         item##_at++, item##_goes = !item##_goes)                                                  \
        for (__typeof__((vec)->at) item = (vec)->at + item##_at; item##_goes != 0; item##_goes = 0)

/* Removes element i by moving the last one into its place: order is not kept. */
#define vec_swap_out(vec, i) ((vec)->at[(i)] = (vec)->at[--(vec)->len])

#define vec_clear(vec) ((vec)->len = 0)

/* Gives back the room of elements that are not there. */
void vec_fit(void **at, size_t len, size_t *cap, size_t size);
#define vec_shrink(vec)                                                                            \
    vec_fit((void **)&(vec)->at, (vec)->len, &(vec)->cap, sizeof *(vec)->at)
#define vec_release(vec) (free((vec)->at), (vec)->at = NULL, (vec)->len = (vec)->cap = 0)

#endif
