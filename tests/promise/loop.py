#!/usr/bin/env python3
"""weft reads the trace of a loop of a million iterations, each of which is merged with the next.

	loop.py DEEP WEFT

SPDX-License-Identifier: ISC
"""

import os
import subprocess
import sys
import tempfile

deep, weft = sys.argv[1:3]
with tempfile.TemporaryDirectory() as directory:
    trace = os.path.join(directory, "trace")
    subprocess.run([deep, trace], check=True)
    info = subprocess.run([weft, "info", trace], capture_output=True, text=True, check=True).stdout
lines = [" ".join(line.split()) for line in info.splitlines()]
promises = "promises 2000000: 1000001 resolved, 0 failed, 0 never resolved, 999999 became another, 0 pending"
events = ("create 2000000", "read 1000000", "resolve 1000001", "become 999999", "run 1000000", "await 1000000", "counter 1000001")
for want in (*events, promises):
    if want not in lines:
        sys.exit(f"no line {want!r} in\n{info}")
