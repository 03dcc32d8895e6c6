/** The thread of an exchange: what moves while the program computes, and what the program must not see of it. */
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>

#include "exchange_ranks.h"
#include "forked.h"

extern "C" {
#include "mover.h"
}

namespace supply_test {

class ExchangeOverlapTest : public ExchangeTest {
  protected:
    ExchangeOverlapTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.window_bytes = 160; /* 20 rows */
    }

    void supply(int rank, Task &task) override {
        if (before) before(rank, task);
        ExchangeTest::supply(rank, task);
    }

    /** Reads a block, or returns what comes instead. */
    supply_status_t read_block(ExchangeRank &rank) {
        supply_block_t block;
        rank.status = supply_next(rank.handle.get(), &block);
        rank.error = supply_error(rank.handle.get());
        if (rank.status != SUPPLY_OK) return rank.status;
        const std::vector<int64_t> rows = read_rows(rank.handle.get(), block, shape);
        rank.ids.insert(rank.ids.end(), rows.begin(), rows.end());
        return supply_release(rank.handle.get(), &block);
    }

    /** Waits until all ranks have called it. */
    void meet() {
        met++;
        wait_until("the other ranks", [&] { return met >= static_cast<int>(ranks.size()); });
    }

    /** Waits until a rank has begun as many collectives of the next window. */
    void await_collectives(int rank, uint64_t from, uint64_t count) {
        wait_until("collectives of the next window", [&] { return network->begun(rank) >= from + count; });
    }

    /** The task supplies the first window of its rank, and the rest later. */
    void stall_after_a_window(int rank, Task &task, const std::atomic<bool> &continues) {
        std::vector<int64_t> &ids = data[static_cast<size_t>(rank)].ids;
        task.write_schema(row_schema(shape));
        task.supply(row_block(shape, std::vector<int64_t>(ids.begin(), ids.begin() + 20)), 0,
                    static_cast<uint32_t>(rank), 0);
        ids.erase(ids.begin(), ids.begin() + 20);
        wait_until("the end of a stall", [&] { return continues.load(); });
    }

    /** A window of columns of fixed widths needs an agreement and offers. */
    static constexpr uint64_t of_window = 2;

    std::function<void(int, Task &)> before;
    std::atomic<int> met{0};
};

class ExchangeOverlapPathsTest : public ExchangeOverlapTest, public ::testing::WithParamInterface<bool> {
  protected:
    ExchangeOverlapPathsTest() { options.messages_only = GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(MessagesOnly, ExchangeOverlapPathsTest, ::testing::Bool());

/* The program of rank 1 computes, while rank 0 gets all of its part of the next window. */
TEST_P(ExchangeOverlapPathsTest, TheNextWindowMovesWhileTheProgramComputes) {
    create({100, 100});
    for (const auto &rank : ranks) rank->pair_options.timeout = 0.5;
    std::atomic<bool> has_second{false};
    run_opened([&](int number, ExchangeRank &rank) {
        EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
        if (number == 1) {
            wait_until("the second block of rank 0", [&] { return has_second.load(); });
            network->fail_from(1, network->begun(1));
        }
        EXPECT_EQ(SUPPLY_OK, read_block(rank)) << "of rank " << number << ", without the network: " << rank.error;
        if (number == 0) has_second = true;
        if (number == 1) {
            EXPECT_EQ(SUPPLY_ERROR_SYSTEM, read_block(rank));
            EXPECT_TRUE(says(rank.error, {"the test's network is broken"}));
        }
        await_task(number);
        supply_abort(rank.handle.release(), "the test is over");
    });
}

/* The last window's, too. */
TEST_P(ExchangeOverlapPathsTest, APositionDoesNotKnowOfIt) {
    for (int blocks = 1; blocks <= 5; blocks++) {
        for (const uint64_t collectives : {uint64_t{0}, uint64_t{1}, of_window}) {
            SCOPED_TRACE(std::to_string(blocks) + " blocks, and collectives: " + std::to_string(collectives));
            std::vector<supply_position_t> saved(2);
            ranks.clear();
            data.clear();
            met = 0;
            create({100, 100});
            run_opened([&](int number, ExchangeRank &rank) {
                for (int i = 1; i < blocks; i++) EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
                const uint64_t begun = network->begun(number);
                EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
                meet();
                if (blocks < 5) await_collectives(number, begun, collectives);
                EXPECT_EQ(SUPPLY_OK, supply_position_save(rank.handle.get(), &saved[static_cast<size_t>(number)]));
                await_task(number);
                supply_abort(rank.handle.release(), "the test is over");
            });
            const std::vector<Supplied> same = data;
            const std::vector<std::vector<int64_t>> first = {ranks[0]->ids, ranks[1]->ids};
            ranks.clear();
            data.clear();
            create({0, 0});
            data = same;
            for (size_t i = 0; i < 2; i++) {
                EXPECT_EQ(20u * static_cast<uint32_t>(blocks), first[i].size());
                ranks[i]->ids = first[i];
                ranks[i]->pair_options.position = &saved[i];
            }
            run_all();
            expect_once();
        }
    }
}

TEST_F(ExchangeOverlapTest, NobodyAsksForTheNextEpochBeforeTheProgram) {
    create({40, 40}, 2);
    std::vector<Task *> tasks(2);
    before = [&](int rank, Task &task) { tasks[static_cast<size_t>(rank)] = &task; };
    std::atomic<bool> has_asked{false};
    run_opened([&](int number, ExchangeRank &rank) {
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape)) << rank.error;
        rank.epochs.push_back(rank.ids);
        rank.ids.clear();
        if (number == 1) {
            wait_until("rank 0", [&] { return has_asked.load(); });
            EXPECT_EQ(0u, __atomic_load_n(&tasks[1]->header().acknowledged, __ATOMIC_ACQUIRE));
        } else {
            supply_block_t block;
            while (__atomic_load_n(&tasks[0]->header().acknowledged, __ATOMIC_ACQUIRE) == 0)
                EXPECT_EQ(SUPPLY_AGAIN, supply_try_next(rank.handle.get(), &block));
            has_asked = true;
        }
        rank.read_all(shape);
    });
    expect_once(2);
}

TEST_F(ExchangeOverlapTest, AFailureWaitsForTheProgram) {
    create({200, 200});
    std::vector<Task *> tasks(2);
    before = [&](int rank, Task &task) { tasks[static_cast<size_t>(rank)] = &task; };
    run_opened([&](int number, ExchangeRank &rank) {
        EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
        const uint64_t begun = network->begun(number);
        meet();
        if (number == 1) tasks[1]->send_failure("the test's Spark has failed");
        EXPECT_STREQ("no failure", supply_error(rank.handle.get()));
        /* A block that is complete comes first. */
        while (read_block(rank) == SUPPLY_OK) continue;
        EXPECT_LE(begun, network->begun(number));
        await_task(number);
        rank.handle.reset();
    });
    expect_failure(SUPPLY_ERROR_SPARK, {"rank 1", "the test's Spark has failed"});
}

/* The time limit is for programs that wait. */
TEST_F(ExchangeOverlapTest, AProgramThatComputesMissesNoTimeLimit) {
    create({100, 100});
    for (const auto &rank : ranks) rank->pair_options.timeout = 0.05;
    std::atomic<bool> continues{false};
    before = [&](int rank, Task &task) {
        if (rank == 1) stall_after_a_window(rank, task, continues);
    };
    run_opened([&](int number, ExchangeRank &rank) {
        while (read_block(rank) == SUPPLY_ERROR_TIMEOUT) continue;
        const uint64_t begun = network->begun(number);
        /* After each limit the ranks agree on the failure, and then on its text. */
        await_collectives(number, begun, 8);
        continues = true;
        wait_until("a window", [&] { return network->begun(number) > begun + 8; });
        do read_block(rank);
        while (rank.status == SUPPLY_OK || rank.status == SUPPLY_ERROR_TIMEOUT);
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.status) << rank.error;
        EXPECT_EQ(SUPPLY_END_OF_DATA, read_block(rank)) << rank.error;
        EXPECT_EQ(100u, rank.ids.size());
        EXPECT_EQ(SUPPLY_OK, supply_close(rank.handle.release()));
    });
}

/* MPI has nothing under way when all ranks leave after the same block, wherever their threads are. */
TEST_P(ExchangeOverlapPathsTest, RanksThatCloseTogetherLeaveNothingUnderWay) {
    const double leave_seconds = exchange_leave_seconds;
    exchange_leave_seconds = 300;
    for (uint64_t collectives = 0; collectives <= of_window; collectives++) {
        SCOPED_TRACE(collectives);
        ranks.clear();
        data.clear();
        met = 0;
        create({200, 200, 200});
        run_opened([&](int number, ExchangeRank &rank) {
            const uint64_t begun = network->begun(number);
            EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
            if (number == 0) await_collectives(number, begun + of_window, collectives);
            await_task(number);
            meet();
            EXPECT_EQ(SUPPLY_OK, supply_close(rank.handle.release()));
            EXPECT_TRUE(rank.folder.is_empty());
        });
        EXPECT_EQ(0, network->freed_while_pending());
    }
    exchange_leave_seconds = leave_seconds;
}

/* Rank 1 has begun the agreement on a window, of which rank 0 has nothing yet. */
TEST_F(ExchangeOverlapTest, ARankThatClosesEarlyTellsTheOthers) {
    create({200, 200});
    std::atomic<bool> has_closed{false};
    before = [&](int rank, Task &task) {
        if (rank == 0) stall_after_a_window(rank, task, has_closed);
    };
    run_opened([&](int number, ExchangeRank &rank) {
        EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
        if (number == 1) read_block(rank);
        rank.handle.reset();
        if (number == 0) has_closed = true;
    });
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, ranks[1]->status);
    EXPECT_TRUE(says(ranks[1]->error, {"rank 0", "closed its pair before the end of data"}));
}

TEST_P(ExchangeOverlapPathsTest, AbortEndsTheThreadAtAnyStep) {
    for (int i = 0; i < 20; i++) {
        ranks.clear();
        data.clear();
        create({200, 200, 200});
        run_opened([&](int number, ExchangeRank &rank) {
            const uint64_t begun = network->begun(number);
            EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
            if (number == i % 3) await_collectives(number, begun, of_window + static_cast<uint64_t>(i % 2));
            await_task(number);
            EXPECT_EQ(SUPPLY_OK, supply_abort(rank.handle.release(), "the test is over"));
            EXPECT_TRUE(rank.folder.is_empty());
        });
    }
}

TEST_F(ExchangeOverlapTest, AForkedChildHasNoThread) {
    create({400, 400});
    run_opened([&](int number, ExchangeRank &rank) {
        for (int i = 0; i < 10; i++) {
            EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
            if (number == 1) continue;
            EXPECT_EQ(0, run_forked([&] {
                          supply_block_t block;
                          supply_position_t position;
                          const supply_status_t status = supply_position_save(rank.handle.get(), &position);
                          if (status != SUPPLY_OK || supply_next(rank.handle.get(), &block) != SUPPLY_ERROR_ARGUMENT)
                              return 1;
                          return supply_abandon_in_child(rank.handle.release()) == SUPPLY_OK ? 0 : 2;
                      }));
        }
        rank.read_all(shape);
    });
    for (const auto &rank : ranks) {
        EXPECT_EQ(SUPPLY_END_OF_DATA, rank->status) << rank->error;
        EXPECT_EQ(400u, rank->epochs.at(0).size());
    }
}

TEST_F(ExchangeOverlapTest, SignalsAndInterruptionsAreForTheProgramsThread) {
    create({200, 200});
    std::mutex mutex;
    std::set<std::thread::id> programs, interrupted, callers;
    network->observe = [&](int) {
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        const std::lock_guard<std::mutex> lock(mutex);
        callers.insert(std::this_thread::get_id());
        EXPECT_EQ(programs.count(std::this_thread::get_id()) == 0, sigismember(&blocked, SIGTERM) == 1);
    };
    std::function<void()> note = [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        interrupted.insert(std::this_thread::get_id());
    };
    for (const auto &rank : ranks) {
        rank->pair_options.interrupted_context = &note;
        rank->pair_options.interrupted = [](void *noted) {
            (*static_cast<std::function<void()> *>(noted))();
            return false;
        };
    }
    run([&](int number, ExchangeRank &rank) {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            programs.insert(std::this_thread::get_id());
        }
        rank.open(*network, number, &options);
        const uint64_t begun = network->begun(number);
        EXPECT_EQ(SUPPLY_OK, read_block(rank)) << rank.error;
        await_collectives(number, begun, 2 * of_window);
        rank.read_all(shape);
    });
    EXPECT_EQ(4u, callers.size());
    for (const std::thread::id thread : interrupted) EXPECT_EQ(1u, programs.count(thread));
}

/* MPI that is not initialized with MPI_THREAD_MULTIPLE. */
TEST_F(ExchangeOverlapTest, WithoutPermissionThereIsNoThread) {
    has_thread = false;
    create({200, 200}, 2);
    std::mutex mutex;
    std::set<std::thread::id> callers;
    network->observe = [&](int) {
        const std::lock_guard<std::mutex> lock(mutex);
        callers.insert(std::this_thread::get_id());
    };
    run_all();
    expect_once(2);
    EXPECT_EQ(2u, callers.size());
}

} // namespace supply_test
