#!/usr/bin/env python3
"""Packs the page: pack.py CORE.wasm STYLE.css INDEX.html SCRIPT.js... -o weft.js page-data.h

weft.js is the whole viewer: style, core and scripts. page-data.h has weft.js and the two templates as C arrays.
SPDX-License-Identifier: ISC"""
import base64
import hashlib
import re
import struct
import sys
import zlib

at = sys.argv.index("-o")
core, style, index, *scripts = sys.argv[1:at]
out_js, out_h = sys.argv[at + 1 :]


def text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lean(source):
    """Returns a source without comments and indentation. Comments must be on lines of their own or end a line."""
    source = re.sub(r"^[ \t]*/\*.*?\*/[ \t]*\n|[ \t]+/\*[^\n]*?\*/$", "", source, flags=re.M | re.S)
    return re.sub(r"^\s+", "", source, flags=re.M)


# Printable, without characters that are special in a script or its strings.
ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in "\"\\<&`$-/'")[:85]


def tight(source):
    """Returns a lean script without unneeded spaces and line ends, except in texts and patterns."""
    parts = re.split(r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|(?<=[(,=:&|!] )/(?:[^/\\\n]|\\.)+/|(?<=[(!])/(?:[^/\\\n]|\\.)+/)""", source)

    def without(part):
        part = re.sub(r"[ \t]*([=,;:{}()?<>&|*%\[\]])[ \t]*", r"\1", part)
        part = re.sub(r"(?<=[\w)\]]) ([-+]) (?=[\w(\[])", r"\1", part)  # "a + +b" must keep its spaces
        return re.sub(r"[;\n](?=\})", "", re.sub(r"([;{,(\[])\n", r"\1", part))  # every loop has a body

    return "".join(part if number % 2 else without(part) for number, part in enumerate(parts))


def packed(content):
    """Returns compressed content with 5 letters for 4 bytes, which is shorter than the base64 that scripts can decode natively."""
    gzip = zlib.compressobj(9, zlib.DEFLATED, 31, 9)  # memory level 9 compresses better than the 8 of Python's gzip
    content = gzip.compress(content) + gzip.flush()
    name = b"x" * (-(len(content) + 1) % 4) + b"\0"  # a file name pads the length to a multiple of 4
    content = content[:3] + b"\x08" + content[4:10] + name + content[10:]
    letters = []
    for word in struct.unpack(f">{len(content) // 4}I", content):
        for power in (85**4, 85**3, 85**2, 85, 1):
            letters.append(ALPHABET[word // power % 85])
    return "".join(letters)


with open(core, "rb") as file:
    wasm = packed(file.read())
js = '(() => {\n"use strict";\n'
js += f'const ALPHABET = "{ALPHABET}", STYLE = "{packed(lean(text(style)).encode())}",\nCORE = "{wasm}";\n'
js += "".join(tight(lean(text(path))) for path in scripts) + "})();\n"
with open(out_js, "w", encoding="utf-8") as file:
    file.write(js)


def template(script_source, connect, main):
    page = text(index).replace("{SCRIPT}", script_source).replace("{CONNECT}", connect).replace("{MAIN}", main)
    head, rest = page.split("{TITLE}")
    body, tail = rest.split("{TRACES}")
    return head, body, tail


inline = js + "weft.page();"
digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
page = template(f"'sha256-{digest}'", "'none'", "<script>" + inline + "</script>")
assert "</script" not in inline.lower() and "<!--" not in inline
served = template("'self'", "'self'", '<script src="weft.js" data-page></script>')


def array(name, content):
    content = content.encode()
    lines = (content[i : i + 40] for i in range(0, len(content), 40))
    body = ",\n".join(",".join(str(byte) for byte in line) for line in lines)
    return f"static const unsigned char {name}[] = {{\n{body}}};\n"


with open(out_h, "w", encoding="utf-8") as file:
    file.write("/* page-data.h: made by pack.py */\n")
    for prefix, parts in (("weft_page", page), ("weft_index", served)):
        for part, content in zip(("head", "body", "tail"), parts):
            file.write(array(f"{prefix}_{part}", content))
    file.write(array("weft_page_js", js))
