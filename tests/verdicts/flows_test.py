#!/usr/bin/env python3
"""flows_test.py WEFT FLOWS QUEUE: requests that are left at exit, asked one after the other, made on new connections, or queued: each is told, and its healthy
twin has no such finding.

SPDX-License-Identifier: ISC"""

import json
import os
import re
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
    """Returns the findings of a name whose title has the words; findings of these kinds are never alarms."""
    fitting = [f for f in found if f['finding'] == name and re.search(words, f['title'])]
    assert all(f['severity'] == 'information' for f in fitting), fitting
    return fitting


def no_alarm(found):
    assert not [f for f in found if f['severity'] == 'alarm' and f['sure']], found


def connections_with_one_request_each_are_told():
    found = record_with_peer('reconnect')
    told = find(found, 'reconnects', r'24 connections "to 127\.0\.0\.1:\d+" had one request each: making them took .*\(flows\.c:\d+ in connect_peer\)$')
    assert len(told) == 1 and any('23 of them were made when an earlier one had its answer' in e['text'] for e in told[0]['evidence']), found
    no_alarm(found)


def connections_that_are_kept_or_made_at_once_are_not():
    for fault in 'keep', 'crowd':
        found = record_with_peer(fault)
        assert not find(found, 'reconnects', ''), found
        no_alarm(found)


def questions_one_after_the_other_are_told():
    found = record_with_peer('list')
    told = find(found, 'sequence', r'^connection \d+ "from 127.* waited .* of .* for 12 answers one after the other; 2 similar findings \(flows\.c:\d+ in connect_peer\)$')
    assert len(told) == 1 and 'side by side' in told[0]['next'], found
    no_alarm(found)


def questions_side_by_side_are_not():
    found = record_with_peer('together')
    assert not find(found, 'sequence', ''), found
    no_alarm(found)


def requests_left_at_the_exit_are_told():
    found = record_with_peer('stop')
    told = find(found, 'underway', r'^connection \d+ .*and [23] more had no answer when the program ended, .* after the request came \(flows\.c:\d+ in \w+\)$')
    assert len(told) == 1 and 'before the program exits' in told[0]['next'], found
    no_alarm(found)


def requests_that_are_answered_before_the_exit_are_not():
    found = record_with_peer('finish')
    assert not find(found, 'underway', ''), found
    no_alarm(found)


def record_queue(fault):
    trace = os.path.join(folder, 'queue-' + fault)
    subprocess.run([queue, fault], env={**os.environ, 'WEFT_TRACE': trace}, check=True, timeout=60)
    return explain(trace)


def long_queue_for_one_place_is_told():
    for fault, what in ('one', 'a semaphore'), ('pool', r'pool \d+'):
        found = record_queue(fault)
        told = find(found, 'exhausted', rf'^(19|20) promises queued for {what}, (19|20) at once, for up to .*: .* on average \(queue\.c:\d+')
        assert len(told) == 1, found
        no_alarm(found)


def places_for_all_have_no_queue():
    assert not find(record_queue('enough'), 'exhausted', 'queued')


for test in (connections_with_one_request_each_are_told, connections_that_are_kept_or_made_at_once_are_not, questions_one_after_the_other_are_told,
             questions_side_by_side_are_not, requests_left_at_the_exit_are_told, requests_that_are_answered_before_the_exit_are_not,
             long_queue_for_one_place_is_told, places_for_all_have_no_queue):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__, flush=True)
