"""A link that fails or is interrupted. The feeder and the rank are threads, and the task is the test's own."""

import concurrent.futures
import os
import signal
import threading
import time

import pyarrow
import pytest
import spark_supplier
from spark_supplier import _core
from spark_supplier.feeder import Job

from exchanging import SCHEMA, epochs_of, feeding, ids_of, row
from task import HANG_SECONDS, Task, wait_until

BLOCK = pyarrow.RecordBatch.from_pylist([row(0)], SCHEMA)


class Post:
    """The messages on their way, by sender, receiver and tag, and what all processes have sent to all."""

    def __init__(self, processes):
        self.processes = processes
        self.messages = {}
        self.gathered = {}
        self.lock = threading.Lock()


class ThreadLink:
    """A link between processes that are threads: messages of feeders, without MPI."""

    def __init__(self, post, process):
        self.rank = process
        self.ranks = post.processes
        self.is_closed = False
        self._post = post
        self._operations = []

    def send(self, to, tag, buffer):
        message = [bytes(buffer), False]
        with self._post.lock:
            self._post.messages.setdefault((self.rank, to, tag), []).append(message)
        return self._begin(lambda: message[1])

    def receive(self, source, tag, buffer):
        def arrived():
            waiting = self._post.messages.get((source, self.rank, tag))
            if not waiting:
                return False
            message = waiting.pop(0)
            buffer[: len(message[0])] = message[0]
            message[1] = True
            return True

        return self._begin(arrived)

    def allgather(self, send, receive):
        with self._post.lock:
            self._post.gathered[self.rank] = bytes(send)

        def gathered():
            if len(self._post.gathered) < self.ranks:
                return False
            receive[:] = b"".join(self._post.gathered[process] for process in range(self.ranks))
            return True

        return self._begin(gathered)

    def test(self, operation):
        with self._post.lock:
            if self._operations[operation] is not None and self._operations[operation]():
                self._operations[operation] = None
        return self._operations[operation] is None

    def close(self):
        self.is_closed = True

    def _begin(self, is_complete):
        self._operations.append(is_complete)
        return len(self._operations) - 1


class Feeder:
    """A feeder with one pair, in a thread. Process 0; the rank is process 1."""

    def __init__(self, files, link=ThreadLink):
        self.post = Post(2)
        self.link = link(self.post, 0)
        self._folder = files.folder
        self._threads = concurrent.futures.ThreadPoolExecutor(1)
        self.outcome = self._threads.submit(self._run)

    def _run(self):
        meeting = _core.Meeting(self.link, True, "cpu-node", HANG_SECONDS)
        return meeting.feed(str(self._folder / "mapped-files.conf"), str(self._folder / "named-pipes.conf"), "")

    def open(self, link=ThreadLink, timeout=30):
        """The rank's side."""
        return spark_supplier.ranks.open(feeders=self.job(link), timeout=timeout)

    def job(self, link=ThreadLink):
        self.rank_link = link(self.post, 1)
        return Job(None, _core.Meeting(self.rank_link, False, "gpu-node", HANG_SECONDS))


def test_meeting():
    post = Post(3)

    def meet(process):
        meeting = _core.Meeting(ThreadLink(post, process), process == 1, "node", HANG_SECONDS)
        return meeting.feeders, meeting.ranks

    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        assert list(threads.map(meet, range(3))) == [(1, [0, 2])] * 3


def test_all_is_received_and_both_links_are_closed(files):
    feeder = Feeder(files)
    with feeder.open() as s:
        task = feeding(files, 0, [30, 30])
        (rows,) = epochs_of(s)
    task.join()
    assert [row["id"] for row in rows] == [*ids_of(0, 60)]
    elements, _, failed, pairs, first = feeder.outcome.result(HANG_SECONDS)
    assert (elements, failed, pairs, first) == (60, 0, 1, 0)
    wait_until("the feeder's end", lambda: feeder.link.is_closed)
    assert feeder.rank_link.is_closed


def test_feeders_open_their_pairs_once(files):
    feeder = Feeder(files)
    job = Job(None, _core.Meeting(ThreadLink(feeder.post, 1), False, "gpu-node", HANG_SECONDS))
    spark_supplier.ranks.open(feeders=job, timeout=30).abort("the test has ended")
    with pytest.raises(spark_supplier.SupplyError, match="have opened their pairs before"):
        spark_supplier.ranks.open(feeders=job)
    assert feeder.outcome.result(HANG_SECONDS)[2] == 0


def test_a_link_that_cannot_send(files):
    class Broken(ThreadLink):
        def send(self, *message):
            raise ValueError("the cable is cut")

    class Breaking(ThreadLink):
        is_broken = False

        def test(self, operation):
            if self.is_broken:
                raise RuntimeError("the test has ended")
            return super().test(operation)

    feeder = Feeder(files, Breaking)
    with pytest.raises(
        spark_supplier.SupplyOSError, match="link between feeders and ranks failed in send: ValueError: the cable"
    ):
        feeder.open(Broken)
    # Its rank has not asked for anything.
    feeder.link.is_broken = True
    with pytest.raises(spark_supplier.SupplyOSError, match="the test has ended"):
        feeder.outcome.result(HANG_SECONDS)


def test_a_link_that_fails_while_the_rank_reads(files):
    class Broken(ThreadLink):
        is_broken = False

        def test(self, operation):
            if self.is_broken:
                raise RuntimeError("connection closed by peer")
            return super().test(operation)

    feeder = Feeder(files)
    s = feeder.open(Broken)
    feeder.rank_link.is_broken = True
    with pytest.raises(spark_supplier.SupplyOSError, match="failed in test: RuntimeError: connection closed by peer"):
        s.next_block()
    feeder.rank_link.is_broken = False
    s.abort("the test has ended")
    assert feeder.outcome.result(HANG_SECONDS)[2] == 0


def ring_is_full(s, task):
    """The rank has called nothing since it opened the pair."""
    for number in range(task.header("block_count")):
        task.supply(BLOCK, first_element=number)


def epoch_has_ended(s, task):
    task.supply(BLOCK)
    task.end_of_epoch()
    assert len([*s.epoch()]) == 1


def data_has_ended(s, task):
    task.supply(BLOCK)
    task.end_of_epoch()
    task.end_of_data()
    epochs_of(s)


@pytest.mark.slow
@pytest.mark.parametrize("until", [ring_is_full, epoch_has_ended, data_has_ended])
def test_spark_fails_when_the_rank_is_lost(files, until):
    """The rank calls nothing any more, as if its node were lost."""
    feeder = Feeder(files)
    s = feeder.open(timeout=0.5)
    task = Task(*files.paths)
    until(s, task)
    time.sleep(1.5)
    assert not feeder.outcome.done(), "the rank may be busy as long as Spark lives"
    task.fail("the source is gone")
    with pytest.raises(spark_supplier.SupplyTimeoutError, match="source is gone; process 1 .* does not close the pair"):
        feeder.outcome.result(HANG_SECONDS)
    s.abort("the test has ended")
    task.leave()
    # A feeder's process ends then, and the next one opens the same pair.
    for path in files.paths:
        os.unlink(path)


def test_a_signal_ends_the_meeting():
    class Interrupted(ThreadLink):
        def test(self, operation):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.Meeting(Interrupted(Post(2), 0), False, "node", HANG_SECONDS)


@pytest.fixture
def usual_interrupt():
    """PySpark sets a handler of its own in earlier tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_ends_the_opening_and_closes_the_pair(files, usual_interrupt):
    class Interrupted(ThreadLink):
        has_sent = False

        def send(self, *message):
            if not self.has_sent:
                self.has_sent = True
                signal.raise_signal(signal.SIGINT)
            return super().send(*message)

    feeder = Feeder(files)
    with pytest.raises(KeyboardInterrupt):
        feeder.open(Interrupted)
    assert feeder.outcome.result(HANG_SECONDS)[2] == 0
    assert files.remaining() == []


def test_an_interruption_leaves_the_pair_usable(files):
    class Interrupted(ThreadLink):
        is_interrupted = None

        def test(self, operation):
            if self.is_interrupted is False:
                self.is_interrupted = True
                raise KeyboardInterrupt
            return super().test(operation)

    feeder = Feeder(files)
    with feeder.open(Interrupted) as s:
        feeder.rank_link.is_interrupted = False
        with pytest.raises(KeyboardInterrupt):
            s.next_block()
        task = feeding(files, 0, [30, 30])
        (rows,) = epochs_of(s)
    task.join()
    assert [row["id"] for row in rows] == [*ids_of(0, 60)]
    feeder.outcome.result(HANG_SECONDS)


def test_columns_are_known_before_the_first_block(files):
    feeder = Feeder(files)
    with feeder.open() as s:
        with pytest.raises(spark_supplier.SupplyError, match="columns are not known yet"):
            pyarrow.schema(s)
        task = Task(*files.paths)
        task.write_schema(SCHEMA)

        def schema():
            try:
                return pyarrow.schema(s)
            except spark_supplier.SupplyError:
                return None

        assert wait_until("the columns", schema).names == SCHEMA.names
        s.abort("the test has ended")
    task.leave()
    feeder.outcome.result(HANG_SECONDS)


def test_another_thread_closes_and_asks_for_columns_while_one_waits(files):
    waits = threading.Event()

    class Watched(ThreadLink):
        is_watched = False

        def test(self, operation):
            if self.is_watched:
                waits.set()
            return super().test(operation)

    feeder = Feeder(files)
    s = feeder.open(Watched)
    feeder.rank_link.is_watched = True
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        block = threads.submit(s.next_block)
        assert waits.wait(HANG_SECONDS)
        with pytest.raises(spark_supplier.SupplyError, match="columns are not known yet"):
            pyarrow.schema(s)
        s.abort("the test has ended")
        with pytest.raises(spark_supplier.SupplyError, match="closed"):
            block.result(HANG_SECONDS)
    assert feeder.outcome.result(HANG_SECONDS)[2] == 0
