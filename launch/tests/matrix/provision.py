"""What the cells need from package registries. It is fetched once, into build/matrix."""

import os
import re
import shutil
import subprocess
import sys

from installing import ROOT, SYSTEM_PYTHON, clean_environment

MATRIX = ROOT / "build" / "matrix"
# Every root file system has these.
_PACKAGES = ("python3", "gcc", "libc6-dev", "openmpi-bin", "libopenmpi-dev", "pkg-config", "libjansson4")
CMAKE = "cmake==4.4.4"


class NotAvailable(Exception):
    """It could not be had. Its text says why."""


def spark(version):
    """The folder that holds a PySpark, and tqdm and the newest pyarrow for Debian's numpy, for sys.path."""
    return _made(f"spark-{version}", _pip_install, f"pyspark=={version}", "tqdm>=4.66", "pyarrow==19.0.1")


def cmake():
    """The folder of the program cmake."""
    return _made("cmake", _pip_install, CMAKE) / "cmake" / "data" / "bin"


def root(suite, packages):
    """The root file system of a Debian, with these packages."""
    if not shutil.which("mmdebstrap"):
        raise NotAvailable("there is no mmdebstrap, which makes the root file system")
    if os.geteuid() != 0:
        raise NotAvailable("a root file system needs root")
    names = ",".join((*_PACKAGES, *packages))
    return _made(
        f"root-{suite}", lambda folder: ["mmdebstrap", "--quiet", "--variant=apt", f"--include={names}", suite, folder]
    )


def _pip_install(folder, *requirements):
    return [SYSTEM_PYTHON, "-m", "pip", "install", "--quiet", "--no-cache-dir", "--target", folder, *requirements]


def _made(name, command, *arguments):
    """The folder of that name, made by a command if it is not there yet."""
    folder, part = MATRIX / name, MATRIX / f"{name}.part"
    if folder.is_dir():
        return folder
    MATRIX.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(part, ignore_errors=True)
    print(f"matrix: {name}", file=sys.stderr)
    words = [str(word) for word in command(part, *arguments)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean_environment())
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        said = [line for line in done.stderr.splitlines() if re.match("E: |ERROR: ", line)]
        raise NotAvailable(said[0] if said else f"{words[0]} failed")
    part.rename(folder)
    return folder
