#include "os/host.h"

#include <stdio.h>
#include <sys/utsname.h>

void host_names(struct host_names *out)
{
    struct utsname names;
    *out = (struct host_names){{0}, {0}, {0}};
    if (uname(&names) == 0) {
        snprintf(out->release, sizeof out->release, "%s", names.release);
        snprintf(out->version, sizeof out->version, "%s", names.version);
        snprintf(out->machine, sizeof out->machine, "%s", names.machine);
    }
}
