/*
 * recorder: writes down what passes between capture and the system; recording.h says how to use it. A
 * struct world that asks the real one and notes the answers, and an observer that notes the ring records.
 */
#include "recording.h"
#include "base/gzip.h"
#include "base/map.h"
#include "recording_chunks.h"
#include "os/file.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    MOMENT_PAGES = 256, /* pages of memory read for one sample */
    HEAD_MAX = 8192,
};

struct recorded_file {
    struct recorder *recorder;
    struct world_file real;
    uint32_t id;
    struct map pages; /* written ones, by number */
};

struct recorder {
    pthread_mutex_t lock;
    const char *path;
    const struct world *real;
    struct world world;
    struct file_writer writer;
    struct gzip gzip;
    struct sink file_sink, sink;
    struct err err;
    bool failed;
    uint32_t files;
    /* the sample at hand */
    struct memory_reader memory;
    uint32_t pid;
    uint64_t moment;
    size_t page_count;
    uint64_t page_address[MOMENT_PAGES];
    unsigned char *pages;
};

static void put_u32(struct buf *out, uint32_t value)
{
    buf_add(out, &value, sizeof value);
}

static void put_u64(struct buf *out, uint64_t value)
{
    buf_add(out, &value, sizeof value);
}

/* Writes a chunk of two parts: its fields and its bytes. */
static void write_chunk(struct recorder *r, enum chunk kind, struct buf *fields, const void *ptr,
                        size_t len)
{
    unsigned char head[5] = {(unsigned char)kind};
    uint32_t total = (uint32_t)(fields->len + len);
    memcpy(head + 1, &total, sizeof total);
    pthread_mutex_lock(&r->lock);
    r->failed = r->failed || fields->failed || !sink_write(&r->sink, head, sizeof head, &r->err) ||
                !sink_write(&r->sink, fields->ptr, fields->len, &r->err) ||
                !sink_write(&r->sink, ptr, len, &r->err);
    pthread_mutex_unlock(&r->lock);
    buf_release(fields);
}

static struct buf fields(void)
{
    struct buf out;
    buf_init(&out, HEAD_MAX);
    return out;
}

static bool record_text(void *context, uint32_t pid, uint32_t tid, const char *name,
                        struct buf *out, struct err *err)
{
    struct recorder *r = context;
    if (!r->real->text(r->real->context, pid, tid, name, out, err)) {
        return false;
    }
    struct buf head = fields();
    put_u32(&head, pid);
    put_u32(&head, tid);
    buf_add(&head, name, strlen(name) + 1);
    write_chunk(r, CHUNK_TEXT, &head, out->ptr, out->len);
    return true;
}

static void write_page(struct recorded_file *file, uint64_t offset, const void *ptr, size_t len)
{
    struct buf head = fields();
    put_u32(&head, file->id);
    put_u64(&head, offset);
    write_chunk(file->recorder, CHUNK_PAGE, &head, ptr, len);
}

/* A whole page where the file has one; at its end what was asked for. */
static void keep_page(struct recorded_file *file, uint64_t offset, const void *ptr, size_t len)
{
    unsigned char page[RECORDING_PAGE_BYTES];
    uint64_t number = offset / RECORDING_PAGE_BYTES;
    pthread_mutex_lock(&file->recorder->lock);
    bool known = map_find(&file->pages, number) != NULL;
    pthread_mutex_unlock(&file->recorder->lock);
    if (known) {
        return;
    }
    struct memory_reader *real = &file->real.reader;
    if (!real->read(real->context, number * RECORDING_PAGE_BYTES, page, sizeof page, NULL)) {
        write_page(file, offset, ptr, len);
        return;
    }
    pthread_mutex_lock(&file->recorder->lock);
    (void)map_put(&file->pages, number, 1);
    pthread_mutex_unlock(&file->recorder->lock);
    write_page(file, number * RECORDING_PAGE_BYTES, page, sizeof page);
}

static bool record_file_read(void *context, uint64_t offset, void *out, size_t len,
                             struct err *err)
{
    struct recorded_file *file = context;
    struct memory_reader *real = &file->real.reader;
    if (!real->read(real->context, offset, out, len, err)) {
        return false;
    }
    for (size_t done = 0; done < len;) {
        size_t part = RECORDING_PAGE_BYTES - (size_t)((offset + done) % RECORDING_PAGE_BYTES);
        part = part < len - done ? part : len - done;
        keep_page(file, offset + done, (const char *)out + done, part);
        done += part;
    }
    return true;
}

/* Puts a recorded file in front of the real one; its number. */
static uint32_t wrap_file(struct recorder *r, const struct world_file *real, struct world_file *out)
{
    struct recorded_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        *out = *real;
        r->failed = true;
        return 0;
    }
    pthread_mutex_lock(&r->lock);
    file->id = ++r->files;
    pthread_mutex_unlock(&r->lock);
    file->recorder = r;
    file->real = *real;
    *out = (struct world_file){{record_file_read, file}, file};
    return file->id;
}

static void record_close(void *context, struct world_file *out)
{
    struct recorder *r = context;
    struct recorded_file *file = out->handle;
    r->real->close(r->real->context, &file->real);
    map_release(&file->pages);
    free(file);
}

static bool record_mapped(void *context, uint32_t pid, const struct world_mapping *mapping,
                          struct world_file *out, struct err *err)
{
    struct recorder *r = context;
    struct world_file real;
    bool good = r->real->mapped(r->real->context, pid, mapping, &real, err);
    struct buf head = fields();
    put_u32(&head, pid);
    put_u32(&head, good ? wrap_file(r, &real, out) : 0);
    put_u64(&head, mapping->inode);
    write_chunk(r, CHUNK_MAPPED, &head, mapping->path.ptr, mapping->path.len);
    return good;
}

static bool record_root_of(void *context, uint32_t pid, struct world_root *out)
{
    struct recorder *r = context;
    return r->real->root_of(r->real->context, pid, out);
}

static bool record_open_root(void *context, uint32_t pid, void **out)
{
    struct recorder *r = context;
    return r->real->open_root(r->real->context, pid, out);
}

static void record_close_root(void *context, void *root)
{
    struct recorder *r = context;
    r->real->close_root(r->real->context, root);
}

static bool record_under(void *context, void *root, const char *path, struct world_file *out)
{
    struct recorder *r = context;
    struct world_file real;
    if (!r->real->under(r->real->context, root, path, &real)) {
        return false;
    }
    struct buf head = fields();
    put_u32(&head, wrap_file(r, &real, out));
    write_chunk(r, CHUNK_UNDER, &head, path, strlen(path));
    return true;
}

static bool record_perf_map(void *context, uint32_t pid, struct world_file *out)
{
    struct recorder *r = context;
    struct world_file real;
    if (!r->real->perf_map(r->real->context, pid, &real)) {
        return false;
    }
    struct buf head = fields();
    put_u32(&head, pid);
    put_u32(&head, wrap_file(r, &real, out));
    write_chunk(r, CHUNK_PERF_MAP, &head, NULL, 0);
    return true;
}

/* The page as it was for this sample; null when it cannot be read, or there are too many. */
static const unsigned char *memory_page(struct recorder *r, uint64_t address, struct err *err)
{
    for (size_t i = 0; i < r->page_count; i++) {
        if (r->page_address[i] == address) {
            return r->pages + i * RECORDING_PAGE_BYTES;
        }
    }
    unsigned char *page = r->pages + r->page_count * RECORDING_PAGE_BYTES;
    if (r->page_count == MOMENT_PAGES ||
        !r->memory.read(r->memory.context, address, page, RECORDING_PAGE_BYTES, err)) {
        return NULL;
    }
    r->page_address[r->page_count++] = address;
    struct buf head = fields();
    put_u32(&head, r->pid);
    put_u64(&head, r->moment);
    put_u64(&head, address);
    write_chunk(r, CHUNK_MEMORY, &head, page, RECORDING_PAGE_BYTES);
    return page;
}

static bool record_memory_read(void *context, uint64_t address, void *out, size_t len,
                               struct err *err)
{
    struct recorder *r = context;
    for (size_t done = 0; done < len;) {
        uint64_t at = address + done;
        size_t within = (size_t)(at % RECORDING_PAGE_BYTES);
        size_t part = RECORDING_PAGE_BYTES - within < len - done ? RECORDING_PAGE_BYTES - within : len - done;
        const unsigned char *page = memory_page(r, at - within, err);
        if (page == NULL) {
            return false;
        }
        memcpy((char *)out + done, page + within, part);
        done += part;
    }
    return true;
}

static struct memory_reader record_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    struct recorder *r = context;
    r->memory = r->real->memory(r->real->context, pid, moment_ns);
    r->pid = pid;
    r->moment = moment_ns;
    r->page_count = 0;
    return (struct memory_reader){record_memory_read, r};
}

static bool observe_begin(void *context, const struct observed_format *format, struct err *err)
{
    struct recorder *r = context;
    if (!file_create_atomic(&r->writer, r->path, err)) {
        return false;
    }
    r->file_sink = file_sink(&r->writer);
    if (!gzip_open(&r->gzip, &r->file_sink, err)) {
        file_abandon(&r->writer);
        return false;
    }
    r->sink = gzip_sink(&r->gzip);
    r->failed = !sink_write(&r->sink, RECORDING_MAGIC, RECORDING_MAGIC_BYTES, &r->err);
    struct buf head = fields();
    put_u32(&head, format->frequency_hz);
    put_u64(&head, format->sample_type);
    put_u64(&head, format->registers);
    buf_byte(&head, (char)format->cfi_only);
    write_chunk(r, CHUNK_FORMAT, &head, NULL, 0);
    head = fields();
    write_chunk(r, CHUNK_VDSO, &head, r->real->vdso.ptr, r->real->vdso.len);
    return true;
}

static void observe_target(void *context, uint32_t pid, bool running)
{
    struct buf head = fields();
    put_u32(&head, pid);
    buf_byte(&head, (char)running);
    write_chunk(context, CHUNK_TARGET, &head, NULL, 0);
}

static void observe_ring(void *context, const void *record, size_t len)
{
    struct buf head = fields();
    write_chunk(context, CHUNK_RING, &head, record, len);
}

static void observe_round(void *context, bool last)
{
    struct buf head = fields();
    buf_byte(&head, (char)last);
    write_chunk(context, CHUNK_ROUND, &head, NULL, 0);
}

static bool observe_end(void *context, struct err *err)
{
    struct recorder *r = context;
    bool good = !r->failed && gzip_finish(&r->gzip, &r->err);
    if (good) {
        good = file_commit(&r->writer, &r->err);
    } else {
        file_abandon(&r->writer);
    }
    gzip_release(&r->gzip);
    return good || err_set(err, r->err.kind, r->err.number, "the recording is not complete: %s", r->err.text);
}

struct recorder *recorder_new(const char *path, const struct world *world)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r == NULL || (r->pages = malloc((size_t)MOMENT_PAGES * RECORDING_PAGE_BYTES)) == NULL) {
        abort();
    }
    r->path = path;
    r->real = world;
    r->world = (struct world){.text = record_text,
                              .mapped = record_mapped,
                              .root_of = record_root_of,
                              .open_root = record_open_root,
                              .close_root = record_close_root,
                              .under = record_under,
                              .perf_map = record_perf_map,
                              .close = record_close,
                              .memory = record_memory,
                              .vdso = world->vdso,
                              .kernel_symbols = world->kernel_symbols,
                              .context = r};
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

const struct world *recorder_world(struct recorder *r)
{
    return &r->world;
}

struct observer recorder_observer(struct recorder *r)
{
    return (struct observer){observe_begin, observe_target, observe_ring, observe_round, observe_end, r};
}

void recorder_release(struct recorder *r)
{
    pthread_mutex_destroy(&r->lock);
    free(r->pages);
    free(r);
}
