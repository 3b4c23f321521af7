"""debian_arm64.py: libraries of Debian for aarch64, for programs that qemu-user runs.  SPDX-License-Identifier: ISC"""
import glob
import os
import shutil
import subprocess


def fetch(folder, package, wanted):
    """Returns the folder of libraries in `folder` with the file `wanted`, after fetching `package` with its own lists and caches; None if it is unavailable."""
    library = os.path.join(folder, 'usr', 'lib', 'aarch64-linux-gnu')
    if os.path.exists(os.path.join(library, wanted)):
        return library
    if not shutil.which('apt-get') or not shutil.which('dpkg-deb'):
        return None
    for part in ('lists/partial', 'cache/archives/partial'):
        os.makedirs(os.path.join(folder, part), exist_ok=True)
    listed = os.path.join(folder, 'sources.list')
    with open(listed, 'w', encoding='ascii') as file:
        file.write('deb [arch=arm64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main\n')
    apt = ['apt-get', '-qq', '-o', 'Dir::Etc::sourcelist=' + listed, '-o', 'Dir::Etc::sourceparts=/dev/null', '-o', f'Dir::State::lists={folder}/lists',
           '-o', f'Dir::Cache={folder}/cache', '-o', 'APT::Architecture=arm64', '-o', 'APT::Architectures=arm64', '-o', 'APT::Sandbox::User=root']
    for command in ([*apt, 'update'], [*apt, 'download', f'{package}:arm64']):
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    for found in glob.glob(os.path.join(folder, f'{package}_*_arm64.deb')):
        subprocess.run(['dpkg-deb', '-x', found, folder], check=True)
    return library if os.path.exists(os.path.join(library, wanted)) else None
