#!/usr/bin/env python3
"""GLib's own tests, as Debian installs them (libglib2.0-tests), have the same results whether they are recorded or not.

	suite_test.py WEFT [NAME...]

Without a name those that have to do with loops, tasks, D-Bus, children, sockets and OS threads, as far as they are quick; all of them with
WEFT_WHOLE=1 in the environment, with a table.  SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import ENV, fail

TESTS, PROGRAMS = '/usr/share/installed-tests/glib', '/usr/libexec/installed-tests/glib'
QUICK = """
actions asyncqueue async-close-output-stream async-splice-output-stream buffered-input-stream buffered-output-stream cancellable completion contexts
custom-dispatch dbus-appinfo fdo-notification-backend filter-streams g-file gapplication gdbus-addresses gdbus-auth
gdbus-bz627724 gdbus-close-pending gdbus-connection gdbus-connection-flush gdbus-connection-loss gdbus-error
gdbus-exit-on-close gdbus-export gdbus-introspection gdbus-message gdbus-method-invocation gdbus-names gdbus-non-socket gdbus-overflow
gdbus-peer gdbus-peer-object-manager gdbus-proxy gdbus-proxy-unique-name gdbus-proxy-well-known-name gdbus-sasl
gdbus-serialization gdbus-server-auth gdbus-subscribe gdbus-test-codegen gdbus-threading gmenumodel gnotification gsubprocess io-stream
mainloop memory-input-stream memory-output-stream mount-operation network-address network-monitor network-monitor-race pollable
proxy-test resolver-parsing signal-handler simple-async-result socket socket-listener socket-service spawn-multithreaded
spawn-singlethread spawn-test stream-rw_all task testfilemonitor thread thread-pool timeout tls-bindings tls-certificate
tls-database tls-interaction unix unix-fd unix-streams vfs volumemonitor""".split()
# These take seconds there.
SLOW = {'gmenumodel': ['/gmenu/equality', '/gmenu/random'], 'gsubprocess': ['/gsubprocess/signal', '/gsubprocess/terminate'], 'timeout': ['/timeout/rounding']}
# The longest tests start first, so that no long test is left at the end.
LONGEST = ['mainloop', 'timeout', 'gsubprocess', 'gmenumodel', 'contexts', 'gdbus-proxy', 'socket', 'actions', 'gdbus-export', 'spawn-multithreaded', 'unix']
PATIENCE, TRIES, JOBS = 180, 4, 6


def command_of(name):
    with open(os.path.join(TESTS, name + '.test'), encoding='ascii') as file:
        command = shlex.split(re.search('^Exec=(.*)$', file.read(), re.M)[1])
    return [*command, '--tap'] if os.access(command[0], os.X_OK) and command == [os.path.join(PROGRAMS, name)] else command


class Run:
    """Returns the result of each test of a program, and of the program itself ('')."""

    def __init__(self, name, words, weft=None):
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='weft-suite-') as folder:
            env = {**ENV, 'G_TEST_SRCDIR': PROGRAMS, 'G_TEST_BUILDDIR': PROGRAMS, 'XDG_RUNTIME_DIR': folder, 'HOME': folder, 'GIO_USE_VFS': 'local'}
            traces = os.path.join(folder, 'traces')
            command = [*([weft, 'record', '--size=1M', '-o', traces, '--'] if weft else []), *command_of(name), *words]
            with open(os.path.join(folder, 'out'), 'w+b') as file:
                with subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.DEVNULL,
                                      start_new_session=True) as process:
                    try:
                        status = process.wait(PATIENCE)
                    except subprocess.TimeoutExpired:
                        status = 'late'
                    # Child processes are killed, too: the bus of GTestDBus outlives a program that aborts.
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                file.seek(0)
                out = file.read()
            self.seconds = time.monotonic() - begin
            self.ends = {}
            for match in re.finditer(r'^(ok|not ok) \d+ (?:- )?(\S+)( # SKIP)?', out.decode(errors='replace'), re.M):
                self.ends[match[2]] = 'skipped' if match[3] else match[1]
            self.count = len(self.ends)
            # A shell and weft record report a signal so.
            self.ends[''] = 128 - status if status != 'late' and status < 0 else status
            self.traces = len(glob.glob(os.path.join(traces, '*', 'metadata')))
            self.unread = [trace for trace in glob.glob(os.path.join(traces, '*')) if weft and subprocess.run(
                [weft, 'explain', trace], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode not in (0, 1)]


def differ(name, words, weft):
    """Runs a program both ways, and again if the results differ, since many of GLib's tests measure time.  Returns the tests whose results were never
    equal."""
    plain, recorded = Run(name, words), Run(name, words, weft)
    seen = [{test: {end} for test, end in run.ends.items()} for run in (plain, recorded)]
    tries, different = 1, ()
    while True:
        different = [test for test in {*seen[0], *seen[1]} if not seen[0].get(test, {None}) & seen[1].get(test, {None})]
        if not different or tries == TRIES:
            return plain, recorded, {test: tuple(ends.get(test) for ends in seen) for test in sorted(different)}, tries
        tries += 1
        for ends, run in zip(seen, (Run(name, words), Run(name, words, weft))):
            for test in {*ends, *run.ends}:
                ends.setdefault(test, {None}).add(run.ends.get(test))


def main():
    weft, wanted, whole = os.path.abspath(sys.argv[1]), sys.argv[2:], os.environ.get('WEFT_WHOLE')
    if not os.path.isdir(TESTS):
        print('SKIPPED: libglib2.0-tests is not installed')
        sys.exit(77)
    there = {os.path.basename(path)[:-len('.test')] for path in glob.glob(os.path.join(TESTS, '*.test'))}
    names = wanted or sorted(there) if wanted or whole else [name for name in QUICK if name in there]

    def both(name):
        return differ(name, [] if wanted or whole else [word for path in SLOW.get(name, []) for word in ('-s', path)], weft)

    names.sort(key=lambda name: LONGEST.index(name) if name in LONGEST else len(LONGEST))
    with ThreadPoolExecutor(JOBS) as jobs:  # they mostly wait
        results = dict(zip(names, jobs.map(both, names)))
    print(f'{"program":40} {"tests":>5} {"plain":>8} {"recorded":>8} traces')
    for name, (plain, recorded, _, tries) in results.items():
        status = plain.ends['']
        if wanted or whole or tries > 1 or status or plain.seconds > 10:
            print(f'{name:40} {plain.count:5} {plain.seconds:6.1f} s {recorded.seconds:6.1f} s {recorded.traces:6}'
                  f'{f"  {tries} runs" if tries > 1 else ""}{f"  exit status {status}" if status else ""}')
    count, recorded = sum(plain.count for plain, *_ in results.values()), sum(bool(run.traces) for _, run, *_ in results.values())
    print(f'{count} tests of {len(names)} programs, {recorded} of them recorded')
    different = {name: how for name, (*_, how, _) in results.items() if how}
    for name, how in different.items():
        print(f'{name}: {how}')
    unread = [trace for _, run, *_ in results.values() for trace in run.unread]
    if different:
        fail(f'{len(different)} programs of GLib end otherwise when they are recorded')
    if unread:
        fail(f'traces that weft explain cannot read: {unread}')
    if not wanted and recorded < 40:
        fail(f'only {recorded} programs were recorded')


main()
