"""Paths of the programs under test."""

import pathlib

import pyspark

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCH = ROOT / "launch"
BUILD = ROOT / "build"
PROGRAMS = BUILD / "mpi-client"
SUPPLY_CAT = PROGRAMS / "supply-cat"
# The jars and the Sparks that make builds, by Spark's version.
JARS = {
    "4.1": ROOT / "spark-supplier" / "target" / "spark-supplier.jar",
    "3.5": BUILD / "spark-3.5" / "target" / "spark-supplier.jar",
}
HOMES = {"4.1": next(BUILD.glob("venv/lib/python3*/site-packages/pyspark")), "3.5": BUILD / "spark-3.5" / "home"}
JAR = JARS[".".join(pyspark.__version__.split(".")[:2])]
# In the jar: lmdbjni's native library, by machine.
LMDB_LIBRARIES = {
    "x86_64": "META-INF/native/linux64/liblmdbjni.so",
    "aarch64": "META-INF/native/linux64/aarch64/liblmdbjni.so",
}
DIGITS = BUILD / "digits"
