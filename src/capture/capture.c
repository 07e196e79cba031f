#include "capture/capture.h"
#include "capture/session.h"
#include "os/console.h"
#include "os/launch.h"

#include <stdio.h>

enum { STDERR_FD = 2, EXIT_NO_PROFILE = 1 };

static int profile_command(void *context, struct launch_target *target)
{
    return session_command(context, target);
}

/* Shell-style: one line, before 126 or 127. */
static void say_unstartable(const struct settings *settings, const struct err *err)
{
    char line[ERR_TEXT_MAX + 256];
    const char *hint = settings->command_hint;
    int len = snprintf(line, sizeof line, "pillion: %s%s%s\n", err->text, hint != NULL ? "; " : "",
                       hint != NULL ? hint : "");
    console_write(STDERR_FD, line, len > 0 && (size_t)len < sizeof line ? (size_t)len : 0);
}

int capture_run(const struct settings *settings)
{
    if (settings->target != TARGET_COMMAND) {
        return session_attach(settings);
    }
    union {
        const struct settings *settings;
        void *context;
    } shared = {settings};
    struct launch launch = {
        .argv = settings->command,
        .init = settings->launch == LAUNCH_INIT ||
                (settings->launch == LAUNCH_AUTO && launch_prefers_init()),
        .run = profile_command,
        .context = shared.context,
    };
    struct err err = {0};
    int status = launch_run(&launch, &err);
    if (err.kind != ERR_NONE) {
        say_unstartable(settings, &err);
    }
    return status;
}
