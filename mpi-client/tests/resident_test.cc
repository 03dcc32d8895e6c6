// Blocks that stay and are notified again (PROTOCOL.md, "Resident epochs"), as a rank sees them.
#include "saved_position.h"

namespace supply_test {
namespace {

class ResidentTest : public RankTest {
  protected:
    /** Epoch 0 of two blocks of one Datum each, and its end: numbers 0 to 2. */
    static void first_epoch(Task &task) {
        supply_datums(task, 0, 1);
        supply_datums(task, 1, 1);
        task.end_of_resident_epoch(0, 0);
    }

    static int32_t datum_of(const Handle &handle, const supply_block_t &block) {
        supply_datum_t datum = {};
        EXPECT_STATUS(SUPPLY_OK, supply_datum(handle.get(), &block, 0, &datum), handle);
        return datum.height;
    }
};

TEST_F(ResidentTest, ABlockIsTheSameMemoryUnderItsNextNumber) {
    Handle handle = open();
    Task task(files);
    first_epoch(task);
    const supply_block_t first = next(handle), second = next(handle);
    expect_end_of_epoch(handle, 0);
    // All are still held.
    task.replay(1, 1);
    const supply_block_t again = next(handle);
    EXPECT_EQ(second.address, again.address);
    EXPECT_EQ(second.bytes, again.bytes);
    EXPECT_EQ(3u, again.sequence);
    EXPECT_EQ(1u, again.epoch);
    EXPECT_EQ(1, datum_of(handle, again));
    EXPECT_EQ(1, datum_of(handle, second));
    EXPECT_EQ(0, datum_of(handle, first));
    for (const supply_block_t &block : {again, first, second}) release(handle, block);
    EXPECT_EQ(4u, task.released());
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &again), handle);
}

TEST_F(ResidentTest, AnyNumberOfEpochsEndsAfterThem) {
    Handle handle = open();
    Task task(files);
    first_epoch(task);
    for (uint32_t epoch = 0; epoch < 50; epoch++) {
        for (uint64_t block : {epoch % 2, 1 - epoch % 2}) {
            if (epoch > 0) task.replay(block, epoch);
            const supply_block_t received = next(handle);
            EXPECT_EQ(epoch, received.epoch);
            EXPECT_EQ(static_cast<int32_t>(block), datum_of(handle, received));
            release(handle, received);
        }
        if (epoch > 0) task.replay(2, epoch);
        expect_end_of_epoch(handle, epoch);
    }
    task.end_of_data(49);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    task.see_end();
}

TEST_F(ResidentTest, TheCreditIsUsedUpByNumbersNotBySlots) {
    Handle handle = open();
    Task task(files);
    first_epoch(task);
    const supply_block_t first = next(handle), second = next(handle);
    expect_end_of_epoch(handle, 0);
    task.replay(0, 1);
    next(handle);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(handle.get(), &block), handle);
    release(handle, first);
    task.replay(1, 1);
    EXPECT_EQ(second.address, next(handle).address);
}

TEST_F(ResidentTest, APositionStandsInTheEpochInWhichABlockIsNotifiedAgain) {
    Handle handle = open();
    Task task(files);
    first_epoch(task);
    for (int i = 0; i < 2; i++) {
        const supply_block_t block = next(handle);
        release(handle, block);
    }
    expect_end_of_epoch(handle, 0);
    task.replay(1, 7);
    const supply_block_t again = next(handle);
    release(handle, again);
    EXPECT_EQ("position-1:7:1:0:2:0000000000000000", saved_position(handle));
}

TEST_F(ResidentTest, WhatIsNotifiedAgainByTheNextAttemptIsDropped) {
    Handle handle = open();
    Task task(files);
    first_epoch(task);
    next(handle);
    next(handle);
    expect_end_of_epoch(handle, 0);
    const notification again = task.next_replayed(0, 1);
    task.replay(0, 1);
    task.notify(again);
    EXPECT_EQ(3u, next(handle).sequence);
    supply_block_t block;
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(handle.get(), &block), handle);
}

} // namespace
} // namespace supply_test
