# libelf of elfutils, as far as something calls it; whoever calls another file of it does not link.
sources := $(addprefix lib/,eu-search.c) \
	$(addprefix libelf/,elf32_getchdr.c elf32_getphdr.c elf32_getshdr.c elf32_xlatetof.c elf64_getchdr.c \
	elf64_getphdr.c elf64_getshdr.c elf64_xlatetof.c elf_begin.c elf_compress.c elf_compress_gnu.c elf_end.c \
	elf_error.c elf_getdata.c elf_getdata_rawchunk.c elf_getident.c elf_getphdrnum.c elf_getscn.c elf_getshdrnum.c \
	elf_getshdrstrndx.c elf_kind.c elf_ndxscn.c elf_nextscn.c elf_rawdata.c elf_rawfile.c elf_readall.c elf_strptr.c \
	elf_version.c gelf_fsize.c gelf_getchdr.c gelf_getehdr.c gelf_getnote.c gelf_getphdr.c gelf_getshdr.c \
	gelf_getsym.c gelf_xlate.c gelf_xlatetof.c)
cppflags := -D_GNU_SOURCE -DHAVE_CONFIG_H -Ivendor/shim/elfutils -I$(SRC)/libelf -I$(SRC)/lib
headers := libelf/libelf.h:libelf.h libelf/gelf.h:gelf.h libelf/nlist.h:nlist.h \
	libelf/elf-knowledge.h:elfutils/elf-knowledge.h version.h:elfutils/version.h
