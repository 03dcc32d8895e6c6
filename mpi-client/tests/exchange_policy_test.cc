/** The parts of the policies that need no ranks. */
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

extern "C" {
#include "mix.h"
#include "policy.h"
}

namespace supply_test {
namespace {

/** Draws windows of these sizes; returns how many elements each rank sends to each other one. */
std::vector<std::vector<uint32_t>> balance(const std::vector<uint64_t> &counts, uint32_t next) {
    const uint32_t ranks = static_cast<uint32_t>(counts.size());
    std::vector<std::vector<uint32_t>> sent;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        gathered_window window = {};
        window.elements = static_cast<uint32_t>(counts[rank]);
        std::vector<uint32_t> order(window.elements), ends(ranks);
        destinations destinations = {};
        destinations.order = order.data();
        destinations.ends = ends.data();
        draw draw = {};
        draw.window = &window;
        draw.rank = rank;
        draw.ranks = ranks;
        draw.next = next;
        exchange_draw_balance(&destinations, &draw, counts.data());
        EXPECT_EQ(window.elements, ends.back());
        std::vector<uint32_t> to;
        for (uint32_t other = 0; other < ranks; other++) to.push_back(ends[other] - (other > 0 ? ends[other - 1] : 0));
        sent.push_back(to);
    }
    return sent;
}

uint32_t received(const std::vector<std::vector<uint32_t>> &sent, size_t rank) {
    uint32_t sum = 0;
    for (const auto &from : sent) sum += from[rank];
    return sum;
}

TEST(ExchangePolicyTest, BalanceMovesTheSurplusAlone) {
    const auto sent = balance({10, 2, 6, 0}, 1);
    EXPECT_EQ((std::vector<uint32_t>{4, 3, 0, 3}), sent[0]) << "18 elements: 4, 5, 5, 4";
    EXPECT_EQ((std::vector<uint32_t>{0, 2, 0, 0}), sent[1]);
    EXPECT_EQ((std::vector<uint32_t>{0, 0, 5, 1}), sent[2]);
    for (size_t rank = 0; rank < 4; rank++) EXPECT_EQ(rank == 1 || rank == 2 ? 5u : 4u, received(sent, rank));
}

TEST(ExchangePolicyTest, BalanceContinuesWhereTheWindowBeforeStopped) {
    uint64_t totals[3] = {0, 0, 0}, elements = 0;
    for (const std::vector<uint64_t> &window : {std::vector<uint64_t>{5, 0, 2}, {0, 1, 0}, {0, 0, 11}, {1, 1, 0}}) {
        const auto sent = balance(window, static_cast<uint32_t>(elements % 3));
        elements = std::accumulate(window.begin(), window.end(), elements);
        for (size_t rank = 0; rank < 3; rank++) {
            totals[rank] += received(sent, rank);
            EXPECT_EQ(elements / 3 + (rank < elements % 3), totals[rank]) << rank;
        }
    }
}

TEST(ExchangePolicyTest, ABoundedNumberIsBelowItsBoundAndReachesAll) {
    uint64_t state = 1;
    std::vector<int> counts(7);
    for (int i = 0; i < 7000; i++) counts[exchange_random_below(&state, 7)]++;
    for (const int count : counts) EXPECT_NEAR(1000, count, 150);
    EXPECT_EQ(0u, exchange_random_below(&state, 1));
}

TEST(ExchangePolicyTest, TheHashIsOfAllBytesAndTheLength) {
    EXPECT_EQ(exchange_hash("abcdefghij", 10, 0), exchange_hash("abcdefghij", 10, 0));
    EXPECT_NE(exchange_hash("abcdefghij", 10, 0), exchange_hash("abcdefghik", 10, 0));
    EXPECT_NE(exchange_hash("bbcdefghij", 10, 0), exchange_hash("abcdefghij", 10, 0));
    EXPECT_NE(exchange_hash("a\0", 2, 0), exchange_hash("a", 1, 0));
    EXPECT_NE(exchange_hash("a", 1, 0), exchange_hash("a", 1, 1));
}

} // namespace
} // namespace supply_test
