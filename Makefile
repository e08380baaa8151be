# make demo    a knowledge database built from this project's own decisions, served on this machine
#              (another address: ARGS="--port 8002")
# make test    the tests, on Datasette 0.65 and on 1.0 (ARGS='-k name' is passed to pytest)
# make lint    ruff (lint and format) and mypy
# make bench   measures us beside others, in a few minutes; `make bench-full` with a big database
# make venvs   only the two environments: .venv-stable and .venv-next
# make clean   remove build artefacts and caches; `make distclean` removes the environments too
#
# PYTHON=… chooses the interpreter of new environments: any Python >= 3.10 with venv.

.DEFAULT_GOAL := help
# One thing at a time: both environments build the same tree, and there are two test runs to read.
.NOTPARALLEL:
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# Naming an alpha in the specifier lets pip take a pre-release of Datasette, and of nothing else.
stable := datasette<1.0
next := datasette>=1.0a41
extras-next := ,test-next

# A command of that name may exist and fail (version managers leave such stubs), so each one is run.
usable := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do \
	"$$python" -c '$(usable)' >/dev/null 2>&1 && echo "$$python" && break; done)
endif

ARGS ?=
pip = $(@D)/bin/python -m pip --disable-pip-version-check install --quiet

.PHONY: help demo venvs test test-stable test-next lint bench bench-full clean distclean

help:
	@sed -n 's/^# \(make .*\)/\1/p' $(firstword $(MAKEFILE_LIST))

# Two steps, so that the demo needs not wait for the tools of the tests.
.venv-%/.package: setup.py Makefile
	@[ -n "$(PYTHON)" ] || { echo "No Python >= 3.10 with venv found (Debian: python3-venv); or set PYTHON=…" >&2; exit 1; }
	@$(@D)/bin/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(@D)
	$(pip) "$($*)" -e ".[fuzzy]"
	@touch $@

.venv-%/.extras: .venv-%/.package
	$(pip) "$($*)" -e ".[test,lint$(extras-$*)]"
	@$(pip) "$($*)" -e ".[bench]" || echo "Not all peers can be installed here; make bench goes on without." >&2
	@touch $@

.PRECIOUS: .venv-%/.package .venv-%/.extras

venvs: .venv-stable/.extras .venv-next/.extras

demo: .venv-stable/.package
	.venv-stable/bin/datasette concept-recall demo $(ARGS)

test: test-stable test-next

test-stable test-next: test-%: venvs
	@printf '\n== %s, %s ==\n' "$$(.venv-$*/bin/datasette --version)" "$$(.venv-$*/bin/python --version)"
	.venv-$*/bin/python -m pytest $(ARGS)

lint: .venv-stable/.extras
	.venv-stable/bin/ruff check .
	.venv-stable/bin/ruff format --check .
	.venv-stable/bin/mypy

# Matching and recall are the same on both versions of Datasette; a result is a table and a JSON file.
bench bench-full: full = $(if $(findstring full,$@),--full)
bench bench-full: venvs
	.venv-stable/bin/python -m bench.matching $(full) $(ARGS)
	.venv-stable/bin/python -m bench.near_misses $(full) $(ARGS)
	.venv-stable/bin/python -m bench.recall $(full) $(ARGS)
	.venv-stable/bin/python -m bench.indexing $(full) $(ARGS)
	.venv-stable/bin/python -m bench.semantic $(full) $(ARGS)
	.venv-stable/bin/python -m bench.http $(full) $(ARGS)
	.venv-next/bin/python -m bench.http $(full) $(ARGS)

clean:
	rm -rf build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name '.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv-stable .venv-next
