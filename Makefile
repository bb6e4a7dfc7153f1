# The front door. Every target first lets tools/setup install what is missing, then builds.
#   make help     what there is
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

JOBS ?= $(shell tools/jobs)
PEERS ?=
PYTHONS ?= python3
CTEST ?=
FUZZ_SECONDS ?= 60

CONFIGURE = cmake --preset $(1) $(if $(shell command -v ccache),-DCMAKE_CXX_COMPILER_LAUNCHER=ccache) >/dev/null

FAST = ISOMER_TEST_QUICK=1 ctest --test-dir $(1) --output-on-failure --no-tests=error -j$(JOBS) -L fast

PYTHON = $(CURDIR)/build/python-env/bin/python
# Makes the environment of the package and has the build know it.
WITH_PYTHON = tools/setup python && tools/python-env build/python-env && \
  { grep -qs '^ISOMER_PYTHON:BOOL=ON' build/CMakeCache.txt || cmake build -DISOMER_PYTHON=ON -DPython_EXECUTABLE=$(PYTHON) >/dev/null; }

# PyTorch is 5 GB: its environment is kept outside of the build folder.
TORCH_ENV ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/isomer/torch-env
TORCH_PACKAGES = torch fla-core transformers matplotlib mypy pandas ml_dtypes jax

NODE_MODULES = test web/node_modules/.package-lock.json -nt web/package-lock.json || npm --prefix web ci --ignore-scripts --silent

.PHONY: help build demo wheel test test-torch test-fast test-web sanitize clang web figures bench bench-models bench-python bench-train lint format fuzz clean

help:
	@echo "make build    the program build/isomer and the library"
	@echo "make demo     build, then the quick study: what the sources claim, measured here, with verdicts: some five minutes"
	@echo "make wheel    the Python package as a manylinux wheel in build/wheel, PYTHONS='python3.10 python3.12' for several; pip install . installs it from here"
	@echo "make test     build, all tests, on every instruction set and under the sanitizers; CTEST='-LE sanitize' passes options to ctest"
	@echo "make test-torch the Python package on tensors of PyTorch; installs it (5 GB) once, in $(TORCH_ENV)"
	@echo "make test-fast the tests of every folder on fewer sizes and one instruction set, for the edit loop"
	@echo "make test-web report and explorer in Chromium: figures, numbers, themes, accessibility; and that the kept page is the one of web/"
	@echo "make web      build web/ into web/page.html, which is compiled into the program"
	@echo "make figures  write docs/figures from study/results and from the mixers"
	@echo "make sanitize every test under the sanitizers (make test runs those of kernels, laws and ops), the fuzzers, and make clang"
	@echo "make clang    library, program and tests by Clang, and test-fast with them"
	@echo "make bench    time every law and pre-trained models beside their peers; PEERS=all adds PyTorch (5 GB)"
	@echo "make bench-models  the pre-trained models alone; BENCH='--quick --threads 2'"
	@echo "make bench-python  what a call from Python costs, isomer.torch beside PyTorch, models of transformers before and after; BENCH='--parts laws'"
	@echo "make bench-train  train the same models in Isomer and in PyTorch (5 GB), and make tokens with them"
	@echo "make lint     format, clang-tidy, size budget; make format rewrites the files"
	@echo "make fuzz     libFuzzer on the file readers, FUZZ_SECONDS=$(FUZZ_SECONDS) each"
	@echo "make clean    remove every build folder"

build:
	@tools/setup build
	@test -e build/build.ninja || $(call CONFIGURE,release)
	@ninja -C build -j$(JOBS) program

demo: build
	@tools/demo

wheel:
	@tools/setup python
	@tools/wheel $(PYTHONS)
	@ls build/wheel

test:
	@tools/setup test
	@test -e build/build.ninja || $(call CONFIGURE,release)
	@$(WITH_PYTHON)
	@ninja -C build -j$(JOBS)
	@ctest --test-dir build --output-on-failure --no-tests=error -j$(JOBS) $(CTEST)

test-torch:
	@tools/setup python
	@test -e build/build.ninja || $(call CONFIGURE,release)
	@tools/python-env $(TORCH_ENV) $(TORCH_PACKAGES)
	@$(WITH_PYTHON)
	@ninja -C build -j$(JOBS) isomer_python isomer_stubs program
	@for tests in tests_torch tests_transformers; do \
	  PYTHONPATH=build/python $(TORCH_ENV)/bin/python -m pytest -q -p no:cacheprovider python/$$tests || exit 1; done

test-fast:
	@tools/setup test
	@test -e build/build.ninja || $(call CONFIGURE,release)
	@ninja -C build -j$(JOBS) tests
	@$(call FAST,build)

test-web: build
	@tools/setup web
	@$(NODE_MODULES)
	@npm --prefix web run --silent check
	@npm --prefix web test --silent

web:
	@tools/setup web
	@$(NODE_MODULES)
	@npm --prefix web run --silent build

figures: build
	@tools/setup web
	@$(NODE_MODULES)
	@npm --prefix web run --silent figures

sanitize:
	@tools/setup fuzz
	@$(call CONFIGURE,release) -DISOMER_SANITIZE_ALL=ON
	@ninja -C build -j$(JOBS)
	@ctest --test-dir build --output-on-failure --no-tests=error -j$(JOBS) -L sanitize
	@$(MAKE) --no-print-directory clang

clang:
	@tools/setup clang
	@test -e build-clang/build.ninja || $(call CONFIGURE,clang)
	@ninja -C build-clang -j$(JOBS) program tests
	@$(call FAST,build-clang)

bench: build
	@tools/setup bench
	PEERS=$(PEERS) bench/setup
	PEERS=$(PEERS) build/bench-venv/bin/python bench/run.py
	PEERS=$(PEERS) bench/models
	@if [ "$(PEERS)" = all ]; then $(MAKE) --no-print-directory bench-python; fi

bench-models: build
	@tools/setup bench
	PEERS=$(PEERS) bench/models $(BENCH)

bench-train: build
	@tools/setup bench
	bench/train

bench-python:
	@tools/setup python
	@test -e build/build.ninja || $(call CONFIGURE,release)
	@tools/python-env $(TORCH_ENV) $(TORCH_PACKAGES)
	@$(WITH_PYTHON)
	@ninja -C build -j$(JOBS) isomer_python
	@PYTHONPATH=build/python $(TORCH_ENV)/bin/python bench/python.py $(BENCH)

lint:
	@tools/setup lint
	@tools/lint $(JOBS)

format:
	@tools/setup lint
	@git ls-files '*.h' '*.cc' | xargs -r clang-format -i

fuzz: build
	@tools/setup fuzz
	@test -e build-fuzz/build.ninja || $(call CONFIGURE,fuzz)
	@ninja -C build-fuzz -j$(JOBS)
	@tools/fuzz build-fuzz $(FUZZ_SECONDS)

clean:
	rm -rf build build-*
