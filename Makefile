# `make run` and `make test` need only Python >= 3.11 and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: run test check clean

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "opsmith needs Python >= 3.11; try: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[providers,ui,data,docs,dev]'
	touch $@

run: .venv/.installed
	$(BIN)/opsmith run experiments/main.toml

test: .venv/.installed
	$(BIN)/python -m pytest -n 2 $(PYTEST_FLAGS)

check: .venv/.installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

clean:
	rm -rf .venv build dist src/*.egg-info
