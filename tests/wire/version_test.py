#!/usr/bin/env python3
"""version_test.py WEFT PROGRAM EVERYTHING: weft reads packets of version 1, and reports packets of later versions.

PROGRAM records events that version 1 could express; EVERYTHING writes events that it could not.  SPDX-License-Identifier: ISC"""
import glob, os, re, struct, subprocess, sys, tempfile

weft, program, everything = sys.argv[1:]
failures = []


def check(what, is_so):
    if not is_so:
        failures.append(what)


def record(command, trace):
    subprocess.run([command], check=True, env={**os.environ, 'WEFT_TRACE': trace}, stdout=subprocess.DEVNULL)


def make_version(trace, version):
    for name in glob.glob(os.path.join(trace, '*-*')):
        with open(name, 'r+b') as file:
            file.seek(32)
            file.write(struct.pack('<H', version))


def leave_definitions_out(trace):
    """Removes the definitions that streams repeat, because version 1 did not repeat them."""
    for name in glob.glob(os.path.join(trace, 'stream-*')):
        with open(name, 'rb') as file:
            packet = file.read()
        packet = packet[:160] + re.sub(rb'(\xff\x3e.{8}|\x3e.{4})\xff{4}\xf0.{8}[^\0]*\0', b'', packet[160:], flags=re.DOTALL)
        with open(name, 'wb') as file:
            file.write(packet[:48] + struct.pack('<QQ', 8 * len(packet), 8 * len(packet)) + packet[64:])


def events(trace):
    return subprocess.run([weft, 'events', '--json', '--absolute', trace], capture_output=True, text=True)


with tempfile.TemporaryDirectory() as folder:
    trace, newer = os.path.join(folder, 'trace'), os.path.join(folder, 'newer')
    record(program, trace)
    # Version 1 has no CPU times of long iterations.
    before = events(trace).stdout.split('\n')
    could_say = '\n'.join(before[:next((i for i, line in enumerate(before) if '"round"' in line), len(before))])
    leave_definitions_out(trace)
    make_version(trace, 1)
    check('a trace of version 1 is read as ever', could_say.count('\n') > 20 and events(trace).stdout.startswith(could_say))
    make_version(trace, 3)
    got = events(trace)
    wanted = f'weft: {trace}: written in version 3 of the format; this weft reads versions 1 and 2\n'
    check(f'a later version: {got.returncode} {got.stderr!r}', got.returncode == 2 and not got.stdout and got.stderr == wanted)
    record(everything, newer)
    make_version(newer, 1)
    got = events(newer)
    check(f'version 1 has no later ops: {got.stderr!r}', '"still_awaits"' in got.stdout and '"belongs"' not in got.stdout and 'bytes that are not an event' in got.stderr)
print('\n'.join(failures) or 'fine')
sys.exit(1 if failures else 0)
