# The machine that builds: its packages (build/packages.txt, build/setup.sh), and the demo, which starts from nothing.

.PHONY: setup demo
setup:
	@sh build/setup.sh all

# Without a python3 that has a database the demo is a program in C.
DEMO := build/out/demo
PYTHON ?= python3
demo:
	@sh build/setup.sh build demo
	+@$(MAKE) product
	@mkdir -p $(DEMO)
	@if $(PYTHON) -c 'import json, sqlite3' 2>/dev/null; then set -- $(PYTHON) tests/live/programs/shop.py; \
	else gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -g -o $(DEMO)/workload \
		tests/live/programs/demo.c -lm -pthread && set -- $(DEMO)/workload; fi && \
	echo "$(OUT)/pillion --launch init -o $(DEMO) -- $$*" && $(OUT)/pillion --launch init -o $(DEMO) -- "$$@"
	@echo
	@for f in last_flamegraph.html last_profile.col last_profile.pprof; do \
		test -s $(DEMO)/$$f && echo "$(CURDIR)/$(DEMO)/$$f" || exit 1; done

# README's picture, of a run by a Python whose native functions have names.
PAGE ?= $(CURDIR)/$(DEMO)/last_flamegraph.html
.PHONY: picture
picture:
	@test -s $(PAGE)
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1200,700 --virtual-time-budget=5000 \
		--screenshot=docs/flamegraph.png file://$(PAGE) 2>/dev/null
