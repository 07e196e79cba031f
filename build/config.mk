# Which machine the product is for, the tools and the flags. Everything expensive is expanded only in recipes.

ARCH ?= $(shell uname -m)
ifeq ($(filter x86_64 aarch64,$(ARCH)),)
$(error ARCH is '$(ARCH)': pillion is built for x86_64 and aarch64)
endif
ifneq ($(ARCH),$(shell uname -m))
CROSS_COMPILE ?= $(ARCH)-linux-gnu-
endif

OUT := build/out/$(ARCH)
HOST_OUT := build/out/host
FUZZ_OUT := build/out/fuzz

# As many jobs as processors, unless the caller said otherwise.
ifeq ($(MAKELEVEL)$(filter -j% --jobserver%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' '$1' '$2')

TARGET_GCC := $(CROSS_COMPILE)gcc
TARGET_BINUTILS := $(CROSS_COMPILE)
HOST_GCC := gcc
CLANG := clang
# The tests cross-compile for aarch64 whatever ARCH is. On an aarch64 machine these are the names of its own tools.
AARCH64_TOOLS := aarch64-linux-gnu-
AARCH64_GCC := $(AARCH64_TOOLS)gcc

# What makes two builds in two folders the same bytes.
DETERMINISTIC = -ffile-prefix-map=$(CURDIR)/= -ffile-prefix-map=$(CURDIR)=. -fno-ident

# 60 to 100 KB of relocations in 1 KB. GNU's linker does that for aarch64 from 2.43 on only; LLVM's does in all versions, but a compiler
# for another processor finds it by that name in a folder that it is told alone.
LINKER_FOLDER := $(OUT)/linker
PACK_RELOCATIONS = $(if $(filter x86_64,$(ARCH)),-Wl$(comma)-z$(comma)pack-relative-relocs,\
	-fuse-ld=lld -B$(LINKER_FOLDER) -Wl$(comma)--pack-dyn-relocs=relr)
comma := ,

# Code is in pages of its own where these have 4 KB. aarch64's may have 64, and what is only read before and behind the code would leave
# up to 60 KB of nothing each time in the file.
SEPARATE_CODE = $(if $(filter x86_64,$(ARCH)),separate-code,noseparate-code)

# The product: static and position independent, so that nobody knows its addresses; what is relocated is then read-only.
# No unwind tables in the program itself; its debug file has them as .debug_frame. The specs file makes gcc see musl instead of the distribution's libc.
TARGET_CC = $(TARGET_GCC) -specs=$(OUT)/vendor/lib/musl-gcc.specs
TARGET_CFLAGS = -g -fPIE -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-plt \
	-ffunction-sections -fdata-sections -fstack-protector-strong $(DETERMINISTIC)
# The stack size is what musl gives every thread; its own default, 128 KB, is too little for the demanglers' recursion.
TARGET_LDFLAGS = -static-pie -Wl,--gc-sections -Wl,-z,$(SEPARATE_CODE) -Wl,-z,noexecstack -Wl,--build-id=sha1 \
	-Wl,-z,relro,-z,now $(PACK_RELOCATIONS) -Wl,-z,stack-size=8388608

# The same sources for the unit tests, and for the fuzz targets. Lines are all that a report names; what debuggers want besides is a
# quarter of the time that compiling takes.
HOST_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
HOST_CFLAGS = -g1 -O1 -fno-omit-frame-pointer
FUZZ_SANITIZE := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_CFLAGS = -gline-tables-only -O1 -fno-omit-frame-pointer

# gcc 10 and 11 find initializers missing beside ones that are given by name.
WARNINGS := -Wall -Wextra -Wno-missing-field-initializers -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wvla -Werror
# The second engine of TLS, some 250 KB; make TLS13=0 leaves it out.
TLS13 ?= 1
# The version as a header, so that every tool chain's objects depend on it.
version := $(file <VERSION)
VERSION_HEADER := build/out/version.h
CPPFLAGS := -Isrc -D_GNU_SOURCE= -DPILLION_TLS13=$(TLS13) -include $(VERSION_HEADER)

# $(call note,FILE,TEXT): a file that is rewritten only when its text changes, so that rules can depend on the text.
# Goals that build nothing themselves write none.
build_nothing := clean distclean help setup demo picture test
note = $(if $(filter $(build_nothing),$(MAKECMDGOALS)),,$(call write_note,$1,$(strip $2)))
write_note = $(shell mkdir -p $(dir $1))$(if $(call differ,$(file <$1),$2),$(file >$1,$2))
differ = $(subst x$1x,,x$2x)

hash := \#
$(call note,$(VERSION_HEADER),$(hash)define PILLION_VERSION "$(version)")
