"""The main job: Spark feeds ranks that train, and held-out digits measure their accuracy."""

import re

import pytest

from places import LAUNCH
from processes import ran


def test_three_ranks():
    done = ran(LAUNCH / "dev" / "run-digits", RANKS="3", EPOCHS="08")
    assert done.returncode == 0, done.stderr
    verdict = re.fullmatch(
        r"run: ok ranks=3 epochs=08 elements=11496 accuracy=(0\.\d{3})", done.stdout.splitlines()[-1]
    )
    assert verdict and 0.90 <= float(verdict[1]) <= 1


@pytest.mark.long
def test_a_classifier_that_has_learnt_too_little():
    done = ran(LAUNCH / "dev" / "run-digits", RANKS="7", EPOCHS="1")
    assert done.returncode == 1
    assert re.fullmatch(
        r"run: failed: accuracy 0\.\d{3} is below 0\.90 after 1 epochs: raise EPOCHS", done.stderr.splitlines()[-1]
    )
    assert "run: ok" not in done.stdout
