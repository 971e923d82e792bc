# Every target makes its own virtual environment (.venv) and installs what it needs with pip alone.
# Works with GNU make 3.81 and later. Choose the interpreter with: make PYTHON=/path/to/python3.12 test

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test slow fuzz docs lint format bench clean distclean

PY := .venv/bin/python
PYTEST_WORKERS ?= auto
PYTEST_ARGS ?=
SPHINXOPTS ?=

# Nothing here opens a window or asks whether pip is the newest.
MPLBACKEND ?= Agg
export MPLBACKEND
export PIP_DISABLE_PIP_VERSION_CHECK := 1

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: .venv/.stamp-plot ## a first look: fit, certify and plot on handwritten digits
	.venv/bin/gramian demo

# One BLAS thread per worker: workers times threads on the same cores is slower than either.
RUN_TESTS = OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} OPENBLAS_NUM_THREADS=$${OPENBLAS_NUM_THREADS:-1} \
	$(PY) -m pytest -n $(PYTEST_WORKERS)

# The tests of a file stay in one worker, so that what they need is compiled once and not by each worker; tests/conftest.py
# puts the files that take longest first.
test: .venv/.stamp-test ## tests, and the examples in the docstrings
	$(RUN_TESTS) -m "not slow and not pages" --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# Most of these start processes of their own and measure them, so nothing else runs beside them.
slow: .venv/.stamp-test ## tests of memory, of interruptions, and of models that learn in every check
	$(PY) -m pytest -m slow tests $(PYTEST_ARGS)

# Random calls of estimators in processes of their own: no crash, no hang, no silent NaN, no error that names nothing.
MINUTES ?= 30
fuzz: .venv/.stamp-test ## random scenarios for MINUTES=30
	$(PY) tests/fuzz/driver.py --minutes $(MINUTES) --certificates 1000

docs: .venv/.stamp-docs .venv/.stamp-test ## build the documentation into docs/_build/html, and run the code on its pages
	$(PY) -m sphinx -W --keep-going -j auto -b html $(SPHINXOPTS) docs docs/_build/html
	$(RUN_TESTS) -m pages tests/test_docs_examples.py
	@echo "open docs/_build/html/index.html"

lint: .venv/.stamp-lint ## style, formatting and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m basedpyright

format: .venv/.stamp-lint ## let ruff repair what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

# What they print goes into a file, too: `python benchmarks/compare.py old.json new.json` tells two states apart.
BENCH_OUT ?= benchmarks/latest.json
BENCH_ARGS ?=
bench: .venv/.stamp-bench ## benchmarks; GRAMIAN_DATA=folder adds those that read data
	$(PY) benchmarks/run.py --out $(BENCH_OUT) $(BENCH_ARGS)
	@echo "Results: $(BENCH_OUT) and benchmarks/RESULTS.md"

clean: ## remove what was built; keep .venv
	rm -rf build dist docs/_build docs/api/generated docs/gallery htmlcov .coverage
	rm -rf .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks examples docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean ## clean, and remove .venv
	rm -rf .venv

# One stamp per extra, out of date when pyproject.toml changes. Python compiles a module when it is first imported;
# to let pip compile all of them takes as long as the rest of an installation.
.venv/.stamp-%: pyproject.toml | .venv/bin/python
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade
	$(PY) -m pip install --quiet --no-compile --editable '.[$*]'
	@touch $@

# The first interpreter that is new enough and can make an environment. Names are tried, not trusted:
# a shim may exist for a version that is not active.
.venv/bin/python:
	@if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; \
	else set -- python3 python3.13 python3.14 python3.12 python3.11 python; fi; \
	chosen=; old=; bare=; \
	for candidate do \
	  version=`"$$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null` || continue; \
	  if ! "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    old="$$old $$candidate=$$version"; \
	  elif ! "$$candidate" -c 'import ensurepip, venv' 2>/dev/null; then \
	    bare="$${bare:-$$version}"; \
	  else chosen="$$candidate"; break; fi; \
	done; \
	if [ -n "$$chosen" ]; then \
	  echo "Making .venv with $$chosen ($$version)"; \
	  "$$chosen" -m venv --clear .venv || { rm -rf .venv; exit 1; }; \
	elif [ -n "$$bare" ]; then \
	  echo "Python $$bare is here, but it cannot make virtual environments (no ensurepip)." >&2; \
	  echo "On Debian and Ubuntu:  sudo apt install python3-venv   (or python$$bare-venv)" >&2; \
	  exit 1; \
	else \
	  echo "gramian needs Python 3.11 or newer; found:$${old:- none}." >&2; \
	  echo "Install one (Debian, Ubuntu: sudo apt install python3 python3-venv; macOS: brew install python)" >&2; \
	  echo "or name one:  make PYTHON=/path/to/python3.12 ..." >&2; \
	  exit 1; \
	fi
