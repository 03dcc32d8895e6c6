// supply-clean as a program.
#include <signal.h>

#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

class SupplyCleanTest : public ::testing::Test {
  protected:
    SupplyCleanTest() {
        std::string mapped, pipes;
        for (const char *number : {"0", "1"}) {
            const PairFiles pair = {folder.file(std::string("mapped-") + number),
                                    folder.file(std::string("request-") + number),
                                    folder.file(std::string("notification-") + number)};
            pairs.push_back(pair);
            mapped += pair.mapped_file + " ring=32KiB\n";
            pipes += pair.request_pipe + " " + pair.notification_pipe + "\n";
        }
        config = {"--mapped-files", folder.write("mapped-files.conf", mapped), "--named-pipes",
                  folder.write("named-pipes.conf", pipes)};
    }

    std::vector<std::string> command(const char *program, const std::vector<std::string> &more = {}) const {
        std::vector<std::string> command = {program};
        command.insert(command.end(), config.begin(), config.end());
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }
    Ended clean(const std::vector<std::string> &more = {}) {
        return Process(command(SUPPLY_TEST_CLEAN, more), folder.path()).wait();
    }
    void leave_stale_pair(int number) {
        Process rank(command(SUPPLY_TEST_CAT, {"--local-rank", std::to_string(number)}), folder.path());
        Task opened(pairs[static_cast<size_t>(number)]);
        rank.signal(SIGKILL);
        rank.wait();
    }
    std::string lines_of(size_t number) const {
        return pairs[number].mapped_file + "\n" + pairs[number].request_pipe + "\n" + pairs[number].notification_pipe + "\n";
    }
    bool exists(size_t number) const { return std::filesystem::exists(pairs[number].mapped_file); }

    TemporaryFolder folder;
    std::vector<PairFiles> pairs;
    std::vector<std::string> config;
};

TEST_F(SupplyCleanTest, RemovesWhatTheDeadLeftAndSaysSo) {
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

TEST_F(SupplyCleanTest, OneLineAlone) {
    leave_stale_pair(0);
    leave_stale_pair(1);
    const Ended ended = clean({"--local-rank", "1"});
    EXPECT_EQ(0, ended.exit_status);
    EXPECT_EQ(lines_of(1), ended.out);
    EXPECT_TRUE(exists(0));
    EXPECT_EQ(1, clean({"--local-rank", "2"}).exit_status);
}

TEST_F(SupplyCleanTest, ALivingPairStaysAndTheOthersGo) {
    Process rank(command(SUPPLY_TEST_CAT, {"--local-rank", "0"}), folder.path());
    Task task(pairs[0]);
    leave_stale_pair(1);
    const Ended ended = clean();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ(lines_of(1), ended.out);
    EXPECT_TRUE(says(ended.err, {"supply-clean: ", pairs[0].mapped_file.c_str(), std::to_string(rank.pid()).c_str()}));
    task.end_of_data(0);
    task.see_end();
    EXPECT_EQ(0, rank.wait().exit_status) << "the living pair was disturbed";
}

TEST_F(SupplyCleanTest, MistakesAreNamed) {
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

}  // namespace
}  // namespace supply_test
