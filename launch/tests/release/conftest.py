"""What the tests of a release share: its files, and an empty environment to install them into."""

import sys

import pytest

from installing import RELEASE, ROOT, SYSTEM_PYTHON, clean_environment, run

sys.path[:0] = [str(ROOT / "launch" / "tests")]


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
def library(version):
    """The version in the names of the library and of its package."""
    major, minor, _ = version.split(".")
    return f"0.{minor}" if major == "0" else major


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
