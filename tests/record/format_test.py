#!/usr/bin/env python3
"""format_test.py ROOT COFFEE: docs/format.md describes the same headers and events as the metadata of a trace.  SPDX-License-Identifier: ISC"""
import os, re, subprocess, sys, tempfile

root, coffee = sys.argv[1:]
document = open(os.path.join(root, 'docs', 'format.md'), encoding='utf-8').read()
with tempfile.TemporaryDirectory() as scratch:
    trace = os.path.join(scratch, 'trace')
    subprocess.run([coffee], env={**os.environ, 'WEFT_TRACE': trace}, check=True, stdout=subprocess.DEVNULL)
    metadata = open(os.path.join(trace, 'metadata'), encoding='utf-8').read()


def rows(heading, columns):
    part = document.split(heading, 1)[1].split('\n## ', 1)[0]
    cells = [[c.strip() for c in line.strip('|').split('|')] for line in part.splitlines() if re.match(r'\| (0x)?\d', line)]
    return [c for c in cells if len(c) == columns]


types = {'u8': 'uint8_t', 'u16': 'uint16_t', 'u32': 'uint32_t', 'u64': 'uint64_t', 'id': 'int32_t', 'i64': 'int64_t', 'value': 'int32_t', 'string': 'string'}
enums = {'kind': 'kind_names', 'what': 'detail_names'}


def fields_of(cell):
    out = []
    for field in filter(None, cell.split(', ')):
        name, kind = field.split(': ')
        out.append(('uint16_t', name + '_key') if kind == 'text' else (f'enum {enums[name]}', name) if name in enums else (types[kind], name))
    return out


def declared(stream):
    found = {}
    for name, number, fields in re.findall(
            r'event { name = "(\w+)"; id = (\d+); stream_id = %d; fields := struct {(.*?)}; };' % stream, metadata):
        found[int(number)] = (name, re.findall(r'((?:enum )?\w+) (\w+);', fields))
    return found


events, definitions = declared(0), declared(1)
details = re.search(r'enum detail_names : uint8_t {(.*?)};', metadata, re.S).group(1)
assert [(int(n), name) for name, n in re.findall(r'"(\w+)" = (\d+)', details)] == [(int(n), name) for n, name, _, _ in rows('## Details', 4)]
told = {int(op): (name, fields_of(fields)) for op, name, fields, _ in rows('## Events', 4)}
assert told == {i: e for i, e in events.items() if i < 32}, (told, events)
assert {i & 31 for i in events} == set(told)
assert {int(i): (name, fields_of(fields)) for i, name, fields in rows('## Definitions', 3)} == definitions, definitions

offset, context = 0, re.search(r'struct packet_context {(.*?)};\nstruct', metadata, re.S).group(1)
names = ['magic', 'uuid', 'stream_id', 'stream_instance_id'] + re.findall(r'\w+ (\w+)(?:\[16\])?;', context)
header = rows('## The packet header', 4)
assert [h[2] for h in header] == names, names
for at, kind, name, _ in header:
    assert int(at) == offset, name
    bits, count = re.match(r'(?:u|char)(\d*)(?:\[(\d+)\])?', kind).groups()
    offset += int(bits or 8) // 8 * int(count or 1)
assert offset == 160
