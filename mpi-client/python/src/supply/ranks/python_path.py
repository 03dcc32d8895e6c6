"""The folders and archives in which Python finds modules of the program."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from collections.abc import Sequence

VARIABLE = "PYTHONPATH"


def entries() -> list[str]:
    """Where this Python looks for modules: the program's folder first."""
    return [os.path.abspath(entry) for entry in sys.path]


def python_path(others: Sequence[str] = ()) -> str:
    """PYTHONPATH of a child: what Spark, addPyFile and the program have added to the path of this Python.

    others: of the driver, if this node has them. Neither the standard library nor installed packages are in it: each
    Python has its own, and a child may be another Python.
    """
    found = [*entries(), *(other for other in others if os.path.exists(other))]
    own = {os.path.realpath(entry) for entry in _of_this_python()}
    return os.pathsep.join(dict.fromkeys(entry for entry in found if os.path.realpath(entry) not in own))


def _of_this_python() -> list[str]:
    paths = sysconfig.get_paths()
    libraries = {paths["stdlib"], paths["platstdlib"]}
    archive = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    return [
        *libraries,
        *(os.path.join(library, "lib-dynload") for library in libraries),
        *(os.path.join(os.path.dirname(library), archive) for library in libraries),
        paths["purelib"], paths["platlib"], *site.getsitepackages(), site.getusersitepackages(),
    ]  # fmt: skip
