#!/usr/bin/env python3
"""i686_test.py ROOT WEFT RECORDER HOOK: programs of 32 bits.

The recorder is built for them, and records programs whose off_t has 32 bits and such with 64, in the hostile conditions that have to do with
files, signals and children; weft, of 64 bits, reads that.  A program that is met by a library of 64 bits, RECORDER or HOOK, does what it
does without.  SPDX-License-Identifier: ISC"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

ROOT, WEFT, RECORDER, HOOK = (os.path.abspath(path) for path in sys.argv[1:])
CC = 'i686-linux-gnu-gcc'
EVENTS = 60000
CONDITIONS = ['daemon_closes_all', 'numbers_are_as_ever', 'large_files', 'files_truncated', 'files_replaced', 'own_bus_handler_first',
              'children_of_all_sorts', 'children_that_record', 'exec_itself', 'small_stacks', 'signals_in_every_call', 'limit_comes_later',
              'ordinary_work', 'growing files']
FLAGS = ['-std=c11', '-D_GNU_SOURCE', '-O2', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-ffunction-sections',
         '-I' + os.path.join(ROOT, 'include'), '-I' + os.path.join(ROOT, 'src')]
LARGE = '-D_FILE_OFFSET_BITS=64'
wrong = []


def run(*words, **environment):
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, **environment})


def compile_to(out, *arguments):
    subprocess.run([CC, *FLAGS, *arguments, '-o', out, '-Wl,--gc-sections', '-lpthread'], check=True)


def check(holds, what, *more):
    if not holds:
        wrong.append(f'{what}: {more}')


def test_recorder(folder, bits, *flags):
    """With a recorder of 32 bits: every event is there, and nothing that the program sees is another."""
    many, hostile, trace = (os.path.join(folder, f'{name}-{bits}') for name in ('many', 'hostile', 'trace'))
    library = ['-L' + folder, '-lweft-record', '-Wl,-rpath,' + folder]
    compile_to(many, *flags, os.path.join(ROOT, 'tests/proof/many.c'), *library)
    compile_to(hostile, *flags, *(os.path.join(ROOT, path) for path in ('tests/proof/hostile.c', 'src/trace/follow.c')), *library)
    got = run(many, str(EVENTS), WEFT_TRACE=trace + ',mode=grow')
    check(got.returncode == 0 and not got.stderr, 'many', got)
    info = json.loads(run(WEFT, 'info', '--json', trace).stdout or '{}')
    counted = info.get('events', 0) - info.get('events_by_kind', {}).get('detail', 0)  # on a loaded machine each OS thread tells of its processor time
    check(counted == EVENTS and not info['skipped_count'], f'events, off_t of {bits} bits', info)
    got = run(sys.executable, os.path.join(ROOT, 'tests/proof/hostile_test.py'), hostile, WEFT, *CONDITIONS)
    check(got.returncode == 0, f'hostile, off_t of {bits} bits', got.stdout, got.stderr)
    print(f'off_t of {bits} bits: {info.get("events")} events\n{got.stdout}', end='')


def test_met_by_64_bits(folder):
    """The library before a program that it is not for: the loader says so, and the program goes on."""
    plain = os.path.join(folder, 'plain')
    for library in RECORDER, HOOK:
        got = run(plain, LD_PRELOAD=library, WEFT_TRACE=os.path.join(folder, 'nothing'), WEFT_RECORD=os.path.join(folder, 'nothing'))
        loaders = [line for line in got.stderr.splitlines() if 'wrong ELF class' in line]
        check((got.returncode, got.stdout, got.stderr.replace(''.join(line + '\n' for line in loaders), '')) == (3, 'I am\n', 'fine\n') and len(loaders) == 1,
              os.path.basename(library), got)
    got = run(WEFT, 'record', '-o', os.path.join(folder, 'recorded'), '--', plain)
    said = got.stderr.replace('fine\n', '', 1)
    check((got.returncode, got.stdout, said.count('\n')) == (3, 'I am\n', 1) and 'a program of 32 bits' in said, 'weft record', got)
    # One that has a recorder of its own says what it does itself.
    got = run(WEFT, 'record', '-o', os.path.join(folder, 'itself'), '--', os.path.join(folder, 'many-32'), '2000')
    check(got.returncode == 0 and 'many-32' in got.stderr and '32 bits' not in got.stderr, 'weft record, a recorder of its own', got)


def main():
    if not shutil.which(CC):
        print(f'skipped: no {CC}')
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        plain = os.path.join(folder, 'plain')
        with open(plain + '.c', 'w', encoding='utf-8') as source:
            source.write('#include <stdio.h>\nint main(void) { puts("I am"); fputs("fine\\n", stderr); return 3; }\n')
        compile_to(plain, plain + '.c')
        try:
            run(plain)
        except OSError:
            print('skipped: no kernel or no loader here for programs of 32 bits (libc6-i386)')
            return 77
        sources = [path for part in ('record', 'wire') for path in sorted(glob.glob(os.path.join(ROOT, 'src', part, '*.c')))
                   if not path.endswith('freestanding.c')]
        compile_to(os.path.join(folder, 'libweft-record.so'), '-shared', '-fPIC', '-fvisibility=hidden', LARGE, *sources)
        test_recorder(folder, 32)
        test_recorder(folder, 64, LARGE)
        test_met_by_64_bits(folder)
    print('\n'.join(wrong))
    return 1 if wrong else 0


sys.exit(main())
