#!/usr/bin/env python3
# babeltrace_test.py: babeltrace2 and weft agree on a native trace.  SPDX-License-Identifier: ISC
"""babeltrace_test.py WEFT [,OPTION...] PROGRAM [ARGUMENT...]

Records PROGRAM with the options in WEFT_TRACE, and compares `weft events` with `babeltrace2`: both must print the same events with the same fields
   and times in the same order; only events of the same ns may differ in order.  Exits with status 77 (skipped) if babeltrace2 is missing."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

weft, program = sys.argv[1], sys.argv[2:]
options = program.pop(0) if program[0].startswith(',') else ''
if not shutil.which('babeltrace2'):
    print('skipped: no babeltrace2')
    sys.exit(77)

LINE = re.compile(r'\[(\d+)\.(\d{9})\] .*? (\w+): \{ (mark = .*?) \}, \{ ?(.*?) ?\}$')
FIELD = re.compile(r'(\w+) = (?:\( "((?:[^"\\]|\\.)*)" : container = (\d+) \)|"((?:[^"\\]|\\.)*)"|(-?\d+))')


def unescaped(match):
    what = match.group(1)
    return chr(int(what[1:], 16)) if len(what) == 3 else {'t': '\t', 'n': '\n'}.get(what, what)


def fields_of(text):
    """Returns {name: value} of the fields; the value of an enumeration is its label."""
    out = {}
    for name, label, _, quoted, number in FIELD.findall(text):
        out[name] = int(number) if number else label or re.sub(r'\\(x[0-9a-f]{2}|.)', unescaped, quoted)
    return out


with tempfile.TemporaryDirectory() as tmp:
    trace = os.path.join(tmp, 'trace')
    subprocess.run(program, check=True, env=dict(os.environ, WEFT_TRACE=trace + options))
    theirs = subprocess.run(['babeltrace2', '--clock-seconds', '--no-delta', trace], check=True, capture_output=True, text=True)
    ours = subprocess.run([weft, 'events', '--json', '--absolute', trace], check=True, capture_output=True, text=True)

wanted, strings, sites, modules = [], {}, {}, {0: None}
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
    elif name == 'module':
        modules[fields['module']] = fields['path']
    elif name == 'place':
        sites[fields['key']] = {'file': '', 'line': 0, 'function': '', 'module': modules[fields['module']], 'offset': fields['offset']}
    elif name not in ('thread', 'form', 'colour') and fields.get('what') != 'definition':
        wanted.append((int(seconds + ns), name, fields))

failures = 0
events = [json.loads(line) for line in ours.stdout.splitlines()]
if len(events) != len(wanted):
    sys.exit(f'{len(events)} events, babeltrace2 has {len(wanted)}')


def told_alike(name, fields, time):
    """Returns an event of babeltrace2 as `weft events --json` prints it, without its stream."""
    out = {'time_ns': time, 'op': name}
    for field, value in fields.items():
        # These fields of `level` are only in the trace of tests/wire/everything.c, and weft does not print them.
        if name == 'level' and field in ('unit', 'remark', 'remark_key', 'cut'):
            continue
        # babeltrace2 prints the key of a text or a site, which the definitions stream maps to its content.
        if field.endswith('_key'):
            out[field[:-len('_key')]] = strings[value]
        elif field == 'site':
            out['site'] = sites[value] if value else None
        elif field == 'cut':
            # The number of bytes that are missing of a cut text; weft prints only an ellipsis.
            if not value or not any(str(text).endswith('\u2026') for text in fields.values()):
                sys.exit(f'{value} bytes are said to be missing of {fields}')
        elif field == 'since':
            out['since_ns'] = value
        elif name == 'idle':
            out['why'] = ['wait', 'suspend', 'hibernate'][value]
        else:
            out[field] = value
    return out


def comparable(event):
    site = event.get('site')
    if site and 'offset' in site:
        # babeltrace2 prints only module and offset of a site, since weft reads the function from the program's file.
        event = {**event, 'site': {'module': site['module'], 'offset': site['offset']}}
    return sorted((key, str(value)) for key, value in event.items() if key not in ('stream', 'thread'))


first = 0
while first < len(events):
    end = first + 1
    while end < len(events) and events[end]['time_ns'] == events[first]['time_ns']:
        end += 1
    theirs = sorted(comparable(told_alike(name, fields, time)) for time, name, fields in wanted[first:end])
    mine = sorted(map(comparable, events[first:end]))
    if theirs != mine:
        failures += 1
        if failures < 10:
            print('babeltrace2:', theirs)
            print('weft:       ', mine)
    first = end
print(f'{len(events)} events, {failures} differ')
sys.exit(failures != 0 or not events)
