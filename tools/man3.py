#!/usr/bin/env python3
"""man3.py [--list] [--out=FOLDER] HEADER...: makes manual pages, section 3, from the public headers.

Each header gets a page, weft-record(3).  Each of its sections gets a page with the name of the section's first call; the other
names of the section are links to that page.  --list writes nothing, and prints the pages, and each link with its page.

The headers must have this form.  A section begins with a comment of dashes.  A comment precedes its declarations, which end at a
blank line.  A macro that adds the place of the call passes its arguments to a function, and gets the function's parameter types.
SPDX-License-Identifier: ISC"""
import argparse
import os
import re

SECTION = re.compile(r'^-{4} (.*?) -{4}\s*')
WIDTH = 78


class Item:
    """A comment and its declarations, in the order of the header."""

    def __init__(self, text):
        self.text, self.declarations = text, []


class Section:
    def __init__(self, title, text):
        self.title, self.text, self.items = title, text, []

    def names(self):
        return [name for item in self.items for declaration in item.declarations for name in declaration.names]


class Declaration:
    """names: of calls; code: the declaration of a type or a constant, which is shown as it is."""

    def __init__(self, synopsis, names, code):
        self.synopsis, self.names, self.code = synopsis, names, code


def comment_text(raw):
    """Returns the text of a comment, one line for each paragraph; keeps indented lines as they are."""
    lines = [re.sub(r'^ \* ?', '', line) for line in raw.strip()[2:-2].rstrip().split('\n')]
    out, words = [], []
    for line in [lines[0].lstrip()] + lines[1:] + ['']:
        if line.startswith('\t') or not line.strip():
            if words:
                out.append(' '.join(words))
                words = []
            out.append('\t' + line[1:] if line.startswith('\t') else '')
        else:
            words.append(line.strip())
    return re.sub(r'\n{3,}', '\n\n', '\n'.join(out)).replace('\n\n\n', '\n\n').strip('\n')


def chunks(source):
    """Yields the comments, blank lines, directives and declarations of a header, in order."""
    at = 0
    while at < len(source):
        if source.startswith('\n', at):
            yield 'blank', ''
            at += 1
            continue
        if source.startswith('/*', at):
            end = source.index('*/', at) + 2
            yield 'comment', source[at:end]
        elif source.startswith('#', at):
            end = at
            while True:
                end = source.index('\n', end)
                if source[end - 1] != '\\':
                    break
                end += 1
            yield 'directive', source[at:end]
        else:
            end, depth = at, 0
            while True:
                if source.startswith('/*', end):
                    end = source.index('*/', end) + 2
                depth += {'{': 1, '(': 1, '}': -1, ')': -1}.get(source[end], 0)
                end += 1
                if depth == 0 and source[end - 1] == ';' or source.startswith('extern "C" {', at) or source.startswith('}', at):
                    break
            end = source.index('\n', end)
            yield 'declaration', source[at:end]
        at = end + 1 if source.startswith('\n', end) else end


def without_c_plus_plus(source):
    """Returns the header as a C program sees it."""
    source = re.sub(r'#ifdef __cplusplus\n(?:(?!#endif|#else).*\n)*?#else\n((?:(?!#endif).*\n)*?)#endif\n', r'\1', source)
    return re.sub(r'#ifdef __cplusplus\n(?:(?!#endif).*\n)*?#endif\n', '', source)


def arguments(text):
    """Splits a list in parentheses; `text` begins after the opening one."""
    out, depth, last = [], 0, 0
    for i, c in enumerate(text):
        if c in '([{':
            depth += 1
        elif c in ')]}':
            if depth == 0:
                return out + [text[last:i].strip()]
            depth -= 1
        elif c == ',' and depth == 0:
            out.append(text[last:i].strip())
            last = i + 1
    raise ValueError(text)


def plain(declaration):
    """Returns a function's declaration on one line, without attributes for the compiler."""
    text = re.sub(r'/\*.*?\*/', '', declaration, flags=re.S)
    text = re.sub(r'\b(static inline|WEFT__API|WEFT__FAST)\s+', '', text)
    return re.sub(r'\( ', '(', re.sub(r'\s+', ' ', text)).strip()


def function(declaration):
    """Returns (return type, name, parameters), or None if it is no function."""
    found = re.match(r'([\w\s*]+?)\s*(\**)(\w+)\((.*)\);$', plain(declaration))
    if not found or found[1].split()[0] == 'typedef' or '{' in declaration:
        return None
    returns = found[1] + ' ' + found[2] if found[2] else found[1] + ' '
    return returns, found[3], arguments(found[4] + ')')


def typed(macro, functions):
    """Returns a macro's declaration as if it were the function that it calls."""
    name, parameters, body = re.match(r'#define (\w+)\(([^)]*)\)\s*(.*)', macro, re.S).groups()
    parameters = [p.strip() for p in parameters.split(',')] if parameters.strip() else []
    call = re.match(r'[\\\s]*(\w+)\(', body)
    if not call or call[1] not in functions:
        return f'{name}({", ".join(parameters)})' + (';' if parameters else '')
    returns, _, types = functions[call[1]]
    given = arguments(body[call.end():])
    out = []
    for parameter in parameters:
        at = next((i for i, argument in enumerate(given) if argument == parameter and i < len(types)), None)
        is_text = parameter == 'literal'
        kind = 'const char literal[]' if is_text else types[at] if at is not None else parameter
        out.append(re.sub(r'\w+$', parameter, kind) if at is not None and not is_text else kind)
    return f'{returns}{name}({", ".join(out) or "void"});'


def parse(path):
    source = without_c_plus_plus(open(path, encoding='utf-8').read())
    functions = {}
    for kind, raw in chunks(source):
        found = function(raw) if kind == 'declaration' else None
        if found:
            functions[found[1]] = found
    head, sections, item, tables = '', [Section('Types', '')], None, []
    for kind, raw in chunks(source):
        if kind == 'comment':
            text = comment_text(raw)
            title = SECTION.match(text)
            if not head:
                head = text
            elif title:
                sections.append(Section(title[1], text[title.end():].strip()))
                item = None
            else:
                item = Item(text)
                sections[-1].items.append(item)
        elif kind == 'blank':
            item = None
        else:
            declaration = None
            if kind == 'directive':
                rows = re.findall(r'X\((\w+), (-?\w+), "([^"]*)"[^\n]*?\)[ \t]*(?:/\*(.*?)\*/)?[ \t]*\\?$', raw.replace('\n\t\t\t\t', ' '), re.S | re.M)
                name = re.match(r'#define ([A-Za-z]\w*)(\(?)', raw)
                if rows:
                    rows = [(*row[:3], ' '.join(row[3].replace('\\', '').split())) for row in rows]
                    tables.append((item.text if item else '', name[1], rows))
                    item = None
                elif name and '__' not in name[1] and name[2]:
                    declaration = Declaration(typed(raw, functions), [name[1]], None)
                elif name and '__' not in name[1] and not name[1].endswith('_H'):
                    declaration = Declaration(None, [], re.sub(r'\s+', ' ', raw))
            elif function(raw):
                returns, name, parameters = function(raw)
                if '__' not in name:
                    declaration = Declaration(f'{returns}{name}({", ".join(parameters)});', [name], None)
            elif re.match(r'(struct|enum|typedef|union)\b', raw) and not re.match(r'(struct|enum|union) \w*__', raw):
                # A type whose values come from a table is described with the table.
                if '#define' not in raw:
                    declaration = Declaration(None, [], raw)
            if declaration:
                if item is None:
                    item = Item('')
                    sections[-1].items.append(item)
                item.declarations.append(declaration)
    for section in sections:
        section.items = [i for i in section.items if i.declarations]
    return head, [s for s in sections if s.items and s.title != 'What the macros call'], tables


def escape(text):
    return text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq').replace('`', '\\(ga')


def line(text):
    """Escapes a line that roff would treat as a request."""
    return '\\&' + text if text[:1] in ('.', "'") or text.startswith('\\(aq') else text


def code(text):
    return '.RS 4\n.EX\n' + '\n'.join(line(escape(row.expandtabs(8).rstrip())) for row in text.split('\n')) + '\n.EE\n.RE'


def words(row):
    told = re.sub(r'`([^`]*)`', '\x01\\1\x02', row)
    told = escape(re.sub(r'\b([A-Za-z_]\w*)\(\)', '\x01\\1\x02()', told))
    # roff needs each sentence on a line of its own.
    told = re.sub(r'([.:?])  +', r'\1\n', told.replace('\x01', '\\fB').replace('\x02', '\\fP'))
    return '\n'.join(line(s) for s in told.split('\n'))


def prose(text, paragraph='.PP'):
    """Formats the result of comment_text(): indented lines are code, and so are empty lines between them."""
    out = []
    for block in re.findall(r'(?:^\t.*\n?|^\n(?=\t))+|^[^\t\n].*', text, re.M):
        block = block.strip('\n')
        out.append(code('\n'.join(row[1:] for row in block.split('\n'))) if block.startswith('\t') else words(block))
    return f'\n{paragraph}\n'.join(out)


def prototype(synopsis):
    """Breaks a declaration into short lines."""
    if len(synopsis) <= WIDTH:
        return line(escape(synopsis))
    head, rest = synopsis.split('(', 1)
    out, row = [], head + '('
    for i, part in enumerate(arguments(rest)):
        part += ', ' if i + 1 < len(arguments(rest)) else ');'
        if len(row) + len(part) > WIDTH:
            out.append(row.rstrip())
            row = '    '
        row += part
    return '\n'.join(line(escape(r)) for r in out + [row.rstrip()])


def page(title, names, what, header, body, also):
    what = what.rstrip('.')
    return (f".\\\" SPDX-License-Identifier: ISC\n.TH {title.upper()} 3 \"\" weft\n.SH NAME\n{', '.join(escape(n) for n in names)} \\- {escape(what)}\n"
            f'.SH SYNOPSIS\n.EX\n.B #include <weft/{header}>\n.EE\n{body}\n.SH SEE ALSO\n'
            + ',\n'.join(f'.BR {escape(name)} ({section})' for name, section in also) + '\n').replace('),\n', ') ,\n')


def described(items):
    out = []
    for item in items:
        calls = [name for d in item.declarations for name in d.names]
        types = [d.code for d in item.declarations if d.code]
        if not item.text and not types:
            continue
        if calls:
            out.append('\n.TQ\n'.join(f'.BR {name} ()' for name in calls).replace('.BR', '.TP\n.BR', 1))
            if item.text:
                out.append(prose(item.text, '.IP'))
        else:
            out += ['.PP', prose(item.text)] if item.text else ['.PP']
        out += [code(text) for text in types]
    return re.sub(r'^\.PP\n', '', '\n'.join(out))


def pages(path):
    """Returns {file: text} and {link: file} of a header."""
    header = os.path.basename(path)
    own = 'weft-' + header.removesuffix('.h')
    head, sections, tables = parse(path)
    what, _, rest = head.partition('\n\n')
    what = re.sub(r'\s*SPDX.*', '', what.split(': ', 1)[1])
    rest = re.sub(r'\s*SPDX-License-Identifier: \S+', '', rest)
    out, links, of_calls = {}, {}, [s for s in sections if s.names()]
    firsts = [(s.names()[0], 3) for s in of_calls]
    for section in of_calls:
        names, title = section.names(), section.names()[0]
        shown = [d.synopsis for item in section.items for d in item.declarations if d.synopsis]
        synopsis = '.PP\n.EX\n' + '\n'.join(f'\\fB{row}\\fP' for s in shown for row in prototype(s).split('\n')) + '\n.EE'
        text = (prose(section.text) + '\n') if section.text else ''
        others = [first for first in firsts if first[0] != title]
        what_for = f'{section.title[0].lower() + section.title[1:]}: calls of weft/{header}'
        out[title + '.3'] = page(title, names, what_for, header, synopsis + '\n.SH DESCRIPTION\n' + text + described(section.items), [(own, 3)] + others)
        links.update({name + '.3': title + '.3' for name in names[1:]})
    body = '.SH DESCRIPTION\n' + prose(rest) if rest else '.SH DESCRIPTION'
    for section in (s for s in sections if not s.names()):
        body += '\n.SS ' + escape(section.title) + '\n' + (prose(section.text) + '\n' if section.text else '') + described(section.items)
    for text, name, rows in tables:
        what_for = re.sub(r'^X\([^)]*\):?\s*', '', text)
        body += f'\n.SS {name}\n' + (prose(what_for[0].upper() + what_for[1:]) + '\n' if what_for else '')
        wide = max(len(row[0]) for row in rows) + 1
        body += code('\n'.join(f'{row[1]:>3} {row[0]:{wide}}{row[2]}' + (f': {row[3]}' if row[3] else '') for row in rows))
    if of_calls:
        body += '\n.SH PAGES'
        for section in of_calls:
            body += f'\n.TP\n.BR {section.names()[0]} (3)\n{escape(section.title)}'
    out[own + '.3'] = page(own, [own], what, header, body, [('weft', 1), ('weft-trace', 5)] + firsts)
    return out, links


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--list', action='store_true')
    parser.add_argument('--out', default='.')
    parser.add_argument('headers', nargs='+')
    given = parser.parse_args()
    for header in given.headers:
        texts, links = pages(header)
        if given.list:
            print(*texts, *(f'{link} {page_of_it}' for link, page_of_it in links.items()), sep='\n')
            continue
        for name, text in texts.items():
            with open(os.path.join(given.out, name), 'w', encoding='utf-8') as file:
                file.write(text)


main()
