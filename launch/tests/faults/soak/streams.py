"""A streaming query supplies ranks, while executors and ranks, or its driver, are killed."""

import collections
import json
import os
import pathlib
import subprocess
import sys

import headers
from places import JAR, ROOT
from soak import rank_ids
from soak.ground import PYTHON, RANK_IS_DEAD, RANKS, STUCK, TIMEOUT
from soak.torment import PairFaults, go_through
from waiting import wait_until

RANK = pathlib.Path(__file__).with_name("rank.py")
PROGRAM = ROOT / "mpi-client" / "python" / "tests" / "streams.py"
# A batch has a file for each rank.
BATCHES, ROWS = 20, 200
SCHEMA = "id long, point array<float>"


def executors_killed(ground):
    with _Stream(ground, RANKS) as stream:
        query = stream.start_in(ground.cluster.session)
        try:
            faults = PairFaults(ground, stream.mapped_files)

            def is_over():
                progress = query.lastProgress
                return not query.isActive or (progress and progress["batchId"] == BATCHES - 1)

            killed = go_through(ground, is_over, stream.mapped_files, faults.weighted)
        finally:
            query.stop()
        errors = stream.finish()
        failure = query.exception()
        assert (failure is None) == (killed is None), (failure, errors)
        if killed is None:
            assert errors == [""] * RANKS, errors
        else:
            assert any(text in str(failure) for text in RANK_IS_DEAD), failure
            # A rank that has all its data has ended well before.
            others = [error for number, error in enumerate(errors) if number != killed and error]
            assert all(error.splitlines()[-1].split(": ", 1)[1] in str(failure) for error in others), (failure, errors)
        stream.check(is_cut_off=killed is not None)


def driver_killed(ground):
    """It is started again with its checkpoint, and continues in the middle of a batch."""
    with _Stream(ground, ranks=1) as stream:
        for _ in range(ground.chance.randint(1, 2)):
            before, driver = stream.published(), stream.start_program()
            more = ground.chance.randint(1, BATCHES)
            wait_until(lambda: stream.published() > before + more, STUCK)  # noqa: B023  waits now
            ground.kill(_jvm_of(driver))
            driver.wait(STUCK)
        assert stream.start_program().wait(STUCK) == 0
        assert stream.finish() == [""]
        stream.check(is_cut_off=False)


def _jvm_of(program):
    return int(subprocess.run(["pgrep", "--parent", str(program.pid)], capture_output=True, check=True).stdout)


class _Stream:
    """The files of a stream, its ranks, and its drivers."""

    def __init__(self, ground, ranks):
        self._ground, self._files = ground, BATCHES * ranks
        self._pairs = ground.pairs(ranks, ring="64KiB", block="16KiB")
        self.mapped_files = [self._pairs.mapped_file(number) for number in range(ranks)]
        self._in = ground.folder / "in"
        self._in.mkdir()
        for file in range(self._files):
            rows = ({"id": number, "point": [0.5, 1.5]} for number in range(file * ROWS, (file + 1) * ROWS))
            (self._in / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
        self._log = open(ground.folder / "log", "w")  # noqa: SIM115
        self._ranks = [self._start_rank(number) for number in range(ranks)]
        self._programs = []

    def _start_rank(self, number):
        options = {"config": str(self._pairs.folder), "timeout": TIMEOUT}
        return subprocess.Popen(
            [PYTHON, RANK, self._ground.folder, json.dumps(options)],
            env={**os.environ, "OMPI_COMM_WORLD_RANK": str(number), "OMPI_COMM_WORLD_LOCAL_RANK": str(number)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print((self._ground.folder / "log").read_text(), file=sys.stderr)
        for process in (*self._ranks, *self._programs):
            process.kill()
            process.communicate()
        self._log.close()

    def start_in(self, session):
        """A query with a batch for each rank's file."""
        rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", len(self._ranks)).json(str(self._in))
        options = {
            "checkpointLocation": str(self._ground.folder / "checkpoint"),
            "mapped-files": str(self._pairs.mapped_files), "named-pipes": str(self._pairs.named_pipes),
            "ranks": len(self._ranks), "block-elements": 10,
            # Shorter than that of ranks, so that they are told.
            "timeout": TIMEOUT / 2,
        }  # fmt: skip
        return rows.writeStream.format("supply").options(**options).start()

    def start_program(self):
        """A driver of its own, with a batch for each file."""
        self._programs.append(
            subprocess.Popen(
                [sys.executable, PROGRAM, self._ground.folder, self._pairs.folder, str(BATCHES - 1)],
                env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {JAR} pyspark-shell"},
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
            )  # fmt: skip
        )
        return self._programs[-1]

    def published(self):
        return headers.read(self.mapped_files[0], "published")

    def finish(self):
        """What the ranks have printed as errors."""
        return [rank.communicate(timeout=STUCK)[1] for rank in self._ranks]

    def check(self, is_cut_off):
        rank_ids.check(
            self._ground.tally, self._ground.folder, collections.Counter(range(self._files * ROWS)), is_cut_off
        )
