#include "cli/install.h"

#include "cli/say.h"
#include "os/file.h"

enum { PATH_MAX_BYTES = 8192 };

int install_run(const struct request *request)
{
    struct buf path;
    struct err err;
    buf_init(&path, PATH_MAX_BYTES);
    bool ok = file_copy_self(request->words[0], &path, &err);
    if (ok) {
        buf_byte(&path, '\n');
        ok = say_result(buf_slice(&path));
    } else {
        say("%s", err.text);
    }
    buf_release(&path);
    return ok ? 0 : 1;
}
