#!/usr/bin/env python3
"""freestanding_test.py ROOT WEFT: the core records without a C library, and weft reads the memory.  SPDX-License-Identifier: ISC"""
import json, os, shutil, subprocess, sys, tempfile

ROOT, WEFT = sys.argv[1:]


def llvm(tool):
    """Returns the name of an installed LLVM tool, which may contain a version; if it is not installed, the name without a version."""
    found = subprocess.run([os.path.join(ROOT, 'tools', 'find-llvm'), tool], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return found.stdout.strip() or tool


CLANG = llvm('clang')
LINKER = llvm('ld.lld')
SOURCES = [os.path.join(ROOT, 'src', s) for s in ('record/core.c', 'record/define.c', 'record/buffer.c', 'record/freestanding.c',
                                                  'wire/event.c', 'wire/metadata.c')] + [os.path.join(ROOT, 'tests/record/freestanding.c')]
FLAGS = ['-std=c11', '-O2', '-ffreestanding', '-nostdlib', '-static', '-fno-stack-protector', '-fno-pic', '-Wall', '-Wextra',
         '-Wno-unused-parameter', '-Werror', '-I', os.path.join(ROOT, 'include'), '-I', os.path.join(ROOT, 'src')]
TARGETS = {
    'x86-64, gcc': (['gcc'], []),
    'x86-64, clang': ([CLANG], []),
    'aarch64, clang': ([CLANG, '--target=aarch64-linux-gnu', '--ld-path=' + LINKER, '-mno-outline-atomics'], ['qemu-aarch64']),
}


def check(name, memory):
    lines = subprocess.run([WEFT, 'events', '--json', '--absolute', memory], check=True, capture_output=True, text=True)
    assert lines.stderr == '', lines.stderr
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    info = json.loads(subprocess.run([WEFT, 'info', '--json', memory], check=True, capture_output=True, text=True).stdout)
    told = [e for e in events if e['op'] == 'pending']
    assert told and all((e['promise'], e['kind'], e['label'], e['since_ns']) == (1 << 20, 'timer', 'oldest', 7000) for e in told), told
    events = [e for e in events if e['op'] != 'pending']
    # The ring has the newest events: the last event of the last request, and events before it without a gap.
    last = events[-1]['promise']
    for back, event in enumerate(reversed(events)):
        promise, step = last - back // 5, 4 - back % 5
        assert event['op'] == ('create', 'label', 'label', 'run', 'resolve')[step] and event['promise'] == promise, (back, event)
        assert event.get('text') == (None, 'literal', 'copied', None, None)[step], event
    assert last == 3000 and all(a['time_ns'] < b['time_ns'] for a, b in zip(events, events[1:]))
    stream, = info['streams']
    lost = stream['lost_overwritten']
    assert stream['lost_full'] == stream['lost_nested'] == 0 and lost + len(events) + len(told) >= 15000, info
    print(f'{name}: {len(events)} events of {last} requests in 16 KiB, {lost} overwritten')


with tempfile.TemporaryDirectory() as out:
    for name, (compiler, emulator) in TARGETS.items():
        missing = [t for t in [compiler[0], *emulator, *([LINKER] if emulator else [])] if not shutil.which(t)]
        if missing:
            print(f'{name} skipped: no {missing[0]}')
            continue
        program, memory = os.path.join(out, 'program'), os.path.join(out, 'memory')
        subprocess.run([*compiler, *FLAGS, *SOURCES, '-o', program], check=True)
        with open(memory, 'wb') as f:
            subprocess.run([*emulator, program], check=True, stdout=f)
        check(name, memory)
