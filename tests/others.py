"""others.py: checks whether another user than root can run the programs of a test.  SPDX-License-Identifier: ISC"""
import os


def closed_to_others(path):
    """Returns the parent folder that another user cannot enter, such as /root; '' if there is none, or if this is not root."""
    folder = os.path.dirname(os.path.abspath(path))
    while folder != '/' and os.stat(folder).st_mode & 0o001:
        folder = os.path.dirname(folder)
    return '' if folder == '/' or os.getuid() else folder
