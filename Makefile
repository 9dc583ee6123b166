# Short names for the usual work. `make` alone lists them.
#
# PRESET=debug make test       the same with address and undefined-behaviour sanitizers
# TESTS=core make test         the tests with such names
.DEFAULT_GOAL := help
.PHONY: help setup configure demo test fuzz bench benchmarks growth peers sbibm lint format reference docs clean

PRESET ?= release
BUILD = build/$(PRESET)

# Debian's own programs before others of the same name on the path (Python environments bring a
# cmake and a ninja). Looked up when used, because `setup` may have just installed them.
CMAKE = $(shell test -x /usr/bin/cmake && echo /usr/bin/cmake || echo cmake)
CTEST = $(shell test -x /usr/bin/ctest && echo /usr/bin/ctest || echo ctest)
NINJA = $(shell test -x /usr/bin/ninja && echo /usr/bin/ninja || command -v ninja)
PYTHON = $(shell test -x /usr/bin/python3 && echo /usr/bin/python3 || echo python3)

help:  ## List the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

setup:  ## Install the Debian packages that are missing
	@tools/setup build test

configure: setup
	@$(CMAKE) --preset $(PRESET) -DCMAKE_MAKE_PROGRAM=$(NINJA) --log-level=WARNING >/dev/null

demo: configure  ## Build the command line and run the first example
	@$(CMAKE) --build $(BUILD) --target neyman_cli
	@$(BUILD)/cli/neyman run examples/01_mixture/study.toml --out out/demo
	@echo "The report is in out/demo/report.html"
	@if [ -n "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ] && command -v xdg-open >/dev/null; then \
	  xdg-open out/demo/report.html >/dev/null 2>&1 || true; fi

test: configure  ## Build everything and run every test
	@$(CMAKE) --build $(BUILD)
	@$(CTEST) --preset $(PRESET) $(if $(TESTS),-R '$(TESTS)')

fuzz:  ## Ten thousand random calls of the Python package under the address sanitizer
	@$(MAKE) --no-print-directory PRESET=debug configure
	@$(CMAKE) --build build/debug --target neyman_python
	@$(CTEST) --preset debug -R python.fuzz

benchmarks: configure
	@$(CMAKE) --build $(BUILD) --target benchmarks

# QUICK=1 for the three below: sizes that show that it works, and nothing about speed.
bench: benchmarks  ## Build and run the benchmarks of the kernels, with their share of the machine's peak
	@for program in $(BUILD)/benchmarks/kernels/bench_*; do echo "== $$program"; \
	  $$program $(if $(QUICK),--benchmark_min_time=0.001 --benchmark_filter='7-40-40-1/relu|fill|calibration') || exit 1; done

growth: benchmarks  ## How time and memory grow with the size of the work
	@benchmarks/growth/run $(BUILD) $(if $(QUICK),--quick)

peers: benchmarks  ## Compare with what users run today, side by side; ONLY="toys nre" for some of it
	@tools/setup peers
	@benchmarks/peers/run $(BUILD) $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(PEERS_PYTHON),--python $(PEERS_PYTHON))

sbibm: configure  ## The ten tasks of the benchmark sbibm beside published results; hours; QUICK=1: two, minutes
	@tools/setup peers
	@$(CMAKE) --build $(BUILD) --target neyman_python
	@PYTHONPATH=$(BUILD)/python $(PYTHON) benchmarks/sbibm/run.py --out build/sbibm/results.jsonl \
	  $(if $(QUICK),--tasks two_moons slcp --budgets 1e3 --observations 1 2 --quick,--budgets 1e3 1e4 1e5)

lint:  ## Check format and names of what you changed; ALL=1: of all, FILES="src/…": of these
	@tools/setup build test lint
	@$(CMAKE) --preset lint -DCMAKE_MAKE_PROGRAM=$(NINJA) --log-level=WARNING >/dev/null
	@$(PYTHON) tools/lint.py --build build/lint $(if $(ALL),--all) $(FILES)

format:  ## Rewrite the sources in the project's format
	@tools/setup lint
	@git ls-files '*.cpp' '*.hpp' | xargs clang-format -i

reference: configure  ## Write the reference and the schema of the study file into docs/
	@$(CMAKE) --build $(BUILD) --target neyman_cli
	@$(BUILD)/cli/neyman help --reference > docs/study-reference.md
	@$(BUILD)/cli/neyman help --schema > docs/study.schema.json

docs:  ## Build the documentation as a site, after checking its links and paths
	@tools/setup docs
	@$(PYTHON) tools/check_docs.py
	@$(PYTHON) -m mkdocs build --quiet
	@echo "The site is in build/site/index.html"

clean:  ## Remove what was built and written
	rm -rf build out
