"""Ranks of another user than the one who runs the tests."""

import os
import shutil

import pytest

from places import SUPPLY_CAT

# These numbers need no entry in /etc/passwd and /etc/group.
ALICE = 61001
FEEDERS = 61000

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to start ranks of another user")


def give_to_alice(pairs):
    """Gives pairs to alice. Returns the program of her ranks."""
    pairs.folder.parent.chmod(0o755)
    for path in (pairs.folder, pairs.mapped_files, pairs.named_pipes):
        os.chown(path, ALICE, FEEDERS)
    # She may not be able to read the build folder.
    copy = shutil.copy(SUPPLY_CAT, pairs.folder.parent)
    program = pairs.folder.parent / "alice-cat"
    program.write_text(f'#!/bin/sh\nexec setpriv --reuid={ALICE} --regid={ALICE} --groups={FEEDERS} -- {copy} "$@"\n')
    program.chmod(0o755)
    return program
