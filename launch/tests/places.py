"""Where the pieces under test lie."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "launch"
BUILD = ROOT / "build"
PROGRAMS = BUILD / "mpi-client"
SUPPLY_CAT = PROGRAMS / "supply-cat"
JAR = ROOT / "spark-supplier" / "target" / "spark-supplier.jar"
DIGITS = BUILD / "digits"
