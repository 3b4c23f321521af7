#!/usr/bin/env python3
"""judge.py WEFT WORK: checks the findings of weft about the traces of both machines together (run and init have the steps).

Prints "pass: ..." for each thing that it shows; exits with 1 if anything is not so.  SPDX-License-Identifier: ISC"""
import json
import os
import re
import subprocess
import sys

weft, work = sys.argv[1:3]
machines = ('shop', 'web')
traces = [os.path.join(work, 'out', name + '.tar') for name in machines]
consoles = ''.join(open(os.path.join(work, name + '.console'), encoding='utf-8', errors='replace').read().replace('\r', '') for name in machines)
failed = []


def run_weft(verb, *words):
    return subprocess.run([weft, verb, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False, timeout=120).stdout


def shows(what, text, *patterns):
    missing = [pattern for pattern in patterns if not re.search(pattern, text)]
    if missing:
        failed.append(f'{what}: no {missing} in: {text[:6000]}')
    else:
        print('pass:', what)


def differ(what, name):
    said = [re.findall(rf'@ {machine} {name}: (.+)', consoles) for machine in machines]
    if all(said) and said[0] != said[1]:
        print(f'pass: {what}: {said[0][0]}, {said[1][0]}')
    else:
        failed.append(f'{what}: {said}')


differ('each machine has a boot of its own', 'boot')
differ('each counts by a clock of its own', 'clock')
differ('the wall clocks are years apart', 'date')
missing = [trace for trace in traces if not os.path.exists(trace)]
if missing:
    sys.exit(f'fail: never saved: {missing}')
for name, trace in zip(machines, traces):
    shows(f"the ring of {name} went round, and was read while its program hung", run_weft('info', trace), 'overwritten in the ring buffer', 'not finished: the program is still recording')
together = run_weft('info', *traces)
together = together[together.find('together'):]
shows('both are one trace, whose clocks messages tie', together, '2 traces of 2 hosts', r'http-server@web +another host, aligned by messages: \+-[\d.]+ (us|ms) on average')
if bound := re.search(r'by messages: (\+-.*)', together):
    print('pass: the bound:', bound[1])
cause = r'fs \d+ "read /www/books/ledger\.html"[^\n]*'
shows('explain names what hangs on the other machine', run_weft('explain', *traces), r'(?m)^hang[^\n]*: ' + cause + ' in http-server@web')
# Another thing that waits for the server's end of the connection may be listed first, with what follows it.
waits = run_weft('waits', *traces)
ends = re.search(r'connection \d+ "to 10\.0\.0\.2:80"[^\n]*\n\W+read \d+ [^\n]*\n\W+connection (\d+) "from 10\.0\.0\.1:\d+"', waits)
shows('who waits is followed from the client to it', waits, rf'connection {ends[1] if ends else 0} "from 10\.0\.0\.1:\d+"[^\n]*\n\W+' + cause)
# The last answers are parts of the slow disk's answer.
promises = [json.loads(line) for line in run_weft('dump', '--json', *traces).splitlines()]
reads = [p for p in promises if p.get('kind') == 'read' and p.get('stream') == 0 and p['end'] == 'resolved']
last = sorted(reads, key=lambda p: p['end_ns'])[-20:]
slowest = max(last, key=lambda p: p['end_ns'] - p['start_ns'], default={'promise': 0})
shows('the path of a slow answer goes to the disk there, and back', run_weft('path', *traces, f'--promise={slowest["promise"]}'),
      # A line names its machine only if the line before is of another one.
      r'of this, [\d.]+ ms in http-server@web, .* in transit', r' in http-server@web(?s:.*) waiting for fs \d+ "read"', 'in transit from http-server@web')
picture = os.path.join(work, 'machines.png')
shows('they are one picture', subprocess.run([weft, 'render', *traces, '-o', picture], capture_output=True, text=True, check=False, timeout=120).stderr
      + f'{os.path.exists(picture) and os.path.getsize(picture)} bytes', r'\d{5,} bytes')
for line in failed:
    print('fail:', line)
sys.exit(bool(failed))
