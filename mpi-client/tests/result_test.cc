// Results: what a rank writes is what a reader finds, in every format.
#include <numeric>

#include "result_rows.h"

extern "C" {
#include "api/result.h"
}

namespace supply_test {
namespace {

using Values = std::vector<std::optional<std::string>>;

/** The values of a column in memory. */
Values values_of(const Column &column, uint32_t count) {
    Values values;
    for (uint32_t i = 0; i < count; i++) {
        const size_t width = column.values.size() / count;
        std::string value = !column.offsets.empty()
                                ? column.values.substr(static_cast<size_t>(column.offsets[i]),
                                                       static_cast<size_t>(column.offsets[i + 1] - column.offsets[i]))
                            : column.format == "b"
                                ? std::string(1, static_cast<char>(column.values[i / 8] >> i % 8 & 1))
                                : column.values.substr(i * width, width);
        const bool is_null = !column.validity.empty() && (column.validity[i / 8] >> i % 8 & 1) == 0;
        values.push_back(is_null ? std::nullopt : std::optional<std::string>(value));
    }
    return values;
}

std::string counted(size_t bytes) {
    std::string text(bytes, '\0');
    std::iota(text.begin(), text.end(), '\1');
    return text;
}

constexpr uint32_t ROWS = 1000;
const std::vector<uint32_t> SOME = {0, 7, 8, 63, 500, 999};

/** A column of each format, some of them with nulls. */
std::vector<Column> every_format() {
    std::vector<std::string> texts;
    std::vector<bool> bits;
    for (uint32_t i = 0; i < ROWS; i++) {
        texts.push_back(std::string(i % 23, static_cast<char>('a' + i % 26)));
        bits.push_back(i % 3 == 1);
    }
    std::vector<Column> columns;
    for (const auto &[format, width] : std::vector<std::pair<std::string, size_t>>{{"c", 1},
                                                                                   {"C", 1},
                                                                                   {"s", 2},
                                                                                   {"S", 2},
                                                                                   {"i", 4},
                                                                                   {"I", 4},
                                                                                   {"l", 8},
                                                                                   {"L", 8},
                                                                                   {"f", 4},
                                                                                   {"g", 8},
                                                                                   {"tdD", 4},
                                                                                   {"tsu:", 8},
                                                                                   {"tsu:UTC", 8},
                                                                                   {"d:38,10", 16}}) {
        columns.push_back(Column::fixed(format, format, counted(width * ROWS)));
        columns.push_back(nullable(Column::fixed("nullable " + format, format, counted(width * ROWS)), ROWS, SOME));
    }
    columns.push_back(Column::bits("b", bits));
    columns.push_back(nullable(Column::bits("nullable b", bits), ROWS, SOME));
    for (const char *format : {"z", "u"}) {
        columns.push_back(Column::variable(format, format, texts));
        columns.push_back(nullable(Column::variable(std::string("nullable ") + format, format, texts), ROWS, SOME));
    }
    columns.push_back(Column::list("+w:3", "+w:3", "i", counted(std::size_t{12} * ROWS)));
    columns.push_back(
        nullable(Column::list("nullable +w:5", "+w:5", "g", counted(std::size_t{40} * ROWS)), ROWS, SOME));
    return columns;
}

using ResultValuesTest = ResultTest;

TEST_F(ResultValuesTest, EveryFormatIsReadBack) {
    const std::vector<Column> columns = every_format();
    const ResultFile result = written(columns, ROWS);
    EXPECT_GT(result.header.block_count, 10u);
    EXPECT_EQ(ROWS, result.header.epoch_elements);
    EXPECT_EQ(3, result.header.rank);
    ASSERT_EQ(columns.size(), result.columns.size());
    for (size_t i = 0; i < columns.size(); i++) {
        const ResultColumn &read = result.columns[i];
        SCOPED_TRACE(read.name);
        EXPECT_EQ(columns[i].name, read.name);
        EXPECT_EQ(columns[i].format, read.format);
        EXPECT_EQ(columns[i].child_format, read.child_format);
        EXPECT_EQ(!columns[i].validity.empty(), read.nullable);
        EXPECT_EQ(columns[i].null_count, read.null_count);
        EXPECT_EQ(values_of(columns[i], ROWS), read.values);
    }
}

/** Rows `from` to `end - 1` of a column, as arrays of their own. */
Column part_of(const Column &column, uint32_t from, uint32_t end) {
    const Values values = values_of(column, ROWS);
    std::vector<uint32_t> nulls;
    for (uint32_t i = from; i < end; i++)
        if (!values[i]) nulls.push_back(i - from);
    Column part = column;
    if (column.format == "b") {
        std::vector<bool> bits;
        for (uint32_t i = from; i < end; i++) bits.push_back((column.values[i / 8] >> i % 8 & 1) != 0);
        part = Column::bits(column.name, bits);
    } else if (!column.offsets.empty()) {
        part.offsets.assign(column.offsets.begin() + from, column.offsets.begin() + end + 1);
    } else {
        const size_t width = column.values.size() / ROWS;
        part.values = column.values.substr(from * width, (end - from) * width);
    }
    return column.validity.empty() ? part : nullable(part, end - from, nulls);
}

TEST_F(ResultValuesTest, RowsInPiecesAreTheSameFileAsRowsAtOnce) {
    const std::vector<Column> columns = every_format();
    Handle handle = open();
    Result at_once = begin(handle, columns, "at-once"), in_pieces = begin(handle, columns, "in-pieces");
    in_pieces.get()->file.header.generation = at_once.get()->file.header.generation;
    write(at_once, columns, ROWS);
    for (uint32_t from = 0, count = 0; from < ROWS; from += count) {
        count = std::min(ROWS - from, from % 37 + 1);
        std::vector<Column> part;
        for (const Column &column : columns) part.push_back(part_of(column, from, from + count));
        write(in_pieces, part, count);
        EXPECT_EQ(from + count, supply_result_rows(in_pieces.get()));
    }
    seal(at_once);
    seal(in_pieces);
    EXPECT_EQ(read_file(path("at-once")), read_file(path("in-pieces")));
}

TEST_F(ResultValuesTest, ColumnsOfAHeldBlockAreWrittenAsTheyAre) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 20);
    supply_block_t block = next(handle);
    std::vector<supply_field_t> fields(2);
    std::vector<supply_column_t> columns(2);
    for (int i = 0; i < 2; i++) {
        const int index = supply_column_index(handle.get(), i == 0 ? "key" : "data");
        ASSERT_STATUS(SUPPLY_OK, supply_field(handle.get(), index, &fields[i]), handle);
        ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, index, &columns[i]), handle);
    }
    supply_result_t *opened;
    ASSERT_EQ(SUPPLY_OK, supply_result_open(&opened, handle.get(), "scores", fields.data(), 2));
    Result result(opened);
    ASSERT_EQ(SUPPLY_OK, supply_result_write(opened, columns.data(), 2)) << supply_result_error(opened);
    release(handle, block);
    seal(result);
    const ResultFile read = read_result(path());
    for (uint64_t i = 0; i < 20; i++) {
        EXPECT_EQ(numbered_element(i).key, read.columns[0].values.at(i));
        EXPECT_EQ(numbered_element(i).data, read.columns[1].values.at(i));
    }
}

TEST_F(ResultValuesTest, NoRowsAreAnEmptyResult) {
    const ResultFile read = written({Column::int32("n", {}), Column::variable("t", "u", {})}, 0);
    EXPECT_EQ(0u, read.header.block_count);
    EXPECT_EQ(uint64_t{RING_OFFSET}, read.header.file_bytes);
    EXPECT_EQ(2u, read.header.schema_columns);
}

TEST_F(ResultValuesTest, ARowAsLargeAsABlockFits) {
    // Header and column table take 192 bytes, the two offsets 64.
    const ResultFile read = written({Column::variable("t", "z", {std::string(8192 - 256, 'x'), "y", ""})}, 3);
    EXPECT_EQ((std::vector<uint32_t>{1, 2}), read.block_rows);
}

} // namespace
} // namespace supply_test
