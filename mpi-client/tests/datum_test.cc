// Datums: by their number in a block, and one after the other.
#include <cstring>

#include "rank.h"

namespace supply_test {
namespace {

class DatumTest : public RankTest {
  protected:
    static void expect_equal(const Element &expected, const supply_datum_t &actual) {
        EXPECT_EQ(expected.key, std::string(static_cast<const char *>(actual.key), actual.key_bytes));
        EXPECT_EQ(expected.data, std::string(static_cast<const char *>(actual.data), actual.data_bytes));
        EXPECT_EQ(expected.label, actual.label);
        EXPECT_EQ(expected.channels, actual.channels);
        EXPECT_EQ(expected.height, actual.height);
        EXPECT_EQ(expected.width, actual.width);
        EXPECT_EQ(expected.encoded, actual.encoded);
    }

    /* The first slot once more, but for its header, as a task gone mad would write it. */
    static void overwrite(Task &task, const std::vector<uint8_t> &block) {
        memcpy(reinterpret_cast<uint8_t *>(&task.header()) + RING_OFFSET + sizeof(block_header),
               block.data() + sizeof(block_header), block.size() - sizeof(block_header));
    }
};

TEST_F(DatumTest, EveryValueArrivesAsItIs) {
    const std::vector<Element> elements = {
        {"00000005", 7, 1, 2, 2, false, std::string("\0\1\2\3", 4)},
        {std::string("a/b\\\xff\0\n", 7), -1, 0, 0, 0, true, ""},
        {"", INT32_MAX, INT32_MIN, 1, 1, true, "\xff\x80"},
    };
    auto [handle, task] = attached();
    task.write_schema(schema_of(datum_columns(elements)));
    task.supply(datum_block(elements), 3);
    supply_block_t block = next(handle);
    for (uint32_t i : {2u, 0u, 1u}) {
        supply_datum_t datum = datum_of(handle, block, i);
        expect_equal(elements[i], datum);
        EXPECT_EQ(3u, datum.epoch);
        EXPECT_NE(nullptr, datum.data);
    }
    supply_datum_t datum;
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_datum(handle.get(), &block, 3, &datum), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_datum(handle.get(), &block, 0, nullptr), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_datum(handle.get(), nullptr, 0, &datum), handle);
}

TEST_F(DatumTest, TheIteratorGoesThroughBlocksEpochsAndTheEnd) {
    options.ring_bytes = 2 * 8192;
    auto [handle, task] = attached();
    supply_datum_t datum;
    uint64_t number = 0;
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        for (uint32_t count : {1u, 9u, 17u}) { // 9 and 17: `encoded` crosses a byte
            supply_datums(task, number, count, epoch);
            for (uint32_t i = 0; i < count; i++, number++) {
                ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
                expect_equal(numbered_element(number), datum);
                EXPECT_EQ(epoch, datum.epoch);
            }
        }
        task.end_of_epoch(epoch);
        ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next_datum(handle.get(), &datum), handle);
        EXPECT_EQ(epoch, datum.epoch);
    }
    task.end_of_data(2);
    for (int i = 0; i < 2; i++) ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_EQ(task.published(), task.released()) << "the iterator releases its blocks";
    task.see_end();
}

TEST_F(DatumTest, TheIteratorsBlockIsItsOwn) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 2);
    supply_datum_t datum;
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_try_next(handle.get(), &block), handle);
    block = {};
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    expect_equal(numbered_element(1), datum);
    task.end_of_epoch(0);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next_datum(handle.get(), &datum), handle);
    supply_datums(task, 2, 1);
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle) << "another epoch, another way";
}

TEST_F(DatumTest, ColumnsThatAreNotADatumsAreNamed) {
    const std::vector<Element> elements = {numbered_element(0)};
    struct {
        std::vector<Column> columns;
        std::initializer_list<const char *> words;
    } cases[] = {{datum_columns(elements), {"column 'label' has the format 'l', not 'i'", "no Datums"}},
                 {datum_columns(elements), {"no column 'width'", "no Datums"}},
                 {datum_columns(elements), {"no column 'data' among 6", "no Datums"}}};
    cases[0].columns[1] = Column::fixed("label", "l", std::string(8, 'x'));
    cases[1].columns[4].name = "Width";
    cases[2].columns.pop_back();
    for (const auto &wrong : cases) {
        auto [handle, task] = attached();
        task.write_schema(schema_of(wrong.columns));
        task.supply(BlockImage(wrong.columns, 1));
        task.supply(BlockImage(wrong.columns, 1));
        supply_block_t block;
        supply_datum_t datum;
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle) << "the block itself is good";
        EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_datum(handle.get(), &block, 0, &datum), handle);
        EXPECT_TRUE(says(supply_error(handle.get()), wrong.words));
        for (int i = 0; i < 2; i++)
            EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next_datum(handle.get(), &datum), handle);
    }
}

TEST_F(DatumTest, OtherColumnsAndAnotherOrderDoNotMatter) {
    const std::vector<Element> elements = {numbered_element(0), numbered_element(1)};
    std::vector<Column> reversed = datum_columns(elements), more = reversed, twisted = reversed;
    std::reverse(reversed.begin(), reversed.end());
    more.insert(more.begin(), Column::int32("id", {1, 2}));
    std::swap(twisted[0], twisted[6]);
    twisted.push_back(Column::int32("id", {1, 2}));
    for (const std::vector<Column> &columns : {reversed, more, twisted}) {
        auto [handle, task] = attached();
        task.supply_all(columns, 2);
        for (const Element &element : elements) {
            supply_datum_t datum;
            ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
            expect_equal(element, datum);
        }
    }
}

TEST_F(DatumTest, ADatumHasNoNulls) {
    std::vector<Column> columns = datum_columns({numbered_element(0)});
    columns[1].validity = std::string(1, '\0');
    columns[1].null_count = 1;
    auto [handle, task] = attached();
    task.supply_all(columns, 1);
    supply_datum_t datum;
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"'label'", "null"}));
}

TEST_F(DatumTest, OffsetsThatChangeUnderABlockAreNotFollowed) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 2);
    supply_block_t block = next(handle);
    BlockImage image = datum_block({numbered_element(0), numbered_element(1)});
    image.offsets(6)[1] = 0x7FFFFFFF;
    overwrite(task, image.bytes);
    supply_datum_t datum;
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_datum(handle.get(), &block, 0, &datum), handle);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_datum(handle.get(), &block, 1, &datum), handle);
}

TEST_F(DatumTest, TheIteratorStaysAtChangedOffsets) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 3);
    supply_datum_t datum;
    ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    BlockImage image = datum_block({numbered_element(0), numbered_element(1), numbered_element(2)});
    const std::vector<uint8_t> good = image.bytes;
    image.offsets(6)[2] = -1;
    overwrite(task, image.bytes);
    ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next_datum(handle.get(), &datum), handle);
    const std::string error = supply_error(handle.get());
    overwrite(task, good);
    ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_EQ(error, supply_error(handle.get()));
    supply_position_t position;
    char text[SUPPLY_POSITION_TEXT_BYTES];
    ASSERT_STATUS(SUPPLY_OK, supply_position_save(handle.get(), &position), handle);
    supply_position_to_text(&position, text, sizeof text);
    EXPECT_STREQ("position-1:0:1:0:1:0000000000000000", text) << "what was not handed out is not consumed";
    handle.reset();
    EXPECT_TRUE(says(task.header().rank_failure, {"rank 3 failed", error.c_str()}));
}

} // namespace
} // namespace supply_test
