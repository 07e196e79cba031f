/* pillion: parse the command line, choose the command's row, run it, return its exit status. */
#include "capture/live/top.h"
#include "capture/run/capture.h"
#include "cli/doctor.h"
#include "cli/dump.h"
#include "cli/help.h"
#include "cli/install.h"
#include "cli/render.h"
#include "cli/report.h"
#include "cli/say.h"
#include "cli/upload.h"
#include "cli/version.h"
#include "os/console.h"
#include "os/door.h"

#include <unistd.h>

static int run(const struct settings *settings)
{
    struct door *door = door_new();
    const struct world world = world_behind(door);
    int status = capture_run(settings, &world, NULL);
    door_free(door);
    return status;
}

static int profile(const struct request *request)
{
    return run(&request->settings);
}

static int top(const struct request *request)
{
    struct settings settings = request->settings;
    settings.sampling.window_ns = top_interval_ns(&settings);
    return run(&settings);
}

static int version(const struct request *request)
{
    (void)request;
    return version_run();
}

/* A command is started with the descriptors that we were started with, closed ones included. */
static bool starts_command(const struct request *request)
{
    return request->command <= COMMAND_TOP && request->settings.scope.mode == TARGET_COMMAND;
}

static int (*const commands[COMMAND_COUNT])(const struct request *) = {
    [COMMAND_RUN] = profile,
    [COMMAND_DUMP] = dump_run,
    [COMMAND_TOP] = top,
    [COMMAND_REPORT] = report_run,
    [COMMAND_DOCTOR] = doctor_run,
    [COMMAND_RENDER] = render_run,
    [COMMAND_UPLOAD] = upload_run,
    [COMMAND_INSTALL] = install_run,
    [COMMAND_HELP] = help_run,
    [COMMAND_VERSION] = version,
};

int main(int argc, char **argv)
{
    struct request request;
    struct err err;
    int status;
    if (request_parse(&request, argc, argv, environ, &err)) {
        if (!starts_command(&request))
            console_occupy();
        if ((request.command <= COMMAND_TOP && !request.quiet) ||
            (request.command == COMMAND_DOCTOR && !request.json))
            say_warnings(buf_slice(&request.warnings));
        status = commands[request.command](&request);
    } else {
        say("%s", err.text);
        status = request.exit_status;
    }
    request_release(&request);
    return status;
}
