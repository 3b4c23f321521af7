#!/usr/bin/env python3
"""hardening_test.py VERSION FILE...: what is installed makes life hard for whoever finds a fault in it, and is of one version.

Each program and library is position-independent, its relocations are read-only from the start (full RELRO), its stack cannot be
executed, functions with buffers check their stack, libc's checked calls are used where there are any, and exported functions begin
with what CET wants.  SPDX-License-Identifier: ISC"""
import ctypes
import os
import re
import subprocess
import sys

version, files = sys.argv[1], sys.argv[2:]
wrong = []


def run_tool(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def inspect_file(path):
    """Returns the checks of one file: name and value; a value that starts with "no" is wrong."""
    header, segments, dynamic = run_tool('readelf', '-hW', path), run_tool('readelf', '-lW', path), run_tool('readelf', '-dW', path)
    symbols = run_tool('nm', '-D', path)
    is_program = 'INTERP' in segments
    stack = re.search(r'GNU_STACK.* (RWE?)', segments)
    calls = set(re.findall(r' U (\w+)', symbols))
    plain = calls & {'snprintf', 'vsnprintf', 'memcpy', 'memmove', 'strcpy', 'fprintf', 'printf', 'read', 'pread', 'dprintf'}
    checked = [name for name in calls if name.endswith('_chk')]
    landings = ''
    if 'X86-64' in header:
        code = run_tool('objdump', '-d', '--no-show-raw-insn', path)
        names = [name for name in re.findall(r' T (\w+)', symbols)] or ['main']
        entries = dict(re.findall(r'^[0-9a-f]+ <(\w+)>:\n\s*[0-9a-f]+:\s*(\S+)', code, re.M))
        missing = [name for name in names if name in entries and entries[name] != 'endbr64' and not name.startswith('_')]
        landings = f'no: {missing[0]}' if missing else 'yes'
    return {
        'PIE' if is_program else 'PIC': 'yes' if 'DYN' in header and 'TEXTREL' not in dynamic else 'no',
        'RELRO': 'full' if 'GNU_RELRO' in segments and re.search(r'BIND_NOW|FLAGS_1.*NOW', dynamic) else 'no',
        'NX': 'yes' if stack and stack[1] == 'RW' else 'no',
        'canary': 'yes' if any(name.startswith('__stack_chk_fail') for name in calls) else 'no',
        'fortify': f'{len(checked)} calls' if checked else 'no' if plain - {'memcpy', 'memmove'} else 'nothing to check',
        'CET': landings or 'other processor',
    }


for path in files:
    row = inspect_file(path)
    print(f'{os.path.basename(path):26} ' + '  '.join(f'{name}: {value}' for name, value in row.items()))
    wrong += [f'{path}: {name}: {value}' for name, value in row.items() if value.startswith('no') and value != 'nothing to check']
    if os.path.basename(path) == 'weft':
        told = run_tool(path, '--version').partition('\n')[0]  # the parts of the build follow
        if told != f'weft {version}':
            wrong.append(f'{path} --version says {told}')
    if 'libweft-record' in path:
        library = ctypes.CDLL(path)
        library.weft__version.restype = ctypes.c_char_p
        if library.weft__version() != version.encode():
            wrong.append(f'{path}: weft_version() says {library.weft__version()}')
    if '.so.' in path and not path.endswith('.so.' + version):
        wrong.append(f'{path} is not called {version}')
sys.exit('\n'.join(wrong) if wrong else 0)
