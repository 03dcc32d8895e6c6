"""bench/exchange: which results it refuses, and against which way of Spark its ratios are. Nothing is timed."""

import ctypes
import subprocess
import sys

import pytest

from places import ROOT

sys.path.append(str(ROOT / "bench"))

from engine import benchmark, exchange, feeders, quiet
from engine.exchange import GROUP, SORT

SOURCE = {"elements": 5, "groups": 4, "key_sum": 30, "bound": 7}


def of_rank(first_key, last_key, elements=2, descents=0):
    return {"first_key": first_key, "last_key": last_key, "elements": elements, "descents": descents}


class TestSums:
    def test_the_ranks_together_have_the_source(self):
        ranks = [
            {"elements": 2, "groups": 1, "key_sum": exchange.WORD - 10, "bound": 3},
            {"elements": 3, "groups": 3, "key_sum": 40, "bound": 4},
        ]
        assert exchange.compared(SOURCE, exchange.together(ranks)) == []

    @pytest.mark.parametrize("key", list(SOURCE))
    def test_each_sum_that_differs_is_named(self, key):
        lines = exchange.compared(SOURCE, {**SOURCE, key: SOURCE[key] + 1})
        assert lines == [f"{key} {SOURCE[key] + 1}, the source has {SOURCE[key]}"]

    def test_a_job_that_answers_only_its_count_is_compared_with_that(self):
        assert exchange.compared(SOURCE, {"groups": 4}) == []
        assert exchange.compared(SOURCE, {"groups": 5}) == ["groups 5, the source has 4"]


class TestOrder:
    @pytest.mark.parametrize(
        "ranks",
        [
            [of_rank(1, 5), of_rank(5, 9)],
            [of_rank(0, 0, elements=0), of_rank(1, 5)],
            [of_rank(3, 5), of_rank(0, 0, elements=0), of_rank(6, 9)],
        ],
        ids=["in order", "first empty", "middle empty"],
    )
    def test_keys_in_order(self, ranks):
        assert exchange.out_of_order(ranks) == []

    def test_a_rank_that_begins_too_low(self):
        lines = exchange.out_of_order([of_rank(3, 5), of_rank(0, 0, elements=0), of_rank(4, 9)])
        assert lines == ["rank 2 begins with key 4, the rank before ends with 5"]

    def test_keys_that_descend_within_a_rank(self):
        assert exchange.out_of_order([of_rank(1, 5, descents=2)]) == ["rank 0: 2 keys below the key before"]


@pytest.fixture(scope="module")
def key_set_library(tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "key_set.so"
    sources = [ROOT / "bench" / "c" / name for name in ("key_set.c", "messages.c")]
    subprocess.run(["cc", "-std=c11", "-O1", "-shared", "-fPIC", "-o", file, *sources], check=True)
    return ctypes.CDLL(str(file))


class TestKeys:
    """bench/c/key_set.c, by which the ranks count their keys."""

    class KeySet(ctypes.Structure):
        _fields_ = (
            ("keys", ctypes.c_void_p),
            ("taken", ctypes.c_void_p),
            ("count", ctypes.c_size_t),
            ("capacity", ctypes.c_size_t),
        )

    @pytest.mark.parametrize(
        "keys",
        [[], [7, 7, 7], [0, -1, 0, 2**63 - 1, -(2**63)], [i << 20 for i in range(100_000)] * 2],
        ids=["none", "equal", "extreme", "many"],
    )
    def test_it_counts_each_key_once(self, key_set_library, keys):
        key_set = self.KeySet()
        for key in keys:
            key_set_library.key_set_add(ctypes.byref(key_set), ctypes.c_int64(key))
        assert key_set.count == len(set(keys))
        key_set_library.key_set_free(ctypes.byref(key_set))
        assert key_set.count == 0


class AnsweringSpark:
    def __init__(self, **answer):
        self._answer = {"nanos": 2e9, "read_millis": 500, "read_bytes": 9, "tally": None, **answer}

    def run(self, *_, **__):
        return self._answer


class TestSparksJobs:
    def test_a_job_in_seconds(self):
        one = exchange.shuffled(
            AnsweringSpark(count=4), GROUP, GROUP.ways[0], {**SOURCE, "partitions": 2}, verify=False
        )
        assert (one["job_s"], one["read_s"], one["wrong"]) == (2.0, 0.5, [])

    def test_a_wrong_count(self):
        one = exchange.shuffled(AnsweringSpark(count=4), SORT, SORT.ways[0], {**SOURCE, "partitions": 2}, verify=False)
        assert one["wrong"] == ["elements 4, the source has 5"]

    @pytest.mark.parametrize(("kind", "count", "wrong"), [(GROUP, 4, []), (SORT, 5, ["the keys are not in order"])])
    def test_only_a_sort_must_be_in_order(self, kind, count, wrong):
        spark = AnsweringSpark(count=count, tally={**SOURCE, "in_order": False})
        one = exchange.shuffled(spark, kind, kind.ways[0], {**SOURCE, "partitions": 2}, verify=True)
        assert one["wrong"] == wrong

    def test_a_job_that_answers_a_tally(self):
        spark = AnsweringSpark(count=None, tally={**SOURCE, "groups": 5, "in_order": False})
        one = exchange.shuffled(spark, GROUP, GROUP.ways[1], {**SOURCE, "partitions": 2}, verify=False)
        assert one["wrong"] == ["groups 5, the source has 4"]


def rounds_of(seconds):
    """seconds: of each way by its name: the whole, and the stage that reads."""
    one = {name: {"job_s": job, "read_s": read} for name, (job, read) in seconds.items()}
    return quiet.Rounds([(0.0, one)] * 3, 3)


class TestRatios:
    def test_the_fastest_ways_that_do_the_same_count(self):
        rdd, frame, rows = (way.name for way in GROUP.ways)
        slow, fast = exchange.OURS
        spark = {rdd: (8.0, 6.0), frame: (9.0, 4.0), rows: (1.0, 1.0)}
        counted = rounds_of(spark | {slow: (3.0, None), fast: (2.0, None)})
        results = benchmark.Results("exchange")
        exchange.summarize(GROUP, exchange.figures_of(GROUP, counted), results)
        assert (results.summary["groupby_ratio"], results.summary["groupby_job_ratio"]) == (2.0, 4.0)
        assert (results.summary["groupby_rdd_ratio"], results.summary["groupby_rows_ratio"]) == (3.0, 0.5)

    def test_the_table_has_each_way(self):
        names = [*(way.name for way in GROUP.ways), *exchange.OURS]
        figures = exchange.figures_of(GROUP, rounds_of(dict.fromkeys(names, (2.0, 1.0))))
        rows = exchange.table(GROUP, SOURCE, figures).rows
        assert [row[0] for row in rows] == names
        assert rows[0][2] == "1.00 (1.00–1.00)" and rows[-1][2] == "–"


class TestFed:
    SOURCE = {"elements": 4, "bytes": 32, "crc_sum": 5}

    def test_a_rank_that_has_the_source_in_each_epoch(self):
        assert feeders.wrong(self.SOURCE, {**self.SOURCE, "sums": [4, 4, 4]}) == []

    @pytest.mark.parametrize("key", list(SOURCE))
    def test_what_differs_from_the_source(self, key):
        received = {**self.SOURCE, key: 6, "sums": [4, 4]}
        assert feeders.wrong(self.SOURCE, received) == [f"the rank received {key} 6, the source has {self.SOURCE[key]}"]

    def test_an_epoch_that_differs(self):
        assert feeders.wrong(self.SOURCE, {**self.SOURCE, "sums": [4, 4, 5]}) == ["epoch 2 differs from epoch 0"]
