#!/usr/bin/env python3
"""judge.py CONSOLE: checks the output of weft in the guest (init has the steps).

Prints "pass: ..." for each thing that it shows; exits with 1 if anything is not so.  SPDX-License-Identifier: ISC"""
import re
import sys

console = open(sys.argv[1], encoding='utf-8', errors='replace').read().replace('\r', '')
said = {}
for line in console.splitlines():
    if match := re.search(r'@ (\w+) (\w+): (.*)', line):
        said.setdefault((match[1], match[2]), []).append(match[3])
failed = []


def shows(what, who, asked, *patterns, lacks=None):
    text = '\n'.join(said.get((who, asked), []))
    for pattern in patterns:
        if not re.search(pattern, text):
            failed.append(f'{who}, {asked}: no "{pattern}" in: {text[:1500]}')
            return
    if lacks and re.search(lacks, text):
        failed.append(f'{who}, {asked}: "{lacks}" in: {text[:1500]}')
        return
    print('pass:', what)


shows("Debian's kernel denies perf to ordinary users", 'machine', 'paranoid', '^3$')
shows('an ordinary user is told why there is nothing, and what to do about it', 'denied', 'record', 'perf_event_paranoid is 3', 'kernel.perf_event_paranoid=2')
shows('what he recorded says so too', 'denied', 'info', 'level self: perf_event_paranoid is 3', 'promises')
shows('the stall is found all the same', 'denied', 'explain', 'stall.*nanosleep')
shows('with paranoid at 2 he has the switches, and nothing is lost', 'allowed', 'info', 'level own', r'clock offset known to \d+ ns', r'lost +0 events',
      lacks='no space')
shows('and the stall says what its OS thread did', 'allowed', 'explain', 'stall.*nanosleep', 'the thread slept')
shows('root has all, by programs in the kernel, without tracefs being mounted', 'root', 'info', 'level all: softirqs are recorded from 20 us on', r'lost +0 events', lacks='no space')
shows('and in which call', 'root', 'explain', 'slept in (clock_)?nanosleep')
for line in failed:
    print('fail:', line)
sys.exit(bool(failed))
