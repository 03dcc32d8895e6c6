"""`make python`: the package for the Python and the PySpark that are there."""

import os
import pathlib
import re
import shutil
import subprocess
import venv

import pyspark
import pytest

from places import ROOT
from processes import ran
from ranks import END_OF_PATIENCE

EXAMPLE = "mpi-client/python/examples/one_call.py"
END_OF_BUILD = 1200
OF_ENVIRONMENTS = {"PYTHON", "VIRTUAL_ENV", "CONDA_PREFIX", "MAKEFLAGS", "MAKELEVEL", "PYTHONPATH", "SPARK_HOME"}


def make(*arguments, folder=ROOT, timeout=END_OF_PATIENCE, **environment):
    inherited = {name: value for name, value in os.environ.items() if name not in OF_ENVIRONMENTS}
    return subprocess.run(
        ["make", "--no-print-directory", "python", *arguments],
        cwd=folder,
        env={**inherited, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


def error(done):
    """Its one line: make adds one of its own."""
    assert done.returncode != 0 and done.stdout == "", done
    line, of_make = done.stderr.splitlines()
    assert of_make.startswith("make: ***")
    return line.removeprefix("python: error: ")


@pytest.fixture(scope="module")
def without_spark(tmp_path_factory):
    """An environment of Debian's Python, with its PyTorch and without PySpark."""
    folder = tmp_path_factory.mktemp("environments") / "env"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder], check=True)
    return folder


@pytest.mark.parametrize("given", ["PYTHON", "argument", "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON, not VIRTUAL_ENV"])
def test_which_python(without_spark, given):
    python = f"{without_spark}/bin/python"
    done = {
        "PYTHON": lambda: make(PYTHON=python),
        "argument": lambda: make(f"PYTHON={python}"),
        "VIRTUAL_ENV": lambda: make(VIRTUAL_ENV=str(without_spark)),
        "CONDA_PREFIX": lambda: make(CONDA_PREFIX=str(without_spark)),
        "PYTHON, not VIRTUAL_ENV": lambda: make(PYTHON=python, VIRTUAL_ENV="/no/such/environment"),
    }[given]()
    assert error(done) == f"{python} has no PySpark: {python} -m pip install 'pyspark==4.1.*'"


def test_a_python_that_is_not_there():
    assert error(make(PYTHON="/no/such/python")) == "there is no Python at /no/such/python: set PYTHON= to one"
    assert error(make(VIRTUAL_ENV="/no/env")) == "there is no Python at /no/env/bin/python: set PYTHON= to one"


def test_an_environment_without_pip(tmp_path):
    venv.create(tmp_path / "env", with_pip=False)
    python = tmp_path / "env" / "bin" / "python"
    assert error(make(PYTHON=str(python))) == f"{python} has no pip: {python} -m ensurepip"


def test_the_python_of_the_system_is_left_alone():
    probe = "import os, sysconfig; print(os.path.exists(sysconfig.get_path('stdlib') + '/EXTERNALLY-MANAGED'))"
    if subprocess.run(["/usr/bin/python3", "-c", probe], capture_output=True, text=True).stdout != "True\n":
        pytest.skip("this system lets pip install into its Python")
    assert error(make(PYTHON="/usr/bin/python3")).startswith("/usr/bin/python3 is the system's, ")


@pytest.mark.long
def test_what_is_added_to_the_environment_leaves_its_numpy_and_pytorch(tmp_path):
    """With the packages of docs/TUTORIAL.md. The build that follows is left out."""
    folder, site = tmp_path / "a clone", tmp_path / "site"
    shutil.copytree(ROOT / "launch", folder / "launch")
    (folder / "spark-supplier").mkdir()
    shutil.copy(ROOT / "spark-supplier" / "pom.xml", folder / "spark-supplier")
    site.mkdir()
    for package in ("pyspark", "py4j"):
        (site / package).symlink_to(pathlib.Path(pyspark.__path__[0]).parent / package)
    inherited = {name: value for name, value in os.environ.items() if name not in OF_ENVIRONMENTS}
    done = subprocess.run(
        [folder / "launch" / "dev" / "install-python", pyspark.__version__],
        env={**inherited, "PYTHONPATH": str(site), "MAKE": "false"}, capture_output=True, text=True,
        timeout=END_OF_PATIENCE,
    )  # fmt: skip
    assert done.stdout.startswith("python: for build/env/bin/python ") and done.returncode == 1, done

    def run(*words):
        return subprocess.run(words, env=inherited, check=True, capture_output=True, text=True).stdout

    python = folder / "build" / "env" / "bin" / "python"
    numpy = run("/usr/bin/python3", "-c", "import numpy; print(numpy.__version__)")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*pip, "matplotlib", "scikit-learn", "pandas", "pyarrow")
    imports = "import matplotlib, numpy, pandas, pyarrow, sklearn, torch"
    said = run(python, "-c", f"{imports}; print(torch.from_numpy(numpy.ones(2)).sum(), numpy.__version__)")
    assert said.startswith(f"tensor(2., dtype=torch.float64) {numpy.partition('.')[0]}."), said


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_from_a_clone_to_the_weights_of_the_one_call(without_spark, tmp_path):
    """PySpark is there already. The rest is one command, and the program that its last line names."""
    clone, env = tmp_path / "clone", tmp_path / "env"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0")[:-1]:
        if (ROOT / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, clone / name)
    shutil.copytree(without_spark, env, symlinks=True)
    site = next(env.glob("lib/python3*/site-packages"))
    # pip does not know of this PySpark, as of one in PYTHONPATH, and must not install another.
    (site / "spark.pth").write_text(str(pathlib.Path(pyspark.__path__[0]).parent))

    done = make(folder=clone, timeout=END_OF_BUILD, PYTHON=f"{env}/bin/python")
    assert done.returncode == 0, done.stderr
    installed, following = done.stdout.splitlines()[-2:]
    assert re.fullmatch(rf"python: ok: spark-supplier [\d.]+ with the jar for Spark [\d.]+ in {env}", installed)
    assert not list(site.glob("pyspark*"))
    assert following == f"next: {env}/bin/python {EXAMPLE}"
    # Nothing else is built: no Python, no library, no programs of MPI.
    of_jar = {"spark-supplier.log", "natives", *(path.name for path in (clone / "build").glob("lmdbjni-*"))}
    assert {path.name for path in (clone / "build").iterdir()} <= {"python.log", *of_jar}

    trained = ran(*following.removeprefix("next: ").split(), cwd=clone)
    assert trained.returncode == 0, trained.stderr
    weights = re.findall(r"-?\d\.\d+", trained.stdout.splitlines()[-1])
    assert [round(float(weight)) for weight in weights] == [1, 2, -1]
