/** Positions of the exchange: a run that resumes gives exactly the rest. */
#include <algorithm>
#include <atomic>
#include <climits>
#include <random>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangePositionTest : public ExchangeTest {
  protected:
    ExchangePositionTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.window_bytes = 160;
    }

    /** Where a rank stops: after that many whole blocks, and `extra` elements of the next one. */
    struct Stop {
        int blocks;
        uint32_t extra;
    };

    /** The first run: receives `received` blocks, of which the program consumes those up to the stop. */
    void read_until(ExchangeRank &rank, const Stop &stop, int received, supply_position_t &saved) {
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_OK, supply_position_save(rank.handle.get(), &saved), rank.handle);
        for (int i = 0; i < received; i++) {
            const supply_status_t status = supply_next(rank.handle.get(), &block);
            if (status == SUPPLY_END_OF_EPOCH) return;
            ASSERT_STATUS(SUPPLY_OK, status, rank.handle);
            std::vector<int64_t> rows = read_rows(rank.handle.get(), block, shape);
            if (i == stop.blocks) rows.resize(std::min<size_t>(stop.extra, rows.size()));
            const bool is_consumed = i < stop.blocks || (i == stop.blocks && stop.extra > 0);
            if (is_consumed) {
                supply_position_after(rank.handle.get(), &block, static_cast<uint32_t>(rows.size()), &saved);
                rank.ids.insert(rank.ids.end(), rows.begin(), rows.end());
            }
            supply_release(rank.handle.get(), &block);
        }
    }

    /** Runs until the stops, then resumes there. whole: the first run reads on to the end of the epoch. */
    void run_twice(const std::vector<uint32_t> &counts, const std::vector<Stop> &stops, bool whole = false) {
        ranks.clear();
        data.clear();
        create(counts);
        std::vector<supply_position_t> saved(counts.size());
        std::vector<std::vector<int64_t>> before(counts.size());
        int received = 0;
        for (const Stop &stop : stops) received = std::max(received, stop.blocks + (stop.extra > 0));
        if (whole) received = INT_MAX;
        run([&](int number, ExchangeRank &) {
            const size_t at = static_cast<size_t>(number);
            ExchangeRank &rank = *ranks[at];
            if (rank.open(*network, number, &options) == SUPPLY_OK) read_until(rank, stops[at], received, saved[at]);
            before[at] = rank.ids;
            await_task(number);
            rank.handle.reset();
        });
        resume(saved, before);
    }

    /** A second run of the same data. */
    void resume(const std::vector<supply_position_t> &saved, const std::vector<std::vector<int64_t>> &before) {
        const std::vector<Supplied> same_data = data;
        ranks.clear();
        data.clear();
        create(std::vector<uint32_t>(saved.size(), 0));
        data = same_data;
        for (size_t i = 0; i < ranks.size(); i++) {
            ranks[i]->ids = before[i];
            ranks[i]->pair_options.position = &saved[i];
        }
        run_all();
    }

    static std::vector<Stop> same(size_t ranks, int blocks, uint32_t extra) {
        return std::vector<Stop>(ranks, Stop{blocks, extra});
    }
};

TEST_F(ExchangePositionTest, AtEveryStep) {
    for (int blocks = 0; blocks <= 6; blocks++)
        for (const uint32_t extra : {0u, 1u, 7u}) {
            SCOPED_TRACE(std::to_string(blocks) + " blocks and " + std::to_string(extra));
            run_twice({120, 120, 120}, same(3, blocks, blocks < 6 ? extra : 0));
            expect_once();
        }
}

/* A rank whose own elements have ended still receives those of the others. */
TEST_F(ExchangePositionTest, NearTheEndOfARankWithFewElements) {
    options.window_bytes = 32;
    for (int blocks = 0; blocks <= 7; blocks++) {
        SCOPED_TRACE(blocks);
        run_twice({2, 30}, same(2, blocks, 0), true);
        expect_once();
        run_twice({0, 30}, same(2, blocks, 0), true);
        expect_once();
    }
}

TEST_F(ExchangePositionTest, InWindowsThatGetAnElementForEachRank) {
    options.window_bytes = 16;
    for (int blocks = 0; blocks <= 7; blocks++) {
        SCOPED_TRACE(blocks);
        run_twice({0, 30, 0, 5, 1, 0}, same(6, blocks, 0));
        expect_once();
    }
}

TEST_F(ExchangePositionTest, WithEveryColumn) {
    shape = Shape::every;
    options.window_bytes = 2500;
    for (int blocks = 0; blocks <= 3; blocks++)
        for (const uint32_t extra : {0u, 3u, 9u}) {
            SCOPED_TRACE(std::to_string(blocks) + " blocks and " + std::to_string(extra));
            run_twice({120, 120}, same(2, blocks, extra));
            expect_once();
        }
}

TEST_F(ExchangePositionTest, WithBalance) {
    options.policy = SUPPLY_EXCHANGE_BALANCE;
    for (int blocks = 0; blocks <= 4; blocks++)
        for (const uint32_t extra : {0u, 2u}) {
            SCOPED_TRACE(std::to_string(blocks) + " blocks and " + std::to_string(extra));
            run_twice({120, 60, 90}, same(3, blocks, extra));
            expect_once();
        }
}

TEST_F(ExchangePositionTest, OfOneRankWithHash) {
    shape = Shape::every;
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "key";
    options.window_bytes = 200;
    run_twice({40}, same(1, 3, 1));
    expect_once();
}

/** Windows of which one rank receives everything, and the other nothing. */
class ExchangePositionOfEmptyWindowsTest : public ExchangePositionTest {
  protected:
    static constexpr size_t of_window = 4;

    ExchangePositionOfEmptyWindowsTest() {
        options.policy = SUPPLY_EXCHANGE_HASH;
        options.column = "id";
        options.window_bytes = of_window * sizeof(int64_t);
        has_thread = false;
    }

    /** Rank 0 supplies three windows for itself, three for rank 1, and three for itself; rank 1 supplies nothing. */
    void create_windows() {
        create({100, 0});
        run_all();
        const std::vector<int64_t> first = ranks[0]->epochs.at(0), second = ranks[1]->epochs.at(0);
        ASSERT_LE(6 * of_window, first.size());
        ASSERT_LE(3 * of_window, second.size());
        ranks.clear();
        data.clear();
        create({0, 0});
        std::vector<int64_t> &ids = data[0].ids;
        ids.assign(first.begin(), first.begin() + 3 * of_window);
        ids.insert(ids.end(), second.begin(), second.begin() + 3 * of_window);
        ids.insert(ids.end(), first.begin() + 3 * of_window, first.begin() + 6 * of_window);
    }

    /** Both ranks read until they have `windows` together, each in a block, and save their positions. */
    void read_windows(int windows, std::vector<supply_position_t> &saved, std::vector<std::vector<int64_t>> &before) {
        std::atomic<int> received{0};
        run([&](int number, ExchangeRank &) {
            const size_t at = static_cast<size_t>(number);
            ExchangeRank &rank = *ranks[at];
            rank.open(*network, number, &options);
            bool is_last = false;
            const auto read = [&] {
                supply_block_t block;
                const supply_status_t status = supply_try_next(rank.handle.get(), &block);
                if (status != SUPPLY_OK) return status;
                const std::vector<int64_t> rows = read_rows(rank.handle.get(), block, shape);
                before[at].insert(before[at].end(), rows.begin(), rows.end());
                supply_release(rank.handle.get(), &block);
                is_last = ++received == windows;
                return status;
            };
            while (received < windows)
                if (read() < 0) break;
            /* Its part of the last window, of which it receives nothing. */
            if (!is_last) {
                EXPECT_STATUS(SUPPLY_AGAIN, read(), rank.handle);
            }
            EXPECT_EQ(SUPPLY_OK, supply_position_save(rank.handle.get(), &saved[at]));
            await_task(number);
            rank.handle.reset();
        });
    }
};

TEST_F(ExchangePositionOfEmptyWindowsTest, CountAsConsumed) {
    for (int windows = 1; windows < 9; windows++) {
        SCOPED_TRACE(windows);
        std::vector<supply_position_t> saved(2);
        std::vector<std::vector<int64_t>> before(2);
        ranks.clear();
        data.clear();
        create_windows();
        read_windows(windows, saved, before);
        EXPECT_EQ(windows * of_window, before[0].size() + before[1].size());
        resume(saved, before);
        expect_once();
    }
}

TEST_F(ExchangePositionTest, AfterAnEpochItIsAPlainPosition) {
    create({50, 50}, 2);
    run_opened([&](int, ExchangeRank &rank) {
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape));
        supply_position_t position;
        char text[SUPPLY_POSITION_TEXT_BYTES];
        EXPECT_EQ(SUPPLY_OK, supply_position_save(rank.handle.get(), &position));
        EXPECT_EQ(SUPPLY_OK, supply_position_to_text(&position, text, sizeof text));
        EXPECT_STREQ("position-1:1:0:0:0:0000000000000000", text);
        rank.epochs.push_back(rank.ids);
        rank.ids.clear();
        rank.read_all(shape);
    });
    expect_once(2);
}

TEST_F(ExchangePositionTest, OfOtherWindows) {
    create({400, 400});
    supply_position_t first, second;
    ASSERT_EQ(SUPPLY_OK,
              supply_position_from_text(&first, "position-1:0:1:0:20:0000000000000000:exchange:1:3:00000000000000ab"));
    ASSERT_EQ(SUPPLY_OK, supply_position_from_text(
                             &second, "position-1:0:1:1:80:0000000000000000:exchange:6:whole:00000000000000ab"));
    ranks[0]->pair_options.position = &first;
    ranks[1]->pair_options.position = &second;
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT,
                   {"rank 0 has epoch 0, window 1", "rank 1 has epoch 0, window 6", "same step"});
}

/* The position after a block is refused from the 65th window on, not when somebody resumes there. */
TEST_F(ExchangePositionTest, AfterABlockOfManyWindowsAgo) {
    options.window_bytes = 32;
    create({400, 400});
    run_opened([&](int, ExchangeRank &rank) {
        std::vector<supply_block_t> blocks;
        supply_block_t block;
        while (supply_next(rank.handle.get(), &block) == SUPPLY_OK) {
            supply_release(rank.handle.get(), &block);
            blocks.push_back(block);
        }
        EXPECT_LT(80U, blocks.size());
        supply_position_t position;
        size_t refused = 0;
        for (const supply_block_t &old : blocks)
            for (const uint32_t elements : {1U, old.element_count}) {
                const supply_status_t status = supply_position_after(rank.handle.get(), &old, elements, &position);
                EXPECT_EQ(&blocks.back() - &old >= 64 ? SUPPLY_ERROR_ARGUMENT : SUPPLY_OK, status)
                    << &blocks.back() - &old;
                refused += status == SUPPLY_ERROR_ARGUMENT;
            }
        EXPECT_LT(0U, refused);
        EXPECT_EQ(SUPPLY_OK, supply_position_save(rank.handle.get(), &position));
        rank.read_all(shape);
    });
}

TEST_F(ExchangePositionTest, OtherOptionsThanThoseOfThePosition) {
    create({100, 100});
    std::vector<supply_position_t> saved(2);
    run([&](int number, ExchangeRank &rank) {
        if (rank.open(*network, number, &options) == SUPPLY_OK)
            read_until(rank, {2, 0}, 2, saved[static_cast<size_t>(number)]);
        await_task(number);
        rank.handle.reset();
    });
    ranks.clear();
    data.clear();
    create({100, 100});
    for (size_t i = 0; i < 2; i++) ranks[i]->pair_options.position = &saved[i];
    options.seed = 1;
    run_all();
    expect_failure(SUPPLY_ERROR_ARGUMENT, {"rank 0", "position was saved with other options", "seed 1"});
}

/** All ranks save at one step. Each asks for its position when it has received none, one or two things more. */
class ExchangePositionOfAStepTest : public ExchangePositionTest {
  protected:
    uint32_t below(uint32_t end) { return std::uniform_int_distribution<uint32_t>(0, end - 1)(random); }

    bool has_key() const { return options.policy >= SUPPLY_EXCHANGE_HASH && options.policy != SUPPLY_EXCHANGE_BALANCE; }

    /** Consumes up to `step` elements, receives what is `ahead`, and saves. False: the epoch has fewer. */
    static bool read_step(ExchangeRank &rank, Shape shape, size_t step, uint32_t ahead, supply_position_t &saved) {
        supply_t *supply = rank.handle.get();
        supply_block_t block{}, consumed{};
        supply_status_t status = SUPPLY_OK;
        size_t count = 0;
        for (; count < step && (status = supply_next(supply, &block)) == SUPPLY_OK; supply_release(supply, &block)) {
            std::vector<int64_t> rows = read_rows(supply, block, shape);
            rows.resize(std::min(rows.size(), step - count));
            rank.ids.insert(rank.ids.end(), rows.begin(), rows.end());
            count += rows.size();
            consumed = block;
            consumed.element_count = static_cast<uint32_t>(rows.size());
        }
        const auto save = [&] {
            return count == 0 ? supply_position_save(supply, &saved)
                              : supply_position_after(supply, &consumed, consumed.element_count, &saved);
        };
        EXPECT_STATUS(SUPPLY_OK, save(), rank.handle);
        /* The others may need this rank for what is ahead of them. */
        for (uint32_t i = 0; i < 2 && status == SUPPLY_OK; i++) {
            status = supply_next(supply, &block);
            if (status == SUPPLY_OK && count > 0) supply_release(supply, &block);
            /* The end of the epoch is consumed when it is received. */
            if (i < ahead && (count > 0 || status == SUPPLY_OK)) {
                EXPECT_STATUS(SUPPLY_OK, save(), rank.handle);
            }
        }
        EXPECT_LE(SUPPLY_OK, status) << supply_error(supply);
        return count == step;
    }

    /** With HASH counts differ: all save when they have the whole epoch, or later. */
    static void read_epoch(ExchangeRank &rank, Shape shape, uint32_t ahead, supply_position_t &saved) {
        supply_block_t end, block;
        EXPECT_EQ(SUPPLY_END_OF_EPOCH, rank.read_epoch(shape));
        rank.ids.clear();
        end = {};
        /* Waiting for a block could be in vain: another rank may have what it wants. */
        for (uint32_t i = 0; i < 100 * ahead; i++)
            if (supply_try_next(rank.handle.get(), &block) == SUPPLY_OK) supply_release(rank.handle.get(), &block);
        EXPECT_STATUS(SUPPLY_OK, supply_position_after(rank.handle.get(), &end, 0, &saved), rank.handle);
    }

    /** A run that begins where the last one has saved, if there was one, and ends at this step. False: it has none. */
    bool run_to(std::vector<supply_position_t> &saved, std::vector<std::vector<int64_t>> &before, size_t step) {
        const std::vector<Supplied> same_data = data;
        const bool resumes = !saved.empty();
        const auto positions = saved;
        before.resize(data.size());
        saved.resize(data.size());
        ranks.clear();
        data.clear();
        create(std::vector<uint32_t>(saved.size(), 0));
        data = same_data;
        std::vector<uint32_t> ahead;
        for (size_t i = 0; i < ranks.size(); i++) {
            ahead.push_back(below(3));
            ranks[i]->ids = before[i];
            if (resumes) ranks[i]->pair_options.position = &positions[i];
        }
        std::atomic<bool> has_step{true};
        run([&](int number, ExchangeRank &) {
            const size_t at = static_cast<size_t>(number);
            ExchangeRank &rank = *ranks[at];
            if (rank.open(*network, number, &options) != SUPPLY_OK)
                ADD_FAILURE() << rank.error;
            else if (options.policy == SUPPLY_EXCHANGE_HASH)
                read_epoch(rank, shape, ahead[at], saved[at]);
            else if (!read_step(rank, shape, step * (has_key() ? at : 1), ahead[at], saved[at]))
                has_step = false;
            before[at] = rank.ids;
            await_task(number);
            rank.handle.reset();
        });
        return has_step;
    }

    void expect_rest_of_two_runs(const std::vector<uint32_t> &counts) {
        std::vector<supply_position_t> saved;
        std::vector<std::vector<int64_t>> before;
        ranks.clear();
        data.clear();
        const bool has_epoch = options.policy == SUPPLY_EXCHANGE_HASH;
        create(counts, has_epoch ? 2 : 1);
        for (Supplied &from : data) from.block_elements = 1 + below(20);
        uint32_t all = 0;
        for (const uint32_t count : counts) all += count;
        /* The last step that all have, and that where the second run begins, are the likeliest. */
        const uint32_t last = all / static_cast<uint32_t>(counts.size()), first = below(2) ? last : below(last + 2);
        if (!run_to(saved, before, first)) return;
        if (!has_epoch && !run_to(saved, before, below(2) ? 0 : below(last + 2))) return;
        resume(saved, before);
        expect_once();
    }

    std::mt19937 random{1};
};

TEST_F(ExchangePositionOfAStepTest, AskedWhenTheLastWindowGivesOneRankMore) {
    options.window_bytes = 400;
    for (const auto policy : {SUPPLY_EXCHANGE_ALL, SUPPLY_EXCHANGE_BALANCE})
        for (const std::vector<uint32_t> &counts : {std::vector<uint32_t>{51, 50, 50}, {2, 50, 99}, {50, 0, 102}}) {
            options.policy = policy;
            std::vector<supply_position_t> saved;
            std::vector<std::vector<int64_t>> before;
            ranks.clear();
            data.clear();
            create(counts);
            ASSERT_TRUE(run_to(saved, before, 50));
            resume(saved, before);
            expect_once();
        }
}

TEST_F(ExchangePositionOfAStepTest, AskedAtAnyMoment) {
    for (int i = 0; i < 25; i++) {
        options.policy = std::array{SUPPLY_EXCHANGE_ALL, SUPPLY_EXCHANGE_BALANCE, SUPPLY_EXCHANGE_HASH,
                                    SUPPLY_EXCHANGE_RANGE}[below(4)];
        options.column = has_key() ? "id" : nullptr;
        options.window_bytes = 8U << below(7);
        std::vector<uint32_t> counts(2 + below(4));
        for (uint32_t &count : counts) count = below(3) * below(30);
        SCOPED_TRACE(::testing::PrintToString(counts) + " of policy " + std::to_string(options.policy) + ", window " +
                     std::to_string(options.window_bytes));
        expect_rest_of_two_runs(counts);
    }
}

} // namespace supply_test
