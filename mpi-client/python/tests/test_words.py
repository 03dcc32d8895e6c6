"""Messages of the Supplier and of libsupply name options of Supplier.run."""

import inspect

import pytest

pytest.importorskip("pyspark")

from spark_supplier import Supplier  # noqa: E402
from spark_supplier.node.exceptions import _OPTIONS, in_words_of_run  # noqa: E402


@pytest.mark.parametrize(
    ("launcher", "run"),
    [
        ("rank 1 has had no Spark task for 5 s (--timeout)", "rank 1 has had no Spark task for 5 s (start_timeout)"),
        ("(waited 5 s; --timeout or --rank-timeout)", "(waited 5 s; start_timeout)"),
        ("--keep is for the file that --resident-folder names", "keep is for the file that resident_folder names"),
        (
            "set a larger block= (and ring=) in mapped-files.conf (/x/a.conf:1)",
            "set a larger block= (and ring=) of the Supplier",
        ),
        ("set ring= (--ring) larger or block= (--block) smaller", "set ring= larger or block= smaller"),
        ("ring=9 in mapped-files.conf (a:1; supply-run: --ring 9), or", "ring=9 of the Supplier, or"),
        ("(--in-place, inPlace)", "(inPlace)"),
        ("a program's own --option and --timeouts", "a program's own --option and --timeouts"),
    ],
)
def test_words(launcher, run):
    assert in_words_of_run(launcher) == run


def test_options_are_those_of_run():
    parameters = {*inspect.signature(Supplier.run).parameters, *inspect.signature(Supplier).parameters}
    assert set(_OPTIONS.values()) <= parameters
