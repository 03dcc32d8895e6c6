"""Which folder of mpi-client may include headers of which: the arrows of docs/design/overview.md.

Usage: includes_test.py FOLDER, which is mpi-client. Also checks that this check notices an arrow that is turned round.
"""

import pathlib
import posixpath
import re
import sys
import unittest

# From the lowest to the highest: each includes itself and those in front of it.
LIBRARY = ["src/base", "src/net", "src/files", "src/pair", "src/block", "src/api"]
PUBLIC = "include"
ALLOWED = {folder: {PUBLIC, *LIBRARY[: index + 1]} for index, folder in enumerate(LIBRARY)}
ALLOWED |= {
    PUBLIC: {PUBLIC},
    "mpi": {"mpi", "src/base"},
    "exchange": {"exchange", "mpi", PUBLIC, *LIBRARY},
    "offload/server": {"offload/server", "tools", PUBLIC, *LIBRARY},
    "tools": {"tools", PUBLIC, *LIBRARY},
    "python/src/core": {"python/src/core", "mpi", "exchange", PUBLIC, *LIBRARY},
    "examples": {"examples", PUBLIC},
    # And two headers alone: see allowed().
    "offload/routines": {"offload/routines"},
}
# Where an include is looked up if it does not lie beside its file.
SEARCHED = ("", "include", "src", "exchange", "mpi", "tools")
# CMake makes it from the table of the contract.
GENERATED = {"layout.h": "src/base", "formats.h": "src/base"}
ROOT = pathlib.Path(sys.argv[1])
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(supply[^>]*)>)', re.MULTILINE)


def folder_of(path):
    """The folder of ALLOWED that has this file; None: none has."""
    return next((folder for folder in ALLOWED if path.startswith(folder + "/")), None)


def find(root, file, name):
    """The path of the included header within root; None: it is not there."""
    for place in (file.rpartition("/")[0], *SEARCHED):
        path = posixpath.normpath(posixpath.join(place, name))
        if (root / path).is_file():
            return path
    return None


def allowed(folder, header):
    if folder == "offload/routines" and header in ("include/supply_routine.h", "src/base/mix.h"):
        return True
    return folder_of(header) in ALLOWED[folder]


def violations(root, file, text):
    """What is wrong with the includes of a file, whose path is relative to root."""
    folder = folder_of(file)
    if folder is None:
        return [f"{file}: its folder is not in includes_test.py: say what it may include"]
    wrong = []
    for match in INCLUDE.finditer(text):
        name = match.group(1) or match.group(2)
        header = f"{GENERATED[name]}/{name}" if name in GENERATED else find(root, file, name)
        if header is None:
            wrong.append(f"{file}: includes {name}, which is not there")
        elif not header.endswith(".h"):
            wrong.append(f"{file}: includes {header}, which is no header")
        elif not allowed(folder, header):
            wrong.append(f"{file}: {folder} must not include {header}")
    return wrong


# Arrows that are turned round: a file, what it includes, and what is said about it.
WRONG = [
    ("src/base/wrong.c", "files/config_files.h", "src/base must not include src/files/config_files.h"),
    ("src/files/wrong.c", "pair/pair.h", "src/files must not include src/pair/pair.h"),
    ("src/pair/wrong.c", "block/block.h", "src/pair must not include src/block/block.h"),
    ("src/block/wrong.h", "api/handle.h", "src/block must not include src/api/handle.h"),
    ("src/api/wrong.c", "exchange/exchange.h", "src/api must not include exchange/exchange.h"),
    ("include/wrong.h", "base/failure.h", "include must not include src/base/failure.h"),
    ("src/net/wrong.c", "pair/link.h", "src/net must not include src/pair/link.h"),
    ("mpi/wrong.c", "../exchange/agree.h", "mpi must not include exchange/agree.h"),
    ("tools/wrong.c", "../exchange/agree.h", "tools must not include exchange/agree.h"),
    ("tools/wrong.c", "../offload/server/channel.h", "tools must not include offload/server/channel.h"),
    ("exchange/wrong.c", "../offload/server/ranks.h", "exchange must not include offload/server/ranks.h"),
    ("offload/server/wrong.c", "../routines/rows.h", "offload/server must not include offload/routines/rows.h"),
    ("offload/server/wrong.c", "../../exchange/agree.h", "offload/server must not include exchange/agree.h"),
    ("offload/routines/wrong.c", "supply.h", "offload/routines must not include include/supply.h"),
    ("offload/routines/wrong.c", "../server/matrices.h", "offload/routines must not include offload/server/matrices.h"),
    ("exchange/wrong.c", "api/receive.c", "includes src/api/receive.c, which is no header"),
    ("tools/wrong.c", "missing.h", "includes missing.h, which is not there"),
    ("elsewhere/wrong.c", "supply.h", "its folder is not in includes_test.py"),
]


class IncludesTest(unittest.TestCase):
    def test_an_arrow_that_is_turned_round_is_found(self):
        for file, included, expected in WRONG:
            with self.subTest(file=file, included=included):
                said = violations(ROOT, file, f'#include "{included}"\n')
                self.assertEqual(1, len(said))
                self.assertIn(expected, said[0])

    def test_every_include_follows_the_arrows(self):
        paths = [path.relative_to(ROOT).as_posix() for kind in ("c", "h", "cc") for path in ROOT.rglob(f"*.{kind}")]
        files = [path for path in paths if not re.match(r"(python/)?(tests|fuzz)/", path)]
        self.assertLess(100, len(files))
        wrong = [line for file in sorted(files) for line in violations(ROOT, file, (ROOT / file).read_text())]
        self.assertEqual([], wrong)


unittest.main(argv=sys.argv[:1])
