"""off_stretches.py: the intervals in which OS threads were off CPU, as babeltrace2 lists the kernel's packets of a trace.  SPDX-License-Identifier: ISC"""

import re
import shutil
import subprocess

LINE = re.compile(r'^\[(\d+)\.(\d+)\].* kernel_(off|taken|wake|on): .*\{ tid = (\d+)(?:, why = (\d+), call = \d+)?(?:, by = (\d+))? \}$')


def has_babeltrace2():
    return shutil.which('babeltrace2') is not None


def first_ns(trace):
    """Returns the time of the program's first event, on the clock of babeltrace2."""
    out = subprocess.run(['babeltrace2', '--clock-seconds', trace], capture_output=True, text=True, check=True, timeout=120).stdout
    seconds, rest = re.search(r'^\[(\d+)\.(\d+)\](?!.* kernel_)', out, re.M).groups()
    return int(seconds) * 10**9 + int(rest)


def off_stretches(trace):
    """Returns [(tid, since, ready, until, 'preempted', 'blocked' or 'disk')] by time, in ns since the first event.
    An interval that is open at the end lasts until the last event of the kernel."""
    out = subprocess.run(['babeltrace2', '--clock-seconds', trace], capture_output=True, text=True, check=True, timeout=120).stdout
    found, off, time = [], {}, 0
    begin = first_ns(trace)
    for line in out.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        time, op, tid = int(match[1]) * 10**9 + int(match[2]) - begin, match[3], int(match[4])
        if op in ('off', 'taken'):
            off[tid] = [time, time if op == 'taken' else None, 'preempted' if op == 'taken' else {'1': 'blocked', '2': 'disk'}.get(match[5], 'preempted')]
        elif op == 'wake' and tid in off and off[tid][1] is None:
            off[tid][1] = time
        elif op == 'on' and tid in off:
            since, ready, why = off.pop(tid)
            found.append((tid, since, time if ready is None else ready, time, why))
    found += [(tid, since, time if ready is None else ready, time, why) for tid, (since, ready, why) in off.items()]
    return sorted(found, key=lambda f: f[:2])
