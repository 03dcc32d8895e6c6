"""Exceptions of ranks, as the driver gets them: without Spark, from another Python."""

import os
import pickle
import subprocess
import sys

from pyspark import cloudpickle
from spark_supplier.node import exceptions

# As a rank: it gets a function by value, and sends the exception that it raises.
_RANK = """
import pickle, sys
from pyspark import cloudpickle
from spark_supplier.node import exceptions
try:
    cloudpickle.loads(sys.stdin.buffer.read())()
except BaseException as error:
    sys.stdout.buffer.write(pickle.dumps(exceptions.pickled(error)))
"""


def from_rank(function):
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    try:
        payload = cloudpickle.dumps(function)
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    sent = subprocess.run([sys.executable, "-c", _RANK], input=payload, stdout=subprocess.PIPE, check=True).stdout
    return exceptions.loaded(pickle.loads(sent))


class Odd(Exception):
    """Of the program, as of a notebook: the rank cannot import it. Pickle cannot call its constructor."""

    lock: object = None

    def __init__(self, row, *, column):
        super().__init__(f"row {row} of {column}")
        self.row, self.column = row, column


def test_a_class_of_the_program_with_arguments():
    def fails():
        raise Odd(7, column="x")

    error = from_rank(fails)
    assert type(error) is Odd and str(error) == "row 7 of x"
    assert (error.row, error.column) == (7, "x") and error.__cause__ is None


def test_what_cannot_be_pickled_is_a_text():
    def fails():
        import threading

        error = Odd(8, column="y")
        error.lock = threading.Lock()
        raise error

    error = from_rank(fails)
    assert type(error) is Odd and error.row == 8 and str(error.lock).startswith("<unlocked _thread.lock")

    def fails_with_argument():
        import threading

        raise ValueError("busy", threading.Lock())

    error = from_rank(fails_with_argument)
    assert type(error) is ValueError and error.args[0] == "busy" and "lock" in error.args[1]


def test_causes_and_context_are_kept():
    def fails():
        try:
            try:
                os.environ["NO KEY"]
            except KeyError as first:
                raise Odd(1, column="z") from first
        except Odd as second:
            raise OSError(2, "gone", "file") from second

    error = from_rank(fails)
    assert type(error) is FileNotFoundError and error.errno == 2 and error.filename == "file"
    assert type(error.__cause__) is Odd and type(error.__cause__.__cause__) is KeyError

    def fails_while_handling():
        try:
            raise KeyError("first")
        except KeyError:
            raise ValueError("second")  # noqa: B904

    error = from_rank(fails_while_handling)
    assert error.__cause__ is None and type(error.__context__) is KeyError and not error.__suppress_context__


def test_a_class_that_cannot_travel_has_a_stand_in():
    def fails():
        import threading

        lock = threading.Lock()

        class Local(Exception):
            def held(self):
                return lock

        raise Local("text", 3)

    error = from_rank(fails)
    assert type(error).__name__ == "Local" and isinstance(error, Exception)
    assert str(error) == "('text', 3)" and error.args == ("'text'", "3")

    def fails_in_its_text():
        class Mute(Exception):
            def __str__(self):
                raise TypeError

        raise Mute

    assert type(from_rank(fails_in_its_text)).__name__ == "Mute"


def test_a_circle_of_causes_ends():
    def fails():
        first, second = ValueError("first"), ValueError("second")
        first.__cause__, second.__cause__ = second, first
        raise first

    assert str(from_rank(fails).__cause__) == "second"


def raised(function):
    try:
        function()
    except Exception as error:
        return error


def wrapped():
    try:
        raise RuntimeError("[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:26531")
    except RuntimeError as error:
        raise ValueError("the step failed") from error


def test_errors_that_a_collective_has_when_another_rank_goes():
    made = [
        # As of NCCL, of the store, and of gloo.
        type("DistBackendError", (RuntimeError,), {"__module__": "torch.distributed"})("remote process exited"),
        RuntimeError("NCCL communicator was aborted on rank 0"),
        RuntimeError("Connection reset by peer"),
        raised(wrapped),
    ]
    assert [exceptions.is_of_collective(error) for error in made] == [True, True, True, True]
    own = [RuntimeError("shapes do not match"), ConnectionResetError(104, "Connection reset by peer"), KeyError("gloo")]
    assert [exceptions.is_of_collective(error) for error in own] == [False, False, False]
