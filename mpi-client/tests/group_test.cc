// group= of a config line, and the option that stands before it.
#include "rank.h"

namespace supply_test {
namespace {

class GroupTest : public RankTest {
  protected:
    /** Opens by config files whose line has those words. */
    Handle open_line(const std::string &words, supply_status_t expected) {
        mapped_files = folder.write("mapped-files.conf", files.mapped_file + " " + words + "\n");
        named_pipes = folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe + "\n");
        options.mapped_file = options.request_pipe = options.notification_pipe = nullptr;
        options.mapped_files = mapped_files.c_str();
        options.named_pipes = named_pipes.c_str();
        return open(expected);
    }

    std::string mapped_files, named_pipes;
};

TEST_F(GroupTest, TheLinesGroupIsAskedFor) {
    Handle handle = open_line("ring=64KiB group=no-such-group block=4KiB", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {"mapped-files.conf:1", "no group 'no-such-group'", "group="}));
}

TEST_F(GroupTest, TheOptionWins) {
    options.group = "7no-such-group";
    Handle handle = open_line("group=root", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {"options", "no group '7no-such-group'"}));
}

TEST_F(GroupTest, ANumberThatIsNoneIsRefused) {
    for (const char *group : {"-1", "4294967295", "99999999999999999999", "1 ", "0x1", " 1"}) {
        options.group = group;
        Handle handle = open(SUPPLY_ERROR_CONFIG);
        EXPECT_TRUE(says(supply_error(handle.get()), {"no group", group}));
    }
}

TEST_F(GroupTest, AWordWithoutANameOrTwiceIsRefused) {
    Handle empty = open_line("group=", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(empty.get()), {"mapped-files.conf:1", "'group=' names no group"}));
    Handle twice = open_line("group=a group=b", SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(twice.get()), {"mapped-files.conf:1", "'group=b'", "second"}));
}

} // namespace
} // namespace supply_test
