#!/usr/bin/env python3
"""verdicts_test.py WEFT BANK THREADS CLIENTS JOBS SHOP EDITED_SHOP CHOICES TALKS TURNS FORMS: programs as strangers write them: each fault is found first and named, the healthy twin is not blamed.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import subprocess
import sys
import tempfile

weft, bank, threads, clients, jobs, shop, edited_shop, choices, talks, turns, forms = map(os.path.abspath, sys.argv[1:12])
folder = tempfile.mkdtemp(prefix='weft-verdicts-')


def findings(program, *args, severity='alarm', **environment):
    """What weft explain says of a run, most serious first."""
    trace = os.path.join(folder, '-'.join([os.path.basename(program), *args, severity, *environment.values()]))
    subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': trace, **environment}, check=False, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    found = [json.loads(line) for line in said.stdout.splitlines()]
    alarms = [f for f in found if f['severity'] == 'alarm']
    assert said.returncode == (1 if any(f['sure'] for f in alarms) else 0), said
    return [f for f in found if f['severity'] == severity]


def texts(finding, role):
    return [e['text'] for e in finding['evidence'] if e['role'] == role]


def healthy_twins_are_not_blamed():
    for program in bank, threads, clients, jobs:
        assert findings(program) == []
    for busy in 'chat', 'exit', 'pool':
        assert findings(clients, busy) == [], busy
    assert findings(jobs, 'errors') == []


def connections_that_nobody_closes():
    """Each has a label of its own."""
    found = findings(clients, 'leak')
    assert len(found) == 1 and found[0]['finding'] == 'leak' and found[0]['sure'], found
    assert found[0]['title'].startswith('80 promises "client *"') and 'none of them ever ended' in found[0]['title'], found


def a_circle_through_a_choice():
    """It is none while the other branch can end, or after that; it is one when all branches wait for it."""
    assert findings(choices) == []
    assert findings(choices, 'alive') == []
    told = findings(choices, 'alive', severity='information')
    assert [f['finding'] for f in told] == ['underway'] and '"timeout"' in told[0]['title'], told
    first = findings(choices, 'stuck')[0]
    assert first['finding'] == 'cycle' and first['sure'] and '"order"' in first['title'], first


def a_choice_that_the_ring_forgot():
    """A choice became the answer long ago, and is told again as what it is by now."""
    trace = os.path.join(folder, 'lost')
    subprocess.run([choices, 'lost'], env={**os.environ, 'WEFT_TRACE': trace + ',size=64K,packets=4'}, check=True, timeout=60)
    info = subprocess.run([weft, 'info', trace], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    assert 'the ring wrapped' in info, info
    said = subprocess.run([weft, 'explain', trace], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert (said.returncode, said.stdout) == (0, ''), said


def three_transfers_in_a_circle():
    """The join of all transfers is called by what it waits for."""
    found = findings(bank, 'deadlock')
    first = found[0]
    assert first['finding'] == 'deadlock' and first['sure'], first
    for account in 'ABC':
        assert any(f'takes lock' in text and f'"account {account}"' in text for text in texts(first, 'cause')), first
    assert '3 locks in a circle' in first['title'] and 'bank.c' in first['title']
    assert '"transfer A to B" and others' in found[1]['title'], found[1]
    assert 'same order' in first['next']


def what_is_known_is_left_out():
    """And nothing else; a line needs its reason."""
    trace, file = os.path.join(folder, 'known'), os.path.join(folder, 'suppressions')
    subprocess.run([clients, 'leak'], env={**os.environ, 'WEFT_TRACE': trace}, check=False, timeout=60)

    def explain(line):
        with open(file, 'w', encoding='utf-8') as f:
            f.write('# what we know\n\n' + line + '\n')
        return subprocess.run([weft, 'explain', '--suppress', file, trace], check=False, capture_output=True, text=True, timeout=60)

    said = explain('leak:promises "client *" # they close themselves')
    assert (said.returncode, said.stdout) == (0, '') and '1 finding is left out' in said.stderr and 'they close themselves' in said.stderr, said
    for other in 'leak:"server" # no', 'hang:client # no':
        said = explain(other)
        assert said.returncode == 1 and said.stdout.startswith('leak: ') and 'no finding matches' in said.stderr, said
    for wrong in 'leak:client', 'leak # reason', 'leek:client # reason':
        said = explain(wrong)
        assert said.returncode == 2 and said.stdout == '' and 'suppressions:3: ' in said.stderr, said


def a_lock_that_is_taken_again():
    first = findings(bank, 'again')[0]
    assert first['finding'] == 'deadlock' and first['sure'] and 'which it never gets' in first['title'] and '"account B"' in first['title'], first


def two_who_have_all_connections_and_want_more():
    """Where one of the two can give its own back, nothing is wrong."""
    found = findings(forms, 'tokens')
    assert len(found) == 1 and found[0]['finding'] == 'deadlock' and found[0]['sure'], found
    assert 'has one of pool 1 "connections" and waits for another' in found[0]['title'] and '2 have one of' in str(texts(found[0], 'note')), found
    assert findings(forms, 'tokens-go') == []


def two_threads_with_two_mutexes():
    found = findings(threads, 'deadlock')
    assert len(found) == 1 and found[0]['finding'] == 'deadlock' and found[0]['sure'], found
    title = found[0]['title']
    for who, has, wants in ('writer', 'journal', 'ledger'), ('reader', 'ledger', 'journal'):
        part = next(p for p in title.split(', and ') if f'"{who}"' in p)
        assert part.index('holds') < part.index(f'"{has}"') < part.index('waits for') < part.index(f'"{wants}"'), title


def a_mutex_that_is_not_unlocked():
    first = findings(threads, 'forgets')[0]
    assert first['finding'] == 'hang' and first['verdict'] == 'not-released' and first['sure'], first
    assert '"writer"' in first['title'] and '"journal"' in first['title'] and 'without releasing' in first['title']


def a_server_that_is_asked_again_without_end():
    found = findings(jobs, 'storm')
    assert len(found) == 1 and found[0]['finding'] == 'retries' and found[0]['sure'], found
    title = found[0]['title']
    assert title.startswith('connect ') and 'in call' in title and 'connection refused' in title, title
    tries = int(title.split('tried again ')[1].split()[0])
    assert 290 <= tries <= 299, title


def a_queue_that_only_grows():
    found = findings(jobs, 'backlog')
    assert len(found) == 1 and found[0]['finding'] == 'backlog' and found[0]['sure'], found
    assert '"jobs in the queue" grew to ' in found[0]['title'] and '300 were added' in found[0]['title'], found
    who = texts(found[0], 'cause')
    assert 'in bring' in who[0] and 'adds' in who[0] and 'in work_off' in who[1] and 'takes' in who[1], who


def a_queue_or_a_store():
    """Little is taken from it: that may be meant."""
    found = findings(clients, 'slowly', severity='information')
    assert [f['finding'] for f in found if f['finding'] == 'backlog'] == ['backlog'], found
    assert 'grew to 150 and never fell back: 160 were added' in found[0]['title'] and 'may be no queue' in found[0]['doubt'], found


def orders_that_pile_up():
    """Each order that is not served hangs for itself, but the cause is one."""
    found = findings(jobs, 'orders')
    assert len(found) == 1 and found[0]['finding'] == 'backlog' and found[0]['sure'], found
    assert 'promises "order *"' in found[0]['title'] and '300 came' in found[0]['title'], found


def a_pool_whose_threads_all_compute():
    for attempt in range(5):  # whose OS threads had no processor are not blamed
        found = findings(jobs, 'threads', UV_THREADPOOL_SIZE='2', ATTEMPT=str(attempt))
        if found:
            break
    assert len(found) == 1 and found[0]['finding'] == 'exhausted' and found[0]['sure'], found
    assert '"stat /"' in found[0]['title'] and 'each of its 2' in found[0]['title'] and 'in use_threads' in found[0]['title'], found
    assert not [f for f in findings(jobs, 'threads', UV_THREADPOOL_SIZE='8') if f['sure']]


def work_that_goes_on_after_a_timeout():
    found = [f for f in findings(jobs, 'gives-up', severity='information') if f['finding'] == 'wasted']
    assert len(found) == 1 and 'in wait_at_most' in found[0]['title'], found
    assert 'cancelled' in texts(found[0], 'cause')[1], found


def stats_and_check_agree():
    """Each try to call became the next one."""
    findings(jobs, 'storm', severity='agreement')
    trace = os.path.join(folder, 'jobs-storm-agreement')
    said = subprocess.run([weft, 'stats', '--json', trace], check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout
    tries = [s for s in map(json.loads, said.splitlines()) if s['kind'] == 'try' and s['count'] > 200]
    assert len(tries) == 1 and tries[0]['failures'] == tries[0]['count'], tries
    assert tries[0]['waiting']['max_ns'] > 299 * 1000000, tries


def differences(*runs):
    traces = []
    for program, *args in runs:
        traces.append(os.path.join(folder, '-'.join(['diff', os.path.basename(program), *args])))
        if not os.path.exists(traces[-1]):
            subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': traces[-1]}, check=True, timeout=60)
    said = subprocess.run([weft, 'diff', '--json', *traces], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    assert said.returncode == (1 if said.stdout else 0), said
    return [json.loads(line) for line in said.stdout.splitlines()]


def a_stall_is_the_first_difference():
    found = differences([shop], [shop, 'stall'])
    assert found[0]['difference'] == 'finding' and 'only in the second run there is a stall' in found[0]['text'], found
    assert 'in order' in found[0]['text'] and found[0]['first'] is None and found[0]['second'] is not None, found
    other_way = differences([shop, 'stall'], [shop])
    assert 'only in the first run there is a stall' in other_way[0]['text'], other_way


def added_lines_make_no_difference():
    """Only the promise that was added differs, though all lines did."""
    found = differences([shop], [edited_shop])
    assert not {'end', 'counter'} & {d['difference'] for d in found}, found
    missing = [d for d in found if d['difference'] == 'missing']
    assert len(missing) == 1 and missing[0]['text'].startswith('wait at ') and ': 0 in the first run, 1 in the second' in missing[0]['text'], found


def what_a_protected_promise_waits_for():
    first = findings(jobs, 'protected')[0]
    assert first['finding'] == 'hang' and first['verdict'] == 'never-tried' and '"answer"' in first['title'], first


def a_server_that_does_not_answer():
    """Nothing is told to weft: the program is recorded as it is.  A connection that nobody uses, and a late answer, are no faults."""
    for fault, expected in ('all', []), ('kept', []), ('late', []), ('pool', []), ('locked', []), ('silent', ['from 127.0.0.1', 'to 127.0.0.1']), ('left', ['owed its peer an answer for 1.', 'waited for an answer for 1.']), ('file', ['from 127.0.0.1', 'to 127.0.0.1']):
        for attempt in range(5):  # whose OS threads had no processor is not blamed
            trace = os.path.join(folder, f'talks-{fault}-{attempt}')
            subprocess.run([weft, 'record', '-o', trace, '--', talks, fault], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=60)
            said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
            found = [f for f in map(json.loads, said.stdout.splitlines()) if f['severity'] == 'alarm' and f['finding'] != 'stall']
            wanted = {'pool': r'waited [23]\d\d ms .* its 4 ', 'locked': r'of its 4, 3 waited for lock \d+ \(.*, which work \d+ .*had$'}.get(fault)
            if not wanted or found and re.search(wanted, found[0]['title']):
                break
        if wanted:
            assert [f['finding'] for f in found] == ['exhausted'] and said.returncode == 1 and re.search(wanted, found[0]['title']), found
            continue
        assert len(found) == len(expected) and said.returncode == 0, (fault, found)
        for finding, words in zip(found, expected):
            assert finding['finding'] == 'unanswered' and words in finding['title'] and not finding['sure'], finding
        assert all(f['title'].endswith(', until it was closed') == (fault == 'left') for f in found), found
        if fault == 'file':
            assert 'since then it waits for fs ' in found[0]['title'] and '"open nobody-writes"' in found[0]['title'], found[0]


def timers_that_come_one_sleep_after_a_stall():
    trace = os.path.join(folder, 'turns')
    subprocess.run([weft, 'record', '-o', trace, '--', turns], check=True, stderr=subprocess.DEVNULL, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    first = json.loads(said.stdout.splitlines()[0])
    assert first['finding'] == 'stall' and 'blocked in usleep' in first['title'] and '2 promises' in first['title'], said.stdout
    assert all('timer ' in text and ' is called back ' in text for text in texts(first, 'victim')), first


for test in (healthy_twins_are_not_blamed, what_is_known_is_left_out, a_circle_through_a_choice, a_choice_that_the_ring_forgot, three_transfers_in_a_circle, a_lock_that_is_taken_again,
             two_who_have_all_connections_and_want_more, two_threads_with_two_mutexes,
             a_mutex_that_is_not_unlocked, connections_that_nobody_closes, a_server_that_is_asked_again_without_end, a_queue_that_only_grows,
             a_queue_or_a_store, orders_that_pile_up,
             a_pool_whose_threads_all_compute, work_that_goes_on_after_a_timeout, stats_and_check_agree, a_stall_is_the_first_difference,
             added_lines_make_no_difference, what_a_protected_promise_waits_for,
             a_server_that_does_not_answer, timers_that_come_one_sleep_after_a_stall):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__)
