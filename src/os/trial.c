#include "os/trial.h"
#include "os/proc.h"
#include "os/secret.h"
#include "target/status.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t trial_fork(void)
{
    return (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
}

/* By /proc, for prctl may be what is killed for. Without /proc it may be so. */
static bool is_filtered(void)
{
    char text[4096];
    struct proc_status status;
    size_t len = proc_read_file("/proc/self/status", text, sizeof text);
    return !status_parse((struct str){text, len}, &status, NULL) || status.seccomp > 0;
}

enum trial trial_run(void (*attempt)(void))
{
    if (!is_filtered()) {
        return TRIAL_PASSED;
    }
    pid_t pid = trial_fork();
    if (pid == 0) {
        secret_leave_no_core();
        attempt();
        _exit(0);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, __WALL) < 0 && errno == EINTR) {
    }
    return pid < 0 ? TRIAL_NO_PROCESS : WIFSIGNALED(status) ? TRIAL_KILLED : TRIAL_PASSED;
}
