# `make` lists the targets. Needs python3 (3.11 or newer, with venv and pip), make and git.

PYTHON ?= python3
NICE ?= nice -n 5
# Many tests wait for programs and pages. Quick ones do not, and each worker must collect all tests.
WORKERS ?= 3
QUICK_WORKERS ?= 2
ENV ?= dot

bin := .venv/bin
pip_install := $(bin)/python -m pip install --quiet --quiet --disable-pip-version-check
pytest := $(NICE) $(bin)/python -m pytest
# Tests start hundreds of interpreters, and pytest rewrites each test module: compile them once.
export PYTHONDONTWRITEBYTECODE :=
# One worker for each file: runs that its tests share are made once. conftest.py orders the files.
by_file := --dist loadfile --no-loadscope-reorder
# Compilation takes most of the time of the quick tests. It takes a third less without optimisation,
# of what is left a third less without fusion emitters, and then a fifth less as one part. But
# programs run slower then: the slow tests, which learn for minutes, are optimised.
compile_quickly := XLA_FLAGS="--xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1"
compile := $(bin)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--fork-strategy fewest --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	--no-emit-package runshelf
projects := packages/runshelf/pyproject.toml packages/backflip/pyproject.toml

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo teach test check fast lint format docs test-slow attack battery coverage bench lock clean chromium graphics

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/base.stamp ## set everything up, then teach a dot to find the centre from comparisons of clips
	$(bin)/backflip teach dot --teacher oracle --labels 100 --seeds 4

teach: .venv/base.stamp ## set everything up, then open the page on which you teach ENV (default: dot)
	$(bin)/backflip teach $(ENV) --teacher human

test: .venv/dev.stamp chromium graphics ## set everything up, then run every test but the slow ones
	$(compile_quickly) $(pytest) -n $(WORKERS) $(by_file) -m "not slow" --durations=12

check: .venv/dev.stamp ## format, lint, types, import contracts, fast tests: between two edits
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target lint fast

fast: .venv/dev.stamp ## the fast tests alone
	$(compile_quickly) $(pytest) -n $(QUICK_WORKERS) -m "not slow and not medium"

lint: .venv/dev.stamp ## format, lint, types, import contracts
	$(bin)/ruff format --check .
	$(bin)/ruff check .
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(NICE) $(bin)/pyright
	$(bin)/lint-imports

format: .venv/dev.stamp ## format the code and apply the linter's fixes
	$(bin)/ruff format .
	$(bin)/ruff check --fix .

docs: .venv/dev.stamp ## build the documentation into .cache/site; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(NICE) $(bin)/python -m mkdocs build --strict --quiet

test-slow: .venv/dev.stamp chromium graphics ## run the slow tests: minutes of learning, kill -9, many seeds
	$(pytest) -n $(WORKERS) $(by_file) -m slow --durations=12

attack: .venv/dev.stamp chromium ## try every attack of docs/security.md, and say how many were tried
	$(pytest) -n $(WORKERS) -m attack --durations=12

battery: .venv/dev.stamp ## measure the figures of README and docs again, cheap ones first: BATTERY="--rows 'ppo-*' --budget 10m"
	$(NICE) $(bin)/backflip battery docs/scores $(BATTERY)

coverage: .venv/dev.stamp chromium graphics ## run every test but the slow ones, then list the branches that no test took
	$(compile_quickly) $(NICE) $(bin)/coverage run -m pytest -m "not slow"
	$(bin)/coverage report

bench: .venv/dev.stamp chromium ## compare with other libraries, side by side (benchmarks/README.md)
	$(PYTHON) benchmarks/peers/install.py sb3
	$(PYTHON) benchmarks/peers/install.py sbx
	$(PYTHON) benchmarks/peers/install.py rejax
	$(PYTHON) benchmarks/peers/install.py torch
	$(bin)/python benchmarks/classic.py
	$(bin)/python benchmarks/continuous.py
	$(bin)/python benchmarks/mujoco_tasks.py
	$(bin)/python benchmarks/minatar.py
	$(bin)/python benchmarks/pong.py
	$(bin)/python benchmarks/growth.py
	$(bin)/python benchmarks/gpu.py
	$(bin)/python benchmarks/pixel_network.py
	$(bin)/python benchmarks/labelling_page.py
	$(bin)/python benchmarks/scripted_person.py
	$(bin)/python benchmarks/pace.py
	$(bin)/python benchmarks/log.py

lock: .venv/dev.stamp ## resolve requirements/*.txt from the pyproject.toml files
	$(compile) --upgrade --extra atari --extra dm_control --extra mujoco --extra optuna --extra ray --extra slurm --group build --group dev --output-file requirements/dev.txt $(projects)
	$(compile) --upgrade --group build --constraint requirements/dev.txt --output-file requirements/base.txt $(projects)

clean: ## remove the environment and the caches; runs/ stays
	rm -rf .venv .cache .hypothesis .import_linter_cache .pytest_cache .ruff_cache

.venv/python.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo 'error: backflip needs Python 3.11 or newer, but "$(PYTHON)" is '"$$($(PYTHON) --version 2>&1 | tail -n 1)"'; name another: make PYTHON=python3.11 ...' >&2; exit 1; }
	$(PYTHON) -m venv .venv
	@touch $@

# dev.txt pins a superset of base.txt at the same versions, so either may come first.
.venv/base.stamp: .venv/python.stamp requirements/base.txt $(projects)
	@echo 'installing what backflip needs into .venv (about a minute) ...'
	$(pip_install) --no-compile --require-hashes -r requirements/base.txt  # compiled when imported
	$(pip_install) --no-deps --no-build-isolation --editable packages/runshelf --editable packages/backflip
	@touch $@

.venv/dev.stamp: .venv/base.stamp requirements/dev.txt
	@echo 'installing the tools the tests need into .venv ...'
	$(pip_install) --no-compile --require-hashes -r requirements/dev.txt
	@touch $@

# System packages that tests need. Where they cannot be installed, the tests fail and name them.
apt_get := DEBIAN_FRONTEND=noninteractive apt-get
may_install := [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null

chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	command -v google-chrome >/dev/null || \
	if $(may_install); then \
		echo 'installing Chromium, in which the tests use the labelling page ...'; \
		$(apt_get) update -q -q && $(apt_get) install -q -q -y chromium >/dev/null; \
	else \
		echo 'missing, and needed by the tests of the labelling page: apt-get install chromium' >&2; \
	fi

graphics:
	@.venv/bin/python -c 'from ctypes.util import find_library as f; import sys; \
	sys.exit(sys.platform == "linux" and not (f("EGL") and f("GL") or f("OSMesa")))' || \
	if $(may_install); then \
		echo 'installing EGL, with which the tests draw MuJoCo environments ...'; \
		$(apt_get) update -q -q && $(apt_get) install -q -q -y libegl1 libgl1 >/dev/null; \
	else \
		echo 'missing, and needed by the tests of pictures: apt-get install libegl1 libgl1' >&2; \
	fi
