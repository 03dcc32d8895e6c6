"""Where the cells of a row run: on this machine, or in the root file system of another system."""

import os
import pathlib
import shutil
import subprocess

import provision
from installing import DIGITS, EXAMPLES, SYSTEM_PYTHON, USE, clean_environment, find_python, overlay, run
from provision import NotAvailable

HERE = pathlib.Path(__file__).resolve().parent
LIMIT_SECONDS = 600


class Cell:
    """A place with the release, and an empty folder. Raises NotAvailable if the place cannot be had."""

    def __init__(self, neighbour, release, folder):
        self._neighbour = neighbour
        self._folder = folder
        self._variables = {
            "RELEASE": release, "SPARK": provision.spark(neighbour.spark), "EXAMPLES": EXAMPLES, "LMDB": DIGITS,
            "USE": USE, "PACKAGES": neighbour.packages, **dict(neighbour.commands),
        }  # fmt: skip
        self._start, self._prepare = ["bash", "-euc"], ""
        if neighbour.suite:
            self._enter_system(neighbour)
        else:
            self._stay_here(neighbour)

    def _stay_here(self, neighbour):
        for _, command in neighbour.commands:
            if not shutil.which(command):
                raise NotAvailable(f"there is no {command} on this machine")
        python = find_python(neighbour.python) if neighbour.python else SYSTEM_PYTHON
        if not python:
            raise NotAvailable(f"there is no CPython {neighbour.python} on this machine")
        self._variables.update(PYTHON=python, WORK=self._folder)
        if not neighbour.python:
            # Debian's PyTorch.
            self._variables["SYSTEM_PACKAGES"] = "1"

    def _enter_system(self, neighbour):
        root = provision.root(neighbour.suite, neighbour.needs)
        command, reason = overlay(self._folder, root)
        if not command:
            raise NotAvailable(reason)
        self._start = command
        path = "/usr/sbin:/usr/bin:/sbin:/bin"
        # As every installed system, it knows its own name.
        self._prepare = 'echo "127.0.0.1 localhost $(uname -n)" > /etc/hosts; '
        # Its own packages are all that it needs.
        self._variables.update(PYTHON=SYSTEM_PYTHON, WORK="/tmp/work", SYSTEM_PACKAGES="1", PIP_NO_INDEX="1", PATH=path)
        self._variables.update(HOME="/root", JAVA_HOME="", LANG="C.UTF-8", TMPDIR="/tmp")

    def use_wheel(self, *words):
        """Runs a program in an environment with the wheel. Returns what it has printed."""
        return self._run("sh", HERE / "use_wheel.sh", *words)

    def use_prefix(self):
        """A program in C with the tarball, or with the sdist on a system that is older than the release's."""
        if self._neighbour.suite == "bullseye":
            self._variables["PATH"] = f"{provision.cmake()}:{self._variables['PATH']}"
            return self._run("sh", HERE / "use_sources.sh")
        tarball = ["sh", HERE / "use_tarball.sh"]
        return self.use_wheel(*tarball) if self._neighbour.packages else self._run(*tarball)

    def refuses_wheel(self):
        """What pip says when it refuses to install the wheel."""
        with_wheel = ["--no-index", "--only-binary", "spark-supplier", "--find-links", str(self._variables["RELEASE"])]
        run(self._variables["PYTHON"], "-m", "venv", self._folder / "env")
        pip = [self._folder / "env/bin/python", "-m", "pip", "install", "--quiet", *with_wheel, "spark-supplier"]
        done = subprocess.run(pip, capture_output=True, text=True, env=clean_environment())
        assert done.returncode != 0
        return done.stderr

    def _run(self, *words):
        return self._script(self._prepare + 'mkdir -p "$WORK"; exec ' + " ".join(f"'{word}'" for word in words))

    def _script(self, script):
        environment = clean_environment(**{name: str(value) for name, value in self._variables.items()})
        if not environment.get("JAVA_HOME"):
            environment.pop("JAVA_HOME", None)
        cwd = self._folder if os.access(self._folder, os.X_OK) else None
        return run(*self._start, script, env=environment, cwd=cwd, timeout=LIMIT_SECONDS).stdout
