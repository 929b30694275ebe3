# make bench | test | wheel | wheel-aarch64 | lint | docs | asv | asv-pages | clean. Everything is installed
# into .venv, nothing elsewhere. SETUP_ARGS are options of Meson, such as -Dcuda=disabled; NUMPY are the
# versions that wheels are tested with, such as '2.0.* 2.2.*', PYTEST_ARGS the tests, such as tests/test_calls.py;
# ASV_ARGS are options of `asv run`, such as '-b Linalg'.
PYTHON ?= python3
PYTEST_ARGS ?=
SETUP_ARGS ?=
ASV_ARGS ?=
# By this name asv keeps results, and draws a line of its own for each.
MACHINE ?= $(shell uname -n)

venv := $(CURDIR)/.venv
build := $(CURDIR)/build
# Meson finds numpy-config and ninja, and pytest the tools it starts, by PATH.
in_venv := PATH="$(venv)/bin:$$PATH"
pip := $(in_venv) pip --disable-pip-version-check install --quiet
# By the tools of .venv: those of a folder of its own, with another NumPy's path, are no hit of ccache.
install := $(pip) --no-build-isolation $(SETUP_ARGS:%=-Csetup-args=%)
for_wheel := SETUP_ARGS='$(SETUP_ARGS)' PYTEST_ARGS='$(PYTEST_ARGS)'
numpys := $(foreach numpy,$(NUMPY),'$(numpy)')
sphinx := $(venv)/bin/python -m sphinx --quiet --fail-on-warning --keep-going -d "$(build)-docs/doctrees"
c_files := $(wildcard src/*/*.[ch] src/*/*/*.[ch] src/*/*/*.cu src/*/_template/src/*/*.c tests/*/*.[ch])
c_files += $(wildcard $(addprefix examples/tutorial/*/*.,c h cpp cu cuh))

.PHONY: bench test wheel wheel-aarch64 lint docs asv asv-pages clean system install-test install-bench install-docs
.DELETE_ON_ERROR:

bench: install-bench
	$(venv)/bin/python -m numc_ufuncs bench

test: install-test
	$(in_venv) tools/configure.sh "$(build)" -Dtests=true $(SETUP_ARGS)
	$(in_venv) meson compile -C "$(build)"
	$(in_venv) meson test -C "$(build)" --print-errorlogs
	$(in_venv) pytest $(PYTEST_ARGS)

wheel: system
	$(for_wheel) tools/wheel.sh "$(PYTHON)" $(numpys)

wheel-aarch64: system
	$(for_wheel) tools/wheel_aarch64.sh $(numpys)

lint: $(venv)/bin/meson
	@tools/check_system.sh "$(PYTHON)" clang-format cppcheck
	$(install) '.[lint,test]'
	clang-format --dry-run -Werror $(c_files)
	$(in_venv) tools/configure.sh "$(build)-lint" -Dextension=false -Dcuda=disabled >/dev/null
	$(venv)/bin/python tools/cppcheck.py "$(build)-lint"
	$(venv)/bin/ruff check .
	$(venv)/bin/ruff format --check .
	$(venv)/bin/mypy
	$(venv)/bin/pyright --pythonpath "$(venv)/bin/python"
	$(venv)/bin/python tools/check_types.py
	$(venv)/bin/python tools/check_structure.py

# Without a warning: links within the pages and names are checked. LINKS=1 checks all others, which
# needs a network.
docs: install-docs
	$(sphinx) -b html docs "$(build)-docs/html"
	$(sphinx) -b doctest docs "$(build)-docs/doctest"
	$(if $(LINKS),$(sphinx) -b linkcheck docs "$(build)-docs/linkcheck")

# Each benchmark once: that they run is seen, and nothing is kept.
asv_run := --quick
asv: install-bench
	cd benchmarks && $(in_venv) asv machine --yes --machine "$(MACHINE)"
	cd benchmarks && $(in_venv) asv check --python=same
	cd benchmarks && $(in_venv) asv run $(asv_run) --python=same --machine "$(MACHINE)" --show-stderr $(ASV_ARGS)

# Results are those of the commit that is checked out. `make docs` links to the pages where it finds them.
asv-pages: asv_run := --set-commit-hash HEAD
asv-pages: asv
	cd benchmarks && $(in_venv) asv publish

clean:
	rm -rf .venv .venv-* build build-* dist .asv .hypothesis .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@tools/check_system.sh "$(PYTHON)"

# With what builds the package: see pyproject.toml.
$(venv)/bin/meson: | system
	"$(PYTHON)" -m venv --upgrade-deps "$(venv)"
	$(pip) 'meson-python>=0.16' 'meson>=1.3' ninja 'numpy>=2.0'

install-test: system $(venv)/bin/meson
	@tools/check_system.sh "$(PYTHON)" g++
	$(install) -Csetup-args=-Dtests=true '.[test]'

install-bench: system $(venv)/bin/meson
	$(install) '.[bench,plot]'

install-docs: system $(venv)/bin/meson
	$(install) '.[docs]'
