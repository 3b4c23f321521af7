#!/usr/bin/env python3
"""The events of a function on the thread pool are in the stream of its OS thread, and its promise runs there while the OS thread of the loop sleeps;
   links connect both threads.

	work.py WORK WEFT

SPDX-License-Identifier: ISC
"""

import json
import os
import subprocess
import sys
import tempfile

work, weft = sys.argv[1:3]
with tempfile.TemporaryDirectory() as directory:
    trace = os.path.join(directory, "trace")
    run = subprocess.run([work], env={**os.environ, "WEFT_TRACE": trace}, capture_output=True, text=True, timeout=60)
    events, dump = (subprocess.run([weft, verb, "--json", trace], capture_output=True, text=True, check=True).stdout.splitlines()
                    for verb in ("events", "dump"))
if (run.returncode, run.stdout, run.stderr) != (0, "done\n", ""):
    sys.exit(f"ended with {run.returncode} and printed\n{run.stdout}{run.stderr}")
promises = {}
for p in map(json.loads, dump):
    if p.get("promise", -1) > 0:
        labels = [label[1] for label in p["labels"] if not label[1].isdigit()]
        promises[labels[0] if labels else p["kind"]] = p
of_work, of_map, step, request = (promises[name] for name in ("work", "map", "step", "request"))
(began, ended), = of_work["running"]
assert of_work["start_ns"] <= began <= step["start_ns"] <= request["end_ns"] <= ended <= of_work["end_ns"] <= of_map["start_ns"], dump
assert (of_work["stream"], step["stream"], step["parent"], of_work["links"]["resolve"]) == (0, 1, of_work["promise"], 2), dump
assert {p["end"] for p in promises.values()} == {"resolved"}, dump
told = ("pending", "still_awaits", "detail")  # a state dump or a slow iteration may record these
ops = {stream: [e["op"] for e in map(json.loads, events) if e.get("stream") == stream and e["op"] not in told]
       for stream in (0, 1)}
assert ops[1] == ["resume", "create", "label", "resolve", "resolve", "idle"], ops
assert ops[0][:8] == ["create", "label", "create", "create", "await", "should_resolve", "idle", "resume"], ops
