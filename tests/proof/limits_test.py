#!/usr/bin/env python3
"""limits_test.py PROGRAM WEFT: weft events, dump and render show ids, times and texts at the limits of their fields as limits.c recorded them.

SPDX-License-Identifier: ISC"""
import json
import os
import subprocess
import sys
import tempfile

program, weft = sys.argv[1:]
FIRST, COUNT = (1 << 32) - 500, 2000


def run(*command):
    result = subprocess.run(command, capture_output=True, check=False)
    if result.returncode or result.stderr:
        sys.exit(f'{command}: status {result.returncode}\n{result.stderr.decode(errors="replace")}')
    return result.stdout


def run_json(*command):
    # Decodes strictly, so the test fails if invalid UTF-8 of the trace is in the JSON.
    return [json.loads(line) for line in run(*command).decode('utf-8').splitlines()]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {got!r}, not {wanted!r}')


times, now = [], 1000000000
for i in range(COUNT):
    times.append(now)
    now += 1000
    now += {100: 1000, 400: (1 << 29) - 1, 410: 1 << 29, 420: (1 << 32) - 1, 430: 1 << 32, 440: (1 << 32) + 1, 600: 1 << 50, 800: -1500}.get(i, 0)
    # Times in a stream never go back: if the clock does, they stay the same until the clock has caught up.
for i in range(1, COUNT):
    times[i] = max(times[i], times[i - 1] + (1000 if i == 801 else 0))

with tempfile.TemporaryDirectory() as place:
    trace = os.path.join(place, 'trace')
    subprocess.run([program, 'odd'], check=True, env={**os.environ, 'WEFT_TRACE': trace})
    info, = run_json(weft, 'info', '--json', trace)
    events = run_json(weft, 'events', '--json', '--absolute', trace)
    expect('events that info counts', info['events'], len(events))
    origin = events[0]['time_ns'] - times[0]
    created = [e for e in events if e['op'] == 'create']
    expect('ids', [e['promise'] for e in created], [FIRST + i for i in range(COUNT)])
    for i, event in enumerate(created):
        expect(f'time of promise {i}', event['time_ns'] - origin, times[i])
        expect(f'creator of promise {i}', event['by'], FIRST + i - 1 if i else -1)
    expect('counter', [e['value'] for e in events if e['op'] == 'counter'], [(1 << 31) - 5 + i % 10 for i in range(COUNT)])

    labels = {e['promise'] - FIRST: e['text'] for e in events if e['op'] == 'label' and e['text'] != 'a label'}
    expect('labels besides the usual', sorted(labels), [100, 200, 300])
    if not (50000 < len(labels[100]) < 65536 and labels[100].endswith('x\u2026') and set(labels[100][:-1]) == {'x'}):
        sys.exit(f'the long label: {len(labels[100])} characters, ends in {labels[100][-5:]!r}')
    expect('a NUL', labels[200], 'before\x1aafter')
    expect('what is not UTF-8', labels[300].rstrip('\ufffd')[-4:].lstrip('\ufffd ')[:3] and labels[300].count('\ufffd') >= 3, True)

    dump = run_json(weft, 'dump', '--json', trace)
    promises = {p['promise']: p for p in dump if 'promise' in p}
    expect('promises', sorted(promises), [-1] + [FIRST + i for i in range(COUNT)])
    for i in range(COUNT):
        p = promises[FIRST + i]
        expect(f'start of {i}', p['start_ns'], times[i] - times[0])
        expect(f'creator of {i}', p['created_by'], FIRST + i - 1 if i else -1)
        expect(f'end of {i}', p['end'], 'resolved' if i % 2 else 'pending')
    svg = os.path.join(place, 'picture.svg')
    run(weft, 'render', trace, '-o', svg, '--find=before')
    with open(svg, encoding='utf-8') as file:
        expect('a picture', file.read().rstrip().endswith('</svg>'), True)
    for verb in ('stats', 'info', 'dump', 'events'):
        run(weft, verb, trace).decode('utf-8')
    mirage = os.path.join(place, 'mirage.ctf')
    subprocess.run([weft, 'convert', trace, '-o', mirage, '--to=mirage'], check=True, stderr=subprocess.DEVNULL)
    expect('promises in another format', {p['promise'] for p in run_json(weft, 'dump', '--json', mirage) if 'promise' in p}, set(promises))
print(f'{len(events)} events of {COUNT} promises, from id {FIRST}: all as recorded')
