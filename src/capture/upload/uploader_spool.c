/* The uploader's files: writes unsent windows into the spool, finds the oldest of a back end, reads
 * it again, and removes what is too old or too much. What lies there is not trusted: it is parsed
 * as if a stranger had written it. */
#include "base/time.h"
#include "capture/upload/uploader_private.h"
#include "os/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FILES_MAX = 1000,
    FREE_SHARE = 10, /* no more than a tenth of what is free */
};
#define AGE_MAX_NS (7 * 86400 * NS_PER_S)

struct spool_file {
    char name[SPOOL_NAME_MAX];
    struct window_key key;
    struct str backend; /* in name */
    uint64_t bytes;
};

struct spool_list {
    VEC(struct spool_file) files;
    uint64_t bytes;
};

static void note_file(void *context, const char *name, uint64_t bytes)
{
    struct spool_list *list = context;
    struct spool_file file = {.bytes = bytes};
    if (list->files.len > 2 * FILES_MAX ||
        !spool_is_name(str_of(name), &file.key.start_ms, &file.key.sequence, &file.backend)) {
        return;
    }
    struct spool_file *place = vec_push(&list->files);
    if (place != NULL) {
        *place = file;
        snprintf(place->name, sizeof place->name, "%s", name);
        place->backend.ptr = place->name + (file.backend.ptr - name);
        list->bytes += bytes;
    }
}

static int by_age(const void *left, const void *right)
{
    const struct spool_file *a = left, *b = right;
    return window_key_less(a->key, b->key) ? -1 : window_key_less(b->key, a->key);
}

static void list_spool(struct uploader *up, struct spool_list *list)
{
    *list = (struct spool_list){0};
    store_each(&up->store, note_file, list);
    if (list->files.len > 0) {
        qsort(list->files.at, list->files.len, sizeof *list->files.at, by_age);
    }
    vec_each(&list->files, file)
    { /* names moved with their elements */
        uint64_t ms, sequence;
        (void)spool_is_name(str_of(file->name), &ms, &sequence, &file->backend);
    }
}

uint64_t spool_age_ns(const struct backend *row)
{
    return row->most_age_ns > 0 && row->most_age_ns < AGE_MAX_NS ? row->most_age_ns : AGE_MAX_NS;
}

static bool is_too_old(const struct spool_file *file, uint64_t now_wall_ns)
{
    const struct backend *row = backend_by_name(file->backend);
    uint64_t age_ms = (row != NULL ? spool_age_ns(row) : AGE_MAX_NS) / NS_PER_MS;
    return file->key.start_ms + age_ms < now_wall_ns / NS_PER_MS;
}

static struct upload_queue *queue_of(struct uploader *up, struct str backend)
{
    for (size_t i = 0; i < up->queue_count; i++) {
        if (str_eq(str_of(up->queues[i].row->name), backend)) {
            return &up->queues[i];
        }
    }
    return NULL;
}

static bool holds(const struct spool_list *list, const char *name)
{
    bool found = false;
    vec_each(&list->files, file)
    {
        found = found || strcmp(file->name, name) == 0;
    }
    return found;
}

/* A window whose copy in memory is left is not lost with its file. With the lock held. */
static bool is_in_memory(struct upload_queue *queue, const char *name)
{
    bool found = false;
    vec_each(&queue->items, item)
    {
        if (strcmp(item->name, name) == 0) {
            item->in_spool = false;
            found = true;
        }
    }
    if (queue->has_current && strcmp(queue->current.name, name) == 0) {
        queue->current.in_spool = false;
        found = true;
    }
    return found;
}

static void evict(struct uploader *up, const struct spool_file *file, const char *why)
{
    store_remove(&up->store, file->name);
    pthread_mutex_lock(&up->lock);
    struct upload_queue *queue = queue_of(up, file->backend);
    bool kept = queue != NULL && is_in_memory(queue, file->name);
    if (queue != NULL) {
        queue->spooled -= queue->spooled > 0;
        queue->counts.dropped += !kept;
    }
    pthread_mutex_unlock(&up->lock);
    if (!kept) {
        log_once_for(up->log, LOG_WARNING, why, "the spool %s gave up a window: %s", up->store.path,
                     why);
    }
}

/* Bytes that all files together may take. */
static uint64_t most_bytes(struct uploader *up, const struct spool_list *list)
{
    uint64_t free_bytes = store_free_bytes(&up->store);
    uint64_t most = up->settings->upload.spool_max_bytes;
    if (free_bytes < UINT64_MAX / 2) {
        uint64_t share = (free_bytes + list->bytes) / FREE_SHARE;
        most = share < most ? share : most;
    }
    return most;
}

/* The oldest go until `bytes` fit; those of the list that are gone are cut off its front. */
static bool make_room(struct uploader *up, struct spool_list *list, uint64_t bytes)
{
    uint64_t most = most_bytes(up, list), now_wall_ns = clock_wall_ns();
    size_t count = list->files.len;
    if (bytes > most) {
        return false;
    }
    vec_each(&list->files, file)
    {
        bool is_old = is_too_old(file, now_wall_ns);
        if (!is_old && list->bytes + bytes <= most && count < FILES_MAX) {
            continue;
        }
        evict(up, file, is_old ? "it is too old for its service"
                               : "--spool-max is reached, or a tenth of the free disk, or 1000 files");
        list->bytes -= file->bytes;
        count--;
    }
    return true;
}

static void count_files(struct uploader *up, const struct spool_list *list)
{
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->queue_count; i++) {
        up->queues[i].spooled = 0;
    }
    vec_each(&list->files, file)
    {
        struct upload_queue *queue = queue_of(up, file->backend);
        if (queue != NULL) {
            queue->spooled++;
        }
    }
    pthread_mutex_unlock(&up->lock);
}

void spool_start(struct uploader *up)
{
    struct err err;
    struct spool_list list;
    if (up->settings->upload.spool_dir == NULL) {
        return;
    }
    up->has_store = store_open(&up->store, up->settings->upload.spool_dir, &err);
    if (!up->has_store) {
        log_once(up->log, LOG_WARNING, "%s; unsent windows are kept in memory only", err.text);
        return;
    }
    list_spool(up, &list);
    count_files(up, &list);
    (void)make_room(up, &list, 0);
    vec_release(&list.files);
}

static bool write_item(struct upload_queue *queue, const struct upload_item *item, struct err *err)
{
    struct uploader *up = queue->up;
    struct spool_list list;
    struct buf file;
    buf_init(&file, SPOOL_HEAD_MAX + item->bytes.len);
    bool ok = spool_write(&item->delivery, queue->row->name, sender_address_hash(queue->sender),
                          &file, err);
    list_spool(up, &list);
    if (ok && !make_room(up, &list, file.len)) {
        ok = err_set(err, ERR_LIMIT, 0,
                     "the spool %s has no room for %zu KB: --spool-max and a tenth of the free disk "
                     "are the limits",
                     up->store.path, (file.len + 1023) / 1024);
    }
    ok = ok && store_put(&up->store, item->name, buf_slice(&file), err);
    vec_release(&list.files);
    buf_release(&file);
    return ok;
}

static bool loses_file(struct upload_item *item, const struct spool_list *found)
{
    bool loses = item->in_spool && !holds(found, item->name);
    item->in_spool = item->in_spool && !loses;
    return loses;
}

/* Those of the queue that only files had, of which `found` are left. With the lock held. */
static uint64_t count_missing(struct upload_queue *queue, const struct spool_list *found)
{
    uint64_t missing = queue->spooled, left = 0;
    vec_each(&found->files, file)
    {
        left += str_eq(file->backend, str_of(queue->row->name));
    }
    missing = missing > left ? missing - left : 0;
    vec_each(&queue->items, item)
    {
        missing -= loses_file(item, found) && missing > 0;
    }
    missing -= queue->has_current && loses_file(&queue->current, found) && missing > 0; /* it may arrive yet */
    queue->spooled = left;
    return missing;
}

void spool_count_lost(struct uploader *up, bool ended)
{
    struct spool_list list = {0};
    uint64_t lost = 0;
    bool is_gone = up->has_store && !store_is_there(&up->store);
    if (!up->has_store || !(is_gone || ended)) {
        return;
    }
    if (!is_gone) {
        list_spool(up, &list);
    }
    pthread_mutex_lock(&up->lock);
    for (size_t i = 0; i < up->queue_count; i++) {
        uint64_t missing = count_missing(&up->queues[i], &list);
        up->queues[i].counts.dropped += missing;
        lost += missing;
    }
    pthread_mutex_unlock(&up->lock);
    vec_release(&list.files);
    if (lost > 0) {
        log_once(up->log, LOG_WARNING, "%s %s was removed, and windows with it: %llu",
                 is_gone ? "the spool" : "some of the spool", up->store.path, (unsigned long long)lost);
    }
}

void spool_keep(struct upload_queue *queue, struct upload_item *item)
{
    struct err err;
    spool_name(&item->delivery, queue->row->name, item->name);
    if (!queue->up->has_store) {
        return;
    }
    spool_count_lost(queue->up, false);
    item->in_spool = write_item(queue, item, &err);
    if (item->in_spool) {
        pthread_mutex_lock(&queue->up->lock);
        queue->spooled++;
        pthread_mutex_unlock(&queue->up->lock);
    } else {
        log_once(queue->up->log, LOG_WARNING, "%s; unsent windows are kept in memory only",
                 err.text);
    }
}

void spool_drop(struct upload_queue *queue, const char *name)
{
    store_remove(&queue->up->store, name);
    pthread_mutex_lock(&queue->up->lock);
    queue->spooled -= queue->spooled > 0;
    pthread_mutex_unlock(&queue->up->lock);
}

bool spool_oldest(struct upload_queue *queue, struct window_key after, struct window_key *key,
                  char name[static SPOOL_NAME_MAX])
{
    struct spool_list list;
    bool found = false;
    if (!queue->up->has_store) {
        return false;
    }
    list_spool(queue->up, &list);
    vec_each(&list.files, file)
    {
        if (str_eq(file->backend, str_of(queue->row->name)) && window_key_less(after, file->key) &&
            map_find(&queue->left_alone, str_hash(str_of(file->name))) == NULL) {
            *key = file->key;
            memcpy(name, file->name, SPOOL_NAME_MAX);
            found = true;
            break;
        }
    }
    vec_release(&list.files);
    return found;
}

static void leave_alone(struct upload_queue *queue, const char *name)
{
    if (queue->left_alone.len > FILES_MAX ||
        !map_put(&queue->left_alone, str_hash(str_of(name)), 1)) {
        spool_drop(queue, name);
    }
}

/* One that a run with more memory has left does not fit into ours. */
static size_t most_file_bytes(struct uploader *up)
{
    pthread_mutex_lock(&up->lock);
    size_t most = up->most_bytes + SPOOL_HEAD_MAX;
    pthread_mutex_unlock(&up->lock);
    return most;
}

static void skip_unread(struct upload_queue *queue, const char *name, const struct err *err)
{
    struct uploader *up = queue->up;
    leave_alone(queue, name); /* it was evicted, or cannot be read */
    if (err->kind == ERR_LIMIT) {
        log_once_for(up->log, LOG_WARNING, "a large file",
                     "the spool %s holds windows that are larger than an eighth of --max-memory: "
                     "they stay there; raise it, or send them with pillion upload",
                     up->store.path);
    }
}

bool spool_load(struct upload_queue *queue, const char *name, struct upload_item *out)
{
    struct uploader *up = queue->up;
    struct err err;
    struct str backend;
    uint64_t hash;
    *out = (struct upload_item){.in_spool = true, .is_of_file = true};
    snprintf(out->name, sizeof out->name, "%s", name);
    if (!store_get(&up->store, name, most_file_bytes(up), &out->bytes, &err)) {
        skip_unread(queue, name, &err);
        return false;
    }
    bool ok = spool_read(buf_slice(&out->bytes), &out->delivery, &backend, &hash, &err);
    if (!ok && err.kind == ERR_MALFORMED) {
        spool_drop(queue, name);
        pthread_mutex_lock(&up->lock);
        queue->counts.dropped++;
        pthread_mutex_unlock(&up->lock);
        log_once(up->log, LOG_WARNING, "%s and was removed: %s/%s", err.text, up->store.path, name);
    } else if (!ok || hash != sender_address_hash(queue->sender)) {
        leave_alone(queue, name);
        log_once_for(up->log, LOG_WARNING, "another address",
                     "the spool %s holds windows for another address of %s, or of a later pillion: "
                     "they stay there; pillion upload can send them",
                     up->store.path, queue->row->name);
        ok = false;
    }
    if (!ok) {
        buf_release(&out->bytes);
    }
    return ok;
}
