#!/usr/bin/env python3
"""site.py SOURCE BUILD OUT: the home page of the project, a folder of pages that needs no server.

README.md, docs/, the manual, and a page of `weft html` that runs in it; the folders of the pages are those of the files.
cmark-gfm makes HTML of Markdown, and mandoc of the manual.  A link to what is not there fails.  SPDX-License-Identifier: ISC"""

import glob
import html
import html.parser
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

# The menu: a title, and the pages below it.
MENU = [
    ('', [('README.md', 'weft')]),
    ('Record', [
        ('docs/record-installed.md', 'Installed programs'), ('docs/record-runtimes.md', 'Runtimes'), ('docs/record-kernel.md', 'The kernel'),
        ('docs/record-server.md', 'Servers'),
        ('docs/instrument-api.md', 'Your own runtime'), ('docs/recorder-costs.md', 'Costs'), ('docs/promises.md', 'Promises for C'),
        ('docs/machines.md', 'Several machines'), ('docs/guests.md', 'Guests'), ('docs/ocaml.md', 'OCaml'), ('docs/node.md', 'Node.js'), ('docs/python.md', 'Python')]),
    ('Look', [
        ('docs/tutorial-diagnosing.md', 'Tutorial'), ('docs/findings/README.md', 'Findings'), ('docs/from-other-tools.md', 'From other tools'), ('docs/viewing.md', 'Viewing'),
        ('docs/server.md', 'Without a desktop'), ('docs/sql.md', 'SQL'), ('docs/fleet.md', 'Many machines'), ('docs/embedding.md', 'Embedding')]),
    ('Look up', [
        ('weft.1', 'weft(1)'), ('weft-view.1', 'weft-view(1)'), ('weft-record.3', 'weft-record(3)'), ('weft-promise.3', 'weft-promise(3)'),
        ('weft-uv.3', 'weft-uv(3)'), ('weft-xen.3', 'weft-xen(3)'), ('docs/format.md', 'The format'),
        ('docs/glossary.md', 'Glossary')]),
    ('The project', [
        ('CHANGELOG.md', 'Changes'), ('CONTRIBUTING.md', 'Contributing'), ('ARCHITECTURE.md', 'Architecture'), ('docs/dev/clocks.md', 'Clocks'),
        ('docs/dev/following.md', 'Following'), ('docs/dev/testing.md', 'Testing'), ('docs/dev/programs.md', 'Programs'),
        ('docs/dev/verdicts.md', 'Verdicts'), ('docs/dev/dependencies.md', 'Dependencies'), ('docs/dev/reference-differences.md', 'Differences'),
        ('SECURITY.md', 'Security'), ('LICENSE', 'License')]),
]
LIVE = ('<h2 id="try-it">Try it</h2><p>Two runs of <a href="examples/arp/arp.c.html">a small TCP stack</a>, one that connects and one that hangs, '
        'as <code>weft html</code> wrote them: zoom by the wheel, drag, click a promise, press <code>?</code> for the keys.</p>'
        '<iframe src="live.html" title="Two traces in the viewer"></iframe><p><a href="live.html">The same, alone</a></p>')


class Site:
    def __init__(self, source, build, out):
        self.source, self.build, self.out = source, build, out
        self.made, self.sections, self.todo = set(), [], []
        self.manual = {os.path.basename(p): p for p in glob.glob(f'{build}/docs/man/*.[13]') + glob.glob(f'{build}/docs/*.5')}
        names = subprocess.run(
            [f'{source}/tools/man3.py', '--list', *(h for h in sorted(glob.glob(f'{source}/include/weft/*.h')) if not h.endswith('_inline.h'))], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.links = dict(line.split(' ') for line in names.splitlines() if ' ' in line)
        with open(f'{source}/meson.build', encoding='utf-8') as file:
            self.version = re.search(r"version: '([^']*)'", file.read())[1]

    def address(self, path):
        """Where the page of a file of the project stands; None: it has none."""
        if path == 'README.md':
            return 'index.html'
        name = os.path.basename(path)
        if path.startswith('docs/man/') and path.endswith('.md'):
            # The page that is made of it.
            name = 'weft.1' if name == 'weft.md' else f'weft-{name[:-3]}.1'
            return f'manual/{name}.html' if name in self.manual else None
        if path.endswith('.md'):
            return path[:-3] + '.html'
        if name in self.manual:
            return f'manual/{name}.html'
        if path.endswith('.png'):
            return path
        if os.path.isdir(os.path.join(self.source, path)):
            return path.rstrip('/') + '/index.html'
        return path + '.html' if os.path.exists(os.path.join(self.source, path)) else None

    def link(self, page, target):
        """A link of a page's Markdown, as one from its page."""
        if re.match(r'[a-z]+:|#', target):
            return target
        path, _, anchor = target.partition('#')
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        address = self.address(path)
        if not address:
            sys.exit(f'{page} links to {target}, which is not there')
        self.todo.append(path)
        return self.relative(self.address(page), address) + ('#' + anchor if anchor else '')

    @staticmethod
    def relative(page, address):
        return posixpath.relpath(address, posixpath.dirname(page) or '.')

    def man_links(self, text, page):
        """NAME(3) in a page of the manual becomes a link, if that page is here."""
        def link(match):
            name, section = match[1], match[2]
            file = f'{name}.{section}'
            file = self.links.get(file, file)
            if file not in self.manual or self.address(file) == page:
                return f'<b>{name}</b>({section})'
            self.todo.append(file)
            return f'<a href="{self.relative(page, self.address(file))}">{name}</a>({section})'
        text = re.sub(r'<b>([\w-]+)</b>\s*\((\d)\)', link, text)
        return re.sub(r'<a class="Xr" href="[^"]*">([\w-]+)\((\d)\)</a>', link, text)

    def write(self, address, title, body, kind=''):
        here = posixpath.dirname(address)
        base = '../' * len([p for p in here.split('/') if p])
        menu = ''
        for head, pages in MENU:
            menu += f'<h2>{head}</h2>' if head else ''
            for path, name in pages:
                self.todo.append(path)
                to = self.address(path)
                menu += f'<a href="{self.relative(address, to)}"{" aria-current=page" if to == address else ""}>{name}</a>'
        inner = ''
        for level, anchor, name in re.findall(r'<h([123])[^>]* id="([^"]*)"[^>]*>(.*?)</h\1>', body, re.S):
            name = re.sub(r'<a class="anchor".*?</a>', '', name, flags=re.S)
            if kind == 'manual' or level in '23':
                deep = ' class="deep"' if level == ('2' if kind == 'manual' else '3') else ''
                inner += f'<a href="#{anchor}"{deep}>{re.sub("<[^>]*>", "", name)}</a>'
        page = f'''<!DOCTYPE html>
<html lang="en" data-base="{base}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}{"" if title == "weft" else " · weft"}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{base}style.css">
<header><strong><a href="{base}index.html">weft</a></strong><span class="version">{self.version}</span>
<form role="search"><input id="find" type="search" placeholder="Find  (press /)" aria-label="Find in these pages" role="combobox" aria-expanded="false"
 aria-controls="found" autocomplete="off"><ul id="found" role="listbox" hidden></ul></form></header>
<div class="columns"><nav class="site" aria-label="Pages">{menu}</nav>
<main class="{kind}">{body}</main>
<nav class="page" aria-label="On this page">{"<h2>On this page</h2>" + inner if inner else ""}</nav></div>
<script src="{base}sections.js"></script><script src="{base}search.js"></script>
</html>
'''
        path = os.path.join(self.out, address)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(page)
        self.index(address, title, body)

    def index(self, address, title, body):
        """Returns the search index: the text of each section."""
        parts = re.split(r'<(h[123]|dt)[^>]* id="([^"]*)"[^>]*>(.*?)</\1>', body, flags=re.S)
        for anchor, heading, text in [('', title, parts[0])] + list(zip(parts[2::4], parts[3::4], parts[4::4])):
            heading = plain(re.sub(r'<a class="anchor".*?</a>', '', heading, flags=re.S)).removesuffix(' ()')
            text = plain(text)
            if text:
                self.sections.append({'title': title, 'heading': heading, 'url': address + ('#' + anchor if anchor else ''), 'text': text, 'words': text.lower()})

    def markdown(self, path):
        text = subprocess.run(
            ['cmark-gfm', '-e', 'table', '-e', 'autolink', os.path.join(self.source, path)], stdout=subprocess.PIPE, text=True, check=True).stdout
        seen = {}

        def heading(match):
            level, inner = match[1], match[2]
            anchor = re.sub(r'[^\w\- ]', '', plain(inner).lower()).replace(' ', '-')
            seen[anchor] = seen.get(anchor, -1) + 1
            anchor += f'-{seen[anchor]}' if seen[anchor] else ''
            return f'<h{level} id="{anchor}">{inner}<a class="anchor" href="#{anchor}" aria-label="This section">#</a></h{level}>'
        text = re.sub(r'<h([123])>(.*?)</h\1>', heading, text, flags=re.S)
        text = re.sub(r'(href|src)="([^"]*)"', lambda m: f'{m[1]}="{html.escape(self.link(path, html.unescape(m[2])))}"', text)
        title = plain(re.search(r'<h1[^>]*>(.*?)<a class="anchor"', text, re.S)[1])
        if path == 'README.md':
            at = text.index('<h2')
            text = text[:at] + LIVE + text[at:]
            self.todo.append('examples/arp/arp.c')
        self.write(self.address(path), title, text)

    def man(self, name):
        text = subprocess.run(
            ['mandoc', '-T', 'html', '-O', 'fragment,man=%N.%S.html', self.manual[name]], stdout=subprocess.PIPE, text=True, check=True).stdout
        page, section = name.rsplit('.', 1)
        title = f'{page}({section})'
        self.write(self.address(name), title, f'<h1 class="title">{title}</h1>' + self.man_links(text, self.address(name)), 'manual')

    def file(self, path):
        with open(os.path.join(self.source, path), encoding='utf-8') as file:
            self.write(self.address(path), path, f'<h1>{html.escape(path)}</h1><pre><code>{html.escape(file.read())}</code></pre>')

    def folder(self, path):
        address, rows = self.address(path), ''
        for name in sorted(name for name in os.listdir(os.path.join(self.source, path)) if name[0] != '.'):
            inner = posixpath.join(path, name)
            self.todo.append(inner)
            rows += f'<li><a href="{self.relative(address, self.address(inner))}">{html.escape(name)}</a></li>'
        self.write(address, path, f'<h1>{html.escape(path)}</h1><ul>{rows}</ul>')

    def make(self):
        self.todo.append('README.md')
        while self.todo:
            path = self.todo.pop()
            address = self.address(path)
            if address in self.made:
                continue
            self.made.add(address)
            if address.startswith('manual/'):
                self.man(os.path.basename(address).removesuffix('.html'))
            elif path.endswith('.md'):
                self.markdown(path)
            elif path.endswith('.png'):
                os.makedirs(os.path.dirname(os.path.join(self.out, path)), exist_ok=True)
                shutil.copy(os.path.join(self.source, path), os.path.join(self.out, path))
            elif os.path.isdir(os.path.join(self.source, path)):
                self.folder(path)
            else:
                self.file(path)
        for name in ('style.css', 'search.js'):
            shutil.copy(os.path.join(self.source, 'docs', 'site', name), self.out)
        with open(os.path.join(self.out, 'sections.js'), 'w', encoding='utf-8') as file:
            file.write('const SECTIONS = ' + json.dumps(self.sections, ensure_ascii=False) + ';\n')
        self.live()

    def live(self):
        traces = []
        for mode in ('good', 'bad'):
            trace = os.path.join(self.out, f'arp-{mode}')
            subprocess.run([f'{self.build}/examples/arp/arp', mode], env={**os.environ, 'WEFT_TRACE': trace + ',overwrite'}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            traces.append(trace)
        subprocess.run([f'{self.build}/weft', 'html', '--compare', *traces, '-o', os.path.join(self.out, 'live.html')], check=True)
        for trace in traces:
            shutil.rmtree(trace)


def plain(text):
    return re.sub(r'\s+', ' ', html.unescape(re.sub(r'<[^>]*>', ' ', text))).strip()


def main():
    for tool in ('cmark-gfm', 'mandoc'):
        if not shutil.which(tool):
            sys.exit(f'the site needs {tool}: run tools/install-packages site')
    source, build, out = map(os.path.abspath, sys.argv[1:4])
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    site = Site(source, build, out)
    site.make()
    print(f'{len(site.made)} pages and pictures: {os.path.join(sys.argv[3], "index.html")}')


main()
