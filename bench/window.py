#!/usr/bin/env python3
# window.py: latencies of a window that is operated as by a user.  SPDX-License-Identifier: ISC
"""window.py [--shown] WEFT-VIEW TRACE...

Prints a line of JSON for each trace.  first_ms: time from the command to the first frame.  frames: number of frames, with median_ms
and late_ms (99th percentile) of draw list and drawing.  memory: peak in bytes.  away_ms: for each operation the longest turn of the
main loop, which blocks the user, without the CPU time that other programs used meanwhile.
With --shown prints only the memory, once the trace and its findings are shown."""

import json
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'gtk'))
from person import App, under_a_desktop  # noqa: E402

under_a_desktop()
ROUNDS = 12


def peak(process):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmHWM'))


def move(app):
    viewer = app.settled()
    x, y = viewer['x'] + viewer['width'] / 3, viewer['y'] + viewer['height'] / 2
    for turn in range(ROUNDS):
        for _ in range(3):
            app.wheel(x, y, 4)
        app.drag(x, y, 150 if turn % 2 else -150, 80 if turn % 2 else -60)
    for _ in range(3 * ROUNDS):
        app.wheel(x, y, 5)
    app.settled()


def point(app):
    """Opens the panel, and moves and clicks the pointer."""
    viewer = app.settled()
    x, y = viewer['x'] + viewer['width'] / 4, viewer['y'] + viewer['height'] / 2
    app.key('F9')
    app.settled()
    for step in range(10):
        app.at(x + 7 * step, y + 11 * step)
    app.click(x, y)
    app.click(x, y, times=2)
    app.settled()


def explain(app):
    """Opens the list of findings, its first finding, and the explanation of the promise there."""
    app.key('e')
    app.settled()
    app.key('Return')
    app.settled()
    app.key('Escape')
    app.key('y')
    app.settled()


def search(app, text):
    app.key('slash')
    app.until('the search bar', lambda w: w['finding'] and w['typing'])
    app.key('ctrl+a')
    app.type(text)
    app.until('all was searched', lambda w: w['viewers'][0]['search'] == text and not w['viewers'][0]['searching'])
    app.key('Return', 'Return')
    app.settled()


def reload(app):
    before = app.window()['loads']
    app.key('F5')
    app.until('it was read', lambda w: w['loads'] > before and not w['loading'] and w['explained'])
    app.settled()


def follow(app, trace):
    """Changes the trace's times, as a writer does, and follows it."""
    for path in [trace] + ([os.path.join(trace, name) for name in os.listdir(trace)] if os.path.isdir(trace) else []):
        os.utime(path)
    before = app.until('it has changed', lambda w: w['live'])['loads']
    app.press('Follow')
    app.until('it is read', lambda w: w['follows'] and not w['live'] and w['loads'] > before and w['explained'])
    app.settled()


def longest(turns, begin, end):
    return max((took - queued for at, took, _, queued in turns if begin <= at < end), default=0)


def measure(view, trace):
    folder = os.environ['WEFT_TEST_DESKTOP']
    times, own = os.path.join(folder, f'times-{App.count}'), os.path.join(folder, 'trace')
    (shutil.copytree if os.path.isdir(trace) else shutil.copyfile)(trace, own)
    phases = []

    def phase(name):
        phases.append((name, time.monotonic() * 1e6))
    begin = time.monotonic()
    phase('reading, the first frame')
    with App(view, own, width=1280, height=800, env={'WEFT_VIEW_TIMES': times}) as app:
        app.shown()
        phase('finding out what went wrong')
        app.until('what went wrong is known', lambda w: w['explained'])
        phase('panning and zooming')
        move(app)
        memory = peak(app.process)
        phase('pointing, with the side panel')
        point(app)
        phase('listing what went wrong')
        explain(app)
        phase('searching for few, typed')
        search(app, '1234')
        phase('searching for most, typed')
        search(app, 'longer:1us')
        app.key('Escape', 'Escape')
        phase('F5')
        reload(app)
        phase('following what changes')
        follow(app, own)
        phase('closing')
    phase('')
    shutil.rmtree(own) if os.path.isdir(own) else os.unlink(own)
    with open(times, encoding='ascii') as file:
        lines = [line.split() for line in file]
    turns = [tuple(map(float, line[1:])) for line in lines if line[0] == 'turn']
    frames = sorted(float(line[1]) for line in lines if line[0] == 'frame')
    first = next(int(line[1]) for line in lines if line[0] == 'first') / 1e6
    return {'first_ms': (first - begin) * 1000, 'frames': len(frames), 'median_ms': frames[len(frames) // 2],
            'late_ms': frames[len(frames) * 99 // 100], 'memory': memory,
            'away_ms': {name: longest(turns, at, until_when) for (name, at), (_, until_when) in zip(phases, phases[1:])}}


def shown(view, trace):
    with App(view, trace, width=1280, height=800) as app:
        app.until('what went wrong is known', lambda w: w['explained'])
        return {'memory': peak(app.process)}


only_shown = sys.argv[1] == '--shown'
if only_shown:
    del sys.argv[1]
    measure = shown
for path in sys.argv[2:]:
    print(json.dumps(measure(os.path.abspath(sys.argv[1]), path)), flush=True)
