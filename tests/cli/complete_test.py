#!/usr/bin/env python3
"""complete_test.py WEFT ARP COMPLETION-FOLDER: the TAB key in bash, zsh and fish, on a terminal, as a person presses it.  SPDX-License-Identifier: ISC"""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

weft, arp, completion = map(os.path.abspath, sys.argv[1:4])
PATIENCE = 60
NEVER = 'this is never printed'
folder = tempfile.mkdtemp(prefix='complete-')
os.makedirs(os.path.join(folder, 'a directory'))
open(os.path.join(folder, 'notes.txt'), 'wb').close()
subprocess.run([arp, 'good'], env={**os.environ, 'WEFT_TRACE': os.path.join(folder, 'trace')}, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def add_stream(trace, megabytes):
    """Adds a stream file of this size to the trace."""
    with open(os.path.join(folder, trace, 'stream-99-0'), 'wb') as stream:
        for _ in range(megabytes):
            stream.write(b'a' * (1 << 20))


# The TAB key reads only traces of up to 16 MB; the size of an archive is its unpacked size.
for name, megabytes in (('lesser', 12), ('large', 20)):
    shutil.copytree(os.path.join(folder, 'trace'), os.path.join(folder, name))
    add_stream(name, megabytes)
    with tarfile.open(os.path.join(folder, name + '.tar.gz'), 'w:gz') as packed:
        packed.add(os.path.join(folder, name), name)
# This script stands for weft: at Enter, it prints its arguments.
os.makedirs(os.path.join(folder, 'bin'))
with open(os.path.join(folder, 'bin', 'weft'), 'w', encoding='utf-8') as script:
    script.write(f'#!/bin/sh\n[ "$1" = --complete ] && exec {weft} "$@"\nprintf "GOT"; printf "<%s>" "$@"; echo END\n')
os.chmod(os.path.join(folder, 'bin', 'weft'), 0o755)

SHELLS = {
    'bash': (['bash', '--noprofile', '--norc', '-i'], f'PS1="READY "; bind "set bell-style none"; bind "set enable-bracketed-paste off"; . {completion}/weft.bash\n'),
    'zsh': (['zsh', '-f', '-i'], f'unsetopt prompt_cr prompt_sp zle_bracketed_paste 2>/dev/null; unset zle_bracketed_paste; PS1="READY "; fpath=({completion} $fpath); '
                                 'autoload -U compinit; compinit -u -D\n'),
    'fish': (['fish', '--no-config', '-i'], f'function fish_prompt; echo -n "READY "; end; source {completion}/weft.fish\n'),
}
# A typed text, and the arguments that weft gets after TAB and Enter.
TYPED = [
    ('exp', ['explain']),
    ('convert --t', ['convert', '--to=']),
    ('convert --to=mir', ['convert', '--to=mirage']),
    ('convert --to nat', ['convert', '--to', 'native']),
    ('record --mode=g', ['record', '--mode=grow']),
    ('info not', ['info', 'notes.txt']),
    ('info a', ['info', 'a directory']),
    ('render trace -o not', ['render', 'trace', '-o', 'notes.txt']),
    ('check trace cou', ['check', 'trace', 'count']),
    ('stats trace --blame=ring.wr', ['stats', 'trace', '--blame=ring.write']),
    ('stats lesser --blame=ring.wr', ['stats', 'lesser', '--blame=ring.write']),
    ('stats large --blame=ring.wr', ['stats', 'large', '--blame=ring.wr']),
    ('stats lesser.tar.gz --blame=ring.wr', ['stats', 'lesser.tar.gz', '--blame=ring.write']),
    ('stats large.tar.gz --blame=ring.wr', ['stats', 'large.tar.gz', '--blame=ring.wr']),
    ('hel', ['help']),
    ('help unclo', ['help', 'unclosed']),
    ('help findi', ['help', 'findings']),
    ('help rend', ['help', 'render']),
    ('record -- mkfif', ['record', '--', 'mkfifo']),
]


class Terminal:
    def __init__(self, words, setup):
        environment = {'PATH': folder + '/bin:' + os.environ['PATH'], 'TERM': 'dumb', 'HOME': folder, 'LC_ALL': 'C.UTF-8', 'LANG': 'C.UTF-8'}
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, environment)
        self.text = ''
        self.write(setup)
        self.write('echo IS_"ALIVE"\n')
        self.until('IS_ALIVE')

    def write(self, text):
        os.write(self.fd, text.encode())

    def seen(self):
        """Returns the output of the terminal without control sequences."""
        return re.sub(r'\x1b(\[[0-9;?>=]*[a-zA-Z]|[()][A-Z0-9]|[=>78]|\][^\x07]*\x07)|[\r\x07]', '', self.text)

    def until(self, pattern, patience=PATIENCE):
        """Returns whether the pattern appears in the output within the time limit."""
        end = time.monotonic() + patience
        while time.monotonic() < end:
            if pattern in self.seen():
                return True
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.text += os.read(self.fd, 65536).decode(errors='replace')
                except OSError:
                    return False
        return False

    def enter(self, typed):
        """Types the text, presses TAB and Enter; returns the arguments of weft."""
        self.text = ''
        self.write('weft ' + typed + '\t')
        self.until(NEVER, 0.3)  # the completion must be visible before Enter
        self.write('\n')
        if not self.until('END'):
            return None
        return re.findall(r'<([^<>]*)>', self.seen()[self.seen().index('GOT<'):])


def main():
    if not all(map(shutil.which, SHELLS)):
        print('no', ', no '.join(shell for shell in SHELLS if not shutil.which(shell)))
        sys.exit(77)
    failed = 0
    for shell, (words, setup) in SHELLS.items():
        terminal = Terminal(words, setup)
        for typed, wanted in TYPED:
            got = terminal.enter(typed)
            if [word.rstrip('/') for word in got or []] != wanted:  # zsh removes the slash at Enter
                failed += 1
                print(f'{shell}: weft {typed}, TAB: {got} where {wanted} was wanted: {terminal.seen()!r}')
        terminal.write('exit\n')
    print(f'{len(SHELLS)} shells, {len(TYPED)} lines in each')
    sys.exit(bool(failed))


main()
