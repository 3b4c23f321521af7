"""perfetto_fields.py: reads the messages of a Perfetto trace, and rejects fields that weft never writes.  SPDX-License-Identifier: ISC"""

import collections
import struct

VARINT, FIXED64, BYTES = 0, 1, 2
# The fields that weft may write: message, number, wire type, and the nested message.
KNOWN = {
    'Trace': {1: (BYTES, 'Packet')},
    'Packet': {6: (BYTES, 'Clocks'), 8: (VARINT, None), 10: (VARINT, None), 11: (BYTES, 'Event'), 12: (BYTES, 'Interned'), 13: (VARINT, None), 60: (BYTES, 'Track'), 66: (BYTES, 'Sample')},
    'Clocks': {1: (BYTES, 'Clock')},
    'Clock': {1: (VARINT, None), 2: (VARINT, None)},
    'Track': {1: (VARINT, None), 2: (BYTES, None), 3: (BYTES, 'Process'), 4: (BYTES, 'Thread'), 5: (VARINT, None), 8: (BYTES, 'Counter'), 11: (VARINT, None), 12: (VARINT, None),
              15: (VARINT, None), 16: (BYTES, None)},
    'Process': {1: (VARINT, None), 6: (BYTES, None)},
    'Thread': {1: (VARINT, None), 2: (VARINT, None), 5: (BYTES, None)},
    'Counter': {},
    'Event': {4: (BYTES, 'Annotation'), 9: (VARINT, None), 10: (VARINT, None), 11: (VARINT, None), 22: (BYTES, None), 23: (BYTES, None), 30: (VARINT, None), 33: (BYTES, 'Source'),
              47: (FIXED64, None), 48: (FIXED64, None)},
    'Annotation': {1: (VARINT, None), 4: (VARINT, None), 6: (BYTES, None)},
    'Source': {2: (BYTES, None), 3: (BYTES, None), 4: (VARINT, None)},
    'Interned': {2: (BYTES, 'Name'), 3: (BYTES, 'Name'), 5: (BYTES, 'Name'), 6: (BYTES, 'Frame'), 7: (BYTES, 'Stack'), 16: (BYTES, 'Name'), 17: (BYTES, 'Name'), 18: (BYTES, 'Name'),
                 19: (BYTES, 'Mapping')},
    'Mapping': {1: (VARINT, None), 2: (VARINT, None), 4: (VARINT, None), 5: (VARINT, None), 7: (VARINT, None)},
    'Frame': {1: (VARINT, None), 2: (VARINT, None), 3: (VARINT, None), 4: (VARINT, None), 5: (VARINT, None), 6: (VARINT, None)},
    'Stack': {1: (VARINT, None), 2: (VARINT, None)},
    'Sample': {2: (VARINT, None), 3: (VARINT, None), 4: (VARINT, None), 5: (VARINT, None)},
    'Name': {1: (VARINT, None), 2: (BYTES, None)},
}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at
        assert shift < 70


def message(data, kind):
    """Returns {number of a field: list of its values}."""
    found, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        wire, inner = KNOWN[kind][key >> 3]
        assert key & 7 == wire, (kind, key >> 3, key & 7)
        if wire == VARINT:
            value, at = varint(data, at)
        elif wire == FIXED64:
            value, at = struct.unpack_from('<Q', data, at)[0], at + 8
        else:
            size, at = varint(data, at)
            assert at + size <= len(data)
            value, at = data[at:at + size], at + size
            value = message(value, inner) if inner else value.decode('utf-8')
        found[key >> 3].append(value)
    return found
