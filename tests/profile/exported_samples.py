"""exported_samples.py: reads stack samples that weft convert wrote, by the rules of the two profilers.  SPDX-License-Identifier: ISC

No reader of either profiler is packaged, so the rules are written here by hand: those of Firefox Profiler's "processed profile", and of Perfetto's
importer, which drops what refers to something undefined."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
from perfetto_fields import message

COLUMNS = {
    'samples': ('stack', 'time'),
    'stackTable': ('prefix', 'frame', 'category', 'subcategory'),
    'frameTable': ('address', 'inlineDepth', 'category', 'subcategory', 'func', 'nativeSymbol', 'innerWindowID', 'implementation', 'line', 'column'),
    'funcTable': ('name', 'isJS', 'relevantForJS', 'resource', 'fileName', 'lineNumber', 'columnNumber'),
    'markers': ('data', 'name', 'startTime', 'endTime', 'phase', 'category'),
    'resourceTable': ('lib', 'name', 'host', 'type'),
    'nativeSymbols': ('libIndex', 'address', 'name', 'functionSize'),
}


def firefox_stacks(path):
    """Returns the names of the functions of each sample, the outermost first."""
    with open(path, encoding='utf-8') as file:
        profile = json.load(file)
    meta = profile['meta']
    assert meta['preprocessedProfileVersion'] == 48 and meta['interval'] > 0 and profile['libs'] == [], meta
    schemas = {schema['name'] for schema in meta['markerSchema']}
    stacks = []
    for thread in profile['threads']:
        for table, columns in COLUMNS.items():
            assert all(len(thread[table][column]) == thread[table]['length'] for column in columns), table
        strings, calls, frames, functions, marks = (thread[table] for table in ('stringArray', 'stackTable', 'frameTable', 'funcTable', 'markers'))
        assert all(0 <= name < len(strings) for name in functions['name'] + marks['name'])
        assert all(file is None or strings[file] for file in functions['fileName'])
        assert all(0 <= f < functions['length'] for f in frames['func']) and all(0 <= f < frames['length'] for f in calls['frame'])
        assert all(p is None or 0 <= p < i for i, p in enumerate(calls['prefix'])), 'a caller comes first'
        assert all(0 <= c < len(meta['categories']) for c in calls['category'])
        assert thread['samples']['time'] == sorted(thread['samples']['time'])
        assert all(data['type'] in schemas for data in marks['data']) and all(a <= b for a, b in zip(marks['startTime'], marks['endTime']))
        assert isinstance(thread['pid'], str) and isinstance(thread['tid'], int)
        for at in thread['samples']['stack']:
            names = []
            while at is not None:
                names.insert(0, strings[functions['name'][frames['func'][calls['frame'][at]]]])
                at = calls['prefix'][at]
            stacks.append(names)
    return stacks


def perfetto_stacks(path):
    """Returns the names of the functions of each sample, the outermost first."""
    with open(path, 'rb') as file:
        packets = message(file.read(), 'Trace')[1]
    functions, frames, calls, mappings, paths, sources, stacks = {}, {}, {}, {}, {}, {}, []
    for packet in packets:
        for interned in packet[12]:
            for field, names in ((5, functions), (17, paths), (18, sources)):
                for name in interned[field]:
                    assert name[1][0] not in names
                    names[name[1][0]] = name[2][0]
            for mapping in interned[19]:
                assert mapping[7][0] in paths and mapping[4][0] <= mapping[5][0]
                mappings[mapping[1][0]] = mapping
            for frame in interned[6]:
                assert frame[2][0] in functions and all(number in mappings for number in frame[3]) and len(frame[3]) == len(frame[4])
                assert all(number in sources for number in frame[5])
                frames[frame[1][0]] = functions[frame[2][0]]
            for call in interned[7]:
                calls[call[1][0]] = [frames[number] for number in call[2]]
        for sample in packet[66]:
            assert sample[2][0] > 0 and sample[3][0] > 0 and packet[8][0] > 0
            stacks.append(calls[sample[4][0]])
    return stacks
