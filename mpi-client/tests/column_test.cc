// Columns of a held block, in place.
#include <cstring>

#include "rank.h"

namespace supply_test {
namespace {

class ColumnTest : public RankTest {
  protected:
    Handle receive(Task &task, const std::vector<Column> &columns, uint32_t element_count, Handle handle) {
        task.supply_all(columns, element_count);
        EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        return handle;
    }
    supply_column_t column(const Handle &handle, const char *name) {
        supply_column_t column = {};
        int index = supply_column_index(handle.get(), name);
        EXPECT_GE(index, 0) << name;
        EXPECT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, index, &column), handle);
        return column;
    }
    /* By its name and its format. */
    void expect_each_refused(const std::vector<Column> &columns) {
        auto [handle, task] = attached();
        handle = receive(task, columns, 2, std::move(handle));
        int index = 0;
        for (const Column &refused : columns) {
            supply_column_t column;
            EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_column(handle.get(), &block, index++, &column), handle);
            const std::string name = "'" + refused.name + "'";
            EXPECT_TRUE(says(supply_error(handle.get()), {name.c_str(), refused.format.c_str()}));
        }
    }
    supply_block_t block = {};
};

TEST_F(ColumnTest, EveryFormatOfTheContractIsReadInPlace) {
    const struct {
        const char *format;
        size_t bytes;
    } formats[] = {{"tdD", 4}, {"tsu:", 8}, {"tsu:UTC", 8}, {"d:38,18", 16}, {"d:9,0", 16},
                   {"c", 1},   {"C", 1},    {"s", 2},       {"S", 2},        {"i", 4},
                   {"I", 4},   {"l", 8},    {"L", 8},       {"f", 4},        {"g", 8}};
    std::vector<Column> columns;
    for (const auto &format : formats)
        columns.push_back(Column::fixed(std::string("column-") + format.format, format.format,
                                        std::string(format.bytes * 3, format.format[0])));
    columns.push_back(Column::bits("column-b", {true, false, true}));
    columns.push_back(Column::variable("column-z", "z", {std::string("a\0b", 3), "", "cd"}));
    columns.push_back(Column::variable("column-u", "u", {"\u00fc", "v", ""}));
    auto [handle, task] = attached();
    handle = receive(task, columns, 3, std::move(handle));
    EXPECT_EQ(columns.size(), block.column_count);
    for (const Column &expected : columns) {
        const supply_column_t actual = column(handle, expected.name.c_str());
        EXPECT_EQ(expected.name, actual.name);
        EXPECT_EQ(expected.format, actual.format);
        EXPECT_EQ(3u, actual.element_count);
        EXPECT_EQ(0u, actual.null_count);
        EXPECT_EQ(nullptr, actual.validity);
        ASSERT_EQ(expected.values.size(), actual.data_bytes);
        EXPECT_EQ(0, memcmp(expected.values.data(), actual.data, actual.data_bytes)) << expected.name;
        EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(actual.data) % 64);
        ASSERT_EQ(expected.offsets.empty(), actual.offsets == nullptr) << expected.name;
        if (actual.offsets != nullptr) {
            EXPECT_EQ(0, memcmp(expected.offsets.data(), actual.offsets, expected.offsets.size() * 4));
        }
        const auto *begin = static_cast<const uint8_t *>(block.address);
        EXPECT_GE(static_cast<const uint8_t *>(actual.data), begin);
        EXPECT_LE(static_cast<const uint8_t *>(actual.data) + actual.data_bytes, begin + block.bytes);
    }
}

TEST_F(ColumnTest, NullsComeWithTheirBitmap) {
    Column weight = Column::int32("weight", std::vector<int32_t>(11, 5));
    weight.validity = std::string("\xFB\x03", 2);
    weight.null_count = 2;
    auto [handle, task] = attached();
    handle = receive(task, {weight}, 11, std::move(handle));
    const supply_column_t actual = column(handle, "weight");
    EXPECT_EQ(2u, actual.null_count);
    ASSERT_NE(nullptr, actual.validity);
    EXPECT_EQ(0xFB, actual.validity[0]);
    EXPECT_EQ(0x03, actual.validity[1]);
}

TEST_F(ColumnTest, ListsOfOneLengthAreADenseMatrix) {
    auto [handle, task] = attached();
    handle = receive(task, {Column::list("features", "+w:3", "f", std::string(2 * 3 * 4, 'x'))}, 2, std::move(handle));
    const supply_column_t actual = column(handle, "features");
    EXPECT_STREQ("+w:3", actual.format);
    EXPECT_STREQ("f", actual.child_format);
    EXPECT_EQ(2u, actual.element_count);
    EXPECT_EQ(2u * 3 * 4, actual.data_bytes);
}

TEST_F(ColumnTest, AListWithoutALengthOrOfOtherThanNumbersIsRefused) {
    const struct {
        const char *format, *child_format;
    } wrong[] = {{"+w:", "f"},          {"+w:0", "f"},  {"+w:-1", "f"},
                 {"+w:3x", "f"},        {"+w:03", "f"}, {"+w:99999999999999999999999", "f"},
                 {"+w:300000000", "f"}, {"+w:3", ""},   {"+w:3", "b"},
                 {"+w:3", "u"}};
    std::vector<Column> columns;
    for (const auto &formats : wrong)
        columns.push_back(Column::list("lists", formats.format, formats.child_format, std::string(24, 'x')));
    expect_each_refused(columns);
}

TEST_F(ColumnTest, OtherTimesAndDecimalsAreRefused) {
    const char *wrong[] = {"tdm",   "tss:UTC", "tsu",         "ttu",     "d:",   "d:38",
                           "d:38,", "d:,18",   "d:38,18,256", "d:380,1", "d:a,b"};
    std::vector<Column> columns;
    for (const char *format : wrong) columns.push_back(Column::fixed("column", format, std::string(16, 'x')));
    expect_each_refused(columns);
}

TEST_F(ColumnTest, AListMustHaveAllItsValues) {
    const Column lists = Column::list("features", "+w:3", "f", std::string(2 * 3 * 4 - 4, 'x'));
    auto [handle, task] = attached();
    task.write_schema(schema_of({lists}));
    task.supply(BlockImage({lists}, 2));
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"'features'", "data_bytes is 20", "24"}));
}

TEST_F(ColumnTest, AColumnOfEmptyValuesHasAPointerToo) {
    auto [handle, task] = attached();
    handle = receive(task, {Column::variable("empty", "z", {"", ""})}, 2, std::move(handle));
    const supply_column_t actual = column(handle, "empty");
    EXPECT_EQ(0u, actual.data_bytes);
    EXPECT_NE(nullptr, actual.data);
}

TEST_F(ColumnTest, AnUnknownFormatIsRefusedByNameAndTheOthersStayReadable) {
    auto [handle, task] = attached();
    handle = receive(task,
                     {Column::fixed("lists", "+l", std::string(64, 'x')), Column::int32("label", {1, 2}),
                      Column::fixed("empty-format", "", "")},
                     2, std::move(handle));
    supply_column_t column;
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_column(handle.get(), &block, 0, &column), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"'lists'", "'+l'", supply_version(), supply_contract_version()}));
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_column(handle.get(), &block, 2, &column), handle);
    EXPECT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 1, &column), handle);
    release(handle, block);
    EXPECT_STATUS(SUPPLY_AGAIN, supply_try_next(handle.get(), &block), handle) << "the run continues";
}

TEST_F(ColumnTest, NamesAreFoundAsSoonAsATaskHasAttached) {
    Handle handle = open();
    EXPECT_EQ(SUPPLY_ERROR_NO_SCHEMA, supply_column_index(handle.get(), "key"));
    EXPECT_TRUE(says(supply_error(handle.get()), {"pair 0", "no Spark task has attached"}));
    EXPECT_EQ(SUPPLY_ERROR_NO_SCHEMA, supply_column_count(handle.get()));
    supply_field_t field;
    EXPECT_STATUS(SUPPLY_ERROR_NO_SCHEMA, supply_field(handle.get(), 0, &field), handle);
    Task task(files);
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    EXPECT_EQ(7, supply_column_count(handle.get()));
    EXPECT_STATUS(SUPPLY_OK, supply_field(handle.get(), 6, &field), handle);
    EXPECT_STREQ("data", field.name);
    EXPECT_STREQ("z", field.format);
    EXPECT_STREQ("", field.child_format);
    EXPECT_FALSE(field.nullable);
    EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_field(handle.get(), 7, &field), handle);
    EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_field(handle.get(), -1, &field), handle);
    EXPECT_EQ(0, supply_column_index(handle.get(), "key"));
    EXPECT_EQ(6, supply_column_index(handle.get(), "data"));
    EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_column_index(handle.get(), "dat"));
    EXPECT_TRUE(says(supply_error(handle.get()), {"'dat'"}));
    EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_column_index(handle.get(), "keys"));
    task.supply(datum_block({numbered_element(0)}));
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(6, supply_column_index(handle.get(), "data"));
}

TEST_F(ColumnTest, TheSchemaIsThatOfTheFirstBlock) {
    auto [handle, task] = attached();
    handle = receive(task, {Column::int32("label", {1})}, 1, std::move(handle));
    std::vector<schema_entry> other = schema_of({Column::variable("label", "z", {"x"})});
    task.header().schema_columns = 0;
    task.write_schema(other);
    EXPECT_STREQ("i", column(handle, "label").format) << "what was checked is what is used";
}

TEST_F(ColumnTest, ArgumentsAreChecked) {
    auto [handle, task] = attached();
    handle = receive(task, {Column::int32("label", {1})}, 1, std::move(handle));
    supply_column_t column;
    EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_column(handle.get(), &block, 1, &column), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"no column 1 among 1"}));
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_column(handle.get(), nullptr, 0, &column), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_column(handle.get(), &block, 0, nullptr), handle);
}

} // namespace
} // namespace supply_test
