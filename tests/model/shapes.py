#!/usr/bin/env python3
# shapes.py: generated traces keep every rule of the model.  SPDX-License-Identifier: ISC
"""shapes.py GENERATE REPLAY

Writes traces of every shape with GENERATE and gives them to REPLAY, a fuzz target's driver: REPLAY reads each trace twice,
   builds its model, and aborts if the model breaks a rule."""
import os
import subprocess
import sys
import tempfile

generate, replay = sys.argv[1:]
with tempfile.TemporaryDirectory() as directory:
    for shape, seeds, events in [('short', 1, 20000), ('tail', 1, 20000), ('alive', 1, 20000), ('chain', 1, 20000), ('deep', 1, 400000),
                                 ('random', 40, 500), ('odd', 40, 500), ('random', 1, 50000), ('odd', 1, 50000)]:
        for seed in range(seeds):
            out = os.path.join(directory, f'{shape}-{seed}-{events}')
            subprocess.run([generate, shape, f'--events={events}', f'--seed={seed}', '-o', out], check=True)
    sys.exit(subprocess.run([replay, directory]).returncode)
