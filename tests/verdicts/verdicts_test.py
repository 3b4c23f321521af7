#!/usr/bin/env python3
"""verdicts_test.py WEFT BANK THREADS CLIENTS JOBS SHOP EDITED_SHOP CHOICES TALKS TURNS FORMS STOPS: programs written without regard to weft:
   the first finding names the fault of the program, and the same program without the fault has no finding.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import subprocess
import sys
import tempfile

weft, bank, threads, clients, jobs, shop, edited_shop, choices, talks, turns, forms, stops = map(os.path.abspath, sys.argv[1:13])
folder = tempfile.mkdtemp(prefix='weft-verdicts-')


def findings(program, *args, severity='alarm', **environment):
    """Returns the findings of a run, most serious first."""
    trace = os.path.join(folder, '-'.join([os.path.basename(program), *args, severity, *environment.values()]))
    subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': trace, **environment}, check=False, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    found = [json.loads(line) for line in said.stdout.splitlines()]
    alarms = [f for f in found if f['severity'] == 'alarm']
    assert said.returncode == (1 if any(f['sure'] for f in alarms) else 0), said
    return [f for f in found if f['severity'] == severity]


def texts(finding, role):
    return [e['text'] for e in finding['evidence'] if e['role'] == role]


def healthy_versions_of_programs_have_no_findings():
    for program in bank, threads, clients, jobs:
        assert findings(program) == []
    for busy in 'chat', 'exit', 'pool':
        assert findings(clients, busy) == [], busy
    assert findings(jobs, 'errors') == []


def unclosed_connections_are_a_leak():
    """The connections are one finding, although each has a label of its own."""
    found = findings(clients, 'leak')
    assert len(found) == 1 and found[0]['finding'] == 'leak' and found[0]['sure'], found
    assert found[0]['title'].startswith('80 promises "client *"') and 'none ended' in found[0]['title'], found


def cycle_is_reported_only_if_all_branches_are_stuck():
    """A cycle of waits is no fault while an alternative can still end, or after it has ended; it is a fault if all alternatives wait for the cycle."""
    assert findings(choices) == []
    assert findings(choices, 'alive') == []
    told = findings(choices, 'alive', severity='information')
    assert [f['finding'] for f in told] == ['underway'] and '"timeout"' in told[0]['title'], told
    first = findings(choices, 'stuck')[0]
    assert first['finding'] == 'cycle' and first['sure'] and '"order"' in first['title'], first


def choice_with_overwritten_inputs_is_no_deadlock():
    """The ring has overwritten the event by which a choice became another promise, and repeats only that promise."""
    trace = os.path.join(folder, 'lost')
    subprocess.run([choices, 'lost'], env={**os.environ, 'WEFT_TRACE': trace + ',size=64K,packets=4'}, check=True, timeout=60)
    info = subprocess.run([weft, 'info', trace], stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout
    assert 'overwritten in the ring buffer' in info, info
    said = subprocess.run([weft, 'explain', trace], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    titles = [line for line in said.stdout.splitlines() if line and not line.startswith((' ', 'nothing found: ', 'underway '))]
    assert said.returncode == 0 and not titles, said


def three_transfers_with_crossed_locks_deadlock():
    """The finding about the join of all transfers names one of its inputs."""
    found = findings(bank, 'deadlock')
    first = found[0]
    assert first['finding'] == 'deadlock' and first['sure'], first
    for account in 'ABC':
        assert any(f'takes lock' in text and f'"account {account}"' in text for text in texts(first, 'cause')), first
    assert 'cycle of 3 locks' in first['title'] and 'bank.c' in first['title']
    assert '"transfer A to B" and others' in found[1]['title'], found[1]
    assert 'same order' in first['next']


def known_findings_are_omitted():
    """--suppress omits only the findings that match a line of its file; each line needs a reason."""
    trace, file = os.path.join(folder, 'known'), os.path.join(folder, 'suppressions')
    subprocess.run([clients, 'leak'], env={**os.environ, 'WEFT_TRACE': trace}, check=False, timeout=60)

    def explain(line):
        with open(file, 'w', encoding='utf-8') as f:
            f.write('# what we know\n\n' + line + '\n')
        return subprocess.run([weft, 'explain', '--suppress', file, trace], check=False, capture_output=True, text=True, timeout=60)

    said = explain('leak:promises "client *" # they close themselves')
    assert said.returncode == 0 and said.stdout.startswith('nothing found: ') and '1 finding is left out' in said.stderr and 'they close themselves' in said.stderr, said
    for other in 'leak:"server" # no', 'hang:client # no':
        said = explain(other)
        assert said.returncode == 1 and said.stdout.startswith('leak: ') and 'no finding matches' in said.stderr, said
    for wrong in 'leak:client', 'leak # reason', 'leek:client # reason':
        said = explain(wrong)
        assert said.returncode == 2 and said.stdout == '' and 'suppressions:3: ' in said.stderr, said


def blocked_callback_is_reported_without_a_victim():
    """A callback that sleeps is a stall although no promise was late; a callback that never returns from a call hangs and did not crash."""
    for mode, kind, words in (
            ('sleep', 'stall', r'timer \d+ "50 ms" blocked the event loop for 1\d\d ms in usleep: no promise is known to be late'),
            ('lock', 'hang', r'timer \d+ "50 ms" has not returned from pthread_mutex_lock for [23]\.\d+ s: lock \d+ is held by thread'),
            ('wait', 'deadlock', r'thread \d+ "stops" waits for condition \d+ and holds lock \d+, which its signaller timer \d+ needs'),
            ('good', '', ''), ('brief', '', '')):
        trace = os.path.join(folder, 'stops-' + mode)
        subprocess.run([weft, 'record', '-o', trace, '--', stops, mode], check=False, timeout=60, stderr=subprocess.DEVNULL)
        said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
        found = [f for f in map(json.loads, said.stdout.splitlines()) if f['severity'] == 'alarm']
        rule = subprocess.run([weft, 'check', trace, 'stall<100ms'], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
        if not kind:
            assert found == [], (mode, found)
            continue
        assert found and found[0]['finding'] == kind and found[0]['sure'] and re.match(words, found[0]['title']), (mode, found)
        assert not [f for f in found if f['finding'] == 'crash'], (mode, found)
        assert (said.returncode, rule.returncode) == (1, 1), (mode, said, rule)


def lock_taken_twice_is_a_deadlock():
    first = findings(bank, 'again')[0]
    assert first['finding'] == 'deadlock' and first['sure'] and 'which it already holds' in first['title'] and '"account B"' in first['title'], first


def holders_waiting_for_another_pool_connection_are_a_deadlock():
    """Each of two promises holds a connection and waits for another; this is no deadlock if one of them can return its connection."""
    found = findings(forms, 'tokens')
    assert len(found) == 1 and found[0]['finding'] == 'deadlock' and found[0]['sure'], found
    assert 'holds 1 of pool 1 "connections" and waits for another' in found[0]['title'] and '2 promises hold 1 of' in str(texts(found[0], 'note')), found
    assert findings(forms, 'tokens-go') == []


def two_threads_with_two_mutexes_deadlock():
    found = findings(threads, 'deadlock')
    assert len(found) == 1 and found[0]['finding'] == 'deadlock' and found[0]['sure'], found
    title, pairs = found[0]['title'], [('writer', 'journal', 'ledger'), ('reader', 'ledger', 'journal')]
    assert any(re.search(rf'"{who}" holds lock \d+ "{has}" and waits for lock \d+ "{wants}": cycle of 2 locks', title) for who, has, wants in pairs), title
    for who, has, _ in pairs:
        assert any(re.search(rf'"{who}" takes lock \d+ "{has}"$', text) for text in texts(found[0], 'cause')), found


def unreleased_mutex_is_a_hang():
    first = findings(threads, 'forgets')[0]
    assert first['finding'] == 'hang' and first['verdict'] == 'not-released' and first['sure'], first
    assert '"journal" is held by thread' in first['title'] and any('"writer" ends and still holds' in text for text in texts(first, 'cause')), first


def endless_retries_without_a_pause_are_reported():
    found = findings(jobs, 'storm')
    assert len(found) == 1 and found[0]['finding'] == 'retries' and found[0]['sure'], found
    title = found[0]['title']
    assert title.startswith('connect ') and 'in call' in title and 'connection refused' in title, title
    failures = int(title.split(' failed ')[1].split()[0])
    assert 291 <= failures <= 300, title


def growing_queue_is_a_backlog():
    found = findings(jobs, 'backlog')
    assert len(found) == 1 and found[0]['finding'] == 'backlog' and found[0]['sure'], found
    assert '"jobs in the queue" grew to ' in found[0]['title'] and '300 added' in found[0]['title'], found
    who = texts(found[0], 'cause')
    assert 'in bring' in who[0] and 'added' in who[0] and 'in work_off' in who[1] and 'removed' in who[1], who


def rarely_drained_queue_is_informational():
    """A queue from which few items are removed may be a store, so the finding is informational."""
    found = findings(clients, 'slowly', severity='information')
    assert [f['finding'] for f in found if f['finding'] == 'backlog'] == ['backlog'], found
    assert 'grew to 150: 160 added' in found[0]['title'] and 'may be a store' in found[0]['doubt'], found


def accumulating_orders_are_a_backlog():
    """All pending orders are one finding, because they have one cause."""
    found = findings(jobs, 'orders')
    assert len(found) == 1 and found[0]['finding'] == 'backlog' and found[0]['sure'], found
    assert 'of 300 promises "order *"' in found[0]['title'], found


def exhausted_pool_is_reported():
    for attempt in range(5):  # stalls of preempted OS threads are not reported
        found = findings(jobs, 'threads', UV_THREADPOOL_SIZE='2', ATTEMPT=str(attempt))
        if found:
            break
    assert len(found) == 1 and found[0]['finding'] == 'exhausted' and found[0]['sure'], found
    assert '"stat /"' in found[0]['title'] and 'all 2 threads compute' in found[0]['title'] and 'in use_threads' in found[0]['title'], found
    assert not [f for f in findings(jobs, 'threads', UV_THREADPOOL_SIZE='8') if f['sure']]


def work_after_a_timeout_is_wasted():
    found = [f for f in findings(jobs, 'gives-up', severity='information') if f['finding'] == 'wasted']
    assert len(found) == 1 and 'in wait_at_most' in found[0]['title'], found
    assert 'cancelled' in texts(found[0], 'cause')[1], found


def stats_and_check_agree():
    """Each try became the next one, so all tries fail when the last one fails, and count until then."""
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


def stall_is_the_first_difference():
    found = differences([shop], [shop, 'stall'])
    assert found[0]['difference'] == 'finding' and 'only the second run has a stall' in found[0]['text'], found
    assert 'in order' in found[0]['text'] and found[0]['first'] is None and found[0]['second'] is not None, found
    other_way = differences([shop, 'stall'], [shop])
    assert 'only the first run has a stall' in other_way[0]['text'], other_way


def changed_line_numbers_make_no_difference():
    """Only the added promise is a difference, although all line numbers changed."""
    found = differences([shop], [edited_shop])
    assert not {'end', 'counter'} & {d['difference'] for d in found}, found
    missing = [d for d in found if d['difference'] == 'missing']
    assert len(missing) == 1 and missing[0]['text'].startswith('wait at ') and ': the first run has 0, the second run has 1' in missing[0]['text'], found


def hang_names_the_missing_answer_of_a_protected_promise():
    first = findings(jobs, 'protected')[0]
    assert first['finding'] == 'hang' and first['verdict'] == 'never-tried' and '"answer"' in first['title'], first


def unanswered_requests_are_reported():
    """The program is recorded unmodified.  An idle connection or a late response is no fault.  The end of a connection that owes an answer is reported."""
    for fault, expected in ('all', []), ('kept', []), ('late', []), ('pool', []), ('locked', []), ('silent', ['from 127.0.0.1']), ('left', ['owed its peer an answer for 1.']), ('file', ['from 127.0.0.1']):
        for attempt in range(5):  # stalls of preempted OS threads are not reported
            trace = os.path.join(folder, f'talks-{fault}-{attempt}')
            subprocess.run([weft, 'record', '-o', trace, '--', talks, fault], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=60)
            said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
            found = [f for f in map(json.loads, said.stdout.splitlines()) if f['severity'] == 'alarm' and f['finding'] != 'stall']
            wanted = {'pool': r'waited [23]\d\d ms .* all 4 threads compute', 'locked': r'3 of 4 wait for lock \d+, held by work \d+'}.get(fault)
            if not wanted or found and re.search(wanted, found[0]['title']):
                break
        if wanted:
            assert [f['finding'] for f in found] == ['exhausted'] and said.returncode == 1 and re.search(wanted, found[0]['title']), found
            continue
        assert len(found) == len(expected) and said.returncode == 0, (fault, found)
        for finding, words in zip(found, expected):
            assert finding['finding'] == 'unanswered' and words in finding['title'] and not finding['sure'], finding
        assert all((' until it was closed' in f['title']) == (fault == 'left') for f in found), found
        if fault == 'file':
            assert ': it waits for fs ' in found[0]['title'] and '"open nobody-writes"' in found[0]['title'], found[0]


def timers_delayed_by_a_stall_are_listed_as_victims():
    trace = os.path.join(folder, 'turns')
    subprocess.run([weft, 'record', '-o', trace, '--', turns], check=True, stderr=subprocess.DEVNULL, timeout=60)
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    first = json.loads(said.stdout.splitlines()[0])
    assert first['finding'] == 'stall' and ' in usleep: ' in first['title'] and '2 promises' in first['title'], said.stdout
    assert all('timer ' in text and ' is called back ' in text for text in texts(first, 'victim')), first


for test in (healthy_versions_of_programs_have_no_findings, known_findings_are_omitted, cycle_is_reported_only_if_all_branches_are_stuck, choice_with_overwritten_inputs_is_no_deadlock, three_transfers_with_crossed_locks_deadlock, lock_taken_twice_is_a_deadlock,
             holders_waiting_for_another_pool_connection_are_a_deadlock, two_threads_with_two_mutexes_deadlock,
             unreleased_mutex_is_a_hang, unclosed_connections_are_a_leak, endless_retries_without_a_pause_are_reported, growing_queue_is_a_backlog,
             rarely_drained_queue_is_informational, accumulating_orders_are_a_backlog,
             exhausted_pool_is_reported, work_after_a_timeout_is_wasted, stats_and_check_agree, stall_is_the_first_difference,
             changed_line_numbers_make_no_difference, hang_names_the_missing_answer_of_a_protected_promise,
             unanswered_requests_are_reported, timers_delayed_by_a_stall_are_listed_as_victims, blocked_callback_is_reported_without_a_victim):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__)
