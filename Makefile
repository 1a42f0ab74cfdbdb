# The commands for people. Each target first sets up what it needs, and does nothing if nothing changed.

VENV     := .venv
BIN      := $(VENV)/bin
DEMO     := scenarios/dolia-scenario-1.toml
DEMO_OUT := results/demo

# A rustup that was installed a moment ago is not in the shell's PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help setup dev demo test test-kernels oldest bench bench-gate lint format docs fidelity schedulers papers papers-check sensitivity hunt agreement fluid golden mutants fuzz chaos \
	wheel wheel-check static deb deb-check static-check cross-check address release playground playground-check site site-check clean

help: ## Show this list
	@echo "make <target>, where <target> is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what runs need: .venv with the package and its engines (ENGINES=sim: only the simulator)
	@scripts/setup.sh run

dev: ## Do the same and install what tests and checks need
	@scripts/setup.sh dev

# The demo needs only the simulator; `make setup` builds the kernel engine.
demo: export ENGINES ?= sim
demo: export PROFILE ?= $(if $(filter sim,$(ENGINES)),demo,release)
demo: setup ## Compare six algorithms on a published scenario; print a table and the path of a report
	@$(BIN)/mptcplab run $(DEMO) --out $(DEMO_OUT) --force

test: dev ## Run formatting checks, lints and all tests
	@scripts/test.sh

test-kernels: dev ## Test the kernel engine on Debian's oldest and newest kernels, in virtual machines (some minutes)
	@$(BIN)/python tests/kernels/run.py
	@$(BIN)/python -m pytest -m machines tests/python

oldest: setup ## Run Python tests with the oldest versions of all dependencies (needs Python 3.11; a quarter of an hour)
	@scripts/oldest-python.sh

bench: dev ## Measure the simulator's speed and memory on workloads W1 to W5 and with 10,000 flows (about two minutes)
	@cargo build --quiet --release --locked -p mptcplab-bench
	@cargo run --quiet --release --locked -p mptcplab-bench --bin suite

bench-gate: ## Check the number of instructions per packet-hop (part of make test)
	@benches/gate.sh

lint: dev ## Run formatting checks and lints only
	@scripts/lint.sh

format: dev ## Format all sources
	cargo fmt --all -- crates/mptcplab-model/src/sched/*.rs
	$(BIN)/ruff format examples python site tests
	$(BIN)/ruff check --fix --quiet examples python site tests
	$(BIN)/clang-format -i algorithms/*.[ch] crates/mptcplab-cc/native/*.[ch] crates/mptcplab-bpf/bpf/*.[ch]

fidelity: dev ## Compare the simulator with theory and write docs/fidelity (about two minutes)
	@$(BIN)/mptcplab fidelity

fluid: dev ## Compare the fluid with the simulator and write the table of docs/fluid.md (some minutes)
	@$(BIN)/python scripts/fluid.py

schedulers: dev ## Compare the packet schedulers and write docs/schedulers (about a minute)
	@$(BIN)/mptcplab schedulers --compare

papers: dev ## Run the papers' experiments, judge their claims and write docs/papers (about ten minutes)
	@$(BIN)/mptcplab reproduce all --docs docs/papers
	@$(BIN)/mptcplab docs

papers-check: dev ## Run them again and compare every verdict and number with the committed ones (about ten minutes)
	@scripts/papers-check.sh

sensitivity: dev ## Run them, judge every claim under other choices as well, and write docs/papers (most of an hour)
	@$(BIN)/mptcplab reproduce all --sensitivity --docs docs/papers
	@$(BIN)/mptcplab docs

hunt: dev ## Search for the networks in which algorithms do worst and write docs/hunt (about half an hour)
	@scripts/hunt.sh

agreement: export ENGINE ?= vm:trixie-backports
agreement: dev ## Compare the simulator with a stock kernel and write docs/agreement (a day; ONLY=papers/... one scenario; ENGINE=kernel as root is this kernel, an hour)
	@$(BIN)/mptcplab agree --all --engines sim,$(ENGINE) $(addprefix --only ,$(ONLY))

golden: export MPTCPLAB_GOLDEN_REASON = $(REASON)
golden: ## Compare the simulator with its golden numbers; REASON="why" accepts what changed
	@cargo test --quiet --locked -p mptcplab-sim --lib golden::

mutants: dev ## Change the sources step by step to see what no test notices (hours; PART=recovery, LISTED=1 or UNLISTED=1, ACCEPT=1)
	@$(BIN)/python scripts/mutants/mutants.py $(PART) $(if $(SHARD),--shard $(SHARD)) $(if $(LISTED),--listed) $(if $(UNLISTED),--unlisted) $(if $(ACCEPT),--accept)

fuzz: dev ## Feed everything that reads input with random input (TARGET=scenario, SECONDS=600 each)
	@scripts/fuzz.sh $(or $(SECONDS),600) $(TARGET)

chaos: dev ## Kill commands, fill disks, flip bits and so on, and check that nothing is lost (SECONDS=600, SEED=1; root for all)
	@$(BIN)/python tests/chaos/chaos.py --seconds $(or $(SECONDS),600) --seed $(or $(SEED),1) $(if $(CASE),--case $(CASE))

docs: dev ## Generate the reference pages under docs/ from the sources
	@$(BIN)/mptcplab docs

# The wheel's engines are compiled by themselves; its scenarios include a walk that setup generates.
wheel: export ENGINES ?= sim
wheel: setup ## Build dist/mptcplab-*.whl, which contains all engines and needs no compiler (some minutes; ARCH=aarch64)
	@packaging/wheel.sh

wheel-check: ## Install the wheel into an empty environment and use it (root: in a system of its own with SUITE=trixie)
	@packaging/wheel_check.sh

static: ## Build the kernel program without libraries: dist/mptcplab-kernel-*-linux-x86_64 (some minutes; ARCH=aarch64)
	@packaging/static.sh

deb: static ## Build a Debian package of it: program, unit, man page, completions (ARCH=aarch64)
	@packaging/deb.sh

deb-check: ## Install the package into a copy of this system, or of SUITE=trixie, use it, and remove it again (root)
	@packaging/deb_check.sh

static-check: ## Build program and package a second time in another place, and compare the bytes (some minutes)
	@packaging/static_check.sh

cross-check: export ENGINES ?= sim
cross-check: setup ## Run the packages for ARCH=aarch64 in an emulator, and compare a simulation's bytes with this machine's (root)
	@packaging/cross_check.sh

address: ## Write the public address of the repository, ADDRESS=https://... or else that of origin, into the files that name it
	@scripts/address.sh

release: dev ## Check everything, build all packages, and say what to tag and push (hours)
	@scripts/release.sh

playground: ## Build the simulator as a page for the browser: build/playground/index.html (some minutes)
	@scripts/playground/build.sh

playground-check: dev ## Build it, with Debian's Rust if this one cannot, and test it in node and Chromium
	@scripts/playground/check.sh

site: setup ## Build the pages as a site with search and the playground: build/site/index.html
	@scripts/site.sh

site-check: dev ## Build it, and use it in Chromium
	@scripts/site_check.sh

clean: ## Remove everything that was built, but keep results
	rm -rf target build playground/node_modules $(VENV) python/mptcplab/_core*.so python/mptcplab/_bin .pytest_cache .ruff_cache .hypothesis
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
