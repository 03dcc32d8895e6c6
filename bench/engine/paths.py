"""Where things are, with a word of advice where they are not."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "build" / "bench"
PROGRAMS = ROOT / "build" / "bench-c"
VENV_PYTHON = ROOT / "build" / "venv" / "bin" / "python"
# The environment of the package supply, with PyTorch.
SUPPLY_PYTHON = ROOT / "build" / "wheel-venv" / "bin" / "python"


def spark_home():
    if "SPARK_HOME" in os.environ:
        return pathlib.Path(os.environ["SPARK_HOME"])
    return next((ROOT / "build" / "venv" / "lib").glob("python3*/site-packages/pyspark"), ROOT / "build" / "venv")


def pyspark():
    """PYTHONPATH of a Python that has not got PySpark itself."""
    return os.pathsep.join(map(str, (spark_home() / "python" / "lib").glob("*.zip")))


def jar():
    """The one that is built for this Spark, or else the usual one, which says what to do: as launch/lib/spark.sh."""
    core = next((spark_home() / "jars").glob("spark-core_*-*.jar"), pathlib.Path())
    line = ".".join(core.stem.rpartition("-")[2].split(".")[:2])
    own = ROOT / "build" / f"spark-{line}" / "target" / "spark-supplier.jar"
    return own if own.exists() else ROOT / "spark-supplier" / "target" / "spark-supplier.jar"


def program(name):
    path = PROGRAMS / name
    if not os.access(path, os.X_OK):
        sys.exit(f"bench: error: no {path}: run 'make bench', which builds it")
    return str(path)


def run_in_venv():
    """Goes on in the project's own Python, which has the packages of configs/requirements.txt."""
    if not VENV_PYTHON.exists():
        sys.exit(f"bench: error: no {VENV_PYTHON}: run 'make build'")
    if pathlib.Path(sys.prefix) != VENV_PYTHON.parents[1]:
        os.execv(VENV_PYTHON, [str(VENV_PYTHON), *sys.argv])
