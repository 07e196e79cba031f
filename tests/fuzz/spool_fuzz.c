/* Any bytes as a file of the spool, and as a file's name: what is read lies within, and is what would be written
 * again. The checksum would keep nearly all inputs out, so it is made right as well. */
#include "deliver/spool.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    CRC_AT = 12,
    COVERED_AT = 16,
    LESS_IN_3 = 2,                         /* an empty entry */
    LESS_IN_2 = LESS_IN_3 + 8 + 4 + 1 + 1, /* identity, process id, two empty words */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool is_within(struct str text, const char *file, size_t size)
{
    return text.len == 0 || (text.ptr >= file && text.ptr + text.len <= file + size);
}

static void check_name(const uint8_t *data, size_t size)
{
    uint64_t start_ms, sequence;
    struct str backend, name = {(const char *)data, size};
    if (spool_is_name(name, &start_ms, &sequence, &backend)) {
        check(size < SPOOL_NAME_MAX && memchr(data, '/', size) == NULL && data[0] != '.');
        check(is_within(backend, (const char *)data, size) && backend.len > 0);
    }
}

static void check_file(const char *file, size_t size)
{
    struct delivery d;
    struct str backend;
    uint64_t hash;
    struct err err = {0};
    char name[64];
    struct buf again;
    if (!spool_read((struct str){file, size}, &d, &backend, &hash, &err)) {
        check(err.kind == ERR_MALFORMED || err.kind == ERR_UNSUPPORTED);
        return;
    }
    check(is_within(d.profile, file, size) && is_within(d.format, file, size) && backend.len < 64);
    check(is_within(d.subject.language, file, size) && is_within(d.subject.runtime, file, size));
    memcpy(name, backend.ptr, backend.len);
    name[backend.len] = '\0';
    for (size_t i = 0; i < d.more_count; i++) {
        check(is_within(d.more[i].profile, file, size) && is_within(d.more[i].type, file, size));
    }
    check(is_within(d.subject.entry, file, size));
    /* version 1 had no number of further profiles either */
    size_t less = file[8] >= 4 ? 0 : file[8] == 3 ? LESS_IN_3 : LESS_IN_2 + d.is_raw;
    buf_init(&again, size + less);
    check(spool_write(&d, name, hash, &again, &err) && again.len == size + less);
    buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *file = malloc(size + 1);
    check_name(data, size);
    if (file == NULL) {
        return 0;
    }
    memcpy(file, data, size);
    check_file(file, size);
    if (size > COVERED_AT) {
        uint32_t crc = (uint32_t)crc32_z(0, data + COVERED_AT, size - COVERED_AT);
        for (unsigned i = 0; i < 4; i++) {
            file[CRC_AT + i] = (char)(crc >> 8 * i & 0xff);
        }
        check_file(file, size);
    }
    free(file);
    return 0;
}
