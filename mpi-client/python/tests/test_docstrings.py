"""Docstrings of public names: their examples run, and their sections name the parameters that there are."""

import doctest
import importlib
import inspect
import re

import pytest

MODULES = ["ranks", "torch", "hf", "xgboost", "offload", "testing"]
SECTION = r"^Parameters\n-+\n(.*?)(?=^\w+\n---|\Z)"


def public():
    """Each public name of these modules, and each public method of a class."""
    found = {}
    for name in MODULES:
        if name == "xgboost":
            pytest.importorskip("numpy")
        module = importlib.import_module(f"spark_supplier.{name}")
        for each in module.__all__:
            value = getattr(module, each)
            found[f"{name}.{each}"] = value
            for method in vars(value) if inspect.isclass(value) else ():
                if not method.startswith("_") and callable(getattr(value, method)):
                    found[f"{name}.{each}.{method}"] = getattr(value, method)
    return found


def documented(value):
    """The names of the section Parameters; None: there is none."""
    section = re.search(SECTION, inspect.getdoc(value) or "", re.DOTALL | re.MULTILINE)
    if section is None:
        return None
    lines = re.findall(r"^(\S.*?)(?: : .*)?$", section[1], re.MULTILINE)
    return [name.strip(" *") for line in lines for name in line.split(",")]


def test_the_parameters_are_those_of_the_signature():
    wrong = []
    for name, value in public().items():
        names = documented(value)
        if names is None:
            continue
        own = [each for each in inspect.signature(value).parameters if each not in ("self", "cls")]
        if sorted(names) != sorted(own):
            wrong.append((name, sorted({*names} ^ {*own})))
    assert wrong == []


def test_what_is_called_has_its_parameters_documented():
    # Made by the package, or a class that another one's constructor describes.
    made = {
        "Block",
        "Epoch",
        "EpochStatistics",
        "ExchangeStatistics",
        "Jagged",
        "LocalData",
        "Matrix",
        "Reader",
        "ResultWriter",
        "Statistics",
        "TrainerMixin",
    }
    missing = [
        name
        for name, value in public().items()
        if name.rpartition(".")[2] not in made
        and documented(value) is None
        and any(each not in ("self", "cls") for each in inspect.signature(value).parameters)
    ]
    assert missing == ["hf.TrainerMixin.get_test_dataloader"]


@pytest.mark.parametrize("name", [
    "exchange", "jagged", "epoch", "torch", "node.rank_data", "testing",
])  # fmt: skip
def test_examples_run(name):
    module = importlib.import_module(f"spark_supplier.{name}")
    failed, run = doctest.testmod(module, raise_on_error=False)
    assert failed == 0 and (run or name == "jagged")
