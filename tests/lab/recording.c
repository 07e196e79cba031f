/*
 * recording: reads what recorder.c wrote, and answers from it as the system answered then. All of it is
 * unpacked in memory; pages are found by file or process, moment and number.
 */
#include "recording.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/vec.h"
#include "base/gzip.h"
#include "recording_chunks.h"
#include "os/file.h"

#include <stdlib.h>

enum {
    FILE_MAX_BYTES = 1 << 30,
    PLAIN_MAX_BYTES = 2000 << 20,
};

struct text_row {
    uint32_t pid, tid;
    struct str name, text;
};

struct mapped_row {
    uint32_t pid, file;
    uint64_t inode;
    struct str path;
};

struct page_row {
    uint32_t file; /* or pid */
    uint64_t moment, offset;
    struct str bytes;
};

struct step {
    enum chunk kind;
    uint32_t pid;
    bool flag;
    struct str record;
};

struct played_file {
    struct recording *recording;
    uint32_t id;
};

struct recording {
    struct buf plain;
    struct observed_format format;
    struct str vdso;
    VEC(struct text_row) texts;
    VEC(struct mapped_row) mapped, under, perf_maps;
    VEC(struct page_row) pages, memory;
    struct map page_ids, memory_ids;
    VEC(struct step) steps;
    uint64_t *aligned; /* the record at hand */
    uint32_t pid;
    uint64_t moment;
};

static struct str rest_of(const struct cursor *c)
{
    return (struct str){(const char *)c->ptr, c->len};
}

static uint64_t page_key(uint64_t a, uint64_t moment, uint64_t page)
{
    return hash_u64(a ^ hash_u64(moment ^ hash_u64(page)));
}

static bool take_format(struct recording *r, struct cursor *c)
{
    r->format.frequency_hz = cursor_u32(c);
    r->format.sample_type = cursor_u64(c);
    r->format.registers = cursor_u64(c);
    r->format.cfi_only = cursor_u8(c);
    return r->format.frequency_hz > 0;
}

static bool take_text(struct recording *r, struct cursor *c)
{
    struct text_row *row = vec_push(&r->texts);
    if (row == NULL) {
        return false;
    }
    row->pid = cursor_u32(c);
    row->tid = cursor_u32(c);
    row->name = cursor_cstr(c);
    row->text = rest_of(c);
    return true;
}

static bool take_mapped(struct recording *r, enum chunk kind, struct cursor *c)
{
    struct mapped_row *row = kind == CHUNK_MAPPED  ? vec_push(&r->mapped)
                             : kind == CHUNK_UNDER ? vec_push(&r->under)
                                                   : vec_push(&r->perf_maps);
    if (row == NULL) {
        return false;
    }
    row->pid = kind == CHUNK_UNDER ? 0 : cursor_u32(c);
    row->file = cursor_u32(c);
    row->inode = kind == CHUNK_MAPPED ? cursor_u64(c) : 0;
    row->path = rest_of(c);
    return true;
}

static bool take_page(struct recording *r, enum chunk kind, struct cursor *c)
{
    bool memory = kind == CHUNK_MEMORY;
    struct page_row *row = memory ? vec_push(&r->memory) : vec_push(&r->pages);
    if (row == NULL) {
        return false;
    }
    row->file = cursor_u32(c);
    row->moment = memory ? cursor_u64(c) : 0;
    row->offset = cursor_u64(c);
    row->bytes = rest_of(c);
    uint64_t key = page_key(row->file, row->moment, row->offset / RECORDING_PAGE_BYTES);
    return memory ? map_add(&r->memory_ids, key, r->memory.len - 1)
                  : map_add(&r->page_ids, key, r->pages.len - 1);
}

static bool take_step(struct recording *r, enum chunk kind, struct cursor *c)
{
    struct step *step = vec_push(&r->steps);
    if (step == NULL) {
        return false;
    }
    step->kind = kind;
    step->pid = kind == CHUNK_TARGET ? cursor_u32(c) : 0;
    step->flag = kind == CHUNK_RING ? false : cursor_u8(c) != 0;
    step->record = rest_of(c);
    return true;
}

static bool take_chunk(struct recording *r, enum chunk kind, struct cursor *c)
{
    switch (kind) {
    case CHUNK_FORMAT:
        return take_format(r, c);
    case CHUNK_VDSO:
        r->vdso = rest_of(c);
        return true;
    case CHUNK_TEXT:
        return take_text(r, c);
    case CHUNK_MAPPED:
    case CHUNK_UNDER:
    case CHUNK_PERF_MAP:
        return take_mapped(r, kind, c);
    case CHUNK_PAGE:
    case CHUNK_MEMORY:
        return take_page(r, kind, c);
    case CHUNK_TARGET:
    case CHUNK_RING:
    case CHUNK_ROUND:
        return take_step(r, kind, c);
    }
    return false;
}

static bool take_chunks(struct recording *r, struct err *err)
{
    struct cursor c = cursor_of(r->plain.ptr, r->plain.len);
    const void *start = cursor_take(&c, RECORDING_MAGIC_BYTES);
    if (start == NULL || memcmp(start, RECORDING_MAGIC, RECORDING_MAGIC_BYTES) != 0) {
        return err_set(err, ERR_UNSUPPORTED, 0, "no recording of this version");
    }
    while (c.len > 0) {
        enum chunk kind = (enum chunk)cursor_u8(&c);
        uint32_t len = cursor_u32(&c);
        const void *bytes = cursor_take(&c, len);
        struct cursor chunk = cursor_of(bytes, bytes == NULL ? 0 : len);
        if (bytes == NULL || !take_chunk(r, kind, &chunk) || chunk.short_read) {
            return err_set(err, ERR_MALFORMED, 0, "the recording is damaged %zu bytes before its "
                           "end", c.len);
        }
    }
    return true;
}

struct recording *recording_open(const char *path, struct err *err)
{
    struct recording *r = calloc(1, sizeof *r);
    struct buf file;
    if (r == NULL || (r->aligned = malloc(UINT16_MAX + 1)) == NULL) {
        free(r);
        err_set(err, ERR_MEMORY, 0, "no memory to read %s", path);
        return NULL;
    }
    buf_init(&file, FILE_MAX_BYTES);
    buf_init(&r->plain, PLAIN_MAX_BYTES);
    bool good = file_read_all(path, FILE_MAX_BYTES, &file, err) &&
                gzip_inflate(file.ptr, file.len, &r->plain, err) && take_chunks(r, err);
    buf_release(&file);
    if (!good) {
        recording_release(r);
        return NULL;
    }
    return r;
}

void recording_release(struct recording *r)
{
    if (r == NULL) {
        return;
    }
    buf_release(&r->plain);
    vec_release(&r->texts);
    vec_release(&r->mapped);
    vec_release(&r->under);
    vec_release(&r->perf_maps);
    vec_release(&r->pages);
    vec_release(&r->memory);
    vec_release(&r->steps);
    map_release(&r->page_ids);
    map_release(&r->memory_ids);
    free(r->aligned);
    free(r);
}

const struct observed_format *recording_format(const struct recording *r)
{
    return &r->format;
}

static bool not_recorded(struct err *err)
{
    return err_set(err, ERR_GONE, 0, "not in the recording");
}

static bool play_text(void *context, uint32_t pid, uint32_t tid, const char *name, struct buf *out,
                      struct err *err)
{
    struct recording *r = context;
    vec_each(&r->texts, row)
    {
        if (row->pid == pid && row->tid == tid && str_eq(row->name, str_of(name))) {
            buf_clear(out);
            buf_str(out, row->text);
            return !out->failed;
        }
    }
    return not_recorded(err);
}

static bool play_page(const struct recording *r, uint32_t file, uint64_t offset, char *out,
                      size_t len)
{
    uint64_t key = page_key(file, 0, offset / RECORDING_PAGE_BYTES);
    for (struct map_slot *slot = map_find(&r->page_ids, key); slot != NULL;
         slot = map_next(&r->page_ids, slot)) {
        const struct page_row *row = &r->pages.at[slot->value];
        if (row->file == file && row->offset <= offset &&
            offset + len <= row->offset + row->bytes.len) {
            memcpy(out, row->bytes.ptr + (offset - row->offset), len);
            return true;
        }
    }
    return false;
}

static bool play_file_read(void *context, uint64_t offset, void *out, size_t len, struct err *err)
{
    const struct played_file *file = context;
    for (size_t done = 0; done < len;) {
        size_t part = RECORDING_PAGE_BYTES - (size_t)((offset + done) % RECORDING_PAGE_BYTES);
        part = part < len - done ? part : len - done;
        if (!play_page(file->recording, file->id, offset + done, (char *)out + done, part)) {
            return not_recorded(err);
        }
        done += part;
    }
    return true;
}

static bool play_file(struct recording *r, uint32_t id, struct world_file *out, struct err *err)
{
    struct played_file *file = id == 0 ? NULL : malloc(sizeof *file);
    if (file == NULL) {
        return not_recorded(err);
    }
    *file = (struct played_file){r, id};
    *out = (struct world_file){{play_file_read, file}, file};
    return true;
}

static bool play_mapped(void *context, uint32_t pid, const struct world_mapping *mapping,
                        struct world_file *out, struct err *err)
{
    struct recording *r = context;
    vec_each(&r->mapped, row)
    {
        if (row->pid == pid && row->inode == mapping->inode &&
            str_eq(row->path, mapping->path)) {
            return play_file(r, row->file, out, err);
        }
    }
    return not_recorded(err);
}

static bool play_root_of(void *context, uint32_t pid, struct world_root *out)
{
    (void)context;
    (void)pid;
    (void)out;
    return false;
}

static bool play_open_root(void *context, uint32_t pid, void **out)
{
    (void)context;
    (void)pid;
    (void)out;
    return false;
}

static void play_close_root(void *context, void *root)
{
    (void)context;
    (void)root;
}

static bool play_under(void *context, void *root, const char *path, struct world_file *out)
{
    struct recording *r = context;
    (void)root;
    vec_each(&r->under, row)
    {
        if (str_eq(row->path, str_of(path))) {
            return play_file(r, row->file, out, NULL);
        }
    }
    return false;
}

static bool play_perf_map(void *context, uint32_t pid, struct world_file *out)
{
    struct recording *r = context;
    vec_each(&r->perf_maps, row)
    {
        if (row->pid == pid) {
            return play_file(r, row->file, out, NULL);
        }
    }
    return false;
}

static void play_close(void *context, struct world_file *file)
{
    (void)context;
    free(file->handle);
}

static bool play_memory_page(const struct recording *r, uint64_t address, char *out, size_t len)
{
    uint64_t key = page_key(r->pid, r->moment, address / RECORDING_PAGE_BYTES);
    for (struct map_slot *slot = map_find(&r->memory_ids, key); slot != NULL;
         slot = map_next(&r->memory_ids, slot)) {
        const struct page_row *row = &r->memory.at[slot->value];
        if (row->file == r->pid && row->moment == r->moment && row->offset <= address &&
            address + len <= row->offset + row->bytes.len) {
            memcpy(out, row->bytes.ptr + (address - row->offset), len);
            return true;
        }
    }
    return false;
}

static bool play_memory_read(void *context, uint64_t address, void *out, size_t len,
                             struct err *err)
{
    const struct recording *r = context;
    for (size_t done = 0; done < len;) {
        size_t part = RECORDING_PAGE_BYTES - (size_t)((address + done) % RECORDING_PAGE_BYTES);
        part = part < len - done ? part : len - done;
        if (!play_memory_page(r, address + done, (char *)out + done, part)) {
            return not_recorded(err);
        }
        done += part;
    }
    return true;
}

static struct memory_reader play_memory(void *context, uint32_t pid, uint64_t moment_ns)
{
    struct recording *r = context;
    r->pid = pid;
    r->moment = moment_ns;
    return (struct memory_reader){play_memory_read, r};
}

struct world recording_world(struct recording *r)
{
    return (struct world){.text = play_text,
                          .mapped = play_mapped,
                          .root_of = play_root_of,
                          .open_root = play_open_root,
                          .close_root = play_close_root,
                          .under = play_under,
                          .perf_map = play_perf_map,
                          .close = play_close,
                          .memory = play_memory,
                          .vdso = r->vdso,
                          .context = r};
}

void recording_replay(struct recording *r, const struct recording_steps *steps)
{
    vec_each(&r->steps, step)
    {
        if (step->kind == CHUNK_TARGET) {
            steps->target(steps->context, step->pid, step->flag);
        } else if (step->kind == CHUNK_ROUND) {
            steps->round(steps->context, step->flag);
        } else if (step->record.len <= UINT16_MAX) {
            memcpy(r->aligned, step->record.ptr, step->record.len);
            steps->ring(steps->context, r->aligned, step->record.len);
        }
    }
}
