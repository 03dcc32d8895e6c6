// A loop that asks at its end what failed first: supply_status(), supply_finish(), supply_skip_rest(), and columns by
// name.
#include <climits>
#include <thread>

#include "rank.h"

extern "C" {
#include "supply_arrow.h"
#include "supply_result.h"
}

namespace supply_test {
namespace {

class FinishTest : public RankTest {
  protected:
    /** Supplies blocks of two elements in each of two epochs. */
    void feed(uint32_t blocks) const {
        Task task(files);
        for (uint32_t epoch = 0; epoch < 2; epoch++) {
            for (uint32_t i = 0; i < blocks; i++) supply_datums(task, 2 * i, 2, epoch);
            task.end_of_epoch(epoch);
        }
        task.end_of_data(1);
        task.see_end();
    }

    std::string finish(Handle &handle, supply_status_t expected) {
        char text[SUPPLY_TEXT_BYTES] = "not written";
        EXPECT_EQ(expected, supply_finish(handle.release(), text)) << text;
        EXPECT_FALSE(std::filesystem::exists(files.mapped_file));
        return text;
    }

    supply_block_t block = {};
    supply_column_t column = {};
};

/* Each function that takes a handle, and a failure to open. */
TEST_F(FinishTest, AHandleThatCouldNotBeOpenedSaysWhyAtEachCall) {
    supply_options_t wrong = options;
    wrong.request_pipe = "relative";
    supply_options_t uninitialized = options;
    uninitialized.struct_bytes = 1;
    supply_options_t large = options;
    large.ring_bytes = SIZE_MAX;
    const std::tuple<supply_options_t, supply_status_t, const char *> failures[] = {
        {wrong, SUPPLY_ERROR_CONFIG, "'relative'"},
        {uninitialized, SUPPLY_ERROR_ARGUMENT, "supply_options_init()"},
        {large, SUPPLY_ERROR_CONFIG, "ring="}};
    for (const auto &[given, status, text] : failures) {
        supply_t *supply;
        EXPECT_EQ(status, supply_open(&supply, &given));
        Handle handle(supply);
        const std::string why = supply_error(supply);
        EXPECT_TRUE(says(why, {text}));
        supply_datum_t datum;
        supply_field_t field = {};
        supply_position_t position;
        supply_counts_t counts;
        ArrowSchema schema;
        ArrowArrayStream stream;
        EXPECT_EQ(status, supply_status(supply));
        EXPECT_EQ(status, supply_next(supply, &block));
        EXPECT_EQ(status, supply_try_next(supply, &block));
        EXPECT_EQ(status, supply_next_datum(supply, &datum));
        EXPECT_EQ(status, supply_datum(supply, &block, 0, &datum));
        EXPECT_EQ(status, supply_skip_rest(supply));
        EXPECT_EQ(status, supply_release(supply, &block));
        EXPECT_EQ(status, supply_wait_schema(supply));
        EXPECT_EQ(status, supply_column_count(supply));
        EXPECT_EQ(status, supply_column_index(supply, "x"));
        EXPECT_EQ(status, supply_column(supply, &block, 0, &column));
        EXPECT_EQ(status, supply_column_named(supply, &block, "x", "f", &column));
        EXPECT_EQ(status, supply_column_child(supply, &block, &column, 0, &column));
        EXPECT_EQ(status, supply_field(supply, 0, &field));
        EXPECT_EQ(status, supply_field_child(supply, &field, 0, &field));
        EXPECT_EQ(status, supply_counts(supply, &counts));
        EXPECT_EQ(status, supply_position_save(supply, &position));
        EXPECT_EQ(status, supply_position_after(supply, &block, 0, &position));
        EXPECT_EQ(status, supply_export_arrow(supply, nullptr, SUPPLY_ALL_COLUMNS, &schema, nullptr));
        EXPECT_EQ(status, supply_export_stream(supply, &stream));
        EXPECT_EQ(why, supply_error(supply));
        const supply_field_t fields[] = {{"x", false, "f", "", 0, 0}};
        supply_result_t *result;
        EXPECT_EQ(status, supply_result_open(&result, supply, "r", fields, 1));
        EXPECT_TRUE(says(supply_result_error(result), {text}));
        EXPECT_EQ(status, supply_result_write(result, &column, 1));
        EXPECT_EQ(status, supply_result_seal(result));
        EXPECT_TRUE(says(supply_result_error(result), {text}));
        supply_result_abort(result, nullptr);
        EXPECT_EQ(why, finish(handle, status));
    }
}

TEST_F(FinishTest, WithoutAHandleItIsMemoryThatLacks) {
    char text[SUPPLY_TEXT_BYTES];
    EXPECT_EQ(SUPPLY_ERROR_MEMORY, supply_finish(nullptr, text));
    EXPECT_TRUE(says(text, {"out of memory"}));
    EXPECT_EQ(SUPPLY_ERROR_MEMORY, supply_finish(nullptr, nullptr));
    EXPECT_EQ(SUPPLY_ERROR_MEMORY, supply_status(nullptr));
    EXPECT_GT(0, supply_next(nullptr, &block));
}

TEST_F(FinishTest, ALoopToTheEndSucceeds) {
    for (uint32_t blocks : {0U, 1U, 3U}) {
        Handle handle = open();
        std::thread task([&] { feed(blocks); });
        uint64_t elements = 0;
        EXPECT_EQ(SUPPLY_OK, supply_status(handle.get()));
        do
            while (supply_next(handle.get(), &block) == SUPPLY_OK) {
                EXPECT_EQ(SUPPLY_OK, supply_status(handle.get()));
                elements += block.element_count;
                supply_release(handle.get(), &block);
            }
        while (supply_status(handle.get()) == SUPPLY_END_OF_EPOCH);
        EXPECT_EQ(SUPPLY_END_OF_DATA, supply_status(handle.get()));
        EXPECT_EQ(4U * blocks, elements);
        /* What failed meanwhile, such as the question for a column that need not be there. */
        EXPECT_GT(0, supply_column_index(handle.get(), "bogus"));
        EXPECT_EQ("", finish(handle, SUPPLY_OK));
        task.join();
    }
}

TEST_F(FinishTest, AProgramThatNeedsNoMoreEndsWithSuccess) {
    for (uint32_t read : {0U, 1U, 4U}) {
        Handle handle = open();
        std::thread task([&] { feed(3); });
        supply_datum_t datum;
        for (uint32_t i = 0; i < read; i++) EXPECT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
        EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_skip_rest(handle.get()), handle);
        EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_skip_rest(handle.get()), handle);
        EXPECT_EQ("", finish(handle, SUPPLY_OK));
        task.join();
    }
}

TEST_F(FinishTest, BlocksThatAreHeldCannotBeSkipped) {
    Handle handle = open();
    std::vector<supply_block_t> held;
    Task task(files);
    for (uint64_t i = 0; i < 4; i++) supply_datums(task, i, 1);
    for (uint64_t i = 0; i < 4; i++) {
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        held.push_back(block);
    }
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_skip_rest(handle.get()), handle);
    for (const supply_block_t &one : held) supply_release(handle.get(), &one);
    task.end_of_epoch(0);
    task.end_of_data(0);
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_skip_rest(handle.get()), handle);
    task.see_end();
    EXPECT_EQ("", finish(handle, SUPPLY_OK));
}

TEST_F(FinishTest, AnEndBeforeThatOfTheDataFailsOnBothSides) {
    for (int blocks = 0; blocks < 3; blocks++) {
        auto [handle, task] = attached();
        for (int i = 0; i < 3; i++) supply_datums(task, 2 * i, 2);
        for (int i = 0; i < blocks; i++) ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        const std::string text = finish(handle, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(text, {"not read to the end", "supply_skip_rest()"}));
        EXPECT_EQ(text, task.header().rank_failure);
    }
}

TEST_F(FinishTest, TheFirstFailureIsToldToBothSides) {
    for (const auto &[name, format, words] :
         {std::tuple{"bogus", "f", "no column 'bogus'"}, std::tuple{"label", "f", "format 'i', not 'f'"},
          std::tuple{"data", "u", "format 'z', not 'u'"}}) {
        auto [handle, task] = attached();
        supply_datums(task, 0, 2);
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_column_named(handle.get(), &block, name, format, &column), handle);
        EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_status(handle.get()));
        const std::string text = finish(handle, SUPPLY_ERROR_NO_COLUMN);
        EXPECT_TRUE(says(text, {words}));
        EXPECT_EQ(text, task.header().rank_failure);
    }
}

TEST_F(FinishTest, AFailureOfSparkStaysWhatFailed) {
    auto [handle, task] = attached();
    task.send_failure("the table is gone");
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &block)) << "another text";
        EXPECT_EQ(SUPPLY_ERROR_SPARK, supply_status(handle.get()));
    }
    EXPECT_EQ("the table is gone", finish(handle, SUPPLY_ERROR_SPARK));
}

TEST_F(FinishTest, AFailureOfTheEndHasItsText) {
    options.timeout = 0.1;
    for (bool is_told : {true, false}) {
        auto [handle, task] = attached();
        task.end_of_data(0);
        ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
        if (is_told) task.send_failure("another rank has failed");
        const std::string text = finish(handle, is_told ? SUPPLY_ERROR_SPARK : SUPPLY_ERROR_TIMEOUT);
        EXPECT_TRUE(says(text, {is_told ? "another rank has failed" : "has not confirmed it within 0.1 s"}));
    }
}

TEST_F(FinishTest, AColumnHasItsFormatOrIsRefused) {
    std::string values(24, '\0');
    const std::vector<Column> columns = {Column::int32("i", {1, 2}), Column::list("l", "+w:3", "f", values),
                                         Column::variable("u", "u", {"a", "bc"}),
                                         Column::fixed("t", "tsu:UTC", std::string(16, '\0'))};
    auto [handle, task] = attached();
    task.supply_all(columns, 2);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    const auto status = [&](const char *name, const char *format) {
        return supply_column_named(handle.get(), &block, name, format, &column);
    };
    EXPECT_EQ(SUPPLY_OK, status("i", "i"));
    EXPECT_EQ(SUPPLY_OK, status("i", nullptr));
    EXPECT_EQ(SUPPLY_OK, status("l", "+w:3f"));
    EXPECT_EQ(SUPPLY_OK, status("u", "u"));
    EXPECT_EQ(SUPPLY_OK, status("t", "tsu:UTC"));
    for (const auto &[name, format] : {std::pair{"i", ""},
                                       {"i", "l"},
                                       {"i", "ii"},
                                       {"l", "+w:3"},
                                       {"l", "+w:3g"},
                                       {"l", "+w:32f"},
                                       {"u", "z"},
                                       {"t", "tsu:"},
                                       {"", "i"}})
        EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, status(name, format)) << name << ' ' << format;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, status(nullptr, "i"));
    supply_release(handle.get(), &block);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, status("i", "i"));
    supply_abort(handle.release(), nullptr);
}

TEST_F(FinishTest, NullsAreTheZerosOfTheBits) {
    const uint8_t bits[] = {0b10110101, 0b1};
    column.validity = bits;
    for (uint32_t i : {1U, 3U, 6U}) EXPECT_TRUE(supply_is_null(&column, i)) << i;
    for (uint32_t i : {0U, 2U, 4U, 5U, 7U, 8U}) EXPECT_FALSE(supply_is_null(&column, i)) << i;
    column.validity = nullptr;
    EXPECT_FALSE(supply_is_null(&column, 1));
}

/* As the rank sees offsets that another program changes after the check of the block. */
TEST_F(FinishTest, AValueLiesWithinItsColumn) {
    const void *data;
    size_t bytes;
    for (const auto &[begin, end] : {std::pair{-1, 2}, {2, 1}, {0, 5}, {INT32_MIN, INT32_MAX}, {4, -1}}) {
        const int32_t offsets[] = {begin, end};
        column = {};
        column.element_count = 1;
        column.offsets = offsets;
        column.data = "abcd";
        column.data_bytes = 4;
        EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_value(&column, 0, &data, &bytes)) << begin << ' ' << end;
    }
    const int32_t offsets[] = {1, 4};
    column.offsets = offsets;
    ASSERT_EQ(SUPPLY_OK, supply_value(&column, 0, &data, &bytes));
    EXPECT_EQ("bcd", std::string(static_cast<const char *>(data), bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&column, 1, &data, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(nullptr, 0, &data, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&column, 0, nullptr, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&column, 0, &data, nullptr));
    column.child_count = 1;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&column, 0, &data, &bytes)) << "a list";
}

} // namespace
} // namespace supply_test
