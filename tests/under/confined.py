#!/usr/bin/env python3
"""confined.py mdwe|seccomp|service PROGRAM...: runs a program that cannot make written memory executable:
   with mdwe by PR_SET_MDWE of the kernel, with seccomp by the filter of systemd's
   MemoryDenyWriteExecute=.  With service, each system call that SystemCallFilter=@system-service does not allow also kills the program.  Exits with status 77
   if the kernel or systemd lacks the feature.

SPDX-License-Identifier: ISC"""

import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
import sys

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, REFUSE_EXEC_GAIN = 22, 38, 65, 1
LOAD, EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, ARCHITECTURE, THIRD_ARGUMENT = 0, 4, 32
MMAP, MPROTECT, PKEY_MPROTECT = 9, 10, 329  # x86-64
WRITE, EXEC = 2, 4
ALLOW, DENY, KILL = 0x7fff0000, 0x00050001, 0x80000000

# Steps of the filter: code, number of steps to skip if it holds and if not, operand.
FILTER = [
    (LOAD, 0, 0, ARCHITECTURE), (EQUAL, 0, 10, 0xc000003e),
    (LOAD, 0, 0, NUMBER), (EQUAL, 2, 0, MMAP), (EQUAL, 4, 0, MPROTECT), (EQUAL, 3, 6, PKEY_MPROTECT),
    (LOAD, 0, 0, THIRD_ARGUMENT), (AND, 0, 0, WRITE | EXEC), (EQUAL, 4, 3, WRITE | EXEC),
    (LOAD, 0, 0, THIRD_ARGUMENT), (AND, 0, 0, EXEC), (EQUAL, 1, 0, EXEC),
    (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, DENY),
]



def service():
    """Returns filter steps that allow systemd's @system-service, and kill on anything else."""
    if not shutil.which('systemd-analyze'):
        return None
    told = subprocess.run(['systemd-analyze', '--no-pager', 'syscall-filter'], stdout=subprocess.PIPE, text=True, check=True).stdout
    sets = {block.split()[0]: [line.strip() for line in block.splitlines()[1:] if line.strip() and '#' not in line]
            for block in re.split(r'\n(?=@)', re.sub(r'\x1b\[[0-9;]*m', '', told)) if block.startswith('@')}
    with open('/usr/include/x86_64-linux-gnu/asm/unistd_64.h', encoding='ascii') as file:
        numbers = dict(re.findall(r'#define __NR_(\w+) (\d+)', file.read()))
    names, wanted = set(), ['@system-service']
    while wanted:
        name = wanted.pop()
        if name.startswith('@'):
            wanted += sets[name]
        else:
            names.add(name)
    steps = [(LOAD, 0, 0, NUMBER)]
    for name in sorted(names & set(numbers)):
        steps += [(EQUAL, 0, 1, int(numbers[name])), (RETURN, 0, 0, ALLOW)]
    return steps + [(RETURN, 0, 0, KILL)]


def install(steps):
    code = ctypes.create_string_buffer(b''.join(struct.pack('<HBBI', *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack('<H6xQ', len(steps), ctypes.addressof(code)))
    return libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) == 0


libc = ctypes.CDLL(None)
if sys.argv[1] == 'mdwe':
    done = libc.prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0
else:
    filters = [FILTER] + ([service()] if sys.argv[1] == 'service' else [])
    done = all(filters) and platform.machine() == 'x86_64' and libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and all(map(install, filters))
if not done:
    print('confined.py: this kernel cannot do that', file=sys.stderr)
    sys.exit(77)
os.execv(sys.argv[2], sys.argv[2:])
