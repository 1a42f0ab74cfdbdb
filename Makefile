# Everything a person types. Each target sets up what it needs first, and does nothing where nothing changed.

VENV     := .venv
BIN      := $(VENV)/bin
DEMO     := scenarios/dolia-scenario-1.toml
DEMO_OUT := results/demo

# A rustup that was installed a moment ago is not in the shell's PATH yet.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help setup dev demo test bench lint format docs clean

help: ## Show this list
	@echo "make <target>, where <target> is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what a run needs: .venv with the package and its engine
	@scripts/setup.sh run

dev: ## The same, with what the tests and checks need
	@scripts/setup.sh dev

demo: setup ## Compare six algorithms on a published scenario; prints a table and the path of a report
	@$(BIN)/mptcplab run $(DEMO) --out $(DEMO_OUT) --force

test: dev ## Formatting, lints, all tests
	@scripts/test.sh

bench: dev ## Measure speed; see benches/ for what and how
	cargo bench --workspace --locked

lint: dev ## Formatting and lints only
	@scripts/lint.sh

format: dev ## Format all sources
	cargo fmt --all
	$(BIN)/ruff format python tests
	$(BIN)/ruff check --fix --quiet python tests
	$(BIN)/clang-format -i algorithms/*.[ch] crates/mptcplab-cc/native/*.[ch]

docs: dev ## Generate the reference pages under docs/ from the sources
	@$(BIN)/mptcplab docs

clean: ## Remove everything that was built; results stay
	rm -rf target $(VENV) python/mptcplab/_core*.so .pytest_cache .ruff_cache .hypothesis
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
