"""Writes mapped-files.conf and named-pipes.conf, the two config files that the Supplier and the ranks share."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
from collections.abc import Iterable, Sequence

from .command import Failure

MAPPED_FILES = """\
# The mapped file of each pair: PATH [ring=SIZE|auto] [block=SIZE] [group=NAME]
#
# Line i, comments and blank lines not counted, belongs to local rank i, here and in named-pipes.conf.
# The rank makes the file and removes it. Choose a file system in memory (tmpfs).
#   ring=   bytes of the ring of blocks; default four blocks. A ring that fits the last-level cache is fastest.
#           auto: 4 to 16 MiB, by the node's caches
#   block=  bytes of a block; default a quarter of the ring, or 2MiB. No element may be larger.
#   group=  group whose members may feed the rank, if Spark's executors run as another user (docs/SECURITY.md).
# Sizes: bytes, or 64KiB, 16MiB, 1GiB.
"""
NAMED_PIPES = """\
# The named pipes of each pair: REQUEST_PIPE NOTIFICATION_PIPE
#
# Line i, comments and blank lines not counted, belongs to local rank i, here and in mapped-files.conf.
# The rank makes both pipes and removes them.
#   request pipe       rank to Spark task: attach, credits, stop
#   notification pipe  Spark task to rank: which block, where, how big
"""


def lines(pairs: Sequence[str], **words: object) -> tuple[str, str]:
    """The lines of both files. pairs: the beginning of the names of each pair's files. words: ring, block and group."""
    for pair in pairs:
        if re.search(r"[\s#]", pair):
            raise Failure(
                f"the folder '{os.path.dirname(pair)}' holds white space or '#', which the config files cannot "
                "express: name another"
            )
    suffix = "".join(f" {name}={word}" for name, word in words.items() if word)
    mapped_files = "".join(f"{pair}.mapped{suffix}\n" for pair in pairs)
    return mapped_files, "".join(f"{pair}.request {pair}.notification\n" for pair in pairs)


def write(pairs, folder, output, ring=None, block=None, group=None):
    """Writes the config files of `pairs` pairs in `folder` into `output`. Returns the paths of both files.

    Files that are there with the same lines stay as they are.
    """
    folder, output = os.path.abspath(folder), pathlib.Path(output)
    of_mapped_files, of_named_pipes = lines(
        [f"{folder}/pair-{number}" for number in range(pairs)], ring=ring, block=block, group=group
    )
    contents = {
        output / "mapped-files.conf": MAPPED_FILES + of_mapped_files,
        output / "named-pipes.conf": NAMED_PIPES + of_named_pipes,
    }
    for file, text in contents.items():
        if file.exists() and file.read_bytes() != os.fsencode(text):
            raise Failure(f"{file} is there already with other lines: remove it, or name another OUTPUT_FOLDER")
    if not output.is_dir():
        output.mkdir(parents=True, mode=0o700)
        try:
            share(output, group, 0o750)
        except Failure:
            # A later call would find the folder, and not share it.
            output.rmdir()
            raise
    for file, text in contents.items():
        if not file.exists():
            file.write_bytes(os.fsencode(text))
        share(file, group, 0o640)
    return list(contents)


def mapped_files(file):
    """The paths of the mapped files that a config file names."""
    try:
        lines = pathlib.Path(file).read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
    except OSError as error:
        raise Failure(f"cannot read {file}: {error.strerror} (launch/make-configs writes it)") from None
    return [line.split()[0] for line in lines if line.strip() and not line.strip().startswith("#")]


def exported(more: Iterable[str] = ()) -> list[str]:
    """The variables of environment(), and others, that ranks on other nodes need."""
    # Open MPI warns of a variable that is not set.
    settable = [name for name in ("SUPPLY_RESULTS_FOLDER", "SUPPLY_LIBRARIES", "SUPPLY_SHARE") if name in os.environ]
    return ["SUPPLY_MAPPED_FILES", "SUPPLY_NAMED_PIPES", "SUPPLY_TIMEOUT", *settable, *more]


def environment(mapped_files, named_pipes, timeout):
    """The environment in which ranks find their pairs."""
    files = {"SUPPLY_MAPPED_FILES": str(mapped_files), "SUPPLY_NAMED_PIPES": str(named_pipes)}
    return {**os.environ, **files, "SUPPLY_TIMEOUT": str(timeout)}


def share(path, group, mode):
    """Lets the group use the path, if there is a group: executors of another user read the config files, too."""
    if not group:
        return
    try:
        shutil.chown(path, group=int(group) if group.isdigit() else group)
        os.chmod(path, mode)
    except (LookupError, OSError) as error:
        raise Failure(
            f"{path} cannot be given to the group '{group}': is this user a member of it, and the owner of the folder?"
        ) from error
