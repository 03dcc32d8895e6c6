"""Failures of an exchange between ranks, over a transport in memory. The ranks are threads."""

import concurrent.futures
import sys
import threading
import time

import pytest
import spark_supplier
from spark_supplier.exchange import transport_over
from spark_supplier.torch_transport import TorchTransport

from exchanging import RANKS, check_all_once, epochs_of, feeding, on_ranks, opener, receive
from task import HANG_SECONDS, wait_until
from thread_transport import ThreadTransport


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


def test_spark_says_nothing(ranks):
    assert_all_fail(ranks, "supplied", spark_supplier.SupplyError, "Spark was not started with --shuffle all")


class Broken(ThreadTransport):
    def alltoallv(self, *parts):
        raise ValueError("the cable is cut")


def test_a_transport_that_raises(ranks):
    match = "pair 0.*the exchange between ranks failed in alltoallv: ValueError: the cable is cut"
    messages = spark_supplier.ranks.Exchange("all", messages_only=True)
    assert_all_fail(ranks, messages, spark_supplier.SupplyOSError, match, transport=Broken)


def test_a_transport_that_fails_when_it_is_polled(ranks):
    class Stalled(ThreadTransport):
        def test(self, operation):
            if self._operation > 3:
                raise RuntimeError("connection closed by peer")
            return super().test(operation)

    assert_all_fail(ranks, "all", spark_supplier.SupplyOSError, "connection closed by peer", transport=Stalled)


def test_a_rank_that_cannot_open_its_pair(ranks):
    open_rank = opener(ranks, "all")

    def run(rank):
        with pytest.raises(spark_supplier.SupplyError) as raised:
            open_rank(rank, **({"ring": 1} if rank else {}))
        return raised.value

    first, second = on_ranks(RANKS, run)
    assert type(second) is spark_supplier.ConfigError
    assert str(second) in str(first)
    assert ranks[0].remaining() == [] == ranks[1].remaining()


def test_closing_waits_for_other_ranks_at_the_end(ranks):
    """A rank may be late by more than the timeout, because it may wait for Spark."""
    has_waited = threading.Event()

    class Patient(ThreadTransport):
        began = 0.0

        def allgather(self, *buffers):
            operation = super().allgather(*buffers)
            self.began = time.monotonic()
            return operation

        def test(self, operation):
            if self.rank == 0 and self.began and time.monotonic() > self.began + 2.4:
                has_waited.set()
            return super().test(operation)

    open_rank = opener(ranks, "all", timeout=2, transport=Patient)

    def run(rank):
        with open_rank(rank) as s:
            feeding(ranks[rank], rank, [40])
            for block in s.epoch():
                del block
            if rank == 1:
                assert has_waited.wait(HANG_SECONDS)
        return s.at_end_of_data

    assert on_ranks(RANKS, run) == [True, True]


def test_a_transport_that_returns_another_truth(ranks):
    class Counting(ThreadTransport):
        def test(self, operation):
            return int(super().test(operation))

    check_all_once([[40], [40]], receive(ranks, "all", [[40], [40]], transport=Counting), epochs=1)


def test_an_interruption_leaves_the_exchange_usable(ranks):
    class Interrupted(ThreadTransport):
        is_interrupted = False

        def test(self, operation):
            if self._operation > 4 and not self.is_interrupted:
                self.is_interrupted = True
                raise KeyboardInterrupt
            return super().test(operation)

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
        def test(self, operation):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        opener(ranks, "all", transport=Interrupted)(0)
    assert ranks[0].remaining() == []


def test_another_thread_closes_while_one_waits(ranks):
    waits = threading.Event()

    class Watched(ThreadTransport):
        def test(self, operation):
            if self._operation > 3 and self.rank == 0:
                waits.set()
            return super().test(operation)

    open_rank = opener(ranks, "all", transport=Watched)

    def run(rank):
        s = open_rank(rank)
        if rank == 0:
            feeding(ranks[rank], rank, [40])
            with concurrent.futures.ThreadPoolExecutor(1) as threads:
                block = threads.submit(s.next_block)
                assert waits.wait(HANG_SECONDS)
                s.abort("the test has ended")
                with pytest.raises(spark_supplier.SupplyError, match="closed"):
                    block.result()
        else:
            wait_until("the end of rank 0", lambda: ranks[0].remaining() == [])
        s.abort("the test has ended")

    on_ranks(RANKS, run)


def test_wrong_options(files):
    for options, match in (
        ({"exchange": "some"}, "exchange is 'some', must be one of supplied, all, hash, balance"),
        (
            {"exchange": True},
            "exchange is True, must be a name as 'supplied' or 'all', or a spark_supplier.ranks.Exchange",
        ),
        ({"comm": object()}, "comm is only for an exchange"),
        ({"exchange": "all", "comm": 3}, "comm is 3, must be a communicator"),
    ):
        with pytest.raises(spark_supplier.ConfigError, match=match) as raised:
            spark_supplier.ranks.open(files.folder, 0, **options)
        assert raised.value.status == "SUPPLY_ERROR_CONFIG"


@pytest.mark.parametrize(
    "option, value",
    [("fraction", 0.0), ("fraction", 1.5), ("fraction", float("nan")), ("seed", -1), ("seed", 2**64),
     ("window", -1), ("memory", "1 byte")],
)  # fmt: skip
def test_options_out_of_range(option, value):
    with pytest.raises(spark_supplier.ConfigError, match=f"{option} is {value!r}(,|:) (it )?must be"):
        spark_supplier.ranks.Exchange("all", **{option: value})


def test_no_communicator(monkeypatch):
    for name in ("mpi4py.MPI", "torch.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(spark_supplier.ConfigError, match="needs a communicator of all ranks"):
        transport_over()


def test_a_group_without_cpu_tensors(monkeypatch):
    distributed = pytest.importorskip("torch.distributed", reason="no PyTorch")

    monkeypatch.setattr(distributed, "get_backend", lambda group: "nccl")
    with pytest.raises(spark_supplier.ConfigError, match="the backend nccl, which does not exchange CPU tensors"):
        TorchTransport(object(), 1)
