/** The policy balance: only the surplus moves. */
#include <algorithm>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeBalanceTest : public ExchangeTest {
  protected:
    ExchangeBalanceTest() {
        options.policy = SUPPLY_EXCHANGE_BALANCE;
        options.window_bytes = 400;
    }

    void expect_balanced() {
        size_t least = SIZE_MAX, most = 0;
        for (const auto &rank : ranks) {
            least = std::min(least, rank->epochs[0].size());
            most = std::max(most, rank->epochs[0].size());
        }
        EXPECT_LE(most - least, 1u);
    }
};

TEST_F(ExchangeBalanceTest, TheTotalsDifferByAtMostOne) {
    create({500, 20, 0, 301, 77}, 2);
    run_all();
    expect_once(2);
    expect_balanced();
}

TEST_F(ExchangeBalanceTest, NothingMovesBetweenEqualRanks) {
    create({300, 300, 300});
    run_all();
    expect_once();
    for (size_t rank = 0; rank < 3; rank++) EXPECT_EQ(data[rank].ids, ranks[rank]->epochs[0]) << "nor within a rank";
}

TEST_F(ExchangeBalanceTest, OneRankHasEverything) {
    shape = Shape::every;
    options.window_bytes = 5000;
    create({0, 0, 999});
    run_all();
    expect_once();
    expect_balanced();
}

} // namespace supply_test
