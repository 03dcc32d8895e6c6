/** The policy all: every element once, and the same number on each rank if each supplies the same. */
#include <algorithm>
#include <atomic>
#include <numeric>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeAllTest : public ExchangeTest {
  protected:
    ExchangeAllTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.seed = 5;
        options.window_bytes = 400;
    }

    void supply(int rank, Task &task) override {
        if (task_of) return task_of(rank, task);
        ExchangeTest::supply(rank, task);
    }

    std::function<void(int, Task &)> task_of;

    /** How many rows of that rank's data another one has received in the first epoch. */
    uint64_t moved(size_t from, size_t to) {
        uint64_t count = 0;
        const std::vector<int64_t> &rows = data[from].ids;
        for (const int64_t id : ranks[to]->epochs[0]) count += id >= rows.front() && id <= rows.back();
        return count;
    }
};

TEST_F(ExchangeAllTest, TwoRanksReceiveEachElementOnce) {
    create({500, 500});
    run_all();
    expect_once();
    EXPECT_NEAR(250, static_cast<double>(moved(0, 1)), 1);
}

TEST_F(ExchangeAllTest, OneRankReceivesItsOwn) {
    create({100});
    run_all();
    expect_once();
    EXPECT_FALSE(std::is_sorted(ranks[0]->epochs[0].begin(), ranks[0]->epochs[0].end())) << "but in another order";
}

TEST_F(ExchangeAllTest, EightRanksWithEveryColumn) {
    shape = Shape::every;
    options.window_bytes = 3000;
    create({200, 200, 200, 200, 200, 200, 200, 200});
    run_all();
    expect_once();
    for (const auto &rank : ranks) EXPECT_EQ(200u, rank->epochs[0].size());
}

TEST_F(ExchangeAllTest, FourHundredColumnsAndALongName) {
    shape = Shape::wide;
    options.window_bytes = 30000;
    create({40, 0, 45});
    for (const auto &rank : ranks) {
        rank->pair_options.block_bytes = 1 << 18;
        rank->pair_options.ring_bytes = 1 << 20;
    }
    run_all();
    expect_once();
}

TEST_F(ExchangeAllTest, EqualCountsGiveEqualCounts) {
    create({333, 333, 333, 333, 333}, 2);
    run_all();
    expect_once(2);
    for (const auto &rank : ranks) {
        EXPECT_EQ(333u, rank->epochs[0].size());
        EXPECT_EQ(333u, rank->epochs[1].size());
        EXPECT_EQ(ranks[0]->blocks, rank->blocks) << "in each window";
        EXPECT_NE(rank->epochs[0], rank->epochs[1]) << "in another order";
    }
}

TEST_F(ExchangeAllTest, TheSameSeedGivesTheSameOrder) {
    create({300, 300, 300});
    run_all();
    std::vector<std::vector<int64_t>> first;
    for (const auto &rank : ranks) first.push_back(rank->epochs[0]);
    for (const uint64_t seed : {5, 6}) {
        ranks.clear();
        data.clear();
        options.seed = seed;
        create({300, 300, 300});
        run_all();
        expect_once();
        for (size_t i = 0; i < first.size(); i++) EXPECT_EQ(seed == 5, first[i] == ranks[i]->epochs[0]) << seed;
    }
}

TEST_F(ExchangeAllTest, BlocksDoNotMatter) {
    create({300, 300});
    run_all();
    const std::vector<int64_t> with_small_blocks = ranks[0]->epochs[0];
    ranks.clear();
    data.clear();
    create({300, 300});
    data[0].block_elements = 33;
    data[1].block_elements = 90;
    run_all();
    EXPECT_EQ(with_small_blocks, ranks[0]->epochs[0]);
}

TEST_F(ExchangeAllTest, UnequalAndEmptyRanks) {
    shape = Shape::every;
    options.window_bytes = 1000;
    create({0, 317, 3, 0, 40}, 2);
    run_all();
    expect_once(2);
}

TEST_F(ExchangeAllTest, NoElementsAtAll) {
    create({0, 0, 0}, 3);
    run_all();
    expect_once(3);
}

TEST_F(ExchangeAllTest, OnlyTheFractionMoves) {
    options.fraction = 0.25;
    create({800, 800, 800, 800});
    run_all();
    expect_once();
    for (size_t rank = 0; rank < 4; rank++) {
        EXPECT_NEAR(650, static_cast<double>(moved(rank, rank)), 20) << "three quarters, and a quarter of the rest";
        EXPECT_EQ(800u, ranks[rank]->epochs[0].size());
    }
}

TEST_F(ExchangeAllTest, AWindowLargerThanTheRing) {
    shape = Shape::every;
    options.window_bytes = 100 * 1000;
    create({900, 700});
    data[0].block_elements = 60;
    run_all();
    expect_once();
}

TEST_F(ExchangeAllTest, AWindowOfOneElement) {
    options.window_bytes = 8;
    create({20, 30});
    run_all();
    expect_once();
}

TEST_F(ExchangeAllTest, ASlotHoldsNoMoreThanItShould) {
    shape = Shape::every;
    options.window_bytes = 2000;
    options.messages_only = true;
    create({300, 300, 300});
    run_all();
    expect_once();
    EXPECT_LE(network->most_received(), 2500u);
}

/* Until then it has the settings of another rank, which are not what it does with its own elements. */
TEST_F(ExchangeAllTest, ATaskThatComesInALaterEpochSaysTheSame) {
    std::atomic<bool> has_ended_epoch{false};
    supply_exchange_options_init(&options);
    task_of = [&](int rank, Task &task) {
        if (rank == 1) {
            task.end_of_epoch(0);
            wait_until("the end of an epoch", [&] { return has_ended_epoch.load(); });
        }
        task.header().exchange = EXCHANGE_ALL;
        task.header().exchange_fraction = EXCHANGE_FRACTION_UNIT;
        task.write_schema(row_schema(shape));
        for (uint32_t epoch = static_cast<uint32_t>(rank); epoch < 2; epoch++) {
            task.supply(row_block(shape, data[static_cast<size_t>(rank)].ids), epoch);
            task.end_of_epoch(epoch);
        }
        task.end_of_data(1);
        task.see_end();
    };
    create({50, 50});
    run([&](int number, ExchangeRank &rank) {
        rank.open(*network, number, &options);
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape)) << rank.error;
        has_ended_epoch = true;
        rank.ids.clear();
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape)) << rank.error;
        rank.epochs.push_back(rank.ids);
        EXPECT_EQ(SUPPLY_END_OF_DATA, rank.read_epoch(shape)) << rank.error;
        rank.handle.reset();
    });
    EXPECT_EQ(25u, moved(1, 0));
    EXPECT_EQ(25u, moved(0, 1));
}

/* As in data-parallel training: no rank begins a step before all have finished the step before. */
class ExchangeStepsTest : public ExchangeAllTest {
  protected:
    void await_step(uint64_t step) {
        steps_done++;
        wait_until("all ranks", [&] { return steps_done.load() >= step * ranks.size(); });
    }

    void run_steps(const std::vector<uint32_t> &counts, uint64_t batch) {
        ranks.clear();
        data.clear();
        create(counts);
        steps_done = 0;
        const uint64_t steps = std::accumulate(counts.begin(), counts.end(), uint64_t{0}) / counts.size() / batch;
        run([&](int number, ExchangeRank &rank) {
            ASSERT_EQ(SUPPLY_OK, rank.open(*network, number, &options));
            uint64_t received = 0, step = 0;
            supply_block_t block;
            while ((rank.status = supply_next(rank.handle.get(), &block)) == SUPPLY_OK) {
                received += block.element_count;
                supply_release(rank.handle.get(), &block);
                while (step < steps && received >= (step + 1) * batch) await_step(++step);
            }
            EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.status);
            EXPECT_EQ(steps, step);
            rank.read_all(shape);
        });
    }

    std::atomic<uint64_t> steps_done{0};
};

TEST_F(ExchangeStepsTest, NoRankNeedsAnotherWindowThanTheOthers) {
    shape = Shape::every;
    options.window_bytes = 1500;
    for (const uint64_t batch : {3, 8}) {
        SCOPED_TRACE(batch);
        run_steps({96, 96}, batch);
        run_steps({90, 6, 0}, batch);
    }
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    options.seed = 0;
    run_steps({70, 2, 0, 24}, 4);
}

/* The windows of the ranks that have not ended hold fewer elements than there are ranks. */
TEST_F(ExchangeStepsTest, WindowsWithFewerElementsThanRanks) {
    options.window_bytes = 24;
    run_steps({64, 0, 0, 0, 0, 0, 0, 0}, 1);
    run_steps({33, 2, 30, 0, 0, 1, 0, 0}, 2);
    shape = Shape::every;
    options.window_bytes = 150;
    run_steps({64, 0, 0, 0, 0, 0, 0, 0}, 1);
    run_steps({40, 9, 0, 0, 0, 23}, 1);
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    options.seed = 0;
    run_steps({7, 0, 33, 0, 0, 0, 2, 0}, 1);
}

/* Some ranks are dealt larger elements than their slot holds, so these windows have several rounds. */
TEST_F(ExchangeStepsTest, NoRankNeedsAnotherRoundThanTheOthers) {
    shape = Shape::every;
    for (const uint32_t bytes : {150, 300, 900}) {
        options.window_bytes = bytes;
        SCOPED_TRACE(bytes);
        run_steps({200, 200, 200, 200}, 1);
        run_steps({200, 13, 0, 87}, 3);
    }
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    options.seed = 0;
    run_steps({200, 13, 0, 87}, 1);
}

/* Each rank keeps what it gets until all have an element, so nobody needs memory for more than a window. */
TEST_F(ExchangeAllTest, AWindowWithFewerElementsThanRanksHasParts) {
    options.window_bytes = 24;
    for (const bool messages_only : {false, true}) {
        ranks.clear();
        data.clear();
        options.messages_only = messages_only;
        create({100, 0, 0, 0, 0, 0, 0, 0}, 2);
        run_all();
        expect_once(2);
        for (const auto &rank : ranks) {
            EXPECT_NEAR(12.5, static_cast<double>(rank->epochs[0].size()), 0.5);
            for (const uint32_t elements : rank->blocks) EXPECT_EQ(1u, elements);
        }
    }
}

/* The last part is levelled to the ranks that have none; what is left begins the next window. */
TEST_F(ExchangeAllTest, APartMayBeFollowedByManySmallElements) {
    shape = Shape::nested;
    options.window_bytes = 400;
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    options.seed = 0;
    create({3, 0, 0, 70, 0, 0, 0, 1, 0, 0, 0}, 2);
    run_all();
    expect_once(2);
    for (const auto &rank : ranks) EXPECT_NEAR(6.7, static_cast<double>(rank->epochs[0].size()), 0.9);
}

} // namespace supply_test
