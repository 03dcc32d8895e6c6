// The memory of matrices, and what is left of it for the next one.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

extern "C" {
#include "memory.h"
}

namespace supply_test {
namespace {

constexpr size_t LARGE = size_t{64} << 20;

TEST(Growing, KeepsWhatItHasWhenItGrows) {
    growing memory = {};
    uint64_t added = 0;
    for (; added < (LARGE >> 16); added++) *static_cast<uint64_t *>(growing_add(&memory, size_t{1} << 16)) = added;
    growing_fit(&memory);
    EXPECT_EQ(memory.bytes, LARGE);
    for (uint64_t i = 0; i < added; i++) {
        uint64_t value;
        std::memcpy(&value, memory.address + (i << 16), sizeof value);
        ASSERT_EQ(value, i);
    }
    growing_free(&memory);
    EXPECT_EQ(memory.address, nullptr);
}

TEST(Growing, NothingHasAnAddressToo) {
    growing memory = {};
    EXPECT_NE(growing_add(&memory, 0), nullptr);
    EXPECT_EQ(memory.bytes, 0u);
    growing_free(&memory);
}

TEST(Growing, GivesZerosAlthoughOtherMemoryWasWrittenAndFreed) {
    growing memory = {};
    std::memset(growing_add(&memory, LARGE), 1, LARGE);
    growing_free(&memory);
    const auto *added = static_cast<uint8_t *>(growing_add(&memory, LARGE));
    for (size_t i = 0; i < LARGE; i += 512) ASSERT_EQ(added[i], 0) << "at " << i;
    growing_free(&memory);
}

TEST(Growing, ReusesWhatWasFreedAndReturnsWhatIsTooMuch) {
    growing memory = {};
    growing_add(&memory, 2 * LARGE);
    const uint8_t *address = memory.address;
    growing_free(&memory);
    growing first = {}, second = {};
    growing_reuse(&first);
    EXPECT_EQ(first.address, address);
    EXPECT_EQ(growing_add(&first, LARGE - 1), address);
    growing_fit(&first);
    EXPECT_EQ(first.capacity, LARGE);
    growing_reuse(&second);
    EXPECT_EQ(second.address, address + LARGE);
    growing_add(&second, 3 * LARGE);
    growing_free(&first);
    growing_free(&second);
}

TEST(Growing, GrowsByShortStepsSoThatEachIsChecked) {
    growing memory = {};
    ASSERT_NE(growing_add(&memory, 12 * LARGE), nullptr);
    ASSERT_NE(growing_add(&memory, 1), nullptr);
    EXPECT_LE(memory.capacity, 16 * LARGE);
    growing_free(&memory);
}

} // namespace
} // namespace supply_test
