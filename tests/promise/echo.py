#!/usr/bin/env python3
"""The example echo server, in promises, prints the expected lines, and its trace has the clients and the promises that they awaited.

	echo.py ECHO WEFT

SPDX-License-Identifier: ISC
"""

import json
import os
import subprocess
import sys
import tempfile

echo, weft = sys.argv[1:3]
with tempfile.TemporaryDirectory() as directory:
    trace = os.path.join(directory, "trace")
    run = subprocess.run([echo], env={**os.environ, "WEFT_TRACE": trace}, capture_output=True, text=True, timeout=60)
    lines = subprocess.run([weft, "dump", "--json", trace], capture_output=True, text=True, check=True).stdout.splitlines()
if run.returncode or run.stderr or sorted(run.stdout.splitlines()) != [
    "67 bytes echoed", "eve gives up: timeout", "zed gives up: connection refused",
]:
    sys.exit(f"ended with {run.returncode} and printed\n{run.stdout}{run.stderr}")
promises = [p for p in map(json.loads, lines) if p.get("promise", -1) > 0]
labels = [label[1] for p in promises for label in p["labels"]]
for want, count in {"ann": 1, "bob": 1, "cid": 1, "eve": 1, "zed": 1, "connection": 4}.items():
    if labels.count(want) != count:
        sys.exit(f"{labels.count(want)} promises are called {want}, not {count}")
# The numbers of ended promises: zed's connect fails, and the last accept is cancelled.  A listener is two promises: one for the call, and one that lasts until the close.
for kind, end, count in [
    ("connect", "resolved", 4), ("connect", "failed", 1), ("accept", "resolved", 4), ("accept", "failed", 1),
    ("write", "resolved", 25), ("listen", "resolved", 4),
]:
    got = sum(p["kind"] == kind and p["end"] == end for p in promises)
    if got != count:
        sys.exit(f"{got} {kind}s ended {end}, not {count}")
