#!/usr/bin/env python3
"""Runs examples/arp both ways: the traces must show the same promises, and the bug.

	arp.py ARP

SPDX-License-Identifier: ISC
"""

import os
import re
import subprocess
import sys
import tempfile


def events(arp, way, status, says):
    """Yields (name, fields) of each event of a run, in order."""
    with tempfile.TemporaryDirectory() as directory:
        trace = os.path.join(directory, "trace")
        run = subprocess.run([arp, way], env={**os.environ, "WEFT_TRACE": trace}, capture_output=True, text=True, timeout=30)
        if run.returncode != status or says not in run.stdout + run.stderr:
            sys.exit(f"arp {way} ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        text = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        name, fields = re.search(r" (\w+): \{ mark = .*?\}, (?:\{ (.*) \})?$", line).groups()
        yield name, dict(re.findall(r'(\w+) = "?(.*?)"?(?:, |$)', fields or ""))


def summarize(events):
    """Returns the facts to compare: the order of first write and broadcast, the labels, and the end of main."""
    labels, first, ended, main = {}, {}, set(), None
    for at, (name, fields) in enumerate(events):
        if name == "label":
            labels[fields["promise"]] = fields["text"]
        if name in ("resolve", "fail"):
            ended.add(fields["promise"])
        if name == "should_resolve":
            main = fields["promise"]
        if name == "resolve" and labels.get(fields["promise"]) == "ring.write":
            first.setdefault("sent", at)
        if name == "signal" and fields["from"] != "-1" and labels.get(fields["promise"]) == "ARP response":
            first.setdefault("signals", []).append(at)
        if name == "resolve" and labels.get(fields["promise"]) == "ARP response":
            first.setdefault("heard", at)
        if name == "counter":
            first["counter"] = int(fields["value"])
    return first, set(labels.values()), main in ended


arp = sys.argv[1]
good, good_labels, good_ended = summarize(events(arp, "good", 0, "connected"))
bad, bad_labels, bad_ended = summarize(events(arp, "bad", 1, "not connected"))
want = {"ARP response", "ring.write", "TCP connect", "port-4"}
for labels in (good_labels, bad_labels):
    if not want <= labels:
        sys.exit(f"labels: {labels}")
if not (good_ended and good["sent"] < good["heard"] and good["counter"] == 0):
    sys.exit(f"good: {good}, main ended: {good_ended}")
if bad_ended or "heard" in bad or not bad["signals"][0] < bad["sent"] < bad["signals"][1] or bad["counter"] != 1:
    sys.exit(f"bad: {bad}, main ended: {bad_ended}")
print("good: sent, then heard;  bad: broadcast to nobody, then sent, then waited")
