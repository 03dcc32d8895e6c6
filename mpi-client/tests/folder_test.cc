// The folder of a pair's files: whose it may be, and what is refused there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rank.h"

namespace supply_test {
namespace {

class FolderTest : public RankTest {
  protected:
    /** Lets the mapped file lie in that folder of the test's. */
    void use(const std::string &name) {
        mapped = folder.file(name) + "/mapped";
        options.mapped_file = mapped.c_str();
    }

    std::string make(const std::string &name, mode_t mode) const {
        const std::string path = folder.file(name);
        EXPECT_EQ(0, mkdir(path.c_str(), 0700));
        EXPECT_EQ(0, chmod(path.c_str(), mode));
        return path;
    }

    std::string mapped;
};

TEST_F(FolderTest, OneThatOthersCanWriteIsRefused) {
    for (mode_t mode : {0770, 0702, 0777}) {
        const std::string path = make("open", mode);
        use("open");
        Handle handle = open(SUPPLY_ERROR_CONFIG);
        EXPECT_TRUE(says(supply_error(handle.get()), {mapped.c_str(), path.c_str(), "other users", "chmod go-w"}));
        EXPECT_TRUE(std::filesystem::is_empty(path));
        rmdir(path.c_str());
    }
}

TEST_F(FolderTest, OneThatOthersCanReadOrThatIsStickyIsGoodEnough) {
    for (mode_t mode : {0700, 0755, 01777}) {
        make("folder", mode);
        use("folder");
        {
            Handle handle = open();
        }
        rmdir(folder.file("folder").c_str());
    }
}

TEST_F(FolderTest, ALinkIsRefusedAsTheLastFolderAndFollowedBeforeIt) {
    make("target", 0700);
    ASSERT_EQ(0, symlink(folder.file("target").c_str(), folder.file("link").c_str()));
    use("link");
    Handle handle = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {mapped.c_str(), folder.file("link").c_str(), "symbolic link"}));
    std::string error;
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, remove_stale(options, error));
    EXPECT_TRUE(says(error, {folder.file("link").c_str(), "symbolic link"}));

    use("link/below");
    Handle below = open();
    EXPECT_EQ(0, access(folder.file("target/below/mapped").c_str(), F_OK));
}

TEST_F(FolderTest, APathMustNameAFile) {
    for (const char *end : {"/", "/.", "/..", "//"}) {
        const std::string path = folder.path() + end;
        options.mapped_file = path.c_str();
        Handle handle = open(SUPPLY_ERROR_CONFIG);
        EXPECT_TRUE(says(supply_error(handle.get()), {path.c_str(), "must name a file"}));
    }
}

TEST_F(FolderTest, AnotherUsersIsRefusedByTheNameOfItsOwner) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to make another user's folder";
    const std::string path = make("another's", 0700);
    use("another's");
    ASSERT_EQ(0, chown(path.c_str(), 1, static_cast<gid_t>(-1)));
    Handle named = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(named.get()), {mapped.c_str(), path.c_str(), "another user, daemon (uid 1)"}));
    ASSERT_EQ(0, chown(path.c_str(), 12345, static_cast<gid_t>(-1)));
    Handle nameless = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(nameless.get()), {"another user, uid 12345"}));
    EXPECT_TRUE(std::filesystem::is_empty(path));
}

/* Between opening and closing, another folder with files of the same names takes the place of the pair's. */
TEST_F(FolderTest, WhatTakesThePlaceOfTheFolderIsLeftAlone) {
    make("folder", 0700);
    use("folder");
    const std::string notification = folder.file("folder/notification");
    options.notification_pipe = notification.c_str();
    Handle handle = open();
    PairFiles pair{mapped, files.request_pipe, notification};
    {
        Task task(pair);
        supply_datums(task, 0, 1);
    }
    ASSERT_EQ(0, rename(folder.file("folder").c_str(), folder.file("moved").c_str()));
    make("folder", 0700);
    folder.write("folder/mapped", "another's");
    ASSERT_EQ(0, mkfifo(notification.c_str(), 0600));

    supply_block_t block = next(handle);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle) << "the pipe is opened again here";
    handle.reset();
    EXPECT_TRUE(std::filesystem::is_empty(folder.file("moved")));
    EXPECT_EQ("another's", read_file(mapped));
    EXPECT_EQ(0, access(notification.c_str(), F_OK));
}

TEST_F(FolderTest, ARefusedFolderLeavesNoDescriptorOpen) {
    make("open", 0777);
    use("open");
    {
        Handle handle = open(SUPPLY_ERROR_CONFIG);
    }
    const int before = dup(0);
    close(before);
    for (int i = 0; i < 3; i++) Handle handle = open(SUPPLY_ERROR_CONFIG);
    const int after = dup(0);
    close(after);
    EXPECT_EQ(before, after);
}

} // namespace
} // namespace supply_test
