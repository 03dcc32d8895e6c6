// supply-clean as a program.
#include "tool_test.h"

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
    EXPECT_EQ(0, Process({SUPPLY_TEST_CLEAN, "--help"}, folder.path()).wait().exit_status);
}

} // namespace
} // namespace supply_test
