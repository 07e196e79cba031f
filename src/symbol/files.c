/* Finds and checks the other files of an image (files.h): the debug file by build id, then by .gnu_debuglink in three
 * places; the packed symbols when they are first asked for. Of several problems the first is kept, because it is the
 * most likely file's. A link's name that has a slash is ignored: it could lead anywhere. */
#include "symbol/files.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/cursor.h"
#include "symbol/private.h"

enum {
    DEBUG_PATH_MAX = 4096,
    LINK_NAME_MAX = 255,
    LINK_SECTION_MAX_BYTES = 4096,
    CRC_CHUNK_BYTES = 64 * 1024,
};

/* What the main file says about its debug file in .gnu_debuglink. */
struct debug_link {
    char name[LINK_NAME_MAX + 1]; /* "": it has none */
    uint32_t crc;
};

/* ---- is a file the debug file of this image? ---- */

/* The first problem is kept: it is of the most likely file. */
static bool say_problem(struct symbol_files *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static bool say_problem(struct symbol_files *f, const char *format, ...)
{
    if (f->problem[0] == '\0') {
        va_list args;
        va_start(args, format);
        vsnprintf(f->problem, sizeof f->problem, format, args);
        va_end(args);
    }
    return false;
}

/* A reader does not tell its length: pieces are halved at the end until the last byte was read. */
static bool crc_of(const struct memory_reader *file, uint64_t *left, uint32_t *crc)
{
    unsigned char *chunk = malloc(CRC_CHUNK_BYTES);
    uint64_t done = 0, most = left == NULL || *left > FILES_CRC_MAX_BYTES ? (uint64_t)FILES_CRC_MAX_BYTES : *left;
    *crc = 0;
    for (size_t part = CRC_CHUNK_BYTES; chunk != NULL && part > 0 && done < most;) {
        if (file->read(file->context, done, chunk, part, NULL)) {
            *crc = (uint32_t)crc32(*crc, chunk, (unsigned)part);
            done += part;
        } else {
            part /= 2;
        }
    }
    free(chunk);
    if (left != NULL) {
        *left -= done < *left ? done : *left;
    }
    return chunk != NULL && done < most;
}

static bool has_dwarf(struct elf *e)
{
    return elf_section(e, ".debug_info") != NULL || elf_section(e, ".zdebug_info") != NULL;
}

/* The address of the first executable segment; prelink moved files without their debug files. */
static uint64_t code_address(const struct elf *e)
{
    for (uint32_t i = 0; i < e->load_count; i++) {
        if ((e->loads[i].prot & 4) != 0) {
            return e->loads[i].address;
        }
    }
    return 0;
}

static bool same_build_id(const struct elf *a, const struct elf *b)
{
    return a->build_id_bytes == b->build_id_bytes &&
           memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

/* `link` is null for a file that was found by build id. */
static bool belongs(struct symbol_files *f, const char *path, const struct memory_reader *file,
                    const struct debug_link *link)
{
    const struct elf *main = &f->elf[FILE_MAIN];
    struct elf *debug = &f->elf[FILE_DEBUG];
    uint32_t crc;
    if (main->build_id_bytes > 0 && debug->build_id_bytes > 0) {
        if (!same_build_id(main, debug)) {
            return say_problem(f, "debug file %s has another build id", path);
        }
    } else if (link == NULL) {
        return say_problem(f, "debug file %s has no build id", path);
    } else if (!crc_of(file, f->source->crc_left_bytes, &crc)) {
        return say_problem(f, "debug file %s is too large for its checksum to be computed, or others were", path);
    } else if (crc != link->crc) {
        return say_problem(f, "debug file %s has another checksum", path);
    }
    if (debug->machine != main->machine || debug->is_32bit != main->is_32bit ||
        code_address(debug) != code_address(main)) {
        return say_problem(f, "debug file %s is for other addresses", path);
    }
    return true;
}

/* ---- where debug files are looked for ---- */

static bool try_path(struct symbol_files *f, uint64_t image, const char *path,
                     const struct debug_link *link)
{
    struct memory_reader file;
    struct elf *debug = &f->elf[FILE_DEBUG];
    struct err err = {0};
    void *handle = NULL;
    if (!f->source->open(f->source->context, image, path, &file, &handle)) {
        return false;
    }
    if (!elf_open(debug, &file, &err)) {
        (void)say_problem(f, "debug file %s: %s", path, err.text);
    } else if (debug->tables[ELF_SYMTAB].count == 0 && !has_dwarf(debug)) {
        elf_release(debug); /* the stripped file itself, by its own name */
    } else if (!belongs(f, path, &file, link)) {
        elf_release(debug);
    } else {
        f->debug_handle = handle;
        f->has[FILE_DEBUG] = true;
        f->problem[0] = '\0';
        return true;
    }
    f->source->close(f->source->context, handle);
    return false;
}

static bool try_build_id(struct symbol_files *f, uint64_t image)
{
    char id[2 * ELF_BUILD_ID_MAX + 1], path[sizeof id + 64];
    if (f->elf[FILE_MAIN].build_id_bytes < 2) {
        return false;
    }
    elf_build_id_text(&f->elf[FILE_MAIN], id);
    snprintf(path, sizeof path, "/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2);
    return try_path(f, image, path, NULL);
}

static bool try_link_at(struct symbol_files *f, uint64_t image, const char *before, struct str dir,
                        const char *behind, const struct debug_link *link)
{
    char path[DEBUG_PATH_MAX];
    int len = snprintf(path, sizeof path, "%s%.*s%s%s", before, (int)dir.len, dir.ptr, behind,
                       link->name);
    return len > 0 && (size_t)len < sizeof path && try_path(f, image, path, link);
}

static bool try_link(struct symbol_files *f, uint64_t image, const struct debug_link *link)
{
    struct str path = f->source->path(f->source->context, image);
    size_t slash = str_find_last(path, '/');
    if (link->name[0] == '\0' || path.len == 0 || path.len >= DEBUG_PATH_MAX ||
        path.ptr[0] != '/' || slash == path.len || memchr(path.ptr, 0, path.len) != NULL) {
        return false;
    }
    struct str dir = str_sub(path, 0, slash + 1); /* with its slash */
    struct str own = str_sub(path, slash + 1, path.len);
    return (!str_eq(own, str_of(link->name)) && try_link_at(f, image, "", dir, "", link)) ||
           try_link_at(f, image, "", dir, ".debug/", link) ||
           try_link_at(f, image, "/usr/lib/debug", dir, "", link);
}

/* A name with a slash could lead anywhere: it is none. */
static void read_link(struct elf *e, struct debug_link *link)
{
    const struct elf_section *section = elf_section(e, ".gnu_debuglink");
    struct buf content;
    *link = (struct debug_link){0};
    buf_init(&content, LINK_SECTION_MAX_BYTES);
    if (section != NULL && elf_section_read(e, section, &content, NULL)) {
        struct cursor c = cursor_of(content.ptr, content.len);
        struct str name = cursor_cstr(&c);
        cursor_skip(&c, (4 - (name.len + 1) % 4) % 4);
        uint32_t crc = cursor_u32(&c);
        if (!c.short_read && name.len <= LINK_NAME_MAX && str_find(name, '/') == name.len &&
            !str_eq(name, STR(".")) && !str_eq(name, STR(".."))) {
            memcpy(link->name, name.ptr, name.len);
            link->crc = crc;
        }
    }
    buf_release(&content);
}

static void find_debug_file(struct symbol_files *f, uint64_t image)
{
    struct elf *main = &f->elf[FILE_MAIN];
    struct debug_link link;
    if (f->source == NULL || (main->tables[ELF_SYMTAB].count > 0 && has_dwarf(main)) ||
        try_build_id(f, image)) {
        return;
    }
    read_link(main, &link);
    (void)try_link(f, image, &link);
}

/* ---- the packed symbols ---- */

static bool unpack(struct symbol_files *f)
{
    struct elf *main = &f->elf[FILE_MAIN];
    const struct elf_section *section = elf_section(main, ".gnu_debugdata");
    struct err err = {0};
    if (section == NULL) {
        return false;
    }
    size_t asked = f->source == NULL ? 0 : f->source->unpack_bytes;
    size_t most = asked == 0 ? (size_t)FILES_XZ_MAX_BYTES : asked;
    f->packed.max = most < f->packed.max ? most : f->packed.max;
    if (!unpack_xz(main, section, most, &f->packed, &err) ||
        !elf_open_bytes(&f->elf[FILE_PACKED], f->packed.ptr, f->packed.len, &err)) {
        buf_release(&f->packed);
        return say_problem(f, ".gnu_debugdata: %s%s", err.text, err.kind == ERR_LIMIT ? "; raise --max-memory" : "");
    }
    if (code_address(&f->elf[FILE_PACKED]) != code_address(main)) {
        elf_release(&f->elf[FILE_PACKED]);
        buf_release(&f->packed);
        return say_problem(f, ".gnu_debugdata is for other addresses");
    }
    return true;
}

struct elf *symbol_files_elf(struct symbol_files *f, enum symbol_file file)
{
    if (file == FILE_PACKED && !f->packed_tried) {
        f->packed_tried = true;
        f->has[FILE_PACKED] = unpack(f);
    }
    return file < FILE_COUNT && f->has[file] ? &f->elf[file] : NULL;
}

/* ---- all of them ---- */

static uint64_t symtab_count(const struct symbol_files *f, enum symbol_file file)
{
    return f->has[file] ? f->elf[file].tables[ELF_SYMTAB].count : 0;
}

enum symbol_file symbol_files_symtab(struct symbol_files *f, bool without_debug)
{
    uint64_t in_debug = without_debug ? 0 : symtab_count(f, FILE_DEBUG);
    if (in_debug > symtab_count(f, FILE_MAIN)) {
        return FILE_DEBUG;
    }
    if (symtab_count(f, FILE_MAIN) > 0) {
        return FILE_MAIN;
    }
    return symbol_files_elf(f, FILE_PACKED) != NULL ? FILE_PACKED : FILE_COUNT;
}

bool symbol_files_open(struct symbol_files *f, const struct memory_reader *main, uint64_t image,
                       const struct debug_source *source, struct err *err)
{
    *f = (struct symbol_files){.source = source};
    buf_init(&f->packed, FILES_PACKED_MAX_BYTES);
    if (!elf_open(&f->elf[FILE_MAIN], main, err)) {
        return false;
    }
    f->has[FILE_MAIN] = true;
    find_debug_file(f, image);
    return true;
}

void symbol_files_release(struct symbol_files *f)
{
    for (int i = 0; i < FILE_COUNT; i++) {
        if (f->has[i]) {
            elf_release(&f->elf[i]);
        }
    }
    if (f->has[FILE_DEBUG]) {
        f->source->close(f->source->context, f->debug_handle);
    }
    buf_release(&f->packed);
    memset(f->has, 0, sizeof f->has);
}
