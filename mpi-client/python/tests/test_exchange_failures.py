"""Failures of an exchange between ranks, over a transport in memory. The ranks are threads."""

import concurrent.futures
import sys
import threading

import pytest
import supply
from supply.exchange import transport_over

from exchanging import RANKS, check_all_once, epochs_of, feeding, on_ranks, opener
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
    assert_all_fail(ranks, "supplied", supply.SupplyError, "Spark was not started with --shuffle all")


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
