#!/usr/bin/env python3
"""judge.py CONSOLE: checks the output of domain 0 on the console (host-init has the steps).

Prints "pass: ..." for each thing that it shows; exits with 1 if anything is not so.  SPDX-License-Identifier: ISC"""
import json
import re
import sys

console = open(sys.argv[1], encoding='utf-8', errors='replace').read().replace('\r', '')
lines, status, asked = {}, {}, []
for line in console.splitlines():
    if m := re.fullmatch(r'@ asked (.*) -> (\d+) at \S+ s', line):
        asked.append((m[1], int(m[2])))
    elif m := re.fullmatch(r'@ (\S+) status (\d+) at (\S+) s', line):
        status[m[1]] = int(m[2])
        last = m[3]
    elif m := re.fullmatch(r'@ ([^ :]*): (.*)', line):
        lines.setdefault(m[1], []).append(m[2])
failed = []


def check(ok, what, name):
    if not ok:
        failed.append(f'{name}: {what}: status {status.get(name)}: ' + ' | '.join(lines.get(name, []))[:600])
    return ok


def refused(name, text):
    """Checks that the text is one clear line."""
    return check(status.get(name) == 2 and len(lines.get(name, [])) == 1 and re.fullmatch('weft: xen:.*' + text + '.*', lines[name][0]), text, name)


def shows(what, *oks):
    if all(oks):
        print('pass:', what)


def finds_lost_wakeup(name):
    text = '\n'.join(lines.get(name, []))
    return check(status.get(name) == 1 and 'lost wake-up' in text and 'ARP response' in text, 'the lost wake-up is named', name)


def info(name):
    found = [json.loads(line) for line in lines.get(name, []) if line.startswith('{')]
    check(len(found) == 1 and status.get(name) == 0, 'weft info', name)
    return found[0] if found else {}


if '@ end fine' not in console:
    failed.append('domain 0 did not come to its end: ' + ' '.join(re.findall(r'^@ end (.*)', console, re.M)))
for command, answer in asked:
    if answer != ('arp' in command):
        failed.append(f'the guest answers {answer} to: {command}')

shows('clear words for a domain that is not there, one without a ring, one who is not root',
      refused('nobody', r'no such domain; there are Domain-0'), refused('no-ring', r'the domain publishes no ring buffer: there is no data/mprof/ring-ref'),
      refused('user', 'only root may read the memory that a domain shares'), refused('destroyed', 'no such domain; there are Domain-0'))
alias = info('live-alias')
documented = [name for name in status if name.startswith('documented-')]
shows('the commands of docs/guests.md, of which two name the lost wake-up of arp bad', check(len(documented) == 5, 'five commands', 'documented-1'),
      *[check(status[name] in (0, 1) and not any(line.startswith('weft:') for line in lines.get(name, [])), 'no complaint', name) for name in documented],
      check(any('process    arp' in line for line in lines.get('documented-2', [])), 'weft info -d guest', 'documented-2'),
      finds_lost_wakeup('documented-3'), finds_lost_wakeup('documented-5'))
shows('a domain by its id', check(alias.get('process') == 'arp' and len(lines['live-alias']) == 1 and alias.get('skipped') == [], 'with nothing skipped', 'live-alias'))
shows('revoked references are reported', refused('revoked', r'cannot map page 1 of 256: the program that shared them has ended, or reference \d+ was never granted'))

large = [info(f'large-{n}') for n in (1, 2, 3)]
ends = [one.get('utc_ns', 0) + one.get('span_ns', 0) for one in large]
shows('a ring of 4 MB, published in several nodes, is read whole while it is written',
      check(len([line for line in lines.get('large-nodes', []) if 'ring-ref-' in line]) >= 2, 'several nodes', 'large-nodes'),
      check(lines.get('large-references') == ['1024'], '1024 references', 'large-references'),
      *[check(len(lines.get(f'large-{i + 1}', [])) == 1 and one.get('skipped') == [], 'nothing skipped', f'large-{i + 1}') for i, one in enumerate(large)],
      check(all(sum(s['bytes'] for s in one.get('streams', [])) > 3 << 20 for one in large), 'over 3 MB of packets', 'large-1'),
      check(ends == sorted(set(ends)), 'each ends later than the one before', 'large-3'))
mirage = info('mirage')
shows('a ring of the older format is saved as it is', check(mirage.get('format') == 'mirage' and mirage.get('events') == 3000, '3000 events', 'mirage'))

shows('garbage in the pages', refused('garbage', 'the domain shares 16 pages, but no trace in a format that weft reads'))
shows('sizes of GB in a page', check(status.get('huge-mirage') == 0 and any('the packet has 536870911 bytes, the file only 4096' in line for line in lines.get('huge-mirage', [])),
                                       'what is there is read', 'huge-mirage'),
      check(status.get('huge-native') in (0, 2) and any('weft: xen:guest: ' in line for line in lines.get('huge-native', [])), 'it is told', 'huge-native'))
shows('pages that change in every way while they are read: never more than a complaint',
      *[check(status.get(f'scribble-{kind}-{n}') in (0, 2), 'no crash', f'scribble-{kind}-{n}') for kind in ('mirage', 'native') for n in range(1, 4)])
shows('references that are no list, too many, not granted, nobody\'s',
      refused('many', 'publishes more than 65536 pages'),
      *[refused(f'text-{text}', 'not a list of grant references') for text in ('', 'hello', '4294967296')],
      *[refused(f'reference-{n}', 'cannot map') for n in ('9', '8,9,10', '4294967295')], refused('reference-1', 'shares 1 page, but no trace'))
shows('the same diagnosis after the guest\'s kernel has died', check(re.search(r'guest +\d.* ---?s?-?c', '\n'.join(lines.get('crash-state', []))), 'crashed', 'crash-state'),
      finds_lost_wakeup('crash-explain'))
for line in failed:
    print('fail:', line)
if not failed:
    print(f'{len(status)} looks at domains in {last} s of the emulated machine')
sys.exit(bool(failed))
