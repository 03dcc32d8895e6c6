// supply-clean as a program.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "forked.h"
#include "supply_result.h"
#include "tool_test.h"

extern "C" {
#include "base/file_lock.h"
#include "layout.h"
}

namespace supply_test {
namespace {

class SupplyCleanTest : public ToolTest {
  protected:
    Ended clean(const std::vector<std::string> &more = {}) const { return run(SUPPLY_TEST_CLEAN, more); }
};

TEST_F(SupplyCleanTest, RemovesAndPrintsTheFilesOfDeadRanks) {
    leave_stale_pair(0);
    leave_stale_pair(1);
    Ended ended = clean();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ(lines_of(0) + lines_of(1), ended.out);
    EXPECT_FALSE(exists(0) || exists(1));
    ended = clean();
    EXPECT_EQ(0, ended.exit_status);
    EXPECT_EQ("", ended.out + ended.err);
}

TEST_F(SupplyCleanTest, OnlyOneLine) {
    leave_stale_pair(0);
    leave_stale_pair(1);
    const Ended ended = clean({"--local-rank", "1"});
    EXPECT_EQ(0, ended.exit_status);
    EXPECT_EQ(lines_of(1), ended.out);
    EXPECT_TRUE(exists(0));
    EXPECT_EQ(1, clean({"--local-rank", "2"}).exit_status);
}

TEST_F(SupplyCleanTest, ALivePairIsKeptAndTheOthersAreRemoved) {
    Process living(rank(0), folder.path());
    Task task(pairs[0]);
    leave_stale_pair(1);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ(lines_of(1), ended.out);
    EXPECT_TRUE(
        says(ended.err, {"supply-clean: ", pairs[0].mapped_file.c_str(), std::to_string(living.pid()).c_str()}));
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, living.wait().exit_status) << "the living pair was disturbed";
}

TEST_F(SupplyCleanTest, ADryRunPrintsTheSameAndRemovesNothing) {
    Process living(rank(0), folder.path());
    Task task(pairs[0]);
    leave_stale_pair(1);
    const Ended tried = clean({"--dry-run"});
    EXPECT_EQ(1, tried.exit_status);
    EXPECT_TRUE(
        says(tried.err, {"supply-clean: ", pairs[0].mapped_file.c_str(), std::to_string(living.pid()).c_str()}));
    EXPECT_TRUE(exists(0) && exists(1));
    const Ended done = clean();
    EXPECT_EQ(lines_of(1), tried.out);
    EXPECT_EQ(tried.out, done.out);
    EXPECT_EQ(tried.err, done.err);
    EXPECT_FALSE(exists(1));
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, living.wait().exit_status) << "the living pair was disturbed";
}

class SupplyCleanResultsTest : public SupplyCleanTest {
  protected:
    /** A rank of pair 0 that seals one result, aborts one, and dies while it writes one. */
    void leave_results(const char *results_folder = nullptr) const {
        const int status = run_forked([&] {
            supply_options_t options;
            supply_options_init(&options);
            options.mapped_file = pairs[0].mapped_file.c_str();
            options.request_pipe = pairs[0].request_pipe.c_str();
            options.notification_pipe = pairs[0].notification_pipe.c_str();
            options.results_folder = results_folder;
            supply_t *supply;
            supply_result_t *results[3];
            if (supply_open(&supply, &options) != SUPPLY_OK) return 1;
            const supply_field_t field = {"id", false, "l", "", 0, 0};
            const char *const names[] = {"sealed", "aborted", "dead"};
            for (int i = 0; i < 3; i++)
                if (supply_result_open(&results[i], supply, names[i], &field, 1) != SUPPLY_OK) return 1;
            supply_result_seal(results[0]);
            supply_result_abort(results[1], "the test has ended");
            raise(SIGKILL);
            return 0;
        });
        ASSERT_TRUE(WIFSIGNALED(status));
    }
    std::string result(const std::string &name, const std::string &in = "") const {
        return (in.empty() ? folder.path() : in) + "/pair-0.mapped." + name + ".result";
    }
    void set_task(pid_t pid) const {
        const int fd = ::open(result("sealed").c_str(), O_WRONLY | O_CLOEXEC);
        struct stat own;
        EXPECT_EQ(0, ::stat("/proc/self/ns/pid", &own));
        const uint32_t name_space = static_cast<uint32_t>(own.st_ino);
        EXPECT_EQ(4, pwrite(fd, &pid, 4, offsetof(mapped_file_header, task_pid)));
        EXPECT_EQ(4, pwrite(fd, &name_space, 4, offsetof(mapped_file_header, task_namespace)));
        close(fd);
    }
    static bool is(const std::string &path) { return std::filesystem::exists(path); }
};

TEST_F(SupplyCleanResultsTest, ThoseThatNobodyNeedsAreRemovedAndPrinted) {
    leave_results();
    const Ended tried = clean({"--dry-run"});
    EXPECT_TRUE(is(result("sealed")) && is(result("aborted") + ".unsealed") && is(result("dead") + ".unsealed"));
    const Ended ended = clean();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(says(ended.out, {result("sealed").c_str(), (result("aborted") + ".unsealed").c_str(),
                                 (result("dead") + ".unsealed").c_str()}));
    EXPECT_EQ(ended.out, tried.out);
    EXPECT_FALSE(is(result("sealed")) || is(result("aborted") + ".unsealed") || is(result("dead") + ".unsealed"));
}

TEST_F(SupplyCleanResultsTest, ASealedOneOfALivingSparkProcessIsKept) {
    leave_results();
    set_task(getpid());
    Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-clean: ", result("sealed").c_str(), std::to_string(getpid()).c_str(), "alive",
                                 "RunResult.release"}));
    EXPECT_TRUE(is(result("sealed")));
    EXPECT_FALSE(is(result("dead") + ".unsealed"));
    const pid_t gone = fork();
    if (gone == 0) _exit(0);
    waitpid(gone, nullptr, 0);
    set_task(gone);
    ended = clean();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_FALSE(is(result("sealed")));
}

/* Containers share the folder: the process id of one means nothing in another. */
TEST_F(SupplyCleanResultsTest, ASealedOneOfAnotherPidNamespaceIsKept) {
    leave_results();
    set_task(getpid());
    const auto clean_elsewhere = [&](const std::vector<std::string> &more) {
        std::vector<std::string> command = {"unshare", "--pid",   "--fork",  SUPPLY_TEST_CLEAN,
                                            config[0], config[1], config[2], config[3]};
        command.insert(command.end(), more.begin(), more.end());
        return Process(command, folder.path()).wait();
    };
    if (Process({"unshare", "--pid", "--fork", "true"}, folder.path()).wait().exit_status != 0)
        GTEST_SKIP() << "this user cannot make a PID namespace";
    for (const std::vector<std::string> &more : {std::vector<std::string>{}, {"--dry-run"}}) {
        const Ended ended = clean_elsewhere(more);
        EXPECT_EQ(1, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {result("sealed").c_str(), "container", "--unread-results"})) << ended.err;
        EXPECT_TRUE(is(result("sealed")));
    }
    EXPECT_FALSE(is(result("dead") + ".unsealed")) << "its rank's lock says that it is dead";
    const Ended ended = clean_elsewhere({"--unread-results"});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_FALSE(is(result("sealed")));
}

/* Of a Supplier that does not say its namespace. */
TEST_F(SupplyCleanResultsTest, ASealedOneOfAnUnknownPidNamespaceIsKept) {
    leave_results();
    const pid_t pid = getpid();
    const int fd = ::open(result("sealed").c_str(), O_WRONLY | O_CLOEXEC);
    EXPECT_EQ(4, pwrite(fd, &pid, 4, offsetof(mapped_file_header, task_pid)));
    close(fd);
    EXPECT_EQ(1, clean().exit_status);
    EXPECT_TRUE(is(result("sealed")));
}

TEST_F(SupplyCleanResultsTest, ASealedOneThatIsReadIsKept) {
    leave_results();
    const int reader = ::open(result("sealed").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(0, supply__file_lock(reader, F_RDLCK, READER_LOCK_BYTE));
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-clean: ", result("sealed").c_str(), "read by Spark"}));
    EXPECT_TRUE(is(result("sealed")));
    close(reader);
    EXPECT_EQ(0, clean().exit_status);
    EXPECT_FALSE(is(result("sealed")));
}

TEST_F(SupplyCleanResultsTest, SealedOnesCanBeKept) {
    leave_results();
    const Ended ended = clean({"--keep-results"});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_TRUE(is(result("sealed")));
    EXPECT_FALSE(is(result("dead") + ".unsealed"));
}

TEST_F(SupplyCleanResultsTest, AFolderOfTheirOwnIsNamed) {
    const std::string own = folder.file("own");
    leave_results(own.c_str());
    EXPECT_EQ(0, clean().exit_status);
    EXPECT_TRUE(is(result("sealed", own)));
    const Ended ended = clean({"--results-folder", own});
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_FALSE(is(result("sealed", own)));
    const Ended relative = clean({"--results-folder", "own"});
    EXPECT_EQ(1, relative.exit_status);
    EXPECT_TRUE(says(relative.err, {"'own'", "absolute"}));
}

TEST_F(SupplyCleanTest, OutputThatCannotBeWrittenIsAFailure) {
    leave_stale_pair(0);
    const Ended ended = Process({"sh", "-c", "exec \"$@\" > /dev/full", "sh", SUPPLY_TEST_CLEAN, config[0], config[1],
                                 config[2], config[3]},
                                folder.path())
                            .wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-clean: standard output: "}));
}

TEST_F(SupplyCleanTest, ErrorsNameTheMistake) {
    EXPECT_EQ(2, clean({"--bogus"}).exit_status);
    EXPECT_EQ(2, clean({"--local-rank", "-1"}).exit_status);
    EXPECT_EQ(2, clean({"argument"}).exit_status);
    config[1] = folder.file("absent.conf");
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-clean: ", "absent.conf"}));
    EXPECT_EQ(2, Process({"env", "-u", "SUPPLY_MAPPED_FILES", SUPPLY_TEST_CLEAN}, folder.path()).wait().exit_status);
    EXPECT_EQ(0U,
              Process({SUPPLY_TEST_CLEAN, "--help"}, folder.path()).wait().out.find("Usage: supply-clean [options]\n"));
}

} // namespace
} // namespace supply_test
