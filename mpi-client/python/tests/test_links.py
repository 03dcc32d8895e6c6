"""A rank elsewhere: what a data set gets over a connection is what an independent computation has."""

import contextlib
import pathlib
import signal
import threading
import time

import pyarrow
import pytest
import spark_supplier
from spark_supplier.torch import Dataset

from exchanging import SCHEMA, epochs_of, on_ranks, row
from feeding import numbers_of
from link_task import LinkedTask, LinkServer
from result_file import read_result
from task import HANG_SECONDS, wait_until
from thread_transport import Mail, ThreadTransport

CERTIFICATE = pathlib.Path(__file__).with_name("other_certificate.pem")
SIZES = [5, 9, 1, 12]
EPOCHS = 2
# Of four blocks, so that the task waits for credits.
SMALL = {"ring": 4 * 4096, "block": 4096, "timeout": 30, "rank": 0}


@pytest.fixture
def server():
    server = LinkServer()
    yield server
    server.close()


def batch_of(first, size):
    return pyarrow.RecordBatch.from_pylist([row(number) for number in range(first, first + size)], SCHEMA)


@contextlib.contextmanager
def supplied(server, cuts=(), sizes=SIZES, epochs=EPOCHS):
    """A task, in a thread, that supplies blocks of these sizes in each epoch. cuts: by the numbers of blocks, after how
    many bytes of the notice the connection ends.
    """
    cuts = dict(cuts)
    failed = []

    def supply():
        task = LinkedTask(server)
        for epoch in range(epochs):
            first = 0
            for size in sizes:
                task.cut_after = cuts.get(task.header("published"))
                task.supply(batch_of(first, size), epoch, first_element=first)
                first += size
            task.end_of_epoch(epoch)
        task.end_of_data(epochs - 1)
        task.confirm_end()
        task.leave()

    def run():
        try:
            supply()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    thread.join(HANG_SECONDS)
    assert not failed and not thread.is_alive(), failed


def connected(server, **options):
    return spark_supplier.ranks.open(connect=server.address, key=server.key, **{**SMALL, **options})


# Within the notice, within the block, and before its last byte.
@pytest.mark.parametrize("cuts", [{}, {0: 3, 2: 100}, {1: 8, 6: 1000, 7: 0}], ids=["whole", "cut", "cut often"])
def test_a_data_set_has_the_rows_of_every_epoch(server, cuts):
    options = {"connect": server.address, "key": server.key, **SMALL}
    with supplied(server, cuts), Dataset(columns=["id", "point", "text"], batch_size=4, **options) as data:
        for epoch in data.epochs():
            rows = [
                each
                for batch in epoch
                for each in zip(batch["id"].tolist(), batch["point"].tolist(), batch["text"], strict=True)
            ]
            expected = [row(number) for number in range(sum(SIZES))]
            assert rows == [(each["id"], each["point"], each["text"]) for each in expected]
        assert data.state_dict()["position"].startswith(f"position-1:{EPOCHS}:0:")
    # Each connection begins with a question.
    assert server.questions == [(0, 0, "")] * (1 + len(cuts))


def test_blocks_over_tls():
    server = LinkServer(certificate=CERTIFICATE)
    with supplied(server, {1: 50}), connected(server) as reader:
        assert epochs_of(reader) == [[row(number) for number in range(sum(SIZES))]] * EPOCHS
    server.close()


def test_ranks_elsewhere_exchange_rows():
    servers = [LinkServer() for _ in range(2)]
    mail = Mail(2)

    def run(rank):
        exchange = spark_supplier.ranks.Exchange("all", window=2048)
        options = {"rank": rank, "exchange": exchange, "comm": ThreadTransport(mail, rank)}
        with supplied(servers[rank], {2: 20}), connected(servers[rank], **options) as reader:
            return epochs_of(reader)

    received = on_ranks(2, run)
    for epoch in range(EPOCHS):
        ids = sorted(each["id"] for of_rank in received for each in of_rank[epoch])
        assert ids == sorted([*range(sum(SIZES))] * 2)
    for server in servers:
        server.close()


def test_the_environment_says_where_and_who(server, monkeypatch):
    for name, value in (
        ("SUPPLY_CONNECT", f"{server.address}/others"),
        ("SUPPLY_KEY", server.key),
        ("RANK", "2"),
        ("WORLD_SIZE", "3"),
    ):
        monkeypatch.setenv(name, value)
    with supplied(server), spark_supplier.ranks.open(timeout=30) as reader:
        assert epochs_of(reader) == [[row(number) for number in range(sum(SIZES))]] * EPOCHS
    assert server.questions == [(2, 3, "others")]


def test_a_config_wins_over_the_environment(dataset, monkeypatch):
    monkeypatch.setenv("SUPPLY_CONNECT", "supply://nowhere.invalid:1/run")
    monkeypatch.setenv("SUPPLY_KEY", "of another run")
    assert numbers_of(dataset([3, 2], batch_size=5)) == [list(range(5))]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"rank": None}, "the number of this rank is not known: start the program with torchrun or mpirun"),
        ({"config": "/nonexistent"}, "connect is for a rank elsewhere, which has no config files"),
        ({"reader": 0, "readers": 2}, "ranks that connect have a ring each"),
        ({"key": ""}, "SUPPLY_KEY"),
        ({"connect": "http://host:1/run"}, "supply://"),
    ],
    ids=["no rank", "files", "readers", "no key", "another address"],
)
def test_wrong_options(server, monkeypatch, options, words):
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "SUPPLY_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(spark_supplier.ConfigError, match=words):
        spark_supplier.ranks.open(**{"connect": server.address, "key": server.key, **SMALL, **options})


def test_ctrl_c_ends_a_wait_and_nothing_is_lost(server):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with connected(server) as reader:
        task = LinkedTask(server)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            reader.next_block()
        task.supply(batch_of(0, 3))
        assert reader.next_block().numpy("id").tolist() == [0, 1, 2]
        reader.abort("enough")
    task.take_all()
    assert task.reason_of_stop == "enough"
    task.leave()


def test_a_wait_ends_after_its_time_limit(server):
    server.answer = (0, "127.0.0.1:9")
    with connected(server, timeout=0.5) as reader:
        began = time.monotonic()
        with pytest.raises(spark_supplier.SupplyTimeoutError, match=r"no Spark task has met .*/run.* for 0\.5 s"):
            reader.next_block()
        assert time.monotonic() - began < 10
        reader.abort("the test has ended")


def test_why_spark_fails(server):
    reader = connected(server)
    LinkedTask(server).fail("no disk")
    with pytest.raises(spark_supplier.SparkError, match="no disk"):
        reader.next_block()
    server.answer = (1, "the run has failed: no node")
    with connected(server) as other, pytest.raises(spark_supplier.SparkError, match="the run has failed: no node"):
        other.next_block()


def test_another_thread_knows_that_nothing_comes(server):
    reader = connected(server)
    task = LinkedTask(server)
    threading.Timer(0.3, reader._pair.fail, ["the driver has left"]).start()
    with pytest.raises(spark_supplier.SparkError, match="the driver has left"):
        reader.next_block()
    with contextlib.suppress(spark_supplier.SupplyError):
        reader.close()
    reader._pair.fail("of a closed pair nothing happens")
    task.leave()


def test_results_of_a_rank_elsewhere(server, tmp_path):
    """The task stays until the rank has what it needs."""
    rows = [{"id": number, "score": number / 2} for number in range(1000)]
    with connected(server) as reader:
        reader._pair.hold_end()
        task = LinkedTask(server)
        task.supply(batch_of(0, 3))
        task.end_of_data()
        assert [len(block) for block in reader.epoch()] == [3]
        end = task.header("published") - 1
        time.sleep(0.2)
        assert task.header("released") <= end
        out = reader.results("scores", "id long not null, score double not null")
        out.write(pyarrow.Table.from_pylist(rows))
        # Nobody answers.
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(KeyboardInterrupt):
            out.close()
        # Both seals: also of the first one the link awaits the answer.
        sealed = threading.Event()
        answering = threading.Thread(target=wait_until, args=("it", lambda: task.header("plan") and sealed.is_set()))
        answering.start()
        out.close()
        sealed.set()
        answering.join()
        confirming = threading.Thread(target=task.confirm_end)
        confirming.start()
    confirming.join()
    (tmp_path / "result").write_bytes(task.results["scores"])
    assert read_result(tmp_path / "result").to_pylist() == rows
    task.leave()
