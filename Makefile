# Everything a person or a machine runs here. `make help` lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# The lock files name everything, so nothing is resolved: pip, when it resolves `name[extra]`, takes the newest
# release instead of the locked one, and then refuses it for want of a hash.
LOCKED := $(PIP) --no-deps --require-hashes
SEED ?= 1

.PHONY: help setup dev components demo test lint types bench sim up changelog reference lock wheel clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(VENV)/.running ## create .venv with everything that running needs

$(VENV)/.running: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(LOCKED) -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

dev: $(VENV)/.dev ## add what developing needs

$(VENV)/.dev: $(VENV)/.running requirements-dev.lock
	$(LOCKED) -r requirements-dev.lock
	@touch $@

components: dev ## fetch the real kubectl, etcd and containerd that tests run against
	$(BIN)/python tools/components.py

demo: setup ## a whole cluster shows what it promises, in seconds; with KEEP=1 it stays to be looked at
	$(BIN)/python examples/demo.py $(if $(KEEP),--keep)

up: setup ## run a whole cluster until interrupted; data and kubeconfig in ./allot-data
	$(BIN)/allot up

# More workers than cores: much of a test is waiting for processes.
test: dev components lint types ## run the whole test suite
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: dev ## check form and style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/vulture

types: dev ## check types, strictly
	$(BIN)/mypy

bench: dev ## run the benchmarks; figures go to bench/results as JSON
	$(BIN)/python bench/run.py

sim: $(VENV)/.running ## simulate an hour of a cluster from a seed: make sim SEED=7, or its beginning: STEPS=40
	$(BIN)/allot sim --seed $(SEED) $(if $(STEPS),--steps $(STEPS))

changelog: ## CHANGELOG.md from the files in changes/
	$(PYTHON) tools/changelog.py

reference: setup ## docs/python-api.md from docstrings
	$(BIN)/python tools/reference.py

lock: ## write the lock files anew from pyproject.toml
	$(PIP) uv
	$(BIN)/uv pip compile -q pyproject.toml --group build --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 -o requirements.lock
	$(BIN)/uv pip compile -q pyproject.toml --group dev --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 -o requirements-dev.lock

wheel: dev ## build the package into dist/, to be installed with pip anywhere
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove what make created
	rm -rf $(VENV) dist .cache .mypy_cache .ruff_cache .pytest_cache
