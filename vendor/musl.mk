# musl, by its own configure and make, static only. Called by build/vendor.mk with OUT, ARCH, GCC, CROSS_COMPILE.
#
# musl is built from a copy of its sources, since its configure writes where it runs; it also writes the specs file by
# which gcc uses these headers and this libc. Paths in that file are relative to the repository's root.
SRC := build/out/src/musl
OBJ := $(OUT)/obj/musl
multiarch := $(shell $(GCC) -print-multiarch)
# Debian keeps the headers of a cross compiler in a folder of their own.
kernel_headers := $(firstword $(wildcard /usr/$(multiarch)/include/linux/perf_event.h) /usr/include/linux/perf_event.h)
kernel_headers := $(kernel_headers:/linux/perf_event.h=)
kernel_asm := $(firstword $(wildcard $(kernel_headers)/$(multiarch)/asm) $(kernel_headers)/asm)

musl_cflags := -Os -pipe -fPIE -fno-stack-protector -ffunction-sections -fdata-sections -fno-ident \
	-ffile-prefix-map=$(abspath $(SRC))=musl

# The specs know of no program that is static and position independent at once: it begins by relocating itself.
static_pie := -e 's,%{!shared: *\([^}]*\)/Scrt1.o},%{!shared: %{static-pie:\1/rcrt1.o;:\1/Scrt1.o}},' \
	-e 's,%{static:-static},& %{static-pie:-static -pie --no-dynamic-linker -z text},'

# A third of it is what no program here calls: numbers as scientists want them, terminals, user databases, message queues. Who
# calls one of these after all does not link.
folders := $(filter-out $(addprefix $(SRC)/src/,aio complex crypt fenv include ipc legacy math mq passwd prng regex termios),\
	$(wildcard $(SRC)/src/*))
files := $(addsuffix /*.c,$(folders:$(SRC)/src/%=src/%) src/malloc/mallocng crt ldso) \
	$(addprefix src/math/,__*.c abs*.c fabs*.c copysign*.c fmod*.c frexp*.c scalb*.c modf*.c)

all:
	rm -rf $(OBJ) && mkdir -p $(OBJ) $(OUT)/lib $(OUT)/include
	cd $(OBJ) && ../../../../src/musl/configure CC='$(GCC)' CROSS_COMPILE='$(CROSS_COMPILE)' --target=$(ARCH) \
		--disable-shared --disable-wrapper --prefix=/ \
		CFLAGS='$(musl_cflags)' >configure.log 2>&1 || { cat configure.log; exit 1; }
	$(MAKE) -C $(OBJ) BASE_GLOBS='$(addprefix ../../../../src/musl/,$(files))' >$(OBJ)/make.log 2>&1 || { tail -n 30 $(OBJ)/make.log; exit 1; }
	$(MAKE) -C $(OBJ) BASE_GLOBS='$(addprefix ../../../../src/musl/,$(files))' install-headers install-libs DESTDIR=$(abspath $(OUT)) >/dev/null
	ln -sfn $(kernel_headers)/linux $(OUT)/include/linux
	ln -sfn $(kernel_headers)/asm-generic $(OUT)/include/asm-generic
	ln -sfn $(kernel_asm) $(OUT)/include/asm
	test -f $(OUT)/include/asm/perf_regs.h || { echo 'kernel headers not found: make setup' >&2; exit 1; }
	sh $(SRC)/tools/musl-gcc.specs.sh $(OUT)/include $(OUT)/lib /lib/none | sed $(static_pie) >$(OUT)/lib/musl-gcc.specs
	touch $(OUT)/lib/libc.a
