#!/usr/bin/env python3
"""libevent's own tests pass the same, whether they are recorded or not.

	suite_test.py WEFT FOLDER

Fetches Debian's source of the installed libevent into FOLDER, builds its tests against the installed library, and runs them
without and with recording: all with epoll, and tests of the loop also with poll() and select().  WEFT_WHOLE=1 runs all tests with each, which
   takes some minutes.  Tests with different results run again, alone and several times, because some fail now and then on a busy machine.
SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from debian import fetch, skip
from recorded import ENV, expect, fail

TRIES = 4
WHOLE_S, ONE_S = 1200, 120
BACKENDS = {'epoll': {}, 'poll': {'EVENT_NOEPOLL': '1'}, 'select': {'EVENT_NOEPOLL': '1', 'EVENT_NOPOLL': '1'}}
# These tests wait several seconds for a server that does not answer.
SLOW = [':http/cancel_by_host_ns_timeout', ':http/cancel_by_host_ns_timeout_inactive_server', ':http/cancel_inactive_server',
        ':http/cancel_by_host_inactive_server', ':http/cancel_by_host_no_ns_inactive_server', ':http/cancel_by_host_no_ns']
# Parts run at the same time, because most of them wait.
QUICK = {'epoll': [['http/..', *SLOW], ['ssl/..', 'rpc/..', 'util/..'], ['main/..', 'dns/..'],
                   [f':{group}/..' for group in ('http', 'ssl', 'rpc', 'util', 'main', 'dns')]],
         'poll': [['main/..', 'signal/..', 'et/..']], 'select': [['main/..', 'signal/..']]}

weft, folder = map(os.path.abspath, sys.argv[1:3])
parts_of = {backend: [[]] for backend in BACKENDS} if os.environ.get('WEFT_WHOLE') else QUICK


def build(source):
    runner = os.path.join(folder, 'regress')
    if not os.path.exists(runner):
        made = os.path.join(folder, 'include')
        os.makedirs(made, exist_ok=True)
        with open(os.path.join(made, 'evconfig-private.h'), 'w', encoding='ascii'):
            pass  # the tests do not need this file
        files = [path for path in glob.glob(os.path.join(source, 'test', 'regress*.c')) if not path.endswith('_iocp.c')]
        flags = ['-O1', '-g', '-w', '-D_GNU_SOURCE', '-DTINYTEST_LOCAL', *(f'-I{path}' for path in (made, source, source + '/compat', source + '/test'))]
        libraries = ['-levent_core', '-levent_extra', '-levent_pthreads', '-levent_openssl', '-lssl', '-lcrypto', '-lz', '-lpthread']
        built = subprocess.run(['gcc', *flags, *files, os.path.join(source, 'test', 'tinytest.c'), '-o', runner, *libraries], stderr=subprocess.PIPE,
                               text=True, check=False)
        if built.returncode:
            skip('the tests cannot be built: ' + built.stderr.strip().splitlines()[-1])
    return runner


def run(runner, backend, tests, traces, seconds):
    """Runs tests, with recording if `traces` is a folder; returns the result of each: OK, SKIPPED, FAIL and so on."""
    command = [runner, *tests]
    if traces:
        command = [weft, 'record', '--size=1M', '-o', traces, '--', *command]
    try:
        done = subprocess.run(command, cwd=folder, env={**ENV, **BACKENDS[backend]}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors='replace', timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return {}
    return {match[1]: match[2] for match in re.finditer(r'^(\w+/\w+): .*?(OK|SKIPPED|DISABLED|FAIL)', done.stdout, re.M | re.S)}


def passes(runner, backend, name, traces):
    return any(run(runner, backend, [name], traces and f'{traces}-{backend}-{attempt}-{name.replace("/", "-")}', ONE_S).get(name) == 'OK'
               for attempt in range(TRIES))


def main():
    os.makedirs(folder, exist_ok=True)
    runner = build(fetch(folder, 'libevent', 'libevent-dev'))
    traces = os.path.join(folder, 'traces')
    shutil.rmtree(traces, ignore_errors=True)
    os.makedirs(traces)
    broken = []
    with ThreadPoolExecutor(12) as pool:
        jobs = {(backend, is_recorded): [pool.submit(run, runner, backend, tests, os.path.join(traces, f'{backend}-{i}') if is_recorded else None, WHOLE_S)
                                         for i, tests in enumerate(parts)] for backend, parts in parts_of.items() for is_recorded in (True, False)}
        # A part reports the tests of the other parts as skipped.
        ran = {which: {name: said for skipped in (True, False) for part in parts for name, said in part.result().items() if (said == 'SKIPPED') == skipped}
               for which, parts in jobs.items()}
    for backend in parts_of:
        plain, recorded = ran[backend, False], ran[backend, True]
        if len(plain) < 50:
            skip(f'only {len(plain)} tests of libevent run here')
        expect(sorted(recorded), sorted(plain), 'tests that come to an end')
        made = len(glob.glob(os.path.join(traces, backend + '-*', '*', 'metadata')))
        if made < len(plain) // 2:  # each test runs in a process of its own, and some make no loop
            fail(f'{made} of {len(plain)} tests are recorded')
        worse = [name for name in plain if plain[name] == 'OK' and recorded[name] != 'OK']
        sick = [name for name in worse if not passes(runner, backend, name, os.path.join(traces, 'one')) and passes(runner, backend, name, None)]
        broken += [f'{backend}: {name}' for name in sick]
        count = {which: sum(said == 'OK' for said in got.values()) for which, got in (('plain', plain), ('recorded', recorded))}
        print(f'{backend}: {count["plain"]} of {len(plain)} pass without recording, {count["recorded"]} with; traces: {made}; '
              f'failed once and then not: {sorted(set(worse) - set(sick))}', flush=True)
    if broken:
        fail(f'tests of libevent that fail when they are recorded: {broken}')


main()
