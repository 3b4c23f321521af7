#!/usr/bin/env python3
"""weft record --memory samples allocations, and weft says which promises and lines allocated, and what was not freed.

	memory_test.py MEMORY PANEL WEFT

MEMORY: memory.c; PANEL: panel.c.  A sum of n samples has a relative error of about 1 / sqrt(n); the sums below have more than 250 samples, and
may be wrong by a third.
SPDX-License-Identifier: ISC"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, PATIENCE, expect, fail

MEMORY, PANEL, WEFT = sys.argv[1:4]
MB = 20 * 256 * 4000  # what each function of memory.c allocates
TYPE = '"* ms"'


def run(*command, status=0, env=ENV):
    ran = subprocess.run(command, capture_output=True, text=True, env=env, timeout=PATIENCE)
    expect(ran.returncode, status, f'status of {command}: {ran.stderr}')
    return ran.stdout


def record(folder, *command, memory='--memory=16K', env=ENV):
    options = [memory] if memory else []
    return run(WEFT, 'record', '--profile=off', *options, '-o', folder, '--', *command, env=env)


def traces_in(folder):
    return sorted(inner for inner, _, files in os.walk(folder) if 'metadata' in files)


def sums(trace):
    """Returns the sums by type, and those by function."""
    rows = [json.loads(line) for line in run(WEFT, 'stats', '--memory', '--json', trace).splitlines()]
    places = {}
    for row in rows:
        if row.get('site'):
            place = places.setdefault(row['site'].get('function'), {'allocated_bytes': 0, 'held_bytes': 0})
            place['allocated_bytes'] += row['allocated_bytes']
            place['held_bytes'] += row['held_bytes']
    return [row for row in rows if 'site' not in row], places


def is_near(got, true, what):
    if not true * 2 / 3 < got < true * 4 / 3:
        fail(f'{what}: {got} bytes, and {true} are true')


def stats_have_allocated_and_held_bytes_of_each_way_to_allocate(folder):
    held = int(record(f'{folder}/ways', MEMORY))
    types, places = sums(f'{folder}/ways')
    ways = ['keep_session', 'use_aligned', 'use_memalign', 'use_posix', 'copy_text', 'fill_array', 'fill_table']
    for function in ways:
        is_near(places.get(function, {'allocated_bytes': 0})['allocated_bytes'], MB, f'{function} of {places}')
    is_near(places['fill_zeroed']['allocated_bytes'], 2 * MB, f'calloc() of the loop and of threads: {places}')
    is_near(places['grow_buffer']['allocated_bytes'], 2 * MB, f'realloc(): {places}')
    is_near(places['keep_session']['held_bytes'], held, f'held: {places}')
    still = {name for name, place in places.items() if place['held_bytes'] and name != 'keep_session'}
    if still & set(ways + ['fill_zeroed', 'grow_buffer']):
        fail(f'freed memory is held: {places}')
    timer = [row for row in types if row['type'].endswith('ms"')]
    is_near(timer[0]['allocated_bytes'], 10 * MB, f'the timer: {types}')
    is_near(timer[0]['held_bytes'], held, f'held of the timer: {types}')


def memory_stats_stacks_and_picture_show_bytes(folder):
    text = run(WEFT, 'stats', '--memory', f'{folder}/ways')
    if not re.search(r'^estimated from \d+ samples, one in 16\.3 kB; \d+ samples were lost$', text, re.M):
        fail(f'no first line: {text}')
    if not re.search(r'^ *[\d.]+ MB +[\d.]+ MB  keep_session \(memory\.c:\d+\), in "\S.*ms"$', text, re.M):
        fail(f'no line of keep_session(): {text}')
    for by, function, most in (('allocated', 'grow_buffer', 3 * MB), ('held', 'keep_session', MB)):
        stacks = run(WEFT, 'convert', '--to=folded', f'--by={by}', f'{folder}/ways', '-o', '-')
        found = re.findall(rf'^[^;]*;main \(memory\.c\);.*;on_timer \(memory\.c\);{function} \(memory\.c\)(?:;.*)? (\d+)$', stacks, re.M)
        if not found or not 0 < sum(map(int, found)) < most:
            fail(f'--by={by}: {stacks}')
        run(WEFT, 'render', f'--blame={by}', f'{folder}/ways', '-o', f'{folder}/{by}.svg')
        with open(f'{folder}/{by}.svg') as picture:
            if not re.search(r'memory.*: about [\d.]+ MB in total', picture.read(), re.S):
                fail(f'--blame={by} has no sizes')
    if 'memory of libc.so.6' not in run(WEFT, 'info', f'{folder}/ways'):
        fail('weft info does not name the allocator')


def babeltrace2_reads_the_packets(folder):
    if not shutil.which('babeltrace2'):
        return
    events = run('babeltrace2', traces_in(f'{folder}/ways')[0])
    for name in ('memory_stack', 'memory_allocated', 'memory_freed'):
        if f' {name}: ' not in events:
            fail(f'babeltrace2 prints no {name}')


def saved_trace_has_the_same_memory_sums(folder):
    run(WEFT, 'save', f'{folder}/ways', '-w', f'{folder}/saved')
    expect(run(WEFT, 'stats', '--memory', f'{folder}/saved'), run(WEFT, 'stats', '--memory', f'{folder}/ways'), 'saved sums')
    run(WEFT, 'save', '--scrub', f'{folder}/ways', '-w', f'{folder}/scrubbed')
    expect(len(run(WEFT, 'stats', '--memory', '--json', f'{folder}/scrubbed').splitlines()) > 3, True, 'scrubbed sums')


def failed_realloc_leaves_the_old_block_counted_as_held(folder):
    held = int(record(f'{folder}/failing', MEMORY, 'failing'))
    _, places = sums(f'{folder}/failing')
    is_near(places['on_failure']['held_bytes'], held, f'{places}')


def frees_in_child_processes_do_not_count_for_the_parent(folder):
    held = int(record(f'{folder}/forks', MEMORY, 'forks', memory='--memory=1K'))
    [parent] = [trace for trace in traces_in(f'{folder}/forks') if 'keep_session' in sums(trace)[1]]
    _, places = sums(parent)
    is_near(places['keep_session']['held_bytes'], held, f'{places}')
    expect('fill_zeroed' in places, False, 'allocations of the children in the trace of the parent')


def full_file_of_memory_samples_still_records_frees(folder):
    """A trace has at most 16 MB of samples, and the program frees what it has sampled."""
    record(f'{folder}/full', MEMORY, 'many', memory='--memory=1K')
    _, places = sums(f'{folder}/full')
    expect(places['replace_buffers']['held_bytes'], 0, f'held: {places}')
    text = run(WEFT, 'stats', '--memory', f'{folder}/full')
    if not re.search(r'; [1-9]\d* samples were lost$', text, re.M):
        fail(f'no lost samples: {text}')
    [trace] = traces_in(f'{folder}/full')
    size = sum(os.path.getsize(f'{trace}/{name}') for name in os.listdir(trace) if name.startswith('memory-'))
    if size > 16 << 20:
        fail(f'{size} bytes of samples')


def growing_memory_of_ended_promises_is_a_finding(folder):
    for kind in ('leaks', 'caches', 'fills'):
        record(f'{folder}/{kind}', MEMORY, kind, memory='--memory=1K')
        findings = [json.loads(line) for line in run(WEFT, 'explain', '--json', f'{folder}/{kind}').splitlines()]
        found = [finding for finding in findings if finding['finding'] == 'retained']
        expect(len(found), kind == 'leaks', f'findings of {kind}: {found}')
    title = re.compile(r'about 1\.[4-8]\d MB of memory of ended promises ".*" is not freed, and grew all the time \(memory\.c:\d+ in '
                       r'answer_request\)$|about 1\.[4-8]\d MB .*\(answer_request \(memory\.c:\d+\)\)$')
    findings = [json.loads(line) for line in run(WEFT, 'explain', '--json', f'{folder}/leaks').splitlines()]
    [finding] = [finding for finding in findings if finding['finding'] == 'retained']
    if not title.match(finding['title']) or finding['severity'] != 'information':
        fail(f'{finding}')
    one = run(WEFT, 'explain', f'--promise={finding["promise"]}', f'{folder}/leaks')
    if not re.search(r'it allocated about [\d.]+ kB, and about [\d.]+ kB of that is not freed \(\d+ samples\); [\d.]+ kB of it', one):
        fail(f'--promise: {one}')
    panels = run(PANEL, traces_in(f'{folder}/leaks')[0])
    if not re.search(r'^allocated: about [\d.]+ kB \(\d+ samples\)\nnot freed: about [\d.]+ kB\nmostly in: \S', panels, re.M):
        fail(f'panels: {panels}')


def malloc_is_not_patched_without_the_memory_option(folder):
    plain = run(MEMORY, 'entries')
    expect(record(f'{folder}/off', MEMORY, 'entries', memory=None), plain, 'entries of malloc() in a recorded program')
    if record(f'{folder}/on', MEMORY, 'entries') == plain:
        fail('--memory patches nothing')
    if any(name.startswith('memory-') for trace in traces_in(f'{folder}/off') for name in os.listdir(trace)):
        fail('there are samples without --memory')


def allocations_of_jemalloc_and_tcmalloc_are_sampled(folder):
    for library in ('libjemalloc.so.2', 'libtcmalloc_minimal.so.4'):
        path = next((f'{inner}/{library}' for inner in ('/usr/lib/x86_64-linux-gnu', '/usr/lib/aarch64-linux-gnu')
                     if os.path.exists(f'{inner}/{library}')), None)
        if not path:
            print(f'no {library}')
            continue
        held = int(record(f'{folder}/{library}', MEMORY, env={**ENV, 'LD_PRELOAD': path}))
        _, places = sums(f'{folder}/{library}')
        is_near(places['keep_session']['held_bytes'], held, f'{library}: {places}')
        if f'memory of {library}' not in run(WEFT, 'info', f'{folder}/{library}'):
            fail(f'weft info does not name {library}')


def wrong_options_are_refused(folder):
    for value, problem in (('0', 'not a size'), ('2G', 'not a size'), ('x', 'not a size')):
        ran = subprocess.run([WEFT, 'record', f'--memory={value}', '-o', f'{folder}/wrong', '--', MEMORY], capture_output=True,
                             text=True, env=ENV, timeout=PATIENCE)
        if ran.returncode != 2 or problem not in ran.stderr:
            fail(f'--memory={value}: {ran.returncode} {ran.stderr}')


def main():
    with tempfile.TemporaryDirectory() as folder:
        for test in (stats_have_allocated_and_held_bytes_of_each_way_to_allocate, memory_stats_stacks_and_picture_show_bytes, babeltrace2_reads_the_packets,
                     saved_trace_has_the_same_memory_sums, failed_realloc_leaves_the_old_block_counted_as_held,
                     frees_in_child_processes_do_not_count_for_the_parent, full_file_of_memory_samples_still_records_frees,
                     growing_memory_of_ended_promises_is_a_finding, malloc_is_not_patched_without_the_memory_option, allocations_of_jemalloc_and_tcmalloc_are_sampled, wrong_options_are_refused):
            print(test.__name__, flush=True)
            test(folder)


main()
