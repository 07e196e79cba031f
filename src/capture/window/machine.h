/*
 * machine: which machine a profile is from, for files that somebody else may send later.
 *
 *     machine_init(&m, settings)
 *     machine_learn(&m, uploader, formats)     before the first profile; it takes a socket to ask for our own address
 *     machine_note(&m, p)                      into each profile, whose texts are lent until machine_release
 *     machine_release(&m)
 *
 * Nothing is noted where the user wants no such facts, or nothing is written that holds them. Used by the publisher's
 * thread.
 */
#ifndef CAPTURE_WINDOW_MACHINE_H
#define CAPTURE_WINDOW_MACHINE_H

#include "capture/upload/origin.h"
#include "capture/upload/uploader.h"

struct machine {
    const struct settings *settings;
    const struct origin *from;     /* null: nothing is noted */
    struct origin_here here;       /* of a run that uploads nothing */
    bool is_gathered;              /* … and `here` is filled */
    uint64_t began_wall_ns, began_boot_ns;
    struct profile_machine facts;
};

void machine_init(struct machine *m, const struct settings *settings);
void machine_learn(struct machine *m, struct uploader *uploader, unsigned formats);
void machine_note(struct machine *m, struct profile *p);
void machine_release(struct machine *m);

#endif
