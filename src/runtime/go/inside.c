/* Where a program's file stands in its memory is told by the kernel: the address of its entry is in the auxiliary
 * vector, and what was linked there is in the file's head. So no name has to lead to the file, which may be gone or
 * stand in another root. Mappings are listed as Go's runtime/pprof does, the program's own first. */
#include "runtime/go/inside.h"
#include "base/arena.h"
#include "base/time.h"
#include "runtime/go/go.h"
#include "target/maps.h"

#include <elf.h>
#include <stdlib.h>

enum {
    MAPS_MAX = 256,
    TEXT_MAX = 4 << 20,
    TEXTS_MAX = 1 << 20,
    RELEASE_MAX = 64,
};

struct go_inside {
    const struct process_port *port;
    struct memory_reader file;
    struct elf elf;
    struct go_table *table;
    struct memory_batch batch;
    struct buf release; /* "go 1.24.4" */
    struct arena texts;
    struct go_mapping maps[MAPS_MAX];
    size_t map_count;
    struct go_memory *memory;
    bool was_tried;
    struct err why;     /* there is no memory */
};

/* ---- where it stands ---- */

static bool find_entry(const struct process_port *port, struct buf *text, uint64_t *entry, struct err *why)
{
    if (!port->text(port->context, "auxv", text, why)) {
        return false;
    }
    for (size_t at = 0; at + 16 <= text->len; at += 16) {
        uint64_t pair[2];
        memcpy(pair, text->ptr + at, sizeof pair);
        if (pair[0] == AT_ENTRY) {
            *entry = pair[1];
            return true;
        }
    }
    return err_set(why, ERR_MALFORMED, 0, "the kernel does not tell where its program is");
}

static void add_mapping(struct go_inside *i, const struct map_line *line, bool is_own)
{
    char id[2 * ELF_BUILD_ID_MAX + 1] = "";
    if (i->map_count == MAPS_MAX) {
        return;
    }
    if (is_own) {
        elf_build_id_text(&i->elf, id);
        memmove(i->maps + 1, i->maps, i->map_count * sizeof *i->maps);
    }
    i->maps[is_own ? 0 : i->map_count] = (struct go_mapping){
        .start = line->start,
        .limit = line->limit,
        .file_offset = line->file_offset,
        .path = arena_copy(&i->texts, line->path),
        .build_id = arena_copy(&i->texts, str_of(id)),
    };
    i->map_count++;
}

static bool read_maps(struct go_inside *i, struct buf *text, uint64_t entry, struct err *why)
{
    struct map_line line;
    if (!i->port->text(i->port->context, "maps", text, why)) {
        return false;
    }
    i->map_count = 0;
    for (struct str rest = buf_slice(text); maps_next(&rest, &line);) {
        if ((line.prot & MAPPING_EXEC) != 0 && line.path.len > 0) {
            add_mapping(i, &line, line.start <= entry && entry < line.limit);
        }
    }
    return i->map_count > 0 || err_set(why, ERR_GONE, 0, "it has ended");
}

/* ---- its memory ---- */

/* Waits are counted in cycles of the processor. Two readings of some milliseconds are as good as the runtime's own. */
static uint64_t counter_hz(const struct process_port *port)
{
    enum { PAUSE_MS = 20 };
    uint64_t from = port->cycles(port->context), from_ns = port->now_ns(port->context);
    port->pause(port->context, PAUSE_MS);
    uint64_t passed = port->cycles(port->context) - from, passed_ns = port->now_ns(port->context) - from_ns;
    return passed_ns > 0 ? (uint64_t)((double)passed * NS_PER_S / (double)passed_ns) : 0;
}

static void open_memory(struct go_inside *i)
{
    struct buf text;
    uint64_t entry = 0;
    buf_init(&text, TEXT_MAX);
    bool good = find_entry(i->port, &text, &entry, &i->why) && read_maps(i, &text, entry, &i->why) &&
                i->port->memory(i->port->context, i->maps[0].start, &i->batch, &i->why);
    if (good) {
        const struct go_process process = {
            .elf = &i->elf,
            .table = i->table,
            .memory = &i->batch,
            .bias = entry - i->elf.entry,
            .version = buf_cstr(&i->release),
            .maps = i->maps,
            .map_count = i->map_count,
            .counter_hz = counter_hz(i->port),
        };
        i->memory = go_memory_open(&process, &i->why);
    }
    buf_release(&text);
}

struct go_memory *go_inside_memory(struct go_inside *inside, struct err *why)
{
    if (!inside->was_tried) {
        inside->was_tried = true;
        open_memory(inside);
    }
    if (inside->memory == NULL) {
        *why = inside->why;
    }
    return inside->memory;
}

/* ---- opening ---- */

struct go_inside *go_inside_open(const struct process_port *port, struct err *why)
{
    struct go_inside *i = calloc(1, sizeof *i);
    if (i == NULL) {
        err_set(why, ERR_MEMORY, 0, "no memory for its profiles");
        return NULL;
    }
    i->port = port;
    buf_init(&i->release, RELEASE_MAX);
    arena_init(&i->texts, TEXTS_MAX);
    bool good = port->program(port->context, &i->file, why) && elf_open(&i->elf, &i->file, why);
    i->table = good ? go_table_open(&i->elf, why) : NULL;
    if (i->table == NULL) {
        go_inside_close(i);
        return NULL;
    }
    (void)go_version(&i->elf, &i->release);
    return i;
}

void go_inside_close(struct go_inside *inside)
{
    if (inside != NULL) {
        go_memory_free(inside->memory);
        go_table_release(inside->table);
        elf_release(&inside->elf);
        buf_release(&inside->release);
        arena_release(&inside->texts);
        free(inside);
    }
}

bool go_inside_has(struct go_inside *inside, const char *function)
{
    return go_table_has(inside->table, function);
}
