# The programs of the measurements (tests/bench) and of the cross-check (tests/lab/stacks_of.c), and
# the reader of Python stacks by itself (tests/lab/python_stacks.c).
#
# What is timed is compiled by the host's compiler as the product is by its own, without sanitizers. The peer that the
# unwinder is measured against is the distribution's libdw, a shared library that brings its own libelf, zlib and
# liblzma: our archives of the same names stay hidden from it. Without its headers there is no peer.

BENCH_OUT := build/out/bench
BENCH_CFLAGS = -g -O2
$(call note,$(BENCH_OUT)/vendor.flags,$(HOST_GCC) $(BENCH_CFLAGS))
$(foreach l,$(VENDOR_LIBRARIES),$(eval $(call vendor_rule,$(BENCH_OUT),$l,,$(HOST_GCC),ar,$$(BENCH_CFLAGS))))
bench_optimise = $(if $(filter tests/%,$1),-O2,$(call optimise,$1))
$(eval $(call test_library,$(BENCH_OUT),$(HOST_GCC),ar,$$(WARNINGS) -g $$(call bench_optimise,$$<),$(host_sources)))

bench_compile = $(HOST_GCC) $(compile_base) $(WARNINGS) -Itests/lab -MMD -MP
bench_programs := $(BENCH_OUT)/unwind $(BENCH_OUT)/tables $(BENCH_OUT)/python_walk $(BENCH_OUT)/fleet $(BENCH_OUT)/soak
lab_programs := $(HOST_OUT)/lab/stacks_of $(HOST_OUT)/lab/python_stacks $(HOST_OUT)/lab/backend_request $(HOST_OUT)/lab/soak
peer_link = $(if $(wildcard /usr/include/elfutils/libdwfl.h),-ldw)

# Without our own libdw's headers: the peer is another version.
$(BENCH_OUT)/bench/%.o: tests/bench/%.c build/bench.mk | $(call vendor_archives,$(BENCH_OUT))
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(bench_compile) $(BENCH_CFLAGS) -c -o $@ $<

$(BENCH_OUT)/unwind: $(BENCH_OUT)/bench/unwind.o $(BENCH_OUT)/bench/files.o $(BENCH_OUT)/bench/peer.o $(BENCH_OUT)/lab/samples.o $(BENCH_OUT)/lab/recording.o \
		$(BENCH_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(BENCH_CFLAGS) -Wl,--exclude-libs,ALL -o $@ $^ $(call vendor_archives,$(BENCH_OUT)) \
		$(peer_link) -lpthread

$(BENCH_OUT)/tables: $(BENCH_OUT)/bench/tables.o $(BENCH_OUT)/bench/files.o $(BENCH_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(BENCH_CFLAGS) -o $@ $^ $(call vendor_archives,$(BENCH_OUT)) -lpthread

$(BENCH_OUT)/python_walk: $(BENCH_OUT)/bench/python_walk.o $(BENCH_OUT)/bench/files.o $(BENCH_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(BENCH_CFLAGS) -o $@ $^ $(call vendor_archives,$(BENCH_OUT)) -lpthread

# Ten thousand instances by the product's own decisions, which need nothing else of it; make test runs it, too.
fleet_sources := tests/bench/fleet.c src/deliver/schedule.c src/deliver/retry.c
$(BENCH_OUT)/fleet: $(fleet_sources) $(wildcard src/deliver/*.h src/base/*.h) build/bench.mk
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(HOST_GCC) $(compile_base) $(WARNINGS) $(BENCH_CFLAGS) -o $@ $(fleet_sources)

# Its clock runs faster: what tells time and what waits is the program's own.
soak_link := $(foreach f,clock_mono_ns clock_wall_ns clock_system clock_sleep_ns waker_wait poll,-Wl,--wrap=$f)
$(BENCH_OUT)/soak: $(BENCH_OUT)/lab/soak.o $(BENCH_OUT)/lab/faulty.o $(BENCH_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(BENCH_CFLAGS) $(soak_link) -o $@ $^ $(call vendor_archives,$(BENCH_OUT)) -lpthread

# For a test, hence with the sanitizers.
$(HOST_OUT)/lab/stacks_of: $(HOST_OUT)/lab/samples.o $(HOST_OUT)/lab/recording.o
$(HOST_OUT)/lab/soak: $(HOST_OUT)/lab/faulty.o
$(HOST_OUT)/lab/soak: lab_link := $(soak_link)
$(lab_programs): %: %.o $(HOST_OUT)/libpillion.a
	$(call say,LINK,$@)
	$(Q)$(HOST_GCC) $(HOST_CFLAGS) $(HOST_SANITIZE) $(lab_link) -o $@ $(filter %.o,$^) $(filter %.a,$^) \
		$(call vendor_archives,$(HOST_OUT)) -lpthread

-include $(call for_tests,$(wildcard $(BENCH_OUT)/bench/*.d))

.PHONY: bench-programs bench-check lab-programs
bench-programs: $(bench_programs)

# Whether they compile, for make test: their libraries and ours for them take two minutes.
bench-check:
	$(Q)$(HOST_GCC) $(compile_base) $(WARNINGS) -Itests/lab -fsyntax-only $(wildcard tests/bench/*.c)

lab-programs: $(lab_programs)
unit: $(lab_programs) $(BENCH_OUT)/fleet
