#!/usr/bin/env python3
"""points_test.py WEFT PROGRAMS [NAME...]: nine kinds of program about which weft 0.1.0 was wrong; tools/holes verdicts runs this test with 0.1.0, too.

PROGRAMS is a folder with the programs of tests/verdicts, linked with libraries whose traces WEFT can read.  The test looks only at exit statuses and
   at output that both versions print.  SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

weft, programs = map(os.path.abspath, sys.argv[1:3])
place = tempfile.TemporaryDirectory(prefix='weft-points-')
folder = place.name
PAGE = 4096


def record(name, *args, how='', **environment):
    """Records a program whose exit status does not matter; returns the trace."""
    trace = os.path.join(folder, '-'.join([name, *args]))
    if not os.path.exists(trace):
        subprocess.run([os.path.join(programs, name), *args], env={**os.environ, 'WEFT_TRACE': trace + how, **environment}, check=False, timeout=60)
    return trace


def ask(*words):
    """Returns exit status and lines of output; of a finding only its first line."""
    said = subprocess.run([weft, *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    return said.returncode, [line for line in said.stdout.splitlines() if line and (words[0] != 'explain' or not line.startswith((' ', 'nothing found: ')))]


def expect(holds, *said):
    if not holds:
        sys.exit(f'FAILED: {said}')


def promise_in_flight_at_exit_is_no_hang():
    """A sleep of 5 ms that started 1 ms before the program exits is no hang."""
    status, said = ask('explain', record('clients', 'exit'))
    expect(status == 0 and not any(line.startswith('hang') for line in said), status, said)


def cycle_is_reported_only_if_all_branches_are_stuck():
    """A cycle of waits is a fault only if all alternatives of each choice in it are stuck."""
    status, said = ask('explain', record('choices', 'stuck'))
    expect(status == 1 and said[0].startswith('cycle: '), status, said)
    status, said = ask('explain', record('choices', 'alive'))
    expect(status == 0 and not any(re.match('hang|cycle', line) for line in said), status, said)


def work_on_the_pool_is_no_stall():
    said = ask('explain', record('jobs', 'threads', UV_THREADPOOL_SIZE='8'))[1]
    expect(not any(re.match(r'stall.*: work ', line) for line in said), said)


def growing_promise_count_is_a_leak():
    """The connections are counted together, although each has a label of its own."""
    status, said = ask('explain', record('clients', 'leak'))
    expect(status == 1 and said[0].startswith('leak: 80 promises '), status, said)


def growing_counters_are_reported():
    status, said = ask('explain', record('jobs', 'backlog'))
    expect(status == 1 and said[0].startswith('backlog: counter "jobs in the queue"'), status, said)


CREATE, READ, RESOLVE, FAIL, LABEL, RUN, AWAIT, TASK, BIND = 0, 1, 2, 3, 5, 7, 10, 1, 2


def mirage(*events):
    """Returns a mirage-profile trace: times in us, operations, numbers, and a kind or a text."""
    content = b''
    for time_us, op, *words in events:
        content += struct.pack('<QB', time_us * 1000, op)
        for word in words:
            content += struct.pack('<q', word) if isinstance(word, int) else word
    size = (30 + len(content)) * 8
    return bytes.fromhex('c11ffcc105883b8d521a487bb397456ab150680c') + struct.pack('<IHI', size, 1, size) + content


def awaited_sleep_in_a_mirage_trace_is_waiting_and_not_queued():
    """Promise 0 is the loop, and promise 1 awaits a sleep of 3 s."""
    path = os.path.join(folder, 'sleep.ctf')
    with open(path, 'wb') as file:
        file.write(mirage((0, RUN, 0), (1, CREATE, 0, 1, bytes([BIND])), (2, CREATE, 0, 2, bytes([TASK])), (3, LABEL, 2, b'sleep\0'), (4, AWAIT, 1, 2),
                          (300, RUN, -1), (1000000, RUN, 0), (1000100, RUN, -1), (3000000, RUN, 0), (3000001, RESOLVE, 0, 2), (3000002, READ, 1, 2),
                          (3000003, RESOLVE, 1, 1), (3000004, RUN, -1)))
    for words in ('path', '--promise=2', path), ('stats', '--blame=sleep', path):
        status, said = ask(*words)
        # weft path prints two lines of sums, weft stats one.
        expect(status == 0 and len(said) == (3 if words[0] == 'path' else 2) and 'waiting for' in said[-1] and '"sleep"' in said[-1] and
               'queued' not in said[-1], words, status, said)


def cancelled_promise_does_not_count_as_failed():
    path = os.path.join(folder, 'cancelled.ctf')
    with open(path, 'wb') as file:
        file.write(mirage((0, RUN, 0), *(event for i in range(10, 20) for event in ((10 * i, CREATE, 0, i, bytes([TASK])), (10 * i + 1, FAIL, 0, i, b'Lwt.Canceled\0'))),
                          (300, RUN, -1)))
    status, said = ask('explain', path)
    expect((status, said) == (0, []), status, said)


def explain_without_part(trace, name, at=None):
    """Runs weft explain on a copy of the trace without the file, or with a page of zeros in the file, as if this page had never reached the disk."""
    part = os.path.join(folder, 'part')
    shutil.copytree(trace, part)
    if at is None:
        os.unlink(os.path.join(part, name))
    else:
        with open(os.path.join(part, name), 'r+b') as file:
            file.seek(at)
            file.write(bytes(PAGE))
    said = ask('explain', part)
    shutil.rmtree(part)
    return said


def page_of_zeros_causes_no_certain_finding():
    """With a page of zeros in the trace, no finding is certain, and no stall is longer than the trace."""
    trace = record('jobs', how=',mode=grow')
    largest = max(os.listdir(trace), key=lambda name: os.path.getsize(os.path.join(trace, name)))
    size = os.path.getsize(os.path.join(trace, largest))
    expect(size > 20 * PAGE, size)
    for at in range(PAGE, size - PAGE, 4 * PAGE):
        status, said = explain_without_part(trace, largest, at)
        expect(status == 0 and not any(re.search(r'stall.*blocked the event loop for [\d.]+ s\b', line) for line in said), at, status, said)


def missing_stream_is_noticed():
    """Each promise starts on one OS thread and ends on the other: a missing stream is no leak.  Five runs, because 0.1.0 did not report a leak in each."""
    for run in '12345':
        trace = record('clients', 'hand-over', run, how=',mode=grow')
        expect(ask('explain', trace)[0] == 0, ask('explain', trace))
        streams = [name for name in os.listdir(trace) if name.startswith('stream')]
        expect(len(streams) == 2, streams)
        for name in streams:
            expect(explain_without_part(trace, name)[0] == 0, name, explain_without_part(trace, name))


def stats_count_a_promise_until_its_merge_target_ends():
    """Each of 300 tries became the next one, so each fails when the last one fails."""
    lines = [json.loads(line) for line in ask('stats', '--json', record('jobs', 'storm'))[1]]
    tries = [line for line in lines if line['kind'] == 'try' and line['count'] > 200]
    expect(len(tries) == 1 and tries[0]['failures'] == tries[0]['count'] and tries[0]['waiting']['max_ns'] > 299 * 1000000, tries)


def stall_in_one_run_is_a_difference():
    status, said = ask('diff', record('shop'), record('shop', 'stall'))
    expect(status == 1 and 'only the second run has a stall' in said[0], status, said)


def moved_source_lines_are_no_difference():
    """The edited program has more source lines and a further promise; only the promise is a difference."""
    said = ask('diff', record('shop'), record('edited_shop'))[1]
    expect(len([line for line in said if line.startswith('missing')]) == 1, said)


def deadlock_title_names_both_locks():
    status, said = ask('explain', record('bank', 'deadlock'))
    expect(status == 1 and said[0].startswith('deadlock: ') and all(f'"account {account}"' in said[0] for account in 'AB'), status, said)


def deadlock_of_two_threads_names_both_threads_and_both_locks():
    status, said = ask('explain', '--json', record('two_threads', 'deadlock'))
    found = json.loads(said[0])
    told = [found['title']] + [line['text'] for line in found['evidence']]
    expect(status == 1 and found['finding'] == 'deadlock' and all(any(f'"{name}"' in text for text in told) for name in ('writer', 'reader', 'journal', 'ledger')), said)


def unlabelled_join_is_named_by_its_input():
    """A join without a label has the name of its input."""
    said = ask('explain', record('bank', 'deadlock'))[1]
    expect(any(re.match(r'\w+: join \d+ of "transfer A to B" and others', line) for line in said), said)


for test in (promise_in_flight_at_exit_is_no_hang, cycle_is_reported_only_if_all_branches_are_stuck, work_on_the_pool_is_no_stall, growing_promise_count_is_a_leak, growing_counters_are_reported,
             awaited_sleep_in_a_mirage_trace_is_waiting_and_not_queued, cancelled_promise_does_not_count_as_failed, page_of_zeros_causes_no_certain_finding, missing_stream_is_noticed, stats_count_a_promise_until_its_merge_target_ends,
             stall_in_one_run_is_a_difference, moved_source_lines_are_no_difference, deadlock_title_names_both_locks, deadlock_of_two_threads_names_both_threads_and_both_locks, unlabelled_join_is_named_by_its_input):
    if not sys.argv[3:] or test.__name__ in sys.argv[3:]:
        test()
        print('ok   ', test.__name__)
