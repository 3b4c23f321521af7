#!/usr/bin/env python3
# babeltrace_test.py: babeltrace2 and weft agree on a native trace.  SPDX-License-Identifier: ISC
"""babeltrace_test.py WEFT PROGRAM [ARGUMENT...]

Records PROGRAM and holds `babeltrace2` against `weft events`: the same events in the same order, with the same fields and the same
times.  Exit status 77 (skipped) where there is no babeltrace2."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

weft, program = sys.argv[1], sys.argv[2:]
if not shutil.which('babeltrace2'):
    print('skipped: no babeltrace2')
    sys.exit(77)

LINE = re.compile(r'\[(\d+)\.(\d{9})\] .*? (\w+): \{ (mark = .*?) \}, \{ ?(.*?) ?\}$')
FIELD = re.compile(r'(\w+) = (?:\( "((?:[^"\\]|\\.)*)" : container = (\d+) \)|"((?:[^"\\]|\\.)*)"|(-?\d+))')


def fields_of(text):
    """Names and values; an enumeration is its label, a number a number."""
    out = {}
    for name, label, _, quoted, number in FIELD.findall(text):
        out[name] = int(number) if number else label or re.sub(r'\\(.)', r'\1', quoted)
    return out


with tempfile.TemporaryDirectory() as tmp:
    trace = os.path.join(tmp, 'trace')
    subprocess.run(program, check=True, env=dict(os.environ, WEFT_TRACE=trace))
    theirs = subprocess.run(['babeltrace2', '--clock-seconds', '--no-delta', trace], check=True, capture_output=True, text=True)
    ours = subprocess.run([weft, 'events', '--json', '--absolute', trace], check=True, capture_output=True, text=True)

wanted, strings, sites = [], {}, {}
if theirs.stderr:
    sys.exit('babeltrace2 complains: ' + theirs.stderr)
for line in theirs.stdout.splitlines():
    match = LINE.fullmatch(line)
    if not match:
        sys.exit('babeltrace2 says: ' + line)
    seconds, ns, name, _, payload = match.groups()
    fields = fields_of(payload)
    if name == 'string':
        strings[fields['key']] = fields['text']
    elif name == 'site':
        sites[fields['key']] = {'file': fields['file'], 'line': fields['line'], 'function': fields['function']}
    elif name != 'thread':
        wanted.append((int(seconds + ns), name, fields))

failures = 0
events = [json.loads(line) for line in ours.stdout.splitlines()]
if len(events) != len(wanted):
    sys.exit(f'{len(events)} events, babeltrace2 has {len(wanted)}')
for event, (time, name, fields) in zip(events, wanted):
    # Texts and sites stand in the definitions stream, and are named by a key.
    theirs = {}
    for field, value in fields.items():
        if field.endswith('_key'):
            theirs[field[:-len('_key')]] = strings[value]
        elif field == 'site':
            theirs['site'] = sites[value] if value else None
        elif field == 'since':
            theirs['since_ns'] = value
        elif name == 'idle':
            theirs['why'] = ['wait', 'suspend', 'hibernate'][value]
        else:
            theirs[field] = value
    theirs.update(time_ns=time, op=name, stream=event['stream'])
    if theirs != event:
        failures += 1
        print('babeltrace2:', theirs)
        print('weft:       ', event)
print(f'{len(events)} events, {failures} differ')
sys.exit(failures != 0 or not events)
