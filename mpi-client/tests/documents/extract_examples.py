#!/usr/bin/env python3
"""Extracts the C examples of documents and headers, so that they are compiled and run.

usage: extract_examples.py ROOT FOLDER FILE...

Each ```c block of a Markdown file is a program. Indented lines of the first comment of a header are a fragment. Writes
them into FOLDER and prints their names: for docs/FILE.md docs-FILE-N.c, N from 1; for FILE.h FILE.h.inc.
"""

import pathlib
import re
import sys


def programs(text):
    """The ```c blocks. Raises ValueError if other text calls the library."""
    blocks = re.compile(r"^```c\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    elsewhere = re.search(r"^ {4}.*\bsupply_\w+\(.*;", blocks.sub("", text), re.MULTILINE)
    if elsewhere:
        raise ValueError(f"write this example as a ```c block, a whole program: {elsewhere.group().strip()}")
    return blocks.findall(text)


def fragment(text):
    """The indented lines of the first comment."""
    comment = text[text.index("/**") : text.index("*/")]
    return "".join(line + "\n" for line in re.findall(r"^ \* {4,}(.*)", comment, re.MULTILINE))


def examples(path, root):
    """Names and texts of the examples of one file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".h":
        code = fragment(text)
        return {f"{path.name}.inc": code} if code else {}
    name = "-".join(path.relative_to(root).with_suffix("").parts)
    return {f"{name}-{number}.c": code for number, code in enumerate(programs(text), 1)}


def main(root, folder, *paths):
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        try:
            found = examples(path, root)
        except ValueError as error:
            sys.exit(f"{path}: {error}")
        for name, code in found.items():
            (folder / name).write_text(code, encoding="utf-8")
            print(name)


if __name__ == "__main__":
    main(*map(pathlib.Path, sys.argv[1:]))
