"""spark_supplier.Supplier(launcher="mpirun"), with the real mpirun on this machine."""

import importlib.util
import os
import shutil
import signal

import pytest
from spark_supplier import Mpirun, RankError, RunError
from spark_supplier.driver import supplier

from supplier_session import call, rows, session_fixture, shared_memory

RANKS, ROWS, BATCH = 2, 1000, 16


# There are no starters.
spark = session_fixture(RANKS)


@pytest.fixture
def run(spark):
    """Supplier.run on two ranks of mpirun. After it, nothing is left."""
    with shared_memory() as folder:

        def run_in_folder(function, shuffle="partitions", partitions=8, host_file=None, **of_supplier):
            of_ranks = {"ranks": RANKS, "launcher": Mpirun(host_file), "folder": folder, "backend": None, **of_supplier}
            options = {"columns": ["id"], "batch_size": BATCH, "shuffle": shuffle}
            return call(function, rows(spark, ROWS, partitions), **of_ranks, **options)

        yield run_in_folder


def test_an_exchange_without_mpi4py_is_refused(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match="over mpi4py, which is not installed"):
        supplier.exchange_over("all", Mpirun(), None)


def hosts(folder, slots):
    """A host file of this machine."""
    file = folder / "hosts"
    file.write_text(f"# this machine\nlocalhost slots={slots}\n")
    return file


def test_ranks_of_a_host_file_use_mpi(run, tmp_path, capfd):
    def train(data):
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        ids = [i for batch in data for i in batch["id"].tolist()]
        names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GREETING")
        # The last line has no end.
        print(*(os.environ[name] for name in names), sep="\n", end="")
        return world.gather((world.rank, ids))

    gathered = run(train, host_file=hosts(tmp_path, RANKS), environment={"GREETING": "good morning"})
    assert [rank for rank, _ in gathered] == [0, 1]
    assert sorted(i for _, ids in gathered for i in ids) == list(range(ROWS))
    lines = [line for line in capfd.readouterr().out.splitlines() if line.startswith("[rank")]
    for rank in ("0", "1"):
        of_rank = [line.removeprefix(f"[rank {rank}] ") for line in lines if line.startswith(f"[rank {rank}] ")]
        assert of_rank == [rank, rank, "2", "2", "good morning"]


def test_ranks_exchange_elements_over_mpi(run):
    def train(data):
        from mpi4py import MPI

        return MPI.COMM_WORLD.gather([i for batch in data for i in batch["id"].tolist()])

    first, second = run(train, shuffle="all", partitions=RANKS)
    assert sorted(first + second) == list(range(ROWS))
    assert ROWS // 4 - 100 < sum(i < ROWS // 2 for i in first) < ROWS // 4 + 100


def test_a_killed_rank_is_the_cause_while_others_wait_for_it(run, capfd):
    def train(data):
        from mpi4py import MPI

        for step, _ in enumerate(data):
            if step == 3 and MPI.COMM_WORLD.rank == 1:
                print("last words")
                os.kill(os.getpid(), signal.SIGKILL)
            MPI.COMM_WORLD.allreduce(step)

    with pytest.raises(RankError, match=r"^rank 1 on .* was killed by SIGKILL"):
        run(train)
    assert "[rank 1] last words" in capfd.readouterr().out.splitlines()


def test_an_exception_is_the_cause_while_others_wait_for_the_rank(run):
    def train(data):
        from mpi4py import MPI

        if MPI.COMM_WORLD.rank == 1:
            raise ValueError("no such class")
        MPI.COMM_WORLD.barrier()

    with pytest.raises(RankError, match=r"(?s)^rank 1 on .* failed:\nTraceback.*ValueError: no such class"):
        run(train)


def test_mpirun_says_why_it_fails(run, tmp_path):
    with pytest.raises(RunError, match="(?s)^mpirun failed with status 1: There are not enough slots"):
        run(list, host_file=hosts(tmp_path, RANKS - 1))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"launcher": "torch", "shuffle": "all"}, "with shuffle='all' the ranks exchange rows over torch.distributed"),
        ({"host_file": "no/such/hosts"}, "cannot read the host file no/such/hosts"),
        ({"ranks": RANKS + 1}, r"3 ranks need 3 task slots, but Spark .* use master local\[3\]"),
    ],
)
def test_wrong_input_is_refused_before_anything_starts(run, options, says):
    with pytest.raises(RunError, match=says):
        run(list, **options)


@pytest.mark.skipif(shutil.which("mpiexec.mpich") is None, reason="no MPICH (on Debian: apt-get install mpich)")
def test_an_mpirun_of_another_mpi_is_named(run, monkeypatch):
    def train(data):
        from mpi4py import MPI

        return MPI.COMM_WORLD.allreduce(sum(len(batch["id"]) for batch in data))

    monkeypatch.setenv("MPIRUN", "mpiexec.mpich")
    with pytest.raises(RankError, match="mpirun has started rank . of 2, and mpi4py is rank 0 of 1: MPIRUN must name"):
        run(train)


def test_a_missing_mpirun_is_named(run, monkeypatch):
    monkeypatch.setenv("MPIRUN", "no-such-mpirun --verbose")
    with pytest.raises(RunError, match="there is no 'no-such-mpirun' on PATH"):
        run(list)
