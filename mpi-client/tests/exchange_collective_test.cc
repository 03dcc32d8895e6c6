/** The time limit of an operation. */
#include <gtest/gtest.h>

#include <string>

extern "C" {
#include "base/clock.h"
#include "collective.h"
}

namespace supply_test {

namespace {

supply_status_t begin(void *, const void *, void *, size_t, int *, failure *) { return SUPPLY_OK; }
supply_status_t never(void *, int, failure *) { return SUPPLY_AGAIN; }

class ExchangeCollectiveTest : public ::testing::Test {
  protected:
    ExchangeCollectiveTest() {
        of.name = "pair 0";
        of.limit = 100;
        of.levels.neighbours = &none;
        none.lost = NOBODY_LOST;
        of.transport.allgather = begin;
        of.transport.test = never;
        EXPECT_EQ(SUPPLY_OK, exchange_allgather(&of, nullptr, nullptr, 0, &why));
    }

    supply_status_t poll() { return exchange_poll(&of, &why); }

    collective of = {};
    neighbours none = {};
    failure why = {};
};

TEST_F(ExchangeCollectiveTest, OthersHaveALimit) {
    EXPECT_EQ(SUPPLY_AGAIN, poll());
    of.end = of.polled;
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, poll());
    EXPECT_EQ("pair 0: another rank", std::string(why.text).substr(0, 20));
    EXPECT_EQ(SUPPLY_AGAIN, poll()) << "the next call waits as long again";
}

/* The operation of a rank that has not polled for long could not complete. */
TEST_F(ExchangeCollectiveTest, AnAbsenceOfThisRankIsNoFaultOfOthers) {
    of.end = of.polled -= 60 * int64_t{NANOSECONDS};
    EXPECT_EQ(SUPPLY_AGAIN, poll());
    EXPECT_EQ(SUPPLY_AGAIN, poll());
    of.end = of.polled -= 60 * int64_t{NANOSECONDS};
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, poll()) << "it is extended once";
}

} // namespace

} // namespace supply_test
