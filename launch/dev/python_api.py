"""Writes docs/PYTHON-API.md: every public name of the Python package, from signatures and docstrings (make reference).

Usage: python launch/dev/python_api.py docs/PYTHON-API.md, with a Python that has the package, PyTorch and PySpark.
"""

from __future__ import annotations

import importlib
import inspect
import pathlib
import re
import sys
import typing
from collections.abc import Iterator
from typing import Any

MODULES = {
    "spark_supplier": "The driver's side: sessions, the one call, and the exceptions of both sides.",
    "spark_supplier.ml": "Estimators of pyspark.ml that train on ranks.",
    "spark_supplier.offload": "Ranks that hold matrices.",
    "spark_supplier.ranks": "A rank's side, in a program that something else starts: blocks, results, the exchange.",
    "spark_supplier.torch": "Batches for PyTorch.",
    "spark_supplier.hf": "For the Hugging Face Trainer.",
    "spark_supplier.xgboost": "For XGBoost.",
    "spark_supplier.testing": "For unit tests of the functions that ranks run.",
}
CONSTANTS = {
    "spark_supplier.__version__": "Version of the package, a text.",
    "spark_supplier.contract_version": "Version of the contract between Spark's task and the rank, a text.",
}
# Users get these, and do not make them.
MADE_BY_PACKAGE = {
    "Block",
    "Epoch",
    "EpochStatistics",
    "LocalData",
    "Matrix",
    "RankData",
    "Reader",
    "ResultWriter",
    "RunResult",
    "RunStatistics",
    "TorchModel",
    "TruncatedSVDModel",
}
WIDTH = 110
HEAD = """# Python API

Every public name of the package, with its signature. `make reference` writes this page from the sources, and a test
compares it. Other names of the package may change. `help(spark_supplier.Supplier)` shows the whole text in Python.
Guides: [TUTORIAL.md](TUTORIAL.md), [RANKS.md](RANKS.md), [OFFLOAD.md](OFFLOAD.md).
"""


def text() -> str:
    parts = [HEAD]
    for name, title in MODULES.items():
        module = importlib.import_module(name)
        parts.append(f"## {name}\n\n{title}\n")
        values = {public: getattr(module, public) for public in sorted(module.__all__, key=str.lower)}
        values = {public: value for public, value in values.items() if not inspect.ismodule(value)}
        errors = {public: value for public, value in values.items() if _is_error(value)}
        for public, value in values.items():
            if public not in errors:
                parts.append(_entry(f"{name}.{public}", value))
        if errors:
            rows = "".join(f"| `{public}` | {_bases(value)} | {_first(value)} |\n" for public, value in errors.items())
            parts.append(f"### Exceptions of {name}\n\n| exception | is a | |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _entry(name: str, value: Any) -> str:
    if name in CONSTANTS:
        return f"### {name}\n\n{CONSTANTS[name]}\n"
    lines = [f"### {name}\n"]
    if getattr(value, "__name__", None) not in MADE_BY_PACKAGE:
        lines += ["```python", _signature(name, value), "```\n"]
    lines += [f"{_first(value)}\n"]
    if parameters := list(_section(value, "Parameters")):
        lines += ["| parameter | | |", "|---|---|---|"]
        lines += [f"| `{each}` | {kind} | {what} |" for each, kind, what in parameters]
        lines += [""]
    if inspect.isclass(value):
        rows = [f"| `{each}` | {kind}. {what} |" for each, kind, what in _section(value, "Attributes")]
        rows += [f"| {left} | {right} |" for left, right in _members(value)]
        if rows:
            lines += ["| member | |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Public attributes and methods that this package defines. Setters and getters of parameters share a row."""
    found: dict[str, Any] = {}
    accessors = []
    for owner in reversed(kind.__mro__):
        if owner.__module__.partition(".")[0] == "spark_supplier":
            found.update(vars(owner))
    for name, raw in sorted(found.items(), key=lambda item: item[0].lower()):
        value = getattr(kind, name, raw)
        is_param = type(value).__module__ == "pyspark.ml.param"
        if name.startswith("_") or is_param or not (callable(value) or isinstance(raw, property)):
            continue
        if re.match(r"[sg]et[A-Z]", name) and not value.__doc__:
            accessors.append(f"`{name}`")
        elif isinstance(raw, property):
            yield f"`{name}`", _first(raw)
        else:
            yield f"`{name}{_parameters(value)}`", _first(value)
    if accessors:
        yield ", ".join(accessors), "set and get its parameters."


def _signature(name: str, value: Any) -> str:
    parameters = [_parameter(each, typed=True) for each in _own(value)]
    line = f"{name}({', '.join(parameters)})"
    if len(line) <= WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + ")"


def _parameters(value: Any) -> str:
    return f"({', '.join(_parameter(each, typed=False) for each in _own(value))})"


def _own(value: Any) -> list[inspect.Parameter | None]:
    """The parameters that a caller gives. None: those after it have names."""
    own: list[inspect.Parameter | None] = []
    for parameter in inspect.signature(value).parameters.values():
        is_starred = any(each is None or each.kind is each.VAR_POSITIONAL for each in own)
        if parameter.kind is parameter.KEYWORD_ONLY and not is_starred:
            own.append(None)
        if parameter.name not in ("self", "cls"):
            own.append(parameter)
    return own


def _parameter(parameter: inspect.Parameter | None, typed: bool) -> str:
    if parameter is None:
        return "*"
    star = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = _type(parameter.annotation) if typed and parameter.annotation is not parameter.empty else ""
    text = f"{star}{parameter.name}{': ' + kind if kind else ''}"
    if parameter.default is parameter.empty:
        return text
    default = parameter.default.__name__ if callable(parameter.default) else repr(parameter.default)
    return f"{text} = {default}" if kind else f"{text}={default}"


def _type(annotation: Any) -> str:
    if isinstance(annotation, typing.ForwardRef):
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _first(value: Any) -> str:
    """The first paragraph of a docstring, for Markdown."""
    words = inspect.getdoc(value)
    if not words:
        raise SystemExit(f"{value!r} is public and has no docstring: write one, or begin its name with an underscore")
    return _in_markdown(words.split("\n\n")[0])


def _section(value: Any, name: str) -> Iterator[tuple[str, str, str]]:
    """Names, types and meanings of a section in numpydoc's form. Of a meaning the first sentence."""
    found = re.search(rf"^{name}\n-+\n(.*?)(?=^\w+\n---|\Z)", inspect.getdoc(value) or "", re.DOTALL | re.MULTILINE)
    for names, kind, meaning in re.findall(
        r"^(\S.*?)(?: : (.*))?\n((?:[ ].*\n?)*)", found[1] if found else "", re.MULTILINE
    ):
        words = " ".join(meaning.split())
        # Of choices, all.
        said = words if words.startswith('"') else re.split(r"(?<=[.])\s+(?=[A-Z\"])", words)[0]
        yield names, _in_markdown(kind), _in_markdown(said)


def _in_markdown(words: str) -> str:
    return re.sub(r"([*<|])", r"\\\1", " ".join(words.split()))


def _is_error(value: Any) -> bool:
    return inspect.isclass(value) and issubclass(value, Exception)


def _bases(kind: type) -> str:
    return ", ".join(f"`{base.__name__}`" for base in kind.__bases__)


if __name__ == "__main__":
    pathlib.Path(sys.argv[1]).write_text(text(), encoding="utf-8")
