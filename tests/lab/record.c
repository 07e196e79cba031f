/*
 * record FILE [pillion's options] [-- COMMAND...]: a run of pillion like any other whose raw inputs are
 * written to FILE (recording.h).
 */
#include "capture/capture.h"
#include "cli/request.h"
#include "recording.h"

#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct request request;
    struct err err;
    if (argc < 2 || !request_parse(&request, argc - 1, argv + 1, environ, &err) ||
        request.command != COMMAND_RUN) {
        fprintf(stderr, "record: %s\n", argc < 2 ? "usage: record FILE [OPTION...] [-- COMMAND...]" : err.text);
        return EXIT_USAGE;
    }
    struct world system = world_here();
    struct recorder *recorder = recorder_new(argv[1], &system);
    struct observer observer = recorder_observer(recorder);
    int status = capture_run(&request.settings, recorder_world(recorder), &observer);
    recorder_release(recorder);
    request_release(&request);
    return status;
}
