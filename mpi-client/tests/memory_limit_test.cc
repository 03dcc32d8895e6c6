// The memory limit of the container, read from files as Linux's control groups have them.
#include <gtest/gtest.h>

#include "diagnosis_of.h"
#include "rank.h"
#include "temporary_folder.h"

extern "C" {
#include "diagnose_machine.h"
#include "files/file_space.h"
}

namespace supply_test {
namespace {

class MemoryLimitTest : public ::testing::Test {
  protected:
    void groups(const std::string &of_process, const std::string &mounts) {
        folder.write("proc/self/cgroup", of_process);
        folder.write("proc/self/mountinfo", "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw,memory\n" + mounts);
    }
    struct memory_limit read() {
        struct memory_limit limit;
        supply__memory_limit_read(&limit, folder.path().c_str());
        return limit;
    }
    void expect(uint64_t limit_bytes, uint64_t used_bytes, const std::string &place) {
        const struct memory_limit limit = read();
        EXPECT_TRUE(limit.limited);
        EXPECT_EQ(limit_bytes, limit.limit_bytes);
        EXPECT_EQ(used_bytes, limit.used_bytes);
        EXPECT_EQ(folder.file(place), limit.place);
    }
    static std::string diagnosis_of(const struct memory_limit &limit, uint64_t needed) {
        return supply_test::diagnosis_of(
            [&](struct diagnosis *diagnosis) { diagnose_container(diagnosis, &limit, needed); });
    }
    TemporaryFolder folder;
};

constexpr char v2_mount[] = "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
constexpr char v1_mounts[] = "33 22 0:30 /docker/c0ffee /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
                             "34 22 0:31 /docker/c0ffee /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n";

TEST_F(MemoryLimitTest, WithoutControlGroupsThereIsNoLimit) { EXPECT_FALSE(read().limited); }

// Reserving pages in memory would end a process of the group instead of failing.
TEST_F(MemoryLimitTest, WhatTheGroupDoesNotHaveIsNotReserved) {
    struct failure failure = {};
    EXPECT_EQ(SUPPLY_OK, supply__memory_check(UINT64_C(1) << 50, folder.path().c_str(), &failure));
    groups("0::/pod/rank\n", v2_mount);
    folder.write("sys/fs/cgroup/pod/memory.max", "4000\n");
    folder.write("sys/fs/cgroup/pod/memory.current", "3000\n");
    folder.write("sys/fs/cgroup/pod/memory.stat", "anon 1\nfile 700\nshmem 200\n");
    EXPECT_EQ(SUPPLY_OK, supply__memory_check(1500, folder.path().c_str(), &failure)) << failure.text;
    EXPECT_EQ(SUPPLY_ERROR_NO_SPACE, supply__memory_check(1501, folder.path().c_str(), &failure));
    EXPECT_TRUE(says(failure.text, {"1501 bytes", "cgroup/pod ", "1500 left", "4000", "raise the memory limit"}));
}

TEST_F(MemoryLimitTest, Version2TheSmallestLimitCounts) {
    groups("0::/user.slice/job.scope/step\n", v2_mount);
    folder.write("sys/fs/cgroup/user.slice/job.scope/step/memory.max", "max\n");
    folder.write("sys/fs/cgroup/user.slice/job.scope/step/memory.current", "5\n");
    EXPECT_FALSE(read().limited);
    folder.write("sys/fs/cgroup/user.slice/memory.max", "4000\n");
    folder.write("sys/fs/cgroup/user.slice/memory.current", "1000\n");
    expect(4000, 1000, "sys/fs/cgroup/user.slice");
    folder.write("sys/fs/cgroup/user.slice/job.scope/memory.max", "3000\n");
    folder.write("sys/fs/cgroup/user.slice/job.scope/memory.current", "200\n");
    expect(3000, 200, "sys/fs/cgroup/user.slice/job.scope");
}

TEST_F(MemoryLimitTest, PathsOfMountsHaveEscapedCharacters) {
    groups("4:memory:/my pods/tab\tand\\/rank\n",
           "34 22 0:31 /my\\040pods /sys/fs/control\\040groups/tab\\011and\\134 ro - cgroup cgroup rw,memory\n");
    const std::string place = "sys/fs/control groups/tab\tand\\/tab\tand\\/rank";
    folder.write(place + "/memory.limit_in_bytes", "4000\n");
    folder.write(place + "/memory.usage_in_bytes", "1000\n");
    expect(4000, 1000, place);
}

TEST_F(MemoryLimitTest, TheGroupThatHasLeastLeftCounts) {
    groups("0::/user.slice/job.scope\n", v2_mount);
    folder.write("sys/fs/cgroup/user.slice/memory.max", "4000\n");
    folder.write("sys/fs/cgroup/user.slice/memory.current", "3900\n");
    folder.write("sys/fs/cgroup/user.slice/job.scope/memory.max", "3000\n");
    folder.write("sys/fs/cgroup/user.slice/job.scope/memory.current", "200\n");
    expect(4000, 3900, "sys/fs/cgroup/user.slice");
    EXPECT_TRUE(says(diagnosis_of(read(), 90), {"ok", "container"}));
    EXPECT_TRUE(says(diagnosis_of(read(), 3000), {"warning", "container"}));
    EXPECT_TRUE(says(diagnosis_of(read(), 3500), {"failed", "container"})) << "it cannot fit into the job";
}

TEST_F(MemoryLimitTest, Version2InAContainer) {
    groups("0::/\n", v2_mount);
    folder.write("sys/fs/cgroup/memory.max", "64\n");
    folder.write("sys/fs/cgroup/memory.current", "10\n");
    EXPECT_EQ(64u, read().limit_bytes);
    EXPECT_EQ(10u, read().used_bytes);
}

TEST_F(MemoryLimitTest, Version1InAContainer) {
    groups("5:cpu,cpuacct:/docker/c0ffee\n4:memory:/docker/c0ffee/inner\n0::/\n", v1_mounts);
    folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    EXPECT_FALSE(read().limited) << "version 1 says \"no limit\" by this number";
    folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500\n");
    folder.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "50\n");
    expect(500, 50, "sys/fs/cgroup/memory");
    folder.write("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "400\n");
    folder.write("sys/fs/cgroup/memory/inner/memory.usage_in_bytes", "40\n");
    expect(400, 40, "sys/fs/cgroup/memory/inner");
}

TEST_F(MemoryLimitTest, Version1WithAnEmptyVersion2) {
    groups("4:memory:/job\n0::/job\n",
           std::string(v2_mount) + "34 22 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    folder.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "700\n");
    expect(700, 0, "sys/fs/cgroup/memory/job");
}

TEST_F(MemoryLimitTest, FilesThatTheKernelCanDropAreCounted) {
    groups("0::/\n", v2_mount);
    folder.write("sys/fs/cgroup/memory.max", "64\n");
    folder.write("sys/fs/cgroup/memory.stat", "anon 3\nfile_mapped 5\nfile 9\ninactive_file 8\nshmem 2\n");
    EXPECT_EQ(7u, read().cached_bytes);
    groups("4:memory:/\n", "34 22 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    folder.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "60\n");
    folder.write("sys/fs/cgroup/memory/memory.stat", "cache 1\ntotal_cache 8\n");
    EXPECT_EQ(8u, read().cached_bytes);
}

TEST_F(MemoryLimitTest, InvalidFilesGiveNoLimit) {
    groups("\n:::\n4:memory\n0::" + std::string(5000, 'x') + "\n", "- - -\n34 22\n");
    EXPECT_FALSE(read().limited);
}

} // namespace
} // namespace supply_test
