"""The exchange between ranks, over a transport in memory. The ranks are threads."""

import numpy
import pytest
from spark_supplier.ranks import Exchange

from exchanging import RANKS, check_all_once, epochs_of, feeding, on_ranks, opener, receive, rows_of
from thread_transport import Mail, ThreadTransport

WINDOW = 1024


def ids(rows):
    return [element["id"] for element in rows]


def owners(rows):
    """The elements of each rank of Spark."""
    return [sum(number // 1000 == rank for number in ids(rows)) for rank in range(RANKS)]


@pytest.mark.parametrize(
    "exchange",
    ["all", "balance", Exchange("all", seed=3, window=WINDOW), Exchange("hash", column="user"),
     Exchange("hash", column="user", window=WINDOW), Exchange("hash", column="text"),
     Exchange("hash", column="weight", nulls_together=True)],
)  # fmt: skip
def test_every_element_reaches_one_rank(ranks, exchange):
    sizes = [[40, 1, 30], [25, 50]]
    received = receive(ranks, exchange, sizes, epochs=2)
    check_all_once(sizes, received, epochs=2)


@pytest.mark.parametrize("messages_only", [False, True])
def test_statistics_say_what_moved_how(ranks, messages_only):
    open_rank = opener(ranks, Exchange("all", messages_only=messages_only))

    def run(rank):
        with open_rank(rank) as s:
            task = feeding(ranks[rank], rank, [30], 1, False)
            epochs_of(s)
            statistics = s.statistics
        task.join()
        return statistics

    for all_of_rank in on_ranks(RANKS, run):
        of_rank = all_of_rank.exchange
        assert (of_rank.ranks, of_rank.copying_ranks) == (RANKS, 0 if messages_only else RANKS - 1)
        assert (of_rank.forwarded_ranks, of_rank.window_bytes) == (0, 8192)
        assert 0 < sum(of_rank[-4:]) <= all_of_rank.seconds_waited
        assert 1 <= of_rank.windows <= of_rank.rounds < of_rank.collectives
        assert of_rank.copied_bytes > 0 and (of_rank.sent_bytes > 0) == messages_only
        assert of_rank.seconds_agreeing > 0


@pytest.mark.parametrize(
    "exchange, line",
    [
        ("all", "exchange: 2 ranks; rank 0 copies to 1, sends to 0; windows of 0.00781 MiB; all, seed 0"),
        (
            Exchange("hash", column="user", window="1MiB", messages_only=True),
            "exchange: 2 ranks; rank 0 copies to 0, sends to 1; windows of 1 MiB; hash by 'user'",
        ),
    ],
)
def test_rank_0_says_what_it_has_opened(ranks, caplog, exchange, line):
    caplog.set_level("INFO", "spark_supplier")
    receive(ranks, exchange, [[10], [10]])
    assert [record.getMessage() for record in caplog.records] == [line]


def test_a_fraction_stays(ranks):
    first, second = receive(ranks, Exchange("all", fraction=0.2), [[60], [60]])
    assert owners(first[0])[0] > 45 and owners(second[0])[1] > 45
    assert owners(first[0])[1] > 0


@pytest.mark.parametrize("memory", [None, 2000])
def test_range_sorts(ranks, tmp_path, memory):
    by_text = Exchange("range", column="text", window=WINDOW, memory=memory, spill_folder=tmp_path)
    first, second = receive(ranks, by_text, [[70], [50, 1]], epochs=2)
    for epoch in (0, 1):
        texts = [element["text"].encode() for element in first[epoch] + second[epoch]]
        assert len(texts) == 121 and texts == sorted(texts)
    assert list(tmp_path.iterdir()) == []


def test_spark_says_what_to_exchange(ranks):
    first, second = receive(ranks, "supplied", [[60], [60]], announces=True)
    assert min(owners(first[0])) > 10
    assert len(first[0]) == len(second[0]) == 60


def test_closing_early(ranks):
    kept: list[tuple[numpy.ndarray, list[int]]] = []

    def run(rank):
        s = open_rank(rank)
        task = feeding(ranks[rank], rank, [40, 40])
        block = s.next_block()
        kept.append((block.numpy("id"), ids(rows_of(block))))
        s.close()
        del task

    open_rank = opener(ranks, Exchange("all", window=WINDOW))
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
    exchange = Exchange(policy, window=WINDOW)
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


def test_batches_of_workers(ranks):
    """A data set, whose batches go to the workers of a DataLoader."""
    torch_data = pytest.importorskip("spark_supplier.torch", reason="no PyTorch")
    mail = Mail(RANKS)
    states = {}

    def run(rank):
        options = {"columns": ["id", "point"], "batch_size": 8, "timeout": 30}
        data = torch_data.Dataset(
            ranks[rank].folder, 0, rank=rank, exchange="all", comm=ThreadTransport(mail, rank), **options
        )
        with data:
            data._opened()
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
