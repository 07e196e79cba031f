/*
 * ranked UID POLICY NUMBER PROGRAM [ARGS...]: runs a program as another user and with another rank: "fifo" and its
 * priority, or "nice" and the nice value. For guests, whose busybox has neither chrt nor nice.
 */
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank(const char *policy, int number)
{
    const struct sched_param param = {.sched_priority = number};
    return strcmp(policy, "fifo") == 0 ? sched_setscheduler(0, SCHED_FIFO, &param)
                                       : setpriority(PRIO_PROCESS, 0, number);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: ranked UID fifo|nice NUMBER PROGRAM [ARGS...]\n");
        return 2;
    }
    uid_t uid = (uid_t)atoi(argv[1]);
    if (rank(argv[2], atoi(argv[3])) != 0 || setgroups(0, NULL) != 0 || setgid(uid) != 0 || setuid(uid) != 0) {
        perror("ranked");
        return 1;
    }
    execv(argv[4], argv + 4);
    perror(argv[4]);
    return 127;
}
