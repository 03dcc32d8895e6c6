// supply_fd() in a program's own poll loop.
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <memory>

#include "rank.h"

extern "C" {
#include "api/filler.h"
}

namespace supply_test {
namespace {

class PollTest : public RankTest {
  protected:
    static int ready(const Handle &handle, int milliseconds) {
        struct pollfd poller = {supply_fd(handle.get()), POLLIN, 0};
        return poll(&poller, 1, milliseconds);
    }
};

TEST_F(PollTest, IsReadableExactlyWhenSomethingIsThere) {
    Handle handle = open();
    supply_block_t block;
    EXPECT_EQ(0, ready(handle, 0)) << "before a task has come";
    Task task(files);
    EXPECT_EQ(0, ready(handle, 0));
    supply_datums(task, 0, 1);
    EXPECT_EQ(1, ready(handle, 60000));
    ASSERT_STATUS(SUPPLY_OK, supply_try_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
    EXPECT_EQ(0, ready(handle, 0));
}

TEST_F(PollTest, IsQuietAfterATaskHasDied) {
    Handle handle = open();
    const int fd = supply_fd(handle.get());
    supply_block_t block;
    for (uint32_t attempt = 0; attempt < 3; attempt++) {
        {
            Task task(files, attempt);
            supply_datums(task, attempt, 1);
        }
        EXPECT_EQ(1, ready(handle, 60000));
        ASSERT_STATUS(SUPPLY_OK, supply_try_next(handle.get(), &block), handle) << "what it wrote before it died";
        ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
        EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
        EXPECT_EQ(0, ready(handle, 0)) << "a death must not make poll() spin";
        EXPECT_EQ(fd, supply_fd(handle.get()));
    }
}

// As libuv and libevent, which register a descriptor once.
TEST_F(PollTest, AnEpollSeesEveryTask) {
    for (const uint32_t events : {0U + EPOLLIN, EPOLLIN | EPOLLET}) {
        Handle handle = open();
        const int poller = epoll_create1(EPOLL_CLOEXEC);
        struct epoll_event event = {};
        event.events = events;
        ASSERT_EQ(0, epoll_ctl(poller, EPOLL_CTL_ADD, supply_fd(handle.get()), &event));
        EXPECT_EQ(0, epoll_wait(poller, &event, 1, 0));
        supply_block_t block;
        for (uint32_t attempt = 0; attempt < 3; attempt++) {
            {
                Task heartbeat(files, attempt);
            }
            EXPECT_EQ(0, epoll_wait(poller, &event, 1, 0)) << "a task has left";
            EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
            Task task(files, attempt);
            for (int i = 0; i < 2; i++) {
                supply_datums(task, attempt, 1);
                ASSERT_EQ(1, epoll_wait(poller, &event, 1, 60000));
                ASSERT_STATUS(SUPPLY_OK, supply_try_next(handle.get(), &block), handle);
                ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
                EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
                EXPECT_EQ(0, epoll_wait(poller, &event, 1, 0));
            }
        }
        close(poller);
    }
}

TEST_F(PollTest, TimeInWhichTheProgramComputesIsNoWait) {
    options.timeout = 0.2;
    Handle handle = open();
    supply_block_t block;
    for (int call = 0; call < 3; call++) {
        ASSERT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
        supply__pause_wait(handle.get());
        usleep(300000);
    }
    supply_statistics_t statistics;
    supply_statistics(handle.get(), &statistics);
    EXPECT_LT(statistics.seconds_waited, 0.3);
    ASSERT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
    usleep(300000);
    EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_try_next(handle.get(), &block), handle);
    supply__pause_wait(nullptr);
}

TEST_F(PollTest, TheTimeWithoutABlockIsCounted) {
    auto [handle, task] = attached();
    supply_block_t block;
    supply_statistics_t statistics;
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
    EXPECT_EQ(0, ready(handle, 20)) << "20 ms in the program's own poll()";
    supply_datums(task, 0, 1);
    EXPECT_STATUS(SUPPLY_OK, supply_try_next(handle.get(), &block), handle);
    supply_statistics(handle.get(), &statistics);
    EXPECT_GE(statistics.seconds_waited, 0.02);
    EXPECT_EQ(0, supply_error_errno(handle.get()));
}

} // namespace
} // namespace supply_test
