#!/usr/bin/env python3
"""flows_test.py WEFT FLOWS QUEUE: requests without an answer at exit, requests that are sent one after the other or on new connections, and queued jobs:
   each of these programs has a finding, and a healthy program beside it has no such finding.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

weft, flows, queue = map(os.path.abspath, sys.argv[1:4])
folder = tempfile.mkdtemp(prefix='weft-flows-')


def explain(trace):
    """Returns all findings, most serious first."""
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    assert said.returncode in (0, 1), said
    return [json.loads(line) for line in said.stdout.splitlines()]


def record_with_peer(fault):
    """Records the program, unmodified, while its peer runs without a recording; returns all findings."""
    place = os.path.join(folder, fault)
    os.mkdir(place)
    with subprocess.Popen([flows, fault, 'peer'], cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as peer:
        try:
            subprocess.run([weft, 'record', '-o', 'trace', '--', flows, fault], cwd=place, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
        finally:
            peer.kill()
    return explain(os.path.join(place, 'trace'))


def find(found, name, words):
    """Returns the findings of the kind `name` whose title matches `words`; fails if one of them is an alarm."""
    fitting = [f for f in found if f['finding'] == name and re.search(words, f['title'])]
    assert all(f['severity'] == 'information' for f in fitting), fitting
    return fitting


def no_alarm(found):
    assert not [f for f in found if f['severity'] == 'alarm' and f['sure']], found


def new_connection_for_each_request_has_a_finding():
    found = record_with_peer('reconnect')
    told = find(found, 'reconnects', r'^2[0-4] connections "to 127\.0\.0\.1:\d+" had one request each: (19|2[0-3]) were made after the answer on an earlier one \(flows\.c:\d+')
    assert len(told) == 1 and 'keep a connection open' in told[0]['next'], found
    no_alarm(found)


def connections_kept_parallel_or_closed_by_the_peer_have_no_finding():
    for fault in 'keep', 'crowd', 'warm', 'closed':
        found = record_with_peer(fault)
        assert not find(found, 'reconnects', ''), found
        no_alarm(found)


def requests_sent_one_after_the_other_have_a_finding():
    found = record_with_peer('list')
    told = find(found, 'sequence', r'^connection \d+ waited .* of .* for 12 answers one after the other; 2 similar findings \(flows\.c:\d+')
    assert len(told) == 1 and 'in parallel' in told[0]['next'], found
    no_alarm(found)


def requests_sent_at_once_or_by_a_timer_have_no_finding():
    for fault in 'together', 'polls':
        found = record_with_peer(fault)
        assert not find(found, 'sequence', ''), found
        no_alarm(found)


def requests_in_flight_at_the_exit_have_a_finding():
    found = record_with_peer('stop')
    told = find(found, 'underway', r'^connection \d+ and 2 more had no answer when the program ended, .* after the request \(flows\.c:\d+')
    assert len(told) == 1 and 'before the program exits' in told[0]['next'], found
    assert any(e['role'] == 'chain' and 'waits for timer' in e['text'] for e in told[0]['evidence']), found
    no_alarm(found)


def exit_without_requests_in_flight_has_no_finding():
    for fault in 'finish', 'notes':
        found = record_with_peer(fault)
        assert not find(found, 'underway', ''), found
        no_alarm(found)


def record_queue(fault):
    trace = os.path.join(folder, 'queue-' + fault)
    subprocess.run([queue, fault], env={**os.environ, 'WEFT_TRACE': trace}, check=True, timeout=60)
    return explain(trace)


def long_queue_for_a_semaphore_or_pool_has_a_finding():
    for fault, what in ('one', 'a semaphore'), ('pool', r'pool \d+'):
        found = record_queue(fault)
        told = find(found, 'exhausted', rf'^19 promises queued for {what} for .* on average and .* at most, 19 at once \(queue\.c:\d+')
        assert len(told) == 1, found
        no_alarm(found)


def semaphore_with_free_places_or_as_a_signal_has_no_finding():
    for fault in 'enough', 'signal':
        assert not find(record_queue(fault), 'exhausted', 'queued'), fault


for test in (new_connection_for_each_request_has_a_finding, connections_kept_parallel_or_closed_by_the_peer_have_no_finding, requests_sent_one_after_the_other_have_a_finding,
             requests_sent_at_once_or_by_a_timer_have_no_finding, requests_in_flight_at_the_exit_have_a_finding,
             exit_without_requests_in_flight_has_no_finding, long_queue_for_a_semaphore_or_pool_has_a_finding, semaphore_with_free_places_or_as_a_signal_has_no_finding):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__, flush=True)
shutil.rmtree(folder)
