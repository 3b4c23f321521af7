#!/usr/bin/env python3
"""weft record samples threads that run one promise for long, and weft explain names the function; nothing changes for the program.

	profile_test.py BLOCKS PANEL COMPUTES SERVES WEFT

BLOCKS: blocks.c; PANEL: panel.c; COMPUTES: computes.py; SERVES: computes.js.
SPDX-License-Identifier: ISC"""

import json
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from exported_samples import firefox_stacks, perfetto_stacks
from recorded import ENV, PATIENCE, closed_to_others, expect, fail

BLOCKS, PANEL, COMPUTES, SERVES, WEFT = sys.argv[1:6]
NOBODY = 65534
FOUND = r'^(\d+) of (\d+) stack samples of the thread are in parse_orders \(blocks\.c:\d+\), called by on_timer \(blocks\.c:\d+\)$'


def run(*command, status=0):
    ran = subprocess.run(command, capture_output=True, text=True, env=ENV, timeout=PATIENCE)
    if status is not None:
        expect(ran.returncode, status, f'status of {command}: {ran.stderr}')
    return ran.stdout


def record(folder, *command, status=0, user=None, options=()):
    """Returns the output of the command."""
    os.makedirs(folder, exist_ok=True)
    if user:
        os.chown(folder, user, user)
    ran = subprocess.run([WEFT, 'record', *options, '-o', f'{folder}/t', '--', *command], capture_output=True, text=True, env=ENV,
                         timeout=PATIENCE, user=user, group=user, extra_groups=[] if user else None)
    expect(ran.returncode, status, f'status of {command}: {ran.stderr}')
    return ran.stdout


def samples_of(folder):
    return json.loads(run(WEFT, 'info', '--json', folder)).get('samples', {'count': 0})


def count_samples(folder):
    return samples_of(folder)['count']


def only_trace_in(folder):
    [trace] = [inner for inner, _, files in os.walk(folder) if 'metadata' in files]
    return trace


def evidence(folder):
    findings = [json.loads(line) for line in run(WEFT, 'explain', '--json', folder, status=None).splitlines()]
    return [e['text'] for finding in findings if finding['finding'] == 'stall' for e in finding['evidence']]


def is_named(folder, what, pattern=FOUND):
    texts = evidence(folder)
    found = [match for match in (re.match(pattern, text) for text in texts) if match]
    if not found or any(int(match[1]) * 10 < int(match[2]) * 9 for match in found):
        fail(f'{what}: {texts}')


def function_of_a_blocked_loop_is_named(folder):
    expect(record(folder, BLOCKS), 'missing 0\n', 'output')
    is_named(f'{folder}/t', 'a block')
    panels = run(PANEL, only_trace_in(f'{folder}/t'))  # the window and the page give it names
    if not re.search(r'^longest run: [\d.]+ m?s, (\d+) of (\d+) samples in \S*blocks\+0x[0-9a-f]+$', panels, re.M):
        fail(f'panels: {panels}')
    stacks = run(WEFT, 'convert', '--to=folded', '--by=function', f'{folder}/t', '-o', '-')
    if not re.search(r'^every \* ms on_timer;main \(blocks\.c\);.*;on_timer \(blocks\.c\);parse_orders \(blocks\.c\)', stacks, re.M):
        fail(f'folded stacks: {stacks}')


    check_exports(folder, f'{folder}/t')


def check_exports(folder, trace):
    """Both profilers get all samples, and weft stats sums them up."""
    count = count_samples(trace)
    for name, read in ('firefox', firefox_stacks), ('perfetto', perfetto_stacks):
        run(WEFT, 'convert', f'--to={name}', trace, '-o', f'{folder}/{name}')
        stacks = read(f'{folder}/{name}')
        named = [stack for stack in stacks if {'main', 'on_timer', 'parse_orders'} <= set(stack) and stack.index('main') < stack.index('on_timer') < stack.index('parse_orders')]
        if len(stacks) != count or len(named) * 10 < count * 9:
            fail(f'{name}: {len(named)} of {len(stacks)} stacks, of {count}: {stacks[:3]}')
    sums = [json.loads(line) for line in run(WEFT, 'stats', '--functions', '--json', trace).splitlines()]
    total = {s['function']: s['total_ns'] for s in sums}
    expect(total['on_timer (blocks.c)'] <= total['main (blocks.c)'] and total['parse_orders (blocks.c)'] * 10 >= total['main (blocks.c)'] * 9, True, f'totals: {sums}')
    table = run(WEFT, 'stats', '--functions', trace)
    if not re.search(r'^ *[\d.]+ % +[\d.]+ m?s +\d+\.\d % +[\d.]+ m?s  parse_orders \(blocks\.c\), in every \* ms on_timer$', table, re.M):
        fail(f'weft stats --functions: {table}')


def saved_copy_contains_function_names(folder):
    """A copy names functions where the program's file does not exist."""
    program = shutil.copy(BLOCKS, f'{folder}/program')
    record(folder, program)
    run(WEFT, 'save', '--names', f'{folder}/t', '-w', f'{folder}/copy')
    os.remove(program)
    is_named(f'{folder}/copy', 'a copy')
    if count_samples(f'{folder}/copy') != count_samples(f'{folder}/t'):
        fail('a copy has other samples')


def samples_in_a_stripped_program_are_named_by_exported_functions(folder):
    program = shutil.copy(BLOCKS, f'{folder}/program')
    run('strip', program)
    record(folder, program)
    is_named(f'{folder}/t', 'a stripped program', r'^(\d+) of (\d+) stack samples of the thread are in on_timer \(program\)$')


def samples_of_two_joined_traces_are_both_reported(folder):
    record(folder, 'sh', '-c', f'{BLOCKS} & {BLOCKS}; wait')
    texts = [text for text in evidence(f'{folder}/t') if re.match(FOUND, text)]
    if len(texts) < 2:
        fail(f'two processes as one: {texts}')


def weft_info_reads_traces_with_damaged_samples(folder):
    record(folder, BLOCKS)
    path = next(os.path.join(root, 'profile-0') for root, _, files in os.walk(folder) if 'profile-0' in files)
    with open(path, 'r+b') as file:
        whole = file.read()
        for size in 0, 100, 170, len(whole) // 2, len(whole) - 3:
            file.seek(0)
            file.truncate(0)
            file.write(whole[:size])
            file.flush()
            run(WEFT, 'explain', f'{folder}/t', status=None)
            run(WEFT, 'info', f'{folder}/t')
        for at in range(160, min(len(whole), 1500), 61):
            file.seek(0)
            file.truncate(0)
            file.write(whole[:at] + b'\xff\xff\xff\xff' + whole[at + 4:])
            file.flush()
            run(WEFT, 'info', f'{folder}/t')


def other_readers_accept_samples(folder):
    if not shutil.which('babeltrace2'):
        print('not with babeltrace2: it is not installed')
        return
    record(folder, BLOCKS)
    if 'profile_sample' not in run('babeltrace2', f'{folder}/t'):
        fail('babeltrace2 shows no sample')


def stall_until_the_end_of_a_killed_program_is_certain(folder):
    """The program is killed in its callback.  The samples show that its thread ran all the time."""
    record(folder, 'timeout', '2', BLOCKS, 'endless', status=124)
    is_named(f'{folder}/t', 'an endless block')
    first = json.loads(run(WEFT, 'explain', '--json', f'{folder}/t', status=None).splitlines()[0])
    # Each sample shows 1 ms on a CPU, and a stall is twice 10 ms of it; a busy machine takes fewer samples.
    is_certain = first['sure'] or count_samples(f'{folder}/t') < 25
    if first['finding'] != 'stall' or 'until the end' not in first['title'] or not is_certain:
        fail(f'an endless block: {first}')


def function_of_a_blocked_child_process_is_named(folder):
    """The shell is the command; its child is sampled.  The status is the command's."""
    record(folder, 'sh', '-c', f'{BLOCKS}; exit 7', status=7)
    is_named(f'{folder}/t', 'a block of a child')


def python_function_in_samples_is_named_by_file_and_line(folder):
    record(folder, sys.executable, COMPUTES)
    is_named(f'{folder}/t', 'Python', r'^(\d+) of (\d+) stack samples of the thread are in \S*computes\.py:\d+ in add_up, called by \S*computes\.py:\d+ in handle$')


def exports_layout(program):
    """Returns whether a program exports V8's layout to debuggers."""
    with open(program, 'rb') as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(b'v8dbg_off_fp_function') >= 0


def javascript_function_in_samples_is_named_by_file_and_line(folder):
    """Compiled code, code during which the collector runs, and code that calls C++, are named by file, line and function."""
    node = shutil.which('node')
    if not node or not exports_layout(os.path.realpath(node)):
        print(f'not JavaScript: {node} exports no layout of V8' if node else 'not JavaScript: no node is installed')
        return
    for way, function in {'compute': 'checksum', 'collect': 'render', 'read': 'readAll'}.items():
        record(f'{folder}/{way}', node, SERVES, way)
        caller = r', called by \S*computes\.js:\d+ in onRequest$'
        is_named(f'{folder}/{way}/t', f'{way} in JavaScript', r'^(\d+) of (\d+) stack samples of the thread are in \S*computes\.js:\d+ in ' + function + caller)
        summary = run(WEFT, 'info', f'{folder}/{way}/t')
        if not re.search(rf'it was blocked for at most .* m?s: GET /, in \S*computes\.js:\d+ in {function}$', summary, re.M):
            fail(f'summary: {summary}')
        stacks = run(WEFT, 'convert', '--to=folded', '--by=function', f'{folder}/{way}/t', '-o', '-')
        if not re.search(rf';onRequest \(computes\.js\);.*\b{function} \(computes\.js\)', stacks):
            fail(f'folded stacks: {stacks}')


def short_callbacks_have_no_samples(folder):
    record(folder, BLOCKS, 'still')
    expect(count_samples(f'{folder}/t'), 0, 'samples of a healthy program')


def all_runs_are_sampled_on_request(folder):
    """Callbacks of 1 ms have samples, in which the callback's function is named; weft info says what was sampled."""
    closed = closed_to_others(BLOCKS) or closed_to_others(WEFT)
    os.chmod(folder, 0o711)
    for user in (None,) if os.getuid() or closed else (None, NOBODY):
        trace = f'{folder}/{user}/t'
        record(f'{folder}/{user}', BLOCKS, 'still', user=user, options=['--profile=all'])
        samples = samples_of(trace)
        if samples.get('way') not in ('user', 'all'):
            print(f'not all runs: {samples}; the kernel allows no perf events')
            continue
        if samples['count'] < 50:  # of 200 ms
            fail(f'{samples} of all runs')
        stacks = run(WEFT, 'convert', '--to=folded', '--by=function', trace, '-o', '-')
        if not re.search(r'^every \* ms on_timer;main \(blocks\.c\);.*;on_timer \(blocks\.c\);parse_orders \(blocks\.c\)', stacks, re.M):
            fail(f'folded stacks of short runs: {stacks}')
        summary = run(WEFT, 'info', trace)
        wanted = r'on CPU, one per 1\.0\d* ms' + (r'$' if samples['way'] == 'all' else r', without time in the kernel: perf_event_paranoid is 2; more needs root or sysctl kernel\.perf_event_paranoid=1$')
        if not re.search(wanted, summary, re.M):
            fail(f'info of all runs: {summary}')


def samples_can_be_refused(folder):
    record(folder, BLOCKS, options=['--profile=off'])
    expect(count_samples(f'{folder}/t'), 0, 'samples with --profile=off')


def signals_arrive(folder):
    expect(record(folder, BLOCKS, 'signals'), 'missing 0\n', 'signals')
    is_named(f'{folder}/t', 'a block with signals')


def sampling_ends_no_write_early(folder):
    """A stop never makes a call return early that other threads have to go on with."""
    expect(record(folder, BLOCKS, 'writes'), 'missing 0\n', 'writes that ended early')


def ordinary_user_may_sample(folder):
    closed = closed_to_others(BLOCKS) or closed_to_others(WEFT)
    if os.getuid() or closed:
        print(f'not as another user: {closed or "this is not root"}')
        return
    record(folder, BLOCKS, user=NOBODY)
    is_named(f'{folder}/t', 'a block of an ordinary user')


def program_under_a_debugger_is_not_sampled(folder):
    """A debugger has the program already: weft neither disturbs it nor finds anything."""
    if not shutil.which('strace'):
        print('not under a debugger: strace is not installed')
        return
    record(folder, 'strace', '-f', '-o', '/dev/null', BLOCKS)
    expect(count_samples(f'{folder}/t'), 0, 'samples of a traced program')


if platform.machine() != 'x86_64':
    print('samples are taken on x86-64 alone')
    sys.exit(77)
for test in (function_of_a_blocked_loop_is_named, saved_copy_contains_function_names, samples_in_a_stripped_program_are_named_by_exported_functions, samples_of_two_joined_traces_are_both_reported, weft_info_reads_traces_with_damaged_samples,
             other_readers_accept_samples, stall_until_the_end_of_a_killed_program_is_certain, function_of_a_blocked_child_process_is_named, python_function_in_samples_is_named_by_file_and_line, javascript_function_in_samples_is_named_by_file_and_line,
             short_callbacks_have_no_samples, all_runs_are_sampled_on_request, samples_can_be_refused, signals_arrive, sampling_ends_no_write_early, ordinary_user_may_sample,
             program_under_a_debugger_is_not_sampled):
    for attempts_left in 2, 1, 0:  # a very busy machine gives a thread too little CPU for a sample
        try:
            with tempfile.TemporaryDirectory() as directory:
                test(directory)
            break
        except SystemExit:
            if not attempts_left:
                raise
