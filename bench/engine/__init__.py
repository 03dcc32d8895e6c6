"""What all benchmarks share. They start Spark and the ranks as the launchers do."""

import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "mpi-client/python/src"))
