/* image_sweep: closes files that neither a process nor an unpublished window needs any more. */
#ifndef CAPTURE_WINDOW_IMAGE_SWEEP_H
#define CAPTURE_WINDOW_IMAGE_SWEEP_H

#include "capture/stacks/catching.h"
#include "capture/window/publisher.h"

struct image_sweep;

extern const struct concern image_sweep_concern;

/* Null when memory ends. */
struct image_sweep *image_sweep_new(struct follow *f, struct catching *catching, struct publisher *publisher);

#endif
