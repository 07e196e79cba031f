#include "runtime/ruby/private.h"

const struct runtime runtime_ruby = {
    .name = "ruby",
    .versions = "2.3 to 4.0",
    .kind = FRAME_RUBY,
    .recognise = ruby_recognise,
    .forget = ruby_forget,
    .native_at = ruby_native_at,
    .attach = ruby_attach,
    .detach = ruby_detach,
    .describe = ruby_describe,
    .walk = ruby_walk,
    .running = ruby_running,
    .open_names = ruby_open_names,
    .close_names = ruby_close_names,
    .name_frames = ruby_name_frames,
};
