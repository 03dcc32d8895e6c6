"""What Supplier.run checks before anything starts: its options, and the DataFrame."""

from __future__ import annotations

import contextlib
import importlib.util
import numbers
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from supply.arguments import MASK, close_to, column_names, duration, one_of, optional_size, shown, whole_number
from supply.errors import ConfigError, RunError, SupplyError
from supply.result_schema import column_text, fields_of, with_types
from supply.spark.sessions import Session, is_of_connect, session_of, stopped

SHUFFLES = ("none", "partitions", "elements", "all")


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


@contextlib.contextmanager
def as_run_errors() -> Iterator[None]:
    """On the driver, also a wrong argument is a RunError (supply/errors.py)."""
    try:
        yield
    except ConfigError as error:
        raise RunError(str(error)) from None


def check_frame(df: Any, name: str = "df") -> None:
    """Refuses what is no DataFrame of Spark."""
    if not (isinstance(df, DataFrame) or (is_of_connect(df) and type(df).__name__ == "DataFrame")):
        raise RunError(f"{name} must be a DataFrame of Spark, and is of type {_type_of(df)}: {_frame_of(df, name)}")
    if is_of_connect(df) and df.sparkSession.is_stopped:
        raise stopped(f"the session of {name}")
    if df.isStreaming:
        raise RunError(
            f"{name} is a stream: start the ranks yourself, and supply it with {name}.writeStream.format('supply') "
            "(docs/DATAFRAMES.md)"
        )


def _type_of(value: Any) -> str:
    package = _module_of(value).partition(".")[0]
    return ("" if package == "builtins" else f"{package}.") + type(value).__name__


def _frame_of(value: Any, name: str) -> str:
    """How to make a DataFrame of it."""
    package, kind = _module_of(value).partition(".")[0], type(value).__name__
    if isinstance(value, (str, os.PathLike)):
        return "read the file first, as with spark.read.parquet(path)"
    if _module_of(value).startswith("pyspark.pandas"):
        return f"pass {name}.to_spark()"
    if kind == "GroupedData":
        return "aggregate its groups first, as with .agg(...)"
    if package == "polars":
        return f"pass spark.createDataFrame({name}{'.collect()' if kind == 'LazyFrame' else ''}.to_pandas())"
    if package == "pyarrow":
        return f"pass spark.createDataFrame({name}.to_pandas())"
    if package == "pandas" or kind in ("RDD", "PipelinedRDD", "list"):
        return f"pass spark.createDataFrame({name})"
    return "make one with spark.createDataFrame(...) or spark.read"


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


def repartition_option(value: Any) -> str | int:
    """The option repartition: "auto", "false" or a number of partitions."""
    if value is False:
        return "false"
    if value == "auto" or (isinstance(value, int) and value is not True and value > 0):
        return value  # type: ignore[no-any-return]
    raise RunError(f"repartition is {value!r}: it must be 'auto', False, or a number of partitions")


def check_forms(lists: Any, half: Any, vectors: Any, columns: Sequence[str]) -> None:
    """Refuses wrong values of the options that say what columns become."""
    if lists not in ("auto", "varying"):
        raise RunError(f"lists is {lists!r}: it must be 'auto' or 'varying'")
    if vectors not in ("dense", "sparse"):
        raise RunError(f"vectors is {vectors!r}: it must be 'dense' or 'sparse'")
    if isinstance(half, str) or not isinstance(half, Sequence) or not all(isinstance(name, str) for name in half):
        raise RunError(f"half is {half!r}: it must be a list of names of columns")
    for name in half:
        if name not in columns:
            raise RunError(f"half names '{name}', which is no column that ranks get{close_to(name, columns)}")
        if "," in name:
            raise RunError(f"half names '{name}', and its names can have no commas: rename the column")


def exchange_over(shuffle: str, launcher: str, backend: str | None) -> str | None:
    """What the ranks exchange elements over: "mpi" or "torch". None: they do not."""
    if shuffle != "all":
        return None
    if launcher == "torch" and backend is None:
        raise RunError(
            "with shuffle='all' the ranks exchange elements over torch.distributed: leave backend=None out, or use "
            "launcher='mpirun'"
        )
    if launcher == "mpirun" and importlib.util.find_spec("mpi4py") is None:
        raise RunError(
            "with shuffle='all' and launcher='mpirun' the ranks exchange elements over mpi4py, which is not installed: "
            "install it on every node, or use launcher='torch'"
        )
    return "mpi" if launcher == "mpirun" else "torch"


def _refused(path: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """What ranks cannot get of a column of that type, with its path."""
    name = kind.typeName()
    if name == "array":
        yield from _refused(path, kind.elementType)
    elif name == "map":
        yield from _refused(f"{path}.keys", kind.keyType)
        yield from _refused(f"{path}.values", kind.valueType)
    elif name == "struct" and kind.fields:
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
    return "cast it to a number, text or bytes, or leave it out"


def result_schema(schema: Any, df: Any, columns: Sequence[str], half: Sequence[str]) -> str:
    """The schema of results as text, with the types of columns of df. Refuses types that ranks cannot write."""
    text: str = schema if isinstance(schema, str) else ", ".join(map(_text_of, schema))
    try:
        paths = Paths(df.schema)
        known = {name: _text_of(paths.of(name)[-1], name) for name in columns}
        for name in half:
            # Of doubles, ranks have too few digits.
            known[name] = re.sub(r"(?<![\w`])double(?![\w`:])", "float", known[name])
        complete = with_types(text, known)
        fields_of(complete)
    except SupplyError as error:
        raise RunError(f"results is {text!r}: {error}") from None
    return complete


def _text_of(field: Any, name: str | None = None) -> str:
    kind = field.dataType.simpleString()
    return column_text(name or field.name, _OF_ML.get(kind, kind), field.nullable)


def check_folder(folder: Any) -> str:
    """Supplier(folder=...). The config files name pairs below it, and white space ends a name there."""
    if not isinstance(folder, (str, os.PathLike)) or isinstance(folder, bytes):
        raise ConfigError(f"folder is {shown(folder)}: it must be the path of a folder in memory, as '/dev/shm'")
    path = os.fspath(folder)
    if not os.path.isabs(path) or path.split() != [path]:
        raise ConfigError(
            f"folder is {path!r}: it must be an absolute path without blanks, since each node has it and the config "
            "files of ranks are divided at white space"
        )
    return path


def check_environment(environment: Any) -> dict[str, str]:
    """Supplier(environment=...)."""
    if environment is None:
        return {}
    if not isinstance(environment, Mapping):
        raise ConfigError(f"environment is {shown(environment)}: it must be a dict of texts")
    for name, value in environment.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise ConfigError(f"environment has {name!r}: {shown(value)}: names and values must be texts")
    return dict(environment)


def check_order(
    epochs: Any, seed: Any, shuffle: Any, shuffle_buffer: Any, exchange_fraction: Any, block_elements: Any, order: Any
) -> None:
    whole_number("epochs", epochs, 1)
    if not -(2**63) <= whole_number("seed", seed) < 2**63:
        raise ConfigError(f"seed is {seed}: it must be below 2**63, and not below -2**63")
    one_of("shuffle", shuffle, SHUFFLES)
    if shuffle_buffer is not None:
        whole_number("shuffle_buffer", shuffle_buffer, 1)
        if shuffle != "elements":
            raise ConfigError(f"shuffle_buffer is for shuffle='elements', and shuffle is {shuffle!r}: set both")
    if exchange_fraction is not None:
        is_number = isinstance(exchange_fraction, numbers.Real) and not isinstance(exchange_fraction, bool)
        if not is_number or not 0 < exchange_fraction <= 1:
            raise ConfigError(f"exchange_fraction is {exchange_fraction!r}: it must be above 0 and at most 1")
        if shuffle != "all":
            raise ConfigError(f"exchange_fraction is for shuffle='all', and shuffle is {shuffle!r}: set both")
    if block_elements is not None:
        whole_number("block_elements", block_elements, 1)
    one_of("order", order, ("ranks", "global"))
    if order == "global" and shuffle == "all":
        raise ConfigError("order='global' gives all ranks one order, which shuffle='all' would change: set one of them")


def check_resident(resident: Any, folder: Any, quota: Any, keep: Any, shuffle: str, order: str) -> None:
    if not isinstance(resident, bool):
        raise ConfigError(f"resident is {shown(resident)}: it must be True or False")
    optional_size("resident_quota", quota)
    for name, value in (("resident_quota", quota), ("keep", keep)):
        if value is not None and folder is None:
            raise ConfigError(f"{name} is for the file that resident_folder names: set both, or neither")
    if keep is not None and (not isinstance(keep, str) or keep in ("", "true", "false")):
        raise ConfigError(f"keep is {keep!r}: it must be a text that says which data the file has")
    if folder is not None:
        if not isinstance(folder, (str, os.PathLike)) or not os.path.isabs(folder):
            raise ConfigError(
                f"resident_folder is {folder!r}: it must be the absolute path of a folder on a disk of each node"
            )
        if resident:
            raise ConfigError("resident keeps the rows in memory, and resident_folder in files: set one of them")
    if order == "global" and (resident or folder is not None):
        name = "resident" if resident else "resident_folder"
        raise ConfigError(f"{name} repeats the blocks of each rank, which order='global' changes: set one of them")
    if shuffle == "elements" and (resident or folder is not None):
        name = "resident" if resident else "resident_folder"
        raise ConfigError(
            f"{name} repeats the first epoch's blocks, so shuffle='elements' cannot be: use 'partitions' or 'none'"
        )


def check_min_ranks(min_ranks: Any, ranks: int) -> int:
    """The option min_ranks of a Supplier of that number of ranks."""
    if min_ranks is None:
        return ranks
    if whole_number("min_ranks", min_ranks, 1) > ranks:
        raise ConfigError(f"min_ranks is {min_ranks}, and ranks is {ranks}: it must be at most as large")
    return int(min_ranks)


def check_checkpoints(
    folder: Any, every: Any, keep: Any, resume: Any, resume_from: Any, results: Any, backend: Any
) -> tuple[str | None, float | None, str | None]:
    """The options for checkpoints: folders as texts, and seconds. Raises ConfigError."""
    names = []
    for option, given in (("checkpoint_folder", folder), ("resume_from", resume_from)):
        if given is not None and not isinstance(given, (str, os.PathLike)):
            raise ConfigError(f"{option} is {shown(given)}: it must be the path of a folder")
        names.append(None if given is None else os.fspath(given))
    whole_number("keep_checkpoints", keep, 1)
    if resume is not None and resume_from is not None:
        raise ConfigError("set either resume or resume_from: both say where ranks begin")
    if folder is not None and results is not None:
        raise ConfigError(
            "results and checkpoint_folder: rows that ranks wrote before a checkpoint are lost with these ranks: leave "
            "one out. Without checkpoints, ranks that are started again begin at the beginning, with all rows"
        )
    if every is not None and folder is None:
        raise ConfigError("checkpoint_every is for checkpoint_folder: set both, or neither")
    if every is not None and backend is None:
        raise ConfigError(
            "checkpoint_every needs a backend, over which ranks agree on the step: leave checkpoint_every out, and "
            "call data.checkpoint(state) when a checkpoint is due"
        )
    return names[0], None if every is None else duration("checkpoint_every", every), names[1]
