#!/usr/bin/env python3
"""looks_test.py DRAW_H: texts and signs have enough contrast to their background, and signs of the same shape have colours that a colour-blind person can distinguish.

Contrast is that of WCAG 2; colour-blind vision is simulated as by Machado, Oliveira and Fernandes (2009); the distance of colours is CIEDE2000.
SPDX-License-Identifier: ISC"""

import itertools
import math
import re
import sys

TEXT, SIGN, APART = 4.5, 3.0, 15.0
GROUNDS = ['BACKGROUND', 'SLEEP', 'PAUSE']
COUNTERS = [f'COUNTER_{i}' for i in range(6)]
TIMES = ['TIME_WAITING', 'TIME_READY', 'TIME_RUNNING']
ARROWS = ['AWAIT', 'READ', 'READ_FAILED', 'RESOLVE', 'SIGNAL']  # the number of arrows, on a plate
TEXTS = {'SLEEP_TEXT': ['BACKGROUND', 'SLEEP'], 'PAUSE_TEXT': ['PAUSE'], **{name: GROUNDS for name in ['AXIS_TEXT', 'BAND_TEXT', 'LABEL', 'LABEL_ID', 'KIND', 'FAILED']},
         **{name: ['BACKGROUND'] for name in [*COUNTERS, *TIMES, *ARROWS]}}
SIGNS = ['PROMISE', 'FAILED', 'ACCENT', *ARROWS, *COUNTERS, *TIMES]
# Arrows of other kinds have another shape: a dot, two heads, a bar.
ONE_SHAPE = [COUNTERS, TIMES, ['READ', 'RESOLVE']]
VISIONS = {
    'all cones': ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    'protanopia': ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    'deuteranopia': ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
}


def linear(rgb):
    """Returns the linear light of 0xRRGGBB in sRGB."""
    parts = [(rgb >> shift & 255) / 255 for shift in (16, 8, 0)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(rgb):
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear(rgb)))


def contrast(a, b):
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb, vision):
    """Returns the CIELAB colour (D65) that a person with this kind of vision sees."""
    seen = [min(1, max(0, sum(m * part for m, part in zip(row, linear(rgb))))) for row in VISIONS[vision]]
    to_xyz = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
    x, y, z = (sum(m * part for m, part in zip(row, seen)) / white for row, white in zip(to_xyz, (0.95047, 1, 1.08883)))
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one, other):
    """Returns the distance CIEDE2000 of two colours; the names are those of Sharma, Wu and Dalal (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = ((math.hypot(a1, b1) + math.hypot(a2, b2)) / 2) ** 7
    g = 0.5 * (1 - math.sqrt(mean / (mean + 25 ** 7)))
    c1, c2 = math.hypot(a1 * (1 + g), b1), math.hypot(a2 * (1 + g), b2)
    h1, h2 = (math.degrees(math.atan2(b, a * (1 + g))) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = 0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    dl, dc, dh = l2 - l1, c2 - c1, 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn) / 2)
    l, c, h = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360 if c1 * c2 else h1 + h2
    t = (1 - 0.17 * math.cos(math.radians(h - 30)) + 0.24 * math.cos(math.radians(2 * h)) + 0.32 * math.cos(math.radians(3 * h + 6)) -
         0.2 * math.cos(math.radians(4 * h - 63)))
    sl, sc, sh = 1 + 0.015 * (l - 50) ** 2 / math.sqrt(20 + (l - 50) ** 2), 1 + 0.045 * c, 1 + 0.015 * c * t
    r = -2 * math.sqrt(c ** 7 / (c ** 7 + 25 ** 7)) * math.sin(math.radians(60 * math.exp(-((h - 275) / 25) ** 2)))
    return math.sqrt((dl / sl) ** 2 + (dc / sc) ** 2 + (dh / sh) ** 2 + r * dc / sc * dh / sh)


def main():
    # A pair of colours with a known distance, which the authors of CIEDE2000 publish for tests of programs.
    assert abs(distance((50, 2.6772, -79.7751), (50, 0, -82.7485)) - 2.0425) < 1e-4
    assert abs(distance((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286)) - 0.6377) < 1e-4
    with open(sys.argv[1], encoding='utf-8') as file:
        paints = {name: (int(light, 16), int(dark, 16)) for name, light, dark in re.findall(r'X\((\w+), 0x(\w{6}), 0x(\w{6})\)', file.read())}
    wrong, checked = [], 0
    for theme, number in (('light', 0), ('dark', 1)):
        wanted = [(name, ground, TEXT) for name, grounds in TEXTS.items() for ground in grounds] + [(name, ground, SIGN) for name in SIGNS for ground in GROUNDS]
        for name, ground, least in wanted:
            got = contrast(paints[name][number], paints[ground][number])
            checked += 1
            if got < least:
                wrong.append(f'{theme}: {name} on {ground} has a contrast of {got:.2f}, {least} is wanted')
        for group, vision in itertools.product(ONE_SHAPE, VISIONS):
            for one, other in itertools.combinations(group, 2):
                got = distance(lab(paints[one][number], vision), lab(paints[other][number], vision))
                checked += 1
                if got < APART:
                    wrong.append(f'{theme}: {one} and {other} are {got:.1f} apart for {vision}, {APART} is wanted')
    print('\n'.join(wrong) or f'{checked} pairs of colours')
    return 1 if wrong else 0


sys.exit(main())
