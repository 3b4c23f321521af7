#!/usr/bin/env python3
"""man3_test.py SOURCE BUILD COMPILER MESON...: what the compiler sees of the public headers, and what the libraries export, has a page in
section 3 that names it, shows how it is called, and is without a fault that mandoc knows.  SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

source, build, compiler = sys.argv[1:4]
meson = sys.argv[4:]
if not shutil.which('mandoc'):
    print('skipped: no mandoc')
    sys.exit(77)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


installed = json.loads(run(*meson, 'introspect', '--installed', build))
at = {os.path.basename(path): built for built, path in installed.items() if path.endswith('.3')}
headers = sorted(os.path.basename(path) for path in installed.values() if re.search(r'/include/weft/\w+\.h$', path) and not path.endswith('_inline.h'))

# Functions and macros with arguments, as the compiler sees them.
names = set()
with tempfile.TemporaryDirectory(prefix='weft-man3-') as folder:
    program = os.path.join(folder, 'all.c')
    with open(program, 'w', encoding='utf-8') as file:
        file.writelines(f'#include <weft/{header}>\n' for header in headers)
    prototypes = os.path.join(folder, 'prototypes')
    subprocess.run([compiler, '-I', os.path.join(source, 'include'), '-aux-info', prototypes, '-S', '-o', os.devnull, program], check=True)
    with open(prototypes, encoding='utf-8') as file:
        names |= set(re.findall(r'\b(weft_[a-z]\w*) \(', file.read()))
    macros = run(compiler, '-I', os.path.join(source, 'include'), '-dM', '-E', program)
    names |= set(re.findall(r'^#define ((?:weft|WEFT)_[a-zA-Z]\w*)\(', macros, re.M))
for table in ('record', 'promise', 'uv', 'xen'):
    listed = os.path.join(build, f'libweft-{table}.so')
    if os.path.exists(listed):
        names |= set(re.findall(r' T (weft_[a-z]\w*)', run('nm', '-D', '--defined-only', listed)))
tables = {'WEFT_KINDS', 'WEFT_OPS', 'WEFT_DETAILS', 'WEFT_STATUSES'}
if len(names) < 150 or not tables < names:
    sys.exit(f'the compiler showed {len(names)} names')


def page(name):
    return re.sub('.\b', '', run('mandoc', '-T', 'utf8', '-O', 'width=200', os.path.join(build, 'docs', 'man', name + '.3')))


faults = []
links = dict(line.split(' ') for header in headers for line in run(
    os.path.join(source, 'tools', 'man3.py'), '--list', os.path.join(source, 'include', 'weft', header)).split('\n') if ' ' in line)
types = {name for name in names if name.endswith('_fn')}
for name in sorted(names - tables - types):
    if name + '.3' not in at:
        faults.append(f'{name} has no page')
        continue
    text = page(links.get(name + '.3', name).removesuffix('.3'))
    head, _, rest = text.partition('SYNOPSIS')
    synopsis = rest.partition('DESCRIPTION')[0]
    if not re.search(rf'\b{name}\b', head):
        faults.append(f'the page of {name} does not name it')
    if not re.search(rf'\b{name}\(', synopsis):
        faults.append(f'the page of {name} does not show how it is called')
every = ''.join(page(name.removesuffix('.3')) for name in at if name not in links)
faults += [f'no page has {name}' for name in sorted(tables | types) if name not in every]
for name in at:
    path = os.path.join(build, 'docs', 'man', name)
    if os.path.exists(path):
        said = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', path], stdout=subprocess.PIPE, text=True).stdout
        # A page that is the same in each build has no date.
        faults += [line for line in said.splitlines() if 'missing date' not in line]
if faults:
    sys.exit('\n'.join(faults))
print(f'{len(names)} names, {len(at)} pages and links')
