#!/usr/bin/env python3
"""md2man.py FILE.md > PAGE: writes a manual page from a Markdown file.

The first heading is "NAME(SECTION): what it is".  The subset of Markdown: headings, paragraphs, bullet lists, tables, code blocks, **bold**,
*emphasis*, `code` and links.  A line that begins with ": " defines the line before it, and its further lines are indented by two spaces.
SPDX-License-Identifier: ISC"""
import re
import sys

# Columns of a table that are wider than this wrap their text.
WIDEST = 18
LITERAL = {'-': '\\-', "'": '\\(aq', '`': '\\(ga', '^': '\\(ha', '~': '\\(ti'}


def literal(s):
    """Keeps characters of code that roff would replace by typographic ones."""
    return re.sub("[-'`^~]", lambda c: LITERAL[c[0]], s)


def text(s):
    out = ''
    for i, part in enumerate(s.replace('\\', '\\e').split('`')):
        if i % 2:
            out += f'\\fB{literal(part)}\\fP'
            continue
        part = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', part)
        part = re.sub(r'\*\*([^*]*)\*\*', r'\\fB\1\\fP', part)
        part = re.sub(r'(?<![\w*])\*([^* ][^*]*)\*', r'\\fI\1\\fP', part)
        # References to other pages.
        out += re.sub(r'(?<![\w\\-])([a-z][\w-]*)\((\d)\)', lambda m: f'\\fB{literal(m[1])}\\fP({m[2]})', part)
    return '\\&' + out if out[:1] in ".'" else out


def convert(lines):
    out, table, code = [], [], False

    def end_table():
        if table:
            rows = [[text(c.strip()) for c in row.strip().strip('|').split('|')] for row in table if not re.match(r'^[| -]+$', row)]
            rows = [row + [''] * (len(rows[0]) - len(row)) for row in rows]
            # A column of sentences gets a width, and its lines are not stretched.
            wide = [max(len(row[i]) for row in rows) > WIDEST for i in range(len(rows[0]) - 1)] + [True]
            out.append('.TS')
            out.append('allbox tab(\t);')
            out.append(' '.join(['lb'] * len(rows[0])) + '\n' + ' '.join(f'lw({WIDEST}n)' if w else 'l' for w in wide[:-1]) + ' lx.')
            for row in rows:
                out.append('\t'.join('T{\n.ad l\n.nh\n' + (cell or '\\&') + '\nT}' if w else cell or '\\&' for cell, w in zip(row, wide)))
            out.append('.TE')
            table.clear()

    for line, following in zip(lines, lines[1:] + ['']):
        if line.lstrip().startswith('```'):
            out.append('.EE\n.RE' if code else '.RS 4\n.EX')
            code = not code
        elif code:
            out.append('\\&' + literal(line.replace('\\', '\\e')))
        elif line.startswith('|'):
            table.append(line)
        else:
            end_table()
            title = re.match(r'# ([\w-]+)\((\d)\): (.*)', line)
            if title:
                name, section, what = title.groups()
                out += [f'.TH {name.upper()} {section} "" weft', '.SH NAME', f'{literal(name)} \\- {text(what)}']
            elif line.startswith('## '):
                out.append('.SH ' + text(line[3:]).upper())
            elif line.startswith('### '):
                out.append('.SS ' + text(line[4:]))
            elif line.startswith('* '):
                out.append('.IP \\(bu 2\n' + text(line[2:]))
            elif following.startswith(': '):
                out.append('.TP\n' + text(line))
            elif line.startswith(': '):
                out.append(text(line[2:]))
            elif not line.strip():
                out.append('.IP' if following.startswith('  ') else '.PP')
            else:
                out.append(text(line.strip()))
    end_table()
    page = '\n'.join(out)
    page = re.sub(r'(\.PP\n)+(?=\.(SH|SS|TS|IP|TP|RS))', '', page)
    page = re.sub(r'\.IP\n(?=\.RS)', '', page)
    page = re.sub(r'(\.S[HS] .*\n)(\.PP\n)+', r'\1', page)
    return "'\\\" t\n.\\\" SPDX-License-Identifier: ISC\n" + re.sub(r'(\.PP\n)+', '.PP\n', page).removesuffix('.PP') + '\n'


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        sys.stdout.write(convert(file.read().splitlines()))


if __name__ == '__main__':
    main()
