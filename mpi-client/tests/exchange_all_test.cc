/** The policy all: every element once, and the same number on each rank if each supplies the same. */
#include <algorithm>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeAllTest : public ExchangeTest {
  protected:
    ExchangeAllTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.seed = 5;
        options.window_bytes = 400;
    }

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
    for (const auto &rank : ranks)
        EXPECT_NEAR(200, static_cast<double>(rank->epochs[0].size()), 20) << "strings differ";
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
    create({300, 300, 300});
    run_all();
    expect_once();
    EXPECT_LE(network->most_received(), 2500u);
}

} // namespace supply_test
