// The files of values in place: what the rank opens, and what it refuses.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "in_place_test.h"

namespace supply_test {
namespace {

class ForeignFileTest : public InPlaceTest {
  protected:
    /** A rank gets a block in place, after `change` of the file whose entry the task has written. */
    void expect_refused(const std::function<void(foreign_file &entry)> &change, int error,
                        std::initializer_list<const char *> words) {
        auto [handle, task] = attached();
        foreign_file entry = entry_of(path);
        change(entry);
        task.add_foreign_file(entry);
        supply_in_place(task);
        expect_failure(handle, error, words);
        handle.reset();
        EXPECT_TRUE(says(task.header().rank_failure, {"rank 3 failed", path.c_str()})) << "Spark is told";
    }

    /** Changes one byte, a clock tick later. */
    void write_to_file() const {
        struct stat before, after;
        ASSERT_EQ(0, stat(path.c_str(), &before));
        wait_until("a later time of the file", [&] {
            const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            const bool written = pwrite(fd, "?", 1, 100) == 1;
            close(fd);
            return written && stat(path.c_str(), &after) == 0 &&
                   (after.st_mtim.tv_sec != before.st_mtim.tv_sec || after.st_mtim.tv_nsec != before.st_mtim.tv_nsec);
        });
    }
};

TEST_F(ForeignFileTest, AFileThatIsNotThere) {
    expect_refused([&](foreign_file &) { std::filesystem::remove(path); }, ENOENT, {"cannot be opened", "node"});
}

TEST_F(ForeignFileTest, ADirectoryInItsPlace) {
    expect_refused(
        [&](foreign_file &) {
            std::filesystem::remove(path);
            std::filesystem::create_directory(path);
        },
        ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, APipeInItsPlaceIsNotWaitedFor) {
    expect_refused(
        [&](foreign_file &) {
            std::filesystem::remove(path);
            ASSERT_EQ(0, mkfifo(path.c_str(), 0600));
        },
        ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AnotherFileOfTheSameBytesAndTime) {
    expect_refused(
        [&](foreign_file &entry) {
            std::filesystem::rename(path, path + ".old");
            std::filesystem::copy_file(path + ".old", path);
            const struct timespec times[] = {
                {0, UTIME_OMIT},
                {static_cast<time_t>(entry.modified / 1000000000), static_cast<long>(entry.modified % 1000000000)}};
            ASSERT_EQ(0, utimensat(AT_FDCWD, path.c_str(), times, 0));
        },
        ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AFileOfAnotherDevice) {
    expect_refused([](foreign_file &entry) { entry.device++; }, ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AFileThatHasGrown) {
    expect_refused([&](foreign_file &) { std::ofstream(path, std::ios::app) << "more"; }, ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AFileThatSaysItIsLarger) {
    expect_refused([](foreign_file &entry) { entry.file_bytes = UINT64_MAX; }, ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AFileThatWasWrittenToBefore) {
    expect_refused([&](foreign_file &) { write_to_file(); }, ESTALE, {"has changed"});
}

TEST_F(ForeignFileTest, AFileByALinkAndUnderAnotherName) {
    auto [handle, task] = attached();
    std::filesystem::create_symlink(path, path + ".link");
    task.add_foreign_file(entry_of(path + ".link"));
    supply_in_place(task);
    next(handle);
    std::filesystem::rename(path, path + ".new");
    supply_in_place(task);
    const supply_block_t block = next(handle);
    supply_datum_t datum = datum_of(handle, block, 0);
    EXPECT_EQ(value(0), std::string(static_cast<const char *>(datum.data), datum.data_bytes)) << "its name is gone";
}

TEST_F(ForeignFileTest, AFileThatTheGroupOfThePairMayNotRead) {
    const std::string group = std::to_string(getegid());
    options.group = group.c_str();
    for (const mode_t mode : {0600, 0620, 0604, 0640}) {
        auto [handle, task] = attached();
        ASSERT_EQ(0, chmod(path.c_str(), mode));
        supply_in_place(task);
        if (mode == 0640)
            next(handle);
        else
            expect_failure(handle, EACCES, {"pair's group", "chgrp"});
    }
}

TEST_F(ForeignFileTest, AFileThatEverybodyButItsOwnGroupMayRead) {
    const std::string group = std::to_string(getegid());
    options.group = group.c_str();
    if (chown(path.c_str(), static_cast<uid_t>(-1), getegid() + 1) != 0)
        GTEST_SKIP() << "needs root, to change a group";
    ASSERT_EQ(0, chmod(path.c_str(), 0604));
    auto [handle, task] = attached();
    supply_in_place(task);
    next(handle);
}

/* The mode of such a file is 0640, and its group may not read it. */
TEST_F(ForeignFileTest, AFileWithAnAccessControlList) {
    struct entry {
        uint16_t tag, permissions;
        uint32_t id;
    };
    const struct {
        uint32_t version;
        entry entries[5];
    } list = {2, {{1, 6, UINT32_MAX}, {2, 4, 61002}, {4, 0, UINT32_MAX}, {16, 4, UINT32_MAX}, {32, 0, UINT32_MAX}}};
    if (setxattr(path.c_str(), "system.posix_acl_access", &list, sizeof list, 0) != 0)
        GTEST_SKIP() << "no access control lists in " << path;
    struct stat entry;
    ASSERT_EQ(0, stat(path.c_str(), &entry));
    ASSERT_EQ(0640u, entry.st_mode & 0777);
    const std::string group = std::to_string(getegid());
    options.group = group.c_str();
    auto [handle, task] = attached();
    supply_in_place(task);
    expect_failure(handle, EACCES, {"access control list", "pair's group", "setfacl -b"});
}

TEST_F(ForeignFileTest, AChangeIsFoundAtTheNextNotification) {
    using Send = void (*)(Task &task, const BlockImage &image);
    const Send sends[] = {[](Task &task, const BlockImage &image) { task.supply(image); },
                          [](Task &task, const BlockImage &) { task.end_of_epoch(0); },
                          [](Task &task, const BlockImage &) { task.end_of_data(0); }};
    time_t seconds = 0;
    for (const Send send : sends) {
        auto [handle, task] = attached();
        supply_in_place(task);
        const supply_block_t block = next(handle);
        const struct timespec times[] = {{0, UTIME_OMIT}, {++seconds, 0}}; // as a writer that no lease stops
        ASSERT_EQ(0, utimensat(AT_FDCWD, path.c_str(), times, 0));
        send(task, BlockImage(columns(1), 1));
        expect_failure(handle, ESTALE, {"has changed since", "may be wrong"});
        release(handle, block);
    }
}

} // namespace
} // namespace supply_test
