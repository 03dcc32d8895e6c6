"""What Supplier.run checks before anything starts."""

from __future__ import annotations

import importlib.util
import inspect
import math
from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark import cloudpickle

from supply.errors import RunError, SupplyError
from supply.result_schema import fields_of

_NUMBERS = ("byte", "short", "integer", "long", "float", "double")
_SUPPLIED = (*_NUMBERS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")


def check_session(df: Any) -> Any:
    """The SparkContext of a DataFrame."""
    if type(df).__module__.startswith("pyspark.sql.connect"):
        raise RunError(
            "Supplier.run needs a session of Spark Classic, because it starts tasks on the executors: over Spark "
            "Connect, start the ranks yourself and use df.write.format('supply') (docs/DATAFRAMES.md)"
        )
    context = df.sparkSession.sparkContext
    check_running(context, "the session of df")
    check_jar(context)
    return context


def check_running(context: Any, what: str) -> None:
    """Refuses a SparkContext that was stopped, or whose JVM is gone. what: for the text."""
    try:
        is_stopped = context._jsc is None or context._jsc.sc().isStopped()
    except (Py4JError, OSError):
        is_stopped = True
    if is_stopped:
        raise RunError(f"{what} was stopped: make a session with supply.spark.session(), and read the data again there")


def check_jar(context: Any) -> None:
    """Refuses a SparkContext without the Supplier's jar, or with a jar for another Spark.

    The JVM of this Python took its jars when it started.
    """
    if "JavaPackage" in type(context._jvm.supply.python.Nodes).__name__:
        raise RunError(
            "this session does not have the Supplier's jar: restart Python, and make its first session with "
            "supply.spark.session(). With spark-submit, give the path of supply.spark.jars() to --jars"
        )
    built_for = context._jvm.supply.core.BuiltFor
    if built_for.mismatch():
        raise RunError(f"{built_for.mismatch()}: {built_for.fix()}")


def check_columns(df: Any, columns: Sequence[str], name: str = "df") -> None:
    """Refuses missing columns and columns of types that ranks cannot get."""
    if isinstance(columns, str) or not columns:
        raise RunError(f"columns is {columns!r}: it must be a list of one or more names of columns")
    types = {field.name: field.dataType for field in df.schema.fields}
    problems = [f"'{column}' is not a column" for column in columns if column not in types]
    problems += [
        f"'{column}' is {types[column].simpleString()}: {_fix(types[column])}"
        for column in columns
        if column in types and not _is_supplied(types[column])
    ]
    if problems:
        raise RunError(f"{'; '.join(problems)} (columns of {name}: {', '.join(types)})")


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


def _is_supplied(kind: Any) -> bool:
    if kind.typeName() == "array":
        return kind.elementType.typeName() in _NUMBERS
    return kind.typeName() in _SUPPLIED


def _fix(kind: Any) -> str:
    if kind.typeName() == "decimal":
        return "cast it to double"
    if "vector" in kind.simpleString():
        return "use pyspark.ml.functions.vector_to_array"
    if kind.typeName() == "struct":
        return "select its fields as columns"
    return "cast it to a number, text, bytes, or an array of numbers"


def result_schema(schema: Any) -> str:
    """The schema of results as text. Refuses types that ranks cannot write."""
    text: str = schema if isinstance(schema, str) else ", ".join(map(_text_of, schema))
    try:
        fields_of(text)
    except SupplyError as error:
        raise RunError(f"results is {text!r}: {error}") from None
    return text


def _text_of(field: Any) -> str:
    return f"`{field.name}` {field.dataType.simpleString()}{'' if field.nullable else ' not null'}"


def check_arguments(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Refuses arguments that the function does not take."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # A script, or a function in C.
        return
    try:
        signature.bind(None, *args, **kwargs)
    except TypeError as error:
        raise RunError(
            f"{getattr(function, '__name__', function)}{signature} cannot be called with the data, "
            f"args={tuple(args)!r} and kwargs={kwargs!r}: {error}"
        ) from None


def pickled(job: Any, function: Any) -> bytes:
    """The job for the ranks. Names the object that cannot be pickled."""
    try:
        return bytes(cloudpickle.dumps(job))
    except Exception as error:
        names = [
            f"'{name}' ({type(value).__name__})" for name, value in _captured(job, function) if not _pickles(value)
        ]
        what = f"{', '.join(names)} cannot be pickled" if names else "it cannot be pickled"
        raise RunError(
            f"the function {getattr(function, '__name__', function)} cannot go to the ranks: {what} ({error}): make it "
            "inside the function, or pass what it is made from"
        ) from error


def _captured(job: Any, function: Any) -> list[tuple[str, Any]]:
    captured = {**job.data.options, **{f"args[{i}]": value for i, value in enumerate(job.args)}, **job.kwargs}
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        captured = {**variables.globals, **variables.nonlocals, **captured}
    return list(captured.items())


def _pickles(value: Any) -> bool:
    try:
        cloudpickle.dumps(value)
    except Exception:
        return False
    return True


def check_limits(start_timeout: float, stall_timeout: float | None) -> None:
    """Refuses limits that are not above 0. A stall_timeout of None is no limit."""
    for name, seconds in (("start_timeout", start_timeout), ("stall_timeout", stall_timeout)):
        if not (seconds is None and name == "stall_timeout") and not (
            isinstance(seconds, (int, float)) and 0 < seconds < math.inf
        ):
            raise RunError(f"{name} is {seconds!r}: it must be a number of seconds above 0")
