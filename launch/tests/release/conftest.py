"""What the tests of a release share: its files, and an empty environment to install them into."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "launch" / "tests")]
RELEASE = ROOT / "build" / "release"
SYSTEM_PYTHON = "/usr/bin/python3"


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


@pytest.fixture(scope="session")
def release():
    """The folder of the release."""
    if not (RELEASE / "SHA256SUMS").is_file():
        pytest.fail(f"there is no release in {RELEASE}: run 'make release'")
    return RELEASE


@pytest.fixture(scope="session")
def version(release):
    [sdist] = release.glob("spark_supplier-*.tar.gz")
    return sdist.name[len("spark_supplier-") : -len(".tar.gz")]


@pytest.fixture(scope="session")
def environment(release, tmp_path_factory):
    """A virtual environment of the system's Python with the wheel, PySpark and what the notebook needs: the folder.

    PyTorch is Debian's, because the one of the package index is a hundred times the size.
    """
    folder = tmp_path_factory.mktemp("environment")
    run(SYSTEM_PYTHON, "-m", "venv", "--system-site-packages", folder)
    requirements = ROOT / "mpi-client" / "python" / "tests" / "requirements-notebook.txt"
    # pip takes the wheel that fits this Python. From the sdist it would compile one of its own.
    pip = [folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--find-links", release]
    only_wheel = ["--only-binary", "spark-supplier"]
    run(*pip, *only_wheel, "spark-supplier", "pyspark==4.1.*", "--requirement", requirements, env=clean_environment())
    return folder
