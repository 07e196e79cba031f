# The foreign libraries. Each is built for three tool chains: the product (musl), the unit tests (host gcc with
# sanitizers) and the fuzz targets (clang). vendor/lib.mk compiles one library for one tool chain, as vendor/NAME.mk
# says; outputs are TOOLCHAIN/vendor/include and TOOLCHAIN/vendor/lib/libNAME.a. musl is for the product only.

TARBALLS := build/out/tarballs
SOURCES := build/out/src
mbedtls := $(if $(filter 0,$(TLS13)),,mbedtls)
VENDOR_LIBRARIES := zlib zstd bearssl $(mbedtls) lzma iberty elf dw

# The row of vendor/manifest a library comes from, where the names differ.
row_elf := elfutils
row_dw := elfutils
row_of = $(or $(row_$1),$1)

# What must be installed (headers) before a library compiles.
needs_elf := zlib zstd
needs_dw := elf

# Nothing is fetched or compiled on a machine that lacks a tool: one message names them all.
TOOLS := $(OUT)/tools
$(TOOLS): build/setup.sh build/packages.txt
	@mkdir -p $(@D)
	@ARCH=$(ARCH) CROSS_COMPILE=$(CROSS_COMPILE) sh build/setup.sh tools
	@touch $@

$(TARBALLS)/%: vendor/manifest | $(TOOLS)
	$(Q)mkdir -p $(@D)
	$(Q)sh build/fetch.sh $* $@

# The tar file's own top folder is dropped, so that paths hold no version. vendor/NAME.fix corrects an upstream defect.
# Upstream, libiberty is a folder of something large, and Mozilla's list no tar file but itself. Most of mbedTLS is tests.
members_mbedtls = --exclude='*/tests/*' --exclude='*/programs/*' --wildcards '*/include/*' '*/library/*'
members_iberty = $$(tar -tf $< | grep -E '^[^/]+/(include|libiberty)/$$')
$(SOURCES)/%.unpacked: $(TARBALLS)/%
	$(call say,UNPACK,$*)
	$(Q)rm -rf $(SOURCES)/$* && mkdir -p $(SOURCES)/$*
	$(Q)if grep -q '^CKA_CLASS' $<; then mkdir $(SOURCES)/$*/mozilla && cp $< $(SOURCES)/$*/mozilla/certdata.txt; \
		else tar -xf $< -C $(SOURCES)/$* --strip-components=1 -o -m $(members_$*); fi
	$(Q)fix=$$PWD/vendor/$*.fix; [ ! -f $$fix ] || { cd $(SOURCES)/$* && sh $$fix; }
	$(Q)touch $@
$(foreach f,$(wildcard vendor/*.fix),$(eval $(SOURCES)/$(notdir $(f:.fix=.unpacked)): $f))
.PRECIOUS: $(TARBALLS)/% $(SOURCES)/%.unpacked

# The kernel's headers (perf_event.h and the like) come from the distribution, but only these three folders, so that
# no header of the distribution's libc is ever seen.
MUSL_LIB := $(OUT)/vendor/lib/libc.a
$(MUSL_LIB): $(SOURCES)/musl.unpacked vendor/musl.mk
	$(call say,VENDOR,musl for $(ARCH))
	+$(Q)$(MAKE) -s -f vendor/musl.mk OUT=$(OUT)/vendor ARCH=$(ARCH) GCC='$(TARGET_GCC)' \
		CROSS_COMPILE='$(TARGET_BINUTILS)'

# What runs at each window's end for speed; names, packed symbols and the second engine of TLS for size.
vendor_optimise = $(if $(filter zlib bearssl,$1),-O2,-Os)

# The flags in a file that changes only with them: editing a comment in build/ rebuilds no library. The folder is not
# among them, for it is in no object: a copy of the tree has its libraries.
$(call note,$(OUT)/vendor.flags,$(subst $(CURDIR),.,$(TARGET_CC) $(TARGET_CFLAGS) $(foreach l,$(VENDOR_LIBRARIES),$l $(call vendor_optimise,$l))))
$(call note,$(HOST_OUT)/vendor.flags,$(HOST_GCC) $(HOST_CFLAGS) $(HOST_SANITIZE))
$(call note,$(FUZZ_OUT)/vendor.flags,$(CLANG) $(FUZZ_CFLAGS) $(FUZZ_SANITIZE))

# $1 tool chain's folder, $2 library, $3 what stands before every library, $4 CC, $5 AR, $6 flags
define vendor_rule
$1/vendor/lib/lib$2.a: $(SOURCES)/$(call row_of,$2).unpacked vendor/$2.mk vendor/lib.mk $1/vendor.flags \
		$(wildcard vendor/shim/* vendor/shim/*/*) $(foreach n,$(needs_$2),$1/vendor/lib/lib$n.a) $3
	$$(call say,VENDOR,$2 in $1)
	+$$(Q)$$(MAKE) -s -r -f vendor/lib.mk LIB=$2 SRC=$(SOURCES)/$(call row_of,$2) OUT=$1/vendor ARCH=$(ARCH) \
		CC='$4' AR='$5' CFLAGS='$6' && touch $$@
endef
$(foreach l,$(VENDOR_LIBRARIES),$(eval $(call vendor_rule,$(OUT),$l,$(MUSL_LIB),$$(TARGET_CC),$(TARGET_BINUTILS)ar,$$(TARGET_CFLAGS) $(call vendor_optimise,$l))))
$(foreach l,$(VENDOR_LIBRARIES),$(eval $(call vendor_rule,$(HOST_OUT),$l,,$(HOST_GCC),ar,$$(HOST_CFLAGS) $$(call vendor_sanitize,$l))))
$(foreach l,$(VENDOR_LIBRARIES),$(eval $(call vendor_rule,$(FUZZ_OUT),$l,,$(CLANG),ar,$$(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link $$(call vendor_sanitize,$l))))

# Upstream code that reads unaligned words or shifts signed numbers on purpose would drown our own findings.
vendor_sanitize = -fsanitize=address

VENDOR_LINK := dw elf lzma bearssl $(mbedtls) iberty zstd zlib
vendor_archives = $(foreach l,$(VENDOR_LINK),$1/vendor/lib/lib$l.a)

.PHONY: vendor vendor-host vendor-fuzz
vendor: $(MUSL_LIB) $(call vendor_archives,$(OUT))
vendor-host: $(call vendor_archives,$(HOST_OUT))
vendor-fuzz: $(call vendor_archives,$(FUZZ_OUT))
