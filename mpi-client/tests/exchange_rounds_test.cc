/** How many collectives a window needs: few, whatever the sizes of its rows and the number of its columns. */
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
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
        totals.assign(sizes.size(), {});
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
            supply_exchange_options_t own = options;
            own.messages_only = own.messages_only || number == alone;
            rank.status = rank.open(*network, number, &own);
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
            const std::string header = read_file(rank.files.mapped_file).substr(0, sizeof(mapped_file_header));
            memcpy(&totals[index], header.data() + offsetof(mapped_file_header, exchange_totals), sizeof totals[index]);
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

    /** What the mapped file of a rank says at the end. */
    void expect_published(size_t rank) {
        const supply_exchange_statistics_t &own = statistics[rank];
        const exchange_totals &published = totals[rank];
        EXPECT_EQ(own.ranks, published.ranks);
        EXPECT_EQ(own.copying_ranks, published.copying_ranks);
        EXPECT_EQ(own.forwarded_ranks, published.forwarded_ranks);
        EXPECT_EQ(own.window_bytes, published.window_bytes);
        EXPECT_EQ(own.windows, published.windows);
        EXPECT_EQ(own.rounds, published.rounds);
        EXPECT_EQ(own.collectives, published.collectives);
        EXPECT_EQ(own.copied_bytes, published.copied_bytes);
        EXPECT_EQ(own.sent_bytes, published.sent_bytes);
        EXPECT_EQ(static_cast<uint64_t>(own.seconds_gathering * 1e9), published.gathering);
        EXPECT_EQ(static_cast<uint64_t>(own.seconds_agreeing * 1e9), published.agreeing);
        EXPECT_EQ(static_cast<uint64_t>(own.seconds_copying * 1e9), published.copying);
        EXPECT_EQ(static_cast<uint64_t>(own.seconds_sending * 1e9), published.sending);
    }

    std::vector<std::vector<std::string>> texts;
    std::vector<std::vector<uint32_t>> rows;
    std::vector<uint64_t> bytes;
    std::vector<supply_exchange_statistics_t> statistics;
    std::vector<exchange_totals> totals;
    std::vector<double> waited; /* seconds */
    int alone = -1;             /* the rank that has no neighbours */
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
        options.window_bytes = 25000; /* ten rows */
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

/* `alone` has no neighbours; 3: nobody has. */
TEST_F(ExchangeRoundsTest, StatisticsInEveryShapeOfNeighbours) {
    options.window_bytes = 20000;
    for (alone = -1; alone <= 3; alone++) {
        SCOPED_TRACE(alone);
        options.messages_only = alone == 3;
        run_texts({{6000, 6000, 6000}, {6000, 6000, 6000}, {6000, 6000, 6000}});
        const uint64_t row = 6000 + 8 + 4;
        for (int rank = 0; rank < 3; rank++) {
            SCOPED_TRACE(rank);
            const supply_exchange_statistics_t &own = statistics[static_cast<size_t>(rank)];
            const uint32_t copying = alone < 0 ? 2 : alone == 3 || rank == alone ? 0 : 1;
            EXPECT_EQ(3u, own.ranks);
            EXPECT_EQ(copying, own.copying_ranks);
            EXPECT_EQ(0u, own.forwarded_ranks);
            EXPECT_EQ(options.window_bytes, own.window_bytes);
            EXPECT_EQ((1 + copying) * row, own.copied_bytes) << "a row to each rank";
            EXPECT_EQ((2 - copying) * row, own.sent_bytes);
            expect_published(static_cast<size_t>(rank));
        }
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
