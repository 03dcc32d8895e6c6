"""A server of Spark Connect without the Supplier's jar: its clients bring it."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import threading
from typing import Any

import pytest
import spark_supplier
import torch
from pyspark.sql import SparkSession
from spark_supplier import Rows, RunError, Supplier
from spark_supplier.driver.results import release
from spark_supplier.ml import TorchEstimator, TorchModel

from connect_server import connect_server, submitted
from layout import ROOT
from rank_server import LINALG, skip_without_linalg, skip_without_server, started
from supplier_session import rows, shared_memory

# The smoke test of Spark Connect is in test_connect.py.
pytestmark = pytest.mark.long
COUNT = 400
LIMIT_SECONDS = 120
# See supplier_session._stopped.
sessions: list[Any] = []


# Two executors, so that each has tasks of both sessions, but results lie where their ranks were.
@pytest.fixture(scope="module", params=["local[4]", "local-cluster[2,3,1024]"])
def server(request):
    with connect_server(request.param, None) as started:
        yield started.remote
        # Else PySpark takes one for the active session, whose server has ended.
        for session in sessions:
            session.stop()


def connected(remote):
    """A session of its own, as another client has it."""
    sessions.append(spark_supplier.session(SparkSession.builder.remote(remote), remote=remote))
    return sessions[-1]


def another(remote):
    sessions.append(SparkSession.builder.remote(remote).create())
    return sessions[-1]


def predict(data, factor):
    with data.results() as out:
        for epoch in data.epochs():
            for batch in epoch:
                out.write({"id": batch["id"], "score": batch["id"].double() * factor})
    return int(os.environ["WORLD_SIZE"])


def require_predictions(spark, factor):
    df = rows(spark, COUNT)
    with shared_memory() as folder:
        returned = Supplier(ranks=1, folder=folder).run(
            predict, Rows(df, uneven="keep"), factor=factor, results="id, score double"
        )
        found = df.join(returned.rows, "id").where(f"score = {factor} * id").count()
        assert (returned.value, found, returned.rows.count()) == (1, COUNT, COUNT)
        returned.release()


def test_results_and_their_release(server):
    spark = connected(server)
    require_predictions(spark, 2.0)
    # The server has the jar now, but not the executors for a session that has brought others.
    require_predictions(another(server), 3.0)


def test_two_sessions_at_once(server):
    failed = []

    def run(spark, factor):
        try:
            for _ in range(2):
                require_predictions(spark, factor)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(another(server), factor)) for factor in (2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    assert failed == [] and not any(thread.is_alive() for thread in threads)


def test_a_session_that_ends(server):
    """Its class loader is closed, and its jar removed, but the hub and the answers stay."""
    first = another(server)
    require_predictions(first, 2.0)
    first.stop()
    require_predictions(another(server), 3.0)


def test_a_checkpoint_resumes(server, tmp_path):
    def begin(data):
        next(iter(data))
        data.save(None)

    def rest(data):
        return [i for epoch in data.epochs() for batch in epoch for i in batch["id"].tolist()]

    df = rows(another(server), COUNT)
    with shared_memory() as folder:
        supplier = Supplier(ranks=1, folder=folder, backend=None, checkpoints=f"file://{tmp_path}")
        supplier.run(begin, Rows(df, batch_size=20))
        assert len(set(supplier.run(rest, Rows(df, batch_size=20), resume=True))) == COUNT - 20


def fast(parameters):
    return torch.optim.SGD(parameters, 1.0)


def slow(parameters):
    return torch.optim.SGD(parameters, 1e-6)


# Spark's own cache of models has lost one on a busy machine.
def test_a_pipeline_with_a_classifier_is_chosen_saved_and_loaded(server, tmp_path):
    from pyspark.ml import Pipeline, PipelineModel
    from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator
    from pyspark.ml.feature import IndexToString, StringIndexer, VectorAssembler
    from pyspark.ml.tuning import CrossValidator, ParamGridBuilder, TrainValidationSplit

    df = another(server).range(400).selectExpr(
        "id", "4 * rand(1) - 2 as a", "if(a < 0, 'below', 'above') as name", "id % 2 + 1 as w"
    ).cache()  # fmt: skip
    with shared_memory() as folder, Supplier(ranks=2, folder=folder) as supplier:
        estimator = TorchEstimator(
            model=lambda: torch.nn.Linear(1, 2), loss=torch.nn.CrossEntropyLoss(), optimizer=fast, weightCol="w",
            epochs=2, supplier=supplier,
        )  # fmt: skip
        pipeline = Pipeline(stages=[
            StringIndexer(inputCol="name", outputCol="label", stringOrderType="alphabetAsc"),
            VectorAssembler(inputCols=["a"], outputCol="features"), estimator,
            IndexToString(inputCol="prediction", outputCol="found", labels=["above", "below"]),
        ])  # fmt: skip
        grid = ParamGridBuilder().addGrid(estimator.optimizer, [slow, fast]).build()
        evaluator = MulticlassClassificationEvaluator(metricName="accuracy")
        options = {"estimator": pipeline, "estimatorParamMaps": grid, "evaluator": evaluator, "seed": 5}
        fitted = CrossValidator(numFolds=2, parallelism=2, **options).fit(df)
        split = TrainValidationSplit(**options).fit(df)
    assert fitted.avgMetrics[1] > max(0.8, fitted.avgMetrics[0])
    assert split.validationMetrics[1] > max(0.7, split.validationMetrics[0])
    fitted.bestModel.save(str(tmp_path / "model"))
    loaded = PipelineModel.load(str(tmp_path / "model"))
    found = [model.transform(df) for model in (fitted.bestModel, loaded)]
    assert found[0].collect() == found[1].collect() and found[1].where("name = found").count() > 320
    assert BinaryClassificationEvaluator().evaluate(found[1]) > 0.9


def test_a_module_that_no_plan_holds(server, monkeypatch):
    """Each session sends it once."""
    import spark_supplier.ml.prediction as prediction

    monkeypatch.setattr(prediction, "_MOST_IN_PLAN", 1000)
    module = torch.nn.Linear(20, 20)
    model = TorchModel(module, [], 20, 20)
    for spark in (another(server), another(server)):
        df = spark.range(0, 8, 1, 4).selectExpr("array_repeat(1D, 20) as features")
        for _ in range(2):
            found = {tuple(row.prediction) for row in model.transform(df).collect()}
            [row] = found
            assert row == pytest.approx(module(torch.ones(20)).tolist(), abs=1e-5)
        assert len(prediction._sent[spark]) == 1


def test_a_module_larger_than_a_message(server):
    module = torch.nn.Linear(6000, 6000)
    df = another(server).range(1).selectExpr("array_repeat(1D, 6000) as features")
    [row] = TorchModel(module, [], 6000, 6000).transform(df).collect()
    assert row.prediction == pytest.approx(module(torch.ones(6000)).tolist(), abs=1e-4)


def test_a_matrix_of_ranks(server, libraries):
    skip_without_server()
    numbers = another(server).range(100).selectExpr("id", "array(double(id), 1D) as features")
    with started(sessions[-1], libraries) as ranks:
        matrix = ranks.matrix(numbers, features="features", key="id")
        assert sorted(matrix.to_numpy()[:, 0].tolist()) == list(range(100))
        returned = matrix.to_df()
        assert returned.count() == 100
        release(returned)


def test_an_estimator_on_ranks(server):
    """The server finds its class as it finds Spark's own, for a session that has brought the jar, too."""
    from pyspark.ml.feature import VectorAssembler
    from spark_supplier.ml import TruncatedSVD

    skip_without_linalg()
    spark = connected(server)
    numbers = spark.range(100).selectExpr("double(id) as a", "1D as b")
    vectors = VectorAssembler(inputCols=["a", "b"], outputCol="features").transform(numbers)
    with started(spark, LINALG.parent) as ranks:
        model = TruncatedSVD(ranks=ranks, k=1, inputCol="features", outputCol="reduced").fit(vectors)
    (value,) = model.singularValues.toArray()
    assert value**2 == pytest.approx(sum(i * i + 1 for i in range(100)), rel=1e-3)
    assert model.transform(vectors).count() == 100


def test_another_build_of_the_jar(server, tmp_path, monkeypatch):
    connected(server)
    other = tmp_path / "spark-supplier.jar"
    other.write_bytes(pathlib.Path(spark_supplier.jars()).read_bytes() + b"\0")
    monkeypatch.setenv("SUPPLY_JAR", str(other))
    with pytest.raises(RunError, match="has another build of the Supplier's jar of this version"):
        Supplier(ranks=1).run(list, another(server).range(5))


def test_the_commands_of_the_page():
    page = (ROOT / "docs" / "CONNECT.md").read_text().replace("\\\n", "")
    tutorial = (ROOT / "docs" / "TUTORIAL.md").read_text()
    [options] = re.findall(
        r"^ {4}PYSPARK_PYTHON=\S+ build/env/bin/spark-submit (.* spark-internal)$", page, re.MULTILINE
    )
    [session] = re.findall(r"with the session\n`(spark_supplier.session\(.*\))`:$", page, re.MULTILINE)
    [program, *_] = re.findall(r"^```python\n(.*?)^```$", tutorial, re.MULTILINE | re.DOTALL)
    with submitted(shlex.split(options)) as server:
        over_connect = re.sub(r"(?<=^spark = ).*$", session, program, flags=re.MULTILINE)
        over_connect = over_connect.replace("sc://127.0.0.1:15002", server.remote)
        assert server.remote in over_connect and "master" not in over_connect
        done = subprocess.run(
            [sys.executable, "-c", over_connect], capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
    assert done.returncode == 0, done.stderr
    weights = re.findall(r"-?\d\.\d+", done.stdout.splitlines()[-1])
    assert [round(float(weight)) for weight in weights] == [1, 2, -1]
