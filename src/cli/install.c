#include "cli/install.h"

#include "cli/say.h"
#include "os/file.h"

enum { PATH_MAX_BYTES = 8192 };

/* Files of profiles have -o. */
static void say_failed(const struct err *err)
{
    struct str text = str_of(err->text);
    struct str cause = str_sub(text, 0, str_find_last(text, ';'));
    say("%.*s; name a folder that can be written: pillion install DIR", (int)cause.len, cause.ptr);
}

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
        say_failed(&err);
    }
    buf_release(&path);
    return ok ? 0 : 1;
}
