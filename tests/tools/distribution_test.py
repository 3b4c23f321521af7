#!/usr/bin/env python3
"""distribution_test.py SOURCE: weft's tools on distributions that are not here.

Stubs of package managers stand for five families: no stub installs anything, so this checks which commands are chosen, and nothing of the distributions
themselves.  `tools/check-distribution` tries two of these.  SPDX-License-Identifier: ISC"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.abspath(sys.argv[1])
INSTALL = os.path.join(SOURCE, 'tools', 'install-packages')
BASIC = ('sh', 'awk', 'sed', 'grep', 'sort', 'tr', 'dirname', 'basename', 'paste', 'head', 'wc', 'cat', 'env', 'mktemp', 'rm', 'find', 'ls')


def group(name):
    """Returns the lines of a group of tools/packages, as cells."""
    with open(os.path.join(SOURCE, 'tools', 'packages'), encoding='utf-8') as file:
        text = file.read()
    body = re.search(rf'^\[{name}\]\n(.*?)(?=^\[|\Z)', text, re.M | re.S).group(1)
    return [line.split() for line in body.splitlines() if line and not line.startswith('#')]


class System:
    """A folder of programs: the basic ones of this machine, and stubs."""

    def __init__(self, folder, user='1000'):
        self.path = folder
        self.said = os.path.join(folder, 'said')
        for name in BASIC:
            os.symlink(shutil.which(name), os.path.join(folder, name))
        self.stub('id', f'echo {user}')

    def stub(self, name, script):
        path = os.path.join(self.path, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{script}\n')
        os.chmod(path, 0o755)

    def run(self, *command):
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                                env={'PATH': self.path, 'SAID': self.said, 'LC_ALL': 'C'})
        return result.returncode, result.stdout


# The stubs have gcc and no other package, know each package but `shared-mime-info`, and write down what they are to install.
STUBS = {
    'apt': {
        'dpkg-query': "echo 'ii  gcc, '",
        'apt-cache': 'shift; for n; do echo "$n:"; [ $n = shared-mime-info ] && echo "  Candidate: (none)" || echo "  Candidate: 1.0"; done',
        'apt-get': 'echo apt-get "$@" >>"$SAID"',
    },
    'dnf': {
        'rpm': '[ "$3" = gcc ]',
        'dnf': 'case $* in *repoquery*shared-mime-info) ;; *repoquery*) echo known ;; *) echo dnf "$@" >>"$SAID" ;; esac',
    },
    'pacman': {
        'pacman': 'case $1 in -T) shift; for n; do [ $n = gcc ] || echo $n; done; exit 127 ;; -Si) [ "$2" != shared-mime-info ] ;; '
                  '*) echo pacman "$@" >>"$SAID" ;; esac',
    },
    'zypper': {
        'rpm': '[ "$3" = gcc ]',
        'zypper': 'case $* in *search*shared-mime-info) exit 104 ;; *search*) ;; *) echo zypper "$@" >>"$SAID" ;; esac',
    },
    'apk': {
        'apk': 'case $1 in info) [ "$3" = gcc ] ;; search) [ "$3" = shared-mime-info ] || echo $3-1.0 ;; *) echo apk "$@" >>"$SAID" ;; esac',
    },
}
COMMANDS = {
    'apt': 'apt-get install --no-install-recommends',
    'dnf': 'dnf install --setopt=install_weak_deps=False',
    'pacman': 'pacman -S --needed',
    'zypper': 'zypper install --no-recommends',
    'apk': 'apk add',
}


def install_uses_the_package_manager_of_each_distribution():
    for column, (family, stubs) in enumerate(STUBS.items()):
        for user, groups in (('1000', ('demo', 'build')), ('0', ('build',))):
            lines = [cells[column].split('|')[0] for name in groups for cells in group(name) if len(cells) > column]
            wanted = sorted(set(lines) - {'-', 'gcc', 'shared-mime-info'})
            with tempfile.TemporaryDirectory() as folder:
                system = System(folder, user)
                for name, script in stubs.items():
                    system.stub(name, script)
                assert system.run(INSTALL, '--family') == (0, family + '\n'), family
                status, said = system.run(INSTALL, *groups)
                assert 'does not have: shared-mime-info\n' in said, (family, said)
                if user == '0':
                    with open(system.said, encoding='utf-8') as file:
                        commands = file.read()
                    assert status == 0, (family, said)
                    # The family's own options come between the verb and the packages.
                    last = commands.splitlines()[-1].split()
                    assert last[0] == COMMANDS[family].split()[0] and sorted(last[-len(wanted):]) == wanted, (family, commands, wanted)
                else:
                    command = re.search(r'type as root: (.*)\n', said)
                    assert status == 1 and command, (family, said)
                    assert command.group(1).startswith(COMMANDS[family]), (family, said)
                    assert sorted(command.group(1)[len(COMMANDS[family]):].split()) == wanted, (family, said, wanted)
                    assert not os.path.exists(system.said), 'a user without root installs nothing'
                names = system.run(INSTALL, '--name', 'libdw-dev')[1]
                assert names.split() == [next(cells[column] for cells in group('build') if cells[0] == 'libdw-dev')], (family, names)


def one_of_several_alternative_packages_suffices():
    with tempfile.TemporaryDirectory() as folder:
        system = System(folder)
        named = [cells[0].split('|')[-1] for cells in group('demo')]
        system.stub('dpkg-query', '\n'.join(f"echo 'ii  {name}, '" for name in named))
        system.stub('apt-cache', 'exit 1')
        assert 'clang-14' in named and system.run(INSTALL, 'demo') == (0, ''), system.run(INSTALL, 'demo')


def llvm_is_found_with_any_version():
    with tempfile.TemporaryDirectory() as folder:
        system = System(folder)
        find = os.path.join(SOURCE, 'tools', 'find-llvm')
        status, said = system.run(find, 'clang')
        assert status == 1 and said == 'tools/find-llvm: there is no clang and no clang-N\n', said
        assert system.run(find, '--wasm') == (1, 'there is no clang\n')
        system.stub('clang-19', 'exit 1')
        system.stub('clang-21', 'exit 1')
        assert system.run(find, 'clang') == (0, f'{folder}/clang-21\n')
        assert system.run(find, '--wasm') == (1, 'there is no wasm-ld\n')
        system.stub('clang', 'exit 1')
        assert system.run(find, 'clang') == (0, f'{folder}/clang\n')


def no_script_names_an_llvm_tool_with_a_version():
    """Only tools/packages may name a version, as an alternative."""
    files = subprocess.run(['git', '-C', SOURCE, 'ls-files', 'tools', 'tests', 'apps', 'Makefile', 'meson.build', 'debian'],
                           stdout=subprocess.PIPE, text=True, check=False).stdout.split()
    for name in files:
        if name == 'tools/packages' or name == 'tests/tools/distribution_test.py' or '/expected/' in name or not os.path.isfile(os.path.join(SOURCE, name)):
            continue
        with open(os.path.join(SOURCE, name), encoding='utf-8', errors='replace') as file:
            found = re.search(r'(?:clang(?:-format|-tidy|\+\+)?|wasm-ld|lld|llvm)-1[0-9]\b', file.read())
        assert not found or name == 'debian/control', f'{name}: {found.group(0)}'


def build_dependencies_are_installed():
    """`make deb` installs what debian/control wants."""
    with open(os.path.join(SOURCE, 'debian', 'control'), encoding='utf-8') as file:
        wanted = re.search(r'^Build-Depends: (.*?)^\S', file.read() + '\nEnd', re.M | re.S).group(1).split(',')
    listed = {name for part in ('demo', 'build', 'deb') for cells in group(part) for name in cells[0].split('|')}
    for item in wanted:
        names = {re.sub(r'[ (\[:].*', '', name.strip(), flags=re.S) for name in item.split('|')} - {''}
        assert names & (listed | {'debhelper-compat'}), f'debian/control wants {item.strip()}, which no group of `make deb` installs'
    assert 'build-essential' in listed, 'dpkg-buildpackage wants it without a line of debian/control'
    for tool in ('desktop-file-utils', 'shared-mime-info'):
        assert tool in listed, f'the installation runs programs of {tool}'


def documented_groups_suffice():
    """The group demo has the compiler and meson, so a command that installs another group to build with names it as well."""
    for name in ('README.md', 'CONTRIBUTING.md', 'Makefile', 'tools/configure', 'tools/tests'):
        with open(os.path.join(SOURCE, name), encoding='utf-8') as file:
            for groups in re.findall(r'tools/install-packages((?: [a-z]+)+)', file.read()):
                assert not {'build', 'check', 'deb'} & set(groups.split()) or 'demo' in groups.split(), f'{name}: tools/install-packages{groups}'


def recipes_name_the_packages_of_each_family():
    """The recipes need what tools/packages lists, and no version of a tool is in them; the programs that read them accept them, where they are there."""
    recipe = os.path.join(SOURCE, 'tools', 'package-recipe')
    with tempfile.TemporaryDirectory() as folder:
        for kind, families in (('spec', ('dnf', 'zypper')), ('PKGBUILD', ('pacman',))):
            result = subprocess.run([recipe, kind], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert result.returncode == 0, result.stdout
            path = os.path.join(folder, 'weft.spec' if kind == 'spec' else kind)
            with open(path, 'w', encoding='utf-8') as file:
                file.write(result.stdout)
            words = set(re.split(r'[\s()]+', result.stdout))
            for family in families:
                column = list(STUBS).index(family)
                wanted = {cells[column].split('|')[0] for part in ('demo', 'build') for cells in group(part) if len(cells) > column and cells[0] != 'libhttp-parser-dev'}
                assert wanted - {'-'} <= words, (kind, family, wanted - words)
            program = ['bash', '-n', path] if kind == 'PKGBUILD' else ['rpmspec', '-P', path]
            if not shutil.which(program[0]):
                print('skipped: no', program[0])
                continue
            result = subprocess.run(program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert result.returncode == 0 and (kind != 'spec' or '%files -f installed-files' in result.stdout), result.stdout
        result = subprocess.run(['bash', '-c', '. ./PKGBUILD && echo "${depends[@]}"'], cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
        # The programs need the libraries, and nothing that only builds them.
        assert {'cairo', 'glib2', 'libuv', 'zlib'} <= set(result.stdout.split()) and not {'glib2-devel', 'gcc', 'meson', 'clang'} & set(result.stdout.split()), result.stdout


def check_distribution_refuses_unknown_words_and_skips_without_root():
    """A misspelt --kept would take an hour.  Without root, or outside of a checkout, the check is skipped, in whatever order its words are."""
    with tempfile.TemporaryDirectory() as folder:
        system = System(folder)
        os.symlink(shutil.which('bash'), os.path.join(folder, 'bash'))
        check = os.path.join(SOURCE, 'tools', 'check-distribution')
        for words, status in (((), 2), (('--kept',), 2), (('trixie', '--ketp'), 2), (('trixie', 'bookworm'), 2), (('trixie', '--build'), 2), (('other',), 2),
                              (('trixie',), 77), (('trixie', '--kept'), 77), (('--kept', 'bookworm'), 77), (('other', '--build', '--kept'), 77)):
            got, said = system.run(check, *words)
            assert got == status and (status == 2) == said.startswith('usage: '), (words, got, said)


def glib_adapters_compile_if_glib_functions_are_macros():
    """GLib defines some functions as macros as well, from version to version more."""
    flags = subprocess.run(['pkg-config', '--cflags', 'gio-unix-2.0'], stdout=subprocess.PIPE, text=True, check=False)
    if flags.returncode:
        print('skipped: no headers of GLib')
        return
    with tempfile.TemporaryDirectory() as folder:
        macros = os.path.join(folder, 'macros.h')
        with open(macros, 'w', encoding='utf-8') as file:
            # as in GLib 2.76 and later
            file.write('#include <gio/gio.h>\n#undef g_task_set_name\n#define g_task_set_name(task, name) G_STMT_START { (g_task_set_name)(task, name); } G_STMT_END\n')
        for source in glob.glob(os.path.join(SOURCE, 'adapters', 'glib', '*.c')):
            result = subprocess.run(['cc', '-std=gnu11', '-fsyntax-only', '-D_GNU_SOURCE', *flags.stdout.split(), '-I', os.path.join(SOURCE, 'include'), '-I',
                                     os.path.join(SOURCE, 'src'), '-I', SOURCE, '-include', macros, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            assert result.returncode == 0, result.stdout


def command_compiles_with_musl():
    """Alpine has musl.  Files that need a library, whose headers are those of glibc here, are left out."""
    if not shutil.which('musl-gcc'):
        print('skipped: no musl-gcc')
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in ('linux', 'asm-generic', 'asm'):  # musl has no headers of the kernel
            os.symlink(next(path for path in ('/usr/include/' + name, f'/usr/include/{os.uname().machine}-linux-gnu/{name}') if os.path.isdir(path)),
                       os.path.join(folder, name))
        with open(os.path.join(folder, 'features-built.h'), 'w', encoding='utf-8') as file:
            parts = ('HOOK', 'VIEW', 'PAGE', 'SERVER', 'SCREEN', 'NAMES', 'SQLITE', 'CTF', 'XEN', 'CURL')
            file.write(''.join(f'#define WEFT_{part}_BUILT 0\n#define WEFT_{part}_PACKAGE ""\n' for part in parts))
        sources = sorted(glob.glob(os.path.join(SOURCE, 'apps', 'c[lo]*', '*.c')))
        flags = ['-std=c11', '-fsyntax-only', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-DWEFT_VERSION="0"', '-DWEFT_LIBDIR="lib"']
        paths = [f'-I{os.path.join(SOURCE, name)}' for name in ('', 'include', 'src', 'backends', 'apps')] + ['-isystem', folder]
        compiled = 0
        for source in sources:
            result = subprocess.run(['musl-gcc', *flags, *paths, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            compiled += result.returncode == 0
            assert result.returncode == 0 or 'No such file or directory' in result.stdout, result.stdout
        assert compiled > 35, f'only {compiled} of {len(sources)} files compile'


for test in (install_uses_the_package_manager_of_each_distribution, one_of_several_alternative_packages_suffices, llvm_is_found_with_any_version, no_script_names_an_llvm_tool_with_a_version,
             build_dependencies_are_installed, documented_groups_suffice, recipes_name_the_packages_of_each_family, check_distribution_refuses_unknown_words_and_skips_without_root,
             glib_adapters_compile_if_glib_functions_are_macros, command_compiles_with_musl):
    test()
    print('ok', test.__name__)
