#!/usr/bin/env python3
"""Runs the programs of the findings in docs/diagnosing.md: each kind of finding is there once, in the words that weft says, but for numbers.

usage: findings_test.py [--record] WEFT DIAGNOSING.MD EXPLAIN.H PROGRAM...
--record writes what weft says into the page.  SPDX-License-Identifier: ISC
"""
import os
import re
import subprocess
import sys
import tempfile

args = sys.argv[1:]
record = args[0] == '--record'
weft, page, header, *programs = args[1:] if record else args
with open(page, encoding='utf-8') as file:
    text = file.read()
with open(header, encoding='utf-8') as file:
    kinds = re.findall(r'^\tX\([A-Z]+, (\w+), (?:ALARM|INFORMATION), ', file.read(), re.M)
BLOCK = re.compile(r'(### (\w+)\n\n[^`]*```finding\n)((?:\$ [^\n]*\n)+)(.*?)```', re.S)
ATTEMPTS = 4  # what a program does by the clock is otherwise on a busy machine


def plain(finding):
    """Its title, without numbers, and what to do next: what comes in between has other times and names in each run."""
    title, advice = finding.split('\n', 1)[0], finding.partition('\n  look next\n')[2]
    number = re.compile(r'\d[\d.]*( (ns|us|ms|s)\b)?')
    return [re.sub(r' promises? ', ' promise ', number.sub('N', re.sub(r' \(not certain\)|, and so (did|have|were) \d+ more( of its sort)?', '', words))) for words in (title, advice)]


def run(kind, commands):
    """The first finding of that kind that the last command tells."""
    with tempfile.TemporaryDirectory() as folder:
        programs_here = os.path.join(folder, 'bin')
        os.mkdir(programs_here)
        for program in [weft, *programs]:
            os.symlink(os.path.abspath(program), os.path.join(programs_here, os.path.basename(program)))
        env = {**os.environ, 'PATH': programs_here + ':' + os.environ['PATH'], 'LC_ALL': 'C.UTF-8', 'DEBUGINFOD_URLS': ''}
        said = ''
        for command in re.findall(r'^\$ (.*)$', commands, re.M):
            said = subprocess.run(command, shell=True, cwd=folder, env=env, timeout=60, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False).stdout
        return next((finding + '\n' for finding in said.strip().split('\n\n') if re.match(kind + r'( \(not certain\))?: ', finding)), '')


if record:
    with open(page, 'w', encoding='utf-8') as file:
        file.write(BLOCK.sub(lambda block: block[1] + block[3] + run(block[2], block[3]) + '```', text))
    sys.exit(0)

failed = 0
for _, kind, commands, finding in BLOCK.findall(text):
    for attempt in range(ATTEMPTS):
        said = run(kind, commands)
        if said and plain(said) == plain(finding):
            break
    else:
        failed += 1
        print(f'{kind}: the page has\n{finding}\nweft says\n{said}')
told = re.findall(r'^(\w+)(?: \(not certain\))?: ', '\n'.join(re.findall(r'```(?:console|finding)\n(.*?)```', text, re.S)), re.M)
for kind in kinds:
    if kind not in told:
        failed += 1
        print(f'{kind}: the page does not show it')
print(f'{len(kinds)} kinds of findings, {failed} are not as the page says')
sys.exit(1 if failed or len(kinds) < 20 else 0)
