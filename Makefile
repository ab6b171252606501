# Everything a fresh machine with Python >= 3.11 and a Rust toolchain needs is set up by the targets themselves.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
INSTALL := $(VENV)/bin/uv pip install --quiet --python $(PY)
FEATURES := s3,azure,gcs,http
JAR := python/deltafast/spark/jars/deltafast-spark.jar
JAVA := $(shell find java/src/main -name '*.java' 2>/dev/null) dev/build_jar.py dev/java_tools.py Cargo.toml
RUST := $(shell find src crates -name '*.rs' 2>/dev/null) Cargo.toml Cargo.lock
SOURCES := python tests benches dev examples
CACHE ?= .bench
# Each share of the proof tier runs once in as many commits; `make test PROOF=2/5` runs a certain one.
PROOF ?= $(shell dev/proof_share)
PYTEST := $(PY) -m pytest -n 2 --dist worksteal
# Where it is set, each of a thousand processes compiles all Python modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Modules in tests/spark import PySpark.
CORE := -m "not spark and not proof" --ignore tests/spark

.DEFAULT_GOAL := check
.PHONY: help demo test test-core test-full check fast bench site stages crash round-trips fuzz miri wheel build build-jar release compiled installed rust-test clean

help: ## Show these lines
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

demo: $(VENV)/.built ## Set up, build, open real tables and one of a million files
	$(PY) dev/demo.py --cache $(CACHE)

test: $(VENV)/.made ## Set up, build, run the tiers core and spark, and a share of the tier proof
	PROOF=$(PROOF) $(MAKE) -j 2 compiled installed
	$(PYTEST) --proof $(PROOF) tests/crash
	$(PYTEST) --durations 40 --proof $(PROOF) --ignore tests/crash

test-core: $(VENV)/.made ## Set up, build, run all tests that need no Java
	$(MAKE) -j 2 $(VENV)/.built $(VENV)/.core
	$(MAKE) rust-test
	$(PYTEST) $(CORE)
	@echo "Left out: the tiers spark (needs Java 17) and proof (long); make test runs the first and a share of the second."

test-full: $(VENV)/.made ## Set up, build, run all tests there are; takes up to an hour
	PROOF=all $(MAKE) -j 2 compiled installed
	$(PYTEST) --durations 40 --proof all --ignore tests/crash
	$(PYTEST) --proof all tests/crash

# The compiler leaves processors idle at the beginning of a crate, and packages are installed meanwhile.
compiled: $(VENV)/.built
	$(MAKE) rust-test

installed:
	nice -n 19 $(MAKE) $(VENV)/.test

rust-test: $(VENV)/.made
	cargo test --workspace --features $(FEATURES),testing --lib
	@# Examples need the crate once more; they run with all tests, and with the first share of the tier proof.
	case "$${PROOF:-all}" in all|1/*) cargo test --workspace --features $(FEATURES),testing --doc;; esac

# The limits of circles and names are today's numbers: they only go down.
check: $(VENV)/.dev $(VENV)/.built ## Formats, layers, lints, types, stubs and the fast tests
	cargo fmt --all --check
	$(PY) dev/check_layers.py --self-test
	$(PY) dev/check_layers.py src python/deltafast
	$(PY) dev/import_circles.py --self-test
	$(PY) dev/import_circles.py src --most 0
	$(PY) dev/import_circles.py src --most 0 --folders
	$(PY) dev/import_circles.py python/deltafast --most 0
	$(PY) dev/type_names.py src --most-one-word 0.03 --most-repeated 0
	$(PY) dev/check_words.py --self-test --most 0
	$(PY) dev/check_messages.py
	$(PY) dev/check_tags.py --self-test
	$(PY) dev/check_tags.py
	$(PY) dev/check_parameters.py --self-test
	$(PY) dev/check_parameters.py
	$(PY) dev/make_core_types.py --check
	$(VENV)/bin/ruff format --check $(wildcard $(SOURCES))
	$(VENV)/bin/ruff check $(wildcard $(SOURCES))
	$(VENV)/bin/pyright
	cargo clippy --workspace --all-targets --features $(FEATURES),testing,python -- -D warnings
	$(PY) -m mypy.stubtest deltafast._core --allowlist dev/stubtest.txt
	$(MAKE) fast

fast: $(VENV)/.core $(VENV)/.built
	$(PYTEST) -q -m "not slow and not spark and not proof" tests/python

bench: $(VENV)/.bench $(VENV)/.released ## Compare with deltalake, Polars and DuckDB; writes docs/benchmarks.md
	cargo build --release --features $(FEATURES) --example floors
	$(PY) benches/python/run.py --cache $(CACHE) --publish

site: $(VENV)/.core ## Build the documentation site, into dist/site
	$(VENV)/bin/mkdocs build

stages: ## Time each stage of reading TABLE=path, nanoseconds an action
	cargo run --release --quiet --features $(FEATURES) --example stages -- $(TABLE)

MINUTES ?= 60
crash: $(VENV)/.core $(VENV)/.built ## Kill writers for MINUTES (60) and check every version; SEED=n for a certain run
	$(PY) -m tests.crash --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

round-trips: $(VENV)/.core $(VENV)/.built ## Run all generated histories once, then more until MINUTES (60) are over; SEED=n for certain ones
	$(PY) -m tests.round_trips --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

fuzz: ## Run each fuzz target for a minute, starting from the kept corpus
	dev/fuzz 60

# Code with `unsafe` in it. Miri runs no C (Zstandard, and with it most files) and takes minutes for what takes milliseconds
# otherwise, so these modules' own tests are made smaller for it; what calls into a store, a thread pool or Python is left out.
MIRI := pq::decode::flat_column pq::decode::view_to_offset pq::decode::bit_unpack pq::decode::rle parse::views
miri: ## Run the tests of modules with unsafe code in Miri, with and without AVX2; takes minutes
	rustup component add --toolchain nightly miri rust-src
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --target-dir target/miri --lib -- $(MIRI)
	MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --target-dir target/miri --package deltafast-snappy
	MIRIFLAGS=-Zmiri-disable-isolation RUSTFLAGS=-Ctarget-feature=+avx2 \
		cargo +nightly miri test --target-dir target/miri-avx2 --lib -- pq::decode::bit_unpack pq::decode::rle

# The core tier runs against the installed wheel: nothing of the source tree is on the path but the tests.
wheel: $(VENV)/.wheel $(JAR) ## Build the wheel that is published, test it where there is nothing else, state its size
	rm -rf dist
	PATH="$(abspath $(VENV))/bin:$$PATH" maturin build --profile wheel --zig --compatibility manylinux_2_28 --out dist
	$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./compat/deltalake ./compat/delta-spark
	$(PYTHON) -m venv dist/.venv
	$(VENV)/bin/uv pip install --quiet --python dist/.venv/bin/python "$$(ls dist/deltafast-*.whl)[duckdb,pandas]"
	cd dist && .venv/bin/python ../dev/demo.py --cache $(abspath $(CACHE)) --files 0
	$(VENV)/bin/uv pip install --quiet --python dist/.venv/bin/python --group test
	dev/npm
	dev/strace
	dist/.venv/bin/python -m pytest -n 2 --dist worksteal $(CORE)
	@ls -l dist/deltafast-*.whl | awk '{printf "%s %.1f MB\n", $$NF, $$5 / 1e6}'

build: $(VENV)/.built

build-jar: $(JAR) ## Build the jar that using Spark needs; installs a JDK and PySpark

release: $(VENV)/.released ## Build with the optimisation of the published wheel, all but link-time

$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@command -v cargo > /dev/null || { echo "cargo is needed: see https://rustup.rs" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check "uv>=0.9,<1"
	$(INSTALL) "pip>=25.1" "maturin>=1.9,<2"
	touch $@

# The build also installs the libraries with which the demo and most tests exchange rows. One of the two profiles is
# installed at a time.
$(VENV)/.built: $(VENV)/.made $(RUST) pyproject.toml
	@echo "Building the core for daily work; from nothing that takes a few minutes."
	VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(VENV))/bin:$$PATH" maturin develop --uv --extras duckdb,pandas,polars,pyarrow > $(VENV)/build.log 2>&1 || \
		{ cat $(VENV)/build.log; exit 1; }
	@rm -f $(VENV)/.released; touch $@

$(VENV)/.released: $(VENV)/.made $(RUST) pyproject.toml
	VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(VENV))/bin:$$PATH" maturin develop --uv --release --extras duckdb,pandas,polars,pyarrow > $(VENV)/build.log 2>&1 || \
		{ cat $(VENV)/build.log; exit 1; }
	@rm -f $(VENV)/.built; touch $@

# PySpark's jars are what the Java sources are compiled against.
$(VENV)/.java: $(VENV)/.made pyproject.toml
	dev/java
	$(INSTALL) --group spark
	touch $@

$(JAR): $(VENV)/.java $(JAVA)
	$(PY) dev/build_jar.py

$(VENV)/.core: $(VENV)/.made pyproject.toml
	dev/npm
	dev/strace
	$(INSTALL) --group test
	$(PY) tests/servers.py
	touch $@

$(VENV)/.test: $(VENV)/.core $(VENV)/.java pyproject.toml tests/quick.py | $(JAR)
	rm -rf $(VENV)/spark-4.3
	$(INSTALL) --target $(VENV)/spark-4.3 --group spark43
	$(PY) tests/quick.py $(VENV)/lib/python3*/site-packages/pyspark
	touch $@

$(VENV)/.dev: $(VENV)/.core pyproject.toml
	$(INSTALL) --group checks
	touch $@

$(VENV)/.bench: $(VENV)/.java pyproject.toml | $(JAR)
	$(INSTALL) --group bench
	touch $@

$(VENV)/.wheel: $(VENV)/.made pyproject.toml
	$(INSTALL) --group wheel
	touch $@

clean: ## Remove the environment and everything built or generated
	rm -rf $(VENV) dist target $(CACHE) $(dir $(JAR))
