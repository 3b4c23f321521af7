#!/usr/bin/env python3
"""A loop that never sleeps leaves in a small ring what led to it, and is told of; one that sleeps again has its end there.

	spin.py SPIN WEFT

SPDX-License-Identifier: ISC
"""

import json
import os
import subprocess
import sys
import tempfile

spin, weft = sys.argv[1:3]


def ask(verb, trace):
    got = subprocess.run([weft, verb, "--json", trace], capture_output=True, text=True, check=False, timeout=60)
    return [json.loads(line) for line in got.stdout.splitlines()]


with tempfile.TemporaryDirectory() as directory:
    for arguments in [], ["ends"]:
        trace = os.path.join(directory, "trace" + "".join(arguments))
        subprocess.run([spin, *arguments], env={**os.environ, "WEFT_TRACE": trace + ",size=256K"}, check=True, timeout=60)
        promises = {label[1]: p for p in ask("dump", trace) for label in p.get("labels", [])}
        missing = {"configuration", "request", "answer"} - promises.keys()
        if missing:
            sys.exit(f"the ring has forgotten {missing}")
        if promises["answer"]["end"] != "resolved":
            sys.exit(f"what happened while it span: {promises['answer']}")
        told = [line for line in ask("explain", trace) if line.get("finding") == "spin"]
        loop = promises["uv_run beside an idle handle"]
        if [line["promise"] for line in told] != [loop["promise"]]:
            sys.exit(f"who spins: {told}, not {loop}")
        if loop["end"] != ("resolved" if arguments else "pending"):
            sys.exit(f"how the spin ends: {loop}")
