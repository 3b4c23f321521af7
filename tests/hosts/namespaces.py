"""Two machines, a and b, as network namespaces with a cable between them.  SPDX-License-Identifier: ISC"""

import os
import shutil
import subprocess


def ip(*words):
    return subprocess.run(['ip', *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Machines:
    """`addresses` of both; false where this machine lets nobody make them.  As a context, they are gone at its end."""

    def __init__(self):
        number = os.getpid()
        self.names = {letter: f'weft{number}{letter}' for letter in 'ab'}
        self.addresses = {'a': '10.77.1.1', 'b': '10.77.1.2'}
        links = [f'w{number}{letter}' for letter in 'ab']
        spaces = list(self.names.values())
        self.made = bool(shutil.which('ip')) and all(ip('netns', 'add', space) for space in spaces) and ip(
            'link', 'add', links[0], 'netns', spaces[0], 'type', 'veth', 'peer', 'name', links[1], 'netns', spaces[1])
        for letter, link in zip('ab', links):
            self.made = (self.made and ip('-n', self.names[letter], 'addr', 'add', self.addresses[letter] + '/24', 'dev', link)
                         and ip('-n', self.names[letter], 'link', 'set', link, 'up'))

    def on(self, letter, *command):
        """A command as it is given there."""
        return ['ip', 'netns', 'exec', self.names[letter], *command]

    def __bool__(self):
        return self.made

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for space in self.names.values():
            ip('netns', 'del', space)
