#!/usr/bin/env python3
"""judge.py WEFT WORK: checks the findings of weft about a guest, its client and its host together (run and init have the steps).

Prints "pass: ..." for each thing that it shows, or "skip: ..."; exits with 1 if anything is not so.  SPDX-License-Identifier: ISC"""
import json
import os
import re
import subprocess
import sys

weft, work = sys.argv[1:3]
client, guest, qemu = (os.path.join(work, name) for name in ('client', 'out/webdis.tar', 'qemu'))
failed = []


def run_weft(verb, *words):
    return subprocess.run([weft, verb, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=120).stdout


def shows(what, text, *patterns):
    missing = [pattern for pattern in patterns if not re.search(pattern, text)]
    if missing:
        failed.append(f'{what}: no {missing} in: {text[:6000]}')
    else:
        print('pass:', what)


def ns(number, unit):
    return float(number) * {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}[unit]


for trace in client, guest, qemu:
    if not os.path.exists(trace):
        sys.exit(f'fail: never recorded: {trace}')
if 'kernel     level self' in run_weft('info', qemu):
    print('skip: the kernel tells nothing of switches here')
    sys.exit(77)
together = run_weft('info', client, guest, qemu)
together = together[together.find('together'):]
shows('a guest, who asks it, and its QEMU are one trace; messages tie the clocks', together, '3 traces of 2 hosts',
      r'webdis@guest +another host, aligned by messages: \+-[\d.]+ (us|ms) on average', r'qemu-system-x86@\S+ +the same clock: exact')
# The long question is the longest read by far.
promises = [json.loads(line) for line in run_weft('dump', '--json', client, guest, qemu).splitlines()]
reads = [p for p in promises if p.get('kind') == 'read' and p.get('stream') == 0 and p['end'] == 'resolved']
slowest = max(reads, key=lambda p: p['end_ns'] - p['start_ns'], default={'promise': 0, 'start_ns': 0, 'end_ns': 0})
path = run_weft('path', client, guest, qemu, f'--promise={slowest["promise"]}')
shows("the path of the long answer says that the guest's processor had none of the host's", path,
      r'of this, .* in webdis@guest', r', while thread \d+ "CPU 0/TCG" waited for a CPU of the host for [\d.]+ (ms|s)')
# The hog had the CPU for three fifths of the time; other programs on the machine may have had more.
lost = sum(ns(*match) for match in re.findall(r'of the host for ([\d.]+) (us|ms|s)', path))
if lost < 0.4 * (slowest['end_ns'] - slowest['start_ns']) or lost > slowest['end_ns'] - slowest['start_ns']:
    failed.append(f'it lost {lost} ns in:\n{path}')
else:
    print('pass: that is what was taken from it')
shows('explain says so of what came late', run_weft('explain', client, guest, qemu),
      r'(?s)slow: .*the answer arrives [^\n]*\n[^\n]*thread \d+ "CPU 0/TCG", a virtual CPU of the guest, had no CPU of the host for')
alone = run_weft('explain', client, guest)
if not alone or 'CPU of the host' in alone:
    failed.append(f'without the trace of QEMU nobody knows that: {alone[:2000]}')
else:
    print('pass: without the trace of QEMU nothing is said of that')
for line in failed:
    print('fail:', line)
sys.exit(bool(failed))
