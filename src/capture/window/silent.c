#include "capture/window/silent.h"
#include "os/door.h"

void silent_say(struct log *log, const struct world *world, unsigned *told)
{
    char path[WORLD_SILENT_MAX];
    unsigned count = world->silent == NULL ? 0 : world->silent(world->context, path);
    if (count > *told) {
        log_say(log, LOG_WARNING,
                "%s: its file system did not answer within %.1f s. For %d s nothing is read of what may not answer "
                "(FUSE, NFS, SMB): functions there have no names, and stacks may be cut",
                path, DOOR_BOUND_MS / 1e3, DOOR_SHUT_S);
    }
    *told = count;
}
