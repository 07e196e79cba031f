/*
 * files: an image with everything that names its code: the file itself, its separate debug file,
 * and the small symbol table packed inside it.
 *
 * Concept. A distribution strips its libraries and keeps the symbols elsewhere: in a debug file
 * found by build id (/usr/lib/debug/.build-id/ab/cdef….debug) or by .gnu_debuglink (a name and a
 * CRC-32, looked for beside the file, in .debug/ there, and under /usr/lib/debug), or compressed
 * with xz inside the file (.gnu_debugdata, Fedora and Amazon Linux). symbol_files_open opens the
 * file and the debug file; .gnu_debugdata is unpacked when its symbols are first asked for, which
 * is never when one of the others has a .symtab. No debug file is looked for when the file has
 * .symtab and .debug_info itself.
 *
 * A debug file is believed when its build id equals the main file's, or, where one of the two has
 * none, when its CRC is the one in .gnu_debuglink. It must have symbols or DWARF (else it may be
 * the stripped file itself, which a name beside it can lead to) and be for the same machine and
 * addresses. Paths are those of the process that had the file mapped (its root), then ours: what
 * opens them is the caller's matter (struct debug_source), also that it is a regular file and that
 * a link does not lead out of the root.
 *
 * Addresses in a debug file are those of the main file. Its code, .dynsym and notes may be there as
 * sections without contents: everything but .symtab and DWARF is taken from the main file.
 *
 * Call order. symbol_files_open; use `elf` of FILE_MAIN and FILE_DEBUG where `has`, the other by
 * symbol_files_elf; symbol_files_release. The main file's reader is borrowed, and `source` too. A
 * struct symbol_files must not move in between.
 *
 * Costs. Opening reads the headers of two files. A CRC, for files without build ids, reads the
 * whole debug file each time it is opened.
 *
 * Limits. A CRC is computed of at most FILES_CRC_MAX_BYTES. .gnu_debugdata unpacks to at most
 * FILES_PACKED_MAX_BYTES, with FILES_XZ_MAX_BYTES of memory for that, or to what `source` allows.
 *
 * Errors. Only the main file's headers can fail the call. What is missing or damaged beside it is
 * no error; `problem` says it ("debug file … has another build id"), of the first such file, and is
 * empty when a debug file was found.
 *
 * Formats: GDB manual, "Separate Debug Files" and "MiniDebugInfo"; .gnu_debuglink: a name, zeros up
 * to a multiple of 4, the CRC-32 of zlib.
 */
#ifndef SYMBOL_FILES_H
#define SYMBOL_FILES_H

#include "elf/elf.h"

enum {
    FILES_PACKED_MAX_BYTES = 64 << 20, /* .gnu_debugdata of the largest programs unpacks to 20 MB */
    FILES_XZ_MAX_BYTES = 80 << 20,     /* "xz -9" needs 65 MiB; the default, 9 MiB */
    FILES_CRC_MAX_BYTES = 1 << 30,     /* half a second of a processor */
};

/* Opens files by name, below the root of the process whose image it is, or ours. */
struct debug_source {
    /* Below the root of the process that has the main file mapped, else below ours. False: there is
     * no such file, or it may not be read. `path` is absolute, `image` the caller's name for the
     * main file. */
    bool (*open)(void *context, uint64_t image, const char *path, struct memory_reader *out,
                 void **handle);
    void (*close)(void *context, void *handle);
    /* The directory and name the main file was mapped from, as the process sees it:
     * "/usr/lib/x.so". */
    struct str (*path)(void *context, uint64_t image);
    void *context;
    uint64_t *crc_left_bytes; /* that may still be read for checksums, of all files together; null: any number */
    size_t unpack_bytes; /* that .gnu_debugdata may unpack to, and unpacking may take; 0: what Limits says */
};

enum symbol_file { FILE_MAIN, FILE_DEBUG, FILE_PACKED, FILE_COUNT };

struct symbol_files {
    struct elf elf[FILE_COUNT];
    bool has[FILE_COUNT];
    bool packed_tried;
    struct buf packed; /* the unpacked .gnu_debugdata */
    const struct debug_source *source;
    void *debug_handle;
    char problem[ERR_TEXT_MAX];
};

/* `source` may be null: no separate files then. */
bool symbol_files_open(struct symbol_files *f, const struct memory_reader *main, uint64_t image,
                       const struct debug_source *source, struct err *err);
void symbol_files_release(struct symbol_files *f);

/* The ELF of one of the files, unpacked if need be; null when there is none. */
struct elf *symbol_files_elf(struct symbol_files *f, enum symbol_file file);

/*
 * Which file's .symtab to use: the main file's or the debug file's, whichever has more symbols (a
 * file may be stripped of its local symbols only), else that of .gnu_debugdata. FILE_COUNT: there
 * is none. `without_debug` passes over the debug file, whose table could not be read.
 */
enum symbol_file symbol_files_symtab(struct symbol_files *f, bool without_debug);

#endif
