// Waits that poll: what ends them, and in which order.
#include <unistd.h>

#include <chrono>
#include <thread>

#include "rank.h"

extern "C" {
#include "base/clock.h"
#include "base/wait.h"
}

namespace supply_test {
namespace {

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
