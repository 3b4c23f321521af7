#!/usr/bin/env python3
"""opens_test.py CHECK-OPENS: check-opens finds each kind of opening outside the helper.  SPDX-License-Identifier: ISC"""

import os
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)
FINE = ['open("/proc/self/maps", O_RDONLY)', 'fopen("/sys/kernel/btf/vmlinux", "re")', 'puts("open(path)")', '/* open(path) */', 'x->open(path)', 'reopen(path)']
WRONG = ['open(path, O_RDONLY)', 'openat(folder, name, O_RDONLY)', 'fopen(name, "re")', 'opendir(path)', 'unlink(path)', 'inotify_add_watch(fd, path, 0)']


class Opens(unittest.TestCase):
    def check(self, line):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, 'src', 'session'))
            with open(os.path.join(root, 'src', 'session', 'new.c'), 'w', encoding='utf-8') as file:
                file.write(f'void f(void)\n{{\n\t{line};\n}}\n')
            got = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
            return got.returncode, 'src/session/new.c: opens 1 names' in got.stdout

    def test_code_opening_a_file_by_name_is_reported(self):
        for line in WRONG:
            self.assertEqual(self.check(line), (1, True), line)

    def test_code_may_open_files_of_proc_and_sys_by_name(self):
        for line in FINE:
            self.assertEqual(self.check(line), (0, False), line)


if __name__ == '__main__':
    unittest.main()
