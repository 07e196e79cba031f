#include "runtime/python/private.h"

const struct runtime runtime_python = {
    .name = "python",
    .versions = "2.7 and 3.5 to 3.15",
    .kind = FRAME_PYTHON,
    .extension = "_asyncio.",
    .recognise = python_recognise,
    .forget = python_forget,
    .native_at = python_native_at,
    .attach = python_attach,
    .detach = python_detach,
    .extend = python_extend,
    .describe = python_describe,
    .walk = python_walk,
    .locks = python_locks,
    .tasks = python_tasks,
    .running = python_running,
    .open_names = python_open_names,
    .close_names = python_close_names,
    .name_frames = python_name_frames,
    .name_thread = python_name_thread,
    .read_name = python_read_name,
};
