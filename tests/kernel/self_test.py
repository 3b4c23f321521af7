#!/usr/bin/env python3
"""What weft explain says of a slow callback without any rights: how long it had a processor, waited for one, was blocked.

	self_test.py SLOW WEFT

Each scene of slow.c, recorded as root, if that is who runs this, and as an ordinary user.  The program says itself what the kernel counted
within the callback; so a machine that does other things too changes what is right.

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, closed_to_others, expect, fail

SLACK_MS = 1.2  # of earlier rounds, which the recorder may count in
ADVICE = {'on': 'cut its work', 'memory': 'keep and use again the memory', 'waiting': 'run less beside it',
          'blocked': 'call what blocks on another OS thread', 'read': 'pages that were read from a disk', 'unknown': 'a machine with less to do',
          'pause': 'what pauses for so long'}
SPAN = r'([\d.]+) (us|ms|s)'


def ms(text, pattern):
    found = re.search(pattern.replace('SPAN', SPAN), text)
    return float(found[1]) * {'us': 0.001, 'ms': 1, 's': 1000}[found[2]] if found else 0.0


def near(got, want, whole, what):
    if abs(got - want) > whole / 100 + SLACK_MS:
        fail(f'{what}: {got}, not {want}')


def crowd(slow, count):
    """Others on the one processor that this process and its children have from now on."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return [subprocess.Popen([slow, 'hog']) for _ in range(count)]


def look(scene, stall, truth):
    """Whether what is told of the stall is what the program counted."""
    wall, cpu = truth['wall'] / 1e6, truth['cpu'] / 1e6
    title, off, part = stall['title'], wall - cpu, None
    if 'a pause (' in title:
        expect(scene in ('nanosleep', 'mutex'), True, f'{scene}: {title}')
        expect(scene[:5] in title, True, title)
        return 'pause'
    whole = ms(title, 'ran for SPAN')
    if whole < wall * 0.99:
        fail(f'{scene}: {title}: not {wall} ms')
    is_exact = whole < wall * 1.01 + SLACK_MS  # else it lost the processor right before or behind what the program measured
    parts = {'on': ms(title, 'had a processor for SPAN'), 'waiting': ms(title, ', waited for one for SPAN'), 'blocked': ms(title, 'was blocked for SPAN'),
             'unknown': ms(title, 'blocked or waited for one for SPAN')}
    if ', of which' not in title:
        if off > wall / 8 + SLACK_MS:
            fail(f'{scene}: {off} ms of {wall} without a processor are not told: {title}')
        return 'memory' if scene == 'touch' else 'on'
    if abs(sum(parts.values()) - whole) > whole / 100:
        fail(f'{scene}: the parts are not the whole: {title}')
    if is_exact:
        near(parts['on'], cpu, wall, f'{scene}: {title}: on a processor')
    if not truth['given'] and not truth['taken']:
        return None  # the host of this machine took the processor away, which nobody sees here
    lost = 'waiting' if not truth['given'] else 'blocked' if not truth['taken'] else None
    if lost and is_exact:
        near(parts[lost], off, wall, f'{scene}: {title}: {lost}')
        part = lost if parts[lost] > parts['on'] * 1.05 else 'on' if parts['on'] > parts[lost] * 1.05 else None
    if part == 'on' and scene == 'touch':
        return 'memory'
    return 'read' if part == 'blocked' and scene == 'mapped' else part


def run(slow, weft, folder, scene, options):
    recording = Recording(weft, os.path.join(folder, scene), [slow, scene], cwd=folder, **options)
    if recording.status == 77:
        print(f'{scene}: no file can be written here')
        return
    expect(recording.status, 0, f'{scene}: {recording.err}')
    words = recording.out.split()
    truth = {words[i].decode(): int(words[i + 1]) for i in range(0, 10, 2)}
    trace = recording.trace('kernel_slow')
    stalls = [line for line in trace.findings().get('stall', []) if '50 ms' in line['title']]
    if scene == 'healthy':
        expect(trace.alarms(), [], 'alarms about a healthy program beside a busy neighbour')
        told = [line['title'] for line in trace.findings().get('stall', []) if 'waited for one' in line['title']]
        expect(bool(told), True, 'the neighbours are told of')
        print(f'healthy: no alarm: {told[0]}')
        return
    if truth['wall'] < 10.5e6 or scene in ('cold', 'mapped', 'fsync') and not truth['given']:
        print(f'{scene}: this disk does not keep anybody waiting')
        return
    if len(stalls) != 1:
        fail(f'{scene}: {stalls}')
    part = look(scene, stalls[0], truth)
    if part and ADVICE[part] not in stalls[0]['next']:
        fail(f'{scene}: {part}: {stalls[0]["title"]}: {stalls[0]["next"]}')
    print(f'{scene}: {part}: {stalls[0]["title"]}')


slow, weft = map(os.path.abspath, sys.argv[1:3])
users = [{}] if os.getuid() else [{}, {'user': 65534, 'group': 65534, 'extra_groups': []}]
if closed_to_others(weft):
    print(f'skipped: as another user, who cannot enter {closed_to_others(weft)}')
    users.pop()
for options in users:
    with tempfile.TemporaryDirectory(prefix='weft-kernel-') as folder:
        os.chmod(folder, 0o777)
        for scene in ('spin', 'fsync', 'cold', 'mapped', 'touch', 'nanosleep', 'mutex'):
            run(slow, weft, folder, scene, options)
        kept = os.sched_getaffinity(0)
        for scene, count in (('crowded', 1), ('healthy', 8)):
            hogs = crowd(slow, count)
            try:
                run(slow, weft, folder, scene, options)
            finally:
                for hog in hogs:
                    hog.kill()
                    hog.wait()
                os.sched_setaffinity(0, kept)
