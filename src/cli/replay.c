#include "cli/replay.h"

#include "capture/replay.h"
#include "cli/say.h"
#include "os/file.h"

int replay_fixture_run(const struct request *request)
{
    struct file_writer writer;
    struct err err;
    bool ok = file_create_atomic(&writer, "-", &err);
    if (ok) {
        struct sink sink = file_sink(&writer);
        ok = replay_run(request->words[0], &sink, &err) && file_commit(&writer, &err);
    }
    if (!ok)
        say("%s", err.text);
    return ok ? 0 : 1;
}
