/*
 * In the place of libdw_find_split_unit.c: the same search, but files come from the caller (given.h).
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif
#include <stdlib.h>
#include <string.h>

#include "libelfP.h"
#include "libdwP.h"
#include "eu-search.h"
#include "given.h"

static const struct given_files *given;

Elf *given_elf(void *ptr, size_t len)
{
    return __libelf_read_mmaped_file(-1, ptr, 0, len, ELF_C_READ_MMAP, NULL);
}

Dwarf *given_begin(Elf *elf, const char *path, const struct given_files *files)
{
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

    given = files;
    if (dwarf && path && path[0] == '/') {
        free(dwarf->elfpath);
        dwarf->elfpath = strdup(path);
        __libdw_set_debugdir(dwarf);
    }
    return dwarf;
}

char *given_path(Dwarf *dwarf, const char *dir, const char *name)
{
    return __libdw_filepath(dwarf->debugdir, dir, name);
}

static Dwarf *begin_given(char *path)
{
    Elf *elf = path && given ? given->open(given->context, path) : NULL;

    free(path);
    return elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
}

static void link_units(Dwarf_CU *skeleton, Dwarf_CU *split)
{
    if (eu_tsearch(split->dbg, &skeleton->dbg->split_tree, __libdw_finddbg_cb))
        __libdw_link_skel_split(skeleton, split);
}

/* The package beside the program: "a.out.dwp". */
static void find_in_package(Dwarf_CU *cu)
{
    Dwarf *dwarf = cu->dbg, *package;
    Dwarf_CU *split;
    char *path;

    if (!dwarf->dwp_dwarf) {
        path = dwarf->elfpath ? malloc(strlen(dwarf->elfpath) + sizeof ".dwp") : NULL;
        package = begin_given(path ? strcat(strcpy(path, dwarf->elfpath), ".dwp") : NULL);
        if (package && !package->sectiondata[IDX_debug_cu_index] && !package->sectiondata[IDX_debug_tu_index])
            package = NULL;
        dwarf->dwp_dwarf = package ? package : (Dwarf *)-1;
    }
    if (dwarf->dwp_dwarf != (Dwarf *)-1 && (split = __libdw_dwp_findcu_id(dwarf->dwp_dwarf, cu->unit_id8)))
        link_units(cu, split);
}

static void find_in_file(Dwarf_CU *cu, char *path)
{
    Dwarf *dwarf = begin_given(path);
    Dwarf_CU *split = NULL;

    while (dwarf && dwarf_get_units(dwarf, split, &split, NULL, NULL, NULL, NULL) == 0)
        if (split->unit_type == DW_UT_split_compile && cu->unit_id8 == split->unit_id8) {
            link_units(cu, split);
            return;
        }
}

static void find_by_name(Dwarf_CU *cu)
{
    Dwarf_Die die = CUDIE(cu);
    Dwarf_Attribute attribute;
    const char *name, *dir;

    if (!dwarf_attr(&die, DW_AT_dwo_name, &attribute) && !dwarf_attr(&die, DW_AT_GNU_dwo_name, &attribute))
        return;
    name = dwarf_formstring(&attribute);
    dir = dwarf_attr(&die, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;
    if (dir)
        find_in_file(cu, given_path(cu->dbg, dir, name));
    if (cu->split == (Dwarf_CU *)-1)
        find_in_file(cu, given_path(cu->dbg, NULL, name));
}

Dwarf_CU *internal_function __libdw_find_split_unit(Dwarf_CU *cu)
{
    if (cu->split == (Dwarf_CU *)-1 && cu->unit_type == DW_UT_skeleton) {
        find_in_package(cu);
        if (cu->split == (Dwarf_CU *)-1)
            find_by_name(cu);
    }
    if (cu->split == (Dwarf_CU *)-1)
        cu->split = NULL; /* asked for once */
    return cu->split;
}
