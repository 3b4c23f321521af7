#!/usr/bin/env python3
"""manual_test.py WEFT SOURCE BUILD: section 1 of the manual has each option of each verb, and no other one.

SPDX-License-Identifier: ISC"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

WEFT, SOURCE, BUILD = map(os.path.abspath, sys.argv[1:4])
del sys.argv[1:]
# weft --option before any verb.
WITHOUT_VERB = {'help', 'version', 'domain', 'limit', 'write'}


def run_command(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def verbs():
    listed = run_command(WEFT, '--help').stdout.partition('\nverbs:\n')[2].partition('\n\n')[0]
    return [line.split()[0] for line in listed.splitlines()]


def options_of(verb):
    """{name: letter or None}, or None where this weft was built without the verb."""
    done = run_command(WEFT, verb, '--help')
    if 'was built without' in done.stderr:
        return None
    return {name: letter or None for letter, name in re.findall(r'^  (?:-(\w), |    )--([\w-]+)', done.stdout, re.M)}


def options_of_window():
    with open(f'{SOURCE}/apps/gtk/main.c', encoding='utf-8') as file:
        found = re.findall(r'\{"([\w-]+)", (?:\'(\w)\'|0), 0, G_OPTION_ARG', file.read())
    return {**{name: letter or None for name, letter in found}, 'help': 'h'}


def page(verb, folder=f'{BUILD}/docs/man'):
    """Returns the page without its markup."""
    with open(f'{folder}/weft{"-" * bool(verb)}{verb}.1', encoding='utf-8') as file:
        return re.sub(r'\\f[BIPR]|\\&', '', file.read()).replace('\\-', '-').replace('\\(aq', "'")


def section(text, name):
    return text.partition(f'\n.SH {name}\n')[2].partition('\n.SH ')[0]


def source(name):
    with open(f'{SOURCE}/docs/man/{name}.md', encoding='utf-8') as file:
        return file.read()


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verbs = verbs()
        cls.options = {verb: options_of(verb) for verb in cls.verbs}
        cls.window = options_of_window()

    def test_weft_help_names_the_manual_page_of_the_verb(self):
        for verb in self.verbs:
            if self.options[verb] is not None:
                self.assertEqual(run_command(WEFT, verb, '--help').stdout.splitlines()[-1], f'manual: man weft-{verb}')
                self.assertEqual(run_command(WEFT, 'help', verb).stdout, run_command(WEFT, verb, '--help').stdout)

    def test_each_verb_has_a_manual_page_and_is_in_the_overview(self):
        self.assertGreater(len(self.verbs), 20)
        self.assertEqual(sorted(os.path.basename(path) for path in glob.glob(f'{BUILD}/docs/man/*.1')), sorted(['weft.1', *(f'weft-{verb}.1' for verb in self.verbs)]))
        for verb in self.verbs:
            self.assertEqual(len(re.findall(rf'\nweft-{verb}\(1\): ', page(''))), 1, verb)

    def test_each_option_of_a_verb_is_on_its_manual_page(self):
        for verb, options in self.options.items():
            found = {name: letter or None for letter, name in re.findall(r'^\.TP\n(?:-(\w), )?--([\w-]+)', section(page(verb), 'OPTIONS'), re.M)}
            if options is not None:
                self.assertGreater(len(options), 1, verb)
                self.assertEqual(found, options, verb)

    def test_help_text_of_each_option_is_on_its_manual_page(self):
        for verb, options in self.options.items():
            for line in run_command(WEFT, 'help', verb, '--markdown').stdout.partition('\n## ')[0].splitlines() if options is not None else []:
                if line.startswith(': '):
                    self.assertIn(line[3:].removesuffix('.'), page(verb), verb)

    def test_each_option_of_the_window_is_on_its_manual_page(self):
        found = {name: letter or None for letter, name in re.findall(r'^\.TP\n(?:-(\w), )?--([\w-]+)', section(page('view'), 'OPTIONS OF WEFT-VIEW'), re.M)}
        self.assertEqual(found, self.window)

    def test_synopsis_of_a_manual_page_has_each_option_of_the_verb(self):
        for verb, options in self.options.items():
            if options is not None:
                for name in set(options) - {'help', 'version', 'domain', 'limit'}:
                    self.assertRegex(section(page(verb), 'SYNOPSIS'), rf'--{name}\b| -{options[name] or "-"} ', verb)

    def assert_known(self, name, verb, where):
        options = self.window if verb == '-view' else WITHOUT_VERB if verb == '' else self.options[verb]
        if options is not None:
            self.assertIn(name, options, where)

    def test_manual_pages_name_only_existing_options(self):
        for own in ['', *self.verbs]:
            prose, code = re.subn(r'(?s)```.*?```', '', source(own or 'weft'))[0], re.findall(r'(?s)```\n(.*?)```', source(own or 'weft'))
            for span in [*re.findall(r'`([^`]*)`', prose), *(line for block in code for line in block.splitlines())]:
                command = re.match(r'weft(-view)?(?: (\w+))?\b', span)
                if span.startswith('weft') and not command:
                    continue
                verb = own if not command else command[1] or (command[2] if command[2] in self.verbs else '')
                if own == 'view' and span[2:] in self.window:
                    continue
                if command or span.startswith('-'):
                    for name in re.findall(r'(?<![\w-])--([a-z][\w-]*)', span.split(' -- ')[0]):
                        self.assert_known(name, verb, f'{own}: {span}')
                else:
                    self.assertNotIn('--', re.sub(r'.* \|.*', '', span), f'{own}: the test does not know what this is an option of')


class Generator(unittest.TestCase):
    """tools/manual fails if a file of docs/man disagrees with the program."""

    def generate(self, change):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(f'{SOURCE}/docs/man', f'{folder}/man')
            change(f'{folder}/man')
            done = run_command(f'{SOURCE}/tools/manual', WEFT, folder, *sorted(glob.glob(f'{folder}/man/*.md')))
            return done.returncode, done.stderr, '' if done.returncode else page('waits', folder)

    @staticmethod
    def edited(name, old, new):
        def change(folder):
            with open(f'{folder}/{name}.md', encoding='utf-8') as file:
                text = file.read()
            assert old in text
            with open(f'{folder}/{name}.md', 'w', encoding='utf-8') as file:
                file.write(text.replace(old, new, 1))
        return change

    def test_manual_page_is_generated_from_unchanged_files(self):
        status, error, text = self.generate(lambda folder: None)
        self.assertEqual((status, error), (0, ''))
        self.assertEqual(text, page('waits'))

    def test_manual_text_for_an_unknown_option_is_an_error(self):
        status, error, _ = self.generate(self.edited('waits', '`--dot`\n', '`--dots`\n'))
        self.assertEqual((status, error), (1, "manual: waits.md describes options that weft waits does not have: ['dots']\n"))

    def test_verb_without_a_manual_file_is_an_error(self):
        status, error, _ = self.generate(lambda folder: os.remove(f'{folder}/path.md'))
        self.assertEqual((status, error), (1, "manual: weft and docs/man have different verbs: ['path']\n"))

    def test_manual_file_without_a_verb_is_an_error(self):
        status, error, _ = self.generate(lambda folder: shutil.copy(f'{folder}/path.md', f'{folder}/paths.md'))
        self.assertEqual((status, error), (1, "manual: weft and docs/man have different verbs: ['paths']\n"))

    def test_verb_missing_in_the_overview_page_is_an_error(self):
        status, error, _ = self.generate(self.edited('weft', '{path}\n', ''))
        self.assertEqual((status, error), (1, "manual: weft.md does not list ['path']\n"))

    def test_unknown_verb_in_the_overview_page_is_an_error(self):
        status, error, _ = self.generate(self.edited('weft', '{path}\n', '{path}\n{paths}\n'))
        self.assertEqual((status, error), (1, 'manual: weft.md: paths is not a verb, or is there twice\n'))


unittest.main()
