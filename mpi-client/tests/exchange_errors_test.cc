/** Failures of the exchange: all ranks fail together, and each names what is wrong. */
#include <algorithm>
#include <atomic>

#include "exchange_ranks.h"

extern "C" {
#include "agree.h"
#include "exchange.h"
}

namespace supply_test {

class ExchangeErrorsTest : public ExchangeTest {
  protected:
    ExchangeErrorsTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.window_bytes = 400;
    }

    /** As run_all(); rank 1 has options of its own. */
    void run_with(const supply_exchange_options_t &other) {
        run([&](int rank, ExchangeRank &of) {
            if (of.open(*network, rank, rank == 1 ? &other : &options) == SUPPLY_OK) of.read_all(shape);
            await_task(rank);
            of.handle.reset();
        });
    }

    void supply(int rank, Task &task) override {
        if (before) before(rank, task);
        ExchangeTest::supply(rank, task);
    }

    void set_timeout(double seconds) {
        for (const auto &rank : ranks) rank->pair_options.timeout = seconds;
    }

    static supply_t *opened(ExchangeRank &rank) {
        supply_t *pair = nullptr;
        EXPECT_EQ(SUPPLY_OK, supply_open(&pair, &rank.pair_options));
        return pair;
    }

    std::function<void(int, Task &)> before;
};

TEST_F(ExchangeErrorsTest, OtherPolicies) {
    create({10, 10, 10});
    supply_exchange_options_t other = options;
    other.policy = SUPPLY_EXCHANGE_BALANCE;
    run_with(other);
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 0 has policy all", "rank 1 has policy balance", "same"});
}

TEST_F(ExchangeErrorsTest, OtherWindows) {
    create({10, 10});
    supply_exchange_options_t other = options;
    other.window_bytes = 401;
    run_with(other);
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"window_bytes 400", "window_bytes 401"});
}

TEST_F(ExchangeErrorsTest, WrongOptionsOfOneRank) {
    create({10, 10, 10});
    supply_exchange_options_t other = options;
    other.fraction = 2;
    run_with(other);
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 1", "fraction"});
    for (size_t bytes : {size_t{0}, offsetof(supply_exchange_options_t, memory_bytes), sizeof other + 8}) {
        other = options;
        other.struct_bytes = bytes;
        ranks.clear();
        create({10, 10});
        run_with(other);
        expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 1", "supply_exchange_options_init"});
    }
}

/* A fault of the library: rank 1 takes the first window for a larger one. Nobody waits for it, and all say what
 * differs.
 */
TEST_F(ExchangeErrorsTest, ARankThatHasPassedOtherSteps) {
    create({100, 100, 100});
    const uint64_t first_window = 3;
    network->change(1, first_window, sizeof(rank_state),
                    [](void *all) { static_cast<rank_state *>(all)->elements += 3; });
    run_all();
    expect_failure(SUPPLY_ERROR_CONTRACT, {"the steps of the ranks differ: rank 0 has epoch 0", "rank 1 has epoch 0",
                                           "window 1", "a fault of libsupply_exchange"});
}

TEST_F(ExchangeErrorsTest, APairWithoutTheOption) {
    create({10, 10});
    ranks[1]->pair_options.exchange = false;
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 1", "options.exchange"});
}

TEST_F(ExchangeErrorsTest, APairThatIsNotOpen) {
    create({10, 10});
    run([this](int rank, ExchangeRank &of) {
        if (rank == 0) {
            of.open(*network, rank, &options);
            await_task(rank);
            of.handle.reset();
            return;
        }
        {
            const Handle pair(opened(of));
            await_task(rank);
        }
        of.pair_options.mapped_file = "no absolute path";
        supply_t *closed = nullptr;
        EXPECT_EQ(SUPPLY_ERROR_CONFIG, supply_open(&closed, &of.pair_options));
        const transport transport = network->of(rank);
        of.status = supply__exchange_over(&closed, &transport, &options);
        of.error = "rank 1: " + std::string(supply_error(closed));
        supply_close(closed);
    });
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 1", "no absolute path"});
}

TEST_F(ExchangeErrorsTest, AnElementLargerThanTheWindow) {
    shape = Shape::every;
    options.window_bytes = 60;
    create({0, 40});
    run_all();
    expect_failure(SUPPLY_ERROR_CONFIG, {"rank 1", "element", "of partition 1", "60", "window_bytes"});
}

TEST_F(ExchangeErrorsTest, AFailureOfSpark) {
    create({100, 100, 100});
    before = [](int rank, Task &task) {
        if (rank == 2) task.send_failure("the test's Spark has failed");
    };
    run_all();
    expect_failure(SUPPLY_ERROR_SPARK, {"rank 2", "the test's Spark has failed"});
}

TEST_F(ExchangeErrorsTest, ARankThatNeverComes) {
    create({10, 10});
    set_timeout(0.1);
    run([this](int rank, ExchangeRank &of) {
        supply_t *pair = nullptr;
        if (rank == 1) {
            supply_open(&pair, &of.pair_options);
        } else {
            EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, of.open(*network, rank, &options));
            pair = of.handle.release();
        }
        await_task(rank);
        supply_close(pair);
    });
    EXPECT_TRUE(says(ranks[0]->error, {"another rank", "0.2 s"}));
    EXPECT_EQ(1, network->freed_while_pending());
}

TEST_F(ExchangeErrorsTest, ASlowSparkEndsNoWaitOfOthers) {
    create({50, 50});
    set_timeout(4);
    before = [this](int rank, Task &task) {
        task.write_schema(row_schema(shape));
        /* The opening, an agreement on "not yet", and the next one. */
        if (rank == 1) wait_until("a sign of rank 1", [this] { return network->begun(0) >= 5; });
    };
    run_all();
    expect_once();
}

TEST_F(ExchangeErrorsTest, AfterATimeoutTheCallMayBeRepeated) {
    create({50, 50});
    set_timeout(0.2);
    std::atomic<int> timeouts{0};
    before = [&](int rank, Task &) {
        if (rank == 1) wait_until("time-outs", [&] { return timeouts == 2; });
    };
    run([&](int rank, ExchangeRank &of) {
        of.open(*network, rank, &options);
        EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, of.read_epoch(shape));
        EXPECT_TRUE(says(of.error, {"rank 1", "supplied nothing"}));
        timeouts++;
        while (of.status == SUPPLY_ERROR_TIMEOUT) of.read_epoch(shape);
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, of.status) << of.error;
        of.epochs.push_back(of.ids);
        of.read_all(shape);
    });
    expect_once();
}

TEST_F(ExchangeErrorsTest, OtherColumns) {
    create({10, 10});
    before = [](int rank, Task &task) {
        if (rank == 1) task.write_schema(schema_of({Column::fixed("number", "l", "")}));
    };
    run_all();
    expect_failure(SUPPLY_ERROR_CONTRACT, {"rank 0 has 'id' l", "rank 1 has 'number' l"});
}

TEST_F(ExchangeErrorsTest, OtherEpochs) {
    create({10, 10}, 3);
    supply_position_t position;
    ASSERT_EQ(SUPPLY_OK, supply_position_from_text(&position, "position-1:1:0:0:0:0000000000000000"));
    ranks[1]->pair_options.position = &position;
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 0 has epoch 0", "rank 1 has epoch 1"});
}

TEST_F(ExchangeErrorsTest, ABrokenNetwork) {
    create({50, 50});
    set_timeout(0.2);
    network->fail_from(1, 5);
    run_all();
    EXPECT_EQ(SUPPLY_ERROR_SYSTEM, ranks[1]->status);
    EXPECT_TRUE(says(ranks[1]->error, {"the test's network is broken"}));
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, ranks[0]->status);
}

TEST_F(ExchangeErrorsTest, ACommunicatorWithoutAllRanks) {
    create({10});
    run([&](int number, ExchangeRank &rank) {
        rank.pair_options.rank = 3;
        supply_t *pair = opened(rank);
        const transport transport = network->of(number);
        rank.status = supply__exchange_over(&pair, &transport, &options);
        rank.error = supply_error(pair);
        await_task(number);
        supply_close(pair);
    });
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 3", "rank 0 of 1", "all ranks of the job"});
}

/** What Spark says in the header. */
class ExchangeSuppliedTest : public ExchangeErrorsTest {
  protected:
    ExchangeSuppliedTest() {
        options.policy = SUPPLY_EXCHANGE_AS_SUPPLIED;
        before = [this](int, Task &task) {
            task.header().exchange = supplied;
            task.header().exchange_seed = 9;
            task.header().exchange_fraction = EXCHANGE_FRACTION_UNIT / 2;
        };
    }
    uint32_t supplied = EXCHANGE_ALL;
};

TEST_F(ExchangeSuppliedTest, AllIsAsIfTheProgramHadSaidIt) {
    create({200, 200});
    run_all();
    expect_once();
    const std::vector<int64_t> rows = ranks[0]->epochs[0];
    options.policy = SUPPLY_EXCHANGE_ALL;
    options.seed = 9;
    options.fraction = 0.5;
    ranks.clear();
    data.clear();
    create({200, 200});
    run_all();
    expect_once();
    EXPECT_EQ(rows, ranks[0]->epochs[0]);
}

TEST_F(ExchangeSuppliedTest, WhatTheProgramLeavesOutIsSparks) {
    create({400, 400});
    options.policy = SUPPLY_EXCHANGE_ALL;
    run_all();
    expect_once();
    const auto stayed =
        std::count_if(ranks[0]->epochs[0].begin(), ranks[0]->epochs[0].end(), [](int64_t id) { return id < 400; });
    EXPECT_NEAR(300, static_cast<double>(stayed), 10) << "half of them move, and half of these to the other rank";
}

TEST_F(ExchangeSuppliedTest, AnotherFractionOrSeedIsAnError) {
    options.policy = SUPPLY_EXCHANGE_ALL;
    options.fraction = 0.25;
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"--exchange-fraction 0.5", "on one side only"});
    options.fraction = 0.5;
    options.seed = 8;
    ranks.clear();
    data.clear();
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"--seed 9", "on one side only"});
}

TEST_F(ExchangeSuppliedTest, APairThatHasFailedBefore) {
    create({10, 10});
    run([&](int number, ExchangeRank &rank) {
        rank.pair_options.rank = number;
        supply_t *pair = opened(rank);
        supply_block_t block;
        if (number == 1) {
            EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_next(pair, &block));
        }
        const transport transport = network->of(number);
        rank.status = supply__exchange_over(&pair, &transport, &options);
        rank.error = supply_error(pair);
        await_task(number);
        supply_close(pair);
    });
    expect_failure(SUPPLY_ERROR_ARGUMENT,
                   {"rank 1", "close it and open it again", "call supply_exchange_open() before supply_next()"});
}

TEST_F(ExchangeSuppliedTest, NothingIsAnError) {
    supplied = 0;
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"Spark was not started with --shuffle all: name a policy"});
}

TEST_F(ExchangeSuppliedTest, AnotherPolicyIsAnError) {
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"--shuffle all", "policy"});
}

TEST_F(ExchangeSuppliedTest, AnUnknownExchangeIsAnError) {
    supplied = 77;
    create({10, 10});
    run_all();
    expect_failure(SUPPLY_ERROR_CONTRACT, {"77"});
}

} // namespace supply_test
