#!/usr/bin/env python3
"""check_test.py CHECK: what tools/check prints of a small project, with tests that pass and fail.  SPDX-License-Identifier: ISC"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK = os.path.abspath(sys.argv.pop(1))
MESON = '''project('small', 'c')
test('good', find_program('good'), suite: 'a')
test('other', find_program('other'), suite: 'b')
'''


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        os.mkdir(os.path.join(self.root, 'tools'))
        os.mkdir(os.path.join(self.root, 'tests'))
        for tool in ('check', 'configure', 'find-llvm'):
            shutil.copy(os.path.join(os.path.dirname(CHECK), tool), os.path.join(self.root, 'tools', tool))
        self.write('tests/leaks.supp', '')
        self.write('meson.build', MESON)
        self.write('meson_options.txt', "option('tests', type: 'feature')\n")
        self.write('tools/durations', '# Seconds.\ngcc\t7\n')
        self.script('good', 'true')
        self.script('other', 'true')
        self.script('tools/prose', 'true')

    def write(self, path, text):
        with open(os.path.join(self.root, path), 'w', encoding='utf-8') as file:
            file.write(text)

    def script(self, path, command):
        self.write(path, f'#!/bin/sh\n{command}\n')
        os.chmod(os.path.join(self.root, path), 0o755)

    def check(self, *args, status=0):
        env = {name: value for name, value in os.environ.items() if not name.startswith(('MESON', 'MAKE', 'LD_'))}
        done = subprocess.run([os.path.join(self.root, 'tools/check'), *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def test_check_prints_name_and_duration_of_each_step(self):
        said = self.check('gcc', 'prose')
        self.assertRegex(said, r'(?m)^ok    gcc: .* \(\d+ s, usually 7 s\)$')
        self.assertRegex(said, r'(?m)^ok    gcc-tests: .*: 2 tests \(\d+ s\)$')
        self.assertRegex(said, r'(?m)^ok    prose: ')
        self.assertRegex(said, r'(?m)^ +\d+ s  a / good$')
        self.assertEqual(said.splitlines()[-1], '4 passed, 0 failed')

    def test_check_prints_the_output_of_a_failed_test(self):
        self.script('other', 'echo here it is; false')
        said = self.check('gcc', status=1)
        self.assertRegex(said, r'(?m)^FAIL  gcc-tests: .*1 of 2 tests')
        self.assertIn('here it is', said)
        self.assertEqual(said.splitlines()[-1], '2 passed, 1 failed')

    def test_check_passes_and_names_a_test_failing_only_once(self):
        self.script('other', f'test -e {self.root}/again || {{ touch {self.root}/again; false; }}')
        said = self.check('gcc')
        self.assertIn('unsteady, passed alone: ', said)
        self.assertEqual(said.splitlines()[-1], '3 passed, 0 failed')

    def test_check_names_each_skipped_test(self):
        self.script('other', 'exit 77')
        said = self.check('gcc')
        self.assertRegex(said, r'skipped: .*other')
        self.assertEqual(said.splitlines()[-1], '2 passed, 0 failed, 1 skipped')

    def test_check_prints_the_output_of_a_failed_step(self):
        self.script('tools/prose', 'echo this sentence; false')
        said = self.check('prose', status=1)
        self.assertRegex(said, r'(?m)^FAIL  prose: ')
        self.assertIn('this sentence', said)
        self.assertEqual(said.splitlines()[-1], '0 passed, 1 failed')

    def test_tidy_step_passes_after_the_source_is_corrected(self):
        os.mkdir(os.path.join(self.root, 'src'))
        self.write('meson.build', MESON + "static_library('code', 'src/code.c')\n")
        self.write('.clang-tidy', "Checks: '-*,bugprone-branch-clone'\nWarningsAsErrors: '*'\n")
        self.write('src/code.c', 'int code(int a);\nint code(int a) { if (a) return 1; else return 1; }\n')
        said = self.check('tidy', status=None)
        if said.startswith('skip'):
            self.skipTest(said.splitlines()[0])
        self.assertIn('bugprone-branch-clone', said)
        self.write('src/code.c', 'int code(int a);\nint code(int a) { return a; }\n')
        self.assertRegex(self.check('tidy'), r'(?m)^ok    tidy: ')
        # Everything is tidied: nothing is left to do.
        self.assertRegex(self.check('tidy'), r'(?m)^ok    tidy: ')

    def test_check_of_an_unknown_step_is_an_error(self):
        self.assertIn('the steps are: ', self.check('gcc', 'nothing', status=2))

    def test_check_builds_on_the_other_debian_or_says_why_not(self):
        self.script('tools/check-distribution', 'echo "$@" >>said')
        self.assertRegex(self.check('distribution'), r'(?m)^ok    distribution: ')
        with open(os.path.join(self.root, 'said'), encoding='utf-8') as file:
            self.assertEqual(file.read(), 'other --kept\n')
        # While the tests under sanitizers run, the other Debian is built.
        self.check('sanitize', 'distribution')
        with open(os.path.join(self.root, 'said'), encoding='utf-8') as file:
            self.assertEqual(file.read(), 'other --kept\nother --kept --build\nother --kept\n')
        environment = {**os.environ, 'CI': 'true'}
        said = subprocess.run(['bash', '-c', "only=(); eval \"$(sed -n '/^distribution()/,/^}/p' tools/check)\"; distribution"],
                              cwd=self.root, env=environment, capture_output=True, text=True, check=False)
        self.assertEqual((said.returncode, said.stdout), (77, 'this checkout keeps no other Debian; tools/check distribution installs it\n'))
        self.script('tools/check-distribution', 'echo "skipped: a fresh Debian needs root"; exit 77')
        self.assertRegex(self.check('prose', 'distribution'), r'(?m)^skip  distribution: .*: skipped: a fresh Debian needs root$')

    def test_check_records_the_duration_of_each_step(self):
        self.check('--record', 'prose', 'gcc')
        with open(os.path.join(self.root, 'tools/durations'), encoding='utf-8') as file:
            self.assertTrue(re.fullmatch(r'# Seconds\.\nprose\t\d+\ngcc\t\d+\ngcc-tests\t\d+\n', file.read()))


if __name__ == '__main__':
    unittest.main()
