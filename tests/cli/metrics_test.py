#!/usr/bin/env python3
"""metrics_test.py WEFT PATIENT HTTP-TROUBLED EXAMPLES: weft watch --metrics and weft serve --metrics give the same numbers as weft stats,
   also to Prometheus; counters never fall when a ring overwrites events, and the number of label names is limited.

SPDX-License-Identifier: ISC"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'promise'))
from http_server import Server, get  # pylint: disable=wrong-import-position
from waiting import PATIENCE, dies_with_test, expect, until  # pylint: disable=wrong-import-position

weft, patient, troubled, examples = map(os.path.abspath, sys.argv[1:])
PAGES = 400
SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\\n]|\\[\\n"])*)"(?:,|$)')
SUFFIXES = {'counter': ('_total',), 'gauge': ('',), 'info': ('_info',), 'histogram': ('_bucket', '_count', '_sum')}


def start(*command, **more):
    return subprocess.Popen(command, preexec_fn=dies_with_test, text=True, **more)


def fetch(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
        return answer.headers, answer.read().decode()


def unescape(text):
    return re.sub(r'\\(.)', lambda at: '\n' if at[1] == 'n' else at[1], text)


def parse(text):
    """Reads OpenMetrics strictly.  Returns {(name, frozenset of labels): value} and {family: type}."""
    samples, types, family, was_named = {}, {}, None, set()
    lines = text.split('\n')
    expect('the end of the metrics', lines[-2:], ['# EOF', ''])
    for line in lines[:-2]:
        if line.startswith('# '):
            word, name, rest = line[2:].split(' ', 2)
            if word == 'TYPE':
                expect(f'{name} is there before', name in was_named, False)
                was_named.add(name)
                family, types[name] = name, rest
            expect(f'the family of: {line}', (name, word in ('TYPE', 'UNIT', 'HELP')), (family, True))
            if word == 'UNIT':
                expect(f'the unit of {name}', name.endswith('_' + rest), True)
            continue
        parts = SAMPLE.fullmatch(line)
        expect(f'a sample: {line}', parts is not None, True)
        name, labels = parts[1], parts[2] or ''
        expect(f'the family of: {line}', name in [family + suffix for suffix in SUFFIXES[types[family]]], True)
        expect(f'the labels of: {line}', LABEL.sub('', labels), '')
        key = name, frozenset((label, unescape(value)) for label, value in LABEL.findall(labels))
        expect(f'{line} is there twice', key in samples, False)
        samples[key] = float(parts[3])
    return samples, types


class Watch:
    """A weft watch process with --metrics, and the samples that it has given."""

    def __init__(self, *words):
        self.process = start(weft, 'watch', *words, '--metrics=127.0.0.1:0', stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.url = None
        while not self.url:
            line = self.process.stderr.readline()
            if 'without it' in line:
                sys.exit(77)
            expect('a line of weft watch', line != '', True)
            self.url = line.partition('metrics are at ')[2].strip()
        self.seen = {}

    def read(self):
        """Returns the samples; fails if a counter or a histogram has fallen since the last read."""
        try:
            headers, text = fetch(self.url)
        except urllib.error.HTTPError as error:
            expect('the traces are being read', error.code, 503)
            return {}
        expect('the type of the content', headers['Content-Type'], 'application/openmetrics-text; version=1.0.0; charset=utf-8')
        samples, types = parse(text)
        for (name, labels), value in samples.items():
            family = re.sub('_(total|bucket|count|sum)$', '', name)
            if types.get(family) in ('counter', 'histogram'):
                expect(f'{name} {sorted(labels)} only grows', value >= self.seen.get((name, labels), 0), True)
                self.seen[name, labels] = value
        return samples

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=PATIENCE)


def find(samples, metric, /, **labels):
    """Returns the sum of the samples with these labels, or None if there are none."""
    found = [value for (own, has), value in samples.items() if own == metric and has >= set(labels.items())]
    return sum(found) if found else None


def table(trace):
    got = subprocess.run([weft, 'stats', '--table', '--json', trace], capture_output=True, text=True, check=True)
    return {row['sort']: row for row in map(json.loads, got.stdout.splitlines())}


class Prometheus:
    """A Prometheus server of Debian, which reads the metrics of a watcher once a second."""

    def __init__(self, target):
        with open('prometheus.yml', 'w', encoding='utf-8') as file:
            json.dump({'global': {'scrape_interval': '1s', 'evaluation_interval': '1s'}, 'rule_files': [os.path.join(examples, 'weft-rules.yml')], 'scrape_configs': [{'job_name': 'weft', 'static_configs': [{'targets': [target]}]}]}, file)
        with open('prometheus.log', 'w', encoding='utf-8') as log:
            self.process = start('prometheus', '--config.file=prometheus.yml', '--web.listen-address=127.0.0.1:0', '--storage.tsdb.path=tsdb', stdout=log, stderr=log)
        self.url = None
        until('Prometheus listens', self.find_address)

    def find_address(self):
        """Finds the port on which Prometheus listens in /proc/net/tcp, since Prometheus does not print it."""
        inodes = set()
        for fd in os.listdir(f'/proc/{self.process.pid}/fd'):
            try:
                inodes.add(os.readlink(f'/proc/{self.process.pid}/fd/{fd}'))
            except OSError:
                pass
        with open('/proc/net/tcp', encoding='ascii') as file:
            for line in file.readlines()[1:]:
                words = line.split()
                if words[3] == '0A' and f'socket:[{words[9]}]' in inodes:
                    self.url = f'http://127.0.0.1:{int(words[1].split(":")[1], 16)}'
        return self.url is not None

    def ask(self, path, **words):
        try:
            answer = json.loads(fetch(f'{self.url}/api/v1/{path}?{urllib.parse.urlencode(words)}')[1])
        except urllib.error.URLError:
            return {}
        expect('Prometheus answers', answer['status'], 'success')
        return answer['data']

    def query(self, text):
        """Returns the value of the only result, or None if there is not exactly one result."""
        result = self.ask('query', query=text).get('result') or []
        return float(result[0]['value'][1]) if len(result) == 1 else None


def find_bucket(limits, seconds):
    return sum(limit < seconds for limit in limits)


def examples_name_only_existing_metrics(names):
    for name in 'grafana-dashboard.json', 'weft-rules.yml':
        with open(os.path.join(examples, name), encoding='utf-8') as file:
            used = set(re.findall(r'\bweft_\w+', file.read()))
        expect(f'what {name} uses', used - names - {'weft_queue_level', 'weft_counter'}, set())


def prometheus_agrees_with_stats():
    os.mkdir('www')
    for name in 'page', 'stall':
        with open('www/' + name, 'w', encoding='utf-8') as file:
            file.write(name * 100)
    os.mkdir('all')
    watcher = Watch('all', 'pending(nothing)<1')
    prometheus = Prometheus(urllib.parse.urlparse(watcher.url).netloc) if shutil.which('prometheus') else None
    if not prometheus:
        print('there is no prometheus: it is not asked')
    server = Server(troubled, 'www', trace='all/shop,size=64M')
    with server.connect() as client:
        client.send(get('/page'))
        client.answer()
        until('the process has metrics', lambda: find(watcher.read(), 'weft_promises_total', name='GET /page', result='resolved') == 1)
        if prometheus:
            until('Prometheus has asked', lambda: prometheus.query('weft_promises_total{name="GET /page",result="resolved"}') == 1)
        client.send(get('/stall'))
        client.answer()
        for _ in range(PAGES - 1):
            client.send(get('/page'))
            client.answer()
        until('every request is counted', lambda: find(watcher.read(), 'weft_promises_total', name='GET /page', result='resolved') == PAGES)
        samples = watcher.read()
        examples_name_only_existing_metrics({name for name, _ in samples})
        expect('the delay of the loop', find(samples, 'weft_loop_delay_seconds_count') - find(samples, 'weft_loop_delay_seconds_bucket', le='0.25'), 1)
        expect('the loop was busy', 0.3 < find(samples, 'weft_loop_busy_seconds_total', process='http-troubled') < 30, True)
        rows = table('all/shop')
        for name, row in rows.items():
            parts = re.fullmatch(r'request "(.*)"', name)
            if parts:
                expect(f'how many {name} ended', find(samples, 'weft_promise_duration_seconds_count', kind='request', name=parts[1]), row['count'] - row['pending'])
        if prometheus:
            until('Prometheus knows every request', lambda: prometheus.query('weft_promises_total{name="GET /page",result="resolved"}') == PAGES)
            limits = sorted(float(limit) for limit in {dict(labels)['le'] for name, labels in samples if name.endswith('_bucket')})
            row = rows['request "GET /page"']
            for quantile, stats_ns in ((0.5, row['p50_ns']), (0.99, row['p99_ns'])):
                asked = prometheus.query(f'histogram_quantile({quantile}, weft_promise_duration_seconds_bucket{{name="GET /page"}})')
                expect(f'the bucket of quantile {quantile}: {asked} and {stats_ns}', abs(find_bucket(limits, asked) - find_bucket(limits, stats_ns / 1e9)) <= 1, True)
            until('the alert fires', lambda: [alert['labels']['process'] for alert in prometheus.ask('alerts').get('alerts', []) if alert['state'] == 'firing' and alert['labels']['alertname'] == 'LoopBlocked'] == ['http-troubled'])
            prometheus.process.terminate()
            prometheus.process.wait(timeout=PATIENCE)
    server.end()
    until('the end is seen', lambda: find(watcher.read(), 'weft_process_recording', trace='all/shop') == 0)
    samples = watcher.read()
    expect('nothing is in flight after the end', find(samples, 'weft_promises_in_flight', trace='all/shop'), 0)
    for name, row in table('all/shop').items():
        parts = re.fullmatch(r'request "(.*)"', name)
        if parts:
            expect(f'how many {name} ended in the end', find(samples, 'weft_promise_duration_seconds_count', kind='request', name=parts[1]), row['count'] - row['pending'])
    watcher.end()


def requests_in_an_overwritten_ring_are_counted_at_most_once():
    """The ring has space for less than a second, and the program overwrites events in a burst before a watcher can read them."""
    os.mkdir('small')
    watcher = Watch('small', '--every=50ms')
    program = start(patient, 'burst', stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': 'small/ring,size=64K'})
    until('the burst is not counted whole', lambda: (find(watcher.read(), 'weft_unread_seconds_total') or 0) > 0)
    for _ in range(10):
        watcher.read()
        time.sleep(0.1)
    program.stdin.close()
    program.wait(timeout=PATIENCE)
    until('the end is seen', lambda: find(watcher.read(), 'weft_process_recording') == 0)
    got = subprocess.run([weft, 'events', '--json', 'small/ring'], capture_output=True, text=True, check=True)
    # Promise 1 is the loop, and all other promises are requests, so the largest id gives their number; the burst has 400,000 requests.
    created = max(json.loads(line).get('promise', 0) for line in got.stdout.splitlines() if '"create"' in line) - 1
    counted = find(watcher.read(), 'weft_promises_total', name='request', result='resolved')
    expect(f'of {created} requests {counted} are counted: not twice', counted < created, True)
    expect('those outside of the burst', created - 400000 < counted + 200, True)
    watcher.end()


def promise_names_in_metrics_are_limited_in_number():
    os.mkdir('names')
    watcher = Watch('names')
    program = start(patient, 'names', stdin=subprocess.PIPE, env={**os.environ, 'WEFT_TRACE': 'names/many,size=16M'})
    until('all names were seen', lambda: (find(watcher.read(), 'weft_names_cut_total') or 0) >= 200)
    samples = watcher.read()
    expect('all promises have a place', find(samples, 'weft_names_cut_total'), find(samples, 'weft_promises_total', name='(other)', kind='request'))
    expect('how many names', len({labels for name, labels in samples if name == 'weft_promises_in_flight' and dict(labels)['kind'] == 'request'}) <= 101, True)
    expect('a strange name', find(samples, 'weft_promises_total', name='quote " backslash \\ line', result='resolved'), 1)
    expect('the cost', find(samples, 'weft_follower_cpu_seconds_total') > 0 and find(samples, 'weft_follower_resident_memory_bytes') > 1 << 20, True)
    for path, host, status in ('/', 'localhost', 404), ('/metrics', 'evil', 403):
        try:
            with urllib.request.urlopen(urllib.request.Request(urllib.parse.urljoin(watcher.url, path), headers={'Host': host}), timeout=PATIENCE):
                sys.exit(f'{path} is there for {host}')
        except urllib.error.HTTPError as error:
            expect(f'{path} for {host}', error.code, status)
    # weft serve gives the same numbers if it is started with --metrics.
    for options in ['--metrics'], []:
        page = start(weft, 'serve', *options, 'names/many', stdout=subprocess.PIPE)
        url = urllib.parse.urlparse(page.stdout.readline().strip())
        try:
            # weft serve answers before it has read the whole trace, so the value may come later.
            until('the strange name', lambda: find(parse(fetch(f'{url.scheme}://{url.netloc}/metrics')[1])[0],
                                                   'weft_promises_total', name='quote " backslash \\ line', result='resolved') == 1)
        except urllib.error.HTTPError as error:
            expect('without --metrics', (options, error.code), ([], 404))
        page.terminate()
        expect('the end of weft serve', page.wait(timeout=PATIENCE), 0)
    program.stdin.close()
    program.wait(timeout=PATIENCE)
    watcher.end()


with tempfile.TemporaryDirectory() as place:
    os.chdir(place)
    prometheus_agrees_with_stats()
    requests_in_an_overwritten_ring_are_counted_at_most_once()
    promise_names_in_metrics_are_limited_in_number()
    os.chdir('/')
