#include "cli/version.h"

#include "base/version.h"
#include "cli/say.h"
#include "os/file.h"
#include "runtime/runtime.h"

/* Both come from the build: the commit from git, the list from vendor/manifest. */
#ifndef PILLION_COMMIT
#define PILLION_COMMIT "unknown"
#endif
#ifndef PILLION_LIBRARIES
#define PILLION_LIBRARIES ""
#endif

#ifdef __aarch64__
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "x86_64"
#endif

#ifdef __GLIBC__
#define LINKAGE "dynamic glibc"
#else
#define LINKAGE "static musl"
#endif

enum { PROGRAM_MAX_BYTES = 64 * 1024 * 1024, LINE_MAX_BYTES = 4096 };

static void add_size(struct buf *out)
{
    struct buf program;
    buf_init(&program, PROGRAM_MAX_BYTES);
    if (file_read_all("/proc/self/exe", PROGRAM_MAX_BYTES, &program, NULL))
        buf_printf(out, ", %.1f MB", (double)program.len / (1 << 20));
    buf_release(&program);
}

static void add_kernel(struct buf *out)
{
    struct buf release;
    buf_init(&release, LINE_MAX_BYTES);
    if (file_read_all("/proc/sys/kernel/osrelease", LINE_MAX_BYTES, &release, NULL)) {
        buf_text(out, "; kernel here ");
        buf_str(out, str_trim(buf_slice(&release)));
    }
    buf_release(&release);
}

static void add_readers(struct buf *out)
{
    const char *separator = "readers: ";
    for (size_t i = 0; runtimes[i]; i++)
        if (runtimes[i]->versions) {
            buf_printf(out, "%s%s %s", separator, runtimes[i]->name, runtimes[i]->versions);
            separator = ", ";
        }
    buf_byte(out, '\n');
}

void version_text(struct buf *out)
{
    buf_text(out, "pillion " PILLION_VERSION "\n" ARCHITECTURE " " LINKAGE);
    add_size(out);
    buf_text(out, ", commit " PILLION_COMMIT);
    add_kernel(out);
    buf_byte(out, '\n');
    add_readers(out);
    if (sizeof PILLION_LIBRARIES > 1)
        buf_text(out, "libraries: " PILLION_LIBRARIES "\n");
}

int version_run(void)
{
    struct buf out;
    buf_init(&out, LINE_MAX_BYTES);
    version_text(&out);
    bool ok = say_result(buf_slice(&out));
    buf_release(&out);
    return ok ? 0 : 1;
}
