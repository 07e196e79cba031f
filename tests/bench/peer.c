#include "peer.h"

#if __has_include(<elfutils/libdwfl.h>)

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* One process: libdwfl has one address space per Dwfl. */
struct attached {
    struct peer *peer;
    Dwfl *dwfl;
    bool failed;
};

struct peer {
    struct samples *samples;
    struct attached *lives;
    char *vdso; /* path of a copy */
    const struct lab_sample *at;
    struct memory_reader memory;
    size_t frames;
};

/* ---- what libdwfl asks for ---- */

static int no_debug_file(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
                         const char *file, const char *link, GElf_Word crc, char **out)
{
    (void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)out;
    return -1;
}

static int no_elf(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base, char **out,
                  Elf **elf)
{
    (void)module, (void)user, (void)name, (void)base, (void)out, (void)elf;
    return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **thread)
{
    struct attached *a = context;
    (void)dwfl;
    if (*thread != NULL) {
        return 0;
    }
    *thread = a->peer;
    return (pid_t)a->peer->at->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *context, void **thread)
{
    struct attached *a = context;
    (void)dwfl, (void)tid;
    *thread = a->peer;
    return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *out, void *context)
{
    struct attached *a = context;
    const struct lab_sample *sample = a->peer->at;
    uint64_t base = unwind_sp(&sample->registers);
    (void)dwfl;
    if (address >= base && address - base <= sample->stack_len &&
        sample->stack_len - (address - base) >= sizeof *out) {
        memcpy(out, sample->stack + (address - base), sizeof *out);
        return true;
    }
    struct memory_reader *memory = &a->peer->memory;
    return memory->read(memory->context, address, out, sizeof *out, NULL);
}

static bool set_registers(Dwfl_Thread *thread, void *context)
{
    const struct peer *peer = context;
    const struct unwind_registers *r = &peer->at->registers;
    dwfl_thread_state_register_pc(thread, unwind_ip(r));
    /* the program counter is the last one on x86-64; AArch64 has no number for it here */
    unsigned count = UNWIND_REGISTERS;
#if defined __x86_64__
    count = 17;
#elif defined __aarch64__
    count = 32;
#endif
    return dwfl_thread_state_registers(thread, 0, count, (const Dwarf_Word *)r->at);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
    .next_thread = next_thread,
    .get_thread = get_thread,
    .memory_read = read_memory,
    .set_initial_registers = set_registers,
};

static const Dwfl_Callbacks callbacks = {
    .find_elf = no_elf,
    .find_debuginfo = no_debug_file,
};

/* ---- a process ---- */

static const char *path_of(struct peer *peer, uint64_t image)
{
    struct str path = images_path(&peer->samples->images, image);
    return image == IMAGE_VDSO ? peer->vdso : path.len > 0 && path.ptr[0] == '/' ? path.ptr : NULL;
}

static void attach(struct peer *peer, struct attached *a, const struct lab_life *life)
{
    a->peer = peer;
    a->dwfl = dwfl_begin(&callbacks);
    dwfl_report_begin(a->dwfl);
    uint64_t last = IMAGE_NONE, bias = 0;
    vec_each(&life->maps, mapping) {
        const char *path = path_of(peer, mapping->image);
        bool again = mapping->image == last && mapping->bias == bias;
        if (path != NULL && !again) {
            (void)dwfl_report_elf(a->dwfl, path, path, -1, mapping->bias, true);
        }
        last = mapping->image;
        bias = mapping->bias;
    }
    a->failed = dwfl_report_end(a->dwfl, NULL, NULL) != 0 ||
                !dwfl_attach_state(a->dwfl, NULL, (pid_t)life->pid, &thread_callbacks, a);
}

static char *copy_vdso(struct str vdso)
{
    char *path = strdup("/tmp/pillion-vdso-XXXXXX");
    int fd = path == NULL ? -1 : mkstemp(path);
    bool good = fd >= 0 && write(fd, vdso.ptr, vdso.len) == (ssize_t)vdso.len;
    if (fd >= 0) {
        close(fd);
    }
    if (!good) {
        free(path);
    }
    return good ? path : NULL;
}

struct peer *peer_new(struct samples *s)
{
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer == NULL || (peer->lives = calloc(s->lives.len + 1, sizeof *peer->lives)) == NULL) {
        abort();
    }
    peer->samples = s;
    peer->vdso = copy_vdso(s->world.vdso);
    return peer;
}

void peer_free(struct peer *peer)
{
    if (peer == NULL) {
        return;
    }
    for (size_t i = 0; i < peer->samples->lives.len; i++) {
        if (peer->lives[i].dwfl != NULL) {
            dwfl_end(peer->lives[i].dwfl);
        }
    }
    if (peer->vdso != NULL) {
        unlink(peer->vdso);
    }
    free(peer->vdso);
    free(peer->lives);
    free(peer);
}

/* ---- a sample ---- */

static int count_frame(Dwfl_Frame *frame, void *context)
{
    struct peer *peer = context;
    Dwarf_Addr address;
    bool exact;
    if (!dwfl_frame_pc(frame, &address, &exact) || ++peer->frames == PEER_FRAMES_MAX) {
        return DWARF_CB_ABORT;
    }
    return DWARF_CB_OK;
}

size_t peer_unwind(struct peer *peer, const struct lab_sample *sample, bool *ended)
{
    struct attached *a = &peer->lives[sample->life];
    if (a->dwfl == NULL) {
        attach(peer, a, &peer->samples->lives.at[sample->life]);
    }
    *ended = false;
    if (a->failed) {
        return 0;
    }
    peer->at = sample;
    peer->memory = samples_memory(peer->samples, sample);
    peer->frames = 0;
    *ended = dwfl_getthread_frames(a->dwfl, (pid_t)sample->tid, count_frame, peer) == 0;
    return peer->frames;
}

const char *peer_name(void)
{
    return dwfl_version(NULL);
}

#else

struct peer *peer_new(struct samples *s)
{
    (void)s;
    return NULL;
}

void peer_free(struct peer *peer)
{
    (void)peer;
}

size_t peer_unwind(struct peer *peer, const struct lab_sample *sample, bool *ended)
{
    (void)peer;
    (void)sample;
    *ended = false;
    return 0;
}

const char *peer_name(void)
{
    return "";
}

#endif
