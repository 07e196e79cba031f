/* errno and circumstances -> gate and remedy: the rows that perf_event_open can answer with. */
#include "test.h"

#include "os/perf_gate.h"

#include <errno.h>

static const struct perf_around usual = {.paranoid = 2, .has_perf = true};

static const struct row {
    int number;
    bool kernel;
    struct perf_around around;
    enum perf_gate gate;
    const char *remedy; /* part of it */
} rows[] = {
    {0, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_NONE, ""},
    {EPERM, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_SECCOMP,
     "allow perf_event_open in the container's seccomp profile, or add CAP_PERFMON"},
    {EPERM, false, {.paranoid = 2, .has_perf = true, .perfmon = true}, PERF_GATE_SECCOMP,
     "or add CAP_SYS_ADMIN; CAP_PERFMON is present, but this profile does not allow the call with it"},
    {EPERM, false, {.paranoid = 2, .has_perf = true, .perfmon = true, .admin = true}, PERF_GATE_SECCOMP,
     "which no capability opens here"},
    /* Debian's level 3, and a level that may not be read */
    {EACCES, false, {.paranoid = 3, .has_perf = true}, PERF_GATE_PARANOID,
     "set kernel.perf_event_paranoid to 2 or less on the host"},
    {EACCES, false, {.paranoid = PERF_PARANOID_UNKNOWN, .has_perf = true}, PERF_GATE_PARANOID,
     "to 2 or less"},
    /* the level would allow it: something else refuses */
    {EACCES, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_MODULE,
     "the paranoid level is not the cause"},
    /* kernel code wants 1 */
    {EACCES, true, {.paranoid = 2, .has_perf = true}, PERF_GATE_PARANOID, "to 1 or less"},
    {EACCES, true, {.paranoid = 1, .has_perf = true}, PERF_GATE_MODULE, "not the cause"},
    {ENOSYS, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_SECCOMP, "seccomp profile"},
    {ENOSYS, false, {.paranoid = PERF_PARANOID_UNKNOWN}, PERF_GATE_NO_KERNEL_SUPPORT,
     "boot a kernel that is built with perf events"},
    {ENODEV, false, {.paranoid = PERF_PARANOID_UNKNOWN}, PERF_GATE_GVISOR,
     "use a runtime class without gVisor"},
    {EINVAL, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_OLD_KERNEL, "Linux 4.1"},
    {E2BIG, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_OLD_KERNEL, "Linux 4.1"},
    {EMFILE, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_DESCRIPTORS, "ulimit -n"},
    {ENFILE, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_DESCRIPTORS, "ulimit -n"},
    {ENOENT, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_HARDWARE, ""},
    {EOPNOTSUPP, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_HARDWARE, ""},
    {EBUSY, false, {.paranoid = 2, .has_perf = true}, PERF_GATE_OTHER, ""},
};

static void every_row(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum perf_gate gate = perf_gate_of(rows[i].number, rows[i].kernel, &rows[i].around);
        CHECK_INT(gate, rows[i].gate);
        const char *remedy = perf_gate_remedy(gate, rows[i].kernel, &rows[i].around);
        CHECK(strstr(remedy, rows[i].remedy) != NULL);
        CHECK((remedy[0] == '\0') == (rows[i].remedy[0] == '\0'));
        CHECK(perf_gate_name(gate)[0] != '\0');
    }
}

static void no_capability_that_is_there_already(void)
{
    struct perf_around holds = usual;
    holds.perfmon = true;
    CHECK(strstr(perf_gate_remedy(PERF_GATE_SECCOMP, false, &usual), "add CAP_PERFMON") != NULL);
    CHECK(strstr(perf_gate_remedy(PERF_GATE_SECCOMP, false, &holds), "add CAP_PERFMON") == NULL);
    holds.admin = true;
    CHECK(strstr(perf_gate_remedy(PERF_GATE_SECCOMP, false, &holds), "add CAP_") == NULL);
}

TESTS({"each errno under each circumstance names its gate and the change that opens it", every_row},
      {"a capability that is there already is no advice", no_capability_that_is_there_already})
