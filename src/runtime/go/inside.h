/*
 * inside: a Go program as it is found from outside: its file, its table of functions, its mappings, and, as far as it
 * may be read, the tables of its runtime in memory (memory.h).
 *
 * Call order. go_inside_open; go_inside_memory as often as wanted, which looks for the tables once; go_inside_close.
 * What the port gives is borrowed until then.
 */
#ifndef RUNTIME_GO_INSIDE_H
#define RUNTIME_GO_INSIDE_H

#include "runtime/go/memory/memory.h"

struct go_inside;

/* Null with the reason: its file is not readable, or no Go program. */
struct go_inside *go_inside_open(const struct process_port *port, struct err *why);
void go_inside_close(struct go_inside *inside);

/* Is a function of this name in it? */
bool go_inside_has(struct go_inside *inside, const char *function);

/* Null with the reason, the same each time. */
struct go_memory *go_inside_memory(struct go_inside *inside, struct err *why);

#endif
