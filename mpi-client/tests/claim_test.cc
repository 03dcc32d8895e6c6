// O1: whose the three files are, and what may be replaced.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "forked.h"
#include "rank.h"

extern "C" {
#include "files/claimed_file.h"
#include "base/file_lock.h"
}

namespace supply_test {
namespace {

class ClaimTest : public RankTest {
  protected:
    /** Opens a pair in a process that then dies without closing it. */
    void leave_stale_pair() {
        const int status = run_forked([&] {
            static supply_t *supply; // Reachable to the end: valgrind reports what a process has lost.
            return supply_open(&supply, &options) == SUPPLY_OK ? 0 : 1;
        });
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }

    std::vector<std::string> paths() const { return {files.mapped_file, files.request_pipe, files.notification_pipe}; }
};

ino_t inode(const std::string &path) {
    struct stat entry;
    return lstat(path.c_str(), &entry) == 0 ? entry.st_ino : 0;
}

TEST_F(ClaimTest, ALockThatTheKernelCannotTestCountsAsHeld) {
    for (const short type : {F_RDLCK, F_WRLCK}) EXPECT_TRUE(supply__file_is_locked(-1, type, RANK_LOCK_BYTE));
}

TEST_F(ClaimTest, FilesAreTheOwnersAlone) {
    umask(0);
    Handle handle = open();
    for (const std::string &path : paths()) {
        struct stat entry;
        ASSERT_EQ(0, lstat(path.c_str(), &entry)) << path;
        EXPECT_EQ(0600u, entry.st_mode & 07777) << path;
        EXPECT_EQ(path == files.mapped_file, S_ISREG(entry.st_mode)) << path;
        EXPECT_EQ(path != files.mapped_file, S_ISFIFO(entry.st_mode)) << path;
    }
    umask(022);
}

TEST_F(ClaimTest, MissingFoldersAreMadeForTheOwnerAlone) {
    const std::string path = folder.file("a/b/c/mapped");
    options.mapped_file = path.c_str();
    Handle handle = open();
    for (const char *made : {"a", "a/b", "a/b/c"}) {
        struct stat entry;
        ASSERT_EQ(0, stat(folder.file(made).c_str(), &entry));
        EXPECT_EQ(0700u, entry.st_mode & 07777) << made;
    }
}

TEST_F(ClaimTest, ALivingRankIsNamedAndLeftAlone) {
    Handle owner = open();
    ino_t before = inode(files.mapped_file);
    Handle second = open(SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_error(second.get()), {files.mapped_file.c_str(), std::to_string(getpid()).c_str()}));
    second.reset();
    EXPECT_EQ(before, inode(files.mapped_file));
    Task task(files);
    supply_datums(task, 0, 1);
    next(owner);
}

TEST_F(ClaimTest, APipeOfALivingPairIsRefusedAndTheMappedFileGoesAgain) {
    Handle owner = open();
    const std::string other = folder.file("other-mapped"), other_request = folder.file("other-request");
    options.mapped_file = other.c_str();
    Handle same_request = open(SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_error(same_request.get()), {files.request_pipe.c_str(), "alive"}));
    options.request_pipe = other_request.c_str();
    Handle same_notification = open(SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_error(same_notification.get()), {files.notification_pipe.c_str(), "alive"}));
    EXPECT_EQ(0u, inode(other));
    EXPECT_EQ(0u, inode(other_request));
    EXPECT_NE(0u, inode(files.notification_pipe));
}

TEST_F(ClaimTest, AStalePairIsReplaced) {
    leave_stale_pair();
    ino_t stale = inode(files.mapped_file);
    ASSERT_NE(0u, stale);
    int keep = ::open(files.mapped_file.c_str(), O_RDONLY); /* else the number may be given out again */
    Handle handle = open();
    EXPECT_NE(stale, inode(files.mapped_file));
    Task task(files);
    supply_datums(task, 0, 1);
    next(handle);
    close(keep);
}

TEST_F(ClaimTest, WhatADeadRankLeftHalfMadeIsReplaced) {
    folder.write("mapped", "");
    ASSERT_EQ(0, mkfifo(files.request_pipe.c_str(), 0600));
    Handle handle = open();
}

TEST_F(ClaimTest, AFileThatNoRankMadeIsNotReplaced) {
    folder.write("mapped", "somebody's precious data");
    Handle handle = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {files.mapped_file.c_str(), "not made by a rank"}));
    handle.reset();
    EXPECT_EQ("somebody's precious data", read_file(files.mapped_file));
}

TEST_F(ClaimTest, LinksAreNotFollowed) {
    const std::string target = folder.write("target", "");
    for (const std::string &path : paths()) {
        ASSERT_EQ(0, symlink(target.c_str(), path.c_str()));
        Handle handle = open(SUPPLY_ERROR_CONFIG);
        EXPECT_TRUE(says(supply_error(handle.get()), {path.c_str(), "symbolic link"}));
        handle.reset();
        EXPECT_NE(0u, inode(path)) << "the link was removed";
        unlink(path.c_str());
    }
    EXPECT_EQ("", read_file(target));
}

TEST_F(ClaimTest, ForeignTypesAreRefused) {
    ASSERT_EQ(0, mkfifo(files.mapped_file.c_str(), 0600));
    EXPECT_TRUE(says(supply_error(open(SUPPLY_ERROR_CONFIG).get()), {files.mapped_file.c_str(), "regular file"}));
    unlink(files.mapped_file.c_str());

    folder.write("request", "");
    EXPECT_TRUE(says(supply_error(open(SUPPLY_ERROR_CONFIG).get()), {files.request_pipe.c_str(), "named pipe"}));
    unlink(files.request_pipe.c_str());

    ASSERT_EQ(0, mkdir(files.notification_pipe.c_str(), 0700));
    EXPECT_TRUE(says(supply_error(open(SUPPLY_ERROR_CONFIG).get()), {files.notification_pipe.c_str(), "named pipe"}));
}

TEST_F(ClaimTest, AnotherUsersFileIsRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to make another user's file";
    folder.write("mapped", "");
    ASSERT_EQ(0, chown(files.mapped_file.c_str(), 12345, 12345));
    Handle handle = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {files.mapped_file.c_str(), "another user", "12345"}));
}

TEST_F(ClaimTest, AFolderThatCanNotBeWrittenIsNamed) {
    options.mapped_file = "/proc/supply/mapped";
    Handle handle = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(handle.get()), {"/proc/supply/mapped", "folder /proc/supply", "choose another"}));

    const std::string below_file = folder.write("file", "") + "/mapped";
    options.mapped_file = below_file.c_str();
    Handle second = open(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_error(second.get()), {below_file.c_str(), "folder"}));
}

TEST_F(ClaimTest, WhoeverOnlyAsksIsNotTakenForAnOwner) {
    leave_stale_pair();
    int asker = ::open(files.mapped_file.c_str(), O_RDONLY | O_CLOEXEC);
    struct flock question = {};
    question.l_type = F_RDLCK;
    question.l_len = 1;
    ASSERT_EQ(0, fcntl(asker, F_OFD_SETLK, &question));
    std::thread drops_it_soon([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        close(asker);
    });
    Handle handle = open();
    drops_it_soon.join();
}

TEST_F(ClaimTest, WhoeverRemovesAStaleFileIsNotTakenForItsRank) {
    leave_stale_pair();
    for (const std::string &path : paths()) {
        named_path name = {const_cast<char *>(path.c_str()), const_cast<char *>("test")};
        claimed_file stale;
        failure failure = {};
        const file_kind kind = path == files.mapped_file ? FILE_MAPPED : FILE_REQUEST_PIPE;
        ASSERT_EQ(SUPPLY_OK, supply__claim_stale(&stale, kind, &name, &failure)) << failure.text;
        int asker = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        EXPECT_FALSE(supply__file_is_locked(asker, F_WRLCK, RANK_LOCK_BYTE)) << path;
        EXPECT_TRUE(supply__file_is_locked(asker, F_WRLCK, REMOVER_LOCK_BYTE)) << path;
        supply__claim_remove(&stale);
        EXPECT_FALSE(supply__file_is_locked(asker, F_WRLCK, REMOVER_LOCK_BYTE)) << path;
        close(asker);
    }
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(ClaimTest, ARankWaitsForWhoeverRemovesTheStaleFile) {
    leave_stale_pair();
    int remover = ::open(files.mapped_file.c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(0, supply__file_lock(remover, F_WRLCK, REMOVER_LOCK_BYTE));
    std::string error;
    EXPECT_EQ(SUPPLY_ERROR_IN_USE, remove_stale(options, error));
    EXPECT_TRUE(says(error, {files.mapped_file.c_str(), "made or removed by another process"}));
    std::thread is_done_soon([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        close(remover);
    });
    Handle handle = open();
    is_done_soon.join();
}

TEST_F(ClaimTest, ARankThatRunsOutOfDescriptorsLeavesNothing) {
    bool opened = false;
    for (rlim_t spare = 0; !opened; spare++) {
        ASSERT_LT(spare, 32u);
        const int status = run_forked([&] {
            const int lowest = dup(STDIN_FILENO);
            const rlimit limit = {static_cast<rlim_t>(lowest) + spare, static_cast<rlim_t>(lowest) + spare};
            close(lowest);
            setrlimit(RLIMIT_NOFILE, &limit);
            supply_t *supply;
            const supply_status_t opening = supply_open(&supply, &options);
            supply_close(supply);
            return opening == SUPPLY_OK ? 0 : 1;
        });
        ASSERT_TRUE(WIFEXITED(status));
        opened = WEXITSTATUS(status) == 0;
        EXPECT_TRUE(folder.is_empty()) << "with " << spare << " descriptors";
    }
}

TEST_F(ClaimTest, OfManyRanksThatRaceForAPairOneGetsIt) {
    for (int round = 0; round < 20; round++) {
        if (round % 2 == 1) leave_stale_pair();
        std::atomic<bool> start{false};
        std::vector<Handle> handles(4);
        std::vector<supply_status_t> statuses(handles.size());
        std::vector<std::thread> ranks;
        for (size_t i = 0; i < handles.size(); i++)
            ranks.emplace_back([&, i] {
                while (!start) std::this_thread::yield();
                supply_t *supply;
                statuses[i] = supply_open(&supply, &options);
                handles[i].reset(supply);
            });
        start = true;
        for (std::thread &rank : ranks) rank.join();
        int owners = 0;
        for (size_t i = 0; i < handles.size(); i++) {
            owners += statuses[i] == SUPPLY_OK;
            if (statuses[i] != SUPPLY_OK) {
                EXPECT_STATUS(SUPPLY_ERROR_IN_USE, statuses[i], handles[i]);
            }
        }
        EXPECT_EQ(1, owners);
        Task task(files); // The one pair that is left works.
        handles.clear();
        EXPECT_TRUE(folder.is_empty());
    }
}

TEST_F(ClaimTest, RemoveStaleTakesTheDeadAndSparesTheLiving) {
    std::string error;
    EXPECT_EQ(SUPPLY_OK, remove_stale(options, error)) << "nothing there: " << error;
    leave_stale_pair();
    EXPECT_EQ(SUPPLY_OK, remove_stale(options, error)) << error;
    EXPECT_TRUE(folder.is_empty());

    Handle handle = open();
    EXPECT_EQ(SUPPLY_ERROR_IN_USE, remove_stale(options, error));
    EXPECT_TRUE(says(error, {files.mapped_file.c_str(), std::to_string(getpid()).c_str()}));
    for (const std::string &path : paths()) EXPECT_NE(0u, inode(path)) << path;

    unlink(files.mapped_file.c_str());
    folder.write("mapped", "");
    EXPECT_EQ(SUPPLY_ERROR_IN_USE, remove_stale(options, error)) << "its pipes live";
    EXPECT_NE(0u, inode(files.mapped_file)) << "a part of a living pair was removed";
}

TEST_F(ClaimTest, ClosingLeavesAFileAloneThatHasTakenThePlaceOfItsOwn) {
    Handle handle = open();
    unlink(files.mapped_file.c_str());
    folder.write("mapped", "another's");
    handle.reset();
    EXPECT_EQ("another's", read_file(files.mapped_file));
}

} // namespace
} // namespace supply_test
