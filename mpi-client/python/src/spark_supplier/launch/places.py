"""Where the parts of the product are: in a checkout, in a prefix such as /usr, or in a Python environment."""

import importlib.util
import os
import pathlib
import re
import shutil
import sys

_HERE = pathlib.Path(__file__).resolve().parent
_ROOT = _HERE.parents[4]
IS_CHECKOUT = (_ROOT / "mpi-client" / "CMakeLists.txt").is_file()
_IS_WHEEL = not IS_CHECKOUT and (_HERE.parent / "errors.py").is_file()
# The jars and Spark's settings: in the wheel they lie in the package, in a prefix beside it.
_DATA = _HERE.parent if _IS_WHEEL else _HERE.parents[1]

# The launchers, by their names in launch/. A name that is too general for a folder of all programs is longer there.
LAUNCHERS = {
    "make-configs": "supply-make-configs",
    "run-ranks": "supply-run-ranks",
    "slurm-run": "supply-slurm-run",
    "submit-supplier": "submit-supplier",
    "supplier": "supplier",
    "supply-doctor": "supply-doctor",
    "supply-run": "supply-run",
}
MISSING = "run 'make build'" if IS_CHECKOUT else "install the whole of spark-supplier"
MISSING_MPI = "install MPI's headers (make packages), then 'make build'" if IS_CHECKOUT else "install supply-mpi"
MISSING_SPARK = f"{MISSING if IS_CHECKOUT else 'install pyspark'}, or set SPARK_HOME"


def _programs():
    """The folder of installed launchers and tools."""
    if not _IS_WHEEL:
        return _HERE.parents[3] / "bin"
    # The scripts of this environment lie beside its Python, those of pip install --user beside this launcher.
    beside = pathlib.Path(sys.executable).parent
    return beside if (beside / "supply-run").exists() else pathlib.Path(sys.argv[0]).resolve().parent


def launcher(name):
    """The path of a launcher, by its name in launch/."""
    return _ROOT / "launch" / name if IS_CHECKOUT else _programs() / LAUNCHERS[name]


def program(name):
    """The path of a program of mpi-client/, whether it exists or not."""
    if IS_CHECKOUT:
        return _ROOT / "build" / "mpi-client" / name
    # Programs that only launchers start.
    private = _DATA / "libexec" / name if _IS_WHEEL else _HERE.parents[3] / "libexec" / "supply" / name
    return private if private.exists() else _programs() / name


def jar(spark):
    """The Supplier's jar for a Spark, as "4.1", whether it exists or not. For another Spark it is the usual one."""
    usual = _ROOT / "spark-supplier/target" if IS_CHECKOUT else _DATA / "jars/spark-4.1"
    folder = _ROOT / f"build/spark-{spark}/target" if IS_CHECKOUT else _DATA / f"jars/spark-{spark}"
    of_version = folder / "spark-supplier.jar"
    return of_version if of_version.is_file() else usual / "spark-supplier.jar"


def spark_settings():
    """The folder of Spark's settings that the product comes with."""
    return _ROOT / "configs/spark" if IS_CHECKOUT else _DATA / "configs/spark"


def spark_home():
    """The Spark to use if SPARK_HOME is not set, or None."""
    if IS_CHECKOUT:
        return next(_ROOT.glob("build/venv/lib/python3*/site-packages/pyspark"), None)
    found = importlib.util.find_spec("pyspark")
    if found and found.submodule_search_locations:
        return pathlib.Path(found.submodule_search_locations[0])
    submit = shutil.which("spark-submit")
    return pathlib.Path(os.path.realpath(submit)).parents[1] if submit else None


def named(text):
    """A text of launch/, or None, with the names that the launchers have here."""
    if IS_CHECKOUT or text is None:
        return text
    return re.sub(r"\blaunch/([a-z-]+)", lambda match: LAUNCHERS.get(match[1], match[0]), text)
