/*
 * silent: files of processes whose file system did not answer, in words.
 */
#ifndef CAPTURE_SILENT_H
#define CAPTURE_SILENT_H

#include "capture/log.h"
#include "capture/world.h"

/* Tells the latest one when there are more than *told, which is then their number. */
void silent_say(struct log *log, const struct world *world, unsigned *told);

#endif
