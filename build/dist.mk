# What a release consists of, in build/out/dist: build/dist/dist.py packs what is built for both processors (docs/releases.md).

DIST := build/out/dist
DIST_ARCHS ?= x86_64 aarch64
# Where the project lives and who answers, as packages tell it; whoever releases says so.
HOMEPAGE ?=
MAINTAINER ?= the pillion authors
dist_prefix = $(if $(filter-out $(shell uname -m),$1),$1-linux-gnu-)

# A make for each processor: ARCH decides what the rest of these files is about. One after the other: they unpack the same sources.
.PHONY: dist release-check
dist:
	+@for arch in $(DIST_ARCHS); do $(MAKE) ARCH=$$arch product || exit 1; done
	$(Q)/usr/bin/python3 build/dist/dist.py --to $(DIST) --homepage '$(HOMEPAGE)' --maintainer '$(MAINTAINER)' \
		$(DIST_OPTIONS) $(foreach a,$(DIST_ARCHS),--arch $a=$(call dist_prefix,$a))

# Of what is committed: two builds in two folders, on two days' clocks, are the same bytes; then each package is installed and run.
release-check:
	+$(Q)sh build/dist/check.sh
