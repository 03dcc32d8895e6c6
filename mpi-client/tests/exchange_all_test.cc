/** The policy all: every element once, and the same number on each rank if each supplies the same. */
#include <gtest/gtest.h>

#include "exchange_ranks.h"

namespace supply_test {

class ExchangeAllTest : public ExchangeTest {
  protected:
    ExchangeAllTest() {
        options.policy = SUPPLY_EXCHANGE_ALL;
        options.seed = 5;
        options.window_bytes = 400;
    }
};

TEST_F(ExchangeAllTest, TwoRanksReceiveEachElementOnce) {
    create({500, 500});
    run_all();
    expect_once();
}

} // namespace supply_test
