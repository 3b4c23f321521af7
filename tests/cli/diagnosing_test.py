#!/usr/bin/env python3
"""Runs the commands of docs/tutorial-diagnosing.md and compares their output with the page, except for times.

usage: diagnosing_test.py [--record] WEFT TUTORIAL.MD PROGRAM...
--record writes the output into the page.  SPDX-License-Identifier: ISC
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

args = sys.argv[1:]
record = args[0] == "--record"
weft, page, *programs = args[1:] if record else args
text = open(page, encoding="utf-8").read()


def mask_variable_parts(output):
    """Replaces the parts that change from run to run, such as times, and removes alignment."""
    output = re.sub(r"\d+\.\d{9}", "TIME", output)
    output = re.sub(r"\d+(\.\d+)? (ns|us|ms|s)\b", "LONG", output)
    output = re.sub(r"\d+\.\d %", "SHARE", output)
    # The number of events varies, because the CPU times of a thread are recorded at most once a ms.
    output = re.sub(r"\d+ events", "EVENTS", output)
    # On a busy machine, a promise that runs for long is preempted, and the title of its stall reports this.
    output = re.sub(r" \((on CPU|blocked) [^)]*LONG[^)]*\)(?=: )", "", output)
    # A title with this report leaves out other words.
    output = re.sub(r" together(?= \()", "", output)
    output = re.sub(r"^(stall: .*\(\w+\.c:\d+) in \w+\)$", r"\1)", output, flags=re.M)
    # A finding that is uncertain only because the machine was busy counts as the same finding.
    output, doubts = re.subn(r"uncertain because\n *the machine was busy, .*\n(?!    )", "", output)
    output = output.replace(" (uncertain)", "", doubts)
    output = re.sub(r"( *other facts\n)? *context switches around the stall: .*\n", "", output)
    output = re.sub(r"(split the work into pieces|run fewer other programs|record the program again)\b.*", "ADVICE", output)
    output = re.sub(r"time: \d+, \d+, \d+ and \d+;", "time: QUARTERS;", output)
    return [re.sub(r" +", " ", line).strip() for line in output.splitlines()]


def run_blocks(blocks):
    """Runs all commands in a new folder; returns the output of each block, and what weft printed on stderr."""
    outputs, complaints = [], []
    with tempfile.TemporaryDirectory() as folder:
        bin_folder = os.path.join(folder, "bin")
        os.mkdir(bin_folder)
        for program in [weft, *programs]:
            os.symlink(os.path.abspath(program), os.path.join(bin_folder, os.path.basename(program)))
        env = dict(os.environ, PATH=bin_folder + ":" + os.environ["PATH"], LC_ALL="C.UTF-8")
        for block in blocks:
            said = []
            for command in re.findall(r"^\$ (.*)$", block, re.M):
                done = subprocess.run(command, shell=True, cwd=folder, env=env, timeout=120, text=True, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                if command.startswith("weft") and done.stderr:
                    complaints.append(done.stderr)
                said.append("$ " + command + "\n" + done.stdout)
            outputs.append("".join(said))
    return outputs, complaints


pattern = re.compile(r"```console\n(.*?)```", re.S)
blocks = pattern.findall(text)
if record:
    outputs, complaints = run_blocks(blocks)
    said = iter(outputs)
    open(page, "w", encoding="utf-8").write(pattern.sub(lambda block: "```console\n" + next(said) + "```", text))
    sys.exit("".join(complaints) or 0)

# On a busy machine, timers may fire together that should not.  So the blocks run several times, and each must once print what the page shows.
right = [False] * len(blocks)
for _ in range(12):
    outputs, complaints = run_blocks(blocks)
    if complaints:
        sys.exit("".join(complaints))
    for i, block in enumerate(blocks):
        right[i] |= mask_variable_parts(outputs[i]) == mask_variable_parts(block)
    if all(right):
        break
for i, block in enumerate(blocks):
    if not right[i]:
        print("\n".join(difflib.unified_diff(mask_variable_parts(block), mask_variable_parts(outputs[i]), "the page", "the tool", lineterm="")))
print(len(blocks), "blocks,", right.count(False), "differ")
sys.exit(0 if all(right) and len(blocks) >= 9 else 1)
