#!/usr/bin/env python3
"""packed_test.py WEFT GENERATE: weft refuses a packed trace that unpacks to much more than its size, before its memory is full.

SPDX-License-Identifier: ISC"""
import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile

MB = 1 << 20
weft, generate = map(os.path.abspath, sys.argv[1:])


def measure(*command, env=None):
    """Returns exit status, output and the largest resident memory in bytes."""
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return process.returncode, out.read().decode(errors='replace'), usage.ru_maxrss * 1024


def pack(path, trace, byte, megabytes):
    """Writes a tar.gz of a trace and of a further stream file, in which one byte is repeated."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as tar:
        tar.add(trace, 't')
    member = tarfile.TarInfo('t/stream-99-0')
    member.size = megabytes * MB
    with gzip.open(path, 'wb', 6) as file:
        file.write(buffer.getvalue().rstrip(b'\0') + bytes(-len(buffer.getvalue().rstrip(b'\0')) % 512))
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(megabytes):
            file.write(byte * MB)
        file.write(bytes(1024))


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    subprocess.run([generate, 'random', '--events=5k', '--format=native', '-o', 'trace'], check=True)
    # A file of zeros is accepted, because the rings of many idle threads are mostly zeros.
    pack('zeros.tar.gz', 'trace', b'\0', 256)
    status, said, memory = measure(weft, 'info', 'zeros.tar.gz')
    if status != 0 or '\nevents     5000\n' not in said:
        sys.exit(f'256 MB of zeros: status {status}, {memory // MB} MB: {said[:300]}')
    pack('letters.tar.gz', 'trace', b'a', 600)
    status, said, memory = measure(weft, 'info', 'letters.tar.gz')
    if status != 2 or '64 times the file' not in said or memory > 400 * MB:
        sys.exit(f'600 MB of letters: status {status}, {memory // MB} MB: {said[:300]}')
    print(f'600 MB of letters are refused after {memory // MB} MB')
