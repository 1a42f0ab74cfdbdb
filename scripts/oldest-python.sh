#!/usr/bin/env bash
# Runs the Python tests with the oldest version of every dependency that pyproject.toml allows, in target/oldest-python:
# `numpy>=1.26` becomes `numpy==1.26`. Extras are installed as well. The tools of the tests are as `make dev` installs them.
#
# Tests on this machine's kernel and in virtual machines are left to `make test`.
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

OLDEST=$PWD/target/oldest-python
PYTHON=${PYTHON:-python3}

main() {
	check_python
	environment
	"$OLDEST/bin/python" scripts/editable.py
	"$OLDEST/bin/python" -m pip check --disable-pip-version-check
	"$OLDEST/bin/python" -m pytest --numprocesses 2 --dist loadfile -m "not kernel and not machines" \
		--ignore-glob "*/test_vm_*.py" "$@"
}

# The oldest versions have wheels for the oldest Python only.
check_python() {
	local wanted version
	wanted=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)
	version=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
	if [ "$version" != "$wanted" ]; then
		fail "the oldest versions need Python $wanted, and $PYTHON is $version" "make oldest PYTHON=python$wanted"
	fi
}

environment() {
	local fingerprint
	fingerprint=$(requirements)
	if [ "$(cat "$OLDEST/.stamp" 2>/dev/null)" = "$fingerprint" ]; then return; fi
	say "installing the oldest versions into target/oldest-python (some minutes)"
	"$PYTHON" -m venv --clear "$OLDEST"
	printf '%s\n' "$fingerprint" | "$OLDEST/bin/python" -m pip install --quiet --disable-pip-version-check -r /dev/stdin
	printf '%s\n' "$fingerprint" >"$OLDEST/.stamp"
}

# Left out are jupyterlab, a program that nothing imports, and the lints, which need newer versions than the tests do.
requirements() {
	"$PYTHON" - <<'CODE'
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
extras = settings["project"]["optional-dependencies"]
oldest = settings["build-system"]["requires"] + settings["project"]["dependencies"]
oldest += [one for extra in ("pandas", "notebook", "dask", "hunt") for one in extras[extra] if "jupyterlab" not in one]
others = {one.split(">=")[0] for one in oldest} | {"import-linter"}
print("\n".join(one.split(",")[0].replace(">=", "==") for one in oldest))
print("\n".join(one for one in extras["dev"] if ">=" in one and one.split(">=")[0] not in others))
CODE
}

main "$@"
