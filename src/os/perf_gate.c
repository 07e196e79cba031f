/* From the errno of perf_event_open to the gate that closed it (seccomp, paranoid level, gVisor,
 * limits …) and the one change that opens it. The errno and a few facts of the system decide, so the
 * table is tested without such kernels. */
#include "os/perf_gate.h"
#include "os/access.h"
#include "os/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char paranoid_file[] = "/proc/sys/kernel/perf_event_paranoid";

const char *perf_gate_name(enum perf_gate gate)
{
    static const char *const names[] = {
        [PERF_GATE_NONE] = "open",
        [PERF_GATE_SECCOMP] = "seccomp filter",
        [PERF_GATE_PARANOID] = "kernel.perf_event_paranoid",
        [PERF_GATE_NO_KERNEL_SUPPORT] = "kernel without perf events",
        [PERF_GATE_GVISOR] = "gVisor sandbox",
        [PERF_GATE_MODULE] = "seccomp filter or security module",
        [PERF_GATE_OLD_KERNEL] = "attributes unknown to this kernel",
        [PERF_GATE_DESCRIPTORS] = "limit of open files",
        [PERF_GATE_HARDWARE] = "no such hardware counter",
        [PERF_GATE_OTHER] = "unknown gate",
    };
    return names[gate];
}

void perf_read_around(struct perf_around *out)
{
    char text[16] = "";
    struct stat st;
    size_t len = proc_read_file(paranoid_file, text, sizeof text - 1);
    *out = (struct perf_around){
        .paranoid = len == 0 ? PERF_PARANOID_UNKNOWN : atoi(text),
        .has_perf = stat(paranoid_file, &st) == 0, /* access is a call that filters kill for */
        .perfmon = access_holds(CAP_PERFMON),
        .admin = access_holds(CAP_SYS_ADMIN),
    };
}

/* Without the right, level 2 refuses kernel code, and a level above refuses all. */
static bool paranoid_refuses(bool kernel, const struct perf_around *around)
{
    return around->paranoid == PERF_PARANOID_UNKNOWN || around->paranoid > (kernel ? 1 : 2);
}

enum perf_gate perf_gate_of(int number, bool kernel, const struct perf_around *around)
{
    switch (number) {
    case 0:
        return PERF_GATE_NONE;
    case EPERM:
        return PERF_GATE_SECCOMP;
    case EACCES:
        return paranoid_refuses(kernel, around) ? PERF_GATE_PARANOID : PERF_GATE_MODULE;
    case ENOSYS: /* a filter may answer so as well as a kernel built without perf */
        return around->has_perf ? PERF_GATE_SECCOMP : PERF_GATE_NO_KERNEL_SUPPORT;
    case ENODEV:
        return PERF_GATE_GVISOR;
    case EINVAL:
    case E2BIG:
        return PERF_GATE_OLD_KERNEL;
    case EMFILE:
    case ENFILE:
        return PERF_GATE_DESCRIPTORS;
    case ENOENT:
    case EOPNOTSUPP:
        return PERF_GATE_HARDWARE;
    default:
        return PERF_GATE_OTHER;
    }
}

const char *perf_gate_remedy(enum perf_gate gate, bool kernel, const struct perf_around *around)
{
    switch (gate) {
    case PERF_GATE_SECCOMP: /* not every engine's profile opens for the capability */
        return around->admin
                   ? "allow perf_event_open in the container's seccomp profile, which no capability opens here"
               : around->perfmon
                   ? "allow perf_event_open in the container's seccomp profile, or add CAP_SYS_ADMIN; CAP_PERFMON is "
                     "present, but this profile does not allow the call with it"
                   : "allow perf_event_open in the container's seccomp profile, or add CAP_PERFMON "
                     "if the profile allows the call with it (Docker's does since version 23)";
    case PERF_GATE_PARANOID:
        return kernel ? "set kernel.perf_event_paranoid to 1 or less on the host, or add CAP_PERFMON"
                      : "set kernel.perf_event_paranoid to 2 or less on the host";
    case PERF_GATE_MODULE:
        return "the paranoid level is not the cause: allow perf_event_open in the seccomp profile or "
               "the security module's policy";
    case PERF_GATE_NO_KERNEL_SUPPORT:
        return "boot a kernel that is built with perf events";
    case PERF_GATE_GVISOR:
        return "use a runtime class without gVisor";
    case PERF_GATE_OLD_KERNEL:
        return "use Linux 4.1 or later";
    case PERF_GATE_DESCRIPTORS:
        return "raise the limit of open files (ulimit -n)";
    default:
        return "";
    }
}
