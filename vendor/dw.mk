# libdw of elfutils: DWARF (units, entries, lines, ranges, scopes) and CFI, for x86_64 and aarch64. Left out: libdwfl
# (it attaches by ptrace and looks for files itself), the macro reader, the disassemblers, and whatever nothing calls.
sources := $(addprefix libdw/,cfi.c cie.c dwarf_abbrev_hash.c dwarf_attr.c dwarf_attr_integrate.c dwarf_begin.c \
	dwarf_begin_elf.c dwarf_cfi_addrframe.c dwarf_cfi_end.c dwarf_child.c dwarf_cu_dwp_section_info.c dwarf_cu_info.c \
	dwarf_end.c dwarf_error.c dwarf_filesrc.c dwarf_formaddr.c dwarf_formblock.c dwarf_formref.c dwarf_formref_die.c \
	dwarf_formstring.c dwarf_formudata.c dwarf_frame_cfa.c dwarf_frame_info.c dwarf_frame_register.c dwarf_get_units.c \
	dwarf_getabbrev.c dwarf_getalt.c dwarf_getcfi_elf.c dwarf_getlocation.c dwarf_getsrc_die.c dwarf_getsrcfiles.c \
	dwarf_getsrclines.c dwarf_hasattr.c dwarf_haschildren.c dwarf_haspc.c dwarf_highpc.c dwarf_lineno.c \
	dwarf_linesrc.c dwarf_lowpc.c dwarf_next_cfi.c dwarf_nextcu.c dwarf_offdie.c dwarf_ranges.c dwarf_setalt.c \
	dwarf_siblingof.c dwarf_sig8_hash.c dwarf_tag.c fde.c frame-cache.c libdw_alloc.c libdw_findcu.c libdw_form.c) \
	$(addprefix libdwelf/,dwelf_dwarf_gnu_debugaltlink.c dwelf_elf_gnu_build_id.c) \
	$(addprefix libebl/,eblabicfi.c eblclosebackend.c eblopenbackend.c) \
	$(addprefix backends/,aarch64_cfi.c x86_64_cfi.c) \
	vendor/shim/elfutils/backends.c vendor/shim/elfutils/given.c vendor/shim/elfutils/missing.c
cppflags := -D_GNU_SOURCE -DHAVE_CONFIG_H -Ivendor/shim/elfutils \
	$(addprefix -I$(SRC)/,libdw libelf libebl libdwelf libdwfl libasm backends lib)
headers := libdw/dwarf.h:dwarf.h libdw/libdw.h:elfutils/libdw.h libdw/known-dwarf.h:elfutils/known-dwarf.h \
	libdwelf/libdwelf.h:elfutils/libdwelf.h vendor/shim/elfutils/given.h:elfutils/given.h
