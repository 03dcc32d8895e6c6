"""How the artifacts of a release are installed into something empty, and used there."""

import os
import pathlib
import re
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]
RELEASE = ROOT / "build" / "release"
SYSTEM_PYTHON = "/usr/bin/python3"
EXAMPLES = ROOT / "mpi-client" / "examples"
DIGITS = ROOT / "build" / "digits" / "train_lmdb"
DIGITS_COUNT = 1437
USE = pathlib.Path(__file__).with_name("use_installation.sh")
# $0: an empty folder. $1: the root of a system. $2: a folder of this machine that the script sees, too. $3: the script.
_OVERLAY = """
set -eu
mount -t tmpfs tmpfs "$0"
mkdir "$0/upper" "$0/work" "$0/root"
mount -t overlay overlay -o lowerdir="$1",upperdir="$0/upper",workdir="$0/work" "$0/root"
for folder in /proc /sys /dev /dev/shm "$2"; do
    mkdir -p "$0/root$folder"
    mount --rbind "$folder" "$0/root$folder"
done
exec chroot "$0/root" bash -euc "$3"
"""


def run(*command, **options):
    """The finished command. Fails with its output."""
    options = {"capture_output": True, "text": True, **options}
    done = subprocess.run([str(word) for word in command], **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done


def clean_environment(**variables):
    """Without what leads to a checkout, to another Python or to another Spark."""
    hidden = re.compile("SPARK|SUPPLY|PYTHON|VIRTUAL_ENV|CMAKE|PKG_CONFIG|LD_LIBRARY")
    kept = {name: value for name, value in os.environ.items() if not hidden.match(name)}
    # In a test Spark lives for seconds. MPI's ranks may be root's.
    kept["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"
    kept["OMPI_ALLOW_RUN_AS_ROOT"] = kept["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    return {**kept, **variables}


def overlay(folder, root="/"):
    """
    A command that runs a script in a copy of a system: what it writes is gone afterwards. Returns the command and None,
    or None and why this machine cannot have one.

    folder: an empty one. root: that of the system. The script sees the checkout, too: the copy has no other mounts, and
    a checkout may lie on one.
    """
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return None, "a copy of a system to install into needs root and unshare"
    command = ["unshare", "--mount", "sh", "-c", _OVERLAY, folder, root, ROOT]
    probe = subprocess.run([*command, "true"], capture_output=True, text=True)
    if probe.returncode:
        return None, f"this machine allows no overlay of a system: {probe.stderr.strip()}"
    return command, None


def find_python(version):
    """A CPython that can make environments, as "3.12", or None. It lies where build-wheels searches."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    for python in [shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")]:
        if python and subprocess.run([python, "-c", "import ensurepip"], capture_output=True).returncode == 0:
            return python
    return None
