"""Every way to install the launchers has the same launchers, by the names of places.py."""

import os
import re
import subprocess
import sys

from spark_supplier.launch import installed
from spark_supplier.launch.places import LAUNCHERS

from places import LAUNCH, ROOT

# By their installed names, the modules of spark_supplier.launch.
MODULES = {installed_name: name.replace("-", "_") for name, installed_name in LAUNCHERS.items()}


def test_a_checkout_has_them():
    programs = {path.name for path in LAUNCH.iterdir() if path.is_file()}
    assert programs == set(LAUNCHERS)


def test_the_python_package_has_them():
    scripts = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]\n")[2].partition("\n\n")[0]
    functions = dict(re.findall(r'^([\w-]+) = "spark_supplier.launch\.installed:(\w+)"$', scripts, re.MULTILINE))
    assert functions == MODULES and len(scripts.splitlines()) == len(functions)
    assert {name: getattr(installed, name).args[0] for name in MODULES.values()} == {
        name: name for name in MODULES.values()
    }


def test_cmake_installs_them():
    text = (ROOT / "mpi-client/cmake/Launchers.cmake").read_text()
    names = re.search(r"set\(launcher_names ([^)]*)\)", text)[1]
    assert {name: module for module, name in (pair.split("=") for pair in names.split())} == MODULES


def test_the_page_names_them():
    text = (ROOT / "docs/INSTALL.md").read_text()
    rows = re.findall(r"^\| `launch/([\w-]+)` \| `([\w-]+)` \|$", text, re.MULTILINE)
    assert dict(rows) == LAUNCHERS


def test_python_runs_each_by_its_name():
    def run(*words):
        path = {**os.environ, "PYTHONPATH": str(ROOT / "mpi-client" / "python" / "src")}
        command = [sys.executable, "-m", "spark_supplier.launch", *words]
        return subprocess.run(command, env=path, capture_output=True, text=True, check=False)

    for name in MODULES:
        done = run(name, "--help")
        assert done.returncode == 0 and done.stdout.startswith("Usage: "), done.stderr
    for wrong in ([], ["supply"]):
        done = run(*wrong)
        assert done.returncode == 2 and "supply-run" in done.stderr
