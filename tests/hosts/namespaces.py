"""Machines as network namespaces: b, and others with a cable to it.  SPDX-License-Identifier: ISC"""

import os
import shutil
import subprocess


def ip(*words):
    return subprocess.run(['ip', *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


class Machines:
    """`addresses` of both; false if this machine does not permit namespaces.  As a context, it removes them at its end."""

    def __init__(self, others='a'):
        number = os.getpid()
        self.names = {letter: f'weft{number}{letter}' for letter in others + 'b'}
        self.addresses = {'b': '10.77.1.2'}
        self.made = bool(shutil.which('ip')) and all(ip('netns', 'add', space) for space in self.names.values())
        for net, letter in enumerate(others, 1):
            here, there = f'10.77.{net}.1', f'10.77.{net}.2'
            links = {end: f'w{number}{letter}{end}' for end in (letter, 'b')}
            self.addresses[letter] = here
            self.made = (self.made and ip('link', 'add', links[letter], 'netns', self.names[letter], 'type', 'veth', 'peer', 'name', links['b'], 'netns', self.names['b'])
                         and all(ip('-n', self.names[end], 'addr', 'add', address + '/24', 'dev', links[end])
                                 and ip('-n', self.names[end], 'link', 'set', links[end], 'up') for end, address in ((letter, here), ('b', there)))
                         and (net == 1 or ip('-n', self.names[letter], 'route', 'add', '10.77.1.0/24', 'via', there)))

    def on(self, letter, *command):
        """Returns the command line that runs a command there."""
        return ['ip', 'netns', 'exec', self.names[letter], *command]

    def __bool__(self):
        return self.made

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for space in self.names.values():
            ip('netns', 'del', space)
