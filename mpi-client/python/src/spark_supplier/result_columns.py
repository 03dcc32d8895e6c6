"""A column of a batch, as the buffers of a result: from arrays, tensors, pandas and lists."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy

from spark_supplier.errors import ColumnError
from spark_supplier.jagged import Jagged
from spark_supplier.result_nested import (
    Column,
    child_of,
    fitted,
    host_offsets,
    of_dicts,
    of_lists,
    of_mapping,
    of_sequences,
    offsets_of,
    with_mask,
    with_nulls,
)  # fmt: skip
from spark_supplier.result_schema import type_name

if TYPE_CHECKING:
    from spark_supplier import _core

# numpy's types by the format in a result.
_NUMBERS = {
    "c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64",
    "e": "float16", "f": "float32", "g": "float64",
}  # fmt: skip
_FORMATS = {numpy.dtype(name): form for form, name in _NUMBERS.items()}
_KINDS = "numbers of 8 to 64 bits, booleans, datetime64, timedelta64, text, bytes, or lists or dicts of these"

# Devices whose memory numpy can read, in DLPack.
_CPU, _PINNED = 1, 3


def column_of(name: str, values: Any, field: _core.ResultField | None) -> Column:
    """The values as a column of that field. None: of the type that they have."""
    try:
        column = _converted(name, values, field)
    except ColumnError:
        # Of something in it.
        raise
    except (ValueError, OverflowError, TypeError) as error:
        target = "" if field is None else f" as {type_name(*field[1:3])}"
        raise ColumnError(f"column '{name}' cannot be written{target}: {error}") from error
    return column if field is None else fitted(name, column, field)


def on_host(values: Any) -> Any:
    """A tensor, or an array of a device, as a numpy array. Anything else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return _array_of(values.detach().cpu())
    if _is_on_device(values):
        import torch

        return _array_of(torch.from_dlpack(values).cpu())
    return values


def _array_of(tensor: Any) -> numpy.ndarray:
    if str(tensor.layout) != "torch.strided":
        raise TypeError(f"it is a tensor with {tensor.layout}: write its to_dense(), or Jagged(values, offsets)")
    # numpy has no bfloat16.
    array: numpy.ndarray = (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    return array


def _converted(name: str, values: Any, field: _core.ResultField | None) -> Column:
    if str(getattr(values, "layout", "")) == "torch.sparse_csr" and field is not None and field[1] == "+s":
        values = _sparse_vectors(values)
    values = on_host(values)
    if type(values).__module__.partition(".")[0] == "pandas":
        return _of_pandas(name, values, field)
    if isinstance(values, tuple) and hasattr(values, "offsets"):
        return _of_jagged(name, values, field)
    if isinstance(values, Mapping):
        return of_mapping(name, values, field, column_of)
    if isinstance(values, numpy.ma.MaskedArray):
        filled = _of_array(name, values.filled(numpy.zeros((), values.dtype)[()]), field)
        filled.nullable = True
        with_mask(filled, ~numpy.ma.getmaskarray(values))
        return filled
    if isinstance(values, numpy.ndarray) and values.dtype.kind not in "OUS":
        return _of_array(name, values, field)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(f"{type(values).__name__} is no array, tensor or list")
    return _of_list(name, list(values), field)


def _sparse_vectors(values: Any) -> dict[str, Any]:
    """Structs as batches have them without ragged="sparse"."""
    rows = values.crow_indices().cpu()
    indices, numbers = values.col_indices().cpu().numpy().astype("int32"), values.values()
    sizes = numpy.full(len(rows) - 1, values.shape[1], "int32")
    return {"size": sizes, "indices": Jagged(indices, rows), "values": Jagged(numbers, rows)}


def _is_on_device(values: Any) -> bool:
    """Whether it is an array of another library on a device, as CuPy's and JAX's."""
    return hasattr(values, "__dlpack_device__") and values.__dlpack_device__()[0] not in (_CPU, _PINNED)


def _of_jagged(name: str, values: Any, field: _core.ResultField | None) -> Column:
    """Lists of any length. Those of uint8 are bytes or text, unless the field is a list."""
    offsets, inner = host_offsets(values.offsets), on_host(values.values)
    is_bytes = isinstance(inner, numpy.ndarray) and inner.dtype == numpy.uint8 and inner.ndim == 1
    if is_bytes and (field is None or field[1] in ("u", "z")):
        form = "u" if field is not None and field[1] == "u" else "z"
        return Column(len(offsets) - 1, form, inner, offsets=offsets)
    return of_lists(name, offsets, inner, field, column_of)


def _of_array(name: str, array: numpy.ndarray, field: _core.ResultField | None) -> Column:
    array = numpy.ascontiguousarray(array)
    if array.dtype.kind in "mM" and array.ndim == 1:
        return _of_times(array, field)
    if array.dtype == bool and array.ndim == 1:
        return Column(len(array), "b", numpy.packbits(array, bitorder="little"))
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if array.dtype == numpy.float16 and (field is None or "e" not in field[1:3]) and array.ndim < 3:
        array = array.astype(numpy.float32)
    form = _FORMATS.get(array.dtype)
    if field is not None and array.ndim == 1 and form and form == _integers_of_time(field[1]):
        return Column(len(array), field[1], array)
    if form is None and not (array.ndim > 1 and array.dtype.kind in "bmM"):
        raise ValueError(f"it is an array of {array.dtype} with the shape {array.shape}: it must have {_KINDS}")
    if array.ndim == 1:
        return Column(len(array), form or "", array)
    rows, width = array.shape[:2]
    if field is not None and field[1] == "z" and form == "C" and array.ndim == 2:
        return Column(rows, "z", array, offsets=offsets_of(itertools.repeat(width, rows), rows))
    if width == 0:
        # Padded lists of a batch in which all are empty.
        return of_lists(name, numpy.zeros(rows + 1, "int32"), array.reshape(0, *array.shape[2:]), field, column_of)
    child = child_of(field)
    if form is not None and array.ndim == 2 and (child is None or _integers_of_time(child[1]) != form):
        return Column(rows, f"+w:{width}", array, child_form=form)
    values = array.reshape(rows * width, *array.shape[2:])
    return Column(rows, f"+w:{width}", children={"item": column_of(name, values, child)})


def _integers_of_time(form: str) -> str | None:
    """The numbers that a tensor has of dates and timestamps: batches have these."""
    if form in ("tdD", "tiM"):
        return "i"
    return "l" if form in ("tDu", "ttn") or form.startswith("tsu:") else None


def _of_times(array: numpy.ndarray, field: _core.ResultField | None) -> Column:
    """Days are dates. Other units are microseconds, in the zone of the field if there is one."""
    is_null = numpy.isnat(array)
    if array.dtype.kind == "m":
        form, unit = "tDu", "timedelta64[us]"
    elif numpy.datetime_data(array.dtype)[0] == "D":
        form, unit = "tdD", "datetime64[D]"
    else:
        form, unit = field[1] if field is not None and field[1].startswith("tsu:") else "tsu:", "datetime64[us]"
    numbers = numpy.where(is_null, 0, _in_unit(array, unit).view("int64"))
    if form == "tdD":
        numbers = _fitting(numbers, numpy.dtype("int32"))
        if numbers is None:
            raise OverflowError("a day does not fit into 32 bits")
    column = Column(len(array), form, numbers, nullable=True)
    return with_nulls(column, ~is_null) if is_null.any() else column


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


def _of_pandas(name: str, series: Any, field: _core.ResultField | None) -> Column:
    zone = getattr(series.dtype, "tz", None)
    if zone is not None:
        instants = series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return _of_times(instants, field or ("", f"tsu:{zone}", "", True, []))
    if isinstance(series.dtype, numpy.dtype) and series.dtype.kind not in "OUS":
        return _of_array(name, series.to_numpy(), field)
    is_null = series.isna().to_numpy()
    numbers = getattr(series.dtype, "numpy_dtype", None)
    if isinstance(numbers, numpy.dtype) and numbers.kind in "biuf":
        filled = series.to_numpy(dtype=numbers, na_value=numbers.type(0))
        return with_nulls(_of_array(name, filled, field), ~is_null)
    return _of_list(name, [None if null else value for value, null in zip(series.tolist(), is_null)], field)


def _of_list(name: str, values: list[Any], field: _core.ResultField | None) -> Column:
    """Python's values. None is null."""
    is_valid = numpy.fromiter((value is not None for value in values), bool, len(values))
    first = next((value for value in values if value is not None), None)
    if first is None and field is None and values:
        raise ValueError("all its values are None, so its type is not known: pass schema=")
    column = _of_values(name, values, first, field)
    column.nullable = True
    return column if is_valid.all() else with_nulls(column, is_valid)


def _of_values(name: str, values: list[Any], first: Any, field: _core.ResultField | None) -> Column:
    form = field[1] if field is not None else _form_of(first)
    if form in ("u", "z"):
        encoded = [value.encode() if form == "u" and type(value) is str else _encoded(value, form) for value in values]
        return Column(len(values), form, b"".join(encoded), offsets=offsets_of(map(len, encoded), len(values)))
    if form == "b":
        return _of_array(
            name, numpy.array([_checked(value, (bool, numpy.bool_), False) for value in values], bool), field
        )
    if form in _NUMBERS:
        return _of_array(name, _numbers(values, form), field)
    if form == "tdD" or form.startswith("tsu:"):
        times = numpy.array(values, "datetime64[us]")
        return _of_times(_in_unit(times, "datetime64[D]") if form == "tdD" else times, field)
    if form == "tDu":
        return _of_times(numpy.array(values, "timedelta64[us]"), field)
    if form in ("tiM", "ttn"):
        integers = [_nanoseconds(value) if isinstance(value, datetime.time) else value for value in values]
        return Column(len(values), form, _numbers(integers, "i" if form == "tiM" else "l"))
    if form in ("+s", "+m"):
        return of_dicts(name, values, field, column_of)
    if form == "+l" or form.startswith("+w:"):
        child = _form_of_numbers(values) if field is None else field[2]
        rows = _of_rows(name, values, child, field) if child in _NUMBERS else None
        return of_sequences(name, values, field, column_of) if rows is None else rows
    raise ValueError(f"a list cannot have the type {type_name(form)}: write it as an Arrow array")


def _nanoseconds(time: datetime.time) -> int:
    """Since midnight."""
    return ((time.hour * 60 + time.minute) * 60 + time.second) * 10**9 + time.microsecond * 1000


def _form_of(value: Any) -> str:
    """The format for a Python value."""
    if isinstance(value, (bool, numpy.bool_)):
        return "b"
    if isinstance(value, (datetime.datetime, datetime.date)):
        if getattr(value, "tzinfo", None) is not None:
            raise ValueError("its times have a zone: write it as a pandas Series, or as an Arrow array")
        return "tsu:" if isinstance(value, datetime.datetime) else "tdD"
    if isinstance(value, (datetime.timedelta, datetime.time)):
        return "tDu" if isinstance(value, datetime.timedelta) else "ttn"
    forms: tuple[tuple[Any, str], ...] = (
        ((int, numpy.integer), "l"), ((float, numpy.floating), "g"), (str, "u"), ((bytes, bytearray, memoryview), "z"),
        (type(None), "u"),
    )  # fmt: skip
    for kinds, form in forms:
        if isinstance(value, kinds):
            return form
    if isinstance(value, Mapping):
        return "+s"
    if hasattr(value, "__len__"):
        return "+w:?"
    raise ValueError(f"it has values of the type {type(value).__name__}: it must have {_KINDS}")


def _checked(value: Any, kinds: tuple[Any, ...], of_none: Any) -> Any:
    if value is None:
        return of_none
    if isinstance(value, kinds):
        return value
    raise TypeError(f"{value!r} is a {type(value).__name__}, not a {kinds[0].__name__}")


def _encoded(value: Any, form: str) -> bytes:
    if form == "u":
        return bytes(_checked(value, (str,), "").encode())
    return bytes(_checked(value, (bytes, bytearray, memoryview), b""))


def _numbers(values: list[Any], form: str) -> numpy.ndarray:
    kind = numpy.dtype(_NUMBERS[form])
    if None not in values and (array := _fitting(numpy.asarray(values), kind)) is not None:
        return array
    if kind.kind == "f":
        floats = [_checked(value, (float, int, numpy.number), 0.0) for value in values]
        with numpy.errstate(over="ignore"):
            array = numpy.array(floats, kind)
        for value, made in zip(floats, array.tolist()):
            if made != value and (abs(made) == float("inf") or isinstance(value, (int, numpy.integer))):
                raise OverflowError(f"{value} is no {kind}")
        return array
    numbers = [int(_checked(value, (int, numpy.integer), 0)) for value in values]
    limits = numpy.iinfo(kind)
    for number in numbers:
        if not limits.min <= number <= limits.max:
            raise OverflowError(f"{number} is no {kind}")
    return numpy.array(numbers, kind)


def _fitting(array: numpy.ndarray, kind: numpy.dtype[Any]) -> numpy.ndarray | None:
    """The same numbers of that kind. None: they may not fit, and a check of each one says which."""
    if array.ndim != 1 or array.dtype.kind not in ("fiu" if kind.kind == "f" else "iu"):
        return None
    if kind.kind == "f":
        with numpy.errstate(over="ignore", invalid="ignore"):
            made = array.astype(kind)
            # Decimals of Python's floats are rounded.
            is_lost = (
                numpy.isinf(made) != numpy.isinf(array)
                if array.dtype.kind == "f"
                else made.astype(array.dtype) != array
            )
        return None if is_lost.any() else made
    if len(array):
        limits = numpy.iinfo(kind)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            return None
    return array.astype(kind)


def _form_of_numbers(values: list[Any]) -> str:
    """The format of the first number in lists."""
    return next((_form_of(value[0]) for value in values if value is not None and len(value)), "")


def _of_rows(name: str, values: list[Any], child: str, field: _core.ResultField | None) -> Column | None:
    """Each value is a list of N numbers. None: they have different lengths, or nulls in them."""
    lengths = {len(value) for value in values if value is not None}
    if len(lengths) > 1 or 0 in lengths or any(_is_no_row(value) for value in values):
        return None
    width = lengths.pop() if lengths else _width(field)
    rows = [[0] * width if value is None else value for value in values]
    array = _fitting(numpy.asarray(rows).reshape(-1), numpy.dtype(_NUMBERS[child]))
    if array is None:
        array = _numbers(list(itertools.chain.from_iterable(rows)), child)
    return _of_array(name, array.reshape(len(values), width), field)


def _width(field: _core.ResultField | None) -> int:
    return int(field[1][3:]) if field is not None and field[1][:3] == "+w:" else 1


def _is_no_row(value: Any) -> bool:
    """Whether it is a tensor, or has a null in it."""
    return hasattr(value, "detach") or (isinstance(value, (list, tuple)) and None in value)
