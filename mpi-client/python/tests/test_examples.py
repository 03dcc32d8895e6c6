"""The examples: a PySpark program that supplies a DataFrame, and ranks under mpirun."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import pytest

from layout import JAR, ROOT, SPARK_PYTHON

DIGITS = ROOT / "build" / "digits"
EXAMPLES = ROOT / "mpi-client" / "python" / "examples"
EPOCHS, ELEMENTS, HELD_OUT, ACCURACY_WANTED = 4, 1437, 360, 0.90
LIMIT_SECONDS = 120

for module in ("mpi4py", "torch"):
    pytest.importorskip(module, reason=f"no {module} (on Debian: apt-get install python3-{module})")


@pytest.fixture
def config(tmp_path):
    """The folder of two pairs' config files. Checks at the end that no file of the pairs is left."""
    subprocess.run(
        [ROOT / "launch" / "make-configs", "2", tmp_path / "pairs", tmp_path / "conf"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    yield tmp_path / "conf"
    assert list((tmp_path / "pairs").iterdir()) == []


def run(spark_words, rank_words, spark_succeeds=True):
    """Runs both sides and returns their output, Spark's first."""
    environment = {
        **os.environ, "OMP_NUM_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PYSPARK_PYTHON": str(SPARK_PYTHON), "SPARK_CONF_DIR": str(ROOT / "configs" / "spark"),
        "SUPPLY_TIMEOUT": str(LIMIT_SECONDS),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            [
                SPARK_PYTHON.with_name("spark-submit"), "--master", "local[2]", "--jars", JAR,
                *spark_words, "--timeout", LIMIT_SECONDS,
            ],
            # A file for each rank: what mpirun prints tears their lines.
            ["mpirun", "-n", "2", "--oversubscribe", "--output-filename", folder, sys.executable, *rank_words],
        ]  # fmt: skip
        sides = [
            subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=environment,
            )
            for command in commands
        ]
        try:
            printed, spark = (side.communicate(timeout=2 * LIMIT_SECONDS)[0] for side in reversed(sides))
        finally:
            for side in sides:
                side.kill()
        assert [side.returncode == 0 for side in sides] == [spark_succeeds, True], (spark, printed)
        ranks = "".join(file.read_text() for file in sorted(pathlib.Path(folder).glob("*/rank.*/stdout")))
    return spark, ranks


def samples(path):
    """For both ranks: the keys of each step."""
    return [path.with_name(f"{path.name}.{rank}").read_text().splitlines() for rank in range(2)]


def means(output):
    return dict(re.findall(r"(\w+) mean=(\S+)", output))


@pytest.mark.long
def test_column_means_equal_those_of_spark(tmp_path, config):
    program = (
        "import sys; from sklearn.datasets import load_digits; load_digits(as_frame=True).frame.to_parquet(sys.argv[1])"
    )
    subprocess.run([SPARK_PYTHON, "-c", program, tmp_path / "digits.parquet"], check=True)
    columns = ["pixel_3_4", "pixel_5_2", "target"]
    spark, ranks = run(
        [EXAMPLES / "supply.py", "parquet", tmp_path / "digits.parquet", config, *columns],
        [EXAMPLES / "column_means.py", config, *columns],
    )
    assert f"elements={ELEMENTS + HELD_OUT} ranks=2" in ranks
    assert means(ranks) == means(spark) and list(means(spark)) == columns


@pytest.mark.long
def test_training_stopped_in_an_epoch_resumes_in_the_same_order(tmp_path, config):
    def train(*arguments, **expected):
        return run(
            [EXAMPLES / "supply.py", "lmdb", DIGITS / "train_lmdb", config, "--epochs", EPOCHS, "--seed", "1"],
            [EXAMPLES / "train_digits.py", config, *arguments],
            **expected,
        )

    train("--samples", tmp_path / "whole")
    whole = samples(tmp_path / "whole")
    steps = len(whole[0])
    assert len(whole[1]) == steps and len({key for rank in whole for step in rank for key in step.split()}) == ELEMENTS

    stop = steps // EPOCHS + 4
    assert stop % (steps // EPOCHS) != 0, "in the middle of an epoch"
    first = ("--samples", tmp_path / "first", "--checkpoint", tmp_path / "checkpoint", "--stop-after", stop)
    spark, ranks = train(*first, spark_succeeds=False)
    assert f"stopped after {stop} steps, in epoch 1" in ranks and f"stopped after {stop} steps" in spark, (ranks, spark)
    train("--samples", tmp_path / "second", "--resume", tmp_path / "checkpoint", "--save", tmp_path / "model.pt")
    first, second = samples(tmp_path / "first"), samples(tmp_path / "second")
    assert [before + after for before, after in zip(first, second)] == whole

    _, ranks = run(
        [EXAMPLES / "supply.py", "lmdb", DIGITS / "test_lmdb", config],
        [EXAMPLES / "train_digits.py", config, "--evaluate", tmp_path / "model.pt"],
    )
    [(count, accuracy)] = re.findall(r"evaluated=(\d+) accuracy=(\S+)", ranks)
    assert int(count) == HELD_OUT and float(accuracy) >= ACCURACY_WANTED


@pytest.mark.long
def test_predictions_come_back_with_the_digits():
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON")},
        "OMP_NUM_THREADS": "1", "SPARK_CONF_DIR": str(ROOT / "configs" / "spark"),
    }  # fmt: skip
    files = (EXAMPLES / "predict_digits.py", DIGITS / "train_lmdb", DIGITS / "test_lmdb")
    command = [sys.executable, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=2 * LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^\|\s*(\d)\|([0-9 |]+)\|$", done.stdout, re.MULTILINE)
    matrix = [list(map(int, counts.split("|"))) for _, counts in lines]
    assert [int(label) for label, _ in lines] == list(range(10)), done.stdout
    [(count, accuracy)] = re.findall(r"predicted=(\d+) accuracy=(\S+)", done.stdout)
    assert int(count) == sum(map(sum, matrix)) == HELD_OUT
    assert float(accuracy) == pytest.approx(sum(matrix[i][i] for i in range(10)) / HELD_OUT, abs=0.001)
    assert float(accuracy) >= ACCURACY_WANTED


@pytest.mark.long
def test_workers_decode_images(tmp_path, config):
    image = pytest.importorskip("PIL.Image", reason="no Pillow (pip install pillow)")
    photos = tmp_path / "photos"
    photos.mkdir()
    for level in range(10):
        # Images of different sizes, so their files differ in length.
        image.new("RGB", (20 + level, 30), (25 * level,) * 3).save(photos / f"{level}.jpg")
    _, ranks = run(
        [EXAMPLES / "supply.py", "images", photos, config, "--epochs", "2"],
        [EXAMPLES / "decode_images.py", config, "--batch-size", "2", "--workers", "2"],
    )
    lines = re.findall(r"decode_images: \S*/(\d)\.jpg epoch=(\d) brightness=(\S+)", ranks)
    assert sorted((int(level), int(epoch)) for level, epoch, _ in lines) == [
        (level, epoch) for level in range(10) for epoch in range(2)
    ]
    assert all(float(brightness) == pytest.approx(25 * int(level) / 255, abs=0.01) for level, _, brightness in lines)


@pytest.mark.long
def test_a_killed_training_ends_with_the_same_model():
    program = [sys.executable, str(EXAMPLES / "restarts.py"), "5"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith("the same model, bit by bit: True")
    assert done.stdout.count("goes on after batch") == 3
