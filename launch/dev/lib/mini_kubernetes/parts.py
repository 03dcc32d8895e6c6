"""What a node is made of: packages of Debian, unpacked and not installed, and the daemons, built from Go modules."""

import hashlib
import os
import pathlib
import shutil

from .commands import ClusterError, run

ROOT = pathlib.Path(__file__).resolve().parents[4]
# All that is made: parts here, and the state of a cluster in CLUSTER.
BUILD = ROOT / "build" / "kubernetes"
SYSTEM = BUILD / "system"
DAEMONS = BUILD / "daemons"
PACKAGES = ("containerd", "runc", "containernetworking-plugins")
# Of the modules in daemons/go.mod.
VERSION = "1.34.4"
_SOURCES = pathlib.Path(__file__).with_name("daemons")
_DOWNLOAD_SECONDS, _BUILD_SECONDS = 300, 3600


def missing():
    """Why the parts cannot be made here; None: they are there, or can be made."""
    if not SYSTEM.exists() and not shutil.which("apt-get"):
        return f"there is no apt-get to download {', '.join(PACKAGES)}"
    if not DAEMONS.exists() and not shutil.which("go"):
        return "there is no Go (1.24 or later) to build the daemons of Kubernetes"
    return None


def make(say):
    """Does nothing if they are there."""
    if not SYSTEM.exists():
        say(f"fetching Debian's packages {', '.join(PACKAGES)}")
        _unpack_packages()
    sources = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(_SOURCES.iterdir()))).hexdigest()
    built = DAEMONS.with_suffix(".sources")
    if not DAEMONS.exists() or not built.exists() or built.read_text(encoding="utf-8") != sources:
        say("building the daemons of Kubernetes from Go modules (once: 10 minutes and 2 GB of memory)")
        _build_daemons()
        built.write_text(sources, encoding="utf-8")


def _unpack_packages():
    work = BUILD / "packages"
    shutil.rmtree(work, ignore_errors=True)
    (work / "system").mkdir(parents=True)
    run(["apt-get", "download", *PACKAGES], _DOWNLOAD_SECONDS, cwd=work, advice="apt-get update, then try again")
    for package in work.glob("*.deb"):
        run(["dpkg", "-x", package, work / "system"], _DOWNLOAD_SECONDS)
    (work / "system").rename(SYSTEM)
    shutil.rmtree(work)


def _build_daemons():
    numbers = VERSION.split(".")
    about = {"gitVersion": f"v{VERSION}", "gitMajor": numbers[0], "gitMinor": numbers[1]}
    flags = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in about.items())
    unfinished = DAEMONS.with_suffix(".new")
    run(
        ["go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath", "-p", "2", "-gcflags=all=-dwarf=false",
         f"-ldflags=-s -w {flags}", "-o", unfinished, "."],
        _BUILD_SECONDS, cwd=_SOURCES, env={**os.environ, "CGO_ENABLED": "0"}, advice="go needs a proxy that has them",
    )  # fmt: skip
    unfinished.rename(DAEMONS)


def check_binaries():
    for program in ("usr/bin/containerd", "usr/sbin/runc", "usr/lib/cni/bridge"):
        if not (SYSTEM / program).exists():
            raise ClusterError(f"{SYSTEM} has no {program}: remove {BUILD}, and start again")
