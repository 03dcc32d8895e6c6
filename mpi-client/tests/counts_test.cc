// supply_counts(): elements and steps of a whole epoch.
#include "rank.h"

namespace supply_test {
namespace {

class CountsTest : public RankTest {
  protected:
    static void store(Task &task, uint64_t elements, uint64_t steps, uint32_t known = 1) {
        task.header().epoch_elements = elements;
        task.header().epoch_steps = steps;
        __atomic_store_n(&task.header().counts_known, known, __ATOMIC_RELEASE);
    }
};

TEST_F(CountsTest, AreNotKnownBeforeTheTaskStoresThem) {
    Handle handle = open();
    supply_counts_t counts = {.epoch_elements = 1, .epoch_steps = 1};
    EXPECT_STATUS(SUPPLY_AGAIN, supply_counts(handle.get(), &counts), handle);
    EXPECT_EQ(0u, counts.epoch_elements);
    EXPECT_EQ(0u, counts.epoch_steps);
    Task task(files);
    supply_datums(task, 0, 3);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_counts(handle.get(), &counts), handle);
    store(task, 1ULL << 40, 1ULL << 33);
    ASSERT_STATUS(SUPPLY_OK, supply_counts(handle.get(), &counts), handle);
    EXPECT_EQ(1ULL << 40, counts.epoch_elements);
    EXPECT_EQ(1ULL << 33, counts.epoch_steps);
}

TEST_F(CountsTest, NumbersThatContradictEachOtherAreRefused) {
    auto [handle, task] = attached();
    supply_counts_t counts;
    store(task, 10, 11);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_counts(handle.get(), &counts), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"epoch_steps is 11", "epoch_elements, which is 10"}));
    EXPECT_EQ(0u, counts.epoch_elements);
    store(task, 10, 10, 2);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_counts(handle.get(), &counts), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"counts_known is 2"}));
    store(task, 10, 10);
    EXPECT_STATUS(SUPPLY_OK, supply_counts(handle.get(), &counts), handle);
}

TEST_F(CountsTest, WrongArgumentsAreRefused) {
    supply_counts_t counts;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_counts(nullptr, &counts));
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_counts(handle.get(), nullptr), handle);
}

} // namespace
} // namespace supply_test
