# `make run` and `make test` need only Python >= 3.11 and make; what they run is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
BRIDGES := inspect verifiers mlflow
SITE := 'import site; print(site.getsitepackages()[0])'

.PHONY: run test languages tvm triton browser chaos check docs site bridges $(BRIDGES:%=bridge-%) audit fingerprint mutation optimise optimise-all clean

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
EXTRAS := providers,ui,data,postgres,ray,mcp,c,cuda,wgsl,study,docs,dev
NEEDS := pyproject.toml constraints.txt

# The package alone, which is all that `make run` needs; with every extra already there it is there too.
.venv/.core: $(NEEDS)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "opsmith needs Python >= 3.11; try: make PYTHON=python3.12")'
	test .venv/.installed -nt pyproject.toml && test .venv/.installed -nt constraints.txt || { $(PYTHON) -m venv .venv && $(INSTALL) -e . ; }
	touch $@

.venv/.installed: $(NEEDS) | .venv/.core
	$(INSTALL) -e '.[$(EXTRAS)]'
	touch $@

# The main job, without a key or a network: the core, and of the laboratory (opsmith_lab) the embedded model.
run: .venv/.core
	$(BIN)/opsmith run experiments/main.toml --secret 1

test: .venv/.installed
	$(BIN)/python -m pytest -n 3 $(PYTEST_FLAGS)

# The optimisation pass on 12 kernels in C, or on all 24, by the embedded tuner and analyst: minutes, no model, no key.
optimise: .venv/.installed
	$(BIN)/opsmith bench optimise --markdown runs/optimise.md --data runs/optimise.json

optimise-all: .venv/.installed
	$(BIN)/opsmith bench optimise kernels --markdown runs/optimise-all.md --data runs/optimise-all.json

# What needs more than Python: every program of the suites compiled, run and judged, simulators, installed libraries.
# `make languages L=wgsl`: of one language alone, in its own minutes.
languages: .venv/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST_FLAGS) $(L:%=--language %) tests/languages

# Tests of several languages, for those that live in an environment of their own.
SHARED := $(patsubst %,tests/languages/test_%.py,agreement unseen_programs)

# TVM as a language, in an environment of its own like those of `make bridges`: `make test` does not install it.
tvm: .venv-bridges/tvm/.installed
	.venv-bridges/tvm/bin/python -m pytest -n 2 $(PYTEST_FLAGS) --language tvm tests/languages/tvm $(SHARED)

# Triton, likewise: compiled for a GPU that need not be there, and interpreted.
triton: .venv-bridges/triton/.installed
	.venv-bridges/triton/bin/python -m pytest -n 2 $(PYTEST_FLAGS) --language triton tests/languages/triton $(SHARED)

# The pages of `opsmith ui` and the reports in Chromium: axe, the keyboard alone, a phone, light and dark.
browser: .venv/.installed
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST_FLAGS) tests/ui/browser tests/report/browser

# Runs under faults: processes are killed, disks filled, servers taken away. Minutes, most of them waiting.
chaos: .venv/.installed
	$(BIN)/python -m pytest -n 3 --dist worksteal $(PYTEST_FLAGS) tests/chaos

check: .venv/.installed
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/python .ci/structure.py

# The site, and every command on its pages, run in order as a reader would: minutes.
docs: site
	$(BIN)/python -m pytest -n 2 --dist worksteal $(PYTEST_FLAGS) tests/docs

site: .venv/.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Bridges to other systems are tested with the real packages, each in an environment of its own, since their pins
# disagree: it has what differs from .venv, whose packages (torch is a gigabyte) follow on its path.
.venv-bridges/%/.installed: .venv/.installed tests/bridges/constraints-%.txt
	@echo "environment of the extra $*$(SIZE)"
	$(PYTHON) -m venv .venv-bridges/$*
	$(BIN)/python -c $(SITE) > "$$(.venv-bridges/$*/bin/python -c $(SITE))/zz-opsmith.pth"
	.venv-bridges/$*/bin/python -m pip install --quiet --disable-pip-version-check \
		-c tests/bridges/constraints-$*.txt -e '.[$*]' pytest aiohttp $(MORE)
	touch $@

.venv-bridges/tvm/.installed: SIZE := : 320 MB
.venv-bridges/triton/.installed: SIZE := : 640 MB
.venv-bridges/tvm/.installed: MORE := psutil
.venv-bridges/inspect/.installed: MORE := openai
.venv-bridges/mlflow/.installed: MORE := datasets pyarrow

bridge-inspect: TESTS := test_inspect
bridge-verifiers: TESTS := test_verifiers
bridge-mlflow: TESTS := test_mlflow test_datasets
$(BRIDGES:%=bridge-%): bridge-%: .venv-bridges/%/.installed
	.venv-bridges/$*/bin/python -m pytest $(PYTEST_FLAGS) $(TESTS:%=tests/bridges/%.py)

bridges: $(BRIDGES:%=bridge-%)

# Known vulnerabilities of what is pinned, dated; before a release. Needs the network: it says so when it got no answer.
.venv-audit/.installed:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.7'
	touch $@

audit: .venv-audit/.installed
	.venv-audit/bin/python .ci/audit.py constraints.txt tests/bridges/constraints-*.txt

fingerprint: .venv/.installed
	$(BIN)/python tests/fingerprint.py

# Small faults in the judge's own code: which does no test notice? Hours; what was tried before is not tried again.
mutation: .venv/.installed
	$(BIN)/python tests/mutate_judge.py
	$(BIN)/python tests/mutate_judge.py --write experiments/judge-mutation.md

clean:
	rm -rf .venv .venv-bridges .venv-audit build dist site src/*.egg-info
