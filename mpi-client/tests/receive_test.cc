// R1 to R4 without a failure: blocks, ends, statistics.
#include <fcntl.h>

#include "rank.h"

namespace supply_test {
namespace {

class ReceiveTest : public RankTest {};

TEST_F(ReceiveTest, ABlockComesWithAllThatItsNotificationSays) {
    auto [handle, task] = attached();
    const std::vector<Element> elements = {numbered_element(1), numbered_element(2)};
    const BlockImage image = datum_block(elements);
    task.write_schema(schema_of(datum_columns(elements)));
    task.supply(image, 4, 7, 1000000000000);
    supply_block_t block = next(handle);
    EXPECT_EQ(0u, block.sequence);
    EXPECT_EQ(4u, block.epoch);
    EXPECT_EQ(7u, block.partition);
    EXPECT_EQ(1000000000000u, block.first_element);
    EXPECT_EQ(2u, block.element_count);
    EXPECT_EQ(7u, block.column_count);
    EXPECT_EQ(image.bytes.size(), block.bytes);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(block.address) % 64);
}

TEST_F(ReceiveTest, EndsSayTheirEpochAndTheEndOfDataStays) {
    auto [handle, task] = attached();
    task.end_of_epoch(0); // no element in this epoch: no schema is needed either
    task.end_of_epoch(1);
    task.end_of_data(1);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(0u, block.epoch);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(1u, block.epoch);
    for (int i = 0; i < 3; i++) ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_try_next(handle.get(), &block), handle);
    EXPECT_EQ(3u, task.released()) << "ends are released by the library";
    task.see_end();
}

TEST_F(ReceiveTest, ARingOfTwoBlocksCarriesAnyNumber) {
    options.ring_bytes = 2 * 8192;
    auto [handle, task] = attached();
    for (uint64_t i = 0; i < 100; i++) {
        supply_datums(task, i, 1 + i % 5);
        supply_block_t block = next(handle);
        EXPECT_EQ(i, block.sequence);
        EXPECT_EQ(i, block.first_element);
        EXPECT_EQ(1 + i % 5, block.element_count);
        supply_datum_t datum = datum_of(handle, block, 0);
        EXPECT_EQ(static_cast<int32_t>(i), datum.height);
        release(handle, block);
    }
    EXPECT_EQ(100u, task.released());
}

TEST_F(ReceiveTest, WhatRanksMustExchangeIsNotReadWithoutAnExchange) {
    options.exchange = true;
    auto [handle, task] = attached();
    EXPECT_NE(0u, task.header().accepts & ACCEPTS_EXCHANGE);
    task.header().exchange = EXCHANGE_ALL;
    supply_datums(task, 0, 1);
    supply_block_t block;
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(SUPPLY_ERROR_ARGUMENT, supply_next(handle.get(), &block));
        EXPECT_TRUE(says(supply_error(handle.get()), {"--shuffle all", "supply_exchange_open"}));
    }
}

TEST_F(ReceiveTest, OnlyAProgramThatExchangesSaysSo) {
    auto [handle, task] = attached();
    EXPECT_EQ(0u, task.header().accepts);
}

TEST_F(ReceiveTest, NotificationsOfAnotherGenerationAreDropped) {
    auto [handle, task] = attached();
    notification stranger = task.next(NOTIFICATION_BLOCK, 1, 4096);
    stranger.generation++;
    task.notify(stranger);
    stranger.kind = NOTIFICATION_FAILURE;
    task.notify(stranger);
    stranger.kind = 77;
    task.notify(stranger);
    supply_datums(task, 0, 1);
    next(handle);
}

TEST_F(ReceiveTest, NoCallDropsWithoutEnd) {
    constexpr int pipe_bytes = 4096 * sizeof(notification);
    auto [handle, task] = attached();
    const int pipe = ::open(files.notification_pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_EQ(pipe_bytes, fcntl(pipe, F_SETPIPE_SZ, pipe_bytes));
    close(pipe);
    notification stranger = task.next(NOTIFICATION_BLOCK, 1, 4096);
    stranger.generation++;
    for (int i = 0; i < 4000; i++) task.notify(stranger);
    supply_datums(task, 0, 1);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle)
        << "a peer may write as fast as it is read";
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
}

TEST_F(ReceiveTest, WhatHasBeenSeenIsDropped) {
    auto [handle, task] = attached();
    const std::vector<Element> elements = {numbered_element(0)};
    task.write_schema(schema_of(datum_columns(elements)));
    const BlockImage image = datum_block(elements);
    const notification first = task.next(image);
    task.supply(image, first);
    task.notify(first);
    task.supply(image);
    task.notify(first);
    supply_block_t block = next(handle);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(1u, block.sequence);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle);
}

TEST_F(ReceiveTest, StatisticsCountBlocksAndOnlyTheTimeOfWaiting) {
    auto [handle, task] = attached();
    supply_statistics_t statistics;
    supply_datums(task, 0, 3);
    supply_datums(task, 3, 2);
    task.end_of_epoch(0);
    supply_block_t block;
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        bytes += block.bytes;
        supply_release(handle.get(), &block);
    }
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    supply_statistics(handle.get(), &statistics);
    EXPECT_EQ(2u, statistics.blocks);
    EXPECT_EQ(5u, statistics.elements);
    EXPECT_EQ(bytes, statistics.bytes);
    EXPECT_EQ(0, statistics.seconds_waited) << "everything was there: nothing was waited for";
}

TEST_F(ReceiveTest, TimeSpentWaitingIsCounted) {
    options.timeout = 0.05;
    Handle handle = open();
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_next(handle.get(), &block), handle);
    supply_statistics_t statistics;
    supply_statistics(handle.get(), &statistics);
    EXPECT_GE(statistics.seconds_waited, 0.05);
}

TEST_F(ReceiveTest, AFailureOfSparkIsToldInItsOwnWordsAndStays) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 1);
    task.send_failure("no such path:\n\t/data\x01/train");
    supply_block_t block = next(handle);
    for (int i = 0; i < 2; i++) {
        ASSERT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
        EXPECT_STREQ("no such path:  /data /train", supply_error(handle.get()));
        supply_block_t nothing = {};
        nothing.sequence = 99;
        EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &nothing), handle);
    }
    handle.reset();
    EXPECT_STREQ("", task.header().rank_failure) << "Spark knows why";
}

TEST_F(ReceiveTest, AFailureTextWithoutAnEndIsBounded) {
    auto [handle, task] = attached();
    task.send_failure(std::string(5000, 'x'));
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(std::string(1023, 'x'), supply_error(handle.get()));
}

TEST_F(ReceiveTest, AFailureWithoutATextNamesThePair) {
    auto [handle, task] = attached();
    task.send_failure("");
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"pair 0", files.mapped_file.c_str(), "Spark's log"}));
}

TEST_F(ReceiveTest, NullIsRefused) {
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_next(handle.get(), nullptr), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_try_next(handle.get(), nullptr), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), nullptr), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_next_datum(handle.get(), nullptr), handle);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_column_index(handle.get(), nullptr));
}

} // namespace
} // namespace supply_test
