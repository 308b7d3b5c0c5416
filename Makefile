# Everything Qunyi needs, from Python >= 3.11 (with venv) and make.  `make help` lists the targets.

PYTHON ?= python3
LOCK_PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.qunyi-setup
PIP_QUIET := --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup run demo test lint types format bench lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done

setup: $(STAMP) ## make .venv and install the pinned packages (fast when nothing changed)

# The first interpreter that is new enough makes the environment; hashes are checked for all of it.
$(STAMP): requirements.lock pyproject.toml
	@[ -x $(BIN)/python ] || { \
		for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
			$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
				&& found=$$candidate && break; \
		done; \
		if [ -z "$$found" ]; then \
			version=$$($(PYTHON) --version 2>/dev/null); \
			echo "Qunyi needs Python 3.11 or newer; '$(PYTHON)' is $${version:-not there}." >&2; \
			echo "Install one, or name it: make $(or $(MAKECMDGOALS),setup) PYTHON=/path/to/python3" >&2; \
			exit 1; \
		fi; \
		if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
			echo "'$$found' has no venv module. On Debian and Ubuntu: apt install python3-venv" >&2; \
			exit 1; \
		fi; \
		echo "Making $(VENV) with $$($$found --version) …"; \
		$$found -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; \
	}
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(VENV) is of a Python older than 3.11: remove it and run make again." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null
	@echo "Installing the pinned packages …"
	@$(BIN)/python -m pip install $(PIP_QUIET) --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install $(PIP_QUIET) --no-deps --no-build-isolation --editable .
	@touch $@

.env:
	@cp .env.example .env && chmod 600 .env
	@echo "Made .env from .env.example: your settings go there."

run: $(STAMP) | .env ## set up if needed, then start the bot
	@exec $(BIN)/python -m bot

demo: $(STAMP) ## play a sample week and show what is remembered and why (about a minute, no key)
	@exec $(BIN)/python -m bot demo $(ARGS)

# A file's tests share what they started, so files are dealt out whole.
test: $(STAMP) ## run the tests on all cores; more of pytest's options by ARGS="-k word"
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile $(ARGS)

lint: $(STAMP) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP) ## pyright
	@$(BIN)/pyright

format: $(STAMP) ## let ruff mend what it can
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## print the measurements, side by side with their baselines
	@$(BIN)/python -m bench $(ARGS)

# The oldest supported Python decides: what it cannot install must not be pinned. pip-tools lives in
# an environment of its own, and pip's own configuration is left out so that it leaves no trace.
lock: ## pin the newest allowed packages anew in requirements.lock (needs python3.11)
	@mkdir -p build
	@[ -x build/lock/bin/pip-compile ] || { $(LOCK_PYTHON) -m venv build/lock \
		&& build/lock/bin/python -m pip install $(PIP_QUIET) 'pip-tools>=7.5'; }
	@build/lock/bin/python -c "import tomllib; project = tomllib.load(open('pyproject.toml', 'rb')); \
		print(*project['build-system']['requires'], *project['project']['dependencies'], \
			*project['dependency-groups']['dev'], sep='\n')" > build/requirements.in
	@PIP_CONFIG_FILE=/dev/null PIP_FIND_LINKS= build/lock/bin/pip-compile --quiet --no-config --upgrade \
		--generate-hashes --allow-unsafe --strip-extras --no-annotate --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
		--output-file requirements.lock build/requirements.in
	@echo "requirements.lock is new; 'make test' installs it."

clean: ## remove .venv and caches; .env and data stay
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
