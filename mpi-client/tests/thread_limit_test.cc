// The limit of threads, read from files as Linux's control groups have them, and from groups of this machine.
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
}

namespace supply_test {
namespace {

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

} // namespace
} // namespace supply_test
