"""What Supplier.run checks of the DataFrame before anything starts, the columns that it takes, and types of results."""

from __future__ import annotations

import numbers
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from spark_supplier.arguments import MASK, close_to, column_names, shown
from spark_supplier.driver.sessions import Session, is_of_connect, session_of, stopped
from spark_supplier.errors import RunError, SupplyError
from spark_supplier.result_schema import column_text, fields_of, with_types


def quoted(name: str) -> str:
    """The column of that name. Without the quotes, Spark takes a dot for the field of a struct."""
    return "`" + name.replace("`", "``") + "`"


_NUMBERS = ("byte", "short", "integer", "long", "float", "double")

_SUPPLIED = (
    *_NUMBERS, "boolean", "string", "char", "varchar", "binary", "date", "timestamp", "timestamp_ntz", "time",
    "daytimeinterval", "yearmonthinterval", "variant",
)  # fmt: skip

# What vectors and matrices of spark.ml and spark.mllib call themselves, and what they are in results.
_OF_ML = {"vector": "array<double>", "matrix": "array<array<double>>"}
_SPARSE = "struct<size:int,indices:array<int>,values:array<double>>"


class Paths:
    """The fields on the way to the columns of a struct. It is read once, because a frame may have thousands of them."""

    def __init__(self, struct: Any) -> None:
        self._fields = {field.name: field for field in reversed(struct.fields)}
        self._structs = [field for field in struct.fields if field.dataType.typeName() == "struct"]

    def of(self, name: str) -> list[Any]:
        """The fields on the way to a column, or to a field of a struct, as "point.x". Empty: there is none."""
        if name in self._fields:
            return [self._fields[name]]
        for field in self._structs:
            if name.startswith(f"{field.name}."):
                within = Paths(field.dataType).of(name[len(field.name) + 1 :])
                if within:
                    return [field, *within]
        return []


def selected(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns of these names, and fields of structs, which get these names."""
    from pyspark.sql import functions

    schema = df.schema
    # For each column that is selected, PySpark calls the JVM.
    if list(names) == [field.name for field in schema.fields]:
        return df
    paths = Paths(schema)

    def expression(name: str) -> Any:
        path = paths.of(name)
        if len(path) == 1:
            return quoted(name)
        return functions.col(".".join(quoted(field.name) for field in path)).alias(name)

    return df.select(*map(expression, names))


def check_is_frame(df: Any, name: str = "df") -> None:
    """Refuses what is no DataFrame of Spark. It asks Spark nothing."""
    if not (isinstance(df, DataFrame) or (is_of_connect(df) and type(df).__name__ == "DataFrame")):
        raise RunError(f"{name} must be a DataFrame of Spark, and is of type {_type_of(df)}: {_frame_of(df, name)}")


def check_frame(df: Any, name: str = "df") -> None:
    """Refuses what is no DataFrame of Spark, and streams."""
    check_is_frame(df, name)
    if is_of_connect(df) and df.sparkSession.is_stopped:
        raise stopped(f"the session of {name}")
    if df.isStreaming:
        raise RunError(
            f"{name} is a stream: start the ranks yourself, and supply it with {name}.writeStream.format('supply') "
            "(docs/STREAMS.md)"
        )


def _type_of(value: Any) -> str:
    package = _module_of(value).partition(".")[0]
    return ("" if package == "builtins" else f"{package}.") + type(value).__name__


def _frame_of(value: Any, name: str) -> str:
    """How to make a DataFrame of it."""
    if isinstance(value, (str, os.PathLike)):
        return "read the file first, as with spark.read.parquet(path)"
    if _module_of(value).startswith("pyspark.pandas"):
        return f"pass {name}.to_spark()"
    return f"make one, as with spark.createDataFrame({name})"


def _module_of(value: Any) -> str:
    return type(value).__module__


def check_session(df: Any) -> Session:
    """The session of a DataFrame."""
    check_frame(df)
    session = session_of(df.sparkSession)
    session.check("the session of df")
    return session


def check_columns(df: DataFrame, columns: Any, name: str = "df") -> list[str]:
    """The names of the columns that ranks get. columns: as the user gives them; None: all.

    Refuses those that are missing or double, and those of types that ranks cannot get.
    """
    names = list(df.columns) if columns is None else column_names(columns)
    if not names:
        raise RunError(f"{name} has no columns")
    fields = df.schema.fields
    is_case_sensitive = df.sparkSession.conf.get("spark.sql.caseSensitive", "false") == "true"
    types = {field.name: field.dataType for field in fields}
    paths = Paths(df.schema)
    alike: dict[str, list[str]] = {}
    for field in fields:
        alike.setdefault(field.name if is_case_sensitive else field.name.lower(), []).append(field.name)
    problems = []
    for column in dict.fromkeys(names):
        same = alike.get(column if is_case_sensitive else column.lower(), [])
        path = paths.of(column)
        if not path:
            problems.append(f"'{column}' is not a column{close_to(column, types)}")
        elif len(same) > 1:
            both = " and ".join(f"'{other}'" for other in same)
            problems.append(f"{name} has the columns {both}, which are one name for Spark: rename or drop one")
        else:
            for place, kind in _refused(column, path[-1].dataType):
                problems.append(f"'{place}' is {kind.simpleString()}: {_fix(kind)}")
    if problems:
        raise RunError(f"{'; '.join(problems)} (columns of {name}: {', '.join(field.name for field in fields)})")
    return names


def check_same_types(df: DataFrame, validation: DataFrame, columns: Sequence[str]) -> None:
    """Refuses validation data whose columns have other types."""
    both = [Paths(frame.schema) for frame in (df, validation)]
    for name in columns:
        types = [paths.of(name)[-1].dataType.simpleString() for paths in both]
        if types[0] != types[1]:
            raise RunError(f"column {name!r} is {types[0]} in df, and {types[1]} in validation: cast one of them")


def check_nulls(df: DataFrame, nulls: Mapping[str, Any] | None, ragged: Any, dtypes: Any) -> None:
    """Refuses values for nulls that the columns cannot have. The options were checked for themselves before."""
    for name, fill in (nulls or {}).items():
        kind = _type_at(df.schema, name)
        if kind is None:
            raise RunError(f"nulls names {name!r}, and there is no such field in df")
        element = _innermost(kind).typeName()
        if element in ("struct", "map", "udt"):
            # It is for what is in it, of several types.
            continue
        if isinstance(fill, str) and fill == MASK:
            continue
        if element == "string":
            fits, needs = isinstance(fill, str), "a text"
        elif element == "binary" and (kind.typeName() == "array" or (isinstance(ragged, Mapping) and name in ragged)):
            fits, needs = isinstance(fill, bytes), "bytes"
        else:
            fits, needs = not isinstance(fill, (str, bytes)), "a number"
            is_whole = fits and (not isinstance(fill, numbers.Real) or float(fill).is_integer())
            if fits and not is_whole and name not in (dtypes or {}) and element not in ("float", "double"):
                fits, needs = False, f"a whole number, or dtypes={{{name!r}: torch.float32}}"
        if not fits:
            raise RunError(
                f"nulls gives {shown(fill)} for {name!r}, which is {kind.simpleString()}: give {needs} or {MASK!r}"
            )


def _refused(path: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """What ranks cannot get of a column of that type, with its path."""
    name = kind.typeName()
    if name == "array":
        yield from _refused(path, kind.elementType)
    elif name == "map":
        yield from _refused(f"{path}.keys", kind.keyType)
        yield from _refused(f"{path}.values", kind.valueType)
    elif name == "struct" and kind.fields:
        if len(set(kind.names)) < len(kind.names):
            yield path, kind
        for field in kind.fields:
            yield from _refused(f"{path}.{field.name}", field.dataType)
    elif kind.simpleString() not in _OF_ML and name not in _SUPPLIED:
        yield path, kind


def _innermost(kind: Any) -> Any:
    return _innermost(kind.elementType) if kind.typeName() == "array" else kind


def _type_at(struct: Any, name: str) -> Any:
    """The type of a column, or of something in it, as nulls names it. None: there is none."""
    path = Paths(struct).of(name)
    if path:
        return path[-1].dataType
    for field in struct.fields:
        kind, rest = _innermost(field.dataType), name[len(field.name) + 1 :]
        if not name.startswith(f"{field.name}."):
            continue
        if kind.typeName() == "map" and rest in ("keys", "values"):
            return kind.keyType if rest == "keys" else kind.valueType
        if kind.typeName() == "struct" and (found := _type_at(kind, rest)) is not None:
            return found
    return None


def _fix(kind: Any) -> str:
    if kind.typeName() == "decimal":
        return "cast it to double"
    if kind.typeName() == "void":
        return "it has only nulls: leave it out, or cast it to double"
    if kind.typeName() == "struct" and kind.fields:
        return "two of its fields have one name, and a dict has one value for it: cast it to a struct with other names"
    return "cast it to a number, text or bytes, or leave it out"


def half_columns(df: DataFrame, columns: Sequence[str], dtypes: Mapping[str, Any] | None) -> list[str]:
    """The columns that travel in half precision: floats, arrays, structs and maps of them that become torch.float16."""
    paths = Paths(df.schema)
    given = [name for name in columns if str((dtypes or {}).get(name)) == "torch.float16"]
    # Commas separate them in the writer's option.
    return [name for name in given if "," not in name and _has_floats(paths.of(name)[-1].dataType)]


def _has_floats(kind: Any) -> bool:
    name = kind.typeName()
    if name == "array":
        return _has_floats(kind.elementType)
    if name == "map":
        return _has_floats(kind.keyType) or _has_floats(kind.valueType)
    if name == "struct":
        return any(_has_floats(field.dataType) for field in kind.fields)
    return name in ("float", "double")


def result_schema(schema: Any, df: Any, columns: Sequence[str], half: Sequence[str], sparse: Sequence[str]) -> str:
    """The schema of results as text, with the types of columns of df. Refuses types that ranks cannot write."""
    text: str = (
        schema if isinstance(schema, str) else ", ".join(_text_of(field, field.name, _OF_ML) for field in schema)
    )
    try:
        paths = Paths(df.schema)
        of_sparse = {**_OF_ML, "vector": _SPARSE}
        known = {name: _text_of(paths.of(name)[-1], name, of_sparse if name in sparse else _OF_ML) for name in columns}
        for name in half:
            # Of doubles, ranks have too few digits.
            known[name] = re.sub(r"(?<![\w`])double(?![\w`:])", "float", known[name])
        complete = with_types(text, known)
        fields_of(complete)
    except SupplyError as error:
        raise RunError(f"results is {text!r}: {error}") from None
    return complete


def _text_of(field: Any, name: str, of_ml: Mapping[str, str]) -> str:
    return column_text(name, _type_text(field.dataType, of_ml), field.nullable)


def _type_text(kind: Any, of_ml: Mapping[str, str]) -> str:
    """As simpleString(), with quoted fields, and what vectors and matrices are in results."""
    name = kind.typeName()
    if name == "array":
        return f"array<{_type_text(kind.elementType, of_ml)}>"
    if name == "map":
        return f"map<{_type_text(kind.keyType, of_ml)},{_type_text(kind.valueType, of_ml)}>"
    if name == "struct":
        fields = (f"{quoted(field.name)}:{_type_text(field.dataType, of_ml)}" for field in kind.fields)
        return f"struct<{','.join(fields)}>"
    text: str = kind.simpleString()
    return of_ml.get(text, text)
