/** The parts of the policies that need no ranks. */
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

extern "C" {
#include "base/mix.h"
#include "policy.h"
}

namespace supply_test {
namespace {

using Counts = std::vector<uint64_t>;

struct exchange_settings settings_of(supply_exchange_policy_t policy, double fraction = 1) {
    struct exchange_settings settings = {};
    settings.policy = policy;
    settings.fraction = static_cast<uint32_t>(fraction * EXCHANGE_FRACTION_UNIT);
    return settings;
}

/** Draws windows of these sizes; returns how many elements each rank sends to each other one. */
std::vector<std::vector<uint32_t>> deal(const struct exchange_settings &settings, const Counts &counts) {
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
        exchange_draw_deal(&destinations, &settings, &draw, counts.data());
        EXPECT_EQ(window.elements, ends.back());
        std::vector<uint32_t> to;
        for (uint32_t other = 0; other < ranks; other++) to.push_back(ends[other] - (other > 0 ? ends[other - 1] : 0));
        sent.push_back(to);
        std::sort(order.begin(), order.end());
        for (uint32_t i = 0; i < window.elements; i++) EXPECT_EQ(i, order[i]) << "every element once";
    }
    return sent;
}

uint32_t received(const std::vector<std::vector<uint32_t>> &sent, size_t rank) {
    uint32_t sum = 0;
    for (const auto &from : sent) sum += from[rank];
    return sum;
}

TEST(ExchangePolicyTest, BalanceMovesTheSurplusAlone) {
    const auto sent = deal(settings_of(SUPPLY_EXCHANGE_BALANCE), {10, 2, 6, 0});
    EXPECT_EQ((std::vector<uint32_t>{5, 3, 0, 2}), sent[0]) << "18 elements: 5, 5, 4, 4";
    EXPECT_EQ((std::vector<uint32_t>{0, 2, 0, 0}), sent[1]);
    EXPECT_EQ((std::vector<uint32_t>{0, 0, 4, 2}), sent[2]);
    for (size_t rank = 0; rank < 4; rank++) EXPECT_EQ(rank < 2 ? 5u : 4u, received(sent, rank));
}

TEST(ExchangePolicyTest, EveryRankReceivesTheSame) {
    for (const double fraction : {1.0, 0.3})
        for (const Counts &counts : {Counts{7, 0, 3, 2}, {12, 12, 12, 12}, {100, 1, 1, 2}, {0, 0, 0, 40}, {5}}) {
            const auto sent = deal(settings_of(SUPPLY_EXCHANGE_ALL, fraction), counts);
            const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
            for (size_t rank = 0; rank < counts.size(); rank++)
                EXPECT_EQ(total / counts.size(), received(sent, rank)) << total << " " << fraction;
        }
}

TEST(ExchangePolicyTest, EachRankDealsToAll) {
    const auto sent = deal(settings_of(SUPPLY_EXCHANGE_ALL), {40, 37, 43});
    for (const auto &from : sent)
        for (const uint32_t to : from) EXPECT_NEAR(13, to, 2);
}

TEST(ExchangePolicyTest, WindowsAreLoweredUntilAllRanksReceiveTheSame) {
    const auto level = [](supply_exchange_policy_t policy, Counts counts) {
        const struct exchange_settings settings = settings_of(policy);
        exchange_policy_level(&settings, counts.data(), static_cast<uint32_t>(counts.size()), 0);
        return counts;
    };
    EXPECT_EQ((Counts{6, 0, 3, 3}), level(SUPPLY_EXCHANGE_ALL, {7, 0, 3, 3}));
    EXPECT_EQ((Counts{2, 3, 0, 0, 0}), level(SUPPLY_EXCHANGE_BALANCE, {4, 5, 0, 0, 0}));
    EXPECT_EQ((Counts{8, 4}), level(SUPPLY_EXCHANGE_ALL, {8, 4}));
    EXPECT_EQ((Counts{1, 1, 0}), level(SUPPLY_EXCHANGE_ALL, {1, 1, 0})) << "too few for all";
    EXPECT_EQ((Counts{7, 0}), level(SUPPLY_EXCHANGE_HASH, {7, 0})) << "its keys say who receives them";
}

TEST(ExchangePolicyTest, ABoundedNumberIsBelowItsBoundAndReachesAll) {
    uint64_t state = 1;
    std::vector<int> counts(7);
    for (int i = 0; i < 7000; i++) counts[supply__random_below(&state, 7)]++;
    for (const int count : counts) EXPECT_NEAR(1000, count, 150);
    EXPECT_EQ(0u, supply__random_below(&state, 1));
}

TEST(ExchangePolicyTest, TheHashIsOfAllBytesAndTheLength) {
    EXPECT_EQ(supply__hash("abcdefghij", 10, 0), supply__hash("abcdefghij", 10, 0));
    EXPECT_NE(supply__hash("abcdefghij", 10, 0), supply__hash("abcdefghik", 10, 0));
    EXPECT_NE(supply__hash("bbcdefghij", 10, 0), supply__hash("abcdefghij", 10, 0));
    EXPECT_NE(supply__hash("a\0", 2, 0), supply__hash("a", 1, 0));
    EXPECT_NE(supply__hash("a", 1, 0), supply__hash("a", 1, 1));
}

} // namespace
} // namespace supply_test
