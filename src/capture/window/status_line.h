/* status_line: on a terminal, each second, how it goes (status.h). */
#ifndef CAPTURE_WINDOW_STATUS_LINE_H
#define CAPTURE_WINDOW_STATUS_LINE_H

#include "capture/concern.h"
#include "capture/shared.h"
#include "capture/window/windows.h"

struct status_line;

extern const struct concern status_line_concern;

/* Null when memory ends. */
struct status_line *status_line_new(struct shared *shared, const struct windows *windows);

#endif
