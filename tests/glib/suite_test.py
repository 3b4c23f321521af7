#!/usr/bin/env python3
"""suite_test.py WEFT [NAME...]: GLib's own tests, as Debian installs them (libglib2.0-tests), have the same results whether they are recorded
or not.  SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, fail

FOLDER = '/usr/libexec/installed-tests/glib'
NAMES = ['task', 'mainloop', 'custom-dispatch', 'contexts', 'cancellable', 'simple-async-result', 'pollable', 'buffered-output-stream',
         'async-close-output-stream', 'async-splice-output-stream', 'io-stream', 'socket', 'socket-listener', 'socket-service', 'network-address', 'unix-fd',
         'unix-streams', 'filter-streams', 'gsubprocess', 'spawn-singlethread', 'thread', 'thread-pool',          'asyncqueue', 'signal-handler', 'gapplication', 'g-file', 'resolver-parsing', 'tls-interaction', 'gdbus-addresses',
         'gdbus-close-pending', 'gdbus-connection', 'gdbus-connection-flush', 'gdbus-connection-loss', 'gdbus-error',
         'gdbus-exit-on-close', 'gdbus-introspection', 'gdbus-message', 'gdbus-method-invocation', 'gdbus-names', 'gdbus-non-socket', 'gdbus-peer',
         'gdbus-peer-object-manager', 'gdbus-proxy', 'gdbus-proxy-unique-name', 'gdbus-server-auth', 'gdbus-subscribe', 'gdbus-threading']
ONE_S, TRIES = 120, 3


def run(name, before):
    """How each of its tests ends, and how the program does."""
    with tempfile.TemporaryDirectory(prefix='weft-glib-') as folder:
        env = {**ENV, 'G_TEST_SRCDIR': FOLDER, 'G_TEST_BUILDDIR': FOLDER, 'XDG_RUNTIME_DIR': folder, 'HOME': folder, 'GIO_USE_VFS': 'local'}
        command = [word.replace('FOLDER', folder) for word in before] + [os.path.join(FOLDER, name), '--tap']
        try:
            done = subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  errors='replace', timeout=ONE_S, check=False)
        except subprocess.TimeoutExpired:
            return {'': 'timeout'}, 0
        traces = len(os.listdir(os.path.join(folder, 'traces'))) if os.path.isdir(os.path.join(folder, 'traces')) else 0
        ends = {match[2]: match[1] for match in re.finditer(r'^(ok|not ok) \d+ (\S+)', done.stdout, re.M)}
        return {**ends, '': done.returncode}, traces


def main():
    weft, wanted = os.path.abspath(sys.argv[1]), sys.argv[2:] or NAMES
    if not os.path.isdir(FOLDER):
        print('SKIPPED: libglib2.0-tests is not installed')
        sys.exit(77)
    recording = [weft, 'record', '--size=1M', '-o', 'FOLDER/traces', '--']
    count = recorded = 0
    different = []
    for name in wanted:
        if not os.path.exists(os.path.join(FOLDER, name)):
            continue
        for _ in range(TRIES):  # they measure time, and this machine may be busy
            with ThreadPoolExecutor() as both:
                (plain, _), (got, traces) = both.map(lambda before: run(name, before), ([], recording))
            if got == plain:
                break
        count += len(plain) - 1
        recorded += traces > 0
        if got != plain:
            different.append((name, {test: (plain.get(test), got.get(test)) for test in {*plain, *got} if plain.get(test) != got.get(test)}))
    print(f'{count} tests of {len(wanted)} programs, {recorded} of them recorded')
    for name, how in different:
        print(f'{name}: {how}')
    if different:
        fail(f'{len(different)} programs of GLib end otherwise when they are recorded')
    if not sys.argv[2:] and recorded < 30:
        fail('the programs are not recorded')


main()
