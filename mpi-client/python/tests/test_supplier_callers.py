"""Supplier.run from a batch of a stream, from a pool of Spark's fair scheduler, and in a second session."""

import pytest
from spark_supplier import Rows, Supplier

from supplier_session import only_classic, rows, session_fixture, shared_memory

ROWS = 40

spark = session_fixture(3)


@pytest.fixture
def count():
    """A function: the rows of a DataFrame that two ranks have had. After it, nothing is left."""

    def rows_of_ranks(data):
        import torch

        found = torch.tensor(sum(len(batch["id"]) for batch in data))
        torch.distributed.all_reduce(found)
        return found.item()

    with shared_memory() as folder:
        yield lambda df: Supplier(2, folder=folder).run(rows_of_ranks, Rows(df.select("id"), uneven="keep"))


@only_classic("over Spark Connect the server runs the function of foreachBatch")
def test_a_batch_of_a_stream(count, spark, tmp_path):
    data = str(tmp_path / "data")
    rows(spark, ROWS).write.parquet(data)
    found = []

    def batch(df, number):
        found.append([number, count(df)])

    stream = spark.readStream.schema(spark.read.parquet(data).schema).parquet(data)
    writer = stream.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert found == [[0, ROWS]]


@only_classic("it uses the SparkContext")
def test_a_pool_of_the_fair_scheduler(count, spark):
    context = spark.sparkContext
    before = _stages(context)
    context.setLocalProperty("spark.scheduler.pool", "of-ranks")
    try:
        assert count(rows(spark, ROWS)) == ROWS
    finally:
        context.setLocalProperty("spark.scheduler.pool", None)
    stages = context._jsc.sc().statusStore()
    assert {stages.lastStageAttempt(stage).schedulingPool() for stage in _stages(context) - before} == {"of-ranks"}


def _stages(context):
    """The numbers of all stages that Spark remembers."""
    none = context._gateway.new_array(context._jvm.double, 0)
    found = context._jsc.sc().statusStore().stageList(None, False, False, none, None)
    return {found.apply(i).stageId() for i in range(found.size())}


@only_classic("it uses the SparkContext")
@pytest.mark.long
def test_a_session_that_was_made_again(count, spark):
    assert count(rows(spark, ROWS)) == ROWS
    settings = dict(spark.sparkContext.getConf().getAll())
    spark.stop()
    builder = type(spark).builder.master("local[3]")
    again = builder.config("spark.jars", settings["spark.jars"]).config("spark.ui.enabled", "false").getOrCreate()
    try:
        assert count(rows(again, ROWS)) == ROWS
    finally:
        again.stop()
