#!/usr/bin/env python3
"""prose_test.py PROSE: each rule of tools/prose finds what is planted, and nothing in good sentences.  SPDX-License-Identifier: ISC"""

import os
import runpy
import subprocess
import sys
import tempfile
import unittest

PROSE = os.path.abspath(sys.argv.pop(1))
PROGRAM = runpy.run_path(PROSE)  # a process for each sentence would take long
HOOK = os.path.join(os.path.dirname(PROSE), 'commit-msg')
# Rule: sentences that it must find, sentences that it must pass.
RULES = {
    'headless': (['Who waits is shown.', 'The file is read; What is left stays.'], ['The promise that waits is shown.', 'What is a promise? A value that comes later.']),
    'whoever': (['Calls whoever waits.'], ['Calls each waiter.']),
    'fronted': (['Of files only open ones have names.', 'With what it has it works.'], ['Of course files have names.', 'Only open files have names.']),
    'whom': (['The thread wakes him.'], ['The thread wakes it.']),
    'who': (['The thread who waits is woken.', 'It shows who is late.'], ['Users who run it often are shown this text.', 'Ask people who wrote one.']),
    'person': (['Nobody resolves the promise.'], ['No thread resolves the promise.', 'Become nobody.']),
    'told': (['The delay is told.', 'It tells of delays.'], ['The user is told to wait.', 'The two cannot be told apart.']),
    'quaint': (['Reads all anew.', 'This is an information.', 'Likewise for threads.'], ['Reads all again.', 'The timestamp begin of a packet.']),
    'processor': (['The processor was busy.'], ['The preprocessor was busy.', 'The CPU was busy.']),
    'stretch': (['It slept for a long stretch.'], ['It slept for a long interval.', 'Rows stretch to the right.']),
    'sort': (['Promises of one sort are counted.'], ['Promises of one type are counted.', 'Items are sorted by size.']),
    'room': (['The ring has no room.'], ['The ring is full.']),
    'look': (['The time since the last look.'], ['The time since the last refresh.', 'Take a look at the list.']),
    'phrase': (['Three promises, of which two failed.', 'The memory is to be had there.'], ['Three promises, all of which failed.', 'The memory comes from there.']),
}
LONG = 'The thread ' + 'waits and ' * 30 + 'ends.'
CHANGELOG = '# Changelog\n\n## [Unreleased]\n\n### Fixed\n\n- `weft top` shows each name.\n\n## [0.1.0] - 2024-02-03\n\n### Added\n\n- All.\n'


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.mkdir(os.path.join(self.root, 'tools'))

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)

    def prose(self, *args, status=None):
        done = subprocess.run([PROSE, '--root', self.root, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def rules(self, path, text):
        """Returns the rules that find something in a file with this text, and the lines."""
        self.write(path, text)
        return [(str(line), rule) for line, rule, _ in PROGRAM['all_finds'](self.root, path)]

    def git(self, *args, message=None):
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'init.defaultBranch=main', '-C', self.root, *args], check=True,
                       input=message, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Rules(Tree):
    def test_each_prose_rule_finds_bad_sentences_and_passes_good_ones(self):
        for rule, (bad, good) in RULES.items():
            for sentence in bad:
                with self.subTest(sentence):
                    self.assertEqual(self.rules('src/a.c', f'int a;\n/* {sentence} */\n'), [('2', rule)])
            for sentence in good:
                with self.subTest(sentence):
                    self.assertEqual(self.rules('src/a.c', f'/* {sentence} */\n'), [])

    def test_every_prose_rule_is_tested(self):
        self.assertEqual(sorted(PROGRAM['RULES']), sorted(RULES))

    def test_prose_rules_read_comments_of_each_language(self):
        bad = 'The thread wakes him.'
        for path, text in {
            'src/a.h': f'int a; // {bad}\n',
            'src/a.c': '/* The thread\n * wakes\n * him. */\n',
            'apps/web/a.js': f'const a = /[\'"]/;  // {bad}\n',
            'tests/web/a.mjs': f'/* {bad} */\n',
            'tools/a.py': f'"""{bad}"""\n',
            'tools/b.py': f'a = 1  # {bad}\n',
            'tools/c.py': 'a = 1\n# The thread\n# wakes him.\n',
            'tools/d': f'#!/usr/bin/env python3\n# {bad}\n',
            'tools/e': f'#!/bin/sh\n# {bad}\n',
            'docs/a.md': f'# A\n\nGood.\n{bad}\n',
            'docs/b.md': f'| a | b |\n| --- | --- |\n| c | {bad} |\n',
            'docs/man/a.1': f'.Sh A\n.Nm\nThe thread\n.Em wakes\nhim.\n',
            'README.md': f'- {bad}\n',
            'Makefile': f'# {bad}\n',
        }.items():
            with self.subTest(path):
                self.assertEqual([rule for _, rule in self.rules(path, text)], ['whom'])

    def test_prose_rules_ignore_code(self):
        for path, text in {
            'src/a.c': '/* SPDX-License-Identifier: ISC */\nint him; const char *a = "The thread wakes him.";\n',
            'tools/a.py': 'a = "The thread wakes him."\nb = """The thread wakes him."""\n',
            'docs/a.md': 'Good:\n\n```\nThe thread wakes him.\n```\n\nThe `him of it` is good.\n',
            'docs/man/a.1': '.Bd -literal\nThe thread wakes him.\n.Ed\n',
            'tools/a': '#!/bin/sh\necho "a # him"\n',
            'tools/b': 'him\n',
        }.items():
            with self.subTest(path):
                self.assertEqual(self.rules(path, text), [])

    def test_texts_shown_to_users_are_counted_separately(self):
        self.assertEqual(self.rules('apps/cli/a.c', 'const char *a = "the thread "\n  "wakes him";\n'), [('1', 'string:whom')])
        self.assertEqual(self.rules('apps/cli/a.c', 'const char *a = "him";\n'), [])
        self.assertEqual(self.rules('apps/web/a.js', 'a = `the thread ${b} wakes him`;\n'), [('1', 'string:whom')])
        self.assertEqual(self.rules('apps/web/a.html', '<p title="it wakes him">\nit wakes him</p>\n'), [('1', 'string:whom'), ('1', 'string:whom')])

    def test_prose_rules_find_long_titles_and_sentences(self):
        title = 'finding->title = a ? weft__finding_text(f, "%s is short") :\n weft__finding_text(f, "{}", b);\n'
        self.assertEqual(self.rules('src/analysis/findings/a.c', title.format('%s waits; ' + 'for it and ' * 9)), [])
        self.assertEqual(self.rules('src/analysis/findings/a.c', title.format('%s waits; ' + 'for it and ' * 11)), [('2', 'string:long-title')])
        self.assertEqual(self.rules('docs/a.md', LONG), [('1', 'long-sentence')])
        self.assertEqual(self.rules('docs/a.md', 'The thread waits and waits. ' * 20), [])
        self.write('src/analysis/findings/explain.h', '\tX(HANG, hang, ALARM, "x")\n')
        self.assertEqual(self.rules('docs/a.md', '```\n$ weft explain a\nhang: ' + 'it waits ' * 14 + '\n```\n'), [('3', 'long-title')])

    def test_prose_rules_check_the_form_of_the_changelog(self):
        self.assertEqual(self.rules('CHANGELOG.md', CHANGELOG), [])
        self.assertEqual(self.rules('CHANGELOG.md', CHANGELOG.replace('[0.1.0] - 2024-02-03', '0.1.0, long ago')), [('9', 'changelog-heading')])
        self.assertEqual(self.rules('CHANGELOG.md', CHANGELOG.replace('### Added', '### News')), [('11', 'changelog-heading')])
        self.assertEqual(self.rules('CHANGELOG.md', CHANGELOG.replace('### Fixed\n', '')), [('6', 'changelog-section')])
        self.assertEqual(self.rules('CHANGELOG.md', CHANGELOG.replace('each', 'each ' * 35)), [('7', 'changelog-entry')])


class Ratchet(Tree):
    def counts(self):
        with open(os.path.join(self.root, 'tools/prose-counts'), encoding='utf-8') as file:
            return file.read()

    def setUp(self):
        super().setUp()
        self.write('src/a.c', '/* It wakes him. */\n/* It wakes him. */\n')
        self.prose('--update', '--force', status=0)

    def test_allowed_count_of_a_prose_rule_only_falls(self):
        self.assertEqual(self.counts(), 'src/a.c\twhom\t2\n')
        self.prose(status=0)
        self.write('src/a.c', '/* It wakes him. */\n' * 3)
        self.assertIn('src/a.c:3: ', self.prose(status=1))
        self.prose('--update', status=1)
        self.assertEqual(self.counts(), 'src/a.c\twhom\t2\n')
        self.write('src/a.c', '/* It wakes him. */\n')
        self.assertIn('tools/prose --update', self.prose(status=1))
        self.prose('--update', status=0)
        self.assertEqual(self.counts(), 'src/a.c\twhom\t1\n')
        self.prose(status=0)

    def test_new_file_may_break_no_rule_of_prose(self):
        self.write('src/b.c', '/* It wakes him. */\n')
        self.assertIn('src/b.c: whom: 1, allowed 0', self.prose(status=1))

    def test_renamed_file_keeps_its_allowed_counts(self):
        os.rename(os.path.join(self.root, 'src/a.c'), os.path.join(self.root, 'src/b.c'))
        self.prose('--update', status=0)
        self.assertEqual(self.counts(), 'src/b.c\twhom\t2\n')

    def test_deleted_file_loses_its_allowed_counts(self):
        os.remove(os.path.join(self.root, 'src/a.c'))
        self.prose(status=1)
        self.prose('--update', status=0)
        self.assertEqual(self.counts(), '')

    def test_prose_lists_each_find_in_a_named_file(self):
        self.assertIn('src/a.c:2: whom: It wakes him.', self.prose('src/a.c', status=1))
        self.write('src/a.c', '/* It wakes it. */\n')
        self.assertEqual(self.prose('src/a.c', status=0), '')

    def test_prose_table_counts_finds_of_each_rule_by_kind(self):
        row = next(line.split() for line in self.prose('--table', status=0).splitlines() if line.startswith('comments'))
        self.assertEqual(row[1:4], ['6', '2', '333.3'])
        self.assertIn('src/a.c:2: whom: ', self.prose('--table', '-v', status=0))


GOOD = 'model: keep the clock of a part\n\nThe clock was lost when a part was joined.\n'
BAD = {
    'area': 'Keep the clock of a part\n\nThe clock was lost.\n',
    '65': 'model: keep the clock of a part that was joined with several others\n\nThe clock was lost.\n',
    'body': 'model: keep the clock of a part\n\nFixes: 0123456789ab\n',
    'second line': 'model: keep the clock of a part\nThe clock was lost.\n\nMore.\n',
    'whoever': 'model: wake whoever waits\n\nThe clock was lost.\n',
    'headless': 'model: who waits is woken\n\nThe clock was lost.\n',
}


class Commits(Tree):
    def message(self, text, status):
        self.write('message', text)
        return self.prose('--commit-msg', os.path.join(self.root, 'message'), status=status)

    def test_prose_rules_check_the_form_of_commit_messages(self):
        self.message(GOOD, 0)
        self.message(GOOD + '# Please enter the commit message\n# ------------------------ >8 ------------------------\ndiff\n', 0)
        self.message('Merge branch x\n', 0)
        self.message('fixup! model: keep the clock\n', 0)
        self.message('docs, tests/cli: say "whoever" no more\n\nIt was puzzling.\n', 0)
        for fault, text in BAD.items():
            with self.subTest(fault):
                self.assertIn(fault, self.message(text, 1))

    def test_prose_rules_check_each_commit_after_the_first(self):
        self.assertIn('no git checkout', self.prose('--commits', status=0))
        self.git('init')
        self.git('commit', '--allow-empty', '-F', '-', message=BAD['area'])
        since = subprocess.run(['git', '-C', self.root, 'rev-parse', 'HEAD'], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.write('tools/prose-since', since)
        self.git('commit', '--allow-empty', '-F', '-', message=GOOD)
        self.assertIn('1 commits', self.prose('--commits', status=0))
        self.git('checkout', '-b', 'side', 'HEAD^')
        self.git('commit', '--allow-empty', '-F', '-', message=GOOD)
        self.git('merge', '--no-ff', '-m', 'Merge', 'main')
        self.prose('--commits', status=0)
        self.git('commit', '--allow-empty', '-F', '-', message=BAD['body'])
        self.assertIn('there is no body', self.prose('--commits', status=1))
        self.prose('--commits', 'HEAD^..HEAD', status=1)
        self.prose('--commits', 'HEAD^^..HEAD^', status=0)
        self.prose('--commits', 'nothing..HEAD', status=2)
        self.write('tools/prose-since', '0' * 40 + '\n')
        self.assertIn('shallow', self.prose('--commits', status=0))

    def test_commit_hook_refuses_a_message_without_a_body(self):
        self.git('init')
        os.symlink(PROSE, os.path.join(self.root, 'tools/prose'))
        os.symlink(HOOK, os.path.join(self.root, '.git/hooks/commit-msg'))
        self.git('commit', '--allow-empty', '-F', '-', message=GOOD)
        with self.assertRaises(subprocess.CalledProcessError):
            self.git('commit', '--allow-empty', '-F', '-', message=BAD['body'])


if __name__ == '__main__':
    unittest.main(verbosity=1)
