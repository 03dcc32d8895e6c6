// A forked child that abandons its copy of a handle does not keep the pair alive.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forked.h"
#include "rank.h"
#include "supply_arrow.h"

extern "C" {
#include "file_lock.h"
}

namespace supply_test {
namespace {

class ChildTest : public RankTest {
  protected:
    bool rank_lives() const {
        const int fd = ::open(files.mapped_file.c_str(), O_RDWR | O_CLOEXEC);
        const bool locked = supply_file_is_locked(fd, F_WRLCK, RANK_LOCK_BYTE);
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
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
}

} // namespace
} // namespace supply_test
