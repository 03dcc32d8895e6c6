// Nobody may write to a file that is read in place: a lease delays writers, and checks find what it does not prevent.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "consume.h"
#include "in_place_test.h"
#include "supply_arrow.h"
#include "user_process.h"

namespace supply_test {
namespace {

class LeaseTest : public InPlaceTest {
  protected:
    void SetUp() override {
        const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        const bool has_leases = fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
        close(fd);
        if (!has_leases) GTEST_SKIP() << "this file system has no leases";
    }

    /** Supplies blocks until the rank fails; returns its status. The last block before that stays held. */
    supply_status_t supply_until_failure(const Handle &handle, Task &task, supply_block_t &held) {
        supply_status_t status = SUPPLY_OK;
        wait_until("the rank's failure", [&] {
            supply_in_place(task);
            supply_block_t block;
            status = supply_next(handle.get(), &block);
            if (status == SUPPLY_OK) {
                supply_release(handle.get(), &held);
                held = block;
            }
            return status < 0;
        });
        return status;
    }
};

TEST_F(LeaseTest, AFileThatIsOpenForWritingIsRefused) {
    const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    auto [handle, task] = attached();
    supply_in_place(task);
    expect_failure(handle, EBUSY, {"open for writing"});
    close(writer);
}

TEST_F(LeaseTest, AReaderIsNoHindrance) {
    const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    auto [handle, task] = attached();
    supply_in_place(task);
    next(handle);
    const int later = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    EXPECT_LE(0, later);
    supply_in_place(task);
    next(handle);
    close(reader);
    close(later);
}

TEST_F(LeaseTest, AWriterWaitsUntilTheRankHasFailed) {
    struct {
        const char *what;
        int (*write)(const char *path);
    } const writers[] = {{"open", [](const char *path) { return ::open(path, O_RDWR | O_CLOEXEC); }},
                         {"truncate", [](const char *path) { return truncate(path, 10); }}};
    for (const auto &writer : writers) {
        SCOPED_TRACE(writer.what);
        auto [handle, task] = attached();
        supply_in_place(task);
        supply_block_t held = next(handle);
        std::atomic<bool> is_writing{false};
        int written = -1;
        std::thread thread([&] {
            written = writer.write(path.c_str());
            is_writing = true;
        });
        EXPECT_STATUS(SUPPLY_ERROR_SYSTEM, supply_until_failure(handle, task, held), handle);
        EXPECT_EQ(EBUSY, supply_error_errno(handle.get()));
        EXPECT_TRUE(says(supply_error(handle.get()), {path.c_str(), "open for writing", "--in-place"}));
        EXPECT_FALSE(is_writing);
        supply_datum_t datum = datum_of(handle, held, 0);
        EXPECT_EQ(value(0), std::string(static_cast<const char *>(datum.data), datum.data_bytes));
        handle.reset();
        thread.join();
        EXPECT_LE(0, written);
        close(written > 0 ? written : -1);
    }
}

TEST_F(LeaseTest, AWriterThatDoesNotWaitIsFoundToo) {
    auto [handle, task] = attached();
    supply_in_place(task);
    next(handle);
    EXPECT_EQ(-1, ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_EQ(EWOULDBLOCK, errno);
    task.end_of_epoch(0);
    expect_failure(handle, EBUSY, {"open for writing"});
}

/** The rank is this process, and closes its pair; or it is another one, and dies. Its child lives on. */
class LeaseAndChildTest : public LeaseTest, public ::testing::WithParamInterface<bool> {
  protected:
    bool writer_gets_in() const {
        const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        if (writer >= 0) close(writer);
        return writer >= 0;
    }

    /** A child that keeps its copy of the handle, or abandons it, and does not end. */
    static pid_t start_child(supply_t *supply, bool abandons) {
        int ready[2];
        char byte = 1;
        if (pipe(ready) != 0) return -1;
        const pid_t child = fork();
        if (child == 0) {
            if (abandons && supply_abandon_in_child(supply) != SUPPLY_OK) _exit(1);
            if (write(ready[1], &byte, 1) != 1) _exit(1);
            for (;;) pause();
        }
        EXPECT_EQ(1, read(ready[0], &byte, 1));
        close(ready[0]);
        close(ready[1]);
        return child;
    }

    static void end(pid_t child) {
        kill(child, SIGKILL);
        waitpid(child, nullptr, 0);
    }
};

INSTANTIATE_TEST_SUITE_P(, LeaseAndChildTest, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "Abandons" : "KeepsItsCopy"; });

class LeaseAndDeathTest : public LeaseAndChildTest {};

TEST_P(LeaseAndChildTest, AChildHoldsUpNoWriterOfAClosedRank) {
    auto [handle, task] = attached();
    supply_in_place(task);
    next(handle);
    const pid_t child = start_child(handle.get(), GetParam());
    EXPECT_FALSE(writer_gets_in()) << "the rank has its lease";
    handle.reset();
    EXPECT_TRUE(writer_gets_in());
    end(child);
}

TEST_F(LeaseAndDeathTest, AnAbandonedChildHoldsUpNoWriterOfADeadRank) {
    int said[2];
    ASSERT_EQ(0, pipe(said));
    const pid_t rank = fork();
    if (rank == 0) {
        supply_t *supply;
        supply_block_t block;
        if (supply_open(&supply, &options) != SUPPLY_OK || supply_next(supply, &block) != SUPPLY_OK) _exit(1);
        const pid_t child = start_child(supply, true);
        if (write(said[1], &child, sizeof child) != sizeof child) _exit(1);
        for (;;) pause();
    }
    Task task(files);
    supply_in_place(task);
    pid_t child = -1;
    ASSERT_EQ(static_cast<ssize_t>(sizeof child), read(said[0], &child, sizeof child));
    EXPECT_FALSE(writer_gets_in()) << "the rank has its lease";
    end(rank);
    EXPECT_TRUE(writer_gets_in());
    kill(child, SIGKILL);
    close(said[0]);
    close(said[1]);
}

TEST_F(LeaseTest, AnArrayThatOutlivesTheHandleHoldsUpNoWriter) {
    auto [handle, task] = attached();
    supply_in_place(task);
    const supply_block_t block = next(handle);
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &array), handle);
    handle.reset();
    const int writer = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_LE(0, writer);
    close(writer);
    array.release(&array);
}

/** A rank of a user who does not own the file: the kernel gives no lease. */
class NoLeaseTest : public InPlaceTest {
  protected:
    static constexpr uid_t user_id = 61001;

    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "needs root, to start processes of other users";
        ASSERT_EQ(0, chmod(path.c_str(), 0644));
        ASSERT_EQ(0, chown(folder.path().c_str(), user_id, user_id));
    }

    std::string consume() const { return consume_until(SUPPLY_END_OF_EPOCH, options); }

    const User user{user_id, {}};
};

TEST_F(NoLeaseTest, AFileOfAnotherUserIsRead) {
    UserProcess rank(user, [&] { return consume(); });
    Task task(files);
    supply_in_place(task, 3);
    task.end_of_epoch(0);
    EXPECT_EQ("3 elements", rank.wait());
}

TEST_F(NoLeaseTest, AWriterIsFoundByItsChange) {
    UserProcess rank(user, [&] { return consume(); });
    Task task(files);
    supply_in_place(task, 3);
    supply_in_place(task, 3);
    wait_until("the first block's release", [&] { return task.released() > 0; });
    std::ofstream(path, std::ios::in | std::ios::binary) << "changed";
    const struct timespec times[] = {{0, UTIME_OMIT}, {1, 0}};
    ASSERT_EQ(0, utimensat(AT_FDCWD, path.c_str(), times, 0));
    task.end_of_epoch(0);
    EXPECT_TRUE(says(rank.wait(), {path.c_str(), "has changed since", "--in-place"}));
}

TEST_F(NoLeaseTest, AFileThatTheRankMayNotReadIsNamed) {
    ASSERT_EQ(0, chmod(path.c_str(), 0600));
    UserProcess rank(user, [&] { return consume(); });
    Task task(files);
    supply_in_place(task);
    EXPECT_TRUE(says(rank.wait(), {path.c_str(), "cannot be opened", "Permission denied", "rank's user"}));
}

} // namespace
} // namespace supply_test
