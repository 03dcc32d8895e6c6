// The two config files: what they may contain, and how mistakes are reported.
#include <gtest/gtest.h>

#include "rank.h"
#include "temporary_folder.h"

extern "C" {
#include "files/config_files.h"
}

namespace supply_test {
namespace {

class ConfigFilesTest : public ::testing::Test {
  protected:
    ~ConfigFilesTest() override { supply__config_free(&lines); }

    supply_status_t read(const std::string &mapped_files, const std::string &named_pipes) {
        const std::string mapped = folder.write("mapped-files.conf", mapped_files);
        const std::string pipes = folder.write("named-pipes.conf", named_pipes);
        supply__config_free(&lines);
        return supply__config_read(mapped.c_str(), pipes.c_str(), &lines, &failure);
    }

    TemporaryFolder folder;
    struct config_lines lines = {};
    struct failure failure = {};
};

TEST_F(ConfigFilesTest, CommentsBlankLinesAndAnyWhiteSpaceDoNotCount) {
    ASSERT_EQ(SUPPLY_OK, read("# a comment\n\n/a/0 ring=16MiB block=4MiB\r\n \t\n/a/1\tblock=64KiB# after\n   /a/2",
                              "/p/0 /p/1\n/p/2\t /p/3 # after\n\n#\n/p/4 /p/5\n"))
        << failure.text;
    ASSERT_EQ(3u, lines.count);
    EXPECT_STREQ("/a/0", lines.lines[0].mapped_file.path);
    EXPECT_EQ(16u << 20, lines.lines[0].ring_bytes);
    EXPECT_EQ(4u << 20, lines.lines[0].block_bytes);
    EXPECT_STREQ("/a/1", lines.lines[1].mapped_file.path);
    EXPECT_EQ(0u, lines.lines[1].ring_bytes);
    EXPECT_EQ(64u << 10, lines.lines[1].block_bytes);
    EXPECT_STREQ("/p/2", lines.lines[1].request_pipe.path);
    EXPECT_STREQ("/p/3", lines.lines[1].notification_pipe.path);
    EXPECT_STREQ("/p/5", lines.lines[2].notification_pipe.path);
    EXPECT_TRUE(says(lines.lines[1].mapped_file.origin, {"mapped-files.conf:5"}));
}

TEST_F(ConfigFilesTest, AByteOrderMarkDoesNotCount) {
    const std::string mark = "\xEF\xBB\xBF";
    ASSERT_EQ(SUPPLY_OK, read(mark + "/a/0\r\n", mark + "# a comment\n/p/0 /p/1\n")) << failure.text;
    EXPECT_STREQ("/a/0", lines.lines[0].mapped_file.path);
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, read("/a/0\n" + mark + "/a/1\n", "/p/0 /p/1\n/p/2 /p/3\n")) << "only at the start";
}

TEST_F(ConfigFilesTest, TheCachesDecideTheRingIfItIsAuto) {
    ASSERT_EQ(SUPPLY_OK, read("/a/0 ring=auto block=1MiB\n", "/p/0 /p/1\n")) << failure.text;
    EXPECT_EQ(RING_AUTO, lines.lines[0].ring_bytes);
    EXPECT_EQ(1u << 20, lines.lines[0].block_bytes);
}

struct Size {
    const char *text;
    uint64_t bytes; /* 0: none */
};

TEST(ConfigSizeTest, OnlyWholeNumbersAndBinaryUnitsAreSizes) {
    const Size sizes[] = {
        {"1", 1},
        {"4096", 4096},
        {"64KiB", 65536},
        {"16MiB", 16u << 20},
        {"1GiB", 1u << 30},
        {"0", 0},
        {"", 0},
        {"-1", 0},
        {"+1", 0},
        {" 1", 0},
        {"1 ", 0},
        {"1.5MiB", 0},
        {"1mib", 0},
        {"1MB", 0},
        {"1M", 0},
        {"MiB", 0},
        {"0x10", 0},
        {"8589934592GiB", 0},
        {"99999999999999999999", 0},
    };
    for (const Size &size : sizes) EXPECT_EQ(size.bytes, supply__config_size(size.text)) << "'" << size.text << "'";
}

struct Mistake {
    const char *name;
    const char *mapped_files, *named_pipes;
    std::initializer_list<const char *> words;
};

class ConfigMistakeTest : public ConfigFilesTest, public ::testing::WithParamInterface<Mistake> {};

TEST_P(ConfigMistakeTest, IsToldWithItsLine) {
    const Mistake &mistake = GetParam();
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, read(mistake.mapped_files, mistake.named_pipes));
    EXPECT_TRUE(says(failure.text, mistake.words));
}

const Mistake mistakes[] = {
    {"RelativeMappedFile", "# x\na/0\n", "/p/0 /p/1\n", {"mapped-files.conf:2", "'a/0'", "absolute"}},
    {"RelativeRequestPipe", "/a/0\n", "p/0 /p/1\n", {"named-pipes.conf:1", "'p/0'", "absolute"}},
    {"RelativeNotificationPipe", "/a/0\n", "/p/0 p/1\n", {"named-pipes.conf:1", "'p/1'", "absolute"}},
    {"UnknownWord", "/a/0 rong=1MiB\n", "/p/0 /p/1\n", {"mapped-files.conf:1", "'rong=1MiB'", "ring=SIZE"}},
    {"SecondPath", "/a/0 /a/1\n", "/p/0 /p/1\n", {"mapped-files.conf:1", "'/a/1'"}},
    {"AutomaticRingTwice",
     "/a/0 ring=auto ring=1MiB\n",
     "/p/0 /p/1\n",
     {"mapped-files.conf:1", "'ring=1MiB'", "second"}},
    {"BadRing", "/a/0\n/a/1 ring=16MB\n", "/p/0 /p/1\n/p/2 /p/3\n", {"mapped-files.conf:2", "'ring=16MB'", "16MiB"}},
    {"BadBlock", "/a/0 block=0\n", "/p/0 /p/1\n", {"mapped-files.conf:1", "'block=0'", "size"}},
    {"EmptySize", "/a/0 block=\n", "/p/0 /p/1\n", {"mapped-files.conf:1", "'block='", "size"}},
    {"RingTwice", "/a/0 ring=1MiB ring=2MiB\n", "/p/0 /p/1\n", {"mapped-files.conf:1", "'ring=2MiB'", "second"}},
    {"OnePipe", "/a/0\n", "/p/0\n", {"named-pipes.conf:1", "exactly two"}},
    {"ThreePipes", "/a/0\n", "/p/0 /p/1 /p/2\n", {"named-pipes.conf:1", "exactly two"}},
    {"FewerPipes", "/a/0\n/a/1\n", "/p/0 /p/1\n", {"mapped-files.conf has 2", "named-pipes.conf has 1"}},
    {"MorePipes", "/a/0\n", "/p/0 /p/1\n/p/2 /p/3\n", {"mapped-files.conf has 1", "named-pipes.conf has 2"}},
    {"SameMappedFile",
     "/a/0\n/a/0\n",
     "/p/0 /p/1\n/p/2 /p/3\n",
     {"mapped-files.conf:2", "mapped-files.conf:1", "/a/0"}},
    {"SamePipe", "/a/0\n", "/p/0 /p/0\n", {"named-pipes.conf:1", "/p/0"}},
    {"PipeIsMappedFile", "/a/0\n", "/a/0 /p/0\n", {"named-pipes.conf:1", "mapped-files.conf:1"}},
};

INSTANTIATE_TEST_SUITE_P(, ConfigMistakeTest, ::testing::ValuesIn(mistakes),
                         [](const auto &info) { return std::string(info.param.name); });

TEST_F(ConfigFilesTest, AMissingFileIsNamed) {
    const std::string pipes = folder.write("named-pipes.conf", "/p/0 /p/1\n");
    EXPECT_EQ(SUPPLY_ERROR_CONFIG,
              supply__config_read(folder.file("absent.conf").c_str(), pipes.c_str(), &lines, &failure));
    EXPECT_TRUE(says(failure.text, {"absent.conf", "No such file"}));
}

TEST_F(ConfigFilesTest, AFolderInPlaceOfAFileIsNamed) {
    const std::string pipes = folder.write("named-pipes.conf", "/p/0 /p/1\n");
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, supply__config_read(folder.path().c_str(), pipes.c_str(), &lines, &failure));
    EXPECT_TRUE(says(failure.text, {folder.path().c_str(), "directory"}));
}

TEST_F(ConfigFilesTest, AZeroByteIsNoText) {
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, read(std::string("/a/0\0/a/1\n", 10), "/p/0 /p/1\n"));
    EXPECT_TRUE(says(failure.text, {"mapped-files.conf:1", "zero byte"}));
}

} // namespace
} // namespace supply_test
