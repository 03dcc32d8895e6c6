"""The exchange between ranks, over a transport in memory. The ranks are threads."""

import concurrent.futures
import pathlib
import sys
import tempfile
import threading

import numpy
import pytest
import supply
from supply.exchange import transport_over

from exchanging import check_all_once, epochs_of, feeding, make_files, on_ranks, rows_of
from task import HANG_SECONDS, wait_until
from thread_transport import Mail, ThreadTransport

RANKS = 2
WINDOW = 1024


@pytest.fixture
def ranks():
    """The files of the pairs of all ranks, of which nothing is left at the end."""
    with tempfile.TemporaryDirectory(prefix="supply-test-", dir="/dev/shm") as folder:
        made = [make_files(pathlib.Path(folder), rank) for rank in range(RANKS)]
        yield made
        assert [files.remaining() for files in made] == [[]] * RANKS


def opener(ranks, exchange, transport=ThreadTransport, **options):
    """A function that opens the rank's pair."""
    mail = Mail(RANKS)

    def open_rank(rank, **more):
        comm = transport(mail, rank)
        options_of_rank = {"exchange": exchange, "comm": comm, "timeout": 30, **options, **more}
        return supply.open(ranks[rank].folder, 0, rank=rank, **options_of_rank)

    return open_rank


def receive(ranks, exchange, sizes, epochs=1, announces=False, **options):
    """What each rank receives in each epoch."""
    open_rank = opener(ranks, exchange, **options)

    def run(rank):
        with open_rank(rank) as s:
            task = feeding(ranks[rank], rank, sizes[rank], epochs, announces)
            received = epochs_of(s)
        task.join()
        return received

    return on_ranks(RANKS, run)


def ids(rows):
    return [element["id"] for element in rows]


def owners(rows):
    """The elements of each rank of Spark."""
    return [sum(number // 1000 == rank for number in ids(rows)) for rank in range(RANKS)]


@pytest.mark.parametrize(
    "exchange",
    ["all", "balance", supply.Exchange("all", seed=3, window_bytes=WINDOW), supply.Exchange("hash", column="user"),
     supply.Exchange("hash", column="user", window_bytes=WINDOW), supply.Exchange("hash", column="text"),
     supply.Exchange("hash", column="weight", nulls_together=True)],
)  # fmt: skip
def test_every_element_reaches_one_rank(ranks, exchange):
    sizes = [[40, 1, 30], [25, 50]]
    received = receive(ranks, exchange, sizes, epochs=2)
    check_all_once(sizes, received, epochs=2)


def test_all_ranks_get_elements_of_all(ranks):
    first, second = receive(ranks, supply.Exchange("all", window_bytes=WINDOW), [[60], [60]], epochs=2)
    for epoch in (0, 1):
        assert len(first[epoch]) == len(second[epoch]) == 60
        assert min(owners(first[epoch])) > 10
    assert ids(first[0]) != ids(first[1]), "each epoch has an order of its own"


def test_a_fraction_stays(ranks):
    first, second = receive(ranks, supply.Exchange("all", fraction=0.2), [[60], [60]])
    assert owners(first[0])[0] > 45 and owners(second[0])[1] > 45
    assert owners(first[0])[1] > 0


def test_a_key_is_on_one_rank(ranks):
    first, second = receive(ranks, supply.Exchange("hash", column="user", window_bytes=WINDOW), [[70], [70]])
    users = [{element["user"] for element in rows} for (rows,) in (first, second)]
    assert users[0] | users[1] == set(range(7)) and not users[0] & users[1]


@pytest.mark.parametrize("memory_bytes", [0, 2000])
def test_range_sorts(ranks, tmp_path, memory_bytes):
    by_text = supply.Exchange(
        "range", column="text", window_bytes=WINDOW, memory_bytes=memory_bytes, spill_folder=tmp_path
    )
    first, second = receive(ranks, by_text, [[70], [50, 1]], epochs=2)
    for epoch in (0, 1):
        texts = [element["text"].encode() for element in first[epoch] + second[epoch]]
        assert len(texts) == 121 and texts == sorted(texts)
    assert list(tmp_path.iterdir()) == []


def test_balance_moves_the_surplus(ranks):
    first, second = receive(ranks, "balance", [[50, 51], [10]])
    assert {len(first[0]), len(second[0])} == {55, 56}
    assert owners(second[0])[1] == 10, "the rank with few elements keeps them"


def test_spark_says_what_to_exchange(ranks):
    first, second = receive(ranks, "supplied", [[60], [60]], announces=True)
    assert min(owners(first[0])) > 10
    assert len(first[0]) == len(second[0]) == 60


def test_spark_says_nothing(ranks):
    assert_all_fail(ranks, "supplied", supply.SupplyError, "Spark was not started with --shuffle all")


def assert_all_fail(ranks, exchange, error, match, announces=False, **options):
    """Each rank gets the error when it reads."""
    open_rank = opener(ranks, exchange, **options)

    def run(rank):
        s = open_rank(rank)
        feeding(ranks[rank], rank, [40], announces=announces)
        with pytest.raises(error, match=match) as raised:
            epochs_of(s)
        s.abort("the test has ended")
        return str(raised.value)

    return on_ranks(RANKS, run)


def test_nulls_are_no_key(ranks):
    assert_all_fail(ranks, supply.Exchange("hash", column="weight"), supply.SupplyError, "weight")


def test_a_column_that_is_not_there(ranks):
    assert_all_fail(ranks, supply.Exchange("hash", column="key"), supply.SupplyError, "key")


def test_ranks_with_different_options(ranks):
    open_rank = opener(ranks, None)

    def run(rank):
        with pytest.raises(supply.SupplyError, match="seed|options|differ"):
            open_rank(rank, exchange=supply.Exchange("all", seed=rank))

    on_ranks(RANKS, run)


class Broken(ThreadTransport):
    def alltoallv(self, *parts):
        raise ValueError("the cable is cut")


def test_a_transport_that_raises(ranks):
    match = "pair 0.*the exchange between ranks failed in alltoallv: ValueError: the cable is cut"
    assert_all_fail(ranks, "all", supply.SupplyOSError, match, transport=Broken)


def test_a_transport_that_fails_when_it_is_polled(ranks):
    class Stalled(ThreadTransport):
        def poll(self):
            if self._operation > 1:
                raise RuntimeError("connection closed by peer")
            return super().poll()

    assert_all_fail(ranks, "all", supply.SupplyOSError, "connection closed by peer", transport=Stalled)


def test_a_rank_that_does_not_come(ranks):
    open_rank = opener(ranks, "all", timeout=0.5)
    with pytest.raises(supply.SupplyTimeoutError):
        open_rank(0)
    assert ranks[0].remaining() == []


def test_an_interruption_leaves_the_exchange_usable(ranks):
    class Interrupted(ThreadTransport):
        is_interrupted = False

        def poll(self):
            if self._operation > 2 and not self.is_interrupted:
                self.is_interrupted = True
                raise KeyboardInterrupt
            return super().poll()

    open_rank = opener(ranks, "all", transport=Interrupted)

    def run(rank):
        with open_rank(rank) as s:
            task = feeding(ranks[rank], rank, [40])
            with pytest.raises(KeyboardInterrupt):
                s.next_block()
            received = epochs_of(s)
        task.join()
        return received

    check_all_once([[40], [40]], on_ranks(RANKS, run), epochs=1)


def test_an_interruption_while_opening_closes_the_pair(ranks):
    class Interrupted(ThreadTransport):
        def poll(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opener(ranks, "all", transport=Interrupted)(0)
    assert ranks[0].remaining() == []


def test_another_thread_closes_while_one_waits(ranks):
    waits = threading.Event()

    class Watched(ThreadTransport):
        def poll(self):
            if self._operation > 1 and self.rank == 0:
                waits.set()
            return super().poll()

    open_rank = opener(ranks, "all", transport=Watched)

    def run(rank):
        s = open_rank(rank)
        if rank == 0:
            feeding(ranks[rank], rank, [40])
            with concurrent.futures.ThreadPoolExecutor(1) as threads:
                block = threads.submit(s.next_block)
                assert waits.wait(HANG_SECONDS)
                s.abort("the test has ended")
                with pytest.raises(supply.SupplyError, match="closed"):
                    block.result()
        else:
            wait_until("the end of rank 0", lambda: ranks[0].remaining() == [])
        s.abort("the test has ended")

    on_ranks(RANKS, run)


def test_closing_early(ranks):
    kept: list[tuple[numpy.ndarray, list[int]]] = []

    def run(rank):
        s = open_rank(rank)
        task = feeding(ranks[rank], rank, [40, 40])
        block = s.next_block()
        kept.append((block.numpy("id"), ids(rows_of(block))))
        s.close()
        del task

    open_rank = opener(ranks, supply.Exchange("all", window_bytes=WINDOW))
    on_ranks(RANKS, run)
    for array, copied in kept:
        assert array.tolist() == copied


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize(
    "policy, sizes, blocks",
    [("all", [[30, 30], [60]], 2), ("balance", [[40, 40, 40], [20]], 4)],
    ids=["equal", "one has ended"],
)
def test_resume(ranks, inside, policy, sizes, blocks):
    exchange = supply.Exchange(policy, window_bytes=WINDOW)
    whole = receive(ranks, exchange, sizes)

    def begin(rank):
        with pytest.raises(ZeroDivisionError), open_rank(rank) as s:
            task = feeding(ranks[rank], rank, sizes[rank])
            received = [element for _ in range(blocks - 1) for element in rows_of(s.next_block())]
            block = s.next_block()
            rows = rows_of(block)
            if inside:
                consumed = len(rows) // 2
                position = block.position_after(consumed)
            else:
                consumed = len(rows)
                del block
                position = s.position
            received += rows[:consumed]
            raise ZeroDivisionError
        del task
        return position, received

    open_rank = opener(ranks, exchange)
    begun = on_ranks(RANKS, begin)
    for files in ranks:
        assert files.remaining() == []
    open_again = opener(ranks, exchange)

    def rest(rank):
        with open_again(rank, position=begun[rank][0]) as s:
            task = feeding(ranks[rank], rank, sizes[rank])
            received = epochs_of(s)
        task.join()
        return received

    resumed = on_ranks(RANKS, rest)
    for rank in range(RANKS):
        assert begun[rank][1] + resumed[rank][0] == whole[rank][0]


def test_the_transport_is_closed(ranks):
    made = []

    def transport(mail, rank):
        made.append(ThreadTransport(mail, rank))
        return made[-1]

    receive(ranks, "all", [[10], [10]], transport=transport)
    assert [transport.is_closed for transport in made] == [True] * RANKS


def test_wrong_options(files):
    for options, match in (
        ({"exchange": "some"}, "exchange is 'some', must be one of supplied, all, hash, balance"),
        ({"comm": object()}, "comm is only for an exchange"),
        ({"exchange": "all", "comm": 3}, "comm is 3, must be a communicator"),
    ):
        with pytest.raises(supply.ConfigError, match=match) as raised:
            supply.open(files.folder, 0, **options)
        assert raised.value.status == "SUPPLY_ERROR_CONFIG"


def test_no_communicator(monkeypatch):
    for name in ("mpi4py.MPI", "torch.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(supply.ConfigError, match="needs a communicator of all ranks"):
        transport_over()


def test_a_group_without_cpu_tensors(monkeypatch):
    distributed = pytest.importorskip("torch.distributed", reason="no PyTorch")
    from supply.torch_transport import TorchTransport

    monkeypatch.setattr(distributed, "get_backend", lambda group: "nccl")
    with pytest.raises(supply.ConfigError, match="the backend nccl, which does not exchange CPU tensors"):
        TorchTransport(object())


def test_batches_of_workers(ranks):
    """A data set, whose batches go to the workers of a DataLoader."""
    torch_data = pytest.importorskip("supply.torch", reason="no PyTorch")
    mail = Mail(RANKS)
    states = {}

    def run(rank):
        options = {"columns": ["id", "point"], "batch_size": 8, "timeout": 30}
        data = torch_data.SupplyDataset(
            ranks[rank].folder, 0, rank=rank, exchange="all", comm=ThreadTransport(mail, rank), **options
        )
        with data:
            data.opened()
            task = feeding(ranks[rank], rank, [40], 2)
            received = [
                [number for batch in torch_data.DataLoader(epoch, num_workers=1) for number in batch["id"].tolist()]
                for epoch in data.epochs()
            ]
            states[rank] = data.state_dict()["position"]
        task.join()
        return received

    first, second = on_ranks(RANKS, run)
    for epoch in (0, 1):
        assert sorted(first[epoch] + second[epoch]) == [*range(40), *range(1000, 1040)]
    assert "exchange" not in states[0], "a position after an epoch is a plain one"
