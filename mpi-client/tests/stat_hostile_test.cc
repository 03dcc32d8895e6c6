// supply-stat on invalid files, on files of other users, and on pairs that it must not disturb.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "stat_test.h"
#include "user_process.h"

namespace supply_test {
namespace {

class StatHostileTest : public StatTest {
  protected:
    void write_header(size_t offset, const std::string &bytes) const {
        const int fd = ::open(pairs[0].mapped_file.c_str(), O_WRONLY | O_CLOEXEC);
        ASSERT_EQ(static_cast<ssize_t>(bytes.size()),
                  pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)));
        close(fd);
    }
    template <typename Number>
    void write_header(size_t offset, Number number) const {
        write_header(offset, std::string(reinterpret_cast<const char *>(&number), sizeof number));
    }
    void expect_invalid(std::initializer_list<const char *> words) const {
        const Json pair = snapshot();
        EXPECT_EQ("invalid", pair["state"].text());
        EXPECT_TRUE(says(pair["text"].text(), words));
        EXPECT_TRUE(pair["epoch"].is_null());
    }
};

#define HEADER(field) offsetof(struct mapped_file_header, field)

TEST_F(StatHostileTest, InvalidNumbersInTheHeader) {
    Handle handle = open_rank();
    const std::string whole = read_file(pairs[0].mapped_file).substr(0, sizeof(mapped_file_header));
    const auto spoilt = [&](size_t offset, auto number, std::initializer_list<const char *> words) {
        SCOPED_TRACE(offset);
        write_header(offset, number);
        expect_invalid(words);
        write_header(0, whole);
    };
    spoilt(HEADER(version), uint32_t{0x10003}, {"contract 1.3", "this tool 1.6"});
    spoilt(HEADER(byte_order), uint32_t{0x04030201}, {"byte_order"});
    spoilt(HEADER(ring_offset), uint64_t{4096}, {"ring_offset is 4096"});
    spoilt(HEADER(block_bytes), uint64_t{0}, {"block_bytes is 0"});
    spoilt(HEADER(block_bytes), uint64_t{1} << 40, {"block_bytes"});
    spoilt(HEADER(block_count), uint32_t{0}, {"block_count is 0"});
    spoilt(HEADER(block_count), uint32_t{0xFFFFFFFF}, {"file_bytes"});
    spoilt(HEADER(file_bytes), UINT64_MAX, {"file_bytes"});
    spoilt(HEADER(published), uint64_t{5}, {"published is 5", "released 0"});
    spoilt(HEADER(published), UINT64_MAX, {"published"});
    spoilt(HEADER(released), uint64_t{1}, {"released 1"});
    spoilt(HEADER(magic), uint64_t{1}, {"not made by a rank"});
    EXPECT_EQ("open", snapshot()["state"].text());
}

TEST_F(StatHostileTest, ABlockThatIsNotTheLastOneIsNoProgress) {
    Handle handle = open_rank();
    write_header(HEADER(published), uint64_t{3});
    const Json pair = snapshot();
    EXPECT_EQ(3, pair["blocks_in_ring"].number());
    EXPECT_TRUE(pair["elements"].is_null());
    EXPECT_TRUE(pair["epoch"].is_null());
}

TEST_F(StatHostileTest, AFileThatIsTruncatedMeanwhile) {
    Handle handle = open_rank();
    {
        Task task(pairs[0]);
        supply_datums(task, 0);
    }
    Process stat(command(SUPPLY_TEST_STAT, {"--json", "--interval", "0.02"}), folder.path());
    wait_until("a snapshot", [&] { return stat.output().find("\"elements\":10,") != std::string::npos; });
    const std::string whole = read_file(pairs[0].mapped_file);
    for (const auto &[bytes, state] : {std::pair{65536, "invalid"}, {100, "opening"}, {3, "invalid"}, {0, "opening"}}) {
        ASSERT_EQ(0, truncate(pairs[0].mapped_file.c_str(), bytes));
        const std::string words = std::string("\"state\":\"") + state;
        const size_t before = stat.output().size();
        wait_until(state, [&] { return stat.output().find(words, before) != std::string::npos; });
    }
    write_header(0, whole); /* the rank reads it when it closes */
    stat.signal(SIGTERM);
    EXPECT_EQ(128 + SIGTERM, stat.wait().exit_status);
}

TEST_F(StatHostileTest, FilesThatAreNotMappedFiles) {
    const char *path = pairs[0].mapped_file.c_str();
    ASSERT_EQ(0, mkfifo(path, 0600));
    expect_invalid({"not a regular file"});
    unlink(path);
    ASSERT_EQ(0, symlink(folder.write("target", "x").c_str(), path));
    expect_invalid({"not a regular file"});
    unlink(path);
    ASSERT_EQ(0, mkdir(path, 0700));
    expect_invalid({"not a regular file"});
    rmdir(path);
    folder.write("pair-0.mapped", "somebody's precious data");
    expect_invalid({"not made by a rank"});
}

TEST_F(StatHostileTest, ControlCharactersOfAFailureTextAreRemoved) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    /* C2 9B and, for some terminals, 9B are ESC [. */
    task.send_failure("\xC2\x9B[2J\x9B[2J \xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80 \xED\xA0\x80\xC0\x9B");
    EXPECT_EQ("Spark failed:   [2J?[2J \xC3\xBC\xE2\x82\xAC\xF0\x9F\x98\x80 ?????", snapshot()["text"].text());
    task.send_failure("\033[2J \"quoted\" \\ \n\xFF\xC3");
    const Json pair = snapshot();
    EXPECT_EQ("failed", pair["state"].text());
    EXPECT_EQ("Spark failed:  [2J \"quoted\" \\  ??", pair["text"].text());
    const Ended table = run(SUPPLY_TEST_STAT);
    EXPECT_EQ(std::string::npos, table.out.find('\033'));
    EXPECT_TRUE(says(table.out, {"failed", "Spark failed:  [2J \"quoted\""}));
    task.send_failure(std::string(5000, 'w'));
    EXPECT_TRUE(says(snapshot()["text"].text(), {"wwww"}));
}

TEST_F(StatHostileTest, DisturbsNothing) {
    Handle handle = open_rank();
    Task task(pairs[0]);
    supply_datums(task, 0);
    Process stat(command(SUPPLY_TEST_STAT, {"--json", "--interval", "0.01"}), folder.path());
    wait_until("a snapshot", [&] { return !stat.output().empty(); });
    stat.signal(SIGSTOP); /* at any point of its work */
    const std::string before = read_file(pairs[0].mapped_file);
    stat.signal(SIGCONT);
    const size_t bytes = stat.output().size();
    wait_until("many more snapshots", [&] { return stat.output().size() > 20 * bytes; });
    EXPECT_EQ(before, read_file(pairs[0].mapped_file));
    supply_datum_t datum;
    for (int i = 0; i < 10; i++) EXPECT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    task.end_of_data(0);
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next_datum(handle.get(), &datum), handle);
    task.see_end();
    handle.reset();
    EXPECT_TRUE(task.requests().size() >= 2) << "ATTACH and RELEASE must be left for the task";
    EXPECT_TRUE(task.rank_has_left()) << "supply-stat must not hold an end of the request pipe";
    EXPECT_FALSE(exists(0));
}

TEST_F(StatHostileTest, PairsOfAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to start a process of another user";
    const User carol{61003, {}};
    const std::string tool = folder.file("stat"), output = folder.file("output");
    std::filesystem::copy(SUPPLY_TEST_STAT, tool);
    ASSERT_EQ(0, chmod(tool.c_str(), 0755));
    ASSERT_EQ(0, mkdir(output.c_str(), 0777));
    ASSERT_EQ(0, chmod(output.c_str(), 0777));
    ASSERT_EQ(0, mkdir(folder.file("closed \033[2J").c_str(), 0700));
    for (const std::string &file : {config[1], config[3]}) ASSERT_EQ(0, chmod(file.c_str(), 0644));
    Handle handle = open_rank();
    ASSERT_EQ(0, chmod(folder.path().c_str(), 0755));
    const auto stat_as_carol = [&](const std::vector<std::string> &which) {
        return as_user(carol, [&] {
            std::vector<std::string> command = {tool};
            command.insert(command.end(), which.begin(), which.end());
            const Ended ended = Process(command, output).wait();
            return ended.out + ended.err;
        });
    };
    const std::string of_config = stat_as_carol(config);
    EXPECT_TRUE(says(of_config, {"no access", "belongs to root (uid 0) (mode 0600)", "absent"}));
    const std::string of_folder = stat_as_carol({folder.path()});
    EXPECT_TRUE(
        says(of_folder, {"no access", pairs[0].mapped_file.c_str(), "closed  [2J", "is not open to this user"}));
    EXPECT_EQ(std::string::npos, of_folder.find('\033'));
    ASSERT_EQ(0, chmod(pairs[0].mapped_file.c_str(), 0644));
    EXPECT_TRUE(says(stat_as_carol(config), {"open", "0/4", "rank for task"})) << "read permission is enough";
}

} // namespace
} // namespace supply_test
