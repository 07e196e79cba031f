/*
 * maps: the mappings of a process, from the text of /proc/PID/maps.
 *
 *     struct str rest = text;
 *     struct map_line line;
 *     while (maps_next(&rest, &line)) { ... }
 *
 * Lines come in address order and do not overlap, as far as the kernel wrote them in one go: the
 * text is not a snapshot when the process maps and unmaps while it is read. A line that does not
 * follow the format is skipped. Nothing is copied: `path` borrows from the text.
 *
 * Format: proc(5), fs/proc/task_mmu.c show_map_vma. The path is as the *target* sees it (its own
 * root), so it is opened below /proc/PID/root. The kernel writes a newline within it as "\012" and
 * nothing else is escaped, not even the backslash: map_path_decode undoes that. The text
 * " (deleted)" after a path means that the name is gone or names another file now; the same text
 * can be the end of a real file name, which only device and inode can tell.
 */
#ifndef TARGET_MAPS_H
#define TARGET_MAPS_H

#include "base/str.h"

/* What a mapping's name says it is. */
enum mapping_kind {
    MAPPING_ANON,     /* no name, "//anon" (perf), "[anon:NAME]", /dev/zero, SysV memory */
    MAPPING_FILE,     /* a file with a path */
    MAPPING_MEMFD,    /* "/memfd:NAME": a file without a path */
    MAPPING_HEAP,     /* "[heap]" */
    MAPPING_STACK,    /* "[stack]", and "[stack:TID]" of Linux 3.4 to 4.4 */
    MAPPING_VDSO,     /* "[vdso]": code; an ELF image in memory */
    MAPPING_VSYSCALL, /* "[vsyscall]" */
    MAPPING_SPECIAL,  /* "[vvar]", "[uprobes]", "anon_inode:…" and all the rest */
    MAPPING_UNNAMED,  /* "//enomem", "//toolong": perf could not build the path of a file */
};

/* The values of PROT_READ … in mmap(2) and in perf's MMAP2 record. */
enum mapping_prot {
    MAPPING_READ = 1,
    MAPPING_WRITE = 2,
    MAPPING_EXEC = 4,
};

struct map_line {
    uint64_t start, limit; /* [start, limit) */
    uint64_t file_offset;  /* bytes, of `start` in the file */
    uint64_t inode;        /* 0 without a file */
    uint32_t dev_major, dev_minor;
    uint8_t prot;          /* enum mapping_prot bits */
    uint8_t kind;          /* enum mapping_kind */
    struct str path;       /* without " (deleted)"; "\012" still as written; empty without a name */
};

/* Takes lines off the front of *rest up to the first well-formed one; false at the end. */
bool maps_next(struct str *rest, struct map_line *out);

/* The kind of a name that stands in maps or in a perf MMAP2 record. */
enum mapping_kind mapping_kind_of(struct str path);

/* Appends the path with "\012" as a newline. Not for perf's names, which are never escaped. */
void map_path_decode(struct str path, struct buf *out);

#endif
