# make demo, make play and make test do all their own set-up; they need Python 3.11 or newer and nothing else.
#   make PYTHON=/path/to/python test     uses that Python for a new .venv (make clean first to change it)
#   make test ARGS="-k rules"            passes arguments on to pytest, or to planvec with demo and play
#   make mutants ARGS="-k losses"        only mutants with that in their file or their description

VENV    := .venv
BIN     := $(VENV)/bin
WORKERS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo $$n || echo 4)
ARGS    ?=
PYTHON  ?= python3.12 python3.11 python3 python

.DEFAULT_GOAL := help
.PHONY: help demo play test mutants browser lint format docs clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

demo: $(VENV)/.core  ## install planvec into .venv and run its demo
	@$(BIN)/planvec demo $(ARGS)

play: $(VENV)/.play  ## install planvec into .venv and open its playground in the browser
	@$(BIN)/planvec play $(ARGS)

test: lint browser  ## lint, then run all tests in parallel
	@echo "==> pytest, $(WORKERS) workers"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=10 $(ARGS)

mutants: $(VENV)/.dev  ## change the code in many small ways, and see that tests notice each
	@echo "==> mutants, $(WORKERS) at once"
	@$(BIN)/python tests/mutants/run.py -n $(WORKERS) $(ARGS)

browser: $(VENV)/.dev  ## find Chromium for the playground's tests, or install it
	@$(BIN)/python tests/playground/browser.py

lint: $(VENV)/.dev  ## check style, formatting and types
	@echo "==> ruff check, ruff format --check, basedpyright"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/.dev  ## fix what ruff can fix, and format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.docs  ## build the documentation as a site, into site/; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build
	@echo "the site is in site/: open site/index.html"

clean:  ## remove .venv, caches and build outputs; runs and data stay
	rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Set-up. Each stamp is redone when pyproject.toml, constraints.txt or the Python itself changes.
$(VENV)/.core: pyproject.toml constraints.txt $(BIN)/python
	$(call install,.)
	@touch $@

$(VENV)/.play: pyproject.toml constraints.txt $(BIN)/python
	$(call install,.[play])
	@touch $(VENV)/.core $@

$(VENV)/.dev: pyproject.toml constraints.txt $(BIN)/python
	$(call install,.[dev])
	@touch $(VENV)/.core $(VENV)/.play $@

$(VENV)/.docs: pyproject.toml constraints.txt $(BIN)/python
	$(call install,.[docs])
	@touch $(VENV)/.core $@

$(BIN)/python:
	@for python in $(PYTHON); do \
	    $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    echo "==> creating $(VENV) with $$($$python --version)"; \
	    $$python -c 'import ensurepip, venv' 2>/dev/null && $$python -m venv --clear $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    $$python -c 'import sys; print("error: this Python cannot create a virtual environment. On Debian or Ubuntu:", \
	        "apt install python%d.%d-venv. Or name another one: make PYTHON=..." % sys.version_info[:2])' >&2; \
	    exit 1; \
	done; \
	echo "error: planvec needs Python 3.11 or newer; none among: $(PYTHON). Name one: make PYTHON=/path/to/python" >&2; \
	exit 1

# Installs $(1), editable, at the exact versions in constraints.txt; every 10 s it says where pip is. Python compiles what
# it imports when it does so: all 1.4 GB at once would take pip half of its time.
define install
@echo "==> installing planvec into $(VENV), about a minute the first time (200 MB to download)"
@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
@began=$$(date +%s); log=$(VENV)/pip.log; \
elapsed() { echo "$$(( $$(date +%s) - began )) s"; }; \
while sleep 10 >/dev/null 2>&1; do echo "    $$(elapsed): $$(grep -v WARNING $$log | tail -n 1 | cut -c 1-80)"; done & \
trap "kill $$!" EXIT; trap "exit 130" INT TERM; \
$(BIN)/python -m pip install --progress-bar off --no-compile -c constraints.txt -e '$(1)' >$$log 2>&1 \
    || { tail -n 20 $$log >&2; echo "error: pip could not install planvec; all it said is in $$log" >&2; exit 1; }; \
echo "    done in $$(elapsed)"
endef
