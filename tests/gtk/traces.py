# traces.py: the traces of the window tests, each created once.  SPDX-License-Identifier: ISC
import os
import subprocess
import tempfile


class Traces:
    def __init__(self, arp, generate):
        self.arp, self.generate = arp, generate
        self.folder = tempfile.mkdtemp(prefix='traces-', dir=os.environ['WEFT_TEST_DESKTOP'])

    def path(self, name):
        return os.path.join(self.folder, name)

    def record(self, which):
        """A recording of examples/arp, which takes two seconds if it is bad."""
        path = self.path(which)
        if not os.path.exists(path):
            subprocess.run([self.arp, which], env={**os.environ, 'WEFT_TRACE': path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           check=False, timeout=60)
        return path

    def generated(self, shape, events, *options, name=None):
        path = self.path(name or f'{shape}-{events}')
        if not os.path.exists(path):
            subprocess.run([self.generate, shape, '--events=' + events, *options, '-o', path], check=True, timeout=60)
        return path


def span(viewer):
    return viewer['to_ns'] - viewer['from_ns']


def lost_in(viewer):
    """Returns the promise of arp bad that never resolves."""
    return max(viewer['promises'], key=lambda p: (p[2], p[2] - p[1]))[0]
