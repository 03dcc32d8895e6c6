"""The Spark side of test_supplier_in_place: writes LMDBs to a folder and supplies those that its stdin names.

Argument: the folder. The Python of build/venv runs it, with launch/tests and build/python in its path.
"""

import json
import pathlib
import random
import sys

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import databases  # type: ignore[import-not-found]

# Large values have pages of their own, small ones share pages, and the encoded ones have many lengths.
IMAGES, DIGITS, ENCODED = 20, 300, 60


def shaped(count, channels, size):
    generator = random.Random(count)
    for number in range(count):
        data = generator.randbytes(channels * size * size)
        yield b"%08d" % number, databases.datum(data, number % 10, channels, size, size)


def encoded(count):
    generator = random.Random(count)
    for number in range(count):
        data = generator.randbytes(generator.choice([0, 9, 12, 13, 700, 5000]))
        yield b"%08d" % number, databases.datum(data, number, 3, 9, 9, encoded=True)


def main(folder):
    folder = pathlib.Path(folder)
    made = {"images": shaped(IMAGES, 3, 256), "digits": shaped(DIGITS, 1, 28), "encoded": encoded(ENCODED)}
    for name, elements in made.items():
        (folder / name).mkdir()
        databases.write(folder / name, list(elements))
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    for line in sys.stdin:
        words = json.loads(line)
        arguments = spark._sc._gateway.new_array(spark._jvm.java.lang.String, len(words))
        for index, word in enumerate(words):
            arguments[index] = word
        error = None
        try:
            spark._jvm.supply.lmdb.Supplier.run(spark._jsc.sc(), arguments)
        except Py4JJavaError as failure:
            error = failure.java_exception.getMessage()
        print("answer " + json.dumps(error), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
