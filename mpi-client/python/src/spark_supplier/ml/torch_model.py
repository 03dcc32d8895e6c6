"""TorchModel predicts with a trained module. What it shares with TorchEstimator: params, and how stages are saved."""

from __future__ import annotations

import functools
import io
import json
import pickle
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.ml import Model, Transformer
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import (
    HasFeaturesCol,
    HasHandleInvalid,
    HasLabelCol,
    HasPredictionCol,
    HasProbabilityCol,
    HasRawPredictionCol,
    HasSeed,
    HasValidationIndicatorCol,
)
from pyspark.ml.util import DefaultParamsReader, DefaultParamsWriter, MLReadable, MLReader, MLWritable, MLWriter

from spark_supplier.driver.frame_checks import quoted
from spark_supplier.driver.sessions import is_of_connect, session_of
from spark_supplier.driver.spark_jobs import python_of_driver
from spark_supplier.errors import ConfigError, RunError
from spark_supplier.ml.features import DTYPES, Features

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

# Parquet with the pickled objects, and with the tensors of the module among them.
_FILE = "objects"
_STATE = "state_dict"
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
        module = objects.get("module")
        tensors = {} if module is None else _tensors(module)
        content = _pickled(objects, tensors)
        params = {param.name: value for param, value in self._stage._paramMap.items() if param.name not in objects}
        DefaultParamsWriter.saveMetadata(self._stage, path, _context(self), paramMap=params)
        _write(self.sparkSession, f"{path}/{_FILE}", content)
        if module is not None:
            _write(self.sparkSession, f"{path}/{_STATE}", _saved(tensors))


class _Reader(MLReader[Any]):
    def __init__(self, stage_class: type[ObjectsStage]) -> None:
        super().__init__()
        self._class = stage_class

    def load(self, path: str) -> Any:
        metadata = DefaultParamsReader.loadMetadata(path, _context(self))
        content = _read(self.sparkSession, f"{path}/{_FILE}")
        objects = _unpickled(content, lambda: _read(self.sparkSession, f"{path}/{_STATE}"))
        stage: Any = self._class(**objects)
        stage._resetUid(metadata["uid"])
        # PySpark's reader would convert them.
        unset = [name for name, value in metadata["paramMap"].items() if value is None]
        DefaultParamsReader.getAndSetParams(stage, metadata, skipParams=unset)
        stage._set(**dict.fromkeys(unset))
        return stage


def _context(of_spark: MLWriter | MLReader[Any]) -> Any:
    """What pyspark.ml's own readers and writers take. Spark Connect has no context, and 3.5 takes no session."""
    return of_spark.sparkSession if is_of_connect(of_spark.sparkSession) else of_spark.sc


def _tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Those of the state_dict that nothing but their values tells from others."""
    import torch

    plain = (torch.Tensor, torch.nn.Parameter)
    state = module.state_dict(keep_vars=True)
    return {name: value for name, value in state.items() if type(value) in plain and not vars(value)}


def _saved(tensors: dict[str, torch.Tensor]) -> bytes:
    import torch

    file = io.BytesIO()
    torch.save({name: tensor.detach() for name, tensor in tensors.items()}, file)
    return file.getvalue()


class _Pickler(cloudpickle.Pickler):
    """Leaves out these tensors, which are saved by name."""

    def __init__(self, file: io.BytesIO, tensors: dict[str, torch.Tensor]) -> None:
        super().__init__(file)
        # Two names of one tensor become one.
        self._names = {id(tensor): name for name, tensor in tensors.items()}

    def persistent_id(self, value: Any) -> Any:
        name = self._names.get(id(value))
        return None if name is None else (name, type(value).__name__ == "Parameter", value.requires_grad)


class _Unpickler(pickle.Unpickler):
    """state: the bytes of the tensors. It is called if there are any."""

    def __init__(self, file: io.BytesIO, state: Callable[[], bytes]) -> None:
        super().__init__(file)
        self._state = state

    @functools.cached_property
    def _tensors(self) -> dict[str, torch.Tensor]:
        import torch

        found: dict[str, torch.Tensor] = torch.load(io.BytesIO(self._state()), map_location="cpu", weights_only=True)
        return found

    def persistent_load(self, found: Any) -> Any:
        import torch

        name, is_parameter, requires_grad = found
        if is_parameter and not isinstance(self._tensors[name], torch.nn.Parameter):
            self._tensors[name] = torch.nn.Parameter(self._tensors[name], requires_grad)
        return self._tensors[name]


def _pickled(objects: dict[str, Any], tensors: dict[str, torch.Tensor]) -> bytes:
    """Each object for itself, to name the one that cannot be pickled."""
    pickles = {}
    for name, value in objects.items():
        file = io.BytesIO()
        try:
            _Pickler(file, tensors).dump(value)
        except Exception as error:
            raise RunError(f"{name} cannot be saved, because it cannot be pickled: {error}") from error
        pickles[name] = file.getvalue()
    return pickle.dumps(pickles)


def _unpickled(content: bytes, state: Callable[[], bytes]) -> dict[str, Any]:
    return {name: _Unpickler(io.BytesIO(value), state).load() for name, value in pickle.loads(content).items()}


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


def _to_columns(value: Any) -> str | list[str]:
    return value if isinstance(value, str) else TypeConverters.toListString(value)


def to_count(name: str, least: int = 1) -> Callable[[Any], int]:
    def converted(value: Any) -> int:
        count: int = TypeConverters.toInt(value)
        if count < least:
            raise ConfigError(f"{name} is {count}, must be {least} or more")
        return count

    return converted


def _to_fraction(value: Any) -> float:
    fraction: float = TypeConverters.toFloat(value)
    if not 0 < fraction < 1:
        raise ConfigError(f"validationFraction is {fraction}, must be between 0 and 1")
    return fraction


def _to_one_of(name: str, values: Iterable[str]) -> Callable[[Any], str]:
    def converted(value: Any) -> str:
        if value not in values:
            raise ConfigError(f"{name} is {value!r}, must be one of {', '.join(values)}")
        return str(value)

    return converted


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


class SetsParams(Params):
    def setParams(self, **params: Any) -> Any:
        """Set the params of the constructor by their names.

        Parameters
        ----------
        **params
            Values by name. `None` is a value; `clear(param)` gives the default back.

        Returns
        -------
        The same stage.

        Raises
        ------
        TypeError
            If there is no such param.
        """
        for name in params:
            if not self.hasParam(name):
                names = ", ".join(param.name for param in self.params)
                raise TypeError(f"{type(self).__name__} has no param '{name}', but {names}")
        self._set(**params)
        return self


class TorchParams(
    SetsParams,
    HasFeaturesCol,
    HasLabelCol,
    HasPredictionCol,
    HasRawPredictionCol,
    HasProbabilityCol,
    HasSeed,
    HasValidationIndicatorCol,
    HasHandleInvalid,
):
    featuresCol = param(
        "featuresCol", "a column of vectors, of arrays or of numbers, or a list of columns of numbers", _to_columns
    )
    featuresDtype = param(
        "featuresDtype", "of the tensor of features: float32, or int64 for ids", _to_one_of("featuresDtype", DTYPES)
    )
    batchSize = param("batchSize", "rows of a batch of one rank (>= 1)", to_count("batchSize"))
    epochs = param("epochs", "passes over the rows (>= 1)", to_count("epochs"))
    validationFraction = param(
        "validationFraction",
        "the fraction of the rows, chosen by their values, that are for validation and not for training",
        _to_fraction,
    )
    handleInvalid = param(
        "handleInvalid",
        "what to do with rows that have a null, NaN, or an array of another length: error; skip leaves them out; keep "
        "makes features and labels of NaN",
        _to_one_of("handleInvalid", ("error", "skip", "keep")),
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresDtype="float32", batchSize=32, epochs=1, seed=0, handleInvalid="error")

    def getOrDefault(self, param: Any) -> Any:
        value: Any = super().getOrDefault(param)
        return value.value if isinstance(value, Held) else value

    getFeaturesCol, setFeaturesCol = accessors("featuresCol")
    getFeaturesDtype, _ = accessors("featuresDtype")
    getBatchSize, _ = accessors("batchSize")
    getEpochs, _ = accessors("epochs")
    getValidationFraction, _ = accessors("validationFraction")
    _, setPredictionCol = accessors("predictionCol")
    _, setRawPredictionCol = accessors("rawPredictionCol")
    _, setProbabilityCol = accessors("probabilityCol")
    _, setHandleInvalid = accessors("handleInvalid")


class TorchModel(Model, TorchParams, ObjectsStage):
    """The model of `TorchEstimator`. `transform` needs no ranks and no jar: Spark's tasks compute the prediction.

    A classifier adds `rawPredictionCol` and `probabilityCol`, vectors with a number for each class, and
    `predictionCol`, the class as a double. The vectors are the outputs and their softmax. For one output, they are
    (-output, output) and its sigmoid. An empty name, or `None`, leaves a column out.
    Another model adds `predictionCol` alone: a double if the module has one output, else an `array<float>`.

    Attributes
    ----------
    module : torch.nn.Module
        The trained module, on the CPU.
    history : list of dict
        For each epoch the mean `"loss"`, and `"validation_loss"` if some rows were for validation.

    Notes
    -----
    `handleInvalid` is that of `TorchEstimator`. With "error", the exception that Spark raises has the row. With "keep",
    the prediction is null if the module gives NaN.

    `save` writes the tensors of the module's `state_dict` beside the pickle of its classes. Both are Parquet in a
    folder of any file system of Hadoop. Load only what you trust.

    Examples
    --------
    >>> model.write().overwrite().save("hdfs:///models/plane")  # doctest: +SKIP
    >>> TorchModel.load("hdfs:///models/plane").transform(df).select("prediction")  # doctest: +SKIP
    """

    # The name in saved pipelines.
    __module__ = "spark_supplier.ml"

    def __init__(
        self,
        module: torch.nn.Module,
        history: list[dict[str, float]],
        num_features: int,
        num_outputs: int,
        num_classes: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.history = history
        self._num_features = num_features
        self._num_outputs = num_outputs
        self._num_classes = num_classes

    @property
    def numFeatures(self) -> int:
        """How many numbers the features of a row have."""
        return self._num_features

    @property
    def numClasses(self) -> int:
        """How many classes the model predicts; 0: it predicts numbers."""
        return self._num_classes

    def _objects(self) -> dict[str, Any]:
        return {
            "module": self.module, "history": self.history, "num_features": self._num_features,
            "num_outputs": self._num_outputs, "num_classes": self._num_classes,
        }  # fmt: skip

    def _transform(self, dataset: DataFrame) -> DataFrame:
        # It imports pandas, as Spark does for it.
        from pyspark.ml.functions import array_to_vector

        from spark_supplier.ml.prediction import prediction_udf

        names = {"prediction": self.getPredictionCol()}
        if self._num_classes:
            of_classes = {"raw": self.getRawPredictionCol(), "probability": self.getProbabilityCol(), **names}
            names = {field: name for field, name in of_classes.items() if name}
        self._require_new(dataset, list(names.values()))
        features = Features(dataset, self.getFeaturesCol(), self._num_features, self.getFeaturesDtype())
        array = features.array
        if self.getHandleInvalid() == "skip":
            dataset = dataset.where(features.is_valid())
        else:
            array = features.or_error() if self.getHandleInvalid() == "error" else features.or_nan()
        predict = prediction_udf(
            dataset.sparkSession, self.module, self._num_features, self._num_outputs == 1,
            list(names) if self._num_classes else None, self.getBatchSize(),
        )  # fmt: skip
        with python_of_driver(session_of(dataset.sparkSession)):
            prediction = predict(array)
        if not self._num_classes:
            return dataset.withColumn(names["prediction"], prediction)
        # Spark computes it once for all columns.
        held = f"{self.uid} predicts"
        predicted = dataset.withColumn(held, prediction)
        for field, name in names.items():
            value = predicted[quoted(held)][field]
            predicted = predicted.withColumn(name, value if field == "prediction" else array_to_vector(value))
        return predicted.drop(held)

    def _require_new(self, dataset: DataFrame, names: list[str]) -> None:
        """Refuses columns that are there, which Spark would replace."""
        is_exact = dataset.sparkSession.conf.get("spark.sql.caseSensitive") == "true"
        taken = {column if is_exact else column.lower(): column for column in dataset.columns}
        for name in names:
            key = name if is_exact else name.lower()
            if key in taken:
                raise RunError(
                    f"the model adds the column '{name}', which df has already ('{taken[key]}'): set another name in "
                    "predictionCol, rawPredictionCol or probabilityCol"
                )
            taken[key] = name
