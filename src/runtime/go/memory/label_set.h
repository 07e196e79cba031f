/*
 * label_set: the labels of one goroutine (pprof.Do, pprof.SetGoroutineLabels), from where its g points to.
 *
 * Since Go 1.24 they are a slice of pairs of strings, sorted by key; earlier a map of strings, whose order is another
 * in each map, so it is sorted here. Neither is changed once it was made. Nothing is allocated: catchers read them.
 *
 * Limits: GO_LABELS_MAX pairs; texts end at their first NUL, and after GO_LABEL_TEXT_MAX bytes. A map that is growing
 * is not read.
 *
 * Sources: Go src/runtime/pprof/label.go; of maps up to Go 1.23 src/runtime/map.go (hmap, bmap).
 */
#ifndef RUNTIME_GO_LABEL_SET_H
#define RUNTIME_GO_LABEL_SET_H

#include "base/iface.h"
#include "base/str.h"

enum { GO_LABELS_MAX = 32, GO_LABEL_TEXT_MAX = 256 };

struct go_label_set {
    struct str keys[GO_LABELS_MAX], values[GO_LABELS_MAX]; /* in `texts` */
    size_t count;
    char texts[2 * GO_LABELS_MAX * GO_LABEL_TEXT_MAX];
};

/* `is_list`: as of Go 1.24. False: not all of it could be read, or it is no such thing; `unread` says why where nothing
 * of the process can be read, and may be null. */
bool go_label_set_read(struct memory_batch *memory, bool is_list, uint64_t address, struct go_label_set *out,
                       struct err *unread);

#endif
