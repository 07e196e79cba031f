/* Which shape a launch takes by itself. A profiler beside the command loses its last window where a container ends with
 * the command, and everything in it with it; a parent that stays takes the command's PID away. */
#include "base/str.h"
#include "os/launch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_PID_NAMESPACE = (int)0xeffffffcu }; /* its inode: include/linux/proc_ns.h, PROC_PID_INIT_INO */

static bool in_first_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == (ino_t)(unsigned)FIRST_PID_NAMESPACE;
}

static bool is_systemd_first(void)
{
    char name[32];
    int fd = open("/proc/1/comm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, name, sizeof name);
    if (fd >= 0) {
        close(fd);
    }
    return got > 0 && str_eq(str_trim((struct str){name, (size_t)got}), STR("systemd"));
}

bool launch_in_container(void)
{
    return getpid() == 1 || (!in_first_namespace() && !is_systemd_first());
}

bool launch_pid_is_told(uint32_t own)
{
    const char *listen = getenv("LISTEN_PID"), *notify = getenv("NOTIFY_SOCKET");
    uint64_t pid;
    return (listen != NULL && str_u64(str_of(listen), &pid) && pid == own) ||
           (notify != NULL && notify[0] != '\0');
}

bool launch_prefers_init(void)
{
    if (getpid() == 1) {
        return true;
    }
    if (launch_pid_is_told((uint32_t)getpid())) {
        return false;
    }
    bool ends_with_us = getppid() == 0 || (getppid() == 1 && !in_first_namespace());
    return isatty(STDERR_FILENO) == 1 || (ends_with_us && !is_systemd_first());
}
