"""waiting.py: helpers that wait, for tests of verbs that keep running.  SPDX-License-Identifier: ISC"""
import ctypes
import os
import signal
import sys
import time

PATIENCE = 120


def dies_with_test():
    """A preexec_fn: the kernel kills the new process when this test ends for any reason."""
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f'{what}: {got} is not {wanted}')


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            sys.exit(f'after {PATIENCE} s still not: {what}')
        time.sleep(0.05)


def listed(folder):
    """Returns the names of the finished copies in a folder of weft watch."""
    return sorted(name for name in os.listdir(folder) if not name.endswith('.tmp')) if os.path.isdir(folder) else []
