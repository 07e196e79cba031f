/*
 * heaviest: what a window's back ends are told of the process that used most of its CPU time: what it was begun as
 * (target/entry.h), and the release of what it was built with.
 *
 * Both are read while it lives, once per process and program: it may have ended when the window does.
 */
#ifndef CAPTURE_UPLOAD_HEAVIEST_H
#define CAPTURE_UPLOAD_HEAVIEST_H

#include "capture/concern.h"
#include "capture/follow/follow.h"
#include "runtime/runtime.h"

struct heaviest;

extern const struct concern heaviest_concern;

struct heaviest *heaviest_new(struct follow *f, const struct runtime *const *rows);

#endif
