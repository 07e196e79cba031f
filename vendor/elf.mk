# libelf of elfutils: everything that reads; what writes ELF files is left out, except what reading refers to.
sources := $(addprefix libelf/,elf_version.c elf_hash.c elf_error.c elf_fill.c elf_begin.c elf_next.c elf_rand.c \
	elf_end.c elf_kind.c gelf_getclass.c elf_getident.c elf32_fsize.c elf64_fsize.c gelf_fsize.c elf32_xlatetof.c \
	elf32_xlatetom.c elf64_xlatetof.c elf64_xlatetom.c gelf_xlate.c elf32_getehdr.c elf64_getehdr.c gelf_getehdr.c \
	elf32_getphdr.c elf64_getphdr.c gelf_getphdr.c elf_getarhdr.c elf_getarsym.c elf_rawfile.c elf_readall.c \
	elf_cntl.c elf_getscn.c elf_nextscn.c elf_ndxscn.c elf32_getshdr.c elf64_getshdr.c gelf_getshdr.c elf_strptr.c \
	elf_rawdata.c elf_getdata.c elf_getdata_rawchunk.c elf_memory.c gelf_getsym.c gelf_getversym.c \
	gelf_getverneed.c gelf_getvernaux.c gelf_getverdef.c gelf_getverdaux.c gelf_getrel.c gelf_getrela.c \
	gelf_getdyn.c gelf_getauxv.c gelf_getnote.c gelf_xlatetof.c gelf_xlatetom.c gelf_getsymshndx.c \
	elf_getphdrnum.c elf_getshdrnum.c elf_getshdrstrndx.c libelf_crc32.c libelf_next_prime.c elf32_offscn.c \
	elf64_offscn.c gelf_offscn.c elf_getaroff.c elf_gnu_hash.c elf_scnshndx.c elf32_getchdr.c elf64_getchdr.c \
	gelf_getchdr.c elf_compress.c elf_compress_gnu.c elf_getbase.c elf_flagelf.c elf_flagehdr.c elf_flagphdr.c \
	elf_flagscn.c elf_flagshdr.c elf_flagdata.c) lib/eu-search.c
cppflags := -D_GNU_SOURCE -DHAVE_CONFIG_H -Ivendor/shim/elfutils -I$(SRC)/libelf -I$(SRC)/lib
headers := libelf/libelf.h:libelf.h libelf/gelf.h:gelf.h libelf/nlist.h:nlist.h \
	libelf/elf-knowledge.h:elfutils/elf-knowledge.h version.h:elfutils/version.h
