# The commands of README.md; Meson does the work.
# SPDX-License-Identifier: ISC

all: configure
	@ninja -C build
	@test ! -x build/weft || build/weft --version
	@hooks=$$(git rev-parse --git-path hooks 2>/dev/null) && test -e .git && test ! -e "$$hooks/commit-msg" && \
		echo "'make hooks' installs a hook that checks the form of commit messages" || true

# Again where packages came or went since.
configure:
	@tools/configure build

packages:
	@tools/install-packages demo build check

# Everything that can be checked; ends with "N passed, N failed".
check: packages
	@tools/check

# The core's tests that take less than two seconds each: under a minute.
quick: configure
	@tools/tests quick

# The tests that can see a file: make test FILE=src/model/build.c
test: configure
	@tools/tests file $(FILE)

# A hook of git that checks the form of commit messages.
hooks:
	@hook=$$(git rev-parse --git-path hooks)/commit-msg && if test -e "$$hook" && ! cmp -s tools/commit-msg "$$hook"; then \
		echo "$$hook is there already: remove it first" >&2; exit 1; \
	else mkdir -p "$${hook%/*}" && install -m 755 tools/commit-msg "$$hook" && echo "installed $$hook"; fi

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

# Removes what `make install` installed, as the build folder has listed it.
uninstall:
	@tools/uninstall build

# Debian packages, in build-deb/packages; as root they are tried in a fresh Debian.
deb:
	@tools/install-packages demo build deb
	@tools/deb

format:
	@git ls-files '*.c' '*.h' | xargs "$$(tools/find-llvm clang-format)" -i

clean:
	rm -rf build build-* demo

.PHONY: all configure deb packages check quick test hooks check-guests coverage demo site bench fuzz planted install uninstall format clean
