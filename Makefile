# Two commands for a newcomer: make run, make test. Needs python3 (3.11+), git, make and the PyPI registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test lint bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "landed needs Python 3.11 or newer: make run PYTHON=python3.11"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

run: $(STAMP)
	$(BIN)/python scripts/run.py

test: $(STAMP) lint
	$(BIN)/python -m pytest -n auto

lint: $(STAMP)
	$(BIN)/ruff check src tests scripts benchmarks
	$(BIN)/ruff format --check src tests scripts benchmarks
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	$(BIN)/python benchmarks/replay.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
