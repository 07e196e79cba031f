/*
 * plant [pillion's options] -- COMMAND...: a run of pillion whose sampler makes, with each round of the rings, system
 * calls that it has no business with: a socket, a program.
 */
#include "capture/run/capture.h"
#include "cli/request.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static bool begin(void *context, const struct observed_format *format, struct err *err)
{
    (void)context, (void)format, (void)err;
    return true;
}

static void target(void *context, uint32_t pid, bool running)
{
    (void)context, (void)pid, (void)running;
}

static void ring(void *context, const void *record, size_t len)
{
    (void)context, (void)record, (void)len;
}

static void stray(void *context, bool last)
{
    char *const shell[] = {"/bin/sh", "-c", "echo executed", NULL};
    (void)context, (void)last;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0) {
        fprintf(stderr, "a socket\n"); /* a profiler has no standard output */
    }
    execve(shell[0], shell, environ);
}

static bool end(void *context, struct err *err)
{
    (void)context, (void)err;
    return true;
}

int main(int argc, char **argv)
{
    const struct observer observer = {begin, target, ring, stray, end, NULL};
    const struct world system = world_here();
    struct request request;
    struct err err;
    if (!request_parse(&request, argc, argv, environ, &err) || request.command != COMMAND_RUN) {
        fprintf(stderr, "plant: %s\n", err.text);
        return EXIT_USAGE;
    }
    int status = capture_run(&request.settings, &system, &observer);
    request_release(&request);
    return status;
}
