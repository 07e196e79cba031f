/* What a recorder wrote is what the recording answers: files by page, memory by moment, texts, steps. */
#include "recording.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

/* A world of one process: a file of 10,000 bytes that count, memory that is the time. */
enum { FILE_BYTES = 10000, PID = 7 };

static bool file_read(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    (void)context;
    if (offset + len > FILE_BYTES) {
        return err_set(err, ERR_MALFORMED, 0, "the file ends");
    }
    for (size_t i = 0; i < len; i++) {
        ((unsigned char *)out)[i] = (unsigned char)((offset + i) * 7);
    }
    return true;
}

static bool fake_text(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                      struct err *err)
{
    (void)context;
    (void)err;
    buf_clear(out);
    buf_printf(out, "%u %u %s", pid, tid, name);
    return pid == PID;
}

static bool fake_mapped(void *context, uint32_t pid, const struct world_mapping *mapping,
                        struct world_file *out, struct err *err)
{
    (void)context;
    (void)pid;
    (void)err;
    *out = (struct world_file){{file_read, NULL}, NULL};
    return mapping->inode == 11 && str_eq(mapping->path, STR("/bin/app"));
}

static bool fake_perf_map(void *context, uint32_t pid, struct world_file *out)
{
    (void)context;
    *out = (struct world_file){{file_read, NULL}, NULL};
    return pid == PID;
}

static void fake_close(void *context, struct world_file *file)
{
    (void)context;
    (void)file;
}

static bool memory_read(void *context, uint64_t address, void *out, size_t len, struct err *err)
{
    if (address < 0x1000 || address + len > 0x5000) {
        return err_set(err, ERR_MALFORMED, 0, "nothing is mapped there");
    }
    memset(out, (int)(uintptr_t)context, len);
    return true;
}

static struct memory_reader fake_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    (void)context;
    (void)pid;
    return (struct memory_reader){memory_read, (void *)(uintptr_t)moment_ns};
}

static const struct world fake = {.text = fake_text,
                                  .mapped = fake_mapped,
                                  .perf_map = fake_perf_map,
                                  .close = fake_close,
                                  .memory = fake_memory,
                                  .vdso = {"vdso", 4}};

static const struct observed_format format = {99, 0x1234, 0xff01ff, 1};

struct heard {
    char text[200];
    size_t len;
};

static void hear_target(void *context, uint32_t pid, bool running)
{
    struct heard *h = context;
    h->len += (size_t)snprintf(h->text + h->len, sizeof h->text - h->len, "target %u %d;", pid,
                               running);
}

static void hear_ring(void *context, const void *record, size_t len)
{
    struct heard *h = context;
    h->len += (size_t)snprintf(h->text + h->len, sizeof h->text - h->len, "ring %.*s;", (int)len,
                               (const char *)record);
}

static void hear_round(void *context, bool last)
{
    struct heard *h = context;
    h->len += (size_t)snprintf(h->text + h->len, sizeof h->text - h->len, "round %d;", last);
}

static void path_of(char out[static 64])
{
    snprintf(out, 64, "/tmp/pillion-recording-%d", (int)getpid());
}

static void write_recording(const char *path)
{
    struct err err = {0};
    struct recorder *r = recorder_new(path, &fake);
    struct observer observer = recorder_observer(r);
    CHECK(observer.begin(observer.context, &format, &err));
    const struct world *world = recorder_world(r);
    struct world_file file;
    struct buf text;
    char bytes[8192];
    buf_init(&text, 100);
    CHECK(world->text(world->context, PID, 0, "comm", &text, NULL));
    CHECK(!world->text(world->context, 8, 0, "comm", &text, NULL));
    CHECK(world->mapped(world->context, PID,
                        &(struct world_mapping){.path = STR("/bin/app"), .inode = 11}, &file, NULL));
    CHECK(file.reader.read(file.reader.context, 4000, bytes, 200, NULL)); /* two pages */
    CHECK(file.reader.read(file.reader.context, 9990, bytes, 10, NULL));  /* the end */
    CHECK(!file.reader.read(file.reader.context, 9991, bytes, 10, NULL));
    world->close(world->context, &file);
    CHECK(!world->mapped(world->context, PID,
                        &(struct world_mapping){.path = STR("/gone"), .inode = 12}, &file, NULL));
    observer.target(observer.context, PID, true);
    observer.ring(observer.context, "first", 5);
    observer.round(observer.context, false);
    struct memory_reader at_1 = world->memory(world->context, PID, 1);
    CHECK(at_1.read(at_1.context, 0x1ff8, bytes, 16, NULL));
    struct memory_reader at_2 = world->memory(world->context, PID, 2);
    CHECK(at_2.read(at_2.context, 0x2000, bytes, 8, NULL));
    CHECK(!at_2.read(at_2.context, 0x5000, bytes, 8, NULL));
    observer.round(observer.context, true);
    CHECK(observer.end(observer.context, &err));
    recorder_release(r);
    buf_release(&text);
}

static void answers_are_those_recorded(void)
{
    char path[64];
    unsigned char bytes[200];
    struct err err = {0};
    struct world_file file;
    struct buf text;
    path_of(path);
    write_recording(path);
    struct recording *r = recording_open(path, &err);
    CHECK(r != NULL);
    CHECK_INT(recording_format(r)->registers, 0xff01ff);
    CHECK_INT(recording_format(r)->cfi_only, 1);
    struct world world = recording_world(r);
    buf_init(&text, 100);
    CHECK(world.text(world.context, PID, 0, "comm", &text, NULL));
    CHECK_STR(buf_slice(&text), "7 0 comm");
    CHECK(!world.text(world.context, PID, 0, "maps", &text, NULL));
    CHECK_STR(world.vdso, "vdso");
    CHECK(!world.mapped(world.context, PID,
                        &(struct world_mapping){.path = STR("/gone"), .inode = 12}, &file, NULL));
    CHECK(world.mapped(world.context, PID,
                        &(struct world_mapping){.path = STR("/bin/app"), .inode = 11}, &file, NULL));
    CHECK(file.reader.read(file.reader.context, 0, bytes, 200, NULL)); /* of a page that was read */
    CHECK_INT(bytes[10], 70);
    CHECK(file.reader.read(file.reader.context, 9990, bytes, 10, NULL));
    CHECK_INT(bytes[9], (unsigned char)(9999 * 7));
    CHECK(!file.reader.read(file.reader.context, 8200, bytes, 10, &err)); /* that was never read */
    CHECK_INT(err.kind, ERR_GONE);
    world.close(world.context, &file);
    struct memory_reader memory = world.memory(world.context, PID, 1);
    CHECK(memory.read(memory.context, 0x2000, bytes, 8, NULL));
    CHECK_INT(bytes[0], 1);
    memory = world.memory(world.context, PID, 2);
    CHECK(memory.read(memory.context, 0x2000, bytes, 8, NULL));
    CHECK_INT(bytes[0], 2);
    CHECK(!memory.read(memory.context, 0x1000, bytes, 8, NULL));
    buf_release(&text);
    recording_release(r);
    unlink(path);
}

static void steps_come_back_in_order(void)
{
    char path[64];
    struct err err = {0};
    struct heard heard = {{0}, 0};
    path_of(path);
    write_recording(path);
    struct recording *r = recording_open(path, &err);
    CHECK(r != NULL);
    recording_replay(r, &(struct recording_steps){hear_target, hear_ring, hear_round, &heard});
    CHECK_STR(str_of(heard.text), "target 7 1;ring first;round 0;round 1;");
    recording_release(r);
    unlink(path);
}

static void a_damaged_recording_is_refused(void)
{
    char path[64];
    struct err err = {0};
    path_of(path);
    write_recording(path);
    CHECK(truncate(path, 300) == 0);
    CHECK(recording_open(path, &err) == NULL);
    CHECK_INT(err.kind, ERR_MALFORMED);
    unlink(path);
    CHECK(recording_open(path, &err) == NULL);
}

TESTS({"a recording answers with what was read, and with nothing else", answers_are_those_recorded},
      {"steps come back in their order", steps_come_back_in_order},
      {"a cut recording is refused", a_damaged_recording_is_refused})
