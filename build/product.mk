# src/ and the linked program: build/out/ARCH/pillion, with its symbols beside it in pillion.debug.

# A folder named after a processor is compiled for that processor only.
other_arch = $(filter-out $1,x86_64 aarch64)
find_sources = $(sort $(shell find src -name '*.c' $(foreach a,$(call other_arch,$1),-not -path '*/$a/*') \
	$(if $(filter 0,$(TLS13)),-not -name 'tls13*') 2>/dev/null))
sources := $(call find_sources,$(ARCH))
# All but main.c: what the unit tests of a processor link.
library_sources = $(filter-out src/main.c,$(call find_sources,$1))
host_sources := $(call library_sources,$(shell uname -m))

# The authorities that are built in, a table made of Mozilla's list. The parser of certificates is the product's own.
ROOTS := build/out/roots.bin
roots_day := $(shell awk '$$1 == "roots" {print $$2}' vendor/manifest)
$(ROOTS): build/roots.c $(patsubst %,src/%.c,deliver/der deliver/certificate base/str base/utf8 base/err) \
		src/deliver/certificate.h
	$(call say,ROOTS,$@)
	$(Q)$(HOST_GCC) -std=gnu11 $(CPPFLAGS) $(WARNINGS) -O1 -o build/out/roots $(filter %.c,$^)
	$(Q)build/out/roots $(SOURCES)/roots/mozilla/certdata.txt $(roots_day) >$@
$(ROOTS): $(SOURCES)/roots.unpacked

# The page's script and style as the page has them: without indentation, comments and, in the style, blanks that
# mean nothing, which would be in every profile. Of the script gzip's output without its header and its check sum: the
# page allows it by its hash, before it is unpacked.
SCRIPT := build/out/flame.js
STYLE := build/out/flame.css
TOOL_STYLE := build/out/flame_tool.css
bare := -e 's/^ *//' -e 's/\([^ ]\) *\/\*.*\*\/$$/\1/' -e '/^\/\*.*\*\/$$/d' -e '/^\/\*/,/\*\/$$/d'
tight := $(bare) -e 's/ {/{/g' -e 's/; }/}/g' -e 's/\([:;,{]\) /\1/g'
$(SCRIPT): src/encode/flame.js $(TOOL_STYLE) build/product.mk | $(TOOLS)
	$(Q)sed -e '/^\/\* flame_tool.css \*\/$$/{r $(TOOL_STYLE)' -e 'd' -e '}' $(bare) $< >$@
$(STYLE) $(TOOL_STYLE): build/out/%.css: src/encode/%.css build/product.mk | $(TOOLS)
	$(Q)sed $(tight) $< >$@
$(SCRIPT).deflate: $(SCRIPT)
	$(call say,DEFLATE,$@)
	$(Q)gzip -9nc <$< | tail -c +11 | head -c -8 >$@
$(SCRIPT).sha256: $(SCRIPT)
	$(Q)sha256sum <$< | cut -c1-64 >$@

# What is embedded as bytes: see build/assets.S.
assets := $(SCRIPT).deflate $(SCRIPT).sha256 $(STYLE) $(ROOTS)

objects := $(sources:src/%.c=$(OUT)/obj/%.o) $(OUT)/obj/assets.o

# The commit is known to the one object that prints it. A tarball without git builds, and says "unknown".
commit := $(or $(shell git rev-parse --short=12 HEAD 2>/dev/null),unknown)
commit_sources := $(shell grep -l PILLION_COMMIT $(sources))

# The hot paths for speed, the rest for size.
optimise = $(if $(filter src/base/% src/capture/stacks/stacks% src/capture/follow/targets% src/elf/% src/os/perf% src/sample/% src/unwind/% src/profile/%,$1),-O2,-Os)
libraries := $(shell awk '/^[a-z]/ && !($(TLS13) == 0 && $$1 == "mbedtls") {printf "%s%s %s", n++ ? ", " : "", $$1, $$2}' vendor/manifest)
commit_flag = $(if $(filter $1,$(commit_sources)),-DPILLION_COMMIT='"$(commit)"' -DPILLION_LIBRARIES='"$(libraries)"')

compile_flags = -include build/hidden.h -std=gnu11 $(CPPFLAGS) $(WARNINGS)

# A source that goes away relinks, a new commit compiles one file.
$(call note,$(OUT)/objects.list,$(objects))
$(call note,$(OUT)/cppflags,$(CPPFLAGS))
$(call note,$(OUT)/commit,$(commit) $(libraries))

product: $(OUT)/pillion

$(OUT)/obj/%.o: src/%.c build/config.mk build/product.mk $(OUT)/cppflags | $(MUSL_LIB) $(call vendor_archives,$(OUT))
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(TARGET_CC) $(compile_flags) $(TARGET_CFLAGS) $(call optimise,$<) $(call commit_flag,$<) -MMD -MP -c -o $@ $<

$(commit_sources:src/%.c=$(OUT)/obj/%.o): $(OUT)/commit

$(OUT)/obj/assets.o: build/assets.S $(assets) | $(MUSL_LIB)
	$(call say,EMBED,$(assets))
	@mkdir -p $(@D)
	$(Q)$(TARGET_CC) -c -o $@ $<

$(OUT)/pillion: $(OUT)/pillion.debug
	$(call say,STRIP,$@)
	$(Q)$(TARGET_BINUTILS)objcopy --strip-all --remove-section=.comment $< $@
	@size=$$(stat -c %s $@); printf '  %-7s %s, %d bytes\n' BUILT $@ $$size; \
		[ $$size -le 2097152 ] || { echo 'pillion is larger than 2 MB' >&2; exit 1; }

$(LINKER_FOLDER)/ld.lld:
	@mkdir -p $(@D)
	$(Q)ln -sf "$$(command -v ld.lld)" $@

$(OUT)/pillion.debug: $(if $(filter aarch64,$(ARCH)),$(LINKER_FOLDER)/ld.lld) $(objects) $(MUSL_LIB) $(call vendor_archives,$(OUT)) $(OUT)/objects.list
	$(call say,LINK,$@)
	$(Q)$(TARGET_CC) $(TARGET_LDFLAGS) -Wl,-Map=$(OUT)/pillion.map -o $@ $(objects) $(call vendor_archives,$(OUT))

-include $(objects:.o=.d)
