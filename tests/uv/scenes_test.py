#!/usr/bin/env python3
"""Small programs of libuv have the right promises in a trace, and the right findings.

	scenes_test.py SCENES WEFT

SPDX-License-Identifier: ISC"""

import os
import signal
import sys
import tempfile
import time

from recorded import PATIENCE, Recording, Trace, expect, fail

LATE = '2s'  # a busy machine makes iterations long
scenes, weft = sys.argv[1:3]
folder = tempfile.TemporaryDirectory(prefix='weft-uv-')


def record(name, **options):
    recording = Recording(weft, os.path.join(folder.name, name), [scenes, name], **options)
    if options.get('wait', True):
        expect(recording.status, 0, f'the exit status of {name}')
        return recording.trace()
    return recording


def overlap(a, b):
    return any(begin < other_end and other_begin < end for begin, end in a for other_begin, other_end in b)


# A uv_loop_close() while a handle is open is an alarm, unless the program closes the handle later and closes the loop again.
found = record('busy').findings()
expect(list(found), ['unclosed'], 'what is found in a loop closed too early')
expect(len(found['unclosed'][0]['evidence']), 1, 'handles that were open')
expect(record('closed').findings(), {}, 'what is found in a loop closed at the second attempt')
# The finding does not list internal handles of libuv.
found = record('polled').findings()
expect(len(found['unclosed'][0]['evidence']), 1, 'handles of the program that were open')

# A new loop in the memory of an old one is another promise, with iterations and an end of its own.
trace = record('again')
expect([p['end'] for p in trace.promises('loop', 'single iterations')], ['pending', 'resolved'], 'how two loops in the same memory end')
expect([p['end'] for p in trace.promises('close', 'uv_loop_close')], ['pending'], 'what became of the first attempt to close them')

# weft reads libuv's list of handles only while it is valid: a handle that was initialised twice makes the list endless, or leads into the list of another loop.
for name in 'twice', 'moved':
    trace = record(name)
    called = {p['promise']: p['labels'][0][1] for p in trace.promises('timer')}
    awaits = [event for event in trace.ask('events', '--json') if event['op'] == 'await']
    first = trace.promises('loop')[0]['promise']
    expect([called[event['input']] for event in awaits if event['promise'] == first], ['300 ms'], 'what keeps the loop of ' + name)


def until(recording, holds):
    """Waits until `holds` is true of the trace, kills the program, and returns the trace."""
    recording.ids('uv_scenes')
    end = time.monotonic() + PATIENCE
    while not holds(recording.trace('uv_scenes')):
        if time.monotonic() > end:
            fail(f'what {recording.folder} waits for is never told')
        time.sleep(0.1)
    recording.end('uv_scenes', signal.SIGKILL)
    return recording.trace('uv_scenes')


def kept_by(trace, loop):
    """Returns the labels of the promises for which the loop with this label waits."""
    return [wait['awaited'].split('"')[1] for wait in trace.ask('waits', '--json') if f'"{loop}"' in wait.get('name', '')]


# While a loop sleeps, the handles that keep it alive are recorded, but no unreferenced timer; also if the program runs single iterations.
for name, label in ('alive', 'uv_run'), ('turns', 'uv_run, single iterations'):
    recording = record(name, wait=False)
    expect(recording.process.stdout.readline(), b'sleeps\n', 'the first word of ' + name)
    trace = until(recording, lambda t: kept_by(t, label) == ['every 100 s', 'async'])
    keepers = [trace.promise('timer', 'every 100 s')['promise'], trace.promise('condition', 'async')['promise']]
    expect([line['promise'] for line in trace.findings()['alive'][0]['evidence'] if line['role'] == 'chain'], keepers, 'what keeps it, as explain has it')
    expect(trace.alarms(), [], 'alarms of a loop that sleeps')
    # A promise that is pending at the kill lasts until the kill, also if it had no events for long.
    pending = [p for p in trace.promises() if p['end'] == 'pending']
    expect({p['end_ns'] for p in pending}, {trace.ask('info', '--json')[0]['span_ns']}, 'until when is drawn what is pending')
    expect({keepers[0], keepers[1]} <= {p['promise'] for p in pending}, True, 'that what keeps it is pending')
# If the program waits outside of its loop, the loop does not keep it alive, and there is no finding.
recording = record('left', wait=False)
# One of the last events records where the program sleeps.
trace = until(recording, lambda t: {'awaits_no_more', 'idle'} <= {event['op'] for event in t.ask('events', '--json')[-3:]})
expect(trace.findings(), {}, 'what is found where a loop has been left')

# Jobs wait in the queue of the pool and run on its thread one after the other; the loop is not blocked meanwhile.
trace = Recording(weft, os.path.join(folder.name, 'pool'), [scenes, 'pool'], env={'UV_THREADPOOL_SIZE': '1'}).trace()
jobs = trace.promises('work')
expect(len(jobs), 3, 'jobs')
expect(len({job['stream'] for job in jobs}), 1, 'OS threads that made jobs')
at_work = [(job['running'][0][0], job['running'][1][1]) for job in jobs]  # the third run of a job is its callback in the loop
for first, second in zip(at_work, at_work[1:]):
    if first[1] > second[0]:
        fail(f'jobs overlap in a pool of one: {at_work}')
if trace.promise('timer', 'every 5 ms')['links']['signal'] == 0 and not overlap(at_work[:1], trace.promise('timer', 'every 5 ms')['running']):
    fail('the timer does not run while work is done')
levels = {}
for event in trace.ask('events', '--json'):
    if event['op'] == 'counter_add':
        values = levels.setdefault(event['counter'], [0])
        values.append(values[-1] + event['change'])
expect({name: (max(values), values[-1]) for name, values in levels.items()},
       {'thread pool: requests': (3, 0), 'thread pool: at work': (1, 0)}, 'the load of the pool, most and last')
expect(trace.alarms('50ms'), [], 'alarms of long work in the pool')

# The path of a response leads into the other process, to the timer for which this process waited, and back to the request.
recording = Recording(weft, os.path.join(folder.name, 'serve'), [scenes, 'serve'])
expect(recording.status, 0, 'how the process ends that is asked')
both = Trace(weft, recording.folder)
timer, asking = both.promise('timer', '30 ms'), both.promise('connection', 'to 127.0.0.1:')
answer = [read for read in both.promises('read') if read['created_by'] == asking['promise']][-1]
path = both.ask('path', '--json', f'--promise={answer["promise"]}')
waits = [step for step in path if step['promise'] == timer['promise'] and step['step'] == 'waiting']
if not waits or waits[0]['end_ns'] - waits[0]['start_ns'] < 20000000:
    fail(f'the path of an answer does not lead to the timer of who answers: {path}')
expect([asking['links']['signal'], timer['links']['signal']], [1, 1], 'arrows from who wrote the question and the answer')

# If one poll finds both an answer and the end of the write of the question, the path leads through the answer, not through the write:
# into the other process or, if this process is not in the trace, to the socket.
recording = Recording(weft, os.path.join(folder.name, 'answer'), [scenes, 'answer'])
expect(recording.status, 0, 'the exit status of the process that answers')
for trace, messages, kind in (Trace(weft, recording.folder), 2, 'request '), (next(t for t in recording.all() if t.promises('timer')), 0, 'connection '):
    path = trace.ask('path', '--json', f'--promise={trace.promise("timer", "16 min")["promise"]}')
    expect(sum(step.get('sent_by') is not None for step in path), messages, f'messages on the path {path}')
    expect([any(step['name'].startswith(name) for step in path) for name in (kind, 'write ')], [True, False], f'that the path has the answer, and not the write: {path}')

# Bytes that a callback writes with system calls count for its connection; for an invalid address, the kernel reports the same error as without recording.
trace = record('astray')
expect([event['position'] for event in trace.ask('events', '--json') if event['op'] == 'sent'], [10, 600], 'how far two ends of a connection wrote')

# The promise of a datagram ends when all work that its handling started has ended.
trace = record('datagram')
request, work, answer = trace.promise('request', 'from 127.0.0.1:'), trace.promises('work')[0], trace.promise('write', '5 bytes to 127.0.0.1:')
expect([work['created_by'], answer['created_by']], [request['promise']] * 2, 'who made the lookup and the answer')
if not request['end_ns'] >= answer['end_ns'] >= work['end_ns']:
    fail(f'the datagram ends at {request["end_ns"]}, before its answer at {answer["end_ns"]}')
expect(request['end'], 'resolved', 'how the datagram ends')
trace.promise('connection', 'udp to 127.0.0.1:')  # the socket of the client, which has no address before its first send

# A blocking call in a callback is recorded as a pause.
trace = record('blocked')
timer = trace.promise('timer', '1 ms')
if not any('blocked in' in event.get('why', '') for event in trace.ask('events', '--json') if event['op'] == 'pause_begin'):
    fail('no pause where a callback sleeps')

# A callback that runs another loop to its end is a pause, too.
trace = record('nested')
pauses = [event['why'] for event in trace.ask('events', '--json') if event['op'].startswith('pause') and 'why' in event]
expect(pauses, ['blocked in uv_run of another loop'], 'pauses of a callback that runs two loops, one of them its own')
found = [finding for finding in trace.ask('explain', '--json') if finding['finding'] == 'stall']
if not found or 'blocked in uv_run of another loop' not in found[0]['title'] or '"50 ms" is called back' not in str(found[0]['evidence']):
    fail(f'who is late because a callback ran another loop: {found}')

# A timer that is stopped and started many times is one promise.
trace = record('rearmed')
expect(len(trace.promises('timer')), 1, 'promises of one timer')
# A handle that is started as another timer is a new promise with a label of its own; the old promise ends after the callback in which the handle was restarted.
trace = record('reused')
timers = trace.promises('timer')
expect([p['labels'][0][1] for p in timers], ['5 min', '1 ms', 'every 10 ms', '40 ms'], 'what the timers are called')
expect([p['end'] for p in timers], ['resolved'] * 3 + ['pending'], 'how the timers end')
expect([p['created_by'] for p in timers[2:]], [p['promise'] for p in timers[1:3]], 'in whose callback they were started')
if timers[1]['end_ns'] < timers[2]['start_ns']:
    fail('a timer ends before its callback does')
trace = record('spin')
events = trace.ask('info', '--json')[0]['events']
if events > 4000:  # 300,000 callbacks give about one event in each ms, so more on a slow machine
    fail(f'{events} events of a loop in which nothing happens')
expect(len(trace.promises('handle')), 3, 'idle, prepare and check handles')
found = trace.findings()
expect(list(found), ['spin'], 'what is found in a loop that spins')
expect([line['promise'] for line in found['spin']], [trace.promise('handle', 'idle')['promise']], 'who spins')

# Repeated callbacks without a sleep are counted instead of recorded, so a small ring keeps earlier events, and the finding names the handle.
SMALL = ['--mode=ring', '--size=256K']
for name, kind, label in (('flood_timer', 'timer', '0 ms'), ('flood_poll', 'connection', ''), ('flood_async', 'condition', 'async')):
    trace = record(name, record=SMALL)
    expect([line['promise'] for line in trace.findings(LATE).get('spin', [])], [trace.promise(kind, label)['promise']], f'who spins in {name}')
    expect(trace.promise('timer', '5 ms')['end'], 'pending', f'what was before {name}')
# A timer of 0 ms whose callback creates the next such timer is counted, too.
trace = record('flood_timers', record=SMALL)
expect([line['promise'] for line in trace.findings(LATE).get('spin', [])], [trace.promises('timer', '0 ms')[-1]['promise']], 'who spins in flood_timers')
expect((trace.promise('timer', '5 ms')['end'], len(trace.promises('timer', '0 ms')) < 100), ('pending', True), 'what was before flood_timers, and timers in it')
# A loop under load sleeps little, but each of its messages is recorded, even if all of them are equal.
for name in 'flood_load', 'flood_datagrams', 'flood_writes':
    trace = record(name)
    expect([found for found in trace.findings(LATE) if found == 'spin'], [], f'spins in {name}')
    expect(sum(event['op'] == 'signal' for event in trace.ask('events', '--json')), 150001, f'messages of {name}')
