#!/usr/bin/env python3
"""Compiles and runs the programs of a tutorial; their output must be as in the tutorial.

	docs.py FILE SOURCE BUILD

A program is a ```c block with a main(); if a ```text block follows it, that is its output.  SPDX-License-Identifier: ISC
"""

import os
import re
import subprocess
import sys
import tempfile

path, source, build = sys.argv[1:4]
with open(path) as f:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", f.read(), re.M | re.S)
programs = 0
with tempfile.TemporaryDirectory() as directory:
    for i, (language, text) in enumerate(blocks):
        if language != "c" or "main(" not in text:
            continue
        programs += 1
        name = os.path.join(directory, f"program{programs}")
        with open(name + ".c", "w") as f:
            f.write(text)
        libraries = [f"-L{build}", f"-Wl,-rpath,{build}", "-lweft-promise", "-lweft-record"]
        if "weft/uv.h" in text:
            libraries = [f"-L{build}", f"-Wl,-rpath,{build}", "-lweft-uv", "-lweft-promise", "-lweft-record", "-luv"]
        flags = ["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
        command = ["cc", *flags, f"-I{source}/include", "-o", name, name + ".c", *libraries]
        compiled = subprocess.run(command, capture_output=True, text=True)
        if compiled.returncode and "__asan" in compiled.stderr + "__ubsan" * ("ubsan" in compiled.stderr):
            print("SKIP: the libraries are built with a sanitizer")
            sys.exit(77)
        if compiled.returncode:
            sys.exit(f"program {programs} does not compile:\n{compiled.stderr}")
        run = subprocess.run([name], capture_output=True, text=True, timeout=60)
        want = blocks[i + 1][1] if i + 1 < len(blocks) and blocks[i + 1][0] == "text" else ""
        if run.returncode or run.stdout != want or run.stderr:
            sys.exit(f"program {programs} ended with {run.returncode} and printed\n{run.stdout}{run.stderr}instead of\n{want}")
print(programs, "programs")
sys.exit(programs == 0)
