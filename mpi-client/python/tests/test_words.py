"""Messages of the Supplier and of libsupply name options of Supplier.run."""

import inspect
import re

import pytest
import spark_supplier
from spark_supplier.node.exceptions import _OPTIONS, in_words_of_run


@pytest.mark.parametrize(
    ("launcher", "run"),
    [
        ("rank 1 has had no Spark task for 5 s (--timeout)", "rank 1 has had no Spark task for 5 s (start_timeout)"),
        ("(waited 5 s; --rank-timeout)", "(waited 5 s; start_timeout)"),
        ("--keep is for the file that --resident-folder names", "Cache(keep=) is for the file that cache names"),
        ("smaller partitions (--partitions) and", "smaller partitions (df.repartition) and"),
        ("in place (--in-place): ", "in place (inPlace): "),
        ("a program's own --option and --timeouts", "a program's own --option and --timeouts"),
    ],
)
def test_words(launcher, run):
    assert in_words_of_run(launcher) == run


def test_options_are_those_of_run():
    def parameters(kind):
        return {*inspect.signature(kind).parameters}

    settings = (
        parameters(spark_supplier.Rows) | parameters(spark_supplier.Supplier) | parameters(spark_supplier.Supplier.run)
    )
    for words in _OPTIONS.values():
        kind, _, option = words.rpartition("(")
        if kind:
            assert option.rstrip("=)") in parameters(getattr(spark_supplier, kind))
        elif words not in ("df.repartition", "inPlace"):
            assert re.split("=", words)[0] in settings
