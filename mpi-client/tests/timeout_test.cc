// Every wait ends, and says which of its causes it was.
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "rank.h"

extern "C" {
#include "base/clock.h"
#include "base/wait.h"
}

namespace supply_test {
namespace {

class TimeoutTest : public RankTest {
  protected:
    TimeoutTest() { options.timeout = 0.1; }
};

TEST_F(TimeoutTest, NoTaskEverCame) {
    Handle handle = open();
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    EXPECT_EQ("no Spark task attached to pair 0 (" + files.mapped_file +
                  ") within 0.1 s: is the Supplier running on this node with the same mapped-files.conf? "
                  "(--timeout / SUPPLY_TIMEOUT)",
              supply_error(handle.get()));
}

TEST_F(TimeoutTest, TheTaskIsAttachedAndSilent) {
    Handle handle = open();
    Task task(files, 2);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(
        says(supply_error(handle.get()), {"pair 0", "attempt 2", "is attached and has supplied nothing for 0.1 s",
                                          std::to_string(getpid()).c_str(), "--timeout / SUPPLY_TIMEOUT"}));
}

TEST_F(TimeoutTest, TheTaskHasDiedAndNoneCame) {
    Handle handle = open();
    {
        Task task(files, 1);
    }
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(
        says(supply_error(handle.get()), {"pair 0", "attempt 1", "has left and no other attempt came within 0.1 s",
                                          std::to_string(getpid()).c_str()}));
}

TEST_F(TimeoutTest, TheLockSaysThatTheTaskHasDied) {
    Handle handle = open();
    std::fstream(files.mapped_file, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(offsetof(mapped_file_header, task_pid))
        .write("\x39\x30\0\0", 4);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"process 12345", "has left and no other attempt came"}));
}

TEST_F(TimeoutTest, ATaskThatComesAndLeavesRestartsTheLimit) {
    Handle handle = open();
    supply_block_t block;
    const auto outlast = [&] {
        EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
        usleep(150000);
    };
    outlast();
    {
        Task heartbeat(files);
    }
    outlast();
    {
        Task task(files);
        outlast();
        EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_try_next(handle.get(), &block), handle) << "it stays, and is silent";
        EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
        usleep(150000);
    }
    outlast();
    EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_try_next(handle.get(), &block), handle);
}

TEST_F(TimeoutTest, TheNextAttemptIsAttachedAndSilent) {
    Handle handle = open();
    {
        Task task(files, 0);
    }
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    Task next(files, 1);
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"attempt 1", "is attached and has supplied nothing"}));
}

TEST_F(TimeoutTest, TheRunCanGoOnAfterwards) {
    Handle handle = open();
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    Task task(files);
    supply_datums(task, 0, 1);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    handle.reset();
    EXPECT_TRUE(says(task.header().rank_failure, {"closed its pair before the end of data"}))
        << "a time limit that was got over is no reason";
}

TEST_F(TimeoutTest, SparkIsToldThatTheRankHasGivenUp) {
    auto [handle, task] = attached();
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    handle.reset();
    EXPECT_TRUE(says(task.header().rank_failure, {"rank 3 failed", "supplied nothing for 0.1 s"}));
}

TEST_F(TimeoutTest, TryingHasTheSameLimitAndThenANewOne) {
    Handle handle = open();
    supply_block_t block;
    for (int round = 0; round < 2; round++) {
        int tried = 0;
        supply_status_t status = SUPPLY_AGAIN;
        wait_until("the limit", [&] {
            status = supply_try_next(handle.get(), &block);
            tried++;
            return status != SUPPLY_AGAIN;
        });
        ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, status, handle);
        EXPECT_GT(tried, 1);
    }
}

TEST_F(TimeoutTest, TheIteratorHasTheLimitToo) {
    Handle handle = open();
    supply_datum_t datum;
    EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next_datum(handle.get(), &datum), handle);
}

// Waits that poll: what ends them, and in which order.

constexpr double LONG_TIME = 3600;

interruption interrupted_by(bool &wanted) {
    return {[](void *context) { return *static_cast<bool *>(context); }, &wanted};
}

struct wait begin_wait(double seconds, interruption by = {}) { return supply__wait_begin({seconds, by}); }

TEST(WaitTest, PollsUntilTheTimeIsOver) {
    struct wait wait = begin_wait(0.005);
    supply_status_t status;
    int polls = 0;
    while ((status = supply__wait_more(&wait)) == SUPPLY_OK) polls++;
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, status);
    EXPECT_GT(polls, 0);
    EXPECT_GE(supply__clock_now(), wait.end);
}

TEST(WaitTest, PollsOnceMoreAfterASuspension) {
    struct wait wait = begin_wait(0.005);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(SUPPLY_OK, supply__wait_more(&wait)) << "the last poll was before the end";
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, supply__wait_more(&wait));
}

TEST(WaitTest, NoTimeLimitIsNoTimeLimit) {
    struct wait wait = begin_wait(INFINITY);
    for (int i = 0; i < 100; i++) ASSERT_EQ(SUPPLY_OK, supply__wait_more(&wait));
}

TEST(WaitTest, TheProgramInterruptsIt) {
    bool wanted = false;
    struct wait wait = begin_wait(LONG_TIME, interrupted_by(wanted));
    EXPECT_EQ(SUPPLY_OK, supply__wait_more(&wait));
    wanted = true;
    EXPECT_EQ(SUPPLY_INTERRUPTED, supply__wait_more(&wait));
    wanted = false;
    EXPECT_EQ(SUPPLY_OK, supply__wait_more(&wait)) << "the wait continues";
}

TEST(WaitTest, APartEndsBeforeTheWhole) {
    struct wait wait = begin_wait(LONG_TIME);
    wait.part_end = supply__clock_now();
    supply_status_t status;
    while ((status = supply__wait_more(&wait)) == SUPPLY_OK) {
    }
    EXPECT_EQ(SUPPLY_AGAIN, status);
    wait.end = wait.part_end;
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, supply__wait_more(&wait)) << "both have ended";
}

TEST(WaitTest, ADescriptorEndsAPause) {
    int ends[2];
    ASSERT_EQ(0, pipe(ends));
    struct wait wait = supply__wait_begin_slow({LONG_TIME, {}}, INFINITY);
    wait.fd = ends[0];
    ASSERT_EQ(1, write(ends[1], "x", 1));
    EXPECT_EQ(SUPPLY_OK, supply__wait_more(&wait));
    close(ends[0]);
    close(ends[1]);
}

TEST(WaitTest, APauseEndsWithTheTimeLimit) {
    struct wait wait = supply__wait_begin_slow({0.005, {}}, INFINITY);
    EXPECT_EQ(SUPPLY_OK, supply__wait_more(&wait));
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, supply__wait_more(&wait));
}

TEST(WaitTest, AnEndKeepsErrno) {
    struct wait wait = begin_wait(0);
    errno = EAGAIN;
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, supply__wait_more(&wait));
    EXPECT_EQ(EAGAIN, errno);
}

} // namespace
} // namespace supply_test
