/** Interrupting, leaving early, polling, and what the second handle says of itself. */
#include <atomic>
#include <stdexcept>
#include <thread>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeCloseTest : public ExchangeTest {
  protected:
    ExchangeCloseTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.window_bytes = 400;
    }

    void supply(int rank, Task &task) override {
        if (before) before(rank, task);
        ExchangeTest::supply(rank, task);
        if (after) after(rank, task);
    }

    std::function<void(int, Task &)> before, after;
    /** One rank, or none (-1), sees the end of the epoch, the others that of the data. All rows have the same key. */
    void run_stream_that_ends_early(int rank_with_epoch, int64_t rows_of_rank) {
        create({0, 0, 0});
        before = [=](int rank, Task &task) {
            std::vector<int64_t> rows;
            for (int64_t i = 0; i < rows_of_rank; i++) rows.push_back(8 * (rank * rows_of_rank + i));
            task.write_schema(row_schema(shape));
            task.supply(row_block(shape, rows), 0, static_cast<uint32_t>(rank), 0);
            if (rank == rank_with_epoch) task.end_of_epoch(0);
            task.end_of_data(0);
            see_end(task);
            throw std::runtime_error("done");
        };
        run_all();
    }

    void expect_all_of_a_stream_that_ends_early(int rank_with_epoch, int64_t rows_of_rank) {
        run_stream_that_ends_early(rank_with_epoch, rows_of_rank);
        std::vector<int64_t> all;
        for (const auto &rank : ranks) {
            EXPECT_EQ(SUPPLY_END_OF_DATA, rank->status) << rank->error;
            EXPECT_TRUE(rank->epochs.empty()) << "no rank sees the end of an epoch that is not whole";
            all.insert(all.end(), rank->ids.begin(), rank->ids.end());
        }
        EXPECT_EQ(static_cast<size_t>(3 * rows_of_rank), all.size());
    }
};

TEST_F(ExchangeCloseTest, AnInterruptedCallMayBeRepeated) {
    create({100, 100});
    std::atomic<bool> interrupts{true}, is_interrupted{false};
    ranks[0]->pair_options.interrupted = [](void *context) {
        return static_cast<std::atomic<bool> *>(context)->load();
    };
    ranks[0]->pair_options.interrupted_context = &interrupts;
    before = [&](int rank, Task &) {
        if (rank == 1) wait_until("the interruption", [&] { return is_interrupted.load(); });
    };
    run([&](int number, ExchangeRank &rank) {
        if (number == 0) interrupts = false;
        rank.open(*network, number, &options);
        if (number == 0) {
            interrupts = true;
            EXPECT_EQ(SUPPLY_INTERRUPTED, rank.read_epoch(shape));
            interrupts = false;
            is_interrupted = true;
        }
        rank.read_all(shape);
    });
    expect_once();
}

TEST_F(ExchangeCloseTest, TryNextNeverWaits) {
    create({100, 100});
    run_opened([&](int, ExchangeRank &rank) {
        supply_block_t block;
        while (rank.status != SUPPLY_END_OF_DATA && rank.status >= 0) {
            rank.status = supply_try_next(rank.handle.get(), &block);
            if (rank.status == SUPPLY_END_OF_EPOCH) rank.epochs.push_back(rank.ids);
            if (rank.status == SUPPLY_AGAIN) std::this_thread::yield();
            if (rank.status != SUPPLY_OK) continue;
            const std::vector<int64_t> rows = read_rows(rank.handle.get(), block, shape);
            rank.ids.insert(rank.ids.end(), rows.begin(), rows.end());
            supply_release(rank.handle.get(), &block);
        }
        EXPECT_STATUS(SUPPLY_OK, supply_close(rank.handle.release()), rank.handle);
    });
    expect_once();
}

TEST_F(ExchangeCloseTest, LeavingEarlyTellsSparkWhy) {
    create({500, 500});
    after = [](int, Task &task) {
        EXPECT_TRUE(says(task.header().rank_failure, {"closed its pair before the end of data", "sequence 2"}));
    };
    run_opened([&](int, ExchangeRank &rank) {
        supply_block_t block;
        for (int i = 0; i < 2; i++) EXPECT_STATUS(SUPPLY_OK, supply_next(rank.handle.get(), &block), rank.handle);
        EXPECT_EQ(SUPPLY_OK, supply_close(rank.handle.release()));
        EXPECT_TRUE(rank.folder.is_empty());
    });
}

TEST_F(ExchangeCloseTest, AbortTellsSparkTheReason) {
    create({500, 500});
    after = [](int, Task &task) { EXPECT_TRUE(says(task.header().rank_failure, {"the loss is not a number"})); };
    run_opened([&](int, ExchangeRank &rank) {
        supply_block_t block;
        EXPECT_STATUS(SUPPLY_OK, supply_next(rank.handle.get(), &block), rank.handle);
        EXPECT_EQ(SUPPLY_OK, supply_abort(rank.handle.release(), "the loss is not a number"));
    });
}

TEST_F(ExchangeCloseTest, TheHandleDescribesItself) {
    shape = Shape::every;
    create({50, 50});
    run_opened([&](int, ExchangeRank &rank) {
        EXPECT_EQ(-1, supply_fd(rank.handle.get()));
        supply_block_t block;
        EXPECT_STATUS(SUPPLY_OK, supply_next(rank.handle.get(), &block), rank.handle);
        EXPECT_EQ(0u, block.sequence);
        EXPECT_EQ(0u, block.partition) << "the window";
        EXPECT_EQ(0u, block.first_element);
        EXPECT_EQ(7, supply_column_count(rank.handle.get()));
        EXPECT_EQ(5, supply_column_index(rank.handle.get(), "key"));
        supply_counts_t counts;
        EXPECT_EQ(SUPPLY_AGAIN, supply_counts(rank.handle.get(), &counts));
        rank.handle.reset();
    });
}

TEST_F(ExchangeCloseTest, AllSlotsHeldIsAnError) {
    create({500, 500});
    run_opened([&](int, ExchangeRank &rank) {
        supply_block_t blocks[4];
        for (int i = 0; i < 3; i++) EXPECT_STATUS(SUPPLY_OK, supply_next(rank.handle.get(), &blocks[i]), rank.handle);
        EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(rank.handle.get(), &blocks[3]), rank.handle);
        for (int i = 0; i < 3; i++) supply_release(rank.handle.get(), &blocks[i]);
        EXPECT_STATUS(SUPPLY_OK, supply_next(rank.handle.get(), &blocks[3]), rank.handle);
        rank.handle.reset();
    });
}

/** A task that stores no columns, because its stream has ended before its first batch. */
TEST_F(ExchangeCloseTest, ARankWithoutColumnsTakesThoseOfAnother) {
    shape = Shape::every;
    options.window_bytes = 2000;
    create({0, 50, 60});
    before = [](int rank, Task &task) {
        if (rank != 0) return;
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
        throw std::runtime_error("done");
    };
    run_all();
    expect_once();
}

TEST_F(ExchangeCloseTest, AStreamMayEndInTheMiddleOfAnEpoch) { expect_all_of_a_stream_that_ends_early(1, 1); }

/* No rank sees the end of the epoch. Three windows for one rank, which has space for one and a quarter. */
TEST_F(ExchangeCloseTest, AStreamMayEndInTheMiddleOfAnEpochAndInSeveralRounds) {
    shape = Shape::every;
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "key";
    expect_all_of_a_stream_that_ends_early(-1, 5);
}

TEST_F(ExchangeCloseTest, AStreamThatIsSortedMayEndInTheMiddleOfAnEpoch) {
    options.policy = SUPPLY_EXCHANGE_RANGE;
    options.seed = 0;
    options.column = "id";
    expect_all_of_a_stream_that_ends_early(1, 1);
}

/* In the last window the other ranks have everything, and cannot be told any more. */
TEST_F(ExchangeCloseTest, WhatCannotBeSortedAtTheEndOfAStreamIsAnError) {
    options.policy = SUPPLY_EXCHANGE_RANGE;
    options.seed = 0;
    options.column = "id";
    options.spill_folder = "/nowhere/at/all";
    for (const int64_t rows : {1, 30, 60}) {
        options.memory_bytes = 1;
        ranks.clear();
        data.clear();
        run_stream_that_ends_early(-1, rows);
        for (const auto &rank : ranks) {
            EXPECT_EQ(SUPPLY_ERROR_SYSTEM, rank->status);
            EXPECT_TRUE(says(rank->error, {"/nowhere/at/all"})) << rows << " rows";
        }
    }
}

} // namespace supply_test
