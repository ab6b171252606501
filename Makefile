# Everything a fresh machine with Python >= 3.11 and a Rust toolchain needs is set up by the targets themselves.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
FEATURES := s3,azure,gcs,http
RUST := $(shell find src -name '*.rs' 2>/dev/null) Cargo.toml Cargo.lock
SOURCES := python tests benches dev examples
CACHE ?= .bench

.DEFAULT_GOAL := check
.PHONY: help demo test check fast bench stages crash fuzz miri wheel build rust-test python-test clean

help: ## Show these lines
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.built ## Set up, build, open real tables and one of a million files
	$(PY) dev/demo.py --cache $(CACHE)

test: rust-test python-test ## Set up, build, run all Rust and Python tests

rust-test: $(VENV)/.made
	cargo test --release --features $(FEATURES)

# Killed writers keep all cores busy: beside them others would run out of their time.
python-test: $(VENV)/.test $(VENV)/.built
	$(PY) -m pytest -n 2 --dist worksteal --durations 40 --ignore tests/crash
	$(PY) -m pytest -n 2 --dist worksteal tests/crash

check: $(VENV)/.dev $(VENV)/.built ## Formats, layers, lints, types, stubs and the fast tests
	cargo fmt --check
	$(PY) dev/check_layers.py --self-test
	$(PY) dev/check_layers.py src
	$(VENV)/bin/ruff format --check $(wildcard $(SOURCES))
	$(VENV)/bin/ruff check $(wildcard $(SOURCES))
	$(VENV)/bin/pyright
	cargo clippy --release --all-targets --features $(FEATURES),python -- -D warnings
	$(PY) -m mypy.stubtest deltafast._core --allowlist dev/stubtest.txt
	$(MAKE) fast

fast: $(VENV)/.test $(VENV)/.built
	$(PY) -m pytest -n 2 --dist worksteal -q -m "not slow and not spark" tests/python

bench: $(VENV)/.bench $(VENV)/.built ## Compare with deltalake, Polars and DuckDB; writes docs/benchmarks.md
	cargo build --release --features $(FEATURES) --example floors
	$(PY) benches/python/run.py --cache $(CACHE)

stages: ## Time each stage of reading TABLE=path, nanoseconds an action
	cargo run --release --quiet --features $(FEATURES) --example stages -- $(TABLE)

MINUTES ?= 60
crash: $(VENV)/.test $(VENV)/.built ## Kill writers for MINUTES (60) and check every version; SEED=n for a certain run
	$(PY) -m tests.crash --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fuzz: ## Run each fuzz target for a minute, starting from the kept corpus
	dev/fuzz 60

# Code with `unsafe` in it. Miri runs no C (Zstandard, and with it most files) and takes minutes for what takes milliseconds
# otherwise, so these modules' own tests are made smaller for it; what calls into a store, a thread pool or Python is left out.
MIRI := pq::snappy pq::flat pq::plain pq::unpack pq::hybrid parse::views
miri: ## Run the tests of modules with unsafe code in Miri, with and without AVX2; takes minutes
	rustup component add --toolchain nightly miri rust-src
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --target-dir target/miri --lib -- $(MIRI)
	MIRIFLAGS=-Zmiri-disable-isolation RUSTFLAGS=-Ctarget-feature=+avx2 \
		cargo +nightly miri test --target-dir target/miri-avx2 --lib -- pq::unpack pq::hybrid

wheel: $(VENV)/.wheel ## Build the wheel that is published, try it where there is nothing else, state its size
	rm -rf dist
	PATH="$(abspath $(VENV))/bin:$$PATH" maturin build --profile wheel --zig --compatibility manylinux_2_28 --out dist
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./compat
	$(PYTHON) -m venv dist/.venv
	dist/.venv/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/deltafast-*.whl)[pandas]"
	cd dist && .venv/bin/python ../dev/demo.py --cache $(abspath $(CACHE)) --files 0
	@ls -l dist/deltafast-*.whl | awk '{printf "%s %.1f MB\n", $$NF, $$5 / 1e6}'

build: $(VENV)/.built

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@command -v cargo > /dev/null || { echo "cargo is needed: see https://rustup.rs" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade "pip>=25.1" "maturin>=1.9,<2"
	touch $@

# The build also installs what the package depends on.
$(VENV)/.built: $(VENV)/.made $(RUST) pyproject.toml
	@echo "Building the core; from nothing that takes a few minutes."
	VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --release --extras pandas,polars > $(VENV)/build.log || \
		{ cat $(VENV)/build.log; exit 1; }
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	dev/java
	dev/npm
	dev/strace
	$(PIP) --group test --group spark
	rm -rf $(VENV)/spark-4.3
	$(PIP) --target $(VENV)/spark-4.3 --group spark43
	touch $@

$(VENV)/.dev: $(VENV)/.test pyproject.toml
	$(PIP) --group checks
	touch $@

$(VENV)/.bench: $(VENV)/.made pyproject.toml
	dev/java
	$(PIP) --group bench --group spark
	touch $@

$(VENV)/.wheel: $(VENV)/.made pyproject.toml
	$(PIP) --group wheel
	touch $@

clean: ## Remove the environment and everything built or generated
	rm -rf $(VENV) dist target $(CACHE)
