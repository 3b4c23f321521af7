#!/usr/bin/env python3
"""Two programs in network namespaces whose clocks are wrong as they are told: their traces become one, and the truth is inside the bound.

	clocks_test.py PEER WEFT

SPDX-License-Identifier: ISC"""

import json
import os
import re
import subprocess
import sys
import tempfile

from namespaces import Machines

PATIENCE = 120
peer, weft = (os.path.abspath(path) for path in sys.argv[1:3])


def fail(message):
    sys.exit(f'FAILED: {message}')


def run(machines, folder, offset_ns, drift_ppm):
    """Both, a's clock right and b's wrong; what weft says of their traces together."""
    traces = [os.path.join(folder, letter) for letter in 'ab']
    listens = subprocess.Popen(machines.on('b', peer, traces[1], 'b', str(offset_ns), str(drift_ppm), 'listen', machines.addresses['b'], '7777', '3000'),
                               stdout=subprocess.PIPE, text=True)
    if listens.stdout.readline() != 'listens\n':
        fail('nobody listens')
    asks = subprocess.run(machines.on('a', peer, traces[0], 'a', '0', '0', 'connect', machines.addresses['b'], '7777', '3000'), timeout=PATIENCE)
    if asks.returncode or listens.wait(PATIENCE):
        fail('the two could not talk')
    said = subprocess.run([weft, 'dump', '--json', folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    if said.returncode:
        fail(said.stderr)
    bound = re.search(r'1 of its 2 traces .* to \+-([0-9.]+) (ns|us|ms) on average', said.stderr)
    if not bound:
        fail(f'weft does not say how exact the clocks are known: {said.stderr}')
    return [json.loads(line) for line in said.stdout.splitlines()], float(bound[1]) * {'ns': 1, 'us': 1e3, 'ms': 1e6}[bound[2]]


def grade(lines, bound_ns):
    """How far the times of b are from the truth, which a's clock shows."""
    errors = {0: [], 1: []}
    origin = None
    for line in lines:
        text = line.get('promise', -1) > 0 and line['labels'] and line['labels'][0][1]
        if text and text.startswith('true '):
            shown, truth = line['start_ns'], int(text.split()[1])
            errors[line['promise'] % 10].append(shown - truth)
    if min(map(len, errors.values())) < 100:
        fail(f'too few times to compare: {errors}')
    # The first event's time is 0, and a stamp is taken some time before the label has it: a's own shows how much, at best.
    origin = max(errors[0])
    far = [abs(error - origin) for error in errors[1]]
    inside = sum(error <= 3 * bound_ns for error in far)
    if inside < len(far) * 9 // 10:
        fail(f'{len(far) - inside} of {len(far)} times are further from the truth than three bounds of {bound_ns} ns: {sorted(far)[-5:]}')
    print(f'+-{bound_ns / 1e3} us; half of {len(far)} times are within {sorted(far)[len(far) // 2] / 1e3} us of the truth')


with Machines() as made:
    if not made:
        print('SKIPPED: no network namespaces can be made here')
        sys.exit(77)
    for offset_ns, drift_ppm in (3700000000, 50), (-80000000, -20), (0, 0):
        with tempfile.TemporaryDirectory() as folder:
            grade(*run(made, folder, offset_ns, drift_ppm))
