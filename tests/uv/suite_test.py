#!/usr/bin/env python3
"""libuv's own tests pass the same, whether they are recorded or not.

	suite_test.py WEFT FOLDER

Fetches Debian's source of the libuv that is installed into FOLDER, by apt with lists and caches of its own, so that nothing of the system
changes; builds its tests against the installed library; runs all of them without and with recording.  What differs is run alone,
several times: a busy machine fails some of them now and then.  SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import subprocess
import sys

from debian import fetch, skip
from recorded import ENV, expect, fail, need

weft, folder = map(os.path.abspath, sys.argv[1:3])
TRIES = 4
WHOLE_S, ONE_S = 1200, 120

# Tests that say something else when they are recorded, and why.
DIFFERENT = {
}  # yapf: disable


def build(source):
    runner = os.path.join(source, 'run-tests')
    if not os.path.exists(runner):
        files = [path for path in glob.glob(os.path.join(source, 'test', '*.c')) if not re.search(r'/(benchmark-|run-benchmarks|runner-win)', path)]
        flags = ['-O1', '-g', '-w', '-D_GNU_SOURCE', '-DUSING_UV_SHARED=1', *(f'-I{source}/{part}' for part in ('include', 'src', 'test'))]
        subprocess.run(['gcc', *flags, *files, '-o', runner, '-luv', '-lpthread', '-ldl', '-lutil'], check=True)
    return runner


def run(runner, source, name, traces, seconds):
    """Which tests pass, and which do not; recorded if `traces` is a folder."""
    command = [runner, *([name] if name else [])]
    if traces:
        command = [weft, 'record', '--size=1M', '-o', traces, '--', *command]
    if os.getuid() == 0:  # they refuse to be run by root
        command = [need('setpriv'), '--reuid=65534', '--regid=65534', '--clear-groups', *command]
    env = {**ENV, 'HOME': source}
    try:
        done = subprocess.run(command, cwd=source, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors='replace', timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {}
    if name:
        return {name: done.returncode == 0}
    return {match[2]: match[1] == 'ok' for match in re.finditer(r'^(ok|not ok) \d+ - (\w+)', done.stdout, re.M)}


def passes(runner, source, name, traces):
    return any(run(runner, source, name, traces and f'{traces}-{name}-{attempt}', ONE_S).get(name) for attempt in range(TRIES))


def main():
    os.makedirs(folder, exist_ok=True)
    source = fetch(folder, 'libuv1', 'libuv1-dev')
    runner = build(source)
    traces = os.path.join(folder, 'traces')
    shutil.rmtree(traces, ignore_errors=True)
    if os.getuid() == 0:
        for place, _, names in os.walk(source):
            for path in [place, *(os.path.join(place, name) for name in names)]:
                os.chown(path, 65534, 65534, follow_symlinks=False)
        os.makedirs(traces, mode=0o777)
        os.chmod(traces, 0o777)
    plain = run(runner, source, None, None, WHOLE_S)
    if len(plain) < 100:
        skip(f'only {len(plain)} tests of libuv run here')
    recorded = run(runner, source, None, os.path.join(traces, 'all'), WHOLE_S)
    expect(sorted(recorded), sorted(plain), 'tests that come to an end')
    if len(os.listdir(os.path.join(traces, 'all'))) < len(plain) // 2:  # each is a process of its own
        fail('the tests are not recorded')
    worse = [name for name, passed in plain.items() if passed and not recorded[name] and name not in DIFFERENT]
    broken = [name for name in worse if not passes(runner, source, name, os.path.join(traces, 'one'))]
    broken = [name for name in broken if passes(runner, source, name, None)]
    print(f'{sum(plain.values())} of {len(plain)} pass without recording, {sum(recorded.values())} with; failed once and then not: '
          f'{sorted(set(worse) - set(broken))}')
    if broken:
        fail(f'tests of libuv that fail when they are recorded: {broken}')


main()
