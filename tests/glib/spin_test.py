#!/usr/bin/env python3
"""A spin in a loop of GLib is found, and its trace has a bounded size; a loop under load does not spin.

	spin_test.py SPIN WEFT

SPDX-License-Identifier: ISC"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, expect, fail

LATE = '2s'
SPINS = {'idle': 'handle', 'fd': 'poll', 'child': 'poll', 'channel': 'poll', 'source': 'poll'}
COUNTS = (20000, 182000)


def record(folder, what, count):
    recording = Recording(weft, os.path.join(folder, f'{what}-{count}'), [spin, what, str(count)])
    expect((recording.status, recording.out), (0, b'0 left\n'), f'what {what} says')
    return recording.trace('glib_spin')


def size(trace):
    return sum(entry.stat().st_size for entry in os.scandir(trace.path))


spin, weft = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
    for what, kind in SPINS.items():
        few, many = (record(folder, what, count) for count in COUNTS)
        for trace, count in ((few, COUNTS[0]), (many, COUNTS[1])):
            found = trace.findings(LATE)
            expect(list(found), ['spin'], f'what is found in {what}')
            expect([line['promise'] for line in found['spin']], [trace.promise(kind, '')['promise']], f'who spins in {what}')
            expect(trace.lost(), 0, 'events lost')
        # A busy machine makes long iterations, each of which is recorded; their number depends on the time, not on the dispatches.
        ops = [[event['op'] for event in trace.ask('events', '--json')] for trace in (few, many)]
        events = [len(of) - of.count('detail') for of in ops]
        if events[1] > 1000 or events[1] > events[0] + 100:
            fail(f'{what}: {events} events for {COUNTS} dispatches')
        sizes = [size(trace) - 64 * of.count('detail') for trace, of in zip((few, many), ops)]
        print(f'{what}: {COUNTS[1]} dispatches are {events[1]} events, {sizes[1]} bytes; {COUNTS[0]} are {sizes[0]} bytes')
        if sizes[1] > sizes[0] + 4096:
            fail(f'{what}: {sizes} bytes for {COUNTS} dispatches')
    # A source that is replaced by another one each time: later ones are one promise.
    for what, kind in ('again', 'handle'), ('later', 'timer'):
        trace = record(folder, what, COUNTS[1])
        found = trace.findings(LATE)
        expect(list(found), ['spin'], f'what is found in {what}')
        expect([line['promise'] for line in found['spin']], [trace.promises(kind)[-1]['promise']], f'who spins in {what}')
        events = sum(event['op'] != 'detail' for event in trace.ask('events', '--json'))
        if events > 1000:
            fail(f'{what}: {events} events for {COUNTS[1]} dispatches')
    trace = record(folder, 'healthy', COUNTS[0])
    expect(trace.alarms(LATE), [], 'what is found in a loop under load')
    expect(sum(event['op'] == 'signal' for event in trace.ask('events', '--json')), COUNTS[0], 'dispatches of a loop under load')
