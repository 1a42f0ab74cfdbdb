#!/usr/bin/env bash
# Builds the site, build/site/index.html: all pages, with a search that needs no server, and the playground where it can be
# built. A warning of Sphinx is an error, and so is a link that leads nowhere.
# shellcheck source=scripts/playground/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/playground/common.sh"

SITE=build/site

main() {
	install_sphinx
	playground
	say "building the pages"
	rm -rf "$SITE.new"
	"$BIN/sphinx-build" --quiet --fail-on-warning --keep-going --jobs auto \
		-d build/site.cache -c site . "$SITE.new" >&2 || fail "the pages have mistakes" "each is above, with its file and line"
	if [ -f "$PLAYGROUND/index.html" ]; then
		mkdir -p "$SITE.new/playground"
		cp "$PLAYGROUND/index.html" "$SITE.new/playground/"
	fi
	cp site/start.html "$SITE.new/index.html"
	"$BIN/python" site/links.py "$SITE.new"
	rm -rf "$SITE"
	mv "$SITE.new" "$SITE"
	say "open $SITE/index.html in a browser; it needs no server"
}

# What pyproject.toml lists for the site, into .venv.
install_sphinx() {
	local stamp=$VENV/.stamp-site fingerprint
	fingerprint=$(sha256sum pyproject.toml)
	if [ "$(cat "$stamp" 2>/dev/null)" = "$fingerprint" ]; then return; fi
	say "installing Sphinx into .venv"
	"$BIN/python" - <<'PYTHON' | "$BIN/python" -m pip install --quiet --disable-pip-version-check -r /dev/stdin
import tomllib

with open("pyproject.toml", "rb") as file:
    print("\n".join(tomllib.load(file)["project"]["optional-dependencies"]["site"]))
PYTHON
	printf '%s\n' "$fingerprint" >"$stamp"
}

# The playground is built where it can be. A page that is there is taken as it is where it cannot.
playground() {
	if rust_for_wasm && have node && have npm && clang --print-targets 2>/dev/null | grep -q wasm32; then
		scripts/playground/build.sh
	elif [ -f "$PLAYGROUND/index.html" ]; then
		say "the playground was built earlier, and is taken as it is"
	else
		say "the site has no playground: make playground says what it needs"
	fi
}

main
