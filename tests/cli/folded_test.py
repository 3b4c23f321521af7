#!/usr/bin/env python3
"""folded_test.py WEFT GENERATE ARP: weft convert --to=folded gives the same times as weft dump of the same trace.  SPDX-License-Identifier: ISC"""

import json
import os
import subprocess
import sys
import tempfile

weft, generate, arp = map(os.path.abspath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix='folded-')


def run(*words):
    return subprocess.run([weft, *words], capture_output=True, check=True, timeout=120).stdout.decode()


def stacks(trace, by):
    found = {}
    for line in run('convert', '--to=folded', f'--by={by}', trace, '-o', '-').splitlines():
        stack, ns = line.rsplit(' ', 1)
        assert stack not in found and int(ns) > 0, line
        found[stack] = int(ns)
        frames = stack.split(';')
        assert len(frames) <= 64 and all(frames) and all(a != b for a, b in zip(frames, frames[1:])), line
    return found


def lifetime_ns(promise, trace_end):
    return (trace_end if promise['end'] == 'pending' else promise['end_ns']) - promise['start_ns']


for shape in ('random', 'short', 'tail', 'alive', 'chain', 'deep', 'waits', 'flock', 'crowd'):
    trace = os.path.join(folder, shape)
    subprocess.run([generate, shape, '--events=4k', '--format=native', '-o', trace], check=True)
    dump = [json.loads(line) for line in run('dump', '--json', '--no-simplify', trace).splitlines()]
    promises = [d for d in dump if 'promise' in d]
    ran = {p['promise']: sum(b - a for a, b in p['running']) for p in promises}
    assert sum(stacks(trace, 'run').values()) == sum(ran.values()), shape
    # A promise that awaits and reads no other promise waits for something else while it does not run.  The waits for a condition count for the condition.
    waited = sum(max(0, lifetime_ns(p, dump[0]['trace']['end_ns']) - ran[p['promise']]) for p in promises
                 if p['promise'] >= 0 and p['end'] != 'became' and p['kind'] != 'condition' and not p['links']['read'] and not p['links']['await'])
    found = sum(stacks(trace, 'wait').values())
    assert found > waited if any(p['kind'] == 'condition' for p in promises) else found == waited, shape

# If two promises wait for each other, and one of them for a third, each promise is in the stack once.
# A stack has at most 64 frames: in a chain of 70 waiters, the time of deeper waits counts for the 64th.
trace = os.path.join(folder, 'circle.sexp')
ops = [f'Creates -1 {p} wait' for p in range(1, 174)] + [f'Label {p} {word}' for p, word in ((1, 'left'), (2, 'right'), (3, 'answer'))]
ops += ['Reads 1 2', 'Reads 2 1', 'Reads 2 3'] + [f'Label {p} {"ab"[p % 2]}' for p in range(104, 174)] + [f'Reads {p} {p + 1}' for p in range(104, 173)]
with open(trace, 'w', encoding='ascii') as file:
    file.writelines(f'((time 100.{at:06d}000)(op({op})))\n' for at, op in enumerate(ops))
waits = stacks(trace, 'wait')
assert 'left;right;answer' in waits and ';'.join('ab' * 32) in waits, waits

trace = os.path.join(folder, 'arp')
subprocess.run([arp, 'good'], env={**os.environ, 'WEFT_TRACE': trace}, check=True, stdout=subprocess.DEVNULL, timeout=60)
waits = stacks(trace, 'wait')
answer = [stack for stack in waits if stack.startswith('main;bind at ip_write') and stack.endswith(';ARP response')]
assert len(answer) == 1 and 1e6 < waits[answer[0]] < 100e9, waits
assert any(stack.endswith(';port-*') for stack in waits), waits
for words, why in ((['--by=sleep'], b'--by=sleep; use run, wait, function, allocated or held'), (['--flows=all'], b'--flows needs --to=perfetto')):
    done = subprocess.run([weft, 'convert', '--to=folded', *words, trace, '-o', '-'], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, b'') and why in done.stderr, done
