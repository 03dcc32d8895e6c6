"""A column of a batch as an Arrow array: from arrays, tensors, pandas and lists."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy
import pyarrow
import pyarrow.compute
from pyarrow import types

from spark_supplier.arguments import MASK_SUFFIX
from spark_supplier.errors import ColumnError
from spark_supplier.jagged import Jagged, on_host

if TYPE_CHECKING:
    from spark_supplier import _core

# By the format in a result. pyarrow has no arrays of months: their numbers are written.
_TYPES: dict[str, Callable[[], Any]] = {
    "b": pyarrow.bool_, "c": pyarrow.int8, "C": pyarrow.uint8, "s": pyarrow.int16, "S": pyarrow.uint16,
    "i": pyarrow.int32, "I": pyarrow.uint32, "l": pyarrow.int64, "L": pyarrow.uint64, "e": pyarrow.float16,
    "f": pyarrow.float32, "g": pyarrow.float64, "u": pyarrow.string, "z": pyarrow.binary, "tdD": pyarrow.date32,
    "tDu": lambda: pyarrow.duration("us"), "ttn": lambda: pyarrow.time64("ns"), "tiM": pyarrow.int32,
}  # fmt: skip
_KEYS, _VALUES = "keys", "values"


def arrow_field(field: _core.ResultField) -> Any:
    """A field of a result as pyarrow.Field."""
    name, form, numbers, is_nullable, children = field
    inner = [arrow_field(child) for child in children]
    if form.startswith("+w:"):
        item = inner[0] if inner else pyarrow.field("item", _TYPES[numbers](), nullable=False)
        kind = pyarrow.list_(item, int(form[3:]))
    elif form == "+l":
        kind = pyarrow.list_(inner[0])
    elif form == "+s":
        kind = pyarrow.struct(inner)
    elif form == "+m":
        kind = pyarrow.map_(*inner[0].type)
    elif form.startswith("tsu:"):
        kind = pyarrow.timestamp("us", form[4:] or None)
    elif form.startswith("d:"):
        kind = pyarrow.decimal128(*map(int, form[2:].split(",")[:2]))
    else:
        kind = _TYPES[form]()
    return pyarrow.field(name, kind, is_nullable)


def array_of(name: str, values: Any, kind: Any, mask: Any = None) -> Any:
    """The values as an array of that type. kind: None: of the type that they have.

    mask: what a batch has of nulls, where it is False; of lists in the form of the column (forms.py). A list of one
    length whose values are all null is null, and so is a padded one without values.
    """
    try:
        mask = on_host(mask)
        array = _converted(name, values, kind, mask)
        if isinstance(mask, numpy.ndarray):
            array = _with_nulls(array, mask.any(axis=tuple(range(1, mask.ndim))))
    except ColumnError:
        # Of something in it.
        raise
    except (ValueError, OverflowError, TypeError, pyarrow.ArrowException) as error:
        target = "" if kind is None else f" as {kind}"
        raise ColumnError(f"column '{name}' cannot be written{target}: {error}") from error
    if kind is not None and array.type != kind:
        raise ColumnError(
            f"column '{name}' has the type {array.type}, and the result has {kind}: cast it, or pass schema="
        )
    return array


def _converted(name: str, values: Any, kind: Any, mask: Any) -> Any:
    if type(values) is not numpy.ndarray:
        if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)):
            return _of_arrow(values, kind)
        if kind is not None and types.is_struct(kind) and str(getattr(values, "layout", "")) == "torch.sparse_csr":
            values = _sparse_vectors(values)
        values = on_host(values)
    if type(values) is numpy.ndarray and values.dtype.kind not in "OUS":
        # Most are. The questions below take longer than to convert a small batch.
        return _of_numpy(name, values, kind, mask)
    if type(values).__module__.partition(".")[0] == "pandas":
        return _of_pandas(name, values, kind)
    if isinstance(values, tuple) and hasattr(values, "offsets"):
        return _of_jagged(name, values, kind, mask)
    if isinstance(values, Mapping):
        return _of_mapping(name, values, kind)
    if isinstance(values, numpy.ma.MaskedArray):
        filled = values.filled(numpy.zeros((), values.dtype)[()])
        return array_of(name, filled, kind, ~numpy.ma.getmaskarray(values))
    if isinstance(values, numpy.ndarray) and values.dtype.kind not in "OUS":
        return _of_numpy(name, values, kind, mask)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(f"{type(values).__name__} is no array, tensor or list")
    return _of_list(name, list(values), kind, mask)


def _of_arrow(array: Any, kind: Any) -> Any:
    """Lists of one length become those of any length, and texts of another layout those of a result."""
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.combine_chunks()
    is_same_type = kind is not None and (
        (types.is_fixed_size_list(array.type) and types.is_list(kind))
        or ("string" in str(array.type) and types.is_string(kind))
        or (
            types.is_timestamp(array.type) and types.is_timestamp(kind) and (array.type.tz is None) == (kind.tz is None)
        )
    )
    return array.cast(kind) if is_same_type else array


def _sparse_vectors(values: Any) -> dict[str, Any]:
    """Structs as batches have them without ragged="sparse"."""
    rows = values.crow_indices().cpu()
    indices, numbers = values.col_indices().cpu().numpy().astype("int32"), values.values()
    sizes = numpy.full(len(rows) - 1, values.shape[1], "int32")
    return {"size": sizes, "indices": Jagged(indices, rows), "values": Jagged(numbers, rows)}


def _with_nulls(array: Any, is_valid: numpy.ndarray) -> Any:
    """Adds these nulls to those that it has."""
    if is_valid.all():
        return array
    return pyarrow.compute.if_else(pyarrow.array(is_valid), array, pyarrow.scalar(None, array.type))


def _is_list(kind: Any) -> Any:
    return types.is_list(kind) or types.is_fixed_size_list(kind)


def _lists(name: str, offsets: numpy.ndarray, values: Any, kind: Any, mask: Any, is_valid: Any = None) -> Any:
    """Lists of values that have no Arrow array yet. is_valid: None: no list is null."""
    if kind is not None and types.is_map(kind):
        raise ValueError("it has lists, and the result has maps: write a dict of keys and values")
    if kind is not None and not _is_list(kind):
        raise ValueError("it has lists")
    child = array_of(name, values, None if kind is None else kind.value_type, mask)
    if offsets[0] != 0 or offsets[-1] != len(child):
        child = child.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = offsets - offsets[0]
    if kind is None or types.is_list(kind):
        array = _of_offsets(offsets, child, pyarrow.list_(child.type) if kind is None else kind)
        return array if is_valid is None else _with_nulls(array, is_valid)
    lengths = numpy.diff(offsets)
    given = lengths if is_valid is None else lengths[is_valid]
    if (given != kind.list_size).any():
        raise ValueError(
            f"it has lists of {given.min()} to {given.max()} values: pass schema= with a list of any length"
        )
    return _fixed_lists(child, kind, numpy.full(len(lengths), True) if is_valid is None else is_valid)


def _of_offsets(offsets: numpy.ndarray, child: Any, kind: Any) -> Any:
    return pyarrow.Array.from_buffers(kind, len(offsets) - 1, [None, _buffer_of(offsets)], children=[child])


def _buffer_of(offsets: numpy.ndarray) -> Any:
    if offsets[-1] > numpy.iinfo("int32").max:
        raise ValueError("it has more than 2³¹ values in one batch: write smaller batches")
    return pyarrow.py_buffer(offsets.astype("int32"))


def _fixed_lists(child: Any, kind: Any, is_valid: numpy.ndarray) -> Any:
    """child: the values of the lists that are not null."""
    if not is_valid.all():
        places = numpy.zeros((len(is_valid), kind.list_size), "int64")
        places[is_valid] = numpy.arange(len(child)).reshape(-1, kind.list_size)
        child = child.take(pyarrow.array(places.reshape(-1))) if len(child) else pyarrow.nulls(places.size, child.type)
    return _with_nulls(pyarrow.Array.from_buffers(kind, len(is_valid), [None], children=[child]), is_valid)


def _inner_mask(mask: Any) -> Any:
    """The mask of the values of lists."""
    if isinstance(mask, numpy.ndarray):
        return None if mask.ndim == 1 else mask.reshape(mask.shape[0] * mask.shape[1], *mask.shape[2:])
    return None if mask is None else _flat(mask)[1]


def _flat(lists: Any) -> tuple[numpy.ndarray, Any]:
    """The offsets of lists, Jagged or of Python, and their values."""
    if hasattr(lists, "offsets"):
        return numpy.asarray(on_host(lists.offsets)), lists.values
    lists = list(lists)
    is_arrays = lists and all(hasattr(each, "dtype") for each in lists)
    return _offsets_of(map(len, lists), len(lists)), _joined(lists) if is_arrays else list(chain.from_iterable(lists))


def _offsets_of(lengths: Any, count: int) -> numpy.ndarray:
    offsets = numpy.zeros(count + 1, "int64")
    numpy.cumsum(numpy.fromiter(lengths, "int64", count), out=offsets[1:])
    return offsets


def _joined(arrays: list[Any]) -> Any:
    if all(hasattr(array, "detach") for array in arrays):
        import torch

        return torch.cat(arrays)
    return numpy.concatenate([numpy.asarray(array) for array in arrays])


def _of_jagged(name: str, values: Any, kind: Any, mask: Any) -> Any:
    """Lists of any length. Those of uint8 are bytes or text, unless the column is a list."""
    offsets, inner = numpy.asarray(on_host(values.offsets)), on_host(values.values)
    is_bytes = isinstance(inner, numpy.ndarray) and inner.dtype == numpy.uint8 and inner.ndim == 1
    if is_bytes and (kind is None or types.is_string(kind) or types.is_binary(kind)):
        return _bytes(offsets, inner, kind)
    return _lists(name, offsets, inner, kind, _inner_mask(mask))


def _bytes(offsets: numpy.ndarray, values: numpy.ndarray, kind: Any) -> Any:
    buffers = [None, _buffer_of(offsets), pyarrow.py_buffer(numpy.ascontiguousarray(values))]
    return pyarrow.Array.from_buffers(kind or pyarrow.binary(), len(offsets) - 1, buffers)


def _of_numpy(name: str, array: numpy.ndarray, kind: Any, mask: Any) -> Any:
    if array.ndim > 1:
        return _of_rows(name, array, kind, mask)
    if array.dtype.kind in "mM":
        return _of_times(array, kind)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype == numpy.float16 and kind != pyarrow.float16():
        array = array.astype(numpy.float32)
    made = pyarrow.array(array)
    if (
        kind is not None
        and kind != made.type
        and types.is_temporal(kind)
        and made.type == pyarrow.from_numpy_dtype(f"i{kind.bit_width // 8}")
    ):
        # The numbers that a tensor has of dates and times: batches have these.
        return made.view(kind)
    return made


def _of_rows(name: str, array: numpy.ndarray, kind: Any, mask: Any) -> Any:
    """Each row is a list of N values."""
    rows, width = array.shape[:2]
    offsets, values = numpy.arange(rows + 1) * width, array.reshape(rows * width, *array.shape[2:])
    if kind == pyarrow.binary() and array.dtype == numpy.uint8 and array.ndim == 2:
        return _bytes(offsets, values, kind)
    if kind is None and width > 0:
        # The next batch may have nulls.
        item = array_of(name, values, None, _inner_mask(mask))
        kind = pyarrow.list_(pyarrow.field("item", item.type, mask is not None or item.null_count > 0), width)
        return _fixed_lists(item, kind, numpy.full(rows, True))
    return _lists(name, offsets, values, kind, _inner_mask(mask))


def _of_times(array: numpy.ndarray, kind: Any) -> Any:
    """Days are dates. Other units are microseconds, in the zone of the column if there is one."""
    if array.dtype.kind == "m":
        return pyarrow.array(_in_unit(array, "timedelta64[us]"))
    if numpy.datetime_data(array.dtype)[0] != "D":
        is_timestamp = kind is not None and types.is_timestamp(kind)
        return pyarrow.array(_in_unit(array, "datetime64[us]"), kind if is_timestamp else None)
    days = array.astype("int64")[~numpy.isnat(array)]
    if (days != days.astype("int32")).any():
        raise OverflowError("a day does not fit into 32 bits")
    return pyarrow.array(array)


def _in_unit(array: numpy.ndarray, unit: str) -> numpy.ndarray:
    """The same times. What is finer than a microsecond is cut, as by Spark."""
    made = array.astype(unit)
    is_wrong = ~numpy.isnat(array) & (made.astype(array.dtype) != array)
    if numpy.can_cast(array.dtype, made.dtype, "safe"):
        for value in array[is_wrong][:1]:
            raise OverflowError(f"{value} does not fit into 64 bits of microseconds")
    elif unit == "datetime64[D]":
        for value in array[is_wrong][:1]:
            raise ValueError(f"{value} has a time of day, and a date has none: write its day, or declare a timestamp")
    return made


def _of_pandas(name: str, series: Any, kind: Any) -> Any:
    zone = getattr(series.dtype, "tz", None)
    if zone is not None:
        instants = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return _of_times(instants, kind or pyarrow.timestamp("us", str(zone)))
    if isinstance(series.dtype, numpy.dtype) and series.dtype.kind not in "OUS":
        return _of_numpy(name, series.to_numpy(), kind, None)
    numbers = getattr(series.dtype, "numpy_dtype", None)
    if isinstance(numbers, numpy.dtype) and numbers.kind in "biuf":
        return pyarrow.array(series)
    values = zip(series.tolist(), series.isna().to_numpy())
    return _of_list(name, [None if is_null else value for value, is_null in values], kind, None)


def _of_list(name: str, values: list[Any], kind: Any, mask: Any) -> Any:
    """Python's values. None is null."""
    first = next((value for value in values if value is not None), None)
    if first is None and kind is None and values:
        raise ValueError("all its values are None, so its type is not known: pass schema=")
    is_any_list = isinstance(first, Mapping) or (hasattr(first, "__len__") and not isinstance(first, _SCALARS))
    if types.is_nested(kind) if kind is not None else is_any_list:
        is_valid = numpy.fromiter((value is not None for value in values), bool, len(values))
        if isinstance(first, Mapping) if kind is None else not _is_list(kind):
            return _with_nulls(_of_dicts(name, values, kind), is_valid)
        return _of_sequences(name, values, kind, mask, is_valid)
    is_time = isinstance(first, (datetime.date, datetime.timedelta))
    if is_time if kind is None else types.is_temporal(kind) and not types.is_time(kind):
        if kind is None and getattr(first, "tzinfo", None) is not None:
            raise ValueError("its times have a zone: write it as a pandas Series, or as an Arrow array")
        is_duration = isinstance(first, datetime.timedelta) if kind is None else types.is_duration(kind)
        times = numpy.array(values, "timedelta64[us]" if is_duration else "datetime64[us]")
        is_date = not isinstance(first, datetime.datetime) if kind is None else types.is_date(kind)
        return _of_times(_in_unit(times, "datetime64[D]") if is_date and not is_duration else times, kind)
    is_float = type(first) is float and (kind is None or types.is_floating(kind))
    return _cast(pyarrow.array(values, pyarrow.float64() if is_float else None), kind)


_SCALARS = (str, bytes, bytearray, memoryview)


def _cast(array: Any, kind: Any) -> Any:
    """Numbers of Python in the type of the column. What it cannot hold is refused."""
    of = array.type
    if types.is_time(of):
        return array.cast(pyarrow.time64("ns"))
    is_number = kind is not None and (
        types.is_null(of)
        or (types.is_integer(of) and (types.is_integer(kind) or types.is_floating(kind) or types.is_time(kind)))
        or (types.is_floating(of) and types.is_floating(kind))
        or (types.is_decimal(of) and types.is_decimal(kind))
    )
    made = array.cast(kind) if is_number else array
    if is_number and types.is_floating(of):
        is_lost = pyarrow.compute.not_equal(pyarrow.compute.is_inf(made), pyarrow.compute.is_inf(array))
        for value in array.filter(is_lost)[:1]:
            raise OverflowError(f"{value} is no {kind}")
    return made


def _of_sequences(name: str, values: list[Any], kind: Any, mask: Any, is_valid: numpy.ndarray) -> Any:
    """Lists, arrays or tensors, of which some may be None."""
    given = [value for value in values if value is not None]
    kinds = set(map(type, given))
    # Lists of structs, as batches have them.
    are_structs = bool(kinds) and all(issubclass(each, Mapping) for each in kinds)
    lists = [next(iter(value.values())) for value in given] if are_structs else given
    lengths = numpy.zeros(len(values), "int64")
    lengths[is_valid] = numpy.fromiter(map(len, lists), "int64", len(lists))
    offsets = numpy.append(0, numpy.cumsum(lengths))
    inner: Any
    if are_structs:
        inner = {within: _flat([value[within] for value in given])[1] for within in given[0]}
    elif kind is None and offsets[-1] == 0:
        raise ValueError("all its lists are empty, so their type is not known: pass schema=")
    elif given and all(hasattr(each, "dtype") for each in kinds):
        inner = _joined(given)
    else:
        inner = list(chain.from_iterable(given))
    return _lists(name, offsets, inner, kind, _inner_mask(mask), is_valid)


def _of_dicts(name: str, values: list[Any], kind: Any) -> Any:
    """Dicts of Python, of which some may be None: structs, or maps if the column is one."""
    for value in values:
        if value is not None and not isinstance(value, Mapping):
            raise TypeError(f"{value!r} is a {type(value).__name__}, not a dict")
    given = [value or {} for value in values]
    if kind is not None and types.is_map(kind):
        offsets = _offsets_of(map(len, given), len(given))
        both = ([key for value in given for key in value], [item for value in given for item in value.values()])
        return _map(name, offsets, *both, kind, None)
    names = dict.fromkeys(chain([] if kind is None else (field.name for field in kind), chain.from_iterable(given)))
    return _of_mapping(name, {within: [value.get(within) for value in given] for within in names}, kind)


def _of_mapping(name: str, values: Mapping[str, Any], kind: Any) -> Any:
    """A struct, or for a map its keys and values, which are lists. Masks of batches give nulls."""
    if kind is not None and types.is_map(kind):
        return _of_map(name, values, kind)
    if kind is not None and not types.is_struct(kind):
        raise ValueError(f"a dict is no list: set ragged={{{name!r}: 'list'}}, or write Jagged(values, offsets)")
    fields = dict.fromkeys(values) if kind is None else {field.name: field.type for field in kind}
    masks = {within: within + MASK_SUFFIX for within in fields if within + MASK_SUFFIX not in fields}
    for missing in (within for within in fields if within not in values):
        raise ValueError(f"its field '{missing}' is missing in this batch")
    for unknown in (within for within in values if within not in fields and within not in masks.values()):
        raise ValueError(f"the result has no field '{unknown}' in it: leave it out, or pass schema=")
    arrays = [
        array_of(f"{name}.{within}", values[within], of, values.get(masks.get(within, "")))
        for within, of in fields.items()
    ]
    lengths = dict(zip(fields, map(len, arrays)))
    if len(set(lengths.values())) != 1:
        raise ValueError(f"its fields have different numbers of values, or there are none: {lengths}")
    made = [pyarrow.field(within, array.type) for within, array in zip(fields, arrays)]
    return pyarrow.StructArray.from_arrays(arrays, fields=made if kind is None else list(kind))


def _of_map(name: str, values: Mapping[str, Any], kind: Any) -> Any:
    if set(values) - {_KEYS + MASK_SUFFIX, _VALUES + MASK_SUFFIX} != {_KEYS, _VALUES}:
        raise ValueError("a map is a dict of 'keys' and 'values', both lists")
    (offsets, keys), (others, items) = (_flat(values[part]) for part in (_KEYS, _VALUES))
    if not numpy.array_equal(offsets, others):
        raise ValueError("its keys and its values have lists of different lengths")
    return _map(name, offsets, keys, items, kind, _inner_mask(values.get(_VALUES + MASK_SUFFIX)))


def _map(name: str, offsets: numpy.ndarray, keys: Any, items: Any, kind: Any, mask: Any) -> Any:
    parts = array_of(f"{name}.keys", keys, kind.key_type), array_of(f"{name}.values", items, kind.item_type, mask)
    entries = pyarrow.StructArray.from_arrays(parts, fields=[kind.key_field, kind.item_field])
    return _of_offsets(offsets, entries, kind)
