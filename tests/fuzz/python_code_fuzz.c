/*
 * Any bytes as a process's memory, in which code objects are looked for. The input: the version (a byte), when and
 * where the memory changes while it is read (two bytes), then memory from BASE on. Every aligned word of its first part
 * is taken for a frame's code object.
 */
#include "runtime/python/private.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BASE = 0x1000, HEAD_BYTES = 3, FRAMES = 48, CALLS = 3 };

struct target {
    uint8_t *bytes;
    size_t len;
    unsigned batches, change_batch, change_at;
};

static bool read_batch(void *context, struct memory_piece *pieces, size_t count, struct err *err)
{
    struct target *t = context;
    if (++t->batches == t->change_batch && t->change_at < t->len) {
        t->bytes[t->change_at] ^= 0x55;
    }
    bool is_gone = t->batches % 16 == 15;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = pieces[i].address - BASE;
        uint64_t there = is_gone || pieces[i].address < BASE || at > t->len ? 0 : t->len - at;
        pieces[i].got = there < pieces[i].len ? (uint32_t)there : pieces[i].len;
        if (pieces[i].got > 0) {
            memcpy(pieces[i].out, t->bytes + at, pieces[i].got);
        }
    }
    return !is_gone || err_set(err, ERR_GONE, 0, "the process ended");
}

static bool is_utf8(struct str text)
{
    for (size_t i = 0; i < text.len;) {
        unsigned char first = (unsigned char)text.ptr[i++];
        unsigned more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
        if ((first >= 0x80 && first < 0xc2) || first > 0xf4 || more > text.len - i) {
            return false;
        }
        while (more-- > 0) {
            if (((unsigned char)text.ptr[i++] & 0xc0) != 0x80) {
                return false;
            }
        }
    }
    return text.len <= RUNTIME_NAME_MAX;
}

static void check_name(const struct runtime_name *name)
{
    bool is_named = name->function.len > 0;
    if (!is_utf8(name->function) || !is_utf8(name->file) || name->line > INT32_MAX ||
        name->first_line > INT32_MAX || (!is_named && (name->file.len > 0 || name->line > 0))) {
        abort();
    }
}

static void name_all(struct python *python, struct target *t)
{
    struct memory_batch memory = {read_batch, t};
    struct runtime_frame frames[FRAMES];
    struct runtime_name names[FRAMES];
    void *state = python_open_names(python);
    for (unsigned call = 0; state != NULL && call < CALLS; call++) {
        for (size_t i = 0; i < FRAMES; i++) {
            frames[i] = (struct runtime_frame){BASE + i / 2 * 8, (uint32_t)i % 2 * 2, 0, 0};
            uint64_t at = frames[i].code - BASE;
            if (call == 1 && python->layout.code.bytes <= t->len && at <= t->len - python->layout.code.bytes) {
                frames[i].check = python_fingerprint(&python->layout, t->bytes + at);
            }
        }
        python_name_frames(state, frames, FRAMES, &memory, names);
        for (size_t i = 0; i < FRAMES; i++) {
            check_name(&names[i]);
        }
    }
    python_close_names(state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {
        PYTHON_VERSION(2, 7), PYTHON_VERSION(3, 5),  PYTHON_VERSION(3, 6),  PYTHON_VERSION(3, 8),
        PYTHON_VERSION(3, 9), PYTHON_VERSION(3, 10), PYTHON_VERSION(3, 11), PYTHON_VERSION(3, 12),
    };
    struct python python = {0};
    if (size < HEAD_BYTES ||
        !python_layout_of(versions[data[0] % 8], ELF_X86_64, false, data[0] & 8, &python.layout, NULL)) {
        return 0;
    }
    struct target t = {malloc(size), size - HEAD_BYTES, 0, data[1], data[2] * 4u};
    if (t.bytes != NULL) {
        memcpy(t.bytes, data + HEAD_BYTES, size - HEAD_BYTES);
        name_all(&python, &t);
    }
    free(t.bytes);
    return 0;
}
