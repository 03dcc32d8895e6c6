"""A full file system: of the mapped files, and of resident files."""

import contextlib
import os

from faulty_run import FaultyRun
from pairs import Pairs
from ranks import Rank, one_line
from small_file_system import NotMounted, fill, mounted
from soak.endless_run import endless_run
from soak.ground import RANKS, TIMEOUT, Skipped
from waiting import wait_until


def memory(ground):
    """A rank that finds no space says so. What fills the file system later does not matter."""
    with _small(ground, "2m") as folder:
        rank = Rank(Pairs(folder / "large", ring="4MiB", block="1MiB"))
        ground.fault()
        assert rank.finish() == 1 and "no space" in one_line(rank), rank.error
        pairs = Pairs(folder / "pairs", RANKS, ring="512KiB", block="128KiB")
        run = FaultyRun(pairs, ground.database, 300, TIMEOUT, ground.tally)
        try:
            for number in range(RANKS):
                run.start_rank(number)
            wait_until(lambda: all(os.path.exists(pairs.mapped_file(number)) for number in range(RANKS)))
            # Otherwise a fast run ends before the file system is full.
            with contextlib.ExitStack() as suspended:
                for rank in run.ranks.values():
                    suspended.enter_context(ground.suspended(rank.process.pid))
                run.start_supplier(ground.cluster)
                wait_until(lambda: all(run.published(number) for number in range(RANKS)))
                fill(folder)
                ground.fault()
            run.ends_well()
        finally:
            run.end()
        assert not pairs.left_behind()


def disk(ground):
    """Resident files that do not fit: all fail with one line, and nothing is left of the files."""
    with _small(ground, "512k") as folder, endless_run(ground, "--resident-folder", folder, wait=False) as run:
        ground.fault()
        text = run.fails()
        assert f"the disk of the resident folder {folder} is full" in text, text
        assert run.finish_ranks() == [1] * RANKS
        assert [one_line(rank) for rank in run.ranks.values()] == [text] * RANKS
        wait_until(lambda: not list(folder.iterdir()))


@contextlib.contextmanager
def _small(ground, size):
    try:
        with mounted(ground.folder / "small", size) as folder:
            yield folder
    except NotMounted as error:
        raise Skipped(str(error)) from None
