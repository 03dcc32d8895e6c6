// supply-cat as a program: its output, its exit status, and that it removes its pair.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "in_place.h"
#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

class SupplyCatTest : public RankTest {
  protected:
    SupplyCatTest() {
        mapped_files = folder.write("mapped-files.conf", files.mapped_file + " ring=32KiB block=8KiB\n");
        named_pipes = folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe + "\n");
    }

    std::vector<std::string> command(const std::vector<std::string> &more = {}) const {
        std::vector<std::string> command = {SUPPLY_TEST_CAT, "--mapped-files", mapped_files, "--named-pipes",
                                            named_pipes,     "--local-rank",   "0"};
        command.insert(command.end(), more.begin(), more.end());
        return command;
    }

    void supply_two_epochs(Task &task) {
        const std::vector<Element> elements = {
            {std::string("a/b\\\xff\0\t~ ", 9), -1, 3, 2, 1, true, "123456789"},
            {"", 7, 0, 0, 0, false, ""},
        };
        task.write_schema(schema_of(datum_columns(elements)));
        task.supply(datum_block(elements), 0);
        task.end_of_epoch(0);
        task.supply(datum_block(elements), 1);
        task.end_of_epoch(1);
        task.end_of_data(1);
        task.see_end();
    }

    bool pair_is_gone() const {
        return !std::filesystem::exists(files.mapped_file) && !std::filesystem::exists(files.request_pipe) &&
               !std::filesystem::exists(files.notification_pipe);
    }

    std::string mapped_files, named_pipes;
};

TEST_F(SupplyCatTest, PrintsEachElementOnALine) {
    Process cat(command(), folder.path());
    Task task(files);
    supply_two_epochs(task);
    const Ended ended = cat.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ("", ended.err);
    EXPECT_EQ("0\ta/b\\x5c\\xff\\x00\\x09~ \t-1\t3\t2\t1\t1\t9\tcbf43926\n"
              "0\t\t7\t0\t0\t0\t0\t0\t00000000\n"
              "1\ta/b\\x5c\\xff\\x00\\x09~ \t-1\t3\t2\t1\t1\t9\tcbf43926\n"
              "1\t\t7\t0\t0\t0\t0\t0\t00000000\n",
              ended.out);
    EXPECT_TRUE(pair_is_gone());
}

TEST_F(SupplyCatTest, PrintsValuesInPlaceAsIfTheyWereCopied) {
    const std::string contents = foreign_contents(300);
    std::vector<Element> elements;
    for (uint64_t i = 0; i < 3; i++) {
        elements.push_back(numbered_element(i));
        elements.back().data = contents.substr(100 * i, 100);
    }
    const auto printed = [&](const std::vector<Column> &columns) {
        Process cat(command(), folder.path());
        Task task(files);
        task.add_foreign_file(entry_of(folder.write("data.mdb", contents)));
        task.supply_all(columns, 3);
        task.end_of_epoch(0);
        task.end_of_data(0);
        task.see_end();
        const Ended ended = cat.wait();
        EXPECT_EQ(0, ended.exit_status) << ended.err;
        return ended.out;
    };
    const std::string copied = printed(datum_columns(elements));
    EXPECT_EQ(3, std::count(copied.begin(), copied.end(), '\n'));
    EXPECT_EQ(copied, printed(datum_columns_in_place(1, contents, 100, elements)));
}

TEST_F(SupplyCatTest, PrintsOnlyTheTotals) {
    Process cat(command({"--count", "--ring", "16KiB", "--block", "4096"}), folder.path());
    Task task(files);
    EXPECT_EQ(4096u, task.header().block_bytes);
    EXPECT_EQ(4u, task.header().block_count);
    supply_two_epochs(task);
    const Ended ended = cat.wait();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_EQ("epochs\t2\nelements\t4\nbytes\t18\n", ended.out);
}

TEST_F(SupplyCatTest, PrintsFailuresOnlyToStderr) {
    Process nobody(command({"--timeout", "0.1"}), folder.path());
    Ended ended = nobody.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("", ended.out);
    EXPECT_TRUE(says(ended.err, {"supply-cat: no Spark task attached to pair 0", "within 0.1 s"}));
    EXPECT_EQ(1, std::count(ended.err.begin(), ended.err.end(), '\n'));
    EXPECT_TRUE(pair_is_gone());

    Process failing(command(), folder.path());
    Task task(files);
    task.send_failure("the source is gone");
    ended = failing.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_EQ("supply-cat: the source is gone\n", ended.err);
}

TEST_F(SupplyCatTest, PrintsWhatItHasBeforeItWaits) {
    Process cat(command(), folder.path());
    Task task(files);
    supply_datums(task, 0, 2);
    wait_until("two lines", [&] {
        const std::string out = cat.output();
        return std::count(out.begin(), out.end(), '\n') == 2;
    });
    cat.signal(SIGTERM);
    cat.wait();
}

TEST_F(SupplyCatTest, ASignalEndsItAndSparkIsNotified) {
    for (int signal : {SIGINT, SIGTERM}) {
        Process cat(command(), folder.path());
        Task task(files);
        supply_datums(task, 0, 1);
        wait_until("its first block", [&] { return task.released() == 1; });
        cat.signal(signal);
        const Ended ended = cat.wait();
        EXPECT_EQ(128 + signal, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {signal == SIGINT ? "SIGINT" : "SIGTERM"}));
        EXPECT_STREQ("supply-cat was ended by a signal", task.header().rank_failure);
        EXPECT_EQ(static_cast<uint32_t>(REQUEST_STOP), task.requests().back().kind);
        EXPECT_TRUE(pair_is_gone());
    }
}

TEST_F(SupplyCatTest, ASignalEndsTheWaitAfterTheEndOfData) {
    for (int signal : {SIGINT, SIGTERM}) {
        Process cat(command({"--timeout", "20"}), folder.path());
        Task task(files);
        supply_datums(task, 0, 1);
        task.end_of_data(0);
        wait_until("its last release", [&] { return task.released() == task.published(); });
        cat.signal(signal);
        const Ended ended = cat.wait();
        EXPECT_EQ(128 + signal, ended.exit_status);
        EXPECT_TRUE(says(ended.err, {signal == SIGINT ? "SIGINT" : "SIGTERM"}));
        EXPECT_TRUE(pair_is_gone());
    }
}

TEST_F(SupplyCatTest, ATaskThatDoesNotConfirmTheEndIsAnError) {
    Process cat(command({"--timeout", "1"}), folder.path());
    Task task(files);
    supply_datums(task, 0, 1);
    task.end_of_data(0);
    const Ended ended = cat.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"SUPPLY_ERROR_TIMEOUT at the end"}));
    EXPECT_TRUE(pair_is_gone());
}

TEST_F(SupplyCatTest, AClosedOutputIsAnErrorAndThePairIsRemoved) {
    std::string line;
    for (const std::string &word : command()) line += word + " ";
    Process closed({"sh", "-c", "exec " + line + ">&-"}, folder.path());
    Ended ended = closed.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-cat: standard output is closed"}));
    EXPECT_FALSE(std::filesystem::exists(files.mapped_file));

    /* A reader that has exited: the test alone has the other end. */
    const std::string output = folder.file("output");
    ASSERT_EQ(0, mkfifo(output.c_str(), 0600));
    const int reader = ::open(output.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    Process broken({"sh", "-c", "exec " + line + ">" + output}, folder.path());
    Task task(files);
    ::close(reader);
    supply_datums(task, 0, 1);
    ended = broken.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-cat: standard output: Broken pipe"}));
    EXPECT_TRUE(pair_is_gone());
}

TEST_F(SupplyCatTest, AFullDiskIsAnError) {
    std::string line;
    for (const std::string &word : command()) line += word + " ";
    Process full({"sh", "-c", "exec " + line + ">/dev/full"}, folder.path());
    Task task(files);
    supply_datums(task, 0, 1);
    const Ended ended = full.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-cat: standard output: No space left on device"}));
    EXPECT_STREQ("supply-cat could not write its standard output", task.header().rank_failure);
}

TEST_F(SupplyCatTest, ColumnsOfAnotherKindAreNamed) {
    Process cat(command(), folder.path());
    Task task(files);
    const std::vector<Column> columns = {Column::int32("weight", {1})};
    task.supply_all(columns, 1);
    const Ended ended = cat.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-cat: ", "no column 'key' among 1", "no Datums"}));
    EXPECT_TRUE(says(task.header().rank_failure, {"no column 'key' among 1", "no Datums"}));
}

/* The children of a key are no columns of a Datum. */
TEST_F(SupplyCatTest, ColumnsWithChildrenAreNamed) {
    Process cat(command(), folder.path());
    Task task(files);
    const std::vector<Column> columns = {Column::variable("key", "z", {"k"}), Column::int32("label", {1}),
                                         Column::parent("channels", "+l", 1, {0, 2}), Column::int32("item", {1, 2})};
    task.supply_all(columns, 1);
    const Ended ended = cat.wait();
    EXPECT_EQ(1, ended.exit_status);
    EXPECT_TRUE(says(ended.err, {"supply-cat: ", "column 'channels' has the format '+li', not 'i'"}));
}

TEST_F(SupplyCatTest, WrongOptionsPrintTheUsage) {
    const std::vector<std::string> wrong[] = {{"--bogus"},         {"--ring", "16MB"},    {"--block", "0"},
                                              {"--timeout", "-1"}, {"--local-rank", "x"}, {"argument"},
                                              {"--ring"}};
    for (const std::vector<std::string> &options : wrong) {
        Process cat(command(options), folder.path());
        const Ended ended = cat.wait();
        EXPECT_EQ(2, ended.exit_status) << options[0];
        EXPECT_EQ("", ended.out) << options[0];
        EXPECT_TRUE(says(ended.err, {"supply-cat: ", "Usage: supply-cat", options[0].c_str()}));
    }
    Process help({SUPPLY_TEST_CAT, "--help"}, folder.path());
    Ended ended = help.wait();
    EXPECT_EQ(0, ended.exit_status);
    EXPECT_TRUE(says(ended.out, {"Usage: supply-cat", "--count"}));
    Process version({SUPPLY_TEST_CAT, "--version"}, folder.path());
    ended = version.wait();
    EXPECT_EQ(std::string("supply-cat ") + supply_version() + " (contract 1.6)\n", ended.out);
}

} // namespace
} // namespace supply_test
