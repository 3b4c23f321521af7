#!/usr/bin/env python3
"""packaging_test.py SOURCE BUILD LIBDIR MESON...: the packages of debian/ have each file that is installed, once, and their lists of symbols are what the
libraries export.  SPDX-License-Identifier: ISC"""

import fnmatch
import glob
import json
import os
import re
import subprocess
import sys

source, build, libdir = sys.argv[1:4]
meson = sys.argv[4:]


def nonempty_lines(*path):
    with open(os.path.join(source, *path), encoding='utf-8') as file:
        return [line.strip() for line in file if line.strip()]


def fail(text):
    sys.exit(f'packaging_test: {text}')


def symbols():
    for package, listed in {
        'record': 'record/symbols.txt', 'promise': 'promise/symbols.txt', 'uv': 'promise/symbols-uv.txt', 'xen': 'xen/symbols.txt',
    }.items():
        of_package = [line.split('@')[0] for line in nonempty_lines('debian', f'libweft-{package}0.symbols')[2:]]
        of_library = nonempty_lines('tests', *listed.split('/'))
        if of_package != of_library:
            fail(f'debian/libweft-{package}0.symbols and tests/{listed} differ in {sorted(set(of_package) ^ set(of_library))}')


def files():
    """Returns the installed files, as under /usr of a Debian."""
    got = json.loads(subprocess.run([*meson, 'introspect', '--installed', build], check=True, stdout=subprocess.PIPE).stdout)
    prefix = next(option['value'] for option in json.loads(
        subprocess.run([*meson, 'introspect', '--buildoptions', build], check=True, stdout=subprocess.PIPE).stdout) if option['name'] == 'prefix')
    for path in got.values():
        path = os.path.relpath(path, prefix)
        yield 'usr/' + re.sub(f'^{re.escape(libdir)}/', 'lib/x86_64-linux-gnu/', path)


def packages():
    names = {line.split()[1] for line in nonempty_lines('debian', 'control') if line.startswith('Package: ')}
    lists = {os.path.basename(path)[:-len('.install')]: path for path in glob.glob(os.path.join(source, 'debian', '*.install'))}
    if names != set(lists):
        fail(f'debian/control and the lists of files name other packages: {sorted(names ^ set(lists))}')
    wanted = [(package, line) for package in lists for line in nonempty_lines('debian', package + '.install') if line.startswith('usr/')]
    used = set()
    installed = sorted(files())
    for path in installed:
        found = [(package, pattern) for package, pattern in wanted if fnmatch.fnmatch(path, pattern) or path.startswith(pattern + '/')]
        if len({package for package, _ in found}) != 1:
            fail(f'{path} is in {len(found)} packages: {found}')
        used |= set(found)
    for package, pattern in wanted:
        if (package, pattern) not in used:
            fail(f'{package}: {pattern} is not installed')
    print(f'{len(installed)} files in {len(names)} packages')


symbols()
packages()
