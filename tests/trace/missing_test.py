#!/usr/bin/env python3
"""missing_test.py PROGRAM WEFT: if any file of a finished trace is missing or damaged, weft reports missing events, and each certain
finding has a kind that weft also finds in the complete trace.

Each file of a trace of several OS threads is removed in one copy of the trace, and overwritten by zeros in its middle in another copy.  SPDX-License-Identifier: ISC"""
import glob
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile

program, weft = (os.path.abspath(path) for path in sys.argv[1:])
wrong, looks = [], 0
true_of = set()  # kinds of the certain findings about the complete trace


def run(*words):
    return subprocess.run([weft, *words], capture_output=True, text=True, check=False)


def certain_findings(trace):
    """Yields kind and title of each certain finding."""
    for line in run('explain', '--json', trace).stdout.splitlines():
        finding = json.loads(line)
        if finding['sure']:
            yield finding['finding'], finding['title']


def compare_with_truth(trace, what, is_whole):
    """Compares the findings about a damaged trace with those about the complete trace, which is given first."""
    global looks
    looks += 1
    told = run('info', '--json', trace)
    if told.returncode:
        if is_whole:
            wrong.append(f'{what}: {told.stderr}')
        return
    info = json.loads(told.stdout)
    if bool(info['skipped_count']) == is_whole:
        wrong.append(f'{what}: {info["skipped_count"]} places could not be read: {info["skipped"][:1]}')
    if is_whole:
        true_of.clear()
        true_of.update(kind for kind, title in certain_findings(trace))
        return
    if not run('info', trace).stdout.count('missing') and not any('zeros' in place['what'] or 'all packets of' in place['what'] for place in info['skipped']):
        wrong.append(f'{what}: weft info does not say so')
    wrong.extend(f'{what}: surely: {title}' for kind, title in certain_findings(trace) if kind not in true_of)


def is_oldest(path):
    """Returns whether a file has the oldest packet of a ring.  Its loss cannot be noticed, because the ring could have overwritten it."""
    def sequence(of):
        with open(of, 'rb') as file:
            return struct.unpack_from('<Q', file.read(160), 72)[0]
    stream = path.rpartition('-')[0]
    return sequence(path) == min(sequence(other) for other in glob.glob(stream + '-*')) and len(glob.glob(stream + '-*')) > 1


def empty_middle(path):
    size = os.path.getsize(path)
    with open(path, 'r+b') as file:
        file.seek(size // 3 // 4096 * 4096)
        file.write(bytes(size // 3 // 4096 * 4096))


with tempfile.TemporaryDirectory() as folder:
    for options, events in (',mode=grow,size=2M', 100000), (',size=256k,packets=4', 100000), (',mode=grow', 2000):
        whole, part = os.path.join(folder, 'whole'), os.path.join(folder, 'part')
        subprocess.run([program, str(events)], env={**os.environ, 'WEFT_TRACE': whole + options}, check=True)
        compare_with_truth(whole, options, True)
        for name in sorted(os.listdir(whole)):
            if name == 'metadata':
                continue
            for change in os.unlink, empty_middle:
                # A small file has no whole page in its middle.
                if change is empty_middle and os.path.getsize(os.path.join(whole, name)) < 30000:
                    continue
                if change is os.unlink and 'packets=' in options and is_oldest(os.path.join(whole, name)):
                    continue
                shutil.copytree(whole, part)
                change(os.path.join(part, name))
                compare_with_truth(part, f'{options}, {name}, {change.__name__}', False)
                shutil.rmtree(part)
        shutil.rmtree(whole)

print(f'{looks} looks')
sys.exit('\n'.join(wrong) if wrong else 0)
