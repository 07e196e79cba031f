# pillion's build. The goals a person types are listed by `make help`; the logic is in build/*.mk.
#
#   build/config.mk   which machine the product is for, tools, flags
#   build/vendor.mk   the foreign libraries, from vendor/manifest and vendor/*.mk
#   build/product.mk  src/ and the linked program
#   build/tests.mk    unit tests, fuzz targets, test and bench goals
#   build/bench.mk    the programs of the measurements
#   build/dist.mk     the packages of a release
#   build/setup.mk    packages of the machine that builds; the demo
#
# Everything made goes below build/out/. Nothing here runs a compiler before a goal needs it: `make setup` and
# `make demo` start on a machine that has make and git only.

all: product

include build/config.mk
include build/vendor.mk
include build/product.mk
include build/tests.mk
include build/bench.mk
include build/dist.mk
include build/setup.mk

.PHONY: all product clean distclean help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += -r --no-print-directory

clean:
	rm -rf $(filter-out build/out/tarballs,$(wildcard build/out/*))

distclean:
	rm -rf build/out build/lab

help:
	@echo 'make            build build/out/$(ARCH)/pillion (ARCH=aarch64 cross-compiles)'
	@echo 'make demo       install what is needed, build, profile a bundled program, show where the results are'
	@echo 'make test       install what is needed, build, run every test'
	@echo 'make setup      install the Debian packages that building, demo and tests need (as root; else the command is shown)'
	@echo 'make unit       build and run the unit tests (host compiler, AddressSanitizer, UBSan)'
	@echo 'make fuzz       run the fuzz targets (clang; FUZZ_SECONDS=60 per target); make fuzz-keep: keep what reached new code'
	@echo 'make faults     fail the profiler'"'"'s system calls (FAULTS=3000 SEED=1); make launches: commands in odd set-ups'
	@echo 'make hostile    profile thousands of hostile targets with sanitizers (HOSTILE=5000 HOSTILE_SEED=0)'
	@echo 'make test-backends PYROSCOPE=FILE  send to a real server and ask back'
	@echo 'make bench      run the benchmarks'
	@echo 'make dist       packages for both processors in build/out/dist; make release-check: of two builds, compared and run'
	@echo 'make clean      remove what was built, keep fetched tarballs; distclean removes those too'
	@echo 'TLS13=0 builds without TLS 1.3: 220 KB less'
	@echo 'V=1 shows the commands; VENDOR_CACHE=DIR names a folder that holds the library tarballs, DEBIAN_MIRROR=ADDRESS'
	@echo 'a Debian archive that has them'
