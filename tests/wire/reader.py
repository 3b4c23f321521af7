#!/usr/bin/env python3
"""reader.py WEFT OPTIONS PROGRAM [ARGUMENT...]: a reader of the native format written from docs/format.md alone agrees with `weft events`.

It records PROGRAM with OPTIONS in WEFT_TRACE, and compares each field, each time and the name of each OS thread.  SPDX-License-Identifier: ISC"""
import collections, glob, json, os, re, struct, subprocess, sys, tempfile

HEADER = struct.Struct('<I16sIIIHHIQQQQQQQQQQQQQ16s')
OPS = {0: ('create', 'by:id promise:id kind:B site:H'), 1: ('read', 'promise:id input:id'), 2: ('resolve', 'by:id promise:id'),
       3: ('fail', 'by:id promise:id error:text'), 4: ('become', 'promise:id into:id'), 5: ('label', 'promise:id text:text'),
       6: ('counter_add', 'by:id change:id counter:text'), 7: ('run', 'promise:id'), 8: ('pause', 'duration_ns:id why:text'),
       9: ('signal', 'from:id promise:id'), 10: ('await', 'promise:id input:id'), 11: ('counter', 'by:id value:id counter:text'),
       12: ('read_later', 'promise:id input:id'), 13: ('signal_only', 'from:id promise:id'), 14: ('should_resolve', 'promise:id'),
       15: ('idle', 'why:B'), 16: ('resume', 'promise:id'), 17: ('note', 'promise:id text:text'),
       18: ('pending', 'by:id promise:id kind:B site:H since:Q label:text'), 19: ('pause_begin', 'why:text'), 20: ('pause_end', ''),
       21: ('still_awaits', 'promise:id input:id'), 22: ('belongs', 'promise:id owner:id'), 23: ('awaits_no_more', 'promise:id input:id'),
       24: ('hold', 'promise:id lock:id'), 25: ('release', 'promise:id lock:id'), 26: ('level', 'promise:id value:id'),
       27: ('sent', 'connection:id position:I'), 28: ('received', 'connection:id position:I'), 29: ('cancel', 'by:id promise:id'),
       30: ('detail', 'promise:id what:B value:q text:text')}
DEFINITIONS = {0: 'key:H text:string', 1: 'key:H line:I file:string function:string', 2: 'instance:I tid:Q name:string',
               3: 'module:H address:Q size:Q path:string build_id:string', 4: 'key:H module:H offset:Q', 5: 'class:B id:B name:string fields:string'}
VOCABULARY = open(os.path.join(os.path.dirname(__file__), '../../include/weft/vocabulary.h')).read()
KINDS, DETAILS = ({int(number): name for number, name in re.findall(r'X\(\w+, (\d+), "(\w+)"[,)]', VOCABULARY.split(table)[1].split('enum')[0])}
                  for table in ('define WEFT_KINDS', 'define WEFT_DETAILS'))


def packets(pattern):
    """Yields (header, bytes of the content) of each packet, in the order of its stream."""
    found = []
    for path in glob.glob(pattern):
        data = open(path, 'rb').read()
        h = HEADER.unpack_from(data)
        assert h[0] == 0xC1FC1FC1 and h[4] == 0x54464557 and h[5] == 2 and h[7] % 2 == 0, path
        found.append((h[3], h[10], h[8], h[21].rstrip(b'\0').decode(), data[h[6]:h[9] // 8]))
    return sorted(found)


def decode(data, last, forms):
    at = 0

    def take(form):
        nonlocal at
        value, = struct.unpack_from('<' + form, data, at)
        at += struct.calcsize(form)
        return value

    def string():
        nonlocal at
        end = data.index(0, at)
        text, at = data[at:end].decode(), end + 1
        return text

    while at < len(data):
        number = take('B')
        if number == 255:
            number, last = take('B'), take('Q')
        else:
            last += (take('I') - last) % (1 << 32)
        fields = {}
        for field in forms[number & 31].split():
            name, kind = field.split(':')
            if kind == 'text' and number & 0x80:
                take('I')
            if kind == 'string' or kind == 'text' and number & 0x20:
                fields[name] = string()
            else:
                fields[name] = take({'id': 'q' if number & 0x40 else 'i', 'text': 'H'}.get(kind, kind))
        yield number, last, fields


def read(trace):
    metadata = open(os.path.join(trace, 'metadata')).read()
    clock = {k: int(v) for k, v in re.findall(r'(freq|offset_s|offset) = (-?\d+);', metadata)}
    hz = clock['freq']
    ns = lambda ticks: ticks if hz == 10**9 else int(1e9 * ticks / hz)
    origin = clock['offset_s'] * 10**9 + ns(clock['offset'])
    texts, sites, modules, threads = {0: ''}, {0: None}, {0: None}, collections.defaultdict(list)
    for _, _, begin, _, data in packets(os.path.join(trace, 'definitions-*')):
        for number, time, d in decode(data, begin, DEFINITIONS):
            if number == 0:
                texts[d['key']] = d['text']
            elif number == 1:
                sites[d['key']] = {'file': d['file'], 'line': d['line'], 'function': d['function']}
            elif number == 2:
                threads[d['instance']].append((time, d['name']))
            elif number == 3:
                modules[d['module']] = d['path']
            elif number == 4:
                sites[d['key']] = {'file': '', 'line': 0, 'function': '', 'module': modules[d['module']], 'offset': d['offset']}
    for instance, _, begin, name, data in packets(os.path.join(trace, 'stream-*')):
        for number, time, fields in decode(data, begin, {op: form for op, (_, form) in OPS.items()}):
            if number & 31 == 30 and fields['what'] == 240:
                continue  # a repeated definition
            event = {'time_ns': origin + ns(time), 'op': OPS[number & 31][0], 'thread': name}
            for since, other in threads[instance]:
                if begin < since <= time:
                    event['thread'] = other
            for field, kind in (f.split(':') for f in OPS[number & 31][1].split()):
                value = fields[field]
                if kind == 'text' and not number & 0x20:
                    value = texts[value]
                if field == 'kind':
                    value = KINDS.get(value, f'kind-{value}')
                elif field == 'what':
                    value = DETAILS.get(value, f'detail-{value}')
                elif field == 'site':
                    value = sites[value]
                elif event['op'] == 'idle':
                    value = ['wait', 'suspend', 'hibernate'][value]
                elif field == 'since':
                    field, value = 'since_ns', origin + ns(value)
                event[field] = value
            yield event


weft, options, *program = sys.argv[1:]
with tempfile.TemporaryDirectory() as scratch:
    trace = os.path.join(scratch, 'trace')
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL, env={**os.environ, 'WEFT_TRACE': trace + options})
    mine = list(read(trace))
    ask = lambda *verb: subprocess.run([weft, *verb, '--json', trace], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    streams = [s['name'] for s in json.loads(ask('info')[0])['streams']]
    theirs = [json.loads(line) for line in ask('events', '--absolute')]
for event in theirs:
    assert event['thread'] == streams[event.pop('stream')]
key = lambda event: (event['time_ns'], json.dumps(event, sort_keys=True))
different = [pair for pair in zip(sorted(mine, key=key), sorted(theirs, key=key)) if pair[0] != pair[1]]
print(f'{len(theirs)} events of {len(set(e["op"] for e in theirs))} kinds in {len(streams)} streams, {len(different)} differ', *different[:2], sep='\n')
sys.exit(len(mine) != len(theirs) or not mine or bool(different))
