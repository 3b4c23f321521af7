#!/usr/bin/env python3
"""Findings about a computation whose CPU handles real interrupts: of timers, and of packets of a private network.

	interrupts_test.py FLOOD SLOW WEFT

The test needs root, two CPUs and a kernel in which one CPU handles packets of another (RPS); otherwise, it is skipped.

SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'uv'))
from recorded import Recording, expect, fail

TRIES = 20  # several tries, because other programs may use both CPUs
SPAN = r'([\d.]+) (us|ms|s)'
SPENT = re.compile(r'^\[(\d+)\] .*kernel_spent: .*?\{ tid = (\d+), ago_ns = (\d+), on = ([01]), text = (\d+), ns = (\d+) \}', re.M)
TEXT = re.compile(r'kernel_text: .*?\{ text = (\d+), name = "([^"]*)" \}')


def skip(why):
    print(f'SKIPPED: {why}')
    sys.exit(77)


def ms(found):
    return float(found[1]) * {'us': 0.001, 'ms': 1, 's': 1000}[found[2]]


def run_in_namespaces(flood, slow, weft):
    """Runs in its own network and mount namespace."""
    rps = '/sys/class/net/lo/queues/rx-0/rps_cpus'
    if subprocess.run(['mount', '-t', 'sysfs', 'none', '/sys'], stderr=subprocess.DEVNULL).returncode or not os.path.exists(rps):
        skip('this kernel cannot have another processor handle what is sent')
    if subprocess.run(['ip', 'link', 'set', 'lo', 'up'], stderr=subprocess.DEVNULL).returncode:
        skip('no network can be made')
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2 or processors[0] > 31:
        skip('this takes two processors')
    with open(rps, 'w', encoding='ascii') as file:
        file.write(f'{1 << processors[0]:x}')
    with tempfile.TemporaryDirectory(prefix='weft-interrupts-') as folder:
        # Both programs have priority over all other programs on this machine.
        sender = subprocess.Popen(['nice', '-n', '-15', flood, str(processors[-1])], stdout=subprocess.PIPE, text=True)
        try:
            expect(sender.stdout.readline(), 'ready\n', 'a sender')
            for number in range(TRIES):
                recording = Recording(weft, os.path.join(folder, f'trace{number}'), [slow, 'spin'], record=['--kernel=all'], cwd=folder,
                                      before=('nice', '-n', '-15', 'taskset', '-c', str(processors[0])))
                expect(recording.status, 0, recording.err)
                trace = recording.trace('kernel_slow')
                kernel = trace.ask('info', '--json')[0]['kernel']
                if kernel['level'] != 'all':
                    skip(f'level all: {kernel["why"]}')
                stalls = [line for line in trace.findings().get('stall', []) if '50 ms' in line['title']]
                expect(len(stalls), 1, f'stalls: {stalls}')
                if re.search('interrupts ' + SPAN, stalls[0]['title']):
                    check_interrupts(trace, stalls[0], folder)
                    return
                print(f'try {number + 1}: {stalls[0]["title"]}')
        finally:
            sender.kill()
            sender.wait()
    skip(f'others had the processors in {TRIES} tries')


def check_interrupts(trace, stall, folder):
    """Checks that the finding, the kernel packets and the picture have the same time of interrupts."""
    told = ms(re.search('interrupts ' + SPAN, stall['title']))
    whole = ms(re.search('blocked the event loop for ' + SPAN, stall['title']))
    line = [line for line in stall['evidence'] if 'interrupts used the CPU of the thread' in line['text']]
    expect(len(line), 1, f'who it was: {stall["evidence"]}')
    who = re.search(r'interrupts used the CPU of the thread (\d+) times? from this time on: (\w+) for ' + SPAN, line[0]['text'])
    expect(who[2], 'net_rx', line[0]['text'])
    if not shutil.which('babeltrace2'):
        print('skipped: what the packets say, for lack of babeltrace2')
    else:
        check_packets(trace, stall, told, whole)
    picture = os.path.join(folder, 'picture.svg')

    def is_drawn(at):
        subprocess.run([trace.weft, 'render', f'--from={at}ns', f'--to={at + 500000}ns', '-o', picture, trace.path], check=True)
        with open(picture, encoding='utf-8') as file:
            return '>net_rx<' in file.read()
    expect(any(map(is_drawn, range(line[0]['time_ns'], stall['end_ns'], 400000))), True, 'its name in the lane of the OS thread')
    print(stall['title'], line[0]['text'], sep='; ')


def check_packets(trace, stall, told, whole):
    read = subprocess.run(['babeltrace2', '--clock-cycles', '--no-delta', trace.path], stdout=subprocess.PIPE, text=True, check=True).stdout
    names, begins = dict(TEXT.findall(read)), {}
    spent = 0
    for ticks, tid, ago, on, text, ns in SPENT.findall(read):
        begins.setdefault(names[text], []).append(int(ns))
        spent += int(ns)
    if not {'net_rx', 'timer'} <= set(begins) or not 0.5 * told <= spent / 1e6:
        fail(f'what the packets tell: { {name: (len(all), sum(all)) for name, all in begins.items()} }, not {told} of {whole} ms')


arguments = [os.path.abspath(word) for word in sys.argv[-3:]]
if sys.argv[1] == 'inside':
    run_in_namespaces(*arguments)
elif os.getuid():
    skip('this takes root')
elif subprocess.run(['unshare', '-n', '-m', 'true'], stderr=subprocess.DEVNULL).returncode:
    skip('no network of its own can be made')
else:
    sys.exit(subprocess.run(['unshare', '-n', '-m', sys.executable, os.path.abspath(__file__), 'inside', *arguments]).returncode)
