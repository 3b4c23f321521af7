"""suite.py: libuv's own tests, without and with recording.  SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import subprocess

from recorded import ENV, need

TRIES = 4
WHOLE_S, ONE_S = 1200, 120


class Suite:
    """libuv's own tests, built from the folder `source`, with the library in the folder `library` or the installed one."""

    def __init__(self, weft, source, traces, library=None):
        self.weft, self.source, self.traces, self.library = weft, source, traces, library
        self.runner = os.path.join(library or source, 'run-tests')
        if not os.path.exists(self.runner):
            files = [path for path in glob.glob(os.path.join(source, 'test', '*.c')) if not re.search(r'/(benchmark-|run-benchmarks|runner-win)', path)]
            flags = ['-O1', '-g', '-w', '-D_GNU_SOURCE', '-DUSING_UV_SHARED=1', *(f'-I{source}/{part}' for part in ('include', 'src', 'test'))]
            where = [f'-L{library}', f'-Wl,-rpath,{library}'] if library else []
            subprocess.run(['gcc', *flags, *files, '-o', self.runner, *where, '-luv', '-lpthread', '-ldl', '-lutil'], check=True)
        shutil.rmtree(traces, ignore_errors=True)
        os.makedirs(traces)
        if os.getuid() == 0:  # libuv's tests refuse to run as root
            for place in (source, library or source):
                for folder, _, names in os.walk(place):
                    for path in [folder, *(os.path.join(folder, name) for name in names)]:
                        os.chown(path, 65534, 65534, follow_symlinks=False)
            os.chmod(traces, 0o777)

    def run(self, name=None, traces=None):
        """Runs all tests, or test `name`; records them into the folder `traces` if it is given; returns {test: whether it passed}."""
        command = [self.runner, *([name] if name else [])]
        if traces:
            command = [self.weft, 'record', '--size=1M', '-o', os.path.join(self.traces, traces), '--', *command]
        if os.getuid() == 0:
            command = [need('setpriv'), '--reuid=65534', '--regid=65534', '--clear-groups', *command]
        try:
            done = subprocess.run(command, cwd=self.source, env={**ENV, 'HOME': self.source}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors='replace', timeout=ONE_S if name else WHOLE_S, check=False)
        except subprocess.TimeoutExpired:
            return {}
        if name:
            return {name: done.returncode == 0}
        return {match[2]: match[1] == 'ok' for match in re.finditer(r'^(ok|not ok) \d+ - (\w+)', done.stdout, re.M)}

    def passes(self, name, traces=None):
        """Returns whether a test that runs alone passes in one of several tries: some tests fail now and then on a busy machine."""
        return any(self.run(name, traces and f'{traces}-{name}-{attempt}').get(name) for attempt in range(TRIES))

    def compare(self):
        """Returns the results without recording, the results with recording, the tests that failed
                only once when recorded, and the tests that fail each time when recorded."""
        plain = self.run()
        recorded = self.run(traces='all')
        worse = [name for name, passed in plain.items() if passed and not recorded.get(name)]
        broken = [name for name in worse if not self.passes(name, 'one') and self.passes(name)]
        return plain, recorded, sorted(set(worse) - set(broken)), broken
