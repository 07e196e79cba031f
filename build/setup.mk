# The machine that builds: its packages (build/packages.txt, build/setup.sh), and the demo, which starts from nothing.

.PHONY: setup demo
setup:
	@sh build/setup.sh all

DEMO := build/out/demo
demo:
	@sh build/setup.sh build demo
	+@$(MAKE) product
	@mkdir -p $(DEMO)
	cc -O2 -fno-omit-frame-pointer -g -o $(DEMO)/workload tests/live/programs/demo.c -lm -pthread
	$(OUT)/pillion -d 5 -o $(DEMO) -- $(DEMO)/workload
	@echo
	@echo 'flame graph   $(CURDIR)/$(DEMO)/last_flamegraph.html'
	@echo 'collapsed     $(CURDIR)/$(DEMO)/last_profile.col'
	@echo 'pprof         $(CURDIR)/$(DEMO)/last_profile.pprof'
