#include "cli/dump.h"

#include "base/time.h"
#include "capture/run/capture.h"
#include "cli/say.h"
#include "os/console.h"
#include "os/door.h"

enum { STANDARD_OUTPUT = 1, SHOWN_MAX_BYTES = 64 << 20, DUMP_HZ = 199 };

/* A run of its own kind: short, about the named processes alone, without a word when all is well, and asking no runtime
 * for anything. */
static struct settings settings_of(const struct request *request)
{
    struct settings s = request->settings;
    s.scope.mode = TARGET_PIDS;
    s.scope.children = false;
    s.scope.enabled = true;
    s.sampling = (struct sampling_settings){.frequency_hz = DUMP_HZ,
                                            .stops_hz = DUMP_HZ,
                                            .window_ns = 60 * NS_PER_S, /* it ends before */
                                            .wall = true,
                                            .perf_mode = s.sampling.perf_mode,
                                            .brief_stops = s.sampling.brief_stops};
    s.runtime.attaches = false;
    s.runtime.only_light = true;
    s.runtime.collected = 0;
    s.output = (struct output_settings){0};
    s.upload = (struct upload_settings){0};
    s.budget.cpu_percent = 100;
    s.log.level = request->verbose ? s.log.level : LOG_ERROR; /* what is missing is told where it is missing */
    return s;
}

int dump_run(const struct request *request)
{
    struct door *door = door_new();
    const struct world world = world_behind(door);
    const struct settings settings = settings_of(request);
    bool on_terminal = console_is_terminal(STANDARD_OUTPUT);
    struct dump_request dump = {.form = {.json = request->json,
                                         .all_frames = request->all_frames,
                                         .rows = on_terminal ? console_rows(STANDARD_OUTPUT) : 0}};
    buf_init(&dump.out, SHOWN_MAX_BYTES);
    int status = capture_dump(&settings, &world, &dump);
    if (dump.out.len > 0 && !say_result(buf_slice(&dump.out)))
        status = 1;
    buf_release(&dump.out);
    door_free(door);
    return status;
}
