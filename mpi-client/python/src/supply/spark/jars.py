"""Where the Supplier's jar is."""

from __future__ import annotations

import os
import pathlib

import pyspark

import supply
from supply.errors import SupplierError


def jar() -> str:
    """The Supplier's jar for this PySpark: for SparkSession.builder.config("spark.jars", jar()).

    SUPPLY_JAR of the environment names it. Without that, it is the jar in this package.
    """
    named = os.environ.get("SUPPLY_JAR")
    version = ".".join(pyspark.__version__.split(".")[:2])
    path = pathlib.Path(
        named or pathlib.Path(supply.__file__).parent / "jars" / f"spark-{version}" / "spark-supplier.jar"
    )
    if not path.is_file():
        where = "SUPPLY_JAR" if named else "this package"
        raise SupplierError(
            f"{where} has no jar for PySpark {pyspark.__version__} ({path}): in a checkout, run make python, or set "
            "SUPPLY_JAR to spark-supplier/target/spark-supplier.jar"
        )
    return str(path)
