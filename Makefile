# Two commands do all the set-up: `make demo` and `make test`.

LABRIG  := target/release/labrig
RUNS    ?= runs
NEXTEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo yes)

.PHONY: demo test packages build docs lint bench clean

# One file to a lab, a workload, an archive, and the same again.
demo: build
	scripts/demo $(LABRIG) $(RUNS)

# The whole suite, real guests included.
test: packages
ifeq ($(NEXTEST),yes)
	cargo nextest run
else
	cargo test
endif

# Debian packages that labrig builds with and runs on.
packages:
	scripts/install-packages

build: packages
	cargo build --release

# The lists of keys in docs/, from the tables that labrig reads files with.
docs:
	LABRIG_WRITE_DOCS=1 cargo test --test schema documentation

lint:
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings

bench: build
	benches/run $(LABRIG)

clean:
	cargo clean
