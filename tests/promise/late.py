#!/usr/bin/env python3
"""Promises that are older than the recording have their kind, label and site in it, and keep their ids in later recordings.

	late.py LATE WEFT

SPDX-License-Identifier: ISC
"""

import json
import os
import re
import subprocess
import sys
import tempfile


def events(trace):
    """Yields (name, fields) of each event, in order."""
    text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, fields = re.search(r" (\w+): \{ mark = .*?\}, (?:\{ (.*) \})?$", line).groups()
        found = re.findall(r'(\w+) = (?:\( "(.*?)" : [^)]*\)|"(.*?)"|(-?\d+))(?:, |$)', fields or "")
        yield name, {f[0]: f[1] or f[2] or f[3] for f in found}


class Trace:
    def __init__(self, path, whole):
        self.kind, self.label, self.since, self.ended, self.awaits, self.expected = {}, {}, {}, set(), set(), set()
        told = subprocess.run([sys.argv[2], "events", "--json", path], stdout=subprocess.PIPE, text=True, check=True).stdout
        labels = [e["label"] for e in map(json.loads, told.splitlines()) if e["op"] == "pending"]
        for name, fields in events(path):
            p = fields.get("promise")
            if name == "pending":
                fields["label"] = labels.pop(0)  # babeltrace2 prints an earlier text in place of an empty one
            if name in ("create", "pending"):
                if self.kind.setdefault(p, fields["kind"]) != fields["kind"]:
                    sys.exit(f"{path}: {p} is {self.kind[p]}, then {fields}")
                if fields.get("label", self.label.get(p)) != self.label.get(p, fields.get("label")):
                    sys.exit(f"{path}: {p} is {self.label[p]}, then {fields}")
            if name == "pending":
                self.since[p] = int(fields["since"])
                if fields["label"]:
                    self.label[p] = fields["label"]
            elif name == "label":
                self.label.setdefault(p, fields["text"])
            elif name == "should_resolve":
                self.expected.add(p)
            elif name in ("resolve", "fail"):
                self.ended.add(p)
            elif name == "still_awaits":
                self.awaits.add((p, fields["input"]))
            for field in ("by", "promise", "input", "from", "into"):
                id = fields.get(field, "-1")
                if id == "0" or whole and id != "-1" and id not in self.kind:
                    sys.exit(f"{path}: nobody knows {field} of {name} {fields}")

    def id(self, kind, label):
        found = [p for p in self.kind if self.kind[p] == kind and self.label.get(p, "") == label]
        if len(found) != 1:
            sys.exit(f"{len(found)} promises are {kind} {label!r}: {self.kind} {self.label}")
        return found[0]


with tempfile.TemporaryDirectory() as directory:
    subprocess.run([sys.argv[1], directory], check=True)
    first, second, ring = (Trace(os.path.join(directory, name), name != "ring") for name in ("first", "second", "ring"))

ends = {("wait", "old"): True, ("task", "copied x"): False, ("condition", "old condition"): False, ("task", "old condition"): True,
        ("task", "take old mvar"): False, ("wait", "of async"): True, ("async", ""): True, ("wait", "made in the callback"): True}
for (kind, label), want in ends.items():
    if (first.id(kind, label) in first.ended) != want:
        sys.exit(f"{kind} {label} has ended: {not want}")
if len(first.expected) != 1 or not any(first.kind[a] == "bind" and b == first.id("task", "copied x") for a, b in first.awaits):
    sys.exit(f"should resolve: {first.expected}; awaits: {first.awaits}")
if second.id("task", "between") not in second.ended:
    sys.exit("between has not ended")
# Promises keep their ids in later recordings, and promises whose events the ring has overwritten are recorded again.
for trace, kind, label in ((ring, "task", "copied x"), (ring, "condition", "old condition")):
    if trace.id(kind, label) != first.id(kind, label) or trace.since[trace.id(kind, label)] != 0:
        sys.exit(f"{kind} {label} changed")
if not ring.since[ring.id("wait", "long ago")] or ring.expected != first.expected:
    sys.exit("the ring has forgotten")
if not any(ring.kind[a] == "bind" and b == ring.id("wait", "long ago") for a, b in ring.awaits):
    sys.exit(f"the ring has forgotten who waits: {ring.awaits}")
if (ring.id("lock", "a lock"), ring.id("bind", "copied y")) not in ring.awaits:
    sys.exit(f"the ring has forgotten who has the lock: {ring.awaits}")
pool = ring.id("pool", "")
if (pool, ring.id("bind", "has a thing")) not in ring.awaits or not any(b == pool for _, b in ring.awaits):
    sys.exit(f"the ring has forgotten who has a thing of the pool, or who waits for one: {ring.awaits}")
if "take old mvar" in ring.label.values():
    sys.exit("the label of what is gone")
print(f"{len(first.kind)}, {len(second.kind)} and {len(ring.kind)} promises")
