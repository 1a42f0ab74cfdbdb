#!/usr/bin/env bash
# Checks that the workspace needs no newer Rust than `rust-version` in Cargo.toml says.
#
# Where rustup has that very toolchain, which `make dev` installs, its compiler decides. Elsewhere three checks together
# come close: clippy's incompatible_msrv for the standard library (part of `make lint`), the versions that the dependencies
# ask for, and let chains (1.88), a feature of the language that slips in easily. They need edition 2024, so parsing the
# sources as edition 2021 finds them.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

OLDEST=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

let_chains() {
	local files
	mapfile -t files < <(git ls-files '*.rs')
	rustfmt --edition 2021 --style-edition 2024 --config skip_children=true --check "${files[@]}" 2>&1 |
		grep --after-context=1 '^error' || true
}

newer_dependencies() {
	cargo metadata --format-version 1 --locked | "${PYTHON:-python3}" -c '
import json, sys

def version(text):
    return [int(part) for part in (text.split(".") + ["0"])[:2]]

for package in json.load(sys.stdin)["packages"]:
    if package["rust_version"] and version(package["rust_version"]) > version(sys.argv[1]):
        print("%(name)s %(version)s needs Rust %(rust_version)s" % package)
' "$OLDEST"
}

if [ "$OLDEST" != "$(sed -n 's/^MIN_RUST=//p' scripts/setup.sh)" ]; then
	fail "MIN_RUST in scripts/setup.sh is not the rust-version of Cargo.toml: $OLDEST" "state the same version in both"
fi
found=$(let_chains; newer_dependencies)
if [ -n "$found" ]; then
	printf '%s\n' "$found" >&2
	fail "the workspace needs a newer Rust than rust-version says: $OLDEST" \
		"write it without what is above, or raise rust-version, MIN_RUST in scripts/setup.sh, README.md and docs/operators.md"
fi
toolchain=$(rustup toolchain list 2>/dev/null | grep --max-count=1 --only-matching "^$OLDEST[^ ]*" || true)
if [ -n "$toolchain" ]; then
	without_kernel
	CARGO_TARGET_DIR=target/oldest-rust rustup run "$toolchain" cargo check --workspace "${WITHOUT_KERNEL[@]}" --locked --quiet
fi
