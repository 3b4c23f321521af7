#!/usr/bin/env python3
"""Writes enums of the C headers as JavaScript: enums.py HEADER... -o OUT.js TAG[:KEY]=NAME...

TAG is one of:
- an enum of the headers;
- a list X(KEY, number, ...) in capitals; without numbers, items are numbered in order;
- a macro with a number;
- the prefix, in capitals, of the constants of an enum without a tag.
NAME is the name of the constant in scripts: a number for a macro, otherwise an object whose keys are the constants
without their prefix, or only KEY.
SPDX-License-Identifier: ISC"""
import ast
import os
import re
import sys

at = sys.argv.index("-o")
headers, out, wanted = sys.argv[1:at], sys.argv[at + 1], sys.argv[at + 2 :]
text = ""
for header in headers:
    with open(header, encoding="utf-8") as file:
        text += file.read()
text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def constants(body):
    """Yields name and value of each constant in the body of an enum, in order."""
    value = -1
    for item in filter(None, (item.strip() for item in body.split(","))):
        name, _, number = item.partition("=")
        value = ast.literal_eval(number.strip()) if number else value + 1
        yield name.strip(), value


def enum(tag):
    """Returns the constants of an enum; its body may contain only names and numbers."""
    bodies = re.findall(r"enum\s+" + tag + r"\s*\{([^}]*)\}", text) or re.findall(r"enum\s*\{(\s*" + tag + r"[^}]*)\}", text)
    if len(bodies) != 1 or "#" in bodies[0]:
        sys.exit(f"enums.py: {len(bodies)} enums {tag} with only names and numbers in {' '.join(headers)}")
    found = dict(constants(bodies[0]))
    prefix = os.path.commonprefix(list(found)[:2]) if not tag.isupper() else tag  # the last one may be the count: WEFT_PANES
    prefix = prefix[: prefix.rindex("_") + 1]
    found = {name[len(prefix) :] if name.startswith(prefix) else "COUNT": value for name, value in found.items()}
    return "{" + ", ".join(f"{name}: {value}" for name, value in found.items()) + "}"


def macro(name):
    values = re.findall(r"#define\s+" + name + r"\s+(\w+)", text)
    lists = re.findall(r"#define\s+" + name + r"\(X\)((?:.*\\\n)*.*)", text)
    if len(values) + len(lists) != 1:
        sys.exit(f"enums.py: {len(values) + len(lists)} macros {name} in {' '.join(headers)}")
    if lists:
        items = re.findall(r"X\((\w+)(?:, (-?\d+)\b)?", lists[0])
        return "{" + ", ".join(f"{key}: {value or number}" for number, (key, value) in enumerate(items)) + "}"
    return {"UINT32_MAX": "0xffffffff"}.get(values[0], values[0].rstrip("uU"))


with open(out, "w", encoding="utf-8") as file:
    file.write(f"/* Made by enums.py from {', '.join(os.path.basename(header) for header in headers)}. */\n")
    for item in wanted:
        what, name = item.split("=")
        tag, _, key = what.partition(":")
        is_macro = re.search(r"#define\s+" + tag + r"\b", text)
        content = macro(tag) if is_macro else enum(tag)
        if key:
            content = "{" + re.search(rf"\b{key}: -?\d+", content)[0] + "}"
        file.write(f"const {name} = {content};\n")
