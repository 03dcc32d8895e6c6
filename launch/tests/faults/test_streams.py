"""A signal ends the program that has started a streaming query."""

import json
import os
import subprocess
import sys

import pytest

from places import JAR, PROGRAMS, ROOT
from ranks import END_OF_PATIENCE

STREAMS = ROOT / "mpi-client" / "python" / "tests" / "streams.py"
RING_BYTES, BLOCK_BYTES = 16 * 4096, 4096


class StepwiseRank:
    """rank_stepper.c, which calls libsupply step by step."""

    def __init__(self, pairs):
        self.process = subprocess.Popen(
            [PROGRAMS / "rank-stepper"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        files = [pairs.mapped_file(0), *pairs.named_pipes.read_text().splitlines()[-1].split()]
        assert self.do("open", *files, END_OF_PATIENCE, RING_BYTES, BLOCK_BYTES, 0) == "OK"

    def do(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        return self.process.stdout.readline().rstrip("\n")

    def end(self):
        self.process.stdin.close()
        self.process.wait(END_OF_PATIENCE)


@pytest.mark.long
def test_the_program_of_a_query_is_asked_to_end(make_pairs, tmp_path, counted):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "0.json").write_text(json.dumps({"id": 0, "point": [0.5]}))
    pairs = make_pairs()
    rank = StepwiseRank(pairs)
    arguments = [sys.executable, STREAMS, tmp_path, pairs.folder, "1"]
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--jars {JAR} pyspark-shell"}
    with (
        open(tmp_path / "log", "w") as log,
        subprocess.Popen(arguments, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as program,
    ):
        try:
            assert rank.do("next").startswith("OK 0 0 0 0 1")
            assert rank.do("release", 0) == "OK"
            assert rank.do("next") == "END_OF_EPOCH 0"
            program.terminate()
            counted()
            assert "Spark was asked to end while the streaming query ran: stop the query first" in rank.do("next")
        finally:
            program.kill()
            rank.end()
