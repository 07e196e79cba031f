/*
 * What the compiled part of elfutils refers to outside itself.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libdwflP.h"

/* dwelf_elf_gnu_build_id shares its code with libdwfl, where a file belongs to a module; without a module neither of
   these is reached. */
void __libdwfl_seterrno(Dwfl_Error error __attribute__((unused)))
{
}

Dwfl_Error __libdwfl_relocate_value(Dwfl_Module *module __attribute__((unused)), Elf *elf __attribute__((unused)),
                                    size_t *section_cache __attribute__((unused)),
                                    Elf32_Word section __attribute__((unused)),
                                    GElf_Addr *value __attribute__((unused)))
{
    return DWFL_E_UNKNOWN_ERROR;
}

#ifndef __GLIBC__
/* libdw's last word when memory runs out and the caller set no handler (dwarf_new_oom_handler). */
void error(int status, int errnum, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, errnum ? ": %s\n" : "\n", strerror(errnum));
    if (status)
        exit(status);
}
#endif
