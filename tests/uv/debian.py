"""debian.py: fetches the source of an installed Debian package, whose own tests a test of weft runs.  SPDX-License-Identifier: ISC"""

import glob
import os
import subprocess
import sys

from recorded import need


def skip(why):
    print(f'SKIPPED: {why}')
    sys.exit(77)


def fetch(folder, source, package):
    """Returns the source folder of the installed `package`, fetched by apt into `folder` with separate lists and caches: the system does not change."""
    for program in ('apt-get', 'dpkg-source', 'gcc'):
        need(program)
    version = subprocess.run(['dpkg-query', '-W', '-f', '${Version}', package], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                             check=False).stdout
    if not version:
        skip(f'{package} is not installed by dpkg')
    os.makedirs(os.path.join(folder, 'lists', 'partial'), exist_ok=True)
    os.makedirs(os.path.join(folder, 'cache', 'archives', 'partial'), exist_ok=True)
    listed = os.path.join(folder, 'sources.list')
    with open(listed, 'w', encoding='ascii') as file:
        for suite, path in (('bookworm', 'debian'), ('bookworm-security', 'debian-security')):
            file.write(f'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/{path} {suite} main\n')
    pattern = os.path.join(folder, f'{source}-{version.split("-")[0]}*', '')
    if not glob.glob(pattern):
        apt = ['apt-get', '-qq', '-o', 'Dir::Etc::sourcelist=' + listed, '-o', 'Dir::Etc::sourceparts=/dev/null',
               '-o', f'Dir::State::lists={folder}/lists', '-o', f'Dir::Cache={folder}/cache', '-o', 'APT::Sandbox::User=root']
        for command in ([*apt, 'update'], [*apt, 'source', f'{source}={version}']):
            if subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
                skip(f'the source of {source} cannot be fetched')
    return glob.glob(pattern)[0].rstrip('/')
