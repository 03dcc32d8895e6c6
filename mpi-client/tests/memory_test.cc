// The memory of supply-server's matrices, and what a node has left for it.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "temporary_folder.h"

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

// The memory that a node can still give, read from files as Linux has them.

class NodeMemoryTest : public ::testing::Test {
  protected:
    void limit(const std::string &bytes, const std::string &used, const std::string &cached) {
        folder.write("proc/self/cgroup", "0::/\n");
        folder.write("proc/self/mountinfo", "30 22 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
        folder.write("sys/fs/cgroup/memory.max", bytes + "\n");
        folder.write("sys/fs/cgroup/memory.current", used + "\n");
        folder.write("sys/fs/cgroup/memory.stat", "file " + cached + "\n");
    }
    // Beside MemAvailable, there is always as much free.
    void meminfo(const std::string &available) {
        folder.write("proc/meminfo", "MemTotal:  90 kB\nMemFree:   60 kB\nMemAvailable:   " + available + " kB\n");
    }
    size_t available() const { return node_memory_available(folder.path().c_str()); }
    TemporaryFolder folder;
};

TEST_F(NodeMemoryTest, WithoutFilesNothingIsKnown) { EXPECT_EQ(SIZE_MAX, available()); }

TEST_F(NodeMemoryTest, TheSmallerOfNodeAndGroupCounts) {
    meminfo("50");
    EXPECT_EQ(50u << 10, available());
    limit("70000", "20000", "0");
    EXPECT_EQ(50000u, available());
    limit("max", "20000", "0");
    EXPECT_EQ(50u << 10, available());
}

// Linux counts such pages as available, even when they were written again.
TEST_F(NodeMemoryTest, PagesThatMadviseHasFreedAreNotAvailable) {
    folder.write("proc/meminfo", "MemFree: 10 kB\nMemAvailable: 90 kB\nBuffers: 1 kB\nCached: 20 kB\nSwapCached: 9 kB\n"
                                 "Inactive(file): 80 kB\nShmem: 5 kB\nSReclaimable: 2 kB\n");
    EXPECT_EQ(28u << 10, available());
}

TEST_F(NodeMemoryTest, CachedFilesAreFreeAndAFullGroupHasNothing) {
    meminfo("50");
    limit("30000", "30000", "1000");
    EXPECT_EQ(1000u, available());
    limit("30000", "40000", "0");
    EXPECT_EQ(0u, available());
    limit("30000", "10", "20");
    EXPECT_EQ(30000u, available());
}

} // namespace
} // namespace supply_test
