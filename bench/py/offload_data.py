"""The matrices of bench/offload, as DataFrames in Spark's memory."""

import numpy
from pyspark.sql import functions

# Arrow batches of mapInArrow, and seeds, are for that many rows, or numbers if rows are long.
BATCH_ROWS, BATCH_NUMBERS = 1000, 4_000_000
SCHEMA = "id long, label double, features array<double>"


def matrix(spark, rows, columns, partitions):
    """`features`: normally distributed, and singular values that fall as those of real data do. Persisted."""

    def make(batches):
        # Spark's own Python imports this.
        import numpy
        import pyarrow

        scales, mirror, truth = (1.0 + numpy.arange(columns)) ** -0.5, numpy.ones(columns), numpy.ones(columns)
        for batch in batches:
            ids = batch.column(0).to_numpy()
            random = numpy.random.default_rng(int(ids[0]))
            values = random.standard_normal((len(ids), columns)) * scales
            # A reflection: all columns have a part in each singular vector.
            values -= numpy.outer(values @ mirror, mirror) * (2.0 / columns)
            label = values @ truth + 0.1 * random.standard_normal(len(ids))
            offsets = numpy.arange(0, values.size + 1, columns, dtype="int32")
            lists = pyarrow.ListArray.from_arrays(offsets, values.ravel())
            yield pyarrow.RecordBatch.from_arrays([batch.column(0), label, lists], ["id", "label", "features"])

    batch = max(1, min(BATCH_ROWS, BATCH_NUMBERS // columns))
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", batch)
    frame = spark.range(0, rows, 1, partitions).mapInArrow(make, SCHEMA).persist()
    assert frame.agg(functions.count("*")).first()[0] == rows
    return frame


def collected(frame):
    """A small one, in numpy."""
    return numpy.array([row.features for row in frame.orderBy("id").collect()])
