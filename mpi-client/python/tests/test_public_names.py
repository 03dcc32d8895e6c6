"""Rules of the whole package: its exceptions, and its public names."""

import ast
import builtins
import pathlib
import subprocess
import sys

import pytest
import spark_supplier
import spark_supplier.errors

PACKAGE = pathlib.Path(spark_supplier.__file__).parent
# Python's exceptions that are part of its own protocols, or that never leave their module: file, exception.
OF_PYTHON = {
    ("arguments.py", "TypeError"),  # an option that does not exist
    ("torch.py", "TypeError"),  # a len() that is not known
    ("__init__.py", "AttributeError"),
    ("ml/torch_model.py", "NotImplementedError"),
    ("ml/torch_model.py", "TypeError"),  # a param that does not exist
    ("node/node_process.py", "RuntimeError"),  # on an executor that does not have this package
    ("node/hub.py", "EOFError"),  # the end of a connection
    ("node/hub.py", "HubError"),  # driver/hub.py makes a RunError of it, and connect() ends the process
    ("node/hub.py", "ConnectionResetError"),  # as of a socket
    ("node/rank.py", "Stopped"),  # ends a rank that is asked to end
    # array_of() makes ColumnErrors of these.
    ("result_columns.py", "ValueError"),
    ("result_columns.py", "TypeError"),
    ("result_columns.py", "OverflowError"),
    ("jagged.py", "TypeError"),
}


def raised(path):
    """The classes that a module raises, as far as the source names them."""
    for node in ast.walk(ast.parse(path.read_text())):
        error = node.exc if isinstance(node, ast.Raise) else None
        error = error.func if isinstance(error, ast.Call) else error
        if isinstance(error, ast.Name):
            yield error.id, error.lineno


def test_every_exception_is_a_supply_error():
    """errors.py has the rule."""
    wrong, used = [], set()
    # The launchers need no package.
    for path in sorted(set(PACKAGE.rglob("*.py")) - set((PACKAGE / "launch").rglob("*.py"))):
        name = str(path.relative_to(PACKAGE))
        for exception, line in raised(path):
            known = getattr(spark_supplier.errors, exception, None)
            if known is not None and issubclass(known, spark_supplier.SupplyError):
                continue
            if (name, exception) in OF_PYTHON:
                used.add((name, exception))
            elif hasattr(builtins, exception) or exception.endswith("Error"):
                wrong.append(f"{name}:{line}: {exception}")
    assert wrong == [] and used | {("node/rank.py", "Stopped")} == OF_PYTHON


def test_the_driver_raises_run_errors():
    modules = [*PACKAGE.glob("driver/*.py"), *PACKAGE.glob("offload/*.py")]
    errors = vars(spark_supplier.errors)
    found = {errors[exception] for path in modules for exception, _ in raised(path) if exception in errors}
    assert found and [kind for kind in found if not issubclass(kind, spark_supplier.RunError)] == []


def test_the_classes_of_errors():
    errors = spark_supplier.errors
    assert issubclass(errors.ConfigError, ValueError) and issubclass(errors.SupplyTimeoutError, TimeoutError)
    assert issubclass(errors.RankError, errors.RunError) and issubclass(errors.RunError, errors.SupplyError)
    assert issubclass(errors.RunTimeoutError, (errors.RunError)) and issubclass(
        errors.RunTimeoutError, errors.SupplyTimeoutError
    )


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["torch", "pandas", "mpi4py", "pyarrow"])
def test_a_driver_needs_none_of_the_packages_that_only_some_calls_need(missing):
    program = f"import sys; sys.modules[{missing!r}] = None; import spark_supplier, spark_supplier.ml"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
