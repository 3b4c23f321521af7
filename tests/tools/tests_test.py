#!/usr/bin/env python3
"""tests_test.py TESTS BUILD: `make test FILE=...` and `make quick` choose the right tests.  SPDX-License-Identifier: ISC"""

import os
import re
import subprocess
import sys
import unittest

TESTS, BUILD = map(os.path.abspath, sys.argv[1:3])
del sys.argv[1:3]
ROOT = os.path.join(os.path.dirname(TESTS), '..')


def chosen(*args, status=0):
    """Returns the tests as SUITE / NAME, and the complete output."""
    done = subprocess.run([TESTS, '--list', '--build', BUILD, *args], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != status:
        raise AssertionError(f'exit status {done.returncode}: {done.stdout}')
    return re.findall(r'^  (\w[\w-]* / .*)$', done.stdout, re.M), done.stdout


class Chosen(unittest.TestCase):
    def test_change_of_a_source_selects_tests_of_programs_built_from_it(self):
        names, said = chosen('file', 'src/view/view.c')
        self.assertIn('view / viewport zooms, pans and finds promises', names)
        self.assertIn('cli / verbs print the expected output and errors', names)
        self.assertNotIn('promise / promise sockets exchange datagrams', names)
        own = said.partition('where a program that is run has it')[0]
        self.assertIn('view / viewport zooms, pans and finds promises', own)
        self.assertNotIn('cli / verbs print the expected output and errors', own)

    def test_change_of_a_header_selects_tests_of_its_users(self):
        names, _ = chosen('file', 'src/view/view.h')
        self.assertIn('view / viewport zooms, pans and finds promises', names)
        self.assertNotIn('promise / promise sockets exchange datagrams', names)

    def test_change_of_an_adapter_selects_tests_that_load_the_hook(self):
        source = next(name for name in sorted(os.listdir(os.path.join(ROOT, 'adapters/uv'))) if name.endswith('.c'))
        names, _ = chosen('file', 'adapters/uv/' + source)
        self.assertIn('uv / libuv stress program prints the same with and without recording', names)
        self.assertNotIn('view / viewport zooms, pans and finds promises', names)

    def test_change_of_a_script_selects_its_test(self):
        names, _ = chosen('file', 'tests/cli/cli_test.py')
        self.assertEqual(names, ['cli / verbs print the expected output and errors'])

    def test_change_of_a_python_module_selects_scripts_that_import_it(self):
        names, _ = chosen('file', 'tests/promise/http_server.py')
        self.assertIn('promise / http-server example answers, and its trace is complete', names)
        self.assertNotIn('cli / verbs print the expected output and errors', names)

    def test_change_of_a_document_selects_the_test_that_reads_it(self):
        self.assertIn('promise / docs/promises.md programs compile and print their output', chosen('file', 'docs/promises.md')[0])

    def test_change_of_an_unused_file_selects_no_test(self):
        self.assertEqual(chosen('file', 'LICENSE', status=2)[0], [])
        chosen('file', '/etc/passwd', status=2)
        chosen('file', 'src/there_is_no_such_file.c', status=2)

    def test_make_quick_runs_no_test_of_the_weft_command(self):
        names, _ = chosen('quick')
        self.assertGreater(len(names), 40)
        self.assertIn('view / viewport zooms, pans and finds promises', names)
        self.assertNotIn('cli / verbs print the expected output and errors', names)


if __name__ == '__main__':
    unittest.main()
