#!/usr/bin/env python3
"""waits_test.py WEFT PAGES STARTS: start-up and a request that was given up have no finding.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

weft, pages, starts = map(os.path.abspath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix='weft-waits-')


def record(program, mode):
    """Returns all findings of a recorded run, most serious first."""
    trace = os.path.join(folder, os.path.basename(program) + '-' + mode)
    subprocess.run([weft, 'record', '-o', trace, '--', program, mode], check=False, stderr=subprocess.DEVNULL, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    assert said.returncode in (0, 1), said
    return [json.loads(line) for line in said.stdout.splitlines()]


def texts(finding, role):
    return [e['text'] for e in finding['evidence'] if e['role'] == role]


def request_of_a_closed_connection_is_no_hang():
    """The server's end of the connection has a name and another end, although evhttp makes it."""
    found = record(pages, 'hasty')
    assert not [f for f in found if f['finding'] == 'hang'], found
    assert [f for f in found if f['finding'] == 'underway' and '"GET /late"' in f['title'] and f['severity'] == 'information'], found


def request_of_an_open_connection_is_a_hang():
    found = [f for f in record(pages, 'forgetful') if f['finding'] == 'hang']
    assert len(found) == 1 and re.search(r'"GET /late".*: nothing was written to connection \d+ "(from )?127\.0\.0\.1', found[0]['title']), found


def work_before_the_first_loop_is_no_stall():
    found = record(starts, 'start')
    assert not [f for f in found if f['finding'] == 'stall'], found


for test in (request_of_a_closed_connection_is_no_hang, request_of_an_open_connection_is_a_hang, work_before_the_first_loop_is_no_stall):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__, flush=True)
shutil.rmtree(folder)
