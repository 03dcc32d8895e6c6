"""Values in place in Arrow: columns of the type binary_view."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from supply.errors import ColumnError


def require(formats: Iterable[tuple[str, str]]) -> None:
    """Raises ColumnError if a column has values in place, and pyarrow is loaded and too old for them.

    pyarrow 14 and 15 take their type for an unknown one, or fail later without a reason. formats: of each column, its
    name and its Arrow format.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or hasattr(pyarrow, "binary_view"):
        return
    for name, form in formats:
        if form == "vz":
            raise ColumnError(
                f"column '{name}' (Arrow format 'vz'): its values are in place, and pyarrow {pyarrow.__version__} has "
                "no binary_view for them: install pyarrow 16 or newer, or supply without --in-place"
            )
