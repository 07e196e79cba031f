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

all:
	rm -rf $(OBJ) && mkdir -p $(OBJ) $(OUT)/lib $(OUT)/include
	cd $(OBJ) && ../../../../src/musl/configure CC='$(GCC)' CROSS_COMPILE='$(CROSS_COMPILE)' --target=$(ARCH) \
		--disable-shared --disable-wrapper --prefix=/ \
		CFLAGS='$(musl_cflags)' >configure.log 2>&1 || { cat configure.log; exit 1; }
	$(MAKE) -C $(OBJ) >$(OBJ)/make.log 2>&1 || { tail -n 30 $(OBJ)/make.log; exit 1; }
	$(MAKE) -C $(OBJ) install-headers install-libs DESTDIR=$(abspath $(OUT)) >/dev/null
	ln -sfn $(kernel_headers)/linux $(OUT)/include/linux
	ln -sfn $(kernel_headers)/asm-generic $(OUT)/include/asm-generic
	ln -sfn $(kernel_asm) $(OUT)/include/asm
	test -f $(OUT)/include/asm/perf_regs.h || { echo 'kernel headers not found: make setup' >&2; exit 1; }
	sh $(SRC)/tools/musl-gcc.specs.sh $(OUT)/include $(OUT)/lib /lib/none | sed $(static_pie) >$(OUT)/lib/musl-gcc.specs
	touch $(OUT)/lib/libc.a
