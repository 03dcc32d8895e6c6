"""The buffers of a column of a result, and columns with columns in them: lists, structs and maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy

from spark_supplier.arguments import MASK_SUFFIX
from spark_supplier.errors import ColumnError
from spark_supplier.result_schema import type_name

if TYPE_CHECKING:
    from spark_supplier import _core

# Makes a column of values, of the type of a field, or of the type that they have. Its name is for errors.
Convert = Callable[[str, Any, "_core.ResultField | None"], "Column"]

_MAP = ("keys", "values")


@dataclass
class Column:
    """Buffers in Arrow's layout."""

    rows: int
    form: str
    data: Any = None
    child_form: str = ""
    offsets: Any = None
    validity: Any = None
    # A list of Python has values that may be None in a later batch.
    nullable: bool = False
    # By name.
    children: dict[str, Column] = field(default_factory=dict)

    def field(self, name: str) -> _core.ResultField:
        children = [child.field(within) for within, child in self.children.items()]
        return name, self.form, self.child_form, self.nullable or self.validity is not None, children

    def buffers(self) -> list[_core.ResultBuffers]:
        """Its own, and then those of all in it."""
        own = (self.rows, self.validity, self.offsets, self.data)
        return [own, *chain.from_iterable(child.buffers() for child in self.children.values())]


def with_nulls(column: Column, is_valid: numpy.ndarray) -> Column:
    """Adds these nulls to those that it has, as of NaT."""
    valid = numpy.packbits(is_valid, bitorder="little")
    column.validity = valid if column.validity is None else column.validity & valid
    return column


def with_mask(column: Column, mask: Any) -> None:
    """Sets the nulls that a mask has: where it is False. Of lists it has the form of the column (forms.py).

    A fixed list whose values are all null becomes null, and so does a padded list without values.
    """
    if hasattr(mask, "offsets") or isinstance(mask, list):
        for child in column.children.values():
            with_mask(child, _flat(mask)[1])
        return
    valid = numpy.asarray(mask.cpu() if hasattr(mask, "cpu") else mask, bool)
    if valid.ndim > 1:
        if column.form.startswith("+w:"):
            # Also where nothing is null: the next batch may have nulls.
            column.children = {"item": _child_of(column)}
            column.data, column.child_form = None, ""
        for child in column.children.values():
            with_mask(child, valid.reshape(valid.shape[0] * valid.shape[1], *valid.shape[2:]))
    has_value = valid.reshape(column.rows, *valid.shape[1:]).any(axis=tuple(range(1, valid.ndim)))
    if not (valid.all() and has_value.all()):
        with_nulls(column, has_value)


def offsets_of(lengths: Any, count: int) -> numpy.ndarray:
    offsets = numpy.zeros(count + 1, "int64")
    numpy.cumsum(numpy.fromiter(lengths, "int64", count), out=offsets[1:])
    if offsets[-1] > numpy.iinfo("int32").max:
        raise ValueError("it has more than 2 GiB in one batch: write smaller batches")
    return offsets.astype("int32")


def child_of(of: _core.ResultField | None, place: int = 0) -> _core.ResultField | None:
    """The field of a child. None: it has the type of its values."""
    if of is None:
        return None
    if not of[4]:
        # The numbers of a fixed list.
        return ("item", of[2], "", True, []) if of[2] else None
    return of[4][place]  # type: ignore[no-any-return]


def of_lists(name: str, offsets: numpy.ndarray, values: Any, of: _core.ResultField | None, convert: Convert) -> Column:
    """Lists of any length. offsets: of the lists in the values."""
    if of is not None and of[1] == "+m":
        raise ValueError("it has lists, and the result has maps: write a dict of keys and values")
    if offsets[0] != 0 and not isinstance(values, Mapping) and not hasattr(values, "offsets"):
        values, offsets = values[offsets[0] : offsets[-1]], offsets - offsets[0]
    return Column(len(offsets) - 1, "+l", offsets=offsets, children={"item": convert(name, values, child_of(of))})


def of_mapping(name: str, values: Mapping[str, Any], of: _core.ResultField | None, convert: Convert) -> Column:
    """A struct, or for a field that is a map its keys and values, which are Jagged. Masks of batches give nulls."""
    if of is not None and of[1] == "+m":
        return _of_map(name, values, of, convert)
    if of is not None and of[1] == "+l":
        raise ValueError(f"a dict is no list: set ragged={{{name!r}: 'list'}}, or write Jagged(values, offsets)")
    names = list(values) if of is None else [child[0] for child in of[4]]
    for missing in (within for within in names if within not in values):
        raise ValueError(f"its field '{missing}' is missing in this batch")
    masks = {within: within + MASK_SUFFIX for within in names if within + MASK_SUFFIX not in names}
    for unknown in (within for within in values if within not in names and within not in masks.values()):
        raise ValueError(f"the result has no field '{unknown}' in it: leave it out, or pass schema=")
    children = {
        within: convert(f"{name}.{within}", values[within], child_of(of, place)) for place, within in enumerate(names)
    }
    for within, mask in masks.items():
        if mask in values:
            with_mask(children[within], values[mask])
            if of is not None:
                children[within] = fitted(f"{name}.{within}", children[within], of[4][names.index(within)])
    lengths = {within: child.rows for within, child in children.items()}
    if len(set(lengths.values())) != 1:
        raise ValueError(f"its fields have different numbers of values, or there are none: {lengths}")
    return Column(next(iter(lengths.values())), "+s", children=children)


def _of_map(name: str, values: Mapping[str, Any], of: _core.ResultField, convert: Convert) -> Column:
    if set(values) - {part + MASK_SUFFIX for part in _MAP} != set(_MAP):
        raise ValueError("a map is a dict of 'keys' and 'values', both lists")
    (offsets, keys), (others, items) = (_flat(values[part]) for part in _MAP)
    if not numpy.array_equal(offsets, others):
        raise ValueError("its keys and its values have lists of different lengths")
    column = _map(name, offsets, keys, items, of, convert)
    mask = values.get("values" + MASK_SUFFIX)
    if mask is not None:
        [entries] = column.children.values()
        # As that of a list.
        values_of = Column(column.rows, "+l", children={"values": [*entries.children.values()][1]})
        with_mask(values_of, mask)
    return column


def _flat(lists: Any) -> tuple[numpy.ndarray, Any]:
    """The offsets of lists, Jagged or of Python, and their values."""
    if hasattr(lists, "offsets"):
        return host_offsets(lists.offsets), lists.values
    lists = list(lists)
    offsets = offsets_of(map(len, lists), len(lists))
    is_arrays = lists and all(hasattr(each, "dtype") for each in lists)
    return offsets, joined(lists) if is_arrays else list(chain.from_iterable(lists))


def _map(name: str, offsets: numpy.ndarray, keys: Any, values: Any, of: _core.ResultField, convert: Convert) -> Column:
    [entries] = of[4]
    parts = {
        part[0]: convert(f"{name}.{within}", given, part)
        for within, given, part in zip(_MAP, (keys, values), entries[4])
    }
    struct = Column(next(iter(parts.values())).rows, "+s", children=parts)
    return Column(len(offsets) - 1, "+m", offsets=offsets, children={entries[0]: struct})


def host_offsets(offsets: Any) -> numpy.ndarray:
    """Those of a Jagged, of a tensor or an array."""
    array = offsets.cpu().numpy() if hasattr(offsets, "cpu") else numpy.asarray(offsets)
    if len(array) and int(array[-1]) > numpy.iinfo("int32").max:
        raise ValueError("it has more than 2³¹ values in one batch: write smaller batches")
    return array.astype("int32")


def of_dicts(name: str, values: list[Any], of: _core.ResultField | None, convert: Convert) -> Column:
    """Dicts of Python, of which some may be None: structs, or maps if the field is one."""
    for value in values:
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is a {type(value).__name__}, not a dict")
    if of is not None and of[1] == "+m":
        given = [value or {} for value in values]
        keys = [key for value in given for key in value]
        items = [item for value in given for item in value.values()]
        return _map(name, offsets_of(map(len, given), len(given)), keys, items, of, convert)
    names = list(dict.fromkeys(chain.from_iterable(value for value in values if value is not None)))
    fields = {within: [None if value is None else value.get(within) for value in values] for within in names}
    if of is not None:
        fields = {**{child[0]: [None] * len(values) for child in of[4]}, **fields}
    return of_mapping(name, fields, of, convert)


def of_sequences(name: str, values: list[Any], of: _core.ResultField | None, convert: Convert) -> Column:
    """Lists, arrays or tensors, of which some may be None: lists of any length."""
    offsets = offsets_of(map(_length, values), len(values))
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, Mapping) for value in given):
        # Lists of structs, as batches have them.
        fields = {within: _flat([value[within] for value in given])[1] for within in given[0]}
        return of_lists(name, offsets, fields, of, convert)
    if of is None and offsets[-1] == 0:
        raise ValueError("all its lists are empty, so their type is not known: pass schema=")
    if given and all(hasattr(value, "dtype") for value in given):
        return of_lists(name, offsets, joined(given), of, convert)
    return of_lists(name, offsets, list(chain.from_iterable(given)), of, convert)


def _length(value: Any) -> int:
    """Of a list, or of a dict of lists. None has none."""
    return 0 if value is None else len(next(iter(value.values())) if isinstance(value, Mapping) else value)


def joined(arrays: list[Any]) -> Any:
    """Arrays or tensors as one."""
    if all(hasattr(array, "detach") for array in arrays):
        import torch

        return torch.cat(arrays)
    return numpy.concatenate([numpy.asarray(array) for array in arrays])


def fitted(name: str, column: Column, of: _core.ResultField) -> Column:
    """The same values in the form of the field. Raises ColumnError if they have another type."""
    form, child_form, children = of[1], of[2], of[4]
    if column.form.startswith("+w:") and form in ("+l", column.form) and children:
        return _spread(name, column, of)
    if column.form == form and column.children and not children:
        return _without_child(name, column, of)
    if column.form == "+l" and form.startswith("+w:"):
        return _packed(name, column, of)
    if (column.form, column.child_form) != (form, child_form):
        raise ColumnError(
            f"column '{name}' has the type {type_name(column.form, column.child_form)}, and the result has "
            f"{type_name(form, child_form)}: cast it, or pass schema="
        )
    # What Convert has made of children is fitted already.
    return column


def _child_of(column: Column) -> Column:
    """The values of a fixed list, as a column that may have nulls."""
    [child] = column.children.values() or [
        Column(column.rows * int(column.form[3:]), column.child_form, column.data, nullable=True)
    ]
    return child


def _without_child(name: str, column: Column, of: _core.ResultField) -> Column:
    """Fixed lists for a field whose lists have no nulls in them, but may be null."""
    [child] = column.children.values()
    if child.form == of[2] and not _has_nulls(column, child):
        return Column(column.rows, of[1], child.data, child.form, validity=column.validity, nullable=column.nullable)
    raise ColumnError(
        f"column '{name}' has lists of {type_name(child.form)} with nulls in its lists, and the result has "
        f"{type_name(of[1], of[2])}: pass schema= with a list of any length, as pyarrow.list_(pyarrow.float32())"
    )


def _has_nulls(column: Column, child: Column) -> bool:
    """Whether a list that is not null has a null in it."""
    if child.validity is None:
        return False
    valid = numpy.unpackbits(child.validity, count=child.rows, bitorder="little").reshape(column.rows, -1)
    return bool((valid.all(axis=1) != valid.any(axis=1)).any())


def _spread(name: str, column: Column, of: _core.ResultField) -> Column:
    """Fixed lists, whose numbers become a child."""
    width = int(column.form[3:])
    child = _child_of(column)
    [within] = of[4]
    made = Column(column.rows, of[1], validity=column.validity, nullable=column.nullable)
    made.children = {within[0]: fitted(name, child, within)}
    if of[1] == "+l":
        made.offsets = numpy.arange(0, (column.rows + 1) * width, width, dtype="int32")[: column.rows + 1]
    return made


def _packed(name: str, column: Column, of: _core.ResultField) -> Column:
    """Lists that all have the length of the field."""
    lengths = numpy.diff(column.offsets)
    [child] = column.children.values()
    width = int(of[1][3:])
    if column.validity is not None or (lengths != width).any() or column.offsets[0] != 0:
        least, most = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        raise ColumnError(
            f"column '{name}' has lists of {least} to {most} values, and the result has "
            f"{type_name(of[1], of[2])}: pass schema= with a list of any length, as pyarrow.list_(pyarrow.float32())"
        )
    if of[4]:
        return Column(
            column.rows, of[1], nullable=column.nullable, children={of[4][0][0]: fitted(name, child, of[4][0])}
        )
    if child.form != of[2] or child.validity is not None:
        raise ColumnError(
            f"column '{name}' has lists of {type_name(child.form)}, and the result has {type_name(of[1], of[2])}: cast "
            "it, or pass schema="
        )
    return Column(column.rows, of[1], child.data, child.form)
