#!/usr/bin/env python3
"""A promise that spins in a loop that never sleeps does not overwrite the earlier events of a small ring, and is reported, with its end if it has one.
   Repetitions that work, or that record another event, are recorded one by one.

	spin.py SPIN WEFT

SPDX-License-Identifier: ISC
"""

import json
import os
import subprocess
import sys
import tempfile

spin, weft = sys.argv[1:3]
TIMES = 300


def ask(verb, trace):
    got = subprocess.run([weft, verb, "--json", trace], capture_output=True, text=True, check=False, timeout=60)
    return [json.loads(line) for line in got.stdout.splitlines()]


def record(directory, *arguments):
    trace = os.path.join(directory, "-".join(arguments))
    subprocess.run([spin, *arguments], env={**os.environ, "WEFT_TRACE": trace + ",size=256K"}, check=True, timeout=60)
    return trace, ask("dump", trace)


def called(promises, label):
    return [p for p in promises if label in [text for _, text in p.get("labels", [])]]


def expect(got, wanted, what):
    if got != wanted:
        sys.exit(f"{what}: {got}, not {wanted}")


with tempfile.TemporaryDirectory() as directory:
    for what in "handle", "turns", "steps", "fresh", "locks":
        for arguments in [what], [what, "ends"]:
            trace, promises = record(directory, *arguments)
            name, ends = " ".join(arguments), len(arguments) > 1
            for label in "configuration", "request", "answer":
                expect([p["end"] for p in called(promises, label)], ["resolved"], f"{label} in {name}")
            found = ask("explain", trace)
            spins = [line for line in found if line.get("finding") == "spin"]
            by_number = {p["promise"]: p for p in promises if "promise" in p}
            expect(len(spins), 1, f"spins of {name}")
            # On a busy machine, a spin may be interrupted and continue in a later promise of the same creation site.
            told = [max([spins[0]["promise"]] + [line["promise"] for line in spins[0]["evidence"] if line["role"] == "like"])]
            while by_number[told[0]]["end"] == "became":
                told = [by_number[told[0]]["became"]]
            spinner = by_number[told[0]]
            expect(spinner["end"], "resolved" if ends else "pending", f"how the spin of {name} ends")
            expect(sorted({line["finding"] for line in found if "finding" in line}), ["spin"], f"what is found in {name}")
            if what == "handle":
                expect([p["promise"] for p in called(promises, "uv_run beside an idle handle")], told, f"who spins in {name}")
            elif what == "fresh":
                expect(spinner["kind"], "ignore_result", f"who spins in {name}")
            else:
                first = called(promises, "poller")[0]
                while first["end"] == "became":
                    first = by_number[first["became"]]
                expect([first["promise"]], told, f"who spins in {name}")
    for what in "work", "tells":
        trace, promises = record(directory, what, "ends")
        reads = [event for event in ask("events", trace) if event["op"] == "resolve"]
        expect(len(reads) >= TIMES, True, f"rounds of {what} that are told")
    counted = [event["value"] for event in ask("events", trace) if event["op"] == "counter"]
    expect(counted, list(range(1, TIMES)), "what a counter was")
