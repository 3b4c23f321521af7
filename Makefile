# The commands of README.md; Meson does the work.
# SPDX-License-Identifier: ISC

all: build/build.ninja
	@ninja -C build

build/build.ninja:
	@command -v meson >/dev/null || { echo "meson is missing: run tools/install-packages first" >&2; exit 1; }
	meson setup build

packages:
	@tools/install-packages demo build check

# Everything that can be checked; ends with "N passed, N failed".
check: packages
	@tools/check

# Guests of Xen and QEMU under software emulation; part of check.
check-guests: packages
	@tools/check-guests

# Line coverage of the tests, by file.
coverage: packages
	@tools/coverage

# Records the examples and draws what they did: installs and builds only what that takes.
demo:
	@tools/install-packages demo
	@tools/demo

# The home page of the project, in build/site.
site: all
	@tools/install-packages site
	@docs/site/site.py . build build/site

bench:
	@tools/install-packages
	@tools/bench

# Seconds for each target: make fuzz SECONDS=60
fuzz: packages
	@tools/fuzz $(SECONDS)

# Programs with one fault each, and what weft explain says of them: make planted COUNT=1000
planted: packages all
	@build/tests/analysis/planted $(or $(COUNT),1000)

install: all
	@meson install -C build

# Debian packages, in build-deb/packages; as root they are tried in a fresh Debian.
deb:
	@tools/install-packages demo build deb
	@tools/deb

format:
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean:
	rm -rf build build-* demo

.PHONY: all deb packages check check-guests coverage demo site bench fuzz planted install format clean
