#!/usr/bin/env python3
"""freestanding_test.py ROOT: examples/unikernel, the recorder's core and share.c make one object that needs Mini-OS and three functions of C.

SPDX-License-Identifier: ISC"""
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = sys.argv[1]


def llvm(tool):
    """Returns the tool of LLVM, which may have a version in its name, or its name if there is none."""
    found = subprocess.run([os.path.join(ROOT, 'tools', 'find-llvm'), tool], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.strip() or tool


CLANG = llvm('clang')
SOURCES = ['examples/unikernel/mini-os.c', 'adapters/xen/share.c'] + [
    f'src/{name}.c' for name in ('record/core', 'record/define', 'record/buffer', 'record/freestanding', 'wire/event', 'wire/metadata')]
FLAGS = ['-std=c11', '-O2', '-ffreestanding', '-nostdlib', '-fno-pic', '-fno-stack-protector', '-Wall', '-Wextra', '-Wno-unused-parameter', '-Werror',
         '-I', os.path.join(ROOT, 'include'), '-I', os.path.join(ROOT, 'src')]
NEEDS = {'gnttab_grant_access', 'gnttab_end_access', 'virt_to_mfn', 'xenbus_write', 'xenbus_rm', 'xfree', 'monotonic_clock',
         'memcpy', 'memset', 'strlen'}

with tempfile.TemporaryDirectory() as out:
    for name, compiler in {'x86-64, gcc': ['gcc'], 'x86-64, clang': [CLANG], 'aarch64, clang': [CLANG, '--target=aarch64-linux-gnu', '-mno-outline-atomics']}.items():
        if not shutil.which(compiler[0]):
            print(f'{name} skipped: no {compiler[0]}')
            continue
        objects = []
        for source in SOURCES:
            objects.append(os.path.join(out, source.replace('/', '-') + '.o'))
            subprocess.run([*compiler, *FLAGS, '-c', os.path.join(ROOT, source), '-o', objects[-1]], check=True)
        def symbols(option):
            listed = subprocess.run(['nm', option, *objects], check=True, capture_output=True, text=True).stdout
            return {line.split()[-1] for line in listed.splitlines() if line.strip() and not line.endswith(':')}
        missing = symbols('-u') - symbols('--defined-only') - NEEDS
        assert not missing, f'{name}: what nobody has: {sorted(missing)}'
        print(f'{name}: {len(objects)} objects')
