// Positions: what counts as consumed, and what the next pair asks for.
#include <cstring>

#include "rank.h"

namespace supply_test {
namespace {

class PositionTest : public RankTest {
  protected:
    static std::string text(const Handle &handle) {
        supply_position_t position;
        EXPECT_EQ(SUPPLY_OK, supply_position_save(handle.get(), &position));
        char text[SUPPLY_POSITION_TEXT_BYTES];
        supply_position_to_text(&position, text, sizeof text);
        return text;
    }

    static std::string at(uint32_t epoch, uint32_t partition, uint64_t element) {
        return "position-1:" + std::to_string(epoch) + ":1:" + std::to_string(partition) + ":" +
               std::to_string(element) + ":00000000000000ab";
    }

    static std::string at_epoch(uint32_t epoch) {
        return "position-1:" + std::to_string(epoch) + ":0:0:0:00000000000000ab";
    }

    static BlockImage block(uint32_t elements) {
        std::vector<Element> values;
        for (uint32_t i = 0; i < elements; i++) values.push_back(numbered_element(i));
        return datum_block(values);
    }

    static void begin(Task &task) {
        task.header().plan = 0xab;
        task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    }
};

TEST_F(PositionTest, ABlockIsConsumedWhenItAndAllBeforeItAreReleased) {
    auto [handle, task] = attached();
    begin(task);
    EXPECT_EQ(at_epoch(0), text(handle));
    task.supply(block(3), 0, 5, 10);
    task.supply(block(2), 0, 5, 13);
    supply_block_t first, second;
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &first), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &second), handle);
    EXPECT_EQ(at_epoch(0), text(handle)) << "received is not consumed";
    release(handle, second);
    EXPECT_EQ(at_epoch(0), text(handle)) << "the one before it is still held";
    release(handle, first);
    EXPECT_EQ(at(0, 5, 15), text(handle));
}

TEST_F(PositionTest, AnEndOfEpochIsPassedWhenItIsReported) {
    auto [handle, task] = attached();
    begin(task);
    task.supply(block(1), 0, 2, 0);
    task.end_of_epoch(0);
    task.end_of_data(0);
    supply_block_t block = next(handle);
    release(handle, block);
    EXPECT_EQ(at(0, 2, 1), text(handle));
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(at_epoch(1), text(handle));
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(at_epoch(1), text(handle));
    task.see_end();
}

TEST_F(PositionTest, AProgramThatCountsItselfAsksForAnyElementOfABlock) {
    auto [handle, task] = attached();
    task.header().plan = 0x77;
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    task.supply(datum_block({numbered_element(0), numbered_element(1), numbered_element(2)}), 4, 9, 50);
    task.end_of_epoch(4);
    supply_block_t block = {}, end = {};
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &end), handle);
    const struct {
        const supply_block_t *block;
        uint32_t elements;
        const char *text;
    } expected[] = {{&block, 0, "position-1:4:1:9:50:0000000000000077"},
                    {&block, 2, "position-1:4:1:9:52:0000000000000077"},
                    {&block, 3, "position-1:4:1:9:53:0000000000000077"},
                    {&end, 0, "position-1:5:0:0:0:0000000000000077"}};
    for (const auto &[from, elements, expected_text] : expected) {
        supply_position_t position;
        char text[SUPPLY_POSITION_TEXT_BYTES];
        ASSERT_STATUS(SUPPLY_OK, supply_position_after(handle.get(), from, elements, &position), handle);
        supply_position_to_text(&position, text, sizeof text);
        EXPECT_STREQ(expected_text, text);
    }
    supply_position_t position;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_after(handle.get(), &block, 4, &position));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_after(handle.get(), &end, 1, &position));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_after(nullptr, &block, 0, &position));
}

TEST_F(PositionTest, TheIteratorCountsDatums) {
    auto [handle, task] = attached();
    begin(task);
    task.supply(block(3), 1, 4, 7);
    supply_datum_t datum;
    for (uint64_t taken = 1; taken <= 3; taken++) {
        ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
        EXPECT_EQ(at(1, 4, 7 + taken), text(handle));
    }
    task.supply(block(1), 1, 6, 0);
    ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_EQ(at(1, 6, 1), text(handle));
}

TEST_F(PositionTest, TheNextPairAsksForWhatFollows) {
    supply_position_t position;
    ASSERT_EQ(SUPPLY_OK, supply_position_from_text(&position, at(3, 9, 1234567890123).c_str()));
    options.position = &position;
    auto [handle, task] = attached();
    EXPECT_EQ(3u, task.header().start_epoch);
    EXPECT_EQ(1u, task.header().start_inside);
    EXPECT_EQ(9u, task.header().start_partition);
    EXPECT_EQ(1234567890123u, task.header().start_element);
    EXPECT_EQ(0xabu, task.header().start_plan);
    EXPECT_EQ(at(3, 9, 1234567890123), text(handle)) << "nothing has been consumed since";
}

TEST_F(PositionTest, OneOfAnExchangeNeedsAnExchange) {
    supply_position_t position;
    ASSERT_EQ(SUPPLY_OK,
              supply_position_from_text(&position, (at(3, 9, 5) + ":exchange:3:7:00000000000000cd").c_str()));
    options.position = &position;
    auto [handle, task] = attached();
    EXPECT_EQ(5u, task.header().start_element);
    begin(task);
    task.supply(block(1), 3, 9, 5);
    supply_block_t received;
    ASSERT_EQ(SUPPLY_ERROR_ARGUMENT, supply_next(handle.get(), &received));
    EXPECT_TRUE(says(supply_error(handle.get()), {"position", "supply_exchange_open"}));
}

TEST_F(PositionTest, WithoutOneItAsksForTheBeginning) {
    auto [handle, task] = attached();
    EXPECT_EQ(0u, task.header().start_epoch);
    EXPECT_EQ(0u, task.header().start_inside);
    EXPECT_EQ(0u, task.header().start_plan);
}

TEST_F(PositionTest, BytesThatAreNoPositionAreRefused) {
    supply_position_t position;
    memset(&position, 0x5a, sizeof position);
    options.position = &position;
    Handle handle = open(SUPPLY_ERROR_ARGUMENT);
    EXPECT_TRUE(says(supply_error(handle.get()), {"position", "supply_position_save"}));
}

TEST(PositionTextTest, WhatIsWrittenIsRead) {
    for (const char *text : {"position-1:0:0:0:0:0000000000000000",
                             "position-1:4294967295:1:4294967295:18446744073709551615:ffffffffffffffff",
                             "position-1:0:1:2:3:00000000000000ab:exchange:5:17:00000000000000cd",
                             "position-1:0:1:2:3:00000000000000ab:exchange:2:whole:00000000000000cd",
                             "position-1:4294967295:1:4294967295:18446744073709551615:ffffffffffffffff"
                             ":exchange:4294967295:18446744073709551614:ffffffffffffffff"}) {
        supply_position_t position;
        char again[SUPPLY_POSITION_TEXT_BYTES];
        ASSERT_EQ(SUPPLY_OK, supply_position_from_text(&position, text));
        supply_position_to_text(&position, again, sizeof again);
        EXPECT_STREQ(text, again);
    }
}

TEST(PositionTextTest, AnythingElseIsRefused) {
    supply_position_t position;
    for (const char *text : {"",
                             "position",
                             "position-2:0:0:0:0:0",
                             "position-1:0:2:0:0:0",
                             "position-1:0:0:0:0",
                             "position-1:0:0:0:0:0 ",
                             "position-1:0:0:0:0:0:0",
                             "no-position",
                             "position-1:4294967296:0:7:5:00000000000000ab",
                             "position-1:-1:1:3:5:00000000000000ab",
                             "position-1:1:1:4294967296:5:00000000000000ab",
                             "position-1:1:1:3:18446744073709551616:00000000000000ab",
                             "position-1:1:1: 3:5:00000000000000ab",
                             "position-1:1:1:3:+5:00000000000000ab",
                             "position-1:01:1:3:5:00000000000000ab",
                             "position-1:1:1:3:5:0x000000000000ab",
                             "position-1:1:1:3:5:00000000000000AB",
                             "position-1:1:1:3:5:00000000000000ab:",
                             "position-1:1:1:3:5:00000000000000abc",
                             "position-1:99999999999999999999999:1:3:5:00000000000000ab",
                             "position-1:1:1:3:18446744073709551616:00000000000000ab",
                             "position-1:1:1:3:-1:00000000000000ab",
                             "position-1:1:4294967297:3:5:00000000000000ab",
                             "position-1:1:1:3:5:fffffffffffffffff",
                             "position-1:1:1:3:5:00000",
                             "position-1:1:1:3:5:00000000000000ab:exchange",
                             "position-1:1:1:3:5:00000000000000ab:exchange:3:5",
                             "position-1:1:1:3:5:00000000000000ab:exchange:3:5:0000000000000000",
                             "position-1:1:1:3:5:00000000000000ab:exchange:3:half:00000000000000cd",
                             "position-1:1:1:3:5:00000000000000ab:exchange:3:18446744073709551615:00000000000000cd",
                             "position-1:1:1:3:5:00000000000000ab:exchange:4294967296:5:00000000000000cd",
                             "position-1:1:1:3:5:00000000000000ab:exchange:3:whole:00000000000000cd:",
                             "position-1:1:1:3:5:00000000000000ab:exchange:4:0:3:5:00000000000000cd"})
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_from_text(&position, text)) << text;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_from_text(&position, nullptr));
}

TEST_F(PositionTest, ATextThatDoesNotFitIsRefused) {
    Handle handle = open();
    supply_position_t position;
    ASSERT_STATUS(SUPPLY_OK, supply_position_save(handle.get(), &position), handle);
    char text[SUPPLY_POSITION_TEXT_BYTES] = "x";
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_to_text(&position, text, 10));
    EXPECT_STREQ("", text);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_position_to_text(&position, text, 0));
    EXPECT_EQ(SUPPLY_OK, supply_position_to_text(&position, text, sizeof text));
    EXPECT_EQ(SUPPLY_OK, supply_position_from_text(&position, text));
}

// supply_counts(): elements and steps of a whole epoch.

class CountsTest : public RankTest {
  protected:
    static void store(Task &task, uint64_t elements, uint64_t steps, uint32_t known = 1) {
        task.header().epoch_elements = elements;
        task.header().epoch_steps = steps;
        __atomic_store_n(&task.header().counts_known, known, __ATOMIC_RELEASE);
    }
};

TEST_F(CountsTest, AreNotKnownBeforeTheTaskStoresThem) {
    Handle handle = open();
    supply_counts_t counts = {.epoch_elements = 1, .epoch_steps = 1};
    EXPECT_STATUS(SUPPLY_AGAIN, supply_counts(handle.get(), &counts), handle);
    EXPECT_EQ(0u, counts.epoch_elements);
    EXPECT_EQ(0u, counts.epoch_steps);
    Task task(files);
    supply_datums(task, 0, 3);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_counts(handle.get(), &counts), handle);
    store(task, 1ULL << 40, 1ULL << 33);
    ASSERT_STATUS(SUPPLY_OK, supply_counts(handle.get(), &counts), handle);
    EXPECT_EQ(1ULL << 40, counts.epoch_elements);
    EXPECT_EQ(1ULL << 33, counts.epoch_steps);
}

TEST_F(CountsTest, NumbersThatContradictEachOtherAreRefused) {
    auto [handle, task] = attached();
    supply_counts_t counts;
    store(task, 10, 11);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_counts(handle.get(), &counts), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"epoch_steps is 11", "epoch_elements, which is 10"}));
    EXPECT_EQ(0u, counts.epoch_elements);
    store(task, 10, 10, 2);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_counts(handle.get(), &counts), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"counts_known is 2"}));
    store(task, 10, 10);
    EXPECT_STATUS(SUPPLY_OK, supply_counts(handle.get(), &counts), handle);
}

TEST_F(CountsTest, WrongArgumentsAreRefused) {
    supply_counts_t counts;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_counts(nullptr, &counts));
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_counts(handle.get(), nullptr), handle);
}

} // namespace
} // namespace supply_test
