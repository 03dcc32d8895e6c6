"""The rows that the caller of Supplier.run reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy

from supply.dataset_options import MASK, MASK_SUFFIX
from supply.errors import ColumnError
from supply.result_columns import Column
from supply.results import Result

if TYPE_CHECKING:
    from supply import _core


class RunRows(Result):
    """A Result whose batches may have all columns that the rank gets. Those that the schema does not name are left out.

    columns, nulls: of the data set. A column with a mask has nulls again.
    """

    def __init__(
        self, pair: _core.Pair, name: str, schema: Any, columns: Sequence[str], nulls: Mapping[str, Any]
    ) -> None:
        super().__init__(pair, name, schema)
        self._masks = {name: name + MASK_SUFFIX for name, value in nulls.items() if value == MASK}
        self._received = {*columns, *self._masks.values()}

    def _columns(self, batch: Mapping[str, Any]) -> dict[str, Column]:
        assert self._fields is not None
        named = {field[0] for field in self._fields}
        kept = {name: values for name, values in batch.items() if name in named or name not in self._received}
        written = super()._columns(kept)
        for name in written.keys() & self._masks.keys():
            mask = batch.get(self._masks[name])
            if mask is None:
                raise ColumnError(
                    f"column '{name}' has nulls='mask': write '{self._masks[name]}' beside it, so that nulls come back"
                )
            if not mask.all():
                valid = numpy.asarray(mask.cpu() if hasattr(mask, "cpu") else mask, bool)
                written[name].validity = numpy.packbits(valid, bitorder="little")
        return written
