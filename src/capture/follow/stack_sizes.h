/* stack_sizes: once a second, the process whose samples copy too little or too much of its stacks gets another size. */
#ifndef CAPTURE_FOLLOW_STACK_SIZES_H
#define CAPTURE_FOLLOW_STACK_SIZES_H

#include "capture/follow/follow.h"

struct stack_sizes;

extern const struct concern stack_sizes_concern;

/* Null when memory ends. */
struct stack_sizes *stack_sizes_new(struct follow *f);

#endif
