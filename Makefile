# `make` alone lists what there is. Nothing here needs a compiler, root or an account.
.DEFAULT_GOAL := help
.PHONY: help setup run test check lint browser bench docs words lock sbom clean

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
FREE_MB := 1024
# Test processes: one more than there are cores, because tests sometimes wait. Each more costs a start and a collection.
PROCESSES ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 7 ? cores + 1 : 8)))
# python3 is often older than a python3.x beside it: take the first one that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
# Wheels only, so that no compiler is needed; trueskill is offered as source alone, and is plain Python.
WHEELS := --only-binary :all: --no-binary trueskill

# pip trusts this machine's certificates, uv only its own unless told so; a laboratory's network may have one of its own.
ifneq ($(wildcard /etc/ssl/certs/ca-certificates.crt),)
export UV_SYSTEM_CERTS ?= 1
endif

# A start reads bytecode, or takes seconds longer; the tests start hundreds of processes. So it is made with the
# installation, and kept for Easel's own code whatever the environment says.
export UV_COMPILE_BYTECODE ?= 1
unexport PYTHONDONTWRITEBYTECODE

# Each of the processes has one core; with more threads than cores OpenBLAS spends them on waiting.
test check: export OPENBLAS_NUM_THREADS := 1

help:
	@echo 'make run     set everything up and serve a demo campaign; stop it with Ctrl-C, the data stay'
	@echo 'make test    set everything up, a browser included, and run every check and test'
	@echo 'make check   lint, types, and the quick tests of what you changed since main'
	@echo 'make setup   only set up: $(VENV) with the locked versions'
	@echo 'make lint    ruff, mypy and import-linter alone'
	@echo 'make bench   measure serving and every method on this machine, about half an hour'
	@echo 'make docs    write the pages that follow from the code, and build the documentation as a site into site/'
	@echo 'make words   collect what annotators'"'"' pages say into the catalogues of all languages'
	@echo 'make lock    look for newer versions and write requirements.lock'
	@echo 'make sbom    write the bill of materials of the locked packages to dist/easel-sbom.json (CycloneDX)'
	@echo 'make clean   remove $(VENV) and what tools left behind; your data stay'

run: setup
	@$(BIN)/easel serve --demo

LINT := $(BIN)/ruff check && $(BIN)/ruff format --check && $(BIN)/mypy && $(BIN)/lint-imports --no-cache
PYTEST := $(BIN)/pytest -n $(PROCESSES) --dist worksteal

# Beside each other; both are finished whatever becomes of the other, and each can fail the whole.
test: setup browser
	@( $(LINT) ) & lint=$$!; PYTEST_PLUGINS=tests.covered $(PYTEST) --durations=20; tests=$$?; $(BOTH)

check: setup browser
	@( $(LINT) ) & lint=$$!; $(PYTEST) -m 'not slow' $$($(BIN)/python tests/changed.py); tests=$$?; $(BOTH)

BOTH = wait $$lint || { echo 'Lint failed: what it found is above.' >&2; exit 1; }; exit $$tests

lint: setup
	$(LINT)

browser: setup
	@$(BIN)/python tests/chromium.py

bench: setup
	$(BIN)/python -m benchmarks

# Strict: a link that leads nowhere fails. KaTeX is the copy that items use, so no page needs another host.
docs: setup
	$(BIN)/python docs/generate.py
	$(BIN)/zensical build --config-file .mkdocs.yml --strict --clean
	@cp -R static/vendor/katex site/assets/
	@echo 'Open site/index.html'

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo 'Easel needs Python 3.11 or newer, and found none. Install it, or name one: make PYTHON=/path/to/python3' >&2; exit 1; fi
	@free=$$(df -Pm . | awk 'NR == 2 {print $$4}'); if [ "$$free" -lt $(FREE_MB) ]; then \
		echo "Easel needs $(FREE_MB) MB of free disk here to set up, and found $$free MB. Free some, or move this folder." >&2; exit 1; fi
	@$(BIN)/python -c 'import pip' 2>/dev/null || $(BIN)/uv --version >/dev/null 2>&1 || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV) >/dev/null 2>&1; } || { rm -rf $(VENV); \
		echo 'Easel needs the venv module of $(PYTHON). On Debian or Ubuntu: apt-get install python3-venv' >&2; exit 1; }
	@$(BIN)/uv --version >/dev/null 2>&1 || { echo 'Setting up $(VENV); the first time takes about a minute.'; \
		awk '/^uv==/,!/\\$$/' requirements.lock > $(VENV)/uv.txt; \
		$(BIN)/python -m pip install -qq --require-hashes --only-binary :all: -r $(VENV)/uv.txt; }
	@$(BIN)/uv pip sync -q --compile-bytecode --python $(BIN)/python --require-hashes $(WHEELS) requirements.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# Then fill in what it says is missing.
words: setup
	$(BIN)/python -m tests.languages.words

# Every platform and Python in one file, with hashes and without addresses.
lock: setup
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --group dev --generate-hashes \
		--no-annotate --no-header --no-emit-index-url pyproject.toml -o requirements.lock

# In an environment of its own: the tool brings more packages than the server has. Licences are those of the packages here.
SBOM_TOOL := cyclonedx-bom==7.5.0
sbom: setup
	@mkdir -p dist
	@$(BIN)/uv tool run -q --from '$(SBOM_TOOL)' cyclonedx-py environment --pyproject pyproject.toml \
		--mc-type application --gather-license-texts --output-reproducible -o dist/easel-sbom.json $(BIN)/python
	@echo 'Wrote dist/easel-sbom.json'

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache build dist site
