"""TorchEstimator: training with PyTorch as a stage of Spark ML's pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.param.shared import HasWeightCol
from pyspark.sql import functions

from spark_supplier.arguments import shown
from spark_supplier.driver.frame_checks import check_frame, quoted
from spark_supplier.driver.supplier import Supplier
from spark_supplier.errors import ConfigError, RunError
from spark_supplier.ml.features import (
    Features,
    Label,
    Labels,
    checked,
    labels_of,
    require_columns,
    shown_column,
    takes_probabilities,
    weight_column,
)
from spark_supplier.ml.torch_model import (
    Held,
    ObjectsStage,
    TorchModel,
    TorchParams,
    accessors,
    held,
    is_json,
    param,
    to_count,
)
from spark_supplier.ml.training import Training, train
from spark_supplier.settings import Rows

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

# Params of which None is a value.
_OPTIONAL = (
    "optimizer", "numClasses", "weightCol", "rawPredictionCol", "probabilityCol", "validationFraction",
    "validationIndicatorCol", "supplier",
)  # fmt: skip
# Into which rows are hashed.
_SIDES = 1 << 30
# Options of Rows that the estimator sets, and by what.
_OWN_OPTIONS = {
    "df": "it is what fit() gets",
    "columns": "set featuresCol and labelCol",
    "batch_size": "set batchSize",
    "epochs": "set epochs",
    "seed": "set seed",
    "validation": "set validationFraction or validationIndicatorCol",
}


def _to_supplier(value: Any) -> Any:
    if not isinstance(value, (Supplier, Held)):
        raise ConfigError(f"supplier is {shown(value)}, must be a Supplier. For a number of ranks, set numRanks")
    return held(value)


def _to_rows_options(value: Any) -> Any:
    options = dict(value.value if isinstance(value, Held) else value)
    possible = [option.name for option in dataclasses.fields(Rows) if option.name not in _OWN_OPTIONS]
    for name in options:
        if name in _OWN_OPTIONS:
            raise ConfigError(f"rowsOptions has '{name}', which the estimator sets: {_OWN_OPTIONS[name]}")
        if name not in possible:
            raise ConfigError(f"rowsOptions has '{name}', must be options of Rows: {', '.join(possible)}")
    return held(options)


class TorchEstimator(Estimator[TorchModel], TorchParams, HasWeightCol, ObjectsStage):
    """An Estimator of pyspark.ml. `fit` trains with DistributedDataParallel on ranks, and returns a `TorchModel`.

    It is a classifier if `numClasses` is set, or if the loss takes classes (`CrossEntropyLoss`, `NLLLoss`,
    `MultiMarginLoss`). Otherwise it predicts the outputs of the model.

    Parameters
    ----------
    model : torch.nn.Module or callable
        A module, or a function without arguments that makes one. Its input has shape (rows, features).
    loss : callable
        A function of output and labels, for example `torch.nn.CrossEntropyLoss()`. Losses of `torch.nn` that take
        classes get int64 of shape (rows,), and all others float32 of the output's shape. Another function gets int64 of
        an integer column, else float32: of the output's shape if the model has one output, else of shape (rows,).
    optimizer : callable, default torch.optim.Adam
        A function of the model's parameters.
    numClasses : int, optional
        Labels are 0 to `numClasses` - 1. The model has as many outputs, which are logits or log-probabilities. With 2
        classes it may also have one output, the logit of class 1 (`BCEWithLogitsLoss`). Not set: as many as the model
        has outputs, if the loss takes classes.
    featuresCol : str or list of str, default "features"
        A column of vectors (of VectorAssembler), of arrays or of numbers, or a list of columns of numbers.
    featuresDtype : {"float32", "int64"}, default "float32"
        Of the model's input. Integers above 2^24, of which float32 loses digits, are refused. For ids, as an
        `Embedding` takes them, set "int64".
    labelCol : str, default "label"
        A column of numbers.
    weightCol : str, optional
        A column of numbers of 0 or more. The loss of a batch is then the mean of weight times loss over its rows. A
        loss of your own must return the loss of each row.
    predictionCol, rawPredictionCol, probabilityCol : str, default "prediction", "rawPrediction", "probability"
        What the model adds, as `TorchModel` says.
    batchSize : int, default 32
        Rows of a batch, of one rank and of `transform`. Ranks make equal steps, so some rows repeat.
    epochs, seed : int, default 1 and 0
        Passes over the rows, and the seed of their order and of the model.
    validationIndicatorCol : str, optional
        A column that is true for the rows that are for validation, and not for training.
    validationFraction : float, optional
        The fraction of rows for that, chosen by a hash of their values: equal rows stay together.
    handleInvalid : {"error", "skip", "keep"}, default "error"
        What `fit` and the model do with rows that have a null, NaN, a wrong weight, or an array of another length.
        "error": a RunError with the first of them. "skip": they are left out. "keep": features and labels are NaN,
        which the model and the loss must know; integers and weights have none. With the last two, and vectors or
        arrays whose length no metadata say, Spark computes one row first, whose length counts.
    numRanks : int, default 1
        How many ranks train.
    supplier : Supplier, optional
        Instead of `numRanks`, for its other settings. In its `with` block, all fits have the same ranks.
    rowsOptions : dict, optional
        Other options of `Rows`, for example shuffle or cache.

    Notes
    -----
    `None` is a value of a param. `clear(param)` gives the default back.

    `save` pickles what is no JSON: the model, the loss, the optimizer, a Supplier (without its ranks). Load only what
    you trust.

    Examples
    --------
    >>> from pyspark.ml.evaluation import MulticlassClassificationEvaluator
    >>> df = spark.range(100).selectExpr("id / 100 as x", "int(id >= 50) as label")
    >>> estimator = TorchEstimator(
    ...     model=torch.nn.Linear(1, 2), loss=torch.nn.CrossEntropyLoss(), featuresCol="x", numRanks=2
    ... )
    >>> predicted = estimator.fit(df).transform(df)
    >>> predicted.columns
    ['x', 'label', 'rawPrediction', 'probability', 'prediction']
    >>> accuracy = MulticlassClassificationEvaluator(metricName="accuracy").evaluate(predicted)
    """

    # The name in saved pipelines.
    __module__ = "spark_supplier.ml"

    model = param("model", "a torch.nn.Module, or a function that makes one", held)
    loss = param("loss", "a function of output and labels", held)
    optimizer = param("optimizer", "a function of the model's parameters; None: torch.optim.Adam", held)
    numClasses = param(
        "numClasses",
        "classes of the label (>= 2); not set: the outputs of the model, if the loss takes classes",
        to_count("numClasses", 2),
    )
    numRanks = param("numRanks", "how many ranks train (>= 1)", to_count("numRanks"))
    supplier = param("supplier", "a Supplier instead of numRanks", _to_supplier)
    rowsOptions = param("rowsOptions", "a dict of other options of Rows", _to_rows_options)

    @keyword_only
    def __init__(
        self,
        *,
        model: torch.nn.Module | Callable[[], torch.nn.Module] | None = None,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
        numClasses: int | None = None,
        featuresCol: str | Sequence[str] = "features",
        featuresDtype: Literal["float32", "int64"] = "float32",
        labelCol: str = "label",
        weightCol: str | None = None,
        predictionCol: str = "prediction",
        rawPredictionCol: str | None = "rawPrediction",
        probabilityCol: str | None = "probability",
        batchSize: int = 32,
        epochs: int = 1,
        seed: int = 0,
        validationIndicatorCol: str | None = None,
        validationFraction: float | None = None,
        handleInvalid: Literal["error", "skip", "keep"] = "error",
        numRanks: int = 1,
        supplier: Supplier | None = None,
        rowsOptions: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(optimizer=None, numRanks=1, supplier=None, rowsOptions={})
        self.setParams(**self._input_kwargs)

    getModel, setModel = accessors("model")
    getLoss, setLoss = accessors("loss")
    getOptimizer, setOptimizer = accessors("optimizer")
    getNumClasses, setNumClasses = accessors("numClasses")
    getNumRanks, setNumRanks = accessors("numRanks")
    getSupplier, setSupplier = accessors("supplier")
    getRowsOptions, setRowsOptions = accessors("rowsOptions")
    _, setFeaturesDtype = accessors("featuresDtype")
    _, setLabelCol = accessors("labelCol")
    _, setWeightCol = accessors("weightCol")
    _, setBatchSize = accessors("batchSize")
    _, setEpochs = accessors("epochs")
    _, setSeed = accessors("seed")
    _, setValidationIndicatorCol = accessors("validationIndicatorCol")
    _, setValidationFraction = accessors("validationFraction")

    def _objects(self) -> dict[str, Any]:
        return {each.name: self.getOrDefault(each) for each, value in self._paramMap.items() if not is_json(value)}

    def _fit(self, dataset: DataFrame) -> TorchModel:
        for needed in self.params:
            if needed.name not in _OPTIONAL and self._given(needed) is None:
                raise RunError(f"{needed.name} is not set: TorchEstimator needs {needed.doc}")
        check_frame(dataset, "dataset")
        loss, classes, weight = self.getLoss(), self._given(self.numClasses) or 0, self._given(self.weightCol)
        labels = labels_of(loss)
        if classes and takes_probabilities(loss):
            raise RunError(
                "numClasses is set, and the loss takes probabilities: let the model give logits, and take "
                "torch.nn.BCEWithLogitsLoss"
            )
        first, second = self._split(dataset)
        features = Features(first, self.getFeaturesCol(), dtype=self.getFeaturesDtype())
        label = Label(first, self.getLabelCol(), labels, classes, getattr(loss, "ignore_index", None))
        names = [features.alias, label.name, *([weight] if weight else [])]
        if len(set(names)) < len(names):
            raise RunError(f"featuresCol, labelCol and weightCol must be different, and are {', '.join(names)}")
        if self.getHandleInvalid() != "error" and features.size is None:
            features.size = features.of_first_row(first)
        training = Training(
            self.getModel(), loss, self.getOptimizer(), self.getSeed(), features.alias, label.name, labels, classes,
            weight,
        )  # fmt: skip
        supplier = self.getSupplier()
        if supplier is not None and self.isSet(self.numRanks):
            raise RunError("numRanks and supplier are both set: leave one out")
        rows = Rows(
            self._selected(first, features, label, weight), columns=names,
            batch_size=self.getBatchSize(), epochs=self.getEpochs(), seed=self.getSeed(),
            validation=None if second is None else self._selected(second, features, label, weight),
            **self.getRowsOptions(),
        )  # fmt: skip
        trained = (supplier or Supplier(self.getNumRanks())).run(train, rows, training)
        if labels == Labels.CLASSES:
            classes = trained.outputs
        model = TorchModel(trained.module, trained.history, trained.size, trained.outputs, classes)
        self._copyValues(model)
        model._resetUid(self.uid)
        return model

    def _given(self, param: Any) -> Any:
        return self.getOrDefault(param) if self.isDefined(param) else None

    def _split(self, df: DataFrame) -> tuple[DataFrame, DataFrame | None]:
        """The rows for training, and those for validation."""
        name, fraction = self._given(self.validationIndicatorCol), self._given(self.validationFraction)
        if name is not None:
            if fraction is not None:
                raise RunError("validationFraction and validationIndicatorCol are both set: leave one out")
            require_columns(df, [name], "validationIndicatorCol")
            kind = df.schema[name].dataType
            if kind.typeName() != "boolean":
                raise RunError(f"validationIndicatorCol '{name}' is {kind.simpleString()}, must be boolean")
            held_out = functions.coalesce(functions.col(quoted(name)), functions.lit(False))
            return df.where(~held_out), df.where(held_out)
        if fraction is not None:
            # By its values, a row is on one side also if Spark computes it again in another order.
            names = [
                quoted(field.name)
                for field in df.schema.fields
                if "map<" not in field.dataType.simpleString() and df.columns.count(field.name) == 1
            ]
            hashed = functions.xxhash64(*map(functions.col, names), functions.lit(self.getSeed()))
            is_held_out = functions.pmod(hashed, functions.lit(_SIDES)) < int(fraction * _SIDES)
            return df.where(~is_held_out), df.where(is_held_out)
        return df, None

    def _selected(self, df: DataFrame, features: Features, label: Label, weight: str | None) -> DataFrame:
        """The columns for the ranks, with the user's names, which errors repeat."""
        of_features = functions.concat(functions.lit(f"whose '{features.name}' is "), shown_column(features.array))
        weights = []
        if weight is not None:
            value, has_weight = weight_column(df, weight)
            if self.getHandleInvalid() == "skip":
                df = df.where(has_weight)
            else:
                value = checked(value, has_weight, f"weightCol '{weight}'", "is no number of 0 or more", of_features)
            weights = [value.alias(weight)]
        if self.getHandleInvalid() == "skip":
            kept = df.where(features.is_valid() & label.is_valid())
            columns = features.array, label.cast()
        elif self.getHandleInvalid() == "keep":
            kept, columns = df, (features.or_nan(), label.or_nan(of_features))
        else:
            kept, columns = df, (features.or_error(), label.or_error(of_features))
        return kept.select(columns[0].alias(features.alias), columns[1].alias(label.name), *weights)
