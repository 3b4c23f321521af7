#!/usr/bin/env python3
"""look_test.py WEFT HANGS [bare|loop|source]: weft waits and explain name the reason why an unrecorded program hangs, from the process and from a core dump.

Each way of hangs.c is tested as a process, as a core dump of gcore and as a core dump of the kernel.  `bare`: the program has no symbols and
   no libraries, so no names are expected.  `loop` and `source`: HANGS is loop.c or source.c.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

weft, hangs = map(os.path.abspath, sys.argv[1:3])
BARE, LOOP, SOURCE = ([kind] == sys.argv[3:] for kind in ('bare', 'loop', 'source'))
PATIENCE_S = 60

# For each way to hang: regular expressions for the output of waits and of explain, and the exit status of explain.
ABBA = [r'lock \d+ "mutex journal"  at transfer \(hangs\.c:\d+\)', r'lock \d+ "mutex accounts"  at transfer', r'"auditor|"audit"', 'in a cycle', r'called by pay \(hangs\.c:\d+\)']
WAYS = {
    'abba': (ABBA, [r'^deadlock: thread \d+ "\w+" holds lock \d+ "mutex \w+" and waits for lock .*cycle of 2 locks'], 1),
    'self': ([r'thread \d+ "main"  at log_line', 'in a cycle'], [r'^deadlock: thread \d+ "main" waits for lock \d+ "mutex journal", which it already holds'], 1),
    'join': ([r'thread \d+ "join_first"', 'in a cycle'], ['^cycle: thread .* wait for each other'], 1),
    'condition': ([r'condition \d+ "has_work"  at work', r'thread \d+ "main"  at hang_condition'], [r'"work" sleeps forever at condition \d+ "has_work"'], None),
    'semaphore': ([r'condition \d+ "semaphore tokens"  at hang_semaphore'], ['no certain fault'], 0),
    'rwlock': ([r'lock \d+ "rwlock settings"  at hang_rwlock', 'thread .* at change_settings', 'signal .*pause'], ['no certain fault'], 0),
    'read': ([r'read \d+ "read of fd 3'], ['no certain fault'], 0),
}
# The loop of loop.c.  Without the pages of libuv's code, weft recognises each handle and request by its layout in memory.
LOOP_WAYS = {
    'fifo': (
        [
            r'thread \d+ "main"', r'loop \d+ "libuv: 3 of 3 handles, 1 of 1 requests"', r'listen \d+ "tcp of fd \d+.*  at on_client \(loop\.c:\d+\)',
            r'signal \d+ "signal 1"  at on_signal', r'timer \d+ "due in \d+ ms, every 3600000 ms"  at on_timer', r'fs \d+ "open ..?fifo.*, run by thread \d+.*  at on_open',
            r'fs \d+ "openat ..?fifo'
        ],
        ['^alive: loop \\d+ .* has not returned'], 0),
}
SOURCE_WAYS = {
    'sources': ([
        r'thread \d+ "main"', r'loop \d+ "GLib: 2 sources"', r'timer \d+ "source(, due in \d+ ms)?"  at on_report \(source\.c:\d+\)',
        r'handle \d+ "input"  at on_input \(source\.c:\d+\)'
    ], ['^alive: loop \\d+ .* has not returned'], 0),
}
# Without names and libraries, weft finds deadlocks only by the words of locks in memory.
BARE_WAYS = {
    'abba': ([r'lock \d+ "mutex 0x', 'in a cycle'], ['^deadlock: .*cycle of 2 locks'], 1),
    'self': ([r'lock \d+ "mutex 0x', 'in a cycle'], ['^deadlock: .* which it already holds'], 1),
    'join': (['in a cycle'], ['^cycle: '], 1),
    'read': ([r'read \d+ "read of fd 3'], ['no certain fault'], 0),
}

ALL_WAYS = BARE_WAYS if BARE else LOOP_WAYS if LOOP else SOURCE_WAYS if SOURCE else WAYS


def run(*args):
    return subprocess.run([weft, *args], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def matches(pattern, text):
    return re.search(pattern, text, re.M)


def check(what, way, retry):
    """Runs weft repeatedly until all threads of the program are blocked, which a core dump shows at only one moment."""
    expected, findings, status = ALL_WAYS[way]
    deadline = time.monotonic() + PATIENCE_S
    while True:
        waits, explain = run('waits', what), run('explain', what)
        faults = [f'waits lacks {p}' for p in expected if not matches(p, waits.stdout)]
        faults += [f'explain lacks {p}' for p in findings if not matches(p, explain.stdout)]
        if not faults or not retry or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    told = f'{waits.stdout}{waits.stderr}\n{explain.stdout}{explain.stderr}'
    assert not faults, f'{way} of {what}: {faults}\n{told}'
    assert waits.returncode == 0 and (status is None or explain.returncode == status), f'{way} of {what}: {explain.returncode}\n{told}'
    assert 'before their creation' not in told, told
    title = waits.stdout.split('\n')[0]
    assert re.fullmatch(r'seen once, at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d: (?:hangs.*|look-loop|look-source) \(process \d+\), \d+ OS threads?', title), title
    assert explain.stdout.startswith('seen once, at '), told
    assert ALL_WAYS in (WAYS, BARE_WAYS) or not matches('^(crash|deadlock|leak|hang)', explain.stdout), told


def check_other_verbs(what, folder):
    """Other verbs also read a process or a core dump as a trace."""
    page = os.path.join(folder, 'page.html')
    for args in (['top', '--once', what], ['dump', what], ['info', what], ['html', what, '-o', page], ['render', what, '-o', os.path.join(folder, 'p.svg')]):
        got = run(*args)
        assert got.returncode == 0 and (args[0] in ('html', 'render') or got.stdout), (args, got)
    lines = [json.loads(line) for line in run('waits', '--json', what).stdout.splitlines()]
    assert any(line.get('cycle') for line in lines), lines
    found = [json.loads(line) for line in run('explain', '--json', what).stdout.splitlines()]
    assert [f['finding'] for f in found] == ['deadlock'] and found[0]['sure'], found
    saved = os.path.join(folder, 'saved')
    assert run('save', what, '-w', saved).returncode == 0
    assert run('waits', saved).stdout.startswith('seen once, at '), run('waits', saved)


def start(way, folder):
    def prepare():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    # pylint: disable-next=consider-using-with
    program = subprocess.Popen([hangs, way], stdout=subprocess.PIPE, text=True, cwd=folder, preexec_fn=prepare)
    assert program.stdout.readline() == 'ready\n'
    return program


def make_kernel_core(program, folder):
    """Kills the program; returns its core dump, or None if the kernel hands core dumps to another program."""
    program.send_signal(signal.SIGABRT)
    program.wait(PATIENCE_S)
    cores = [name for name in os.listdir(folder) if name.startswith('core')]
    return os.path.join(folder, cores[0]) if cores else None


def check_way(way, folder, counts):
    program = start(way, folder)
    try:
        check(str(program.pid), way, True)
        counts['processes'] += 1
        if way == 'abba' and not BARE:
            check_other_verbs(str(program.pid), folder)
        if shutil.which('gcore'):
            made = subprocess.run(['gcore', '-o', os.path.join(folder, 'by_gdb'), str(program.pid)], capture_output=True, timeout=PATIENCE_S, check=False)
            core = os.path.join(folder, f'by_gdb.{program.pid}')
            if made.returncode == 0 and os.path.exists(core):
                check(core, way, False)
                counts['cores of gcore'] += 1
        core = make_kernel_core(program, folder)
        if core:
            check(core, way, False)
            counts['cores of the kernel'] += 1
            if way == 'abba' and not BARE:
                check_cut(core, folder)
    finally:
        program.kill()
        program.wait()
        program.stdout.close()


def check_list(folder):
    """Without a trace, weft waits lists the processes that hang, run all the time or are stopped, and no healthy one."""
    programs = {way: start(way, folder) for way in ('self', 'spin', 'read', 'semaphore')}
    wanted = {'self': 'hangs: deadlock: .*which it already holds', 'spin': 'does not sleep', 'read': 'is stopped by a signal'}
    try:
        programs['read'].send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            got = run('waits')
            lacks = [way for way, text in wanted.items() if not matches(f'^{programs[way].pid} hangs {text}', got.stdout)]
            if not lacks or time.monotonic() > deadline:
                break
        assert got.returncode == 0 and not lacks and not matches(f'^{programs["semaphore"].pid} ', got.stdout), (lacks, got)
    finally:
        for program in programs.values():
            program.kill()
            program.wait()
            program.stdout.close()


def check_container(folder):
    """The words of locks in a container have thread ids of the container's namespace.  Returns False if no namespace can be made."""
    # pylint: disable-next=consider-using-with
    program = subprocess.Popen(['unshare', '--pid', '--fork', '--kill-child', hangs, 'abba'], stdout=subprocess.PIPE, text=True, cwd=folder)
    try:
        if program.stdout.readline() != 'ready\n':
            return False
        with open(f'/proc/{program.pid}/task/{program.pid}/children', encoding='ascii') as children:
            check(children.read().split()[0], 'abba', True)
        return True
    finally:
        program.kill()
        program.wait()
        program.stdout.close()


def check_cut(core, folder):
    """For a core dump that is cut at any place, weft prints an answer or one line of error, and never crashes."""
    with open(core, 'rb') as file:
        whole = file.read()
    cut = os.path.join(folder, 'cut')
    for size in (0, 1, 63, 64, 100, 1000, 3000, 10000, len(whole) // 2, len(whole) - 1):
        with open(cut, 'wb') as file:
            file.write(whole[:size])
        got = run('waits', cut)
        assert got.returncode in (0, 2) and len(got.stderr.splitlines()) <= 10, (size, got)


counts = {'processes': 0, 'cores of gcore': 0, 'cores of the kernel': 0}
for name in ALL_WAYS:
    with tempfile.TemporaryDirectory() as place:
        check_way(name, place, counts)
if ALL_WAYS is WAYS:
    with tempfile.TemporaryDirectory() as place:
        check_list(place)
        print('in a namespace' if check_container(place) else 'without namespaces', end=', ')
print(', '.join(f'{count or "no"} {what}' for what, count in counts.items()))
