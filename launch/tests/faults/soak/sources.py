"""The source changes: between runs it is supplied as it is now, and nobody cuts or writes to it while ranks read it."""

import shutil
import subprocess

import databases
from faulty_run import FaultyRun
from file_writers import WRITERS
from ranks import END_OF_PATIENCE, one_line
from soak.endless_run import endless_run
from soak.ground import RANKS, TIMEOUT


def written_to_in_place(ground):
    """A process opens, writes to or cuts the LMDB while ranks read it in place: all have failed before it happens."""
    database = _write(ground, seed=0)
    file = database / "data.mdb"
    command, status = ground.chance.choice(list(WRITERS.values()))
    with endless_run(ground, "--in-place", database=database) as run:
        ground.fault()
        with subprocess.Popen(["bash", "-c", command.format(file)], stderr=subprocess.DEVNULL) as other:
            text = run.fails()
            assert other.wait(END_OF_PATIENCE) == status
        for line in [text, *(one_line(rank) for rank in run.ranks.values() if run.finish_rank(rank.local_rank) == 1)]:
            assert str(file) in line and "is open for writing" in line, line


def changed_between_runs(ground):
    """Whatever is kept of the data, the next run supplies the new ones."""
    kept = ("--resident-folder", ground.folder / "kept", "--keep")
    options = ground.chance.choice([(), ("--in-place",), kept])
    for seed in range(3):
        run = FaultyRun(ground.pairs(), _write(ground, seed), 5, TIMEOUT, ground.tally)
        try:
            for number in range(RANKS):
                run.start_rank(number)
            run.start_supplier(ground.cluster, *options)
            run.ends_well()
        finally:
            run.end()
        ground.fault()


def _write(ground, seed):
    folder = ground.folder / "source"
    shutil.rmtree(folder, ignore_errors=True)
    return databases.write(folder, databases.numbered(200, seed=seed))
