"""What all benchmarks share. They start Spark and the ranks as the launchers do."""

import importlib.util
import pathlib
import sys

# A driver program has the installed package, and gives its path to ranks.
if importlib.util.find_spec("spark_supplier") is None:
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "mpi-client/python/src"))
