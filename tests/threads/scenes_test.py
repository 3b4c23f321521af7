#!/usr/bin/env python3
"""The trace of a program without a runtime that weft knows shows when its OS threads work and sleep.

	scenes_test.py SCENES WEFT [uring]

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

from recorded import PATIENCE, Recording, expect, fail

scenes, weft = sys.argv[1:3]
MS = 1000000


def record(name, folder, out=b'done\n'):
    recording = Recording(weft, os.path.join(folder, name), [scenes, name])
    expect((recording.status, recording.out), (0, out), f'what {name} does')
    return recording


def test_recorded_threads_have_the_expected_sleeps_work_and_promises(folder):
    # Each kind of sleep is recorded as a sleep, and the time between sleeps as work.
    recording = record('ways', folder)
    trace = recording.trace('thread_scenes')
    main = trace.promise('thread', 'main')
    stretches = [(a[1], b[0]) for a, b in zip(main['running'], main['running'][1:])]
    slept = [end - begin for begin, end in stretches if end - begin >= 19 * MS]
    expect(len(slept), 11, f'sleeps in {stretches}')
    worked = [end - begin for begin, end in main['running'] if end - begin >= 4 * MS]
    expect(len(worked), 11, f'stretches of work in {main["running"]}')
    if b'no promises, only the activity' not in recording.err:
        fail(f'nobody says that there were no promises: {recording.err}')
    expect(trace.findings(), {}, 'what is found')

    # Sleeps that another OS thread ends: locks, a barrier, a C11 condition, a pipe, a socket.
    trace = record('helped', folder).trace('thread_scenes')
    running = trace.promise('thread', 'main')['running']
    stretches = [(a[1], b[0]) for a, b in zip(running, running[1:])]
    slept = [end - begin for begin, end in stretches if end - begin >= 29 * MS]
    worked = [end - begin for begin, end in running if end - begin >= 4 * MS]  # the first OS thread starts the recording
    if len(slept) < 7 or len(worked) < 6:
        fail(f'sleeps and stretches of work: {running}')
    others = trace.promises('thread', 'thread_scenes')
    expect((len(others), {p['end'] for p in others}), (7, {'resolved'}), 'OS threads of C11')
    if not all(any(b[0] - a[1] >= 29 * MS for a, b in zip(p['running'], p['running'][1:])) for p in others):
        fail(f'an OS thread of C11 does not sleep: {others}')

    if 'uring' in sys.argv[3:]:
        recording = Recording(weft, os.path.join(folder, 'uring'), [scenes, 'uring'])
        if recording.out:
            running = recording.trace('thread_scenes').promise('thread', 'main')['running']
            slept = [b[0] - a[1] for a, b in zip(running, running[1:])]
            if recording.status or len(slept) != 3 or min(slept[1:]) < 29 * MS:
                fail(f'waits for an io_uring: {running}')

    # OS threads that never sleep are recorded from start to end, and the thread that joins them waits.
    trace = record('threads', folder).trace('thread_scenes')
    main, named, unnamed = trace.promise('thread', 'main'), trace.promise('thread', 'worker'), trace.promise('thread', 'thread_scenes')
    for thread in (named, unnamed):
        expect((thread['created_by'], thread['end']), (main['promise'], 'resolved'), 'an OS thread')
        worked = sum(end - begin for begin, end in thread['running'])
        if worked < 20 * MS or worked < 0.9 * (thread['end_ns'] - thread['running'][0][0]):
            fail(f'it works for {worked} ns of {thread["running"]}')
    # In the picture, a thread with the name of the program is shown with its number.
    picture = os.path.join(folder, 'threads.svg')
    subprocess.run([weft, 'render', trace.path, '-o', picture, '--size=1280x1000'], check=True, timeout=PATIENCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(picture, encoding='utf-8') as file:
        expect(len(re.findall(r'>(?:worker|thread_scenes \d+)</text>', file.read())), 2, 'names of OS threads')
    awaited = [event for event in trace.ask('events', '--json') if event['op'] in ('await', 'read_later')]
    expect([event['op'] for event in awaited], ['await', 'read_later'] * 2, 'how main joins')
    if main['running'][1][0] < named['end_ns']:
        fail('main goes on before it has joined')

    # The owner of an awaited lock is known, and finished waits leave nothing.
    found = record('locks', folder).trace('thread_scenes').findings()
    told = ' '.join(line['text'] for line in found['deadlock'][0]['evidence'] if line['role'] == 'cause') if 'deadlock' in found else ''
    names = ['"writer" takes lock' in told, '"reader" takes lock' in told, found['deadlock'][0]['sure']] if told else []
    expect(names, [True, True, True], f'who holds what: {found}')
    trace = record('order', folder).trace('thread_scenes')
    expect(trace.alarms(), [], 'what is found where all ends well')
    ops = [event['op'] for event in trace.ask('events', '--json')]
    if ops.count('hold') < 10 or ops.count('hold') != ops.count('release'):
        fail(f'{ops.count("hold")} holds, {ops.count("release")} releases')

    # A poll of a descriptor that is always ready is no sleep, and adds few events.
    trace = record('ready', folder, b'100000\n').trace('thread_scenes')
    events = trace.ask('info', '--json')[0]['events']
    if events > 100:
        fail(f'{events} events of a wait that never sleeps')
    running = trace.promise('thread', 'main')['running']
    if running[-1][0] - running[-2][1] < 29 * MS:
        fail(f'the sleep after that is not seen: {running}')

    # A program without a loop and without OS threads has no trace.
    recording = record('plain', folder, b'3\n')
    expect(recording.traces(), [], 'traces of a plain program')
    if b'recorded nothing' not in recording.err:
        fail(f'nobody says why: {recording.err}')

    expect(len(record('forks', folder, b'4\n').all()), 2, 'traces of a program and its child')

    trace = record('many', folder).trace('thread_scenes')
    threads = trace.promises('thread')
    if len(threads) < 100 or not all(p['end'] == 'resolved' for p in threads if 'main' not in p['labels'][0][1]):
        fail(f'{len(threads)} OS threads, of which some have no end')
    expect(trace.promise('thread', 'main')['links']['read'], len(threads) - 1, 'OS threads that main joins')
    expect(trace.lost(), 0, 'events lost')


with tempfile.TemporaryDirectory(prefix='weft-base-') as place:
    test_recorded_threads_have_the_expected_sleeps_work_and_promises(place)
