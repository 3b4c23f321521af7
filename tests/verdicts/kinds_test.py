#!/usr/bin/env python3
"""kinds_test.py WEFT PAIRS LOCKS ENDS POOL CHILD CALLS NAPS JOBS: programs, with and without a fault, about which weft 0.2.0 was wrong; some consist of two processes.

SPDX-License-Identifier: ISC"""

import json
import os
import re
import subprocess
import sys
import tempfile

weft, pairs, locks, ends, pool, child, calls, naps, jobs = map(os.path.abspath, sys.argv[1:10])
folder = tempfile.mkdtemp(prefix='weft-kinds-')


def explain(trace):
    """Returns all findings, most serious first."""
    said = subprocess.run([weft, 'explain', '--json', trace], check=False, stdout=subprocess.PIPE, text=True, timeout=60)
    assert said.returncode in (0, 1), said
    return [json.loads(line) for line in said.stdout.splitlines()]


def record_pair(name, *roles):
    """Runs each role as a process with a trace of its own; returns the folder with the traces."""
    place = os.path.join(folder, name)
    os.mkdir(place)
    for role in roles:
        subprocess.run([pairs, role], env={**os.environ, 'WEFT_TRACE': os.path.join(place, role)}, check=True, timeout=60)
    return place


def record(program, *args, name=None):
    """Records an unmodified program, which may hang until a signal ends it; returns all findings."""
    trace = os.path.join(folder, name or '-'.join([os.path.basename(program), *args]))
    subprocess.run([weft, 'record', '-o', trace, '--', program, *args], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    return explain(trace)


def names(found):
    return [f['finding'] for f in found]


def accepted_connection_without_its_accept_event_is_in_no_cycle():
    """The ring has lost the event that accepted the connection, but the label of the connection shows that it was accepted.  It owes no answer and waits for requests."""
    found = explain(record_pair('idle', 'server', 'client'))
    assert 'cycle' not in names(found) and 'deadlock' not in names(found), found


def connection_leak_is_found_in_one_trace_and_in_joined_traces():
    """The program leaks its ends of connections, also if a second trace shows that the peer has closed the other ends."""
    place = record_pair('kept', 'keeper', 'caller')
    for trace in os.path.join(place, 'keeper'), place:
        found = explain(trace)
        assert 'leak' in names(found), (trace, found)


def deadlock_through_a_condition_names_the_blocked_signaller():
    """A condition or lock of libuv has the place in the program that calls libuv.  The stalls of the members of a deadlock are no findings of their own."""
    for fault, place in ('condition', 'close_log'), ('uv', 'uv_close_log'):
        found = record(locks, fault)
        first = found[0]
        assert [(f['finding'], f['sure']) for f in found] == [('deadlock', True)], found
        assert ' waits for condition ' in first['title'] and 'which its signaller ' in first['title'], first
        assert any(e['role'] == 'chain' and place in e['text'] for e in first['evidence']), first
        assert any('closes the cycle' in e['text'] for e in first['evidence']), first
        assert any(re.search(r' took lock \d+ at \w+ .*, and has not released it$', e['text']) for e in first['evidence']), first
    assert record(locks, 'healthy') == []


def run_told(program, *args):
    """Runs a program that records itself; returns all findings."""
    trace = os.path.join(folder, '-'.join([os.path.basename(program), *args]))
    subprocess.run([program, *args], env={**os.environ, 'WEFT_TRACE': trace}, check=False, timeout=60)
    return explain(trace)


def loop_running_until_a_never_resolved_promise_is_a_hang():
    first = run_told(ends, 'waits')[0]
    assert (first['finding'], first['sure']) == ('hang', True) and '"page"' in first['title'], first


def failed_promise_is_reported_unless_its_state_is_read():
    assert names(run_told(ends, 'ignored')) == ['failure']
    dropped = run_told(ends, 'dropped')
    assert names(dropped) == ['failure', 'failure'] and any('no space for the page' in f['title'] for f in dropped), dropped
    assert run_told(ends, 'looked-at') == []


def blocking_file_requests_exhaust_the_pool():
    """If the trace ends before a thread of the pool becomes free, the finding says so."""
    fifo = os.path.join(folder, 'fifo')
    os.mkfifo(fifo)
    for args, says in ((), 'becomes free'), (('end',), 'no thread of the pool becomes free before the end'):
        found = [f for f in record(pool, fifo, *args, name='pool-' + '-'.join(args)) if f['finding'] == 'exhausted']
        assert len(found) == 1 and '"open /dev/null" waited ' in found[0]['title'] and 'all 4 run fs ' in found[0]['title'], found
        assert any(says in e['text'] for e in found[0]['evidence']), found
        assert found[0]['sure'], found


def finding_about_a_running_loop_names_the_handle_keeping_it_alive():
    """The loop of a helper thread that waits for messages has no finding: it does not keep the program from ending."""
    first = record(child, 'unread')[0]
    assert first['finding'] == 'alive' and '"yes" still runs: the program stopped reading connection ' in first['title'] and '"stdout of yes" at ' in first['title'], first
    alive = [f for f in record(child, 'helper') if f['finding'] == 'alive']
    assert len(alive) == 1 and 'timer' in alive[0]['title'], alive


def timers_that_are_never_stopped_are_a_leak():
    found = [f for f in record(child, 'timers') if f['finding'] == 'leak']
    assert len(found) == 1 and '"every 20 ms" are pending' in found[0]['title'] and 'in add_timer' in found[0]['title'], found


def blocking_functions_are_named():
    """A stall names the function that made the blocking call, also if a library made it or if the program records itself."""
    for program, fault, call, function in (calls, 'usleep', 'usleep', 'nap'), (calls, 'nanosleep', 'nanosleep', 'doze'), (calls, 'plugin', 'nanosleep', 'nap_in_plugin'), (calls, 'system', 'system', 'run_command'), (calls, 'pclose', 'pclose', 'close_pipe'), (naps, 'usleep', 'usleep', 'nap'):
        first = record(program, fault)[0]
        assert first['finding'] == 'stall' and re.search(rf' in {call}\b.*\b(calls|naps|plugin)\.c:', first['title']), first
        assert any(re.search(rf'longest blocking call at {function} \(', e['text']) for e in first['evidence']), first


def computing_callback_is_named():
    """On a busy machine, the stall may be uncertain."""
    stalls = [f for f in record(calls, 'computes') if f['finding'] == 'stall']
    assert any(re.search(r'^the loop called on_timer \(calls\.c:\d+\) for this promise$', e['text']) for e in stalls[0]['evidence']), stalls


def deadlock_names_the_locking_functions():
    first = record(calls, 'order')[0]
    assert (first['finding'], first['sure']) == ('deadlock', True), first
    texts = [e['text'] for e in first['evidence']]
    for function in 'write_pages', 'read_pages':
        assert any(re.search(rf' takes lock \d+ at {function}\b', text) for text in texts), texts
        assert any(re.search(rf' waits for lock \d+ at {function}\b', text) for text in texts), texts


def pool_waiting_for_its_own_work_hangs():
    first = record(calls, 'pool')[0]
    assert (first['finding'], first['sure']) == ('hang', True) and 'its only thread waits for ' in first['title'] and 'calls.c' in first['title'], first
    assert [e for e in first['evidence'] if re.search(r'^a thread of the pool waits for condition \d+ "semaphore" at do_whole \(calls\.c:\d+\)$', e['text'])], first


def unanswered_request_lists_threads_blocked_in_calls():
    """The loop hands the request to the worker in plain memory, so the chain of waits of the request ends at the loop."""
    found = record(calls, 'waitpid')
    first = found[0]
    assert not [f for f in found if 'has waited' in f['title']], found  # the waiting client has no finding of its own, because the server causes its wait
    assert first['finding'] == 'hang' and 'the program wrote no answer to connection' in first['title'], first
    assert [e for e in first['evidence'] if re.search(r' calls waitpid at wait_for_child \(calls\.c:\d+\), which has not returned$', e['text'])], first


def thread_blocked_in_read_without_an_answer_has_a_finding():
    """The client of a libuv server is an OS thread that calls read() itself."""
    first = record(calls, 'talk')[0]
    said = first['title'] + ''.join(e['text'] for e in first['evidence'])
    assert first['finding'] in ('hang', 'unanswered', 'stuck') and re.search(r'ask_for_pages|talk \(calls', said), first


def request_delayed_by_a_stall_has_no_finding_of_its_own():
    """A request that waits for a blocked loop has no finding of its own."""
    found = record(calls, 'held-up')
    assert names(found)[0] == 'stall' and ' in system' in found[0]['title'] and 'slow' not in names(found), found


def timer_does_not_hide_a_spin():
    found = record(calls, 'writable')
    assert names(found)[0] == 'spin' and 'in watch_output' in found[0]['title'] + found[0]['evidence'][0]['text'], found


def children_without_waitpid_are_zombies():
    found = record(calls, 'zombies')
    assert names(found)[0] == 'leak' and re.search(r'^\d+ child processes have ended, .* zombies \(calls\.c:\d+ in start_children\)$', found[0]['title']), found
    assert 'leak' not in names(record(calls, 'waited-for'))


def few_repeating_timers_are_informational():
    found = [f for f in record(child, 'few') if f['finding'] == 'leak']
    assert len(found) == 1 and found[0]['severity'] == 'information' and 'in add_timer' in found[0]['title'], found


def timeout_that_ends_every_promise_is_reported():
    first = run_told(jobs, 'hasty')[0]
    assert (first['finding'], first['severity']) == ('retries', 'information') and '12 of 12 promises ' in first['title'] and ' ended by their timeout' in first['title'], first
    assert any(re.search(r'^timer \d+ .*wait_too_short', e['text']) for e in first['evidence']), first


for test in (accepted_connection_without_its_accept_event_is_in_no_cycle, connection_leak_is_found_in_one_trace_and_in_joined_traces, deadlock_through_a_condition_names_the_blocked_signaller,
             loop_running_until_a_never_resolved_promise_is_a_hang, failed_promise_is_reported_unless_its_state_is_read,
             blocking_file_requests_exhaust_the_pool, finding_about_a_running_loop_names_the_handle_keeping_it_alive, timers_that_are_never_stopped_are_a_leak,
             blocking_functions_are_named, computing_callback_is_named, deadlock_names_the_locking_functions, pool_waiting_for_its_own_work_hangs,
             unanswered_request_lists_threads_blocked_in_calls, thread_blocked_in_read_without_an_answer_has_a_finding,
             request_delayed_by_a_stall_has_no_finding_of_its_own, timer_does_not_hide_a_spin, few_repeating_timers_are_informational, children_without_waitpid_are_zombies,
             timeout_that_ends_every_promise_is_reported):
    try:
        test()
    except BaseException:
        print('its traces are in', folder)
        raise
    print('ok   ', test.__name__)
