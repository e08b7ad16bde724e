# Each target sets itself up in .venv first; when nothing has changed, that costs nothing.
# Only relative paths and `python -m`, so that a folder with spaces, or one that was moved, works.
# Written for GNU Make 3.81, the one that macOS ships.

SHELL := /bin/sh
PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check
# One more than there are cores, but no more than four: the worker of the browser tests waits half of its time. On two
# cores, four take 5:18 where three take 5:05, as each imports and collects all for 10 s.
TEST_WORKERS ?= $(shell expr 1 + $$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1))
PYTEST_ARGS ?=
# The interpreter of `make test-newest`.
NEWEST ?= python3.13
FAST_TESTS := tests/test_imports.py tests/dpcore/test_contributions.py $(addprefix tests/dpcore/,answer common data quantile total)
# How many times the examples of `make test` a search takes.
SEARCH_TIMES ?= 20
# Bytecode is kept, whatever the caller's environment says: else each worker rewrites every test anew, and each server and
# program that a test starts compiles the whole project (7 s of processor time a worker, of 12 until its first test).
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help app test test-fast test-oldest test-newest test-long test-search test-features test-engines test-libraries lint format bench docs docs-pictures constraints package test-package paper-figures paper-runs plotly clean

# An interpreter that no longer starts (an upgraded or removed Python) makes the stamps worthless.
ifneq ($(wildcard .venv),)
ignored := $(shell $(PY) -c '' >/dev/null 2>&1 || rm -f .venv/.stamp-app .venv/.stamp-dev)
endif

help:
	@echo "make app      start the app and open it in the browser (SWEETSPOT_NO_BROWSER=1: only print its address)"
	@echo "make test     run the tests, those in a real browser included, but for long ones (PYTEST_ARGS='-k mean' for some)"
	@echo "make test-fast run the tests of pure functions (under a minute)"
	@echo "make test-oldest run them with the oldest versions that the requirements allow, installed first (1.3 GB)"
	@echo "make test-newest run them with another Python, NEWEST=python3.13, and the newest versions (1.3 GB)"
	@echo "make test-long run the long tests, which make test leaves out (20 minutes on two quiet cores)"
	@echo "make test-search  search for new counter-examples for an hour or so (SEARCH_TIMES=20 times as many examples as make test)"
	@echo "make test-features  run the numeric tests as on a processor with fewer features"
	@echo "make test-engines  test counting on PostgreSQL and Spark, installed first where they are missing (1 GB)"
	@echo "make test-libraries  run the programs for PipelineDP, Tumult, Opacus and JAX Privacy with these libraries, installed first (8 GB)"
	@echo "make package  build the wheel in dist"
	@echo "make test-package  build it, install it in an empty environment, and try import, command and app there"
	@echo "make lint     check formatting, style and types"
	@echo "make format   format the code and repair what can be repaired automatically"
	@echo "make bench    run every benchmark (SWEETSPOT_BENCH_DATA=folder adds tables of your own)"
	@echo "make docs     build the documentation as a site in docs/site, with search and the calls"
	@echo "make docs-pictures  make the pictures of the documentation and its notebook anew"
	@echo "make paper-figures  compute the papers' figures anew that come with the app (a quarter of an hour, in steps: interrupt it and call it again; DATA=folder: on the papers' own data)"
	@echo "make paper-runs DATA=folder  train the network of Huang et al. 2023 on MNIST (90 minutes on two cores; goes on where it was stopped)"
	@echo "make plotly   make plotly.js anew, with the kinds of traces that our figures have (needs npm)"
	@echo "make constraints write constraints.txt: the versions in .venv, with their licences"
	@echo "make clean    remove .venv and everything that was generated"

app: .venv/.stamp-app
	@$(PY) -m dpcore

# pyproject.toml leaves long tests to `make test-long`. Without a browser all other tests run; then it is said, and this
# ends with 3, which make itself reports as an error.
test: .venv/.stamp-dev
	@if $(PY) tests/browser/browser.py; then \
	  $(PY) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadgroup $(PYTEST_ARGS); \
	else \
	  $(PY) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadgroup $(PYTEST_ARGS) -m "not browser and not long" || exit $$?; \
	  echo "All other tests passed. The tests in a real browser did not run, as there is no Chromium or Chrome." >&2; \
	  exit 3; \
	fi

# Those of numbers, words, data and imports, which take no server, no program and no long computation.
test-fast: .venv/.stamp-dev
	@$(PY) -m pytest -n 2 -q -m "not browser and not slow and not long" $(PYTEST_ARGS) $(FAST_TESTS)

test-oldest: .venv/.stamp-oldest
	@.venv/oldest/bin/python -m pytest -n 2 -q -m "not browser and not slow and not long" $(PYTEST_ARGS) $(FAST_TESTS)

test-newest: .venv/.stamp-newest
	@.venv/newest/bin/python -m pytest -n 2 -q -m "not browser and not slow and not long" $(PYTEST_ARGS) $(FAST_TESTS)

# All that `make test` leaves out. pytest's 5 says that PYTEST_ARGS chose none.
test-long: .venv/.stamp-dev
	@$(PY) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadgroup $(PYTEST_ARGS) -m long || [ $$? -eq 5 ]

# Tests by examples alone, long ones included.
test-search: .venv/.stamp-dev
	@SWEETSPOT_SEARCH=$(SEARCH_TIMES) $(PY) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --dist loadgroup $(PYTEST_ARGS) -m hypothesis tests/dpcore || [ $$? -eq 5 ]

test-features: .venv/.stamp-dev
	@NPY_DISABLE_CPU_FEATURES="$$($(PY) -c 'from numpy._core._multiarray_umath import __cpu_dispatch__ as d, __cpu_features__ as f; print(*(k for k in d if f[k]))')" OPENBLAS_CORETYPE=Nehalem GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-FMA,-AVX512F $(PY) -m pytest -n $(TEST_WORKERS) --maxprocesses 4 --ignore-glob='*counting*' --ignore-glob='*upload*' $(PYTEST_ARGS) tests/dpcore tests/paper_numbers

test-engines: .venv/.stamp-engines
	@.venv/engines/bin/python .make/engines.py $(PYTEST_ARGS)

test-libraries: .venv/.stamp-pipelinedp .venv/.stamp-tumult .venv/.stamp-opacus .venv/.stamp-jaxprivacy
	@$(PY) .make/libraries.py $(PYTEST_ARGS)

paper-figures: .venv/.stamp-app
	@$(PY) -m benchmarks.papers $(if $(DATA),--data "$(DATA)") $(FIGURES)

paper-runs: .venv/.stamp-app
	@$(PY) -m benchmarks.papers.owner_runs --data "$(DATA)"

plotly: .venv/.stamp-app
	@$(PY) .make/plotly_js.py

constraints: .venv/.stamp-dev
	@$(PY) .make/constraints.py

package: .venv/.stamp-app
	@rm -rf dist && $(PY) -m pip wheel -qq --disable-pip-version-check --no-deps --wheel-dir dist . && ls dist/*

test-package: .venv/.stamp-app
	@$(PY) .make/try_package.py

lint: .venv/.stamp-dev
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy

format: .venv/.stamp-dev
	@$(PY) -m ruff check --fix --exit-zero --quiet .
	@$(PY) -m ruff format .

bench: .venv/.stamp-dev
	@failed=""; \
	for script in benchmarks/*.py; do \
	  case "$$script" in */_*|*/\*.py) continue;; esac; \
	  echo; echo "== $$script"; \
	  PYTHONPATH=. $(PY) "$$script" || failed="$$failed $$script"; \
	done; \
	if [ -n "$$failed" ]; then echo; echo "Failed:$$failed"; exit 1; fi

# Without the sources, which would double its 33 MB.
docs: .venv/.stamp-dev
	@$(PY) -m sphinx -q -W --keep-going -c docs . docs/site
	@echo "Wrote docs/site/README.html"

docs-pictures: .venv/.stamp-dev
	@$(PY) docs/pictures.py
	@$(PY) docs/notebook.py

clean:
	@rm -rf .venv dist docs/site spark-warehouse .paper-figures .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Makes .venv unless there is a working one. A half-made one is thrown away.
define make_venv
"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || { \
  echo "Sweet Spot needs Python 3.11 or newer, and '$(PYTHON)' is not that; name one, for example: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; \
  exit 1; }; \
$(PY) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || { \
  rm -rf .venv && "$(PYTHON)" -m venv .venv; }
endef

# The stamps are touched last: an interrupted set-up starts again.
.venv/.stamp-app: requirements-core.txt requirements.txt constraints.txt
	@echo "Setting up .venv for the app (about a minute, once) ..."
	@$(make_venv)
	@$(PIP) -r requirements.txt -c constraints.txt
	@touch $@

.venv/.stamp-dev: requirements-core.txt requirements.txt requirements-dev.txt
	@echo "Setting up .venv for development (about two minutes, once) ..."
	@$(make_venv)
	@$(PIP) -r requirements-dev.txt
	@touch .venv/.stamp-app $@

# An environment of its own inside .venv: Spark pins versions that the app does not want.
.venv/.stamp-engines: tests/engines/requirements.txt
	@echo "Setting up .venv/engines (about two minutes and 1 GB, once) ..."
	@$(make_venv)
	@rm -rf .venv/engines && $(PY) -m venv .venv/engines
	@.venv/engines/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@

# The lower end of every range of the app as a constraint; what its libraries bring has the newest version that they take.
.venv/.stamp-oldest: requirements-core.txt requirements.txt
	@echo "Setting up .venv/oldest (about two minutes and 1.3 GB, once) ..."
	@$(make_venv)
	@rm -rf .venv/oldest && $(PY) -m venv .venv/oldest
	@sed -n 's/^\([a-z0-9-]*\)[^>]*>=\([0-9.]*\).*/\1==\2/p' requirements-core.txt requirements.txt > .venv/oldest/constraints.txt
	@.venv/oldest/bin/python -m pip install -qq --disable-pip-version-check -c .venv/oldest/constraints.txt -r requirements.txt pytest pytest-xdist hypothesis polars==1.36.1
	@touch $@

.venv/.stamp-newest: requirements-core.txt requirements.txt
	@echo "Setting up .venv/newest (about two minutes and 1.3 GB, once) ..."
	@rm -rf .venv/newest && $(NEWEST) -m venv .venv/newest
	@.venv/newest/bin/python -m pip install -qq --disable-pip-version-check -r requirements.txt pytest pytest-xdist hypothesis polars==1.36.1
	@touch $@

# Likewise for each library whose programs are run: Tumult pins an old pandas and Spark.
.venv/.stamp-pipelinedp .venv/.stamp-tumult .venv/.stamp-opacus .venv/.stamp-jaxprivacy: .venv/.stamp-%: tests/libraries/%.txt
	@echo "Setting up .venv/$* (a minute or two, once) ..."
	@$(make_venv)
	@rm -rf .venv/$* && $(PY) -m venv .venv/$*
	@.venv/$*/bin/python -m pip install -qq --disable-pip-version-check -r $<
	@touch $@
