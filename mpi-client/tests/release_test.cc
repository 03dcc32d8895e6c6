// C1 and C2: releases in any order, and a ring that is full.
#include "rank.h"

namespace supply_test {
namespace {

class ReleaseTest : public RankTest {
  protected:
    /** The next four blocks, which are all of the ring. */
    std::vector<supply_block_t> take_all(const Handle &handle, Task &task, uint64_t first) {
        std::vector<supply_block_t> blocks(4);
        for (uint64_t i = 0; i < blocks.size(); i++) {
            supply_datums(task, first + i, 1);
            EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &blocks[i]), handle);
        }
        return blocks;
    }
};

TEST_F(ReleaseTest, ABlockCountsWhenAllBeforeItAreReleased) {
    auto [handle, task] = attached();
    const int orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 2, 3, 0}, {1, 0, 3, 2}};
    uint64_t first = 0;
    for (const auto &order : orders) {
        const std::vector<supply_block_t> blocks = take_all(handle, task, first);
        bool released[4] = {};
        for (int i : order) {
            ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &blocks[i]), handle);
            released[i] = true;
            uint64_t credit = 0;
            while (credit < 4 && released[credit]) credit++;
            EXPECT_EQ(first + credit, task.released()) << "after block " << i;
        }
        first += 4;
    }
}

TEST_F(ReleaseTest, OnlyWhatCountsWakesTheTask) {
    auto [handle, task] = attached();
    const std::vector<supply_block_t> blocks = take_all(handle, task, 0);
    task.requests();
    supply_release(handle.get(), &blocks[1]);
    EXPECT_TRUE(task.requests().empty());
    supply_release(handle.get(), &blocks[0]);
    const std::vector<request> requests = task.requests();
    ASSERT_EQ(1u, requests.size());
    EXPECT_EQ(static_cast<uint32_t>(REQUEST_RELEASE), requests[0].kind);
    EXPECT_EQ(task.header().generation, requests[0].generation);
}

TEST_F(ReleaseTest, ABlockIsReleasedOnce) {
    auto [handle, task] = attached();
    const std::vector<supply_block_t> blocks = take_all(handle, task, 0);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &blocks[1]), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &blocks[1]), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &blocks[0]), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &blocks[0]), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"not held"}));
    supply_block_t future = blocks[3];
    future.sequence = 4;
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &future), handle);
    EXPECT_EQ(2u, task.released());
}

TEST_F(ReleaseTest, AReleasedBlockCanNotBeRead) {
    auto [handle, task] = attached();
    const std::vector<supply_block_t> blocks = take_all(handle, task, 0);
    supply_column_t column;
    supply_datum_t datum;
    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &blocks[2], 0, &column), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &blocks[2]), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_column(handle.get(), &blocks[2], 0, &column), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_datum(handle.get(), &blocks[2], 0, &datum), handle);
}

TEST_F(ReleaseTest, HoldingEveryBlockIsToldAtOnceAndCanBeMended) {
    auto [handle, task] = attached();
    const std::vector<supply_block_t> blocks = take_all(handle, task, 0);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_try_next(handle.get(), &block), handle);
    supply_release(handle.get(), &blocks[3]);
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"pair 0", "block 0", "ring="}));
    supply_release(handle.get(), &blocks[0]);
    supply_datums(task, 4, 1);
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(4u, block.sequence);
}

TEST_F(ReleaseTest, AFailureOfSparkIsHeardWhileEveryBlockIsHeld) {
    auto [handle, task] = attached();
    take_all(handle, task, 0);
    task.send_failure("out of data");
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
}

} // namespace
} // namespace supply_test
