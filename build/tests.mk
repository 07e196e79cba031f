# What the tests need built, and the goals that run them. pytest finds the programs in build/out and runs the unit
# tests with the rest; tests/README.md says more.

# The product needs nothing of what the tests depend on, and a make for the other processor, which runs beside one that compiles
# tests, must not read it half written.
for_tests = $(if $(filter-out product linked,$(MAKECMDGOALS)),$1)

# $1 tool chain's folder, $2 CC, $3 AR, $4 flags, $5 sources: every source but main.c, as an archive.
define test_library
$1/obj/%.o: src/%.c build/tests.mk $1/vendor.flags | $(call vendor_archives,$1)
	$$(call say,CC,$$< in $1)
	@mkdir -p $$(@D)
	$$(Q)$2 $$(compile_base) $4 -I$1/vendor/include $$(call commit_flag,$$<) -MMD -MP -c -o $$@ $$<

$1/lab/%.o: tests/lab/%.c build/tests.mk $1/vendor.flags | $(call vendor_archives,$1)
	$$(call say,CC,$$< in $1)
	@mkdir -p $$(@D)
	$$(Q)$2 $$(compile_base) $4 -Itests/lab -I$1/vendor/include -MMD -MP -c -o $$@ $$<

$1/obj/assets.o: build/assets.S $(assets)
	@mkdir -p $$(@D)
	$$(Q)$2 -c -o $$@ $$<

$1/libpillion.a: $(5:src/%.c=$1/obj/%.o) $1/obj/assets.o
	@rm -f $$@
	$$(Q)$3 Dcrs $$@ $$^

-include $(call for_tests,$(5:src/%.c=$1/obj/%.d) $(wildcard $1/lab/*.d))
endef
compile_base = -std=gnu11 $(CPPFLAGS)
$(eval $(call test_library,$(HOST_OUT),$(HOST_GCC),ar,$$(WARNINGS) $$(HOST_CFLAGS) $$(HOST_SANITIZE),$(host_sources)))
# gcc has judged these sources; clang's other opinions are not asked for.
$(eval $(call test_library,$(FUZZ_OUT),$(CLANG),ar,-w $$(FUZZ_CFLAGS) $$(FUZZ_SANITIZE),$(host_sources)))

unit_programs := $(patsubst tests/%.c,$(HOST_OUT)/%,$(wildcard tests/unit/*_test.c))
fuzz_programs := $(patsubst tests/fuzz/%.c,$(FUZZ_OUT)/%,$(wildcard tests/fuzz/*_fuzz.c))

# A test's own code is not optimised, which takes half of the time.
$(HOST_OUT)/unit/%: tests/unit/%.c $(HOST_OUT)/libpillion.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_GCC) $(compile_base) $(WARNINGS) -Itests/unit -Itests/lab -I$(HOST_OUT)/vendor/include $(HOST_CFLAGS) -O0 $(HOST_SANITIZE) \
		-MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) $(HOST_OUT)/libpillion.a $(call vendor_archives,$(HOST_OUT)) -lpthread
-include $(call for_tests,$(unit_programs:=.d))

# The whole program for targets that mean it ill: tests/lab/hostile.py.
$(HOST_OUT)/pillion: $(HOST_OUT)/obj/main.o $(HOST_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(HOST_CFLAGS) $(HOST_SANITIZE) -o $@ $^ $(call vendor_archives,$(HOST_OUT)) -lpthread
-include $(call for_tests,$(HOST_OUT)/obj/main.d)

$(FUZZ_OUT)/%_fuzz: tests/fuzz/%_fuzz.c $(FUZZ_OUT)/libpillion.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(compile_base) $(filter-out -Wmissing-prototypes,$(WARNINGS)) -I$(FUZZ_OUT)/vendor/include \
		$(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined -MMD -MP -MF $@.d -o $@ $< \
		$(FUZZ_OUT)/libpillion.a $(call vendor_archives,$(FUZZ_OUT)) -lpthread
-include $(call for_tests,$(fuzz_programs:=.d))

# What a unit program wants of the lab.
$(foreach o,$(HOST_OUT) $(OUT),$(eval $o/unit/recording_test: $o/lab/recorder.o $o/lab/recording.o))

# What records a run and what replays it: linked as the product is, with its objects, so that they run wherever it does.
linked_programs := $(OUT)/lab/record $(OUT)/lab/replay
$(OUT)/lab/%.o: tests/lab/%.c build/config.mk build/product.mk build/tests.mk | $(MUSL_LIB) $(call vendor_archives,$(OUT))
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(TARGET_CC) $(compile_flags) $(TARGET_CFLAGS) -O2 -Itests/lab -MMD -MP -c -o $@ $<

$(linked_programs): $(OUT)/lab/%: $(OUT)/lab/%.o $(OUT)/lab/recorder.o $(OUT)/lab/recording.o $(OUT)/pillion.debug
	$(call say,LINK,$@)
	$(Q)$(TARGET_CC) $(TARGET_LDFLAGS) -s -o $@ $(filter %.o,$^) $(filter-out $(OUT)/obj/main.o,$(objects)) $(call vendor_archives,$(OUT))
-include $(wildcard $(OUT)/lab/*.d)

# The unit tests once more with the product's own objects, as it is compiled and linked: what is tested so is what is shipped. As
# aarch64 programs they run under qemu-user. Programs of tests have unwind tables, which some of them read.
linked_unit_programs := $(patsubst tests/%.c,$(OUT)/%,$(wildcard tests/unit/*_test.c))
$(OUT)/libpillion.a: $(filter-out $(OUT)/obj/main.o,$(objects))
	@rm -f $@
	$(Q)$(TARGET_BINUTILS)ar Dcrs $@ $^
vendor_headers = -I$(OUT)/vendor/include
$(linked_unit_programs): $(OUT)/unit/%: tests/unit/%.c build/tests.mk $(OUT)/libpillion.a
	$(call say,TEST,$@)
	@mkdir -p $(@D)
	$(Q)$(TARGET_CC) $(compile_flags) $(filter-out $(DETERMINISTIC),$(TARGET_CFLAGS)) -O0 -Itests/unit -Itests/lab $(vendor_headers) $(TARGET_LDFLAGS) \
		-fasynchronous-unwind-tables -Wl,--eh-frame-hdr -MMD -MP -MF $@.d -o $@ $< $(filter %.o,$^) $(OUT)/libpillion.a $(call vendor_archives,$(OUT))
# It needs getcontext and backtrace, which musl lacks; in what the unwinder's objects ask for the two libraries do not differ.
$(OUT)/unit/unwind_test: private TARGET_CC = $(TARGET_GCC)
$(OUT)/unit/unwind_test: private TARGET_LDFLAGS = -static
$(OUT)/unit/unwind_test: private vendor_headers =
-include $(call for_tests,$(linked_unit_programs:=.d))

.PHONY: linked unit unit-linked unit-aarch64 product-aarch64 fuzz fuzz-keep test test-backends bench
unit: $(unit_programs) $(HOST_OUT)/pillion
linked: $(linked_programs)
unit-linked: $(linked_unit_programs)

ifeq ($(shell command -v $(AARCH64_GCC)),)
unit-aarch64 product-aarch64:
	@echo 'aarch64 is not tested: no $(AARCH64_GCC) here (make setup installs it)'
else
# A make of its own: ARCH decides what the rest of these files is about.
product-aarch64:
	+@$(MAKE) ARCH=aarch64 CROSS_COMPILE=$(AARCH64_TOOLS) product linked
unit-aarch64:
	+@$(MAKE) ARCH=aarch64 CROSS_COMPILE=$(AARCH64_TOOLS) product linked unit-linked
endif

# As a test, what is kept is given to the targets again, linked as unit programs are.
replay_programs := $(patsubst tests/fuzz/%.c,$(HOST_OUT)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
$(HOST_OUT)/fuzz/%_fuzz: tests/fuzz/%_fuzz.c tests/fuzz/replay.c $(HOST_OUT)/libpillion.a
	@mkdir -p $(@D)
	$(Q)$(HOST_GCC) $(compile_base) $(filter-out -Wmissing-prototypes,$(WARNINGS)) -I$(HOST_OUT)/vendor/include $(HOST_CFLAGS) \
		$(HOST_SANITIZE) -o $@ $(filter %.c,$^) $(HOST_OUT)/libpillion.a $(call vendor_archives,$(HOST_OUT)) -lpthread

.PHONY: fuzz-replay $(replay_programs:=.replay)
fuzz-replay: $(replay_programs:=.replay)
$(replay_programs:=.replay): $(HOST_OUT)/fuzz/%_fuzz.replay: $(HOST_OUT)/fuzz/%_fuzz
	$(call say,REPLAY,$*)
	$(Q)$< $(wildcard tests/fuzz/$*) >$<.log 2>&1 || { tail -n 60 $<.log; exit 1; }

# `make fuzz` digs for a minute each, or as long as it is told to.
FUZZ_SECONDS ?= 60
ifeq ($(shell command -v $(CLANG)),)
fuzz fuzz-keep:
	@echo 'fuzz targets are skipped: no $(CLANG) here (make setup installs it)'
else
fuzz: $(fuzz_programs:=.run)

# Adds what reached new code to the kept inputs, the smallest that does.
fuzz-keep: $(fuzz_programs:=.keep)
endif

# New inputs go below build/out; the kept ones in tests/fuzz/NAME/ are only read.
.PHONY: $(fuzz_programs:=.run)
$(fuzz_programs:=.run): $(FUZZ_OUT)/%_fuzz.run: $(FUZZ_OUT)/%_fuzz
	@mkdir -p $(FUZZ_OUT)/found/$*
	@$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -artifact_prefix=$(FUZZ_OUT)/$*- \
		$(FUZZ_OUT)/found/$* $(wildcard tests/fuzz/$*) >$(FUZZ_OUT)/$*.log 2>&1 && \
		echo '  FUZZED  $* for $(FUZZ_SECONDS) s' || { tail -n 60 $(FUZZ_OUT)/$*.log; exit 1; }

.PHONY: $(fuzz_programs:=.keep)
$(fuzz_programs:=.keep): $(FUZZ_OUT)/%_fuzz.keep: $(FUZZ_OUT)/%_fuzz
	@mkdir -p tests/fuzz/$* $(FUZZ_OUT)/found/$*
	@$< -set_cover_merge=1 -max_len=$(FUZZ_KEPT_BYTES) -rss_limit_mb=1024 tests/fuzz/$* $(FUZZ_OUT)/found/$* \
		>$(FUZZ_OUT)/$*.keep.log 2>&1 && echo "  KEPT    $$(ls tests/fuzz/$* | wc -l) inputs of $*"
FUZZ_KEPT_BYTES := 4096

# The product first: it unpacks what all tool chains compile. Then these beside each other, in any order.
test:
	@sh build/setup.sh build test
	+@$(MAKE) product linked
	+@$(MAKE) unit unit-aarch64 bench-check fuzz-replay
	@ARCH=$(ARCH) tests/run

# Targets that mean ill, each for a second: HOSTILE=20000 for a night. A finding names its seed.
HOSTILE ?= 5000
.PHONY: hostile
hostile: product $(HOST_OUT)/pillion
	tests/lab/hostile.py --count $(HOSTILE) --seed $(or $(HOSTILE_SEED),0)

# Beside real servers, which whoever asks for them has built: tests/live/real_*.py tell how. One that is not given skips.
test-backends: product
	PYROSCOPE=$(PYROSCOPE) COLLECTOR=$(COLLECTOR) DATADOG_AGENT=$(DATADOG_AGENT) DATADOG_TEST_AGENT=$(DATADOG_TEST_AGENT) \
		/usr/bin/python3 -m pytest -s tests/live/real_pyroscope.py tests/live/real_collector.py tests/live/real_datadog.py

# For a night: faults in the profiler's system calls, launches in odd set-ups. As root.
.PHONY: faults launches
FAULTS ?= 3000
LAUNCHES ?= 10000
SEED ?= 1
faults: product
	/usr/bin/python3 tests/lab/faults.py --count $(FAULTS) --seed $(SEED)
launches: product
	/usr/bin/python3 tests/lab/launches.py --count $(LAUNCHES) --seed $(SEED)

bench:
	@sh build/setup.sh build bench
	+@$(MAKE) product linked bench-programs
	tests/bench/run
