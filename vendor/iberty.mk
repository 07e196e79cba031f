# libiberty's demanglers: C++, Rust (legacy and v0), D, Ada. Only the files whose licence has the linking exception are
# compiled; the three helpers they call have none (plain LGPL), so vendor/shim/iberty provides its own.
sources := $(addprefix libiberty/,cp-demangle.c cplus-dem.c rust-demangle.c d-demangle.c) vendor/shim/iberty/memory.c
cppflags := -D_GNU_SOURCE -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_LIMITS_H -DHAVE_ALLOCA_H -DHAVE_DECL_BASENAME=1 \
	-Ivendor/shim/iberty -I$(SRC)/include
headers := include/demangle.h:demangle.h include/libiberty.h:libiberty.h include/ansidecl.h:ansidecl.h
