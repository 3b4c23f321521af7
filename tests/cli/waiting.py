"""waiting.py: waiting in tests of verbs that run on.  SPDX-License-Identifier: ISC"""
import ctypes
import os
import signal
import sys
import time

PATIENCE = 120


def dies_with_test():
    """For preexec_fn: the kernel kills the process when this test ends in any way."""
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
    """Returns the copies in a folder."""
    return sorted(name for name in os.listdir(folder) if not name.endswith('.tmp')) if os.path.isdir(folder) else []
