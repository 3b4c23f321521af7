"""waiting.py: what tests of a verb that goes on wait for.  SPDX-License-Identifier: ISC"""
import os
import sys
import time

PATIENCE = 120


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
    """What is kept in a folder."""
    return sorted(name for name in os.listdir(folder) if not name.endswith('.tmp')) if os.path.isdir(folder) else []
