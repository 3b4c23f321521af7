#!/usr/bin/env python3
# compare_reference.py: compares a model with that of the reference viewer.  SPDX-License-Identifier: ISC
"""compare_reference.py SHARED COMMAND...

Runs COMMAND, which is `weft dump --json`, on SHARED/traces/net.ctf and compares the model, promise by promise, with
SHARED/traces/net.reference-dump.tsv.  Then checks known values of log-x86.sexp.  Exits with status 77 (skipped) if SHARED does not exist."""
import json
import os
import subprocess
import sys
from decimal import Decimal

shared, command = sys.argv[1], sys.argv[2:]
shared = os.environ.get('WEFT_SHARED', shared)
traces = os.path.join(shared, 'traces')
if not os.path.isdir(traces):
    print('skipped: no', traces)
    sys.exit(77)


def ns(seconds):
    return int(Decimal(seconds) * 10**9)




def model(name):
    run = subprocess.run(command + [os.path.join(traces, name)], check=True, stdout=subprocess.PIPE)
    return [json.loads(line) for line in run.stdout.splitlines()]


promises, counters, pauses = {}, {}, []
span = None
for entry in model('net.ctf'):
    if 'promise' in entry:
        promises[entry['promise']] = entry
    elif 'counter' in entry:
        counters[entry['counter']] = entry['values']
    elif 'pause' in entry:
        pauses.append((entry['start_ns'], entry['end_ns']))
    elif 'trace' in entry:
        span = entry['trace']

differences = compared = 0


def differ(what, ours, theirs):
    global differences
    differences += 1
    print(f'{what}: ours {ours!r}, reference {theirs!r}')


def check(what, ours, theirs):
    global compared
    compared += 1
    if ours != theirs:
        differ(what, ours, theirs)


def check_ns(what, ours, theirs):
    global compared
    compared += 1
    if abs(ours - theirs) > 2:
        differ(what, ours, theirs)


def check_series(what, ours, theirs):
    check(what + ' values', [v for _, v in ours], [v for _, v in theirs])
    for (t, _), (s, _) in zip(ours, theirs):
        check_ns(what + ' time', t, ns(s))


seen = set()
for line in open(os.path.join(traces, 'net.reference-dump.tsv'), encoding='utf-8'):
    cells = line.rstrip('\n').split('\t')
    fields = dict(cell.split('=', 1) for cell in cells[1:] if '=' in cell)
    if cells[0] == 'gc':
        pause = pauses.pop(0)
        check_ns('gc start', pause[0], ns(cells[1]))
        check_ns('gc end', pause[1], ns(cells[2]))
    elif cells[0] == 'counter':
        name = json.loads(fields['name'])
        check_series(f'counter {name}', counters.pop(name), json.loads(fields['values'], parse_float=Decimal))
    elif cells[0] == 'thread':
        tid = int(fields['tid'])
        seen.add(tid)
        ours, what = promises[tid], f'promise {tid}'
        check(what + ' kind', ours['kind'], 'system' if tid == -1 else fields['type'])
        check_ns(what + ' start', ours['start_ns'], ns(fields['start']))
        check_ns(what + ' end', ours['end_ns'], ns(fields['end']))
        became = None if fields['becomes'] == '-' else int(fields['becomes'])
        failure = None if fields['failure'] == '-' else json.loads(fields['failure'])
        resolved = fields['resolved'] == 'true'
        end = 'became' if became is not None else 'failed' if failure else 'resolved' if resolved else 'pending'
        check(what + ' end', ours['end'], end)
        check(what + ' became', ours['became'], became)
        check(what + ' failure', ours['failure'], failure)
        check(what + ' creation drawn', ours['creation_drawn'], fields['show_creation'] == 'true')
        check_series(what + ' label', ours['labels'], json.loads(fields['labels'], parse_float=Decimal))
        links = {'resolve': 'resolve', 'read': 'read', 'await': 'try_read', 'signal': 'signal'}
        check(what + ' links', ours['links'], {mine: int(fields[theirs]) for mine, theirs in links.items()})
        check(what + ' running intervals', len(ours['running']), int(fields['activations']))
check('promises', sorted(promises), sorted(seen))
check('number of promises', span['promises'], len(seen) - 1)
check('counters that the reference has not', sorted(counters), [])
check('pauses that the reference has not', pauses, [])

# Known values of log-x86.sexp.
log = [entry for entry in model('log-x86.sexp') if 'promise' in entry]
check('log-x86.sexp: merges', sum(entry['end'] == 'became' for entry in log), 562)
check('log-x86.sexp: creations', sum(entry['kind'] not in ('preexisting', 'system') for entry in log), 4203)
check('log-x86.sexp: resolutions', sum(entry['links']['resolve'] for entry in log), 3626)
print(f'{compared} facts of {len(seen)} promises compared, {differences} differ')
sys.exit(differences != 0)
