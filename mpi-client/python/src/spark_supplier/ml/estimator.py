"""TorchEstimator: training with PyTorch as a stage of Spark ML's pipelines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import keyword_only
from pyspark.ml import Estimator
from pyspark.ml.param import TypeConverters
from pyspark.sql import functions

from spark_supplier.driver.frame_checks import check_frame, quoted
from spark_supplier.driver.supplier import Supplier
from spark_supplier.errors import ConfigError, RunError
from spark_supplier.ml.features import Features, Label, labels_of, require_columns, shown_column
from spark_supplier.ml.torch_model import Held, ObjectsStage, TorchModel, TorchParams, accessors, held, is_json, param
from spark_supplier.ml.training import Training, train
from spark_supplier.settings import Rows

if TYPE_CHECKING:
    import torch
    from pyspark.sql import DataFrame

# Params of which None is a value.
_OPTIONAL = ("optimizer", "validationFraction", "validationIndicatorCol")
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
    return held(value) if isinstance(value, (Supplier, Held)) else TypeConverters.toInt(value)


def _to_rows_options(value: Any) -> Any:
    options = dict(value.value if isinstance(value, Held) else value)
    possible = [option.name for option in dataclasses.fields(Rows) if option.name not in _OWN_OPTIONS]
    for name in options:
        if name in _OWN_OPTIONS:
            raise ConfigError(f"rowsOptions has '{name}', which the estimator sets: {_OWN_OPTIONS[name]}")
        if name not in possible:
            raise ConfigError(f"rowsOptions has '{name}', must be options of Rows: {', '.join(possible)}")
    return held(options)


class TorchEstimator(Estimator[TorchModel], TorchParams, ObjectsStage):
    """An Estimator of pyspark.ml. fit(df) trains with DistributedDataParallel on all ranks, and returns a TorchModel.

    model: a torch.nn.Module, or a function without arguments that makes one. Its input is float32, of shape
        (rows, features): integers above 2^24, of which that keeps no digits, are refused.
    loss: a function of output and labels, for example torch.nn.CrossEntropyLoss(). Losses of torch.nn get the labels
        that they need: CrossEntropyLoss, NLLLoss and MultiMarginLoss int64 of shape (rows,), all others float32 of the
        output's shape. Another function gets int64 of an integer column, else float32: of the output's shape if the
        model has one output, else of shape (rows,).
    optimizer: a function of the model's parameters. Not set: torch.optim.Adam.
    featuresCol: the features: a column of vectors (of VectorAssembler), of arrays or of numbers, or a list of columns
        of numbers.
    labelCol: a column of numbers. predictionCol: what the model adds.
    batchSize: rows of a batch, of one rank and of transform(). A rank repeats some rows, so that all make equal steps.
    epochs, seed: as for Rows.
    validationIndicatorCol: a column that is true for the rows that are for validation, and not for training.
    validationFraction: the fraction of rows for that, chosen by a hash of their values: equal rows stay together.
    handleInvalid: what fit() and the model do with rows that have a null, NaN, or an array of another length. "error":
        a RunError with the first of them; "skip": they are left out; "keep": features and labels are NaN, which the
        model and the loss must know. With the last two, and vectors or arrays whose length no metadata say, Spark
        computes one row first, whose length counts.
    supplier: the number of ranks, or a Supplier. In the `with` block of that, all fits have the same ranks.
    rowsOptions: a dict of other options of Rows, for example shuffle or cache.

    save() pickles what is no JSON: the model, the loss, the optimizer, a Supplier (without its ranks). Load only what
    you trust.
    """

    # The name in saved pipelines.
    __module__ = "spark_supplier"

    model = param("model", "a torch.nn.Module, or a function that makes one", held)
    loss = param("loss", "a function of output and labels", held)
    optimizer = param("optimizer", "a function of the model's parameters; None: torch.optim.Adam", held)
    supplier = param("supplier", "the number of ranks, or a Supplier", _to_supplier)
    rowsOptions = param("rowsOptions", "a dict of other options of Rows", _to_rows_options)

    @keyword_only
    def __init__(
        self,
        *,
        model: torch.nn.Module | Callable[[], torch.nn.Module] | None = None,
        loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
        optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer] | None = None,
        featuresCol: str | Sequence[str] = "features",
        labelCol: str = "label",
        predictionCol: str = "prediction",
        batchSize: int = 32,
        epochs: int = 1,
        seed: int = 0,
        validationIndicatorCol: str | None = None,
        validationFraction: float | None = None,
        handleInvalid: str = "error",
        supplier: int | Supplier = 1,
        rowsOptions: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._setDefault(optimizer=None, supplier=1, rowsOptions={})
        self.setParams(**self._input_kwargs)

    def setParams(self, **params: Any) -> TorchEstimator:
        """Sets the params of the constructor by their names. None is set, too: clear(param) gives the default back."""
        unknown = [name for name in params if not self.hasParam(name)]
        if unknown:
            raise TypeError(f"TorchEstimator has no param '{unknown[0]}', but {', '.join(p.name for p in self.params)}")
        self._set(**params)
        return self

    getModel, setModel = accessors("model")
    getLoss, setLoss = accessors("loss")
    getOptimizer, setOptimizer = accessors("optimizer")
    getSupplier, setSupplier = accessors("supplier")
    getRowsOptions, setRowsOptions = accessors("rowsOptions")
    _, setLabelCol = accessors("labelCol")
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
        labels = labels_of(self.getLoss())
        first, second = self._split(dataset)
        features, label = Features(first, self.getFeaturesCol()), Label(first, self.getLabelCol(), labels)
        if features.alias == label.name:
            raise RunError(f"featuresCol and labelCol are both '{label.name}': the model would learn its own input")
        if self.getHandleInvalid() != "error" and features.size is None:
            features.size = features.of_first_row(first)
        training = Training(
            self.getModel(), self.getLoss(), self.getOptimizer(), self.getSeed(), features.alias, label.name, labels
        )  # fmt: skip
        rows = Rows(
            self._selected(first, features, label), columns=[features.alias, label.name],
            batch_size=self.getBatchSize(), epochs=self.getEpochs(), seed=self.getSeed(),
            validation=None if second is None else self._selected(second, features, label),
            **self.getRowsOptions(),
        )  # fmt: skip
        supplier = self.getSupplier()
        trained = (supplier if isinstance(supplier, Supplier) else Supplier(supplier)).run(train, rows, training)
        model = TorchModel(trained.module, trained.history, trained.size, trained.is_scalar)
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

    def _selected(self, df: DataFrame, features: Features, label: Label) -> DataFrame:
        """The columns for the ranks, with the user's names, which errors repeat."""
        of_features = functions.concat(functions.lit(f"whose '{features.name}' is "), shown_column(features.array))
        if self.getHandleInvalid() == "skip":
            kept = df.where(features.is_valid() & label.is_valid())
            columns = features.array, label.cast()
        elif self.getHandleInvalid() == "keep":
            kept, columns = df, (features.or_nan(), label.or_nan(of_features))
        else:
            kept, columns = df, (features.or_error(), label.or_error(of_features))
        return kept.select(columns[0].alias(features.alias), columns[1].alias(label.name))
