// The memory that a node can still give, read from files as Linux has them.
#include <gtest/gtest.h>

#include <cstdint>

#include "temporary_folder.h"

extern "C" {
#include "memory.h"
}

namespace supply_test {
namespace {

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
