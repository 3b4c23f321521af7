#!/usr/bin/env python3
# window.py: how long a window lets one wait, driven as by a person.  SPDX-License-Identifier: ISC
"""window.py WEFT-VIEW TRACE...

For each trace a line: ms from the command to the first frame; frames drawn, their median and 99th percentile in ms (draw list and drawing);
bytes of memory at the peak."""

import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'gtk'))
from person import App, under_a_desktop, until  # noqa: E402

under_a_desktop()
ROUNDS = 12


def peak(process):
    with open(f'/proc/{process.pid}/status', encoding='ascii') as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith('VmHWM'))


def measure(view, trace):
    times = os.path.join(os.environ['WEFT_TEST_DESKTOP'], f'times-{App.count}')
    begin = time.monotonic()
    with App(view, trace, width=1280, height=800, env={'WEFT_VIEW_TIMES': times}) as app:
        app.shown()
        viewer = app.settled()
        x, y = viewer['x'] + viewer['width'] / 3, viewer['y'] + viewer['height'] / 2
        for turn in range(ROUNDS):
            for _ in range(3):
                app.wheel(x, y, 4)
            app.drag(x, y, 150 if turn % 2 else -150, 80 if turn % 2 else -60)
        for _ in range(3 * ROUNDS):
            app.wheel(x, y, 5)
        until('all was done', lambda: app.settled(), app)
        memory = peak(app.process)
    with open(times, encoding='ascii') as file:
        lines = [line.split() for line in file]
    first = next(int(value) for key, value in lines if key == 'first') / 1e6
    frames = sorted(float(value) for key, value in lines if key == 'frame')
    return (first - begin) * 1000, len(frames), frames[len(frames) // 2], frames[len(frames) * 99 // 100], memory


for path in sys.argv[2:]:
    print(*measure(os.path.abspath(sys.argv[1]), path), flush=True)
