#!/usr/bin/env python3
"""libuv's own tests pass the same, whether they are recorded or not.

	suite_test.py WEFT FOLDER

Fetches Debian's source of the installed libuv into FOLDER, by apt with lists and caches of its own, so that the system does not
change; builds its tests with the installed library; runs all of them without and with recording.  Tests with different results run
again, alone and several times.  SPDX-License-Identifier: ISC"""

import os
import sys

from debian import fetch, skip
from recorded import expect, fail, need_way
from suite import Suite

weft, folder = map(os.path.abspath, sys.argv[1:3])
need_way(weft)  # root runs libuv's tests as user nobody, who must reach weft
os.makedirs(folder, exist_ok=True)
traces = os.path.join(folder, 'traces')
plain, recorded, once, broken = Suite(weft, fetch(folder, 'libuv1', 'libuv1-dev'), traces).compare()
if len(plain) < 100:
    skip(f'only {len(plain)} tests of libuv run here')
expect(sorted(recorded), sorted(plain), 'tests that come to an end')
if len(os.listdir(os.path.join(traces, 'all'))) < len(plain) // 2:  # each test runs in a process of its own
    fail('the tests are not recorded')
print(f'{sum(plain.values())} of {len(plain)} pass without recording, {sum(recorded.values())} with; failed once and then not: {once}')
if broken:
    fail(f'tests of libuv that fail when they are recorded: {broken}')
