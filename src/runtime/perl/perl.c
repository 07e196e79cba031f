#include "runtime/perl/private.h"

const struct runtime runtime_perl = {
    .name = "perl",
    .versions = "5.28 to 5.44",
    .kind = FRAME_PERL,
    .recognise = perl_recognise,
    .forget = perl_forget,
    .native_at = perl_native_at,
    .attach = perl_attach,
    .detach = perl_detach,
    .describe = perl_describe,
    .walk = perl_walk,
    .wants_registers = true,
    .open_names = perl_open_names,
    .close_names = perl_close_names,
    .name_frames = perl_name_frames,
    .open_code = perl_open_code,
    .close_code = perl_ops_close,
    .resolve = perl_resolve,
};
