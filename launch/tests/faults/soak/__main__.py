"""Scenarios in turn, with faults at random, for MINUTES minutes and at least until each scenario had its turn.

usage: soak MINUTES [SCENARIO ...]

SCENARIO: run only these. stdout has a table of the scenarios, and as its last line the sums. The exit status is 1 if an
element was lost or arrived twice, if a wait was longer than its limit, if a check failed, or if anything was left or
has grown.
"""

import os
import pathlib
import signal
import sys

FAULTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = FAULTS.parents[2]
# In place of this folder.
sys.path[:1] = map(str, [FAULTS, FAULTS.parent, ROOT / "build" / "python"])
# After everything else, because some names are the same: the tests of the Python package, and the package.
sys.path += map(
    str, [ROOT / "mpi-client" / "python" / "tests", *ROOT.glob("build/wheel-venv/lib/python3*/site-packages")]
)

from soak.ground import PYTHON
from soak.rounds import SCENARIOS, soak

if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(SCENARIOS):
        sys.exit(f"{__doc__}\nscenarios: {' '.join(SCENARIOS)}")
    # So that everything is removed.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    os.environ["PYSPARK_PYTHON"] = str(PYTHON)
    sys.exit(soak(float(sys.argv[1]), sys.argv[2:] or list(SCENARIOS)))
