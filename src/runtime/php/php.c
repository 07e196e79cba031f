#include "runtime/php/private.h"

const struct runtime runtime_php = {
    .name = "php",
    .versions = "7.1 to 8.6",
    .kind = FRAME_PHP,
    .recognise = php_recognise,
    .forget = php_forget,
    .native_at = php_native_at,
    .attach = php_attach,
    .detach = php_detach,
    .describe = php_describe,
    .walk = php_walk,
    .wants_registers = true,
    .open_names = php_open_names,
    .close_names = php_close_names,
    .name_frames = php_name_frames,
};
