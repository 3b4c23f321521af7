#!/usr/bin/env python3
"""waits_test.py WEFT PAGES STARTS PARTS LASTS SLEEPERS: work before the first loop and a request of a closed connection have no finding;
   the finding about a late timer has its delay; a part of an answer, a task without a result and a thread that sleeps for ever have a finding.

SPDX-License-Identifier: ISC"""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

weft, pages, starts, parts, lasts, sleepers = map(os.path.abspath, sys.argv[1:7])
folder = tempfile.mkdtemp(prefix='weft-waits-')


def record(program, mode):
    """Returns all findings of a recorded run, most serious first."""
    trace = os.path.join(folder, os.path.basename(program) + '-' + mode)
    if program == lasts:
        subprocess.run([program, mode], env={**os.environ, 'WEFT_TRACE': trace}, check=True, timeout=60)
    else:
        subprocess.run([weft, 'record', '-o', trace, '--', program, mode], check=False, stderr=subprocess.DEVNULL, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    assert said.returncode in (0, 1), said
    return [json.loads(line) for line in said.stdout.splitlines()]


def texts(finding, role):
    return [e['text'] for e in finding['evidence'] if e['role'] == role]


def request_of_a_closed_connection_is_no_hang():
    """evhttp, not the program, makes the server's end of the connection; weft still knows its address and its other end."""
    found = record(pages, 'hasty')
    assert not [f for f in found if f['finding'] == 'hang'], found
    assert [f for f in found if f['finding'] == 'underway' and '"GET /late"' in f['title'] and f['severity'] == 'information'], found


def request_of_an_open_connection_is_a_hang():
    found = [f for f in record(pages, 'forgetful') if f['finding'] == 'hang']
    assert len(found) == 1 and re.search(r'"GET /late".*: the program wrote no answer to connection \d+ "(from )?127\.0\.0\.1', found[0]['title']), found


def work_before_the_first_loop_is_no_stall():
    found = record(starts, 'start')
    assert not [f for f in found if f['finding'] == 'stall'], found


def finding_about_a_late_timer_has_its_delay():
    """On a busy machine, other promises than the timer may be late, too."""
    found = [f for f in record(starts, 'late') if f['finding'] == 'stall' and f['title'].startswith('timer 3 "1 ms" blocked the event loop for')]
    late = texts(found[0], 'victim')
    assert any(re.fullmatch(r'timer 4 "20 ms" is called back right after the stall, [\d.]+ ms after it was due', text) for text in late), found
    if len(late) == 1:
        assert ': 1 promise came late (' in found[0]['title'] and 'were due' not in (found[0]['doubt'] or ''), found


def timer_that_is_not_due_is_not_late():
    assert not [f for f in record(starts, 'early') if f['finding'] == 'stall' and f['severity'] == 'alarm']


def event_without_a_due_time_may_be_late():
    found = [f for f in record(starts, 'turn') if f['finding'] == 'stall']
    assert found and ' may be late (' in found[0]['title'], found


def wait_for_the_rest_of_an_answer_is_reported():
    found = [f for f in record(parts, 'part') if f['finding'] == 'unanswered']
    assert len(found) == 1 and found[0]['severity'] == 'information', found
    assert re.match(r'connection \d+ "to 127\.0\.0\.1:\d+" has waited for the rest of an answer for [23]\.\d+ s \(parts\.c:\d+', found[0]['title']), found
    # AddressSanitizer makes the call in place of the program.
    assert any(re.search(r'calls recv at (ask|__interceptor_recv) \(.*to read more', text) for text in texts(found[0], 'cause')), found


def whole_and_slow_answers_are_not_reported_as_partial():
    for mode in 'whole', 'slow':
        found = record(parts, mode)
        assert not [f for f in found if 'the rest of an answer' in f['title']], found


def requests_of_two_writes_wait_for_delayed_acknowledgements():
    found = [f for f in record(parts, 'lines') if 'acknowledgements' in f['title']]
    assert len(found) == 1 and found[0]['severity'] == 'information' and not found[0]['sure'], found
    assert re.match(r'\d+ answers on connection \d+ "to 127\.0\.0\.1:\d+" averaged [45]\d\.\d+ ms: delayed acknowledgements, perhaps \(parts\.c:\d+', found[0]['title']), found
    assert not [f for f in record(parts, 'pairs') if 'acknowledgements' in f['title']]


def last_task_without_a_result_is_reported():
    """All other tasks of its type are older and have ended."""
    found = [f for f in record(lasts, 'forgotten') if f['finding'] == 'stuck']
    assert len(found) == 1 and found[0]['severity'] == 'information' and found[0]['sure'], found
    assert re.match(r'task \d+ "fetch a message" has been pending for \d+ ms: 12 others of its type ended within ', found[0]['title']), found
    assert any('acts for the last time' in text for text in texts(found[0], 'cause')), found


def last_task_with_a_late_result_is_not_stuck():
    assert not [f for f in record(lasts, 'late') if f['finding'] == 'stuck']


# AddressSanitizer makes some calls in place of the program.
SLEEPERS = {
    'edge': ('unanswered', r'connection \d+ "from 127\.0\.0\.1:\d+" has left 7952 bytes of its peer unread for 1\.\d+ s \((?:sleepers\.c:\d+|__interceptor_)'),
    'timer': ('hang', r'timer \d+ "20 ms" is 1\.\d+ s overdue: another thread started it, and loop \d+ was not woken \((?:sleepers\.c:\d+|__interceptor_)'),
    'again': ('hang', r'thread 2 "sleepers" sleeps forever in pthread_rwlock_rdlock: each other thread of the process waits too \((?:sleepers\.c:\d+|__interceptor_)'),
    'pool': ('exhausted', r'fs \d+ "open /dev/null" waited 1\.\d+ s for a thread of the pool: each of the 4 threads is in read \((?:sleepers\.c:\d+|__interceptor_)'),
    'stop': ('alive', r'loop \d+ has not returned 1\.\d+ s after signal \d+ "SIGTERM": timer \d+ "every 300 ms" keeps it running \((?:sleepers\.c:\d+|__interceptor_)'),
}


def each_kind_of_endless_wait_is_the_first_finding():
    """The mode "-fine", in which no thread sleeps for ever, has no alarm."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        found = {mode: pool.submit(record, sleepers, mode) for fault in SLEEPERS for mode in (fault, fault + '-fine')}
    for fault, (name, title) in SLEEPERS.items():
        first = found[fault].result()[0]
        assert first['finding'] == name and first['sure'] and re.match(title, first['title']), first
        assert not [f for f in found[fault + '-fine'].result() if f['severity'] == 'alarm'], found[fault + '-fine'].result()


def hang_of_a_program_killed_together_with_weft_record_is_reported():
    """A helper process of weft record notes the death of the program, also if the same signal has killed weft record."""
    trace = os.path.join(folder, 'group')
    with subprocess.Popen([weft, 'record', '-o', trace, '--', sleepers, 'again'], stderr=subprocess.DEVNULL, start_new_session=True) as running:
        time.sleep(1.2)  # a busy machine starts the program late
        os.killpg(running.pid, signal.SIGKILL)
    for _ in range(100):
        said = subprocess.run([weft, 'explain', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60).stdout
        if said.startswith('hang: '):
            return
        time.sleep(0.02)
    raise AssertionError(said)


def callback_of_event_base_once_is_recorded():
    found = record(sleepers, 'once')
    assert found and re.match(r'timer \d+ "20 ms" blocked the event loop for 1\d\d ms in usleep: .* \((?:sleepers\.c:\d+ in take_nap|__interceptor_usleep)', found[0]['title']), found
    said = subprocess.run([weft, 'events', os.path.join(folder, 'sleepers-once')], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    assert ' place "read" = ' in said, said  # the blocking read is recorded, since ioctl(FIONBIO) has made the socket blocking


for test in (request_of_a_closed_connection_is_no_hang, request_of_an_open_connection_is_a_hang, work_before_the_first_loop_is_no_stall,
             finding_about_a_late_timer_has_its_delay, timer_that_is_not_due_is_not_late, event_without_a_due_time_may_be_late, wait_for_the_rest_of_an_answer_is_reported,
             whole_and_slow_answers_are_not_reported_as_partial, requests_of_two_writes_wait_for_delayed_acknowledgements, last_task_without_a_result_is_reported, last_task_with_a_late_result_is_not_stuck,
             each_kind_of_endless_wait_is_the_first_finding, hang_of_a_program_killed_together_with_weft_record_is_reported, callback_of_event_base_once_is_recorded):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__, flush=True)
shutil.rmtree(folder)
