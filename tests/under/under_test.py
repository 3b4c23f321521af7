#!/usr/bin/env python3
"""under_test.py mdwe|seccomp|service|valgrind|LIBRARY WEFT PROGRAM [ARGUMENT...]: records the torture program of an adapter in a confined process, or under
   valgrind or ThreadSanitizer.

The output of the program is the same with and without recording, and its trace is complete.  mdwe, seccomp and service are modes of confined.py.
   valgrind must find no fault of weft.  LIBRARY is a libweft-hook.so with ThreadSanitizer, which checks the reads and writes of weft, not those of the program.

SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'uv'))
from recorded import ENV, PATIENCE, Recording, Trace, expect, fail, need

tool, weft, command = sys.argv[1], sys.argv[2], sys.argv[3:]
OURS, LIBC = re.compile(r'/libweft-'), re.compile(r'vgpreload|/libc\.so|/ld-linux')


def run(words, **env):
    return subprocess.run(words, env={**ENV, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=4 * PATIENCE, check=False)


def check(traces, may_lose=False):
    if not traces:
        fail('nothing was recorded')
    lost = [trace.lost() for trace in traces]
    expect(may_lose or not any(lost), True, f'whether nothing was lost; lost events: {lost}')
    told = [trace.ask('info', '--json')[0] for trace in traces]
    expect([(info['skipped_count'], info['gaps']) for info in told], [(0, [])] * len(told), 'what is damaged or missing')
    print(f'{len(traces)} traces, {[info["events"] for info in told]} events, {sum(lost)} lost')


def errors(folder):
    """Returns the frames of each report of valgrind about weft, or about libc called by weft.  Leaks in a forked child are left out: other OS threads, which would
        free the memory, do not exist there."""
    reports, processes = [], os.listdir(folder)
    for name in processes:
        with open(os.path.join(folder, name), encoding='utf-8', errors='replace') as file:
            told = file.read()
            is_fork = re.search(r'<ppid>(\d+)</ppid>', told)[1] in processes
            for error in re.findall(r'<error>.*?</error>', told, re.S):
                kind, frames = re.search(r'<kind>(.*?)</kind>', error)[1], re.findall(r'<frame>(.*?)</frame>', re.search(r'<stack>.*?</stack>', error, re.S)[0], re.S)
                objects = [(re.search(r'<obj>(.*?)</obj>', frame) or [0, '?'])[1] for frame in frames]
                # The recorder asks the kernel whether an address can be read, also in memory that was freed.
                if (is_fork and kind.startswith('Leak')) or (kind == 'SyscallParam' and 'weft_hook_is_readable' in error):
                    continue
                if OURS.search(next((path for path in objects if not LIBC.search(path)), '')):
                    reports.append(kind + ''.join('\n  ' + ' '.join(re.findall(r'<(?:fn|file|line)>(.*?)<', frame)) for frame in frames))
    return reports


def under_valgrind(folder):
    # weft changes the entries of functions while the program runs.
    log = os.path.join(folder, 'log')
    os.mkdir(log)
    words = [need('valgrind'), '-q', '--smc-check=all', '--leak-check=full', '--show-leak-kinds=definite', '--num-callers=30', '--xml=yes', f'--xml-file={log}/%p']
    plain = run(command)
    recording = Recording(weft, os.path.join(folder, 'traces'), [*words, *command], wait=False)
    out, _ = recording.process.communicate(timeout=4 * PATIENCE)
    expect((out, recording.process.returncode), (plain.stdout, 0), 'what the program says')
    found = errors(log)
    if found:
        fail(f'{len(found)} reports:\n' + '\n\n'.join(found[:8]))
    check([trace for trace in recording.all() if trace.promises()])


def under_tsan(folder):
    loads = next((line.split()[2] for line in subprocess.run(['ldd', tool], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines() if 'libtsan' in line), '')
    # libuv orders these accesses by a flag, which ThreadSanitizer does not see.
    with open(os.path.join(folder, 'suppressions'), 'w', encoding='ascii') as file:
        file.write('race:^weft__uv_async_send$\n')
    plain = run(command)
    traces = os.path.join(folder, 'traces')
    recorded = run(command, LD_PRELOAD=f'{tool}:{loads}', WEFT_RECORD=f'{traces},mode=grow', TSAN_OPTIONS=f'exitcode=66 ignore_noninstrumented_modules=1 die_after_fork=0 detect_deadlocks=0 suppressions={folder}/suppressions')
    if recorded.returncode == 66 or b'WARNING: ThreadSanitizer' in recorded.stderr:
        fail(f'{recorded.stderr.count(b"WARNING: ThreadSanitizer")} reports:\n{recorded.stderr.decode(errors="replace")[:12000]}')
    expect((recorded.stdout, recorded.returncode), (plain.stdout, plain.returncode), 'what the program says')
    check([Trace(os.path.abspath(weft), os.path.join(traces, name)) for name in sorted(os.listdir(traces))], may_lose=True)  # few rounds, because the tool is slow


def confined(folder):
    words = [sys.executable, os.path.join(HERE, 'confined.py'), tool, *command]
    plain = run(words)
    if plain.returncode == 77:
        print(plain.stderr.decode())
        sys.exit(77)
    expect((plain.stdout, plain.returncode), (run(command).stdout, 0), 'what the confined program says without recording')
    recording = Recording(weft, os.path.join(folder, 'traces'), words)
    expect((recording.out, recording.status), (plain.stdout, 0), 'what the program says')
    check(recording.all())


with tempfile.TemporaryDirectory(prefix='weft-under-') as scratch:
    (under_valgrind if tool == 'valgrind' else under_tsan if os.sep in tool else confined)(scratch)
