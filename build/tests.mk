# What the tests need built, and the goals that run them. pytest finds the programs in build/out and runs the unit
# tests with the rest; tests/README.md says more.

# $1 tool chain's folder, $2 CC, $3 flags: every source but main.c, as an archive.
define test_library
$1/obj/%.o: src/%.c build/tests.mk $1/vendor.flags | $(call vendor_archives,$1)
	$$(call say,CC,$$< in $1)
	@mkdir -p $$(@D)
	$$(Q)$2 $$(compile_base) $3 -I$1/vendor/include $$(call commit_flag,$$<) -MMD -MP -c -o $$@ $$<

$1/obj/assets.o: build/assets.S $(assets)
	@mkdir -p $$(@D)
	$$(Q)$2 -c -o $$@ $$<

$1/libpillion.a: $(host_sources:src/%.c=$1/obj/%.o) $(if $(assets),$1/obj/assets.o)
	@rm -f $$@
	$$(Q)ar Dcrs $$@ $$^

-include $(host_sources:src/%.c=$1/obj/%.d)
endef
compile_base = -std=gnu11 $(CPPFLAGS)
$(eval $(call test_library,$(HOST_OUT),$(HOST_GCC),$$(WARNINGS) $$(HOST_CFLAGS) $$(HOST_SANITIZE)))
# gcc has judged these sources; clang's other opinions are not asked for.
$(eval $(call test_library,$(FUZZ_OUT),$(CLANG),-w $$(FUZZ_CFLAGS) $$(FUZZ_SANITIZE)))

unit_programs := $(patsubst tests/%.c,$(HOST_OUT)/%,$(wildcard tests/unit/*_test.c))
fuzz_programs := $(patsubst tests/fuzz/%.c,$(FUZZ_OUT)/%,$(wildcard tests/fuzz/*_fuzz.c))

$(HOST_OUT)/unit/%: tests/unit/%.c $(HOST_OUT)/libpillion.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_GCC) $(compile_base) $(WARNINGS) -Itests/unit -I$(HOST_OUT)/vendor/include $(HOST_CFLAGS) $(HOST_SANITIZE) \
		-MMD -MP -MF $@.d -o $@ $< $(HOST_OUT)/libpillion.a $(call vendor_archives,$(HOST_OUT)) -lpthread
-include $(unit_programs:=.d)

$(FUZZ_OUT)/%_fuzz: tests/fuzz/%_fuzz.c $(FUZZ_OUT)/libpillion.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(compile_base) $(filter-out -Wmissing-prototypes,$(WARNINGS)) -I$(FUZZ_OUT)/vendor/include \
		$(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -MMD -MP -MF $@.d -o $@ $< \
		$(FUZZ_OUT)/libpillion.a $(call vendor_archives,$(FUZZ_OUT)) -lpthread
-include $(fuzz_programs:=.d)

.PHONY: unit fuzz fuzz-run test bench
unit: $(unit_programs)

FUZZ_SECONDS ?= 5
ifeq ($(shell command -v $(CLANG)),)
fuzz fuzz-run:
	@echo 'fuzz targets are skipped: no $(CLANG) here (make setup installs it)'
else
fuzz: $(fuzz_programs)

fuzz-run: $(fuzz_programs:=.run)
endif

# New inputs go below build/out; the kept ones in tests/fuzz/NAME/ are only read.
.PHONY: $(fuzz_programs:=.run)
$(fuzz_programs:=.run): $(FUZZ_OUT)/%_fuzz.run: $(FUZZ_OUT)/%_fuzz
	@mkdir -p $(FUZZ_OUT)/found/$*
	@$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -artifact_prefix=$(FUZZ_OUT)/$*- \
		$(FUZZ_OUT)/found/$* $(wildcard tests/fuzz/$*) >$(FUZZ_OUT)/$*.log 2>&1 && \
		echo '  FUZZED  $* for $(FUZZ_SECONDS) s' || { tail -n 60 $(FUZZ_OUT)/$*.log; exit 1; }

test:
	@sh build/setup.sh build test
	+@$(MAKE) product unit fuzz
	+@$(MAKE) fuzz-run
	ARCH=$(ARCH) /usr/bin/python3 -m pytest tests

bench:
	@sh build/setup.sh build bench
	+@$(MAKE) product
	tests/bench/run
