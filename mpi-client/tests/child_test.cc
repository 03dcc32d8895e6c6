// A forked child that abandons its copy of a handle does not keep the pair alive.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "forked.h"
#include "rank.h"
#include "supply_result.h"

extern "C" {
#include "base/file_lock.h"
}

namespace supply_test {
namespace {

class ChildTest : public RankTest {
  protected:
    bool rank_lives() const {
        const int fd = ::open(files.mapped_file.c_str(), O_RDWR | O_CLOEXEC);
        const bool locked = supply__file_is_locked(fd, F_WRLCK, RANK_LOCK_BYTE);
        close(fd);
        return locked;
    }
};

TEST_F(ChildTest, ADeadRankIsDeadWhileItsChildLives) {
    int opened[2], ended[2];
    ASSERT_EQ(0, pipe(opened));
    ASSERT_EQ(0, pipe(ended));
    const pid_t rank = fork();
    if (rank == 0) {
        supply_t *supply = nullptr;
        if (supply_open(&supply, &options) != SUPPLY_OK) _exit(1);
        if (fork() == 0) {
            const auto *mapping = static_cast<const volatile uint8_t *>(supply_mapping(supply, nullptr));
            if (supply_abandon_in_child(supply) != SUPPLY_OK || mapping[0] != 'S') _exit(1);
            close(ended[1]);
            char byte = 1;
            if (write(opened[1], &byte, 1) != 1 || read(ended[0], &byte, 1) != 0) _exit(1);
            _exit(0);
        }
        pause();
    }
    char byte;
    close(opened[1]);
    ASSERT_EQ(1, read(opened[0], &byte, 1)) << "the child has abandoned the handle";
    EXPECT_TRUE(rank_lives());
    Task task(files);
    kill(rank, SIGKILL);
    ASSERT_EQ(rank, waitpid(rank, nullptr, 0));
    EXPECT_FALSE(rank_lives());
    task.requests();
    EXPECT_TRUE(task.rank_has_left());
    for (int fd : {opened[0], ended[0], ended[1]}) close(fd); // the child ends
}

// A fork whose exec fails, and which exits by exit().
TEST_F(ChildTest, AChildThatExitsLeavesThePairToItsParent) {
    static supply_t *opened;
    Handle handle = open();
    opened = handle.get();
    Task task(files);
    supply_datums(task, 0, 4);
    const pid_t child = fork();
    if (child == 0) {
        atexit([] {
            if (supply_close(opened) != SUPPLY_OK) _exit(1);
        });
        execlp("no-such-program", "no-such-program", nullptr);
        exit(127);
    }
    int status;
    ASSERT_EQ(child, waitpid(child, &status, 0));
    EXPECT_EQ(127, WEXITSTATUS(status));
    EXPECT_TRUE(rank_lives());
    for (const request &request : task.requests()) EXPECT_NE(REQUEST_STOP, request.kind);
    supply_block_t block = next(handle);
    release(handle, block);
}

// Neither _Fork() nor clone() runs the handlers of pthread_atfork().
TEST_F(ChildTest, EveryKindOfChildLeavesThePairToItsParent) {
    Handle handle = open();
    supply_t *supply = handle.get();
    const supply_field_t field = {"id", false, "l", nullptr, 0, 0};
    supply_result_t *result = nullptr;
    ASSERT_EQ(SUPPLY_OK, supply_result_open(&result, supply, "scores", &field, 1));
    const std::function<pid_t()> kinds[] = {[] { return fork(); },
                                            [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); },
#if __GLIBC_PREREQ(2, 34)
                                            [] { return _Fork(); }
#endif
    };
    for (const auto &make : kinds) {
        const pid_t child = make();
        if (child == 0) {
            const bool left = supply_result_seal(result) == SUPPLY_ERROR_ARGUMENT &&
                              supply_result_abort(result, "a child") == SUPPLY_OK && supply_close(supply) == SUPPLY_OK;
            _exit(left ? 0 : 1);
        }
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status);
        EXPECT_TRUE(rank_lives());
    }
    Task task(files);
    for (const request &request : task.requests()) EXPECT_NE(REQUEST_STOP, request.kind);
    EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)) << supply_result_error(result);
}

TEST_F(ChildTest, AbortInAChildIsAbandon) {
    Handle handle = open();
    supply_t *supply = handle.get();
    EXPECT_EQ(0, run_forked([&] { return supply_abort(supply, "a child") == SUPPLY_OK ? 0 : 1; }));
    EXPECT_EQ(0, run_forked([&] { return supply_close_within(supply, 1, nullptr) == SUPPLY_OK ? 0 : 1; }));
    EXPECT_TRUE(rank_lives());
    Task task(files);
    EXPECT_STREQ("", task.header().rank_failure);
    for (const request &request : task.requests()) EXPECT_NE(REQUEST_STOP, request.kind);
}

TEST_F(ChildTest, AChildReceivesAndReleasesNothing) {
    Handle handle = open();
    supply_t *supply = handle.get();
    Task task(files);
    supply_datums(task, 0, 4);
    supply_block_t block, second;
    ASSERT_STATUS(SUPPLY_OK, supply_next(supply, &block), handle);
    supply_datums(task, 4, 4);
    EXPECT_EQ(0, run_forked([&] {
                  supply_datum_t datum;
                  supply_column_t column;
                  const bool refused = supply_next(supply, &second) == SUPPLY_ERROR_ARGUMENT &&
                                       says(supply_error(supply), {"forked", "process"}) &&
                                       supply_try_next(supply, &second) == SUPPLY_ERROR_ARGUMENT &&
                                       supply_next_datum(supply, &datum) == SUPPLY_ERROR_ARGUMENT &&
                                       supply_release(supply, &block) == SUPPLY_ERROR_ARGUMENT;
                  if (!refused) return 1;
                  return supply_column(supply, &block, 0, &column) == SUPPLY_OK ? 0 : 2;
              }));
    EXPECT_EQ(0U, task.released());
    EXPECT_STATUS(SUPPLY_OK, supply_next(supply, &second), handle) << "the child has read no notification";
    EXPECT_EQ(1U, second.sequence);
}

// Also if its parent's thread held the lock of Arrow releases when it forked.
TEST_F(ChildTest, AChildInTheMiddleOfABlockGetsNoMoreOfIt) {
    Handle handle = open();
    supply_t *supply = handle.get();
    Task task(files);
    supply_datums(task, 0, 2);
    supply_datum_t datum;
    ASSERT_STATUS(SUPPLY_OK, supply_next_datum(supply, &datum), handle);
    EXPECT_EQ(0, run_forked([&] { return supply_next_datum(supply, &datum) == SUPPLY_ERROR_ARGUMENT ? 0 : 1; }));
    EXPECT_EQ(0U, task.released());
}

TEST_F(ChildTest, AChildLeavesTheResultToItsParent) {
    Handle handle = open();
    const supply_field_t field = {"id", false, "l", nullptr, 0, 0};
    const int64_t ids[] = {1, 2};
    supply_column_t column = {};
    column.element_count = 2;
    column.data = ids;
    column.data_bytes = sizeof ids;
    supply_result_t *result = nullptr;
    ASSERT_EQ(SUPPLY_OK, supply_result_open(&result, handle.get(), "scores", &field, 1));
    ASSERT_EQ(SUPPLY_OK, supply_result_write(result, &column, 1));
    EXPECT_EQ(0, run_forked([&] { return supply_result_abort(result, "a child") == SUPPLY_OK ? 0 : 1; }));
    EXPECT_EQ(0, run_forked([&] { return supply_result_seal(result) == SUPPLY_ERROR_ARGUMENT ? 0 : 1; }));
    EXPECT_EQ(0, run_forked([&] {
                  supply_result_t *of_child = nullptr;
                  if (supply_result_write(result, &column, 1) != SUPPLY_ERROR_ARGUMENT) return 1;
                  if (supply_result_open(&of_child, handle.get(), "of_child", &field, 1) != SUPPLY_ERROR_ARGUMENT)
                      return 2;
                  return supply_result_abort(of_child, nullptr) == SUPPLY_OK ? 0 : 3;
              }));
    EXPECT_EQ(SUPPLY_OK, supply_result_seal(result)) << supply_result_error(result);
    EXPECT_TRUE(std::filesystem::exists(files.mapped_file + ".scores.result"));
}

TEST_F(ChildTest, AStreamOfAnAbandonedHandleFails) {
    Handle handle = open();
    supply_t *supply = handle.get();
    ArrowArrayStream stream;
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(supply, &stream), handle);
    EXPECT_EQ(0, run_forked([&] {
                  if (supply_abandon_in_child(supply) != SUPPLY_OK) return 1;
                  ArrowArray array;
                  const int error = stream.get_next(&stream, &array);
                  stream.release(&stream);
                  return error == EINVAL ? 0 : 2;
              }));
    stream.release(&stream);
}

TEST_F(ChildTest, TheOpenerKeepsItsHandle) {
    Handle handle = open();
    EXPECT_EQ(SUPPLY_OK, supply_abandon_in_child(nullptr));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_abandon_in_child(handle.get()));
    supply_t *supply = handle.get();
    EXPECT_EQ(0, run_forked([&] { return supply_abandon_in_child(supply) == SUPPLY_OK ? 0 : 1; }));
    EXPECT_TRUE(rank_lives());
    Task task(files);
    supply_datums(task, 0, 1);
    next(handle);
}

} // namespace
} // namespace supply_test
