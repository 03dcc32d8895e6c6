// The exchange over a real MPI, supplied by tasks of the test.
#include "supplied_ranks.h"
#include "mpirun.h"

namespace supply_test {
namespace {

/** Rank r supplies blocks[r] blocks. */
void expect_once(const std::string &policy, const std::string &window_bytes, const std::vector<uint32_t> &blocks,
                 uint64_t elements, const std::string &how = "") {
    SuppliedRanks ranks(blocks.size());
    const Ended ended = ranks.run(
        mpirun(static_cast<int>(blocks.size()), {SUPPLY_TEST_EXCHANGE_IDS, policy, window_bytes, how}), blocks);
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ(ranks.all_epochs(elements), ended.out);
}

TEST(ExchangeMpiTest, OneRank) { expect_once("all", "4000", {10}, 200); }

TEST(ExchangeMpiTest, TwoRanks) { expect_once("all", "9000", {20, 20}, 800); }

TEST(ExchangeMpiTest, MpiForOneThread) { expect_once("all", "9000", {20, 20}, 800, "single"); }

TEST(ExchangeMpiTest, UnequalRanks) { expect_once("balance", "5000", {0, 25, 3}, 560); }

TEST(ExchangeMpiTest, FourRanksGroup) { expect_once("hash", "3000", {9, 8, 7, 11}, 700); }

TEST(ExchangeMpiTest, ARankThatNeverComes) {
    SuppliedRanks ranks(2, "1");
    const Ended ended = ranks.run(mpirun(2, {SUPPLY_TEST_EXCHANGE_IDS, "absent", "4000"}), {});
    EXPECT_TRUE(says(ended.out, {"SUPPLY_ERROR_TIMEOUT", "supply_exchange_open()", "2 s", "then SUPPLY_ERROR_TIMEOUT"}))
        << ended.err;
}

TEST(ExchangeMpiTest, AnOpeningWithoutMpi) {
    for (const char *when : {"before", "after"}) {
        SuppliedRanks ranks(1);
        std::vector<std::string> command = alone(SUPPLY_TEST_EXCHANGE_IDS);
        command.emplace_back(when);
        const Ended ended = ranks.run(command, {});
        EXPECT_EQ(0, ended.exit_status) << ended.err;
        EXPECT_TRUE(says(ended.out, {"SUPPLY_ERROR_ARGUMENT: ", "supply_exchange_open(): call it after MPI_Init()"}))
            << ended.out;
    }
}

/* Neither the thread nor an operation of it is left. */
TEST(ExchangeMpiTest, TheEndOfMpiIsThatOfTheThread) {
    for (const char *how : {"closes", "forgets"}) {
        SCOPED_TRACE(how);
        SuppliedRanks ranks(2);
        ranks.ranks_leave_early = true;
        ranks.data.epochs = 1;
        const Ended ended = ranks.run(mpirun(2, {SUPPLY_TEST_EXCHANGE_IDS, "all", "1000", how}), {2, 2});
        EXPECT_EQ(0, ended.exit_status) << ended.err;
        EXPECT_EQ("left\nleft\n", ended.out);
    }
}

TEST(ExchangeMpiTest, AnInterruptedOpening) {
    SuppliedRanks ranks(2);
    const Ended ended = ranks.run(mpirun(2, {SUPPLY_TEST_EXCHANGE_IDS, "interrupted", "4000"}), {});
    EXPECT_TRUE(says(ended.out, {"SUPPLY_INTERRUPTED", "supply_exchange_open()", "then SUPPLY_ERROR_ARGUMENT"}))
        << ended.err;
}

} // namespace
} // namespace supply_test
