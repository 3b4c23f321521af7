#!/usr/bin/env python3
"""md2man.py FILE.md > PAGE: a page of the manual from a Markdown file.

The first heading is "NAME(SECTION): what it is"; of Markdown it knows headings, paragraphs, lists, tables, code, **bold**, *emphasis* and
`code`.  SPDX-License-Identifier: ISC"""
import re, sys

WIDEST = 18


def text(s):
    s = s.replace('\\', '\\e')
    s = re.sub(r'`([^`]*)`', r'\\fB\1\\fP', s)
    s = re.sub(r'\*\*([^*]*)\*\*', r'\\fB\1\\fP', s)
    s = re.sub(r'(?<![\w*])\*([^* ][^*]*)\*', r'\\fI\1\\fP', s)
    s = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', s)
    return '\\&' + s if s[:1] in ".'" else s


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

    for line in lines:
        if line.startswith('```'):
            out.append('.EE\n.RE' if code else '.RS 4\n.EX')
            code = not code
        elif code:
            out.append('\\&' + line.replace('\\', '\\e'))
        elif line.startswith('|'):
            table.append(line)
        else:
            end_table()
            title = re.match(r'# ([\w-]+)\((\d)\): (.*)', line)
            if title:
                name, section, what = title.groups()
                out += [f'.TH {name.upper()} {section} "" weft', '.SH NAME', f'{name} \\- {text(what)}']
            elif line.startswith('## '):
                out.append('.SH ' + text(line[3:]).upper())
            elif line.startswith('### '):
                out.append('.SS ' + text(line[4:]))
            elif line.startswith('* '):
                out.append('.IP \\(bu 2\n' + text(line[2:]))
            elif not line.strip():
                out.append('.PP')
            else:
                out.append(text(line.strip()))
    end_table()
    page = '\n'.join(out)
    page = re.sub(r'(\.PP\n)+(?=\.(SH|SS|TS|IP|RS))', '', page)
    page = re.sub(r'(\.S[HS] .*\n)(\.PP\n)+', r'\1', page)
    return "'\\\" t\n.\\\" SPDX-License-Identifier: ISC\n" + re.sub(r'(\.PP\n)+', '.PP\n', page).removesuffix('.PP') + '\n'


sys.stdout.write(convert(open(sys.argv[1], encoding='utf-8').read().splitlines()))
