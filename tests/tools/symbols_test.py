#!/usr/bin/env python3
"""A shared library exports the names of its list: a removed name breaks programs, and a new name is a commitment.

	symbols_test.py [--record] LIST LIBRARY [LIST LIBRARY]...

SPDX-License-Identifier: ISC"""
import subprocess
import sys

args = [a for a in sys.argv[1:] if a != "--record"]
failed = False
for path, library in zip(args[::2], args[1::2]):
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    found = sorted(line.split()[-1] for line in listed.splitlines())
    if "--record" in sys.argv:
        with open(path, "w") as f:
            f.writelines(name + "\n" for name in found)
        continue
    with open(path) as f:
        wanted = f.read().split()
    if found != wanted:
        failed = True
        print(f"{library}: new {sorted(set(found) - set(wanted))}, gone {sorted(set(wanted) - set(found))}")
sys.exit(failed)
