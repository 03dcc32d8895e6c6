"""TorchModel predicts with a trained module. What it shares with TorchEstimator: params, and how stages are saved."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.ml import Model, Transformer
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasHandleInvalid,
    HasLabelCol,
    HasPredictionCol,
    HasSeed,
    HasValidationIndicatorCol,
)
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from spark_supplier.driver.sessions import is_of_connect, session_of
from spark_supplier.driver.spark_jobs import python_of_driver
from spark_supplier.errors import ConfigError, RunError
from spark_supplier.ml.features import Features

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

# Parquet with the pickled objects.
_FILE = "objects"
_CHUNK = 16 << 20


class ObjectsStage(MLWritable, MLReadable[Any]):
    """A stage whose class makes it of its _objects(), and that has params besides."""

    def _objects(self) -> dict[str, Any]:
        """The arguments of the class that JSON cannot hold, params also."""
        raise NotImplementedError

    def write(self) -> MLWriter:
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        return _Reader(cls)


class Held(Transformer, ObjectsStage):
    """A value of a param that is no JSON. In a grid, PySpark saves a Transformer as it saves stages."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)

    def _objects(self) -> dict[str, Any]:
        return {"value": self.value}

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return dataset


def held(value: Any) -> Any:
    return value if isinstance(value, Held) or is_json(value) else Held(value)


def is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


class _Writer(MLWriter):
    def __init__(self, stage: Any) -> None:
        super().__init__()
        self._stage = stage

    def _handleOverwrite(self, path: str) -> None:
        if not is_of_connect(self.sparkSession):
            super()._handleOverwrite(path)
            return
        # Spark Connect has no call that removes a folder.
        self.sparkSession.createDataFrame([], "value string").write.mode("overwrite").text(path)

    def saveImpl(self, path: str) -> None:
        objects = self._stage._objects()
        content = _pickled(objects)
        params = {param.name: value for param, value in self._stage._paramMap.items() if param.name not in objects}
        DefaultParamsWriter.saveMetadata(self._stage, path, _context(self), paramMap=params)
        _write(self.sparkSession, f"{path}/{_FILE}", content)


class _Reader(MLReader[Any]):
    def __init__(self, stage_class: type[ObjectsStage]) -> None:
        super().__init__()
        self._class = stage_class

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, _context(self))
        stage: Any = self._class(**_unpickled(_read(self.sparkSession, f"{path}/{_FILE}")))
        stage._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(stage, metadata)
        return stage


def _context(of_spark: MLWriter | MLReader[Any]) -> Any:
    """What pyspark.ml's own readers and writers take. Spark Connect has no context, and 3.5 takes no session."""
    return of_spark.sparkSession if is_of_connect(of_spark.sparkSession) else of_spark.sc


def _pickled(objects: dict[str, Any]) -> bytes:
    """Each object for itself, to name the one that cannot be pickled."""
    pickles = {}
    for name, value in objects.items():
        try:
            pickles[name] = cloudpickle.dumps(value)
        except Exception as error:
            raise RunError(f"{name} cannot be saved, because it cannot be pickled: {error}") from error
    return pickle.dumps(pickles)


def _unpickled(content: bytes) -> dict[str, Any]:
    return {name: pickle.loads(value) for name, value in pickle.loads(content).items()}


def _write(spark: Any, path: str, content: bytes) -> None:
    """A job for each chunk: Spark limits what a task carries, and what a job returns."""
    # In MiB. A chunk is half of it, at most.
    size = min(_CHUNK, int(spark.conf.get("spark.rpc.message.maxSize", "128")) << 19)
    for begin in range(0, len(content), size):
        chunk = spark.createDataFrame([(begin, content[begin : begin + size])], "begin long, bytes binary")
        mode = "append" if begin else "error"
        chunk.coalesce(1).write.partitionBy("begin").mode(mode).parquet(path)


def _read(spark: Any, path: str) -> bytes:
    chunks = spark.read.parquet(path)
    # Without Spark's inference of types they are texts.
    begins = sorted((row.begin for row in chunks.select("begin").collect()), key=int)
    return b"".join(bytes(chunks.where(chunks.begin == begin).first().bytes) for begin in begins)


_HANDLE_INVALID = ("error", "skip", "keep")


def _to_columns(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else TypeConverters.toListString(value)


def _to_count(name: str) -> Callable[[Any], int]:
    def to_count(value: Any) -> int:
        count: int = TypeConverters.toInt(value)
        if count < 1:
            raise ConfigError(f"{name} is {count}, must be 1 or more")
        return count

    return to_count


def _to_fraction(value: Any) -> float:
    fraction: float = TypeConverters.toFloat(value)
    if not 0 < fraction < 1:
        raise ConfigError(f"validationFraction is {fraction}, must be between 0 and 1")
    return fraction


def _to_handle_invalid(value: Any) -> str:
    if value not in _HANDLE_INVALID:
        raise ConfigError(f"handleInvalid is {value!r}, must be one of {', '.join(_HANDLE_INVALID)}")
    return str(value)


def param(name: str, doc: str, converter: Callable[[Any], Any] | None = None) -> Param[Any]:
    """A param of a class, under that name."""
    return Param(Params._dummy(), name, doc, typeConverter=converter)


def accessors(name: str) -> Any:
    """Getter and setter of a param."""

    def get(self: Any) -> Any:
        return self.getOrDefault(name)

    def put(self: Any, value: Any) -> Any:
        return self._set(**{name: value})

    return get, put


class TorchParams(
    HasFeaturesCol, HasLabelCol, HasPredictionCol, HasSeed, HasValidationIndicatorCol, HasHandleInvalid
):  # fmt: skip
    featuresCol = param(
        "featuresCol", "a column of vectors, of arrays or of numbers, or a list of columns of numbers", _to_columns
    )
    batchSize = param("batchSize", "rows of a batch of one rank (>= 1)", _to_count("batchSize"))
    epochs = param("epochs", "passes over the rows (>= 1)", _to_count("epochs"))
    validationFraction = param(
        "validationFraction",
        "the fraction of the rows, chosen by their values, that are for validation and not for training",
        _to_fraction,
    )
    handleInvalid = param(
        "handleInvalid",
        "what to do with rows that have a null, NaN, or an array of another length: error; skip leaves them out; keep "
        "makes features and labels of NaN",
        _to_handle_invalid,
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(batchSize=32, epochs=1, seed=0, handleInvalid="error")

    def getOrDefault(self, param: Any) -> Any:
        value: Any = super().getOrDefault(param)
        return value.value if isinstance(value, Held) else value

    getFeaturesCol, setFeaturesCol = accessors("featuresCol")
    getBatchSize, _ = accessors("batchSize")
    getEpochs, _ = accessors("epochs")
    getValidationFraction, _ = accessors("validationFraction")
    _, setPredictionCol = accessors("predictionCol")
    _, setHandleInvalid = accessors("handleInvalid")


class TorchModel(Model, TorchParams, ObjectsStage):
    """The model of TorchEstimator. transform(df) adds the prediction, without ranks: Spark's tasks compute it.

    module: the trained torch.nn.Module, on the CPU.
    history: a dict for each epoch: the mean "loss", and "validation_loss" if some rows were for validation.

    handleInvalid: as for TorchEstimator. With "error", the exception that Spark raises has the row; with "keep", the
    prediction is what the module makes of NaN, and null instead of a single NaN.
    """

    # The name in saved pipelines.
    __module__ = "spark_supplier"

    def __init__(
        self, module: torch.nn.Module, history: list[dict[str, float]], num_features: int, is_scalar: bool
    ) -> None:
        super().__init__()
        self.module = module
        self.history = history
        self._num_features = num_features
        self._is_scalar = is_scalar

    @property
    def numFeatures(self) -> int:
        """Of a row."""
        return self._num_features

    def _objects(self) -> dict[str, Any]:
        return {
            "module": self.module, "history": self.history, "num_features": self._num_features,
            "is_scalar": self._is_scalar,
        }  # fmt: skip

    def _transform(self, dataset: DataFrame) -> DataFrame:
        """The prediction is a double if the module has one output, else an array<float>."""
        # It imports pandas, as Spark does for it.
        from spark_supplier.ml.prediction import prediction_udf

        name = self.getPredictionCol()
        is_exact = dataset.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
        for column in dataset.columns:
            # Spark would replace it.
            if name == column or (not is_exact and name.lower() == column.lower()):
                raise RunError(f"predictionCol '{name}' is a column of df already ('{column}'): set another one")
        features = Features(dataset, self.getFeaturesCol(), self._num_features)
        array = features.array
        if self.getHandleInvalid() == "skip":
            dataset = dataset.where(features.is_valid())
        else:
            array = features.or_error() if self.getHandleInvalid() == "error" else features.or_nan()
        predict = prediction_udf(self.module, self._num_features, self._is_scalar, self.getBatchSize())
        with python_of_driver(session_of(dataset.sparkSession)):
            prediction = predict(array)
        return dataset.withColumn(name, prediction)
