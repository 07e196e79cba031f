# The machine that builds: its packages (build/packages.txt, build/setup.sh), and the demo, which starts from nothing.

.PHONY: setup demo
setup:
	@sh build/setup.sh all

DEMO := build/out/demo
demo:
	@sh build/setup.sh build demo
	+@$(MAKE) product
	@mkdir -p $(DEMO)
	cc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -g -o $(DEMO)/workload \
		tests/live/programs/demo.c -lm -pthread
	$(OUT)/pillion --launch init -o $(DEMO) -- $(DEMO)/workload
	@echo
	@for f in last_flamegraph.html last_profile.col last_profile.pprof; do \
		test -s $(DEMO)/$$f && echo "$(CURDIR)/$(DEMO)/$$f" || exit 1; done
