# Everything a person or CI does here is one of these. PYTHON chooses the interpreter, VENV where its venv lies.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Tests wait more than they compute: a worker for each core, and the tests of one file stay together.
PYTEST_ARGS ?= -n auto --dist loadfile
# What pip says on its own buries the cause; most often this machine reaches no package index.
NO_INSTALL = { echo "pip could not install into $(VENV), see above; it needs a package index (a proxy: set https_proxy, a mirror: PIP_INDEX_URL)" >&2; exit 1; }

.PHONY: help demo test test-lab lint fix screens smoke clean

help:
	@echo "make demo    a made-up fleet of three hosts on this machine, and its cluster report (no GPU, no root)"
	@echo "make test    all tests; what this machine cannot run is skipped with the reason"
	@echo "make test-lab  every deployment in the lab: all suites, failures, ten hosts (root; about half an hour)"
	@echo "make lint    ruff, mypy --strict, ansible-lint, yamllint"
	@echo "make fix     let ruff mend and format what it can"
	@echo "make screens write the screens in README and docs anew, from what the program prints"
	@echo "make smoke   build the wheel and try it in empty venvs"
	@echo "Another interpreter: make test PYTHON=python3.12 VENV=.venv-3.12"

demo: $(VENV)/.with-fleet
	@$(BIN)/gua-fleet demo

test: $(VENV)/.with-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-lab: $(VENV)/.with-dev
	GUA_LAB_REQUIRED=1 GUA_LAB_FULL=1 $(BIN)/python -m pytest -m lab

lint: $(VENV)/.with-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd ansible && PATH="$(abspath $(BIN)):$$PATH" ansible-lint --offline --strict --profile production
	$(BIN)/yamllint --strict ansible

fix: $(VENV)/.with-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screens: $(VENV)/.with-dev
	$(BIN)/python -m tests.screens

smoke: $(VENV)/.with-dev
	tests/smoke_wheel.sh $(BIN)/python

clean:
	rm -rf $(VENV) gua-demo dist build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The stamps say which extras the venv holds. It is made anew when it is missing or half made (.busy: pip was at work, and
# takes what it was cut short in for installed), when its interpreter is gone (an upgrade of the system), and when it
# points elsewhere (a copied or moved checkout would run the other's code).
$(shell { [ "$$(cat '$(VENV)/.made')" = '$(CURDIR)' ] && [ ! -e '$(VENV)/.busy' ] && $(BIN)/python -c ''; } 2>/dev/null || \
  rm -f $(VENV)/.made $(VENV)/.with-fleet $(VENV)/.with-dev)

$(VENV)/.made:
	@command -v '$(PYTHON)' >/dev/null || \
	  { echo "there is no $(PYTHON) here: install it (Debian, Ubuntu: apt install python3 python3-venv), or name another (make PYTHON=python3.12)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 9))' || \
	  { echo "$(PYTHON) is too old: Python 3.9 or later is needed, 3.10 for gua-fleet (make PYTHON=python3.12)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make a venv: install it first (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install 'pip>=21.3' || $(NO_INSTALL) # older pip cannot install a pyproject.toml in editable mode
	@echo '$(CURDIR)' >$@

$(VENV)/.with-fleet: $(VENV)/.made pyproject.toml
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "gua-fleet needs Python 3.10 or later (make demo PYTHON=python3.12 VENV=.venv-3.12)" >&2; exit 1; }
	@echo "installing gua-fleet and what it needs into $(VENV)"
	@touch $(VENV)/.busy
	@$(PIP) install --editable '.[fleet]' || $(NO_INSTALL)
	@rm $(VENV)/.busy && touch $@

$(VENV)/.with-dev: $(VENV)/.made pyproject.toml
	@echo "installing what the tests need into $(VENV)"
	@touch $(VENV)/.busy
	@$(PIP) install --editable '.[fleet,dev]' $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) || $(NO_INSTALL)
	@rm $(VENV)/.busy && touch $@ $(VENV)/.with-fleet
