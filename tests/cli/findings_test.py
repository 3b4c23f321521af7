#!/usr/bin/env python3
"""expected/findings.md shows each form of each title of a finding, as weft prints it today for the programs in the file.

usage: findings_test.py [--record | --guide] WEFT FINDINGS.MD TUTORIAL.MD RUNTIMES.MD PYTHON.MD FINDINGS PROGRAM...
FINDINGS is the folder with the sources of the checks, from which the forms are read.  A form that TUTORIAL.MD, RUNTIMES.MD or PYTHON.MD shows
   may be missing in FINDINGS.MD: other tests compare those pages with real programs.
--record writes the output of weft into FINDINGS.MD.
--guide lists the example titles of `weft help NAME` that fit no form.  SPDX-License-Identifier: ISC
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

args = sys.argv[1:]
record, guide = args[0] == '--record', args[0] == '--guide'
weft, page, tutorial, runtimes, python, folder, *programs = args[1:] if record or guide else args
with open(page, encoding='utf-8') as file:
    text = file.read()
with open(tutorial, encoding='utf-8') as file:
    tutorial_text = file.read()
for other in (runtimes, python):
    with open(other, encoding='utf-8') as file:
        tutorial_text += file.read()
with open(os.path.join(folder, 'explain.h'), encoding='utf-8') as file:
    kinds = re.findall(r'^\tX\([A-Z]+, (\w+), (?:ALARM|INFORMATION), ', file.read(), re.M)
BLOCK = re.compile(r'(```finding\n)((?:\$ [^\n]*\n)+)(.*?)```', re.S)
STRING = r'"(?:[^"\\]|\\.)*"'
TEXT = re.compile(r'weft__finding_text\(\s*f,\s*((?:' + STRING + r'\s*|PRI\w+\s*|WEFT_\w+\s*)+)')
ATTEMPTS = 8
MOST_TITLE = 120
SPREAD = 12  # a title may be so many characters longer in another run, because of its numbers and ids
LEAST_LITERAL = 16  # a form with fewer literal characters, such as "%s: %s", fits any title
# Preemption by other programs changes whether these findings appear, and the advice about a stall.
BY_CLOCK = ('stall', 'starvation', 'exhausted', 'slow', 'wasted')
# Replacements that give singular and plural of a title the same text.
NUMBER = [(r',? and (%\w+ more( of its sort)?|so have %\w+ more)', ''), (r'\b(their|them)\b', 'its'), (r'\bit\b', 'its'), (r'\bwere\b', 'was')]


class Form:
    """A printf() format of titles, split into its literal parts."""

    def __init__(self, words):
        self.words = words
        self.parts = [part.replace('\0', '%') for part in re.split(r'%[a-z]*[a-z]', words.replace('%%', '\0'))]

    def fits(self, title):
        """Returns whether the title contains the literal parts in their order.  The title may go on behind the last part."""
        at = 0
        for i, part in enumerate(self.parts):
            found = title.find(part, at)
            if found < 0 or (i == 0 and found > 0):
                return False
            at = found + len(part)
        return True

    def length(self):
        return sum(map(len, self.parts))

    def name(self):
        words = self.words
        for pattern, by in NUMBER:
            words = re.sub(pattern, by, words)
        return re.sub(r'%\w+', '%', words)


def statement(source, at):
    """Returns the statement of the source that starts at the offset, without its semicolon."""
    for token in re.finditer(STRING + '|;', source[at:]):
        if token[0] == ';':
            return source[at:at + token.start()]
    return source[at:]


def formats(words):
    """Yields each format string of a statement, such as the two of a conditional expression, without their arguments."""
    depth = at = 0
    while at < len(words):
        call = TEXT.match(words, at) if depth == 0 else None
        if call:
            yield ''.join(token[1:-1].replace('\\"', '"') if token[0] == '"' else 'u' if token.startswith('PRI') else '%s'
                          for token in re.findall(STRING + r'|\w+', call[1]))
        string = re.compile(STRING).match(words, at)
        depth += {'(': 1, ')': -1}.get(words[at], 0)
        at = string.end() if string else at + 1


def forms():
    found = []
    for path in sorted(glob.glob(os.path.join(folder, '*.c'))):
        with open(path, encoding='utf-8') as file:
            source = file.read()
        starts = [(source, m.end()) for m in re.finditer(r'finding->title\s*=\s*', source)]
        for helper in re.findall(r'^static const char \*\w*title\(.*?^}', source, re.M | re.S):
            starts += [(helper, m.end()) for m in re.finditer(r'\breturn\s', helper)]
        found += [Form(words) for place in starts for words in formats(statement(*place)) if not words.startswith('%s, %d%%')]
    return found


FORMS = forms()


def title_of(finding):
    return re.sub(r'^\w+( \(uncertain\))?: ', '', finding.split('\n', 1)[0])


def form_of(finding):
    title = title_of(finding)
    return max((form for form in FORMS if form.fits(title)), key=Form.length, default=None)


def kind_of(finding):
    return re.match(r'\w*', finding)[0]


def mask_names_and_numbers(words):
    """Removes quoted names and places in the source, and replaces numbers by N."""
    return re.sub(r'\d[\d.]*( (ns|us|ms|s)\b)?', 'N', re.sub(r'"[^"]*"|\((?:[^()]|\([^()]*\))*\)', '', words))


def advice(finding):
    return kind_of(finding) != 'stall' and mask_names_and_numbers(finding.partition('\n  next step\n')[2]).split()[:4]


def run(commands):
    """Runs the commands, and returns the findings that the last one prints."""
    with tempfile.TemporaryDirectory() as place:
        programs_here = os.path.join(place, 'bin')
        os.mkdir(programs_here)
        for program in [weft, *programs]:
            os.symlink(os.path.abspath(program), os.path.join(programs_here, os.path.basename(program)))
        env = {**os.environ, 'PATH': programs_here + ':' + os.environ['PATH'], 'LC_ALL': 'C.UTF-8', 'DEBUGINFOD_URLS': ''}
        said = ''
        for command in re.findall(r'^\$ (.*)$', commands, re.M):
            said = subprocess.run(command, shell=True, cwd=place, env=env, timeout=60, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False).stdout
        return [finding + '\n' for finding in said.strip().split('\n\n')]


def find_equal_finding(wanted, said):
    """Returns the first finding of `said` that has the kind, the form of the title and the advice of `wanted`, or None."""
    for finding in said:
        if kind_of(finding) == kind_of(wanted) and form_of(finding) and form_of(finding) is form_of(wanted) and advice(finding) == advice(wanted):
            return finding
    return None


if guide:
    unknown = []
    for kind in kinds:
        help_text = subprocess.run([weft, 'help', kind], stdout=subprocess.PIPE, text=True, check=True).stdout
        examples = help_text.partition('Examples\n')[2].partition('\n\n')[0]
        for line in map(str.strip, examples.splitlines()):
            form = form_of(line)
            if not form or form.length() < LEAST_LITERAL:
                unknown.append(line)
    print('\n'.join(unknown))
    sys.exit(1 if unknown else 0)

if record:
    def write(block):
        said, wanted = run(block[2]), block[3]
        word = re.match(r'\w+: \.\.\. (.*)', wanted)  # a placeholder in the page: the kind, and a few words of the title
        found = next((f for f in said if kind_of(f) == kind_of(wanted) and word[1] in f.split('\n', 1)[0]), None) if word else find_equal_finding(wanted, said)
        if not found:
            print(block[2] + wanted + 'weft says\n' + ''.join(f.split('\n')[0] + '\n' for f in said))
        return block[1] + block[2] + (found or wanted) + '```'

    with open(page, 'w', encoding='utf-8') as file:
        file.write(BLOCK.sub(write, text))
    sys.exit(0)

failed, too_long = 0, []
for _, commands, finding in BLOCK.findall(text):
    for attempt in range(ATTEMPTS):
        said = run(commands)
        found = find_equal_finding(finding, said)
        if found:
            too_long += [title_of(found)] * (len(title_of(found)) > MOST_TITLE + SPREAD)
            break
    else:
        if kind_of(finding) in BY_CLOCK and os.getloadavg()[0] > 2 * os.cpu_count():
            print(f'{commands}shows no such {kind_of(finding)}: the machine is busy')
            continue
        failed += 1
        print(f'the page has\n{commands}{finding}\nweft says\n' + '\n'.join(said))
shown = re.findall(r'^\w+(?: \(uncertain\))?: .*', '\n'.join(re.findall(r'```(?:console|finding)\n(.*?)```', text + tutorial_text, re.S)), re.M)
told = {form_of(title).name() for title in shown if kind_of(title) in kinds and form_of(title)}
missing = sorted({form.name() for form in FORMS} - told)
too_long += [title_of(title) for title in shown if kind_of(title) in kinds and len(title_of(title)) > MOST_TITLE]
for title in too_long:
    print(f'the title has {len(title)} characters, more than {MOST_TITLE}: {title}')
for kind in kinds:
    if not re.search(rf'^### {kind}$', text, re.M):
        missing.append(f'a section of {kind}')
for form in missing:
    print(f'the page does not show: {form}')
print(f'{len(kinds)} kinds of findings, {len({form.name() for form in FORMS})} forms: {failed} are not as the page says, {len(missing)} are not there')
sys.exit(1 if failed or missing or too_long or len(kinds) < 20 or len(FORMS) < 40 else 0)
