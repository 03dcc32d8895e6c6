/** Many ranks on many nodes, each a thread with a real pair: connections and collectives of two levels, and of one. */
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeScaleTest : public ExchangeTest {
  protected:
    /** SUPPLY_TEST_NODES, or as many. */
    static uint32_t nodes() {
        const char *given = getenv("SUPPLY_TEST_NODES");
        return given != nullptr ? static_cast<uint32_t>(atoi(given)) : 4;
    }

    /** Of this process, shared memory once. */
    static size_t memory_kib() {
        std::ifstream sums("/proc/self/smaps_rollup");
        for (std::string word; sums >> word;)
            if (word == "Pss:" && sums >> word) return std::stoul(word);
        return 0;
    }

    /** One thread is the task of all ranks, and none has a thread of the exchange: ranks that wait leave them the
     * cores. */
    void run_ranks(const std::function<void(int, ExchangeRank &)> &use) {
        std::vector<std::thread> threads;
        std::vector<std::unique_ptr<Task>> tasks;
        for (size_t rank = 0; rank < ranks.size(); rank++)
            threads.emplace_back([this, rank, &use] { use(static_cast<int>(rank), *ranks[rank]); });
        for (size_t rank = 0; rank < ranks.size(); rank++) {
            tasks.push_back(std::make_unique<Task>(ranks[rank]->files));
            tasks.back()->write_schema(row_schema(shape), row_texts(shape));
            for (size_t at = 0; at < data[rank].ids.size(); at += kWindowRows) {
                const auto first = data[rank].ids.begin() + static_cast<long>(at);
                const std::vector<int64_t> rows(first, first + kWindowRows);
                tasks.back()->supply(row_block(shape, rows), 0, static_cast<uint32_t>(rank), at);
            }
            tasks.back()->end_of_epoch(0);
            ranks[rank]->has_task = true;
        }
        for (std::thread &thread : threads) thread.join();
        EXPECT_EQ("", network->mistakes());
    }

    void exchange_all(bool in_two_levels) {
        ranks.clear();
        data.clear();
        has_thread = false;
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.window_bytes = kWindowRows * sizeof(int64_t);
        create(std::vector<uint32_t>(nodes() * kPeers, kWindows * kWindowRows));
        spread([](size_t rank) { return rank / kPeers; });
        for (const auto &rank : ranks) {
            rank->pair_options.ring_bytes = (kWindows + 1) * rank->pair_options.block_bytes;
            rank->pair_options.timeout = 300;
        }
        if (!in_two_levels) network->refuse_to_split(0);
        std::atomic<size_t> opened{0};
        std::chrono::steady_clock::time_point begun, ended;
        size_t memory = 0;
        run_ranks([&](int number, ExchangeRank &rank) {
            const supply_status_t status = rank.open(*network, number, &options);
            if (++opened == ranks.size()) begun = std::chrono::steady_clock::now();
            if (status == SUPPLY_OK) rank.read_epoch(shape);
            if (--opened == 0) {
                ended = std::chrono::steady_clock::now();
                memory = memory_kib();
            }
            if (number == 0) supply_statistics(rank.handle.get(), &statistics);
            await_task(number);
            rank.handle.reset();
        });
        const std::chrono::duration<double> seconds = ended - begun;
        for (const auto &rank : ranks) ASSERT_EQ(SUPPLY_END_OF_EPOCH, rank->status) << rank->error;
        const auto &of = statistics.exchange;
        printf("%s: %zu ranks on %u nodes: %zu connections a rank, %.1f collectives and %.1f rounds a window, %.3f s a "
               "window, %zu KiB a rank\n",
               in_two_levels ? "two levels" : "one level", ranks.size(), nodes(), connections(),
               static_cast<double>(of.collectives) / static_cast<double>(of.windows),
               static_cast<double>(of.rounds) / static_cast<double>(of.windows),
               seconds.count() / static_cast<double>(of.windows), memory / ranks.size());
    }

    /** The most of one rank. */
    size_t connections() {
        size_t most = 0;
        for (int rank = 0; rank < static_cast<int>(ranks.size()); rank++)
            most = std::max(most, network->connections(rank));
        for (ThreadNetwork *rail : network->parts())
            for (int node = 0; node < static_cast<int>(nodes()); node++) most = std::max(most, rail->connections(node));
        return most;
    }

    static constexpr uint32_t kPeers = 16, kWindowRows = 128, kWindows = 4;
    supply_statistics_t statistics = {};
};

TEST_F(ExchangeScaleTest, ARankHasConnectionsToOneRankOfEachOtherNode) {
    exchange_all(true);
    EXPECT_EQ(nodes() - 1, connections());
    EXPECT_EQ((nodes() - 1) * kPeers, statistics.exchange.forwarded_ranks);
    EXPECT_EQ(kPeers - 1, statistics.exchange.copying_ranks);
    EXPECT_LE(statistics.exchange.collectives, 7 + 4 * statistics.exchange.windows);
    exchange_all(false);
    EXPECT_EQ(nodes() * kPeers - 1, connections());
    EXPECT_EQ(0u, statistics.exchange.forwarded_ranks);
}

} // namespace supply_test
