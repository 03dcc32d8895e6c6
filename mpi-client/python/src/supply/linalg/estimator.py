"""What the estimators share."""

from __future__ import annotations

from typing import Any, TypeVar

from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasInputCol, HasOutputCol
from pyspark.ml.util import JavaMLReadable, JavaMLWritable
from pyspark.ml.wrapper import JavaEstimator, JavaModel

from supply.errors import RunError
from supply.spark.ranks import Ranks

_Model = TypeVar("_Model", bound=JavaModel)


class HasK(Params):
    k: Param[int] = Param(Params._dummy(), "k", "how many are computed (> 0)", typeConverter=TypeConverters.toInt)

    def setK(self, value: int) -> Any:  # noqa: N802  as pyspark.ml has it
        return self._set(k=value)

    def getK(self) -> int:  # noqa: N802
        return int(self.getOrDefault(self.k))


class HasSparse(Params):
    sparse: Param[bool] = Param(
        Params._dummy(),
        "sparse",
        "whether the ranks keep only the entries of vectors that are not 0",
        typeConverter=TypeConverters.toBoolean,
    )

    def setSparse(self, value: bool) -> Any:  # noqa: N802
        return self._set(sparse=value)

    def getSparse(self) -> bool:  # noqa: N802
        return bool(self.getOrDefault(self.sparse))


class VectorColumns(HasInputCol, HasOutputCol):
    def setInputCol(self, value: str) -> Any:  # noqa: N802
        return self._set(inputCol=value)

    def setOutputCol(self, value: str) -> Any:  # noqa: N802
        return self._set(outputCol=value)


class RanksEstimator(JavaEstimator[_Model], JavaMLWritable, JavaMLReadable[Any]):
    """An estimator of the JVM's package supply.linalg, with the name of the Python class.

    Its params are saved, its ranks are not: set them after load.
    """

    # PySpark finds the JVM's class by the module supply.linalg, which subclasses must name as theirs.

    def __init__(self, ranks: Ranks | None, **params: Any) -> None:
        super().__init__()
        self._ranks = ranks
        self._java_obj = self._new_java_obj(f"supply.linalg.{type(self).__name__}", self.uid)
        self._set(**{name: value for name, value in params.items() if value is not None})

    def setRanks(self, value: Ranks) -> Any:  # noqa: N802
        """The ranks that fit. They must live until fit() returns."""
        self._ranks = value
        return self

    def _fit_java(self, dataset: Any) -> Any:
        if self._ranks is None:
            raise RunError(f"{self.uid} has no ranks, which are not saved with it: call setRanks(ranks)")
        self._java_obj.setRanks(self._ranks._java)
        # Ctrl-C ends it, and errors of ranks are RunErrors.
        return self._ranks._ask(lambda: super(RanksEstimator, self)._fit_java(dataset))


class Decomposition(RanksEstimator[_Model], HasK, VectorColumns, HasSparse):
    """An estimator that computes k vectors from a column of vectors."""

    def __init__(
        self,
        ranks: Ranks | None = None,
        *,
        k: int | None = None,
        inputCol: str | None = None,  # noqa: N803
        outputCol: str | None = None,  # noqa: N803
        sparse: bool = False,
    ) -> None:
        super().__init__(ranks, k=k, inputCol=inputCol, outputCol=outputCol, sparse=sparse)
