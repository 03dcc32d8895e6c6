/** How many collectives a window needs: few, whatever the sizes of its rows and the number of its columns. */
#include <atomic>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeRoundsTest : public ExchangeTest {
  protected:
    ExchangeRoundsTest() { options.policy = SUPPLY_EXCHANGE_ALL; }

    static constexpr uint64_t opening = 3, end = 1;

    static std::vector<Column> columns_of(const std::vector<int64_t> &keys, const std::vector<std::string> &texts) {
        std::string bytes(reinterpret_cast<const char *>(keys.data()), keys.size() * sizeof keys[0]);
        return {Column::fixed("key", "l", bytes), Column::variable("text", "z", texts)};
    }

    /** One block of rows with these texts, and the end of the epoch and of the data. */
    static void supply_texts(Task &task, const std::vector<int64_t> &keys, const std::vector<std::string> &texts) {
        const std::vector<Column> columns = columns_of(keys, texts);
        task.write_schema(schema_of(columns));
        task.supply(BlockImage(columns, static_cast<uint32_t>(texts.size())));
        task.end_of_epoch(0);
        task.end_of_data(0);
        see_end(task);
    }

    void supply(int rank, Task &task) override {
        if (texts.empty()) return ExchangeTest::supply(rank, task);
        if (polls) wait_until("the rank's polls", [&] { return polled[rank] > 50; });
        const std::vector<std::string> &own = texts[static_cast<size_t>(rank)];
        supply_texts(task, std::vector<int64_t>(own.size(), 7), own);
    }

    /** Ranks with texts of these sizes; rows and bytes that each rank receives in each block. */
    void run_texts(const std::vector<std::vector<size_t>> &sizes) {
        ranks.clear();
        data.clear();
        texts.clear();
        create(std::vector<uint32_t>(sizes.size()));
        rows.assign(sizes.size(), {});
        bytes.assign(sizes.size(), 0);
        statistics.assign(sizes.size(), {});
        waited.assign(sizes.size(), 0);
        for (const std::vector<size_t> &of_rank : sizes) {
            texts.emplace_back();
            for (const size_t size : of_rank) texts.back().emplace_back(size, 'x');
        }
        for (const auto &rank : ranks) {
            rank->pair_options.block_bytes = 4 << 20;
            rank->pair_options.ring_bytes = 8 << 20;
        }
        run([this](int number, ExchangeRank &rank) {
            const auto index = static_cast<size_t>(number);
            rank.status = rank.open(*network, number, &options);
            while (rank.status >= 0 && rank.status != SUPPLY_END_OF_DATA) {
                supply_block_t block;
                supply_column_t column;
                rank.status = polls ? poll_next(number, rank, &block) : supply_next(rank.handle.get(), &block);
                if (rank.status != SUPPLY_OK) continue;
                EXPECT_EQ(SUPPLY_OK, supply_column(rank.handle.get(), &block, 1, &column));
                rows[index].push_back(block.element_count);
                bytes[index] += column.data_bytes;
                supply_release(rank.handle.get(), &block);
            }
            supply_statistics_t all;
            supply_statistics(rank.handle.get(), &all);
            statistics[index] = all.exchange;
            waited[index] = all.seconds_waited;
            if (rank.status < 0) rank.error = supply_error(rank.handle.get());
            rank.handle.reset();
        });
        uint64_t sent = 0, received = 0;
        for (const auto &of_rank : sizes)
            for (const size_t size : of_rank) sent += size;
        for (size_t i = 0; i < ranks.size(); i++) {
            EXPECT_EQ(SUPPLY_END_OF_DATA, ranks[i]->status) << ranks[i]->error;
            received += bytes[i];
        }
        EXPECT_EQ(sent, received);
    }

    uint64_t collectives() { return network->begun(0); }

    /** Waits by supply_try_next(). The task supplies after some polls. */
    supply_status_t poll_next(int number, ExchangeRank &rank, supply_block_t *block) {
        supply_status_t status;
        while ((status = supply_try_next(rank.handle.get(), block)) == SUPPLY_AGAIN) {
            polled[number]++;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return status;
    }

    std::vector<std::vector<std::string>> texts;
    std::vector<std::vector<uint32_t>> rows;
    std::vector<uint64_t> bytes;
    std::vector<supply_exchange_statistics_t> statistics;
    std::vector<double> waited; /* seconds */
    bool polls = false;
    std::atomic<int> polled[1] = {};
};

/* AGREE, OFFER, GRANT and the messages; and nobody asks whether rows of one width fit into memory that they fitted in.
 */
TEST_F(ExchangeRoundsTest, AtMostFourCollectivesAWindowWhateverTheColumns) {
    for (const bool messages_only : {false, true}) {
        ranks.clear();
        data.clear();
        shape = Shape::wide;
        options.messages_only = messages_only;
        options.window_bytes = 17000; /* ten rows */
        create({100, 100, 100, 100});
        for (const auto &rank : ranks) {
            rank->pair_options.block_bytes = 1 << 18;
            rank->pair_options.ring_bytes = 1 << 20;
        }
        run_all();
        expect_once();
        if (messages_only) {
            EXPECT_GT(network->most_received(), 0u);
        }
        const uint64_t windows = ranks[0]->blocks.size(), of_window = network->most_received() > 0 ? 4 : 3;
        EXPECT_GE(windows, 9u);
        EXPECT_LE(collectives(), opening + of_window * windows + 2 * end);
    }
}

/* One row overflows its slot: half of the window moves, and then the rest. */
TEST_F(ExchangeRoundsTest, ASlotThatOverflowsHalvesTheWindow) {
    options.window_bytes = 20000;
    std::vector<std::vector<size_t>> sizes(4);
    for (size_t rank = 0; rank < sizes.size(); rank++)
        for (size_t i = 0; i < 200; i++) sizes[rank].push_back(i == 60 + 10 * rank ? 15000 : 10);
    run_texts(sizes);
    EXPECT_LE(collectives(), 40u);
    for (const auto &of_rank : rows) {
        EXPECT_EQ(rows[0], of_rank) << "the same number in each round";
        EXPECT_LE(of_rank.size(), 12u);
    }
}

TEST_F(ExchangeRoundsTest, TextsOfLogNormalSizes) {
    std::mt19937 random(3);
    std::lognormal_distribution<double> sizes_of_texts(std::log(500), 1.5);
    options.window_bytes = 1 << 17;
    for (const size_t count : {4, 16}) {
        SCOPED_TRACE(count);
        std::vector<std::vector<size_t>> sizes(count);
        uint64_t most = 0;
        for (auto &of_rank : sizes) {
            uint64_t sum = 0;
            for (int i = 0; i < 600; i++)
                of_rank.push_back(std::min<size_t>(100000, static_cast<size_t>(sizes_of_texts(random))));
            for (const size_t size : of_rank) sum += size;
            most = std::max(most, sum);
        }
        run_texts(sizes);
        const uint64_t windows = 2 * most / options.window_bytes + 2;
        EXPECT_LE(collectives(), opening + end + 12 * windows);
        for (const auto &of_rank : rows) EXPECT_EQ(rows[0].size(), of_rank.size());
    }
}

TEST_F(ExchangeRoundsTest, StatisticsSayWhatMovedHow) {
    options.window_bytes = 20000;
    for (const bool messages_only : {false, true}) {
        options.messages_only = messages_only;
        run_texts({{9000, 9000}, {9000, 9000}});
        const supply_exchange_statistics_t &all = statistics[0];
        EXPECT_EQ(2u, all.ranks);
        EXPECT_EQ(1u, all.windows);
        EXPECT_EQ(1u, all.rounds);
        EXPECT_EQ(collectives(), all.collectives);
        EXPECT_EQ(2u * (9000 + 8 + 4), all.copied_bytes + all.sent_bytes);
        EXPECT_EQ(network->most_received() > 0, all.sent_bytes > 0);
        EXPECT_EQ(network->most_received() > 0 ? 0u : 1u, all.copying_ranks);
        EXPECT_GT(all.seconds_agreeing + all.seconds_gathering, 0);
    }
}

/* The rank waits for its task, and most of that time lies between two calls. */
TEST_F(ExchangeRoundsTest, TheSecondsOfTheStepsAreThoseOfTheWait) {
    polls = true;
    run_texts({{9000, 9000}});
    const supply_exchange_statistics_t &all = statistics[0];
    const double seconds = all.seconds_gathering + all.seconds_agreeing + all.seconds_copying + all.seconds_sending;
    EXPECT_LE(seconds, waited[0]);
    EXPECT_GT(seconds, 0.5 * waited[0]);
    EXPECT_GT(all.seconds_gathering, all.seconds_sending);
}

/* A rank receives all windows of all: the rounds follow from its rows, and its slots stay as they are. */
TEST_F(ExchangeRoundsTest, OneKeyOfAllRows) {
    options.policy = SUPPLY_EXCHANGE_HASH;
    options.column = "key";
    options.messages_only = true;
    options.window_bytes = 10000;
    run_texts(std::vector<std::vector<size_t>>(8, std::vector<size_t>(400, 100)));
    const uint64_t windows = 400 * 112 / 10000 + 1;
    EXPECT_LE(network->most_received(), 12500u + 8 * 8);
    /* Eight windows need at least 6.4 rounds of a slot. */
    EXPECT_LE(collectives(), opening + end + windows * (8 * 4 + 3 * 3));
}

} // namespace supply_test
