#!/usr/bin/env python3
"""A run of 50 ms is reported for its callback, never for main or the loop.

	slow_test.py SLOW WEFT

SPDX-License-Identifier: ISC"""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, expect, fail

# Slow part: the kind of the reported promise, and its label.
SLOW = {'timer': ('timer', '30 ms'), 'idle': ('handle', 'slow_source'), 'other': ('handle', 'slow_source'), 'task': ('task', 'errand'), 'fd': ('poll', ''), 'read': ('work', 'g_input_stream_real_read_async (GUnixInputStream)'), 'child': ('process', 'true'),
        'monitor': ('poll', 'file monitor'), 'activate': ('task', 'activate')}

slow, weft = map(os.path.abspath, sys.argv[1:3])
with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
    for what, (kind, label) in SLOW.items():
        recording = Recording(weft, os.path.join(folder, what), [slow, what, os.path.join(folder, 'file')])
        expect(recording.status, 0, 'the exit status')
        trace = recording.trace('glib_slow')
        promises = {p['promise']: p for p in trace.promises()}
        stalls = [promises[line['promise']] for line in trace.findings('50ms').get('stall', [])]
        # A busy machine stalls also without a slow callback.
        if not any(p['kind'] == kind and any(label in text for _, text in p['labels']) for p in stalls):
            fail(f'{what}: what ran for 50 ms is {[(p["kind"], p["labels"]) for p in stalls]}')
        if any(p['kind'] == 'loop' or p['labels'][:1] == [[0, 'main']] for p in stalls):
            fail(f'{what}: the answer is {stalls}')
        if not all(p['site'] for p in stalls):
            fail(f'{what}: no site')
