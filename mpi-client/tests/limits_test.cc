// Limits of memory and threads, as the kernel describes them in files, and what supply-doctor says of these.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <fstream>
#include <iterator>

#include "diagnosis_of.h"
#include "rank.h"
#include "temporary_folder.h"
#include "user_process.h"

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

// The limit of threads, read from files as Linux's control groups have them, and from groups of this machine.

/** Of this process: the thread sanitizer and qemu have one, too. */
size_t own_threads() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

class ThreadLimitTest : public ::testing::Test {
  protected:
    struct thread_limit read() {
        struct thread_limit limit;
        thread_limit_read(&limit, folder.path().c_str());
        return limit;
    }
    uint64_t left() {
        const struct thread_limit limit = read();
        return thread_limit_left(&limit);
    }
    static std::string diagnosis_of(const struct thread_limit &limit, size_t ranks) {
        return supply_test::diagnosis_of(
            [&](struct diagnosis *diagnosis) { diagnose_threads(diagnosis, &limit, ranks); });
    }
    TemporaryFolder folder;
};

TEST_F(ThreadLimitTest, WithoutControlGroupsThereIsNoLimit) {
    EXPECT_FALSE(read().limited);
    EXPECT_TRUE(says(diagnosis_of(read(), 4), {"ok", "threads", "no limit"}));
}

TEST_F(ThreadLimitTest, Version2TheLeastThatIsLeftCounts) {
    folder.write("proc/self/cgroup", "0::/kubepods.slice/pod.slice/container.scope\n");
    folder.write("proc/self/mountinfo",
                 "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    const std::string pod = "sys/fs/cgroup/kubepods.slice/pod.slice";
    folder.write(pod + "/container.scope/pids.max", "max\n");
    folder.write(pod + "/container.scope/pids.current", "30\n");
    EXPECT_FALSE(read().limited);
    folder.write(pod + "/pids.max", "1000\n");
    folder.write(pod + "/pids.current", "900\n");
    folder.write("sys/fs/cgroup/kubepods.slice/pids.max", "5000\n");
    folder.write("sys/fs/cgroup/kubepods.slice/pids.current", "4950\n");
    EXPECT_EQ(50u, left());
    EXPECT_EQ(folder.file("sys/fs/cgroup/kubepods.slice"), read().place);
    EXPECT_TRUE(
        says(diagnosis_of(read(), 4), {"warning", "4 ranks", "need about 200", "the limit is 5000, and 50 are left",
                                       "podPidsLimit", "--pids-limit", "TasksMax"}));
    EXPECT_TRUE(says(diagnosis_of(read(), 51), {"failed"}));
    folder.write("sys/fs/cgroup/kubepods.slice/pids.current", "900\n");
    EXPECT_EQ(100u, left());
}

TEST_F(ThreadLimitTest, Version1InAContainer) {
    folder.write("proc/self/cgroup", "5:pids:/docker/c0ffee\n4:memory:/docker/c0ffee\n0::/\n");
    folder.write("proc/self/mountinfo", "34 22 0:31 /docker/c0ffee /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n");
    folder.write("sys/fs/cgroup/pids/pids.max", "4096\n");
    folder.write("sys/fs/cgroup/pids/pids.current", "96\n");
    EXPECT_EQ(4000u, left());
    EXPECT_TRUE(says(diagnosis_of(read(), 1), {"ok", "1 rank with", "the limit is 4096, and 4000 are left"}));
}

TEST_F(ThreadLimitTest, AControlGroupOfThisMachine) {
    const std::string name = "supply-test-" + std::to_string(getpid());
    std::string group;
    for (const char *root : {"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"}) {
        std::error_code error;
        if (std::filesystem::create_directory(root + name, error)) group = root + name;
        if (!group.empty() && std::filesystem::exists(group + "/pids.max")) break;
        if (!group.empty()) std::filesystem::remove(group);
        group.clear();
    }
    if (group.empty()) GTEST_SKIP() << "this user may make no control group with a limit of threads";
    std::ofstream(group + "/pids.max") << 7;
    const std::string said = as_user({geteuid(), {}}, [&] {
        std::ofstream(group + "/cgroup.procs") << getpid() << std::flush;
        struct thread_limit limit;
        thread_limit_read(&limit, "");
        return diagnosis_of(limit, 7);
    });
    const std::string wanted = "the limit is 7, and " + std::to_string(7 - own_threads()) + " are left";
    EXPECT_TRUE(says(said, {"failed", wanted.c_str(), name.c_str()}));
    for (int i = 0; i < 100 && rmdir(group.c_str()) != 0; i++) usleep(10000);
    EXPECT_FALSE(std::filesystem::exists(group));
}

TEST_F(ThreadLimitTest, OfAUser) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to start a process of another user";
    // The kernel counts all processes of a user: this one has none in other tests, which may run meanwhile.
    const std::string said = as_user({61004, {}}, [&] {
        const rlimit nine = {9, 9};
        setrlimit(RLIMIT_NPROC, &nine);
        struct thread_limit limit;
        thread_limit_read(&limit, "");
        return diagnosis_of(limit, 1);
    });
    const std::string wanted = "the limit is 9, and " + std::to_string(9 - own_threads()) + " are left (ulimit -u)";
    EXPECT_TRUE(says(said, {"warning", wanted.c_str(), "fix:", "limits.conf"}));
}

// What supply-doctor says of memory nodes, for machines as the kernel describes them.

std::string diagnosis_of(const TemporaryFolder &machine) {
    return supply_test::diagnosis_of([&](struct diagnosis *diagnosis) {
        diagnose_nodes(diagnosis, machine.path().c_str());
        EXPECT_EQ(0u, diagnosis->warnings + diagnosis->failed);
    });
}

TEST(DiagnoseNodesTest, OnlySeveralNodesNeedAdvice) {
    TemporaryFolder machine;
    EXPECT_TRUE(says(diagnosis_of(machine), {"skipped", "numa", machine.path().c_str()}));
    machine.write("has_cpu", "0\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"ok", "numa", "one memory node"}));
    machine.write("has_cpu", "0-1\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"ok", "numa", "memory nodes 0-1", "--bind-to numa"}));
    machine.write("has_cpu", "0,2\n");
    EXPECT_TRUE(says(diagnosis_of(machine), {"memory nodes 0,2"}));
}

} // namespace
} // namespace supply_test
