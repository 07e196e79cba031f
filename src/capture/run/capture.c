/* A run from the settings to the exit status: a command is launched, or processes are attached to. What is said of a
 * command that cannot be started, and of a run that is switched off, is said here. What is sampled is the matter of
 * run.h, and how a command is started that of os/launch. */
#include "capture/run/capture.h"
#include "base/nearest.h"
#include "capture/run/run.h"
#include "capture/upload/sender.h"
#include "os/console.h"
#include "os/file.h"
#include "os/launch.h"
#include "os/secret.h"

#include <stdio.h>
#include <string.h>

enum { STDERR_FD = 2, EXIT_NO_PROFILE = 1 };

static int profile_command(void *context, struct launch_target *target)
{
    return run_command(context, target);
}

/* In the parent that stays, which leaves no core either while it keeps a secret for the next profiler. */
static void hide_variables(void *context)
{
    const struct run_input *input = context;
    if (input->settings->upload.wanted) {
        secret_leave_no_core();
    }
    sender_hide_variables();
}

struct neighbours {
    struct nearest nearest;
};

static void offer(void *context, const char *name)
{
    struct neighbours *n = context;
    nearest_offer(&n->nearest, name);
}

/* The file beside a mistyped path that was probably meant: "./serve.sh exists". So is one that was typed without its
 * folder: an image of one program has no PATH that leads to it. */
static bool find_neighbour(const char *typed, char *out, size_t out_bytes)
{
    const char *slash = strrchr(typed, '/');
    char dir[256];
    if (slash == NULL && file_exists(typed)) {
        return (size_t)snprintf(out, out_bytes, "./%s exists", typed) < out_bytes;
    }
    if (slash == NULL ||
        (size_t)snprintf(dir, sizeof dir, "%.*s", (int)(slash - typed + 1), typed) >= sizeof dir) {
        return false;
    }
    struct neighbours n = {nearest_to(slash + 1, strlen(slash + 1))};
    if (!file_list(dir, offer, &n, NULL) || n.nearest.count == 0) {
        return false;
    }
    return (size_t)snprintf(out, out_bytes, "%s%s exists", dir, n.nearest.word[0]) < out_bytes;
}

/* Shell-style: one line, before 126 or 127. */
static void say_unstartable(const struct settings *settings, int status, const struct err *err)
{
    char line[ERR_TEXT_MAX + 512], neighbour[400];
    const char *hint = settings->scope.command_hint;
    bool typed_path = strchr(settings->scope.command[0], '/') != NULL;
    if (hint == NULL && status == LAUNCH_NOT_FOUND &&
        !(typed_path && file_exists(settings->scope.command[0])) &&
        find_neighbour(settings->scope.command[0], neighbour, sizeof neighbour)) {
        hint = neighbour;
    }
    int len = snprintf(line, sizeof line, "pillion: %s%s%s\n", err->text, hint != NULL ? "; " : "",
                       hint != NULL ? hint : "");
    console_write(STDERR_FD, line, len > 0 && (size_t)len < sizeof line ? (size_t)len : 0);
}

static void say_disabled(const struct settings *settings)
{
    static const char line[] =
        "pillion: profiling is switched off by --no-enable, PILLION_ENABLED or DD_PROFILING_ENABLED\n";
    if (settings->log.level >= LOG_INFO) {
        console_write(STDERR_FD, line, sizeof line - 1);
    }
}

int capture_run(const struct settings *settings, const struct world *world, const struct observer *observer)
{
    struct run_input input = {settings, world, observer, NULL};
    if (!settings->scope.enabled) {
        say_disabled(settings);
    }
    if (!settings->scope.enabled && settings->scope.mode != TARGET_COMMAND) {
        return 0;
    }
    if (settings->scope.mode != TARGET_COMMAND) {
        return run_attach(&input);
    }
    struct launch launch = {
        .argv = settings->scope.command,
        .alone = !settings->scope.enabled,
        .shows = settings->live.on && settings->scope.enabled,
        .init = settings->scope.launch == LAUNCH_INIT || settings->live.on ||
                (settings->scope.launch == LAUNCH_AUTO && launch_prefers_init()),
        .run = profile_command,
        .hide = hide_variables,
        .context = &input,
    };
    struct err err = {0};
    int status = launch_run(&launch, &err);
    if (err.kind != ERR_NONE) {
        say_unstartable(settings, status, &err);
    }
    return status;
}

int capture_dump(const struct settings *settings, const struct world *world, struct dump_request *request)
{
    struct run_input input = {settings, world, NULL, request};
    (void)run_attach(&input);
    return request->any_stack ? 0 : EXIT_NO_PROFILE;
}
