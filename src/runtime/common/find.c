#include "runtime/common/find.h"

enum { TEXT_BYTES = 32, PROT_READ_WRITE = 3 };

bool find_read(struct find *f, uint64_t address, void *out, size_t len)
{
    struct memory_piece piece = {.address = address, .out = out, .len = (uint32_t)len};
    return f->reads++ < FIND_READS_MAX &&
           memory_batch_read(f->process->memory, &piece, 1, f->unread) && piece.got == len;
}

uint64_t find_number(const unsigned char *bytes, uint32_t at, size_t width)
{
    uint64_t value = 0;
    for (size_t i = width; i > 0; i--) {
        value = value << 8 | bytes[at + i - 1];
    }
    return value;
}

bool find_word(struct find *f, uint64_t address, uint64_t *out)
{
    unsigned char bytes[8];
    if (!find_read(f, address, bytes, sizeof bytes)) {
        return false;
    }
    *out = find_number(bytes, 0, 8);
    return true;
}

bool find_is_text(struct find *f, uint64_t address, const char *text)
{
    char bytes[TEXT_BYTES];
    size_t len = strlen(text) + 1;
    return len <= sizeof bytes && find_read(f, address, bytes, len) &&
           memcmp(bytes, text, len) == 0;
}

bool find_is_data(const struct find *f, uint64_t address)
{
    const struct runtime_map *maps = f->process->maps;
    size_t low = 0, high = f->process->map_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maps[middle].limit <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return address != 0 && address % 8 == 0 && low < f->process->map_count &&
           address >= maps[low].start && (maps[low].prot & PROT_READ_WRITE) == PROT_READ_WRITE;
}

bool find_is_tid(const struct find *f, uint64_t tid)
{
    for (size_t i = 0; i < f->process->tid_count; i++) {
        if (f->process->tids[i] == tid) {
            return true;
        }
    }
    return false;
}
