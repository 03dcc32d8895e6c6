// A task that dies is a pause: its next attempt continues, and nothing is lost or seen twice.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

class AttemptTest : public RankTest {
  protected:
    /** The next block is that of this number, first element and label. */
    void expect_block(const Handle &handle, uint64_t number) {
        supply_block_t block = next(handle);
        EXPECT_EQ(number, block.sequence);
        EXPECT_EQ(number, block.first_element);
        release(handle, block);
    }
};

TEST_F(AttemptTest, WhatWasPublishedIsNotifiedAgainAndSeenOnce) {
    Handle handle = open();
    auto first = std::make_unique<Task>(files, 0);
    supply_datums(*first, 0, 1);
    supply_datums(*first, 1, 1);
    supply_datums(*first, 2, 1);
    supply_block_t held = next(handle); // held: `released` stays at 0
    first.reset();
    Task second(files, 1); // notifies 0, 1 and 2 again, while 1 and 2 are still unread
    supply_datums(second, 3, 1);
    release(handle, held);
    second.end_of_epoch(0);
    for (uint64_t number = 1; number <= 3; number++) expect_block(handle, number);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
    EXPECT_EQ(5u, second.released());
}

TEST_F(AttemptTest, ADeathBetweenPublishingAndNotifyingLosesNothing) {
    Handle handle = open();
    {
        Task first(files, 0);
        supply_datums(first, 0, 1);
        const BlockImage image = datum_block({numbered_element(1)});
        notification unsent = first.next(image);
        unsent.first_element = 1;
        first.write(image.bytes, unsent);
        first.publish();
    }
    Task second(files, 1);
    expect_block(handle, 0);
    expect_block(handle, 1);
}

TEST_F(AttemptTest, ADeathBeforePublishingIsWrittenAnew) {
    Handle handle = open();
    {
        Task first(files, 0);
        supply_datums(first, 0, 1);
        const BlockImage image = datum_block({numbered_element(77)});
        first.write(image.bytes, first.next(image));
    }
    Task second(files, 1);
    supply_datums(second, 1, 1);
    expect_block(handle, 0);
    expect_block(handle, 1);
}

TEST_F(AttemptTest, ARankThatWaitsOutlivesManyAttempts) {
    Handle handle = open();
    std::thread tasks([&] {
        for (uint32_t attempt = 0; attempt < 20; attempt++) {
            Task task(files, attempt);
            supply_datums(task, attempt, 1);
        }
        Task last(files, 20);
        last.end_of_data(0);
        last.see_end();
    });
    for (uint64_t number = 0; number < 20; number++) expect_block(handle, number);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    tasks.join();
}

TEST_F(AttemptTest, AProcessThatIsKilledIsAPauseToo) {
    Handle handle = open();
    int ready[2];
    ASSERT_EQ(0, pipe(ready));
    pid_t child = fork();
    if (child == 0) {
        /* The child must not keep the rank's own ends open. */
        supply_abandon_in_child(handle.release());
        Task task(files, 0);
        supply_datums(task, 0, 1);
        if (write(ready[1], "", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte;
    ASSERT_EQ(1, read(ready[0], &byte, 1));
    kill(child, SIGKILL);
    ASSERT_EQ(child, waitpid(child, nullptr, 0));
    close(ready[0]);
    close(ready[1]);
    expect_block(handle, 0);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
    Task second(files, 1);
    supply_datums(second, 1, 1);
    expect_block(handle, 1);
}

} // namespace
} // namespace supply_test
