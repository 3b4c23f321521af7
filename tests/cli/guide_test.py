#!/usr/bin/env python3
"""guide_test.py WEFT SOURCE: `weft help FINDING` explains every finding, and docs/findings has the same pages.

SOURCE is the root of the project.  SPDX-License-Identifier: ISC"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

WEFT, SOURCE = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:]
MOST_TITLE, MOST_MEANING, COLUMNS = 120, 80, 80
SECTIONS = ['Examples', 'Fix', 'How weft knows', 'When it is uncertain', 'False alarms', 'JSON fields']


def names_in_code():
    with open(f'{SOURCE}/src/analysis/findings/explain.h', encoding='utf-8') as file:
        return re.findall(r'^\tX\([A-Z]+, (\w+), (?:ALARM|INFORMATION), ', file.read(), re.M)


def help_of(*words):
    done = subprocess.run([WEFT, 'help', *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def pages(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding='utf-8') as file:
            found[name] = file.read()
    return found


class Guide(unittest.TestCase):
    def test_help_findings_has_one_line_for_each_finding(self):
        status, text, _ = help_of('findings')
        lines = text.split('\n\n')[0].splitlines()
        self.assertEqual(status, 0)
        self.assertGreater(len(lines), 20)
        self.assertEqual([line.split()[0] for line in lines], names_in_code())
        for line in lines:
            self.assertLessEqual(len(line.split(maxsplit=1)[1]), MOST_MEANING, line)

    def test_help_of_each_finding_has_every_section(self):
        for name in names_in_code():
            status, text, _ = help_of(name)
            self.assertEqual(status, 0, name)
            self.assertEqual(re.findall(r'^[A-Z].*', text, re.M), SECTIONS, name)
            for section in SECTIONS:
                self.assertRegex(text, rf'(?m)^{section}\n    \S', name)

    def test_example_titles_are_short_and_of_their_finding(self):
        for name in names_in_code():
            examples = help_of(name)[1].partition('Examples\n')[2].partition('\n\n')[0].splitlines()
            self.assertTrue(examples, name)
            for example in examples:
                self.assertTrue(example.startswith(f'    {name}: '), example)
                self.assertLessEqual(len(example.strip()) - len(f'{name}: '), MOST_TITLE, example)

    def test_help_of_a_finding_fits_80_columns(self):
        for name in ['findings', *names_in_code()]:
            text = re.sub(r'(?s)Examples\n.*?\n\n', '', help_of(name)[1])
            for line in text.splitlines()[1:]:
                self.assertLessEqual(len(line), COLUMNS + 12 if name == 'findings' else COLUMNS, line)

    def test_pages_of_findings_equal_the_generated_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([f'{SOURCE}/tools/finding-pages', WEFT, folder], check=True)
            generated, committed = pages(folder), pages(f'{SOURCE}/docs/findings')
        self.assertEqual(sorted(generated), sorted(committed))
        self.assertEqual(sorted(generated), sorted(['README.md'] + [f'{name}.md' for name in names_in_code()]))
        for name, text in generated.items():
            self.assertEqual(text, committed[name], f'docs/findings/{name}: run tools/finding-pages {WEFT}')

    def test_pages_of_findings_have_one_sentence_in_a_line(self):
        for name, text in pages(f'{SOURCE}/docs/findings').items():
            for line in re.sub(r'(?s)```.*?```', '', text).splitlines():
                self.assertNotRegex(line, r'[^.][.!?] [A-Z]', name)

    def test_help_of_hang_explains_every_cause(self):
        with open(f'{SOURCE}/src/analysis/findings/explain.h', encoding='utf-8') as file:
            verdicts = re.findall(r'^\tX\([A-Z_]+, "([\w-]+)"\)', file.read(), re.M)
        self.assertGreater(len(verdicts), 5)
        for verdict in set(verdicts) - {'none'}:
            self.assertRegex(help_of('hang')[1], rf'(?m)^    - {verdict}: ')

    def test_help_of_an_unknown_name_is_an_error(self):
        status, text, error = help_of('frobnicate')
        self.assertEqual((status, text), (2, ''))
        self.assertIn('frobnicate', error)

    def test_help_explain_shows_the_usage_of_the_verb(self):
        self.assertIn('usage: weft explain', help_of('explain')[1])


unittest.main()
