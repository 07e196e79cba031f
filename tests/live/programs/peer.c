/*
 * peer DEED [PID]: one process reads another one's memory as the product does; linked with its objects. Both are
 * this program, whose addresses are fixed.
 *
 *     wait          until it is killed
 *     read PID      a word of that process
 *     child         a word of a child of its own
 *
 * Prints "read", or "refused: " and the sentence.
 */
#include "os/remote.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t word = 0x1122334455667788;

static int read_from(uint32_t pid)
{
    struct remote remote;
    struct err err = {0};
    uint64_t found = 0;
    uint64_t address = (uint64_t)(uintptr_t)&word;
    if (!remote_open(&remote, pid, address, &err)) {
        printf("refused: %s\n", err.text);
        return 0;
    }
    remote_close(&remote);
    const struct memory_reader reader = remote_reader(pid);
    bool good = reader.read(reader.context, address, &found, sizeof found, &err) && found == word;
    printf("%s\n", good ? "read" : "wrong");
    return !good;
}

static int read_from_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    int status = read_from((uint32_t)pid);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return status;
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "read") == 0) {
        return read_from((uint32_t)atoi(argv[2]));
    }
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        return read_from_child();
    }
    return argc > 1 && strcmp(argv[1], "wait") == 0 ? pause() : 2;
}
