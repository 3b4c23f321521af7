"""otlp_decode.py: reads messages of OTLP, rejects unknown fields, and compares the result with that of @opentelemetry/otlp-transformer of npm.

Names and numbers of the fields come from the published definitions (opentelemetry-proto).
SPDX-License-Identifier: ISC"""
import base64
import json
import os
import struct
import subprocess
import sys

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
# Message: number of a field: (its name, its type, whether the field is repeated).
FIELDS = {
    'request': {1: ('resource_spans', 'resource_spans', True)},
    'resource_spans': {1: ('resource', 'resource', False), 2: ('scope_spans', 'scope_spans', True)},
    'resource': {1: ('attributes', 'attribute', True)},
    'scope_spans': {1: ('scope', 'scope', False), 2: ('spans', 'span', True)},
    'scope': {1: ('name', 'text', False), 2: ('version', 'text', False)},
    'span': {1: ('trace_id', 'id', False), 2: ('span_id', 'id', False), 4: ('parent', 'id', False), 5: ('name', 'text', False), 6: ('kind', VARINT, False), 7: ('start', FIXED64, False), 8: ('end', FIXED64, False), 9: ('attributes', 'attribute', True), 11: ('events', 'event', True), 12: ('dropped_events', VARINT, False), 13: ('links', 'link', True), 14: ('dropped_links', VARINT, False), 15: ('status', 'status', False), 16: ('flags', FIXED32, False)},
    'event': {1: ('time', FIXED64, False), 2: ('name', 'text', False), 3: ('attributes', 'attribute', True)},
    'link': {1: ('trace_id', 'id', False), 2: ('span_id', 'id', False), 4: ('attributes', 'attribute', True)},
    'status': {2: ('message', 'text', False), 3: ('code', VARINT, False)},
    'attribute': {1: ('key', 'text', False), 2: ('value', 'value', False)},
    'value': {1: ('text', 'text', False), 2: ('bool', VARINT, False), 3: ('int', VARINT, False)},
}


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def read(data, message='request'):
    """Returns a message as a dictionary; repeated fields are lists."""
    result = {name: [] for name, _, repeated in FIELDS[message].values() if repeated}
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        name, kind, repeated = FIELDS[message][key >> 3]
        wire = kind if isinstance(kind, int) else LENGTH
        assert key & 7 == wire, (message, name, key & 7)
        if wire == VARINT:
            value, at = read_varint(data, at)
        elif wire == LENGTH:
            size, at = read_varint(data, at)
            assert at + size <= len(data), (message, name)
            value, at = data[at:at + size], at + size
            value = value.decode() if kind == 'text' else value.hex() if kind == 'id' else read(value, kind)
        else:
            size = 8 if wire == FIXED64 else 4
            value, at = struct.unpack('<Q' if size == 8 else '<I', data[at:at + size])[0], at + size
        if repeated:
            result[name].append(value)
        else:
            assert name not in result, (message, name)
            result[name] = value
    if message in ('span', 'event', 'resource', 'link'):
        result['attributes'] = {a['key']: next(iter(a['value'].values())) for a in result['attributes']}
    return result


def spans(data):
    """Returns the spans of a message, each with the attributes of its process."""
    found = []
    for part in read(data)['resource_spans']:
        for scope in part['scope_spans']:
            assert scope['scope']['name'] == 'weft', scope['scope']
            for span in scope['spans']:
                span['resource'] = part['resource']['attributes']
                assert len(span['trace_id']) == 32 and len(span['span_id']) == 16 and span['end'] >= span['start'], span
                found.append(span)
    return found


DECODE = """
const root = require(process.argv[1] + '/build/src/generated/root');
const request = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
const hex = bytes => Buffer.from(bytes).toString('hex');
for (const line of require('fs').readFileSync(0, 'utf8').trim().split('\\n'))
    for (const part of request.decode(Buffer.from(line, 'base64')).resourceSpans)
        for (const scope of part.scopeSpans)
            for (const span of scope.spans)
                console.log(JSON.stringify([hex(span.traceId), hex(span.spanId), hex(span.parentSpanId || []), span.name, span.kind, String(span.startTimeUnixNano), String(span.endTimeUnixNano), span.attributes.length, span.events.length, span.links.length, span.status?.code ?? 0]));
"""


def compare_with_transformer(messages):
    """Compares the messages with what the package in the folder WEFT_OTLP_TRANSFORMER reads; without the folder, nothing is compared."""
    package = os.environ.get('WEFT_OTLP_TRANSFORMER')
    if not package:
        print('WEFT_OTLP_TRANSFORMER names no package of npm: only the decoder of this test reads the messages')
        return
    got = subprocess.run(['node', '-e', DECODE, package], input='\n'.join(base64.b64encode(m).decode() for m in messages), capture_output=True, text=True, check=True)
    theirs = [json.loads(line) for line in got.stdout.splitlines()]
    ours = [[s['trace_id'], s['span_id'], s.get('parent', ''), s['name'], s['kind'], str(s['start']), str(s['end']), len(s['attributes']), len(s['events']), len(s['links']), s.get('status', {}).get('code', 0)] for m in messages for s in spans(m)]
    if theirs != ours:
        sys.exit(f'otlp-transformer reads {len(theirs)} spans, and this test {len(ours)}')
    print(f'otlp-transformer reads the same {len(ours)} spans')
