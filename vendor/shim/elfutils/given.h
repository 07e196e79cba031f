/*
 * given: libdw without a file system. The caller maps files and hands them in; where libdw would open one that the
 * image names (split units), it asks the caller instead.
 */
#ifndef PILLION_ELFUTILS_GIVEN_H
#define PILLION_ELFUTILS_GIVEN_H

#include <elfutils/libdw.h>
#include <stddef.h>

struct given_files {
    /* A file by its absolute path, or null. What it returns stays until the process ends. */
    Elf *(*open)(void *context, const char *path);
    void *context;
};

/* Bytes in memory, which are only read (elf_memory writes into them). */
Elf *given_elf(void *ptr, size_t len);

/* As dwarf_begin_elf. `path` is the name the file has for those beside it, or null; `files` stays borrowed, and is one
   for the whole process. */
Dwarf *given_begin(Elf *elf, const char *path, const struct given_files *files);

/* `name` below the folder of the file that was begun, or below `dir`; to be freed. Null: it leads nowhere. */
char *given_path(Dwarf *dwarf, const char *dir, const char *name);

#endif
