#include "result_rows.h"

namespace supply_test {

std::vector<supply_field_t> fields_of(const std::vector<Column> &columns) {
    std::vector<supply_field_t> fields;
    for (const Column &column : columns)
        fields.push_back({column.name.c_str(), !column.validity.empty(), column.format.c_str(),
                          column.child_format.c_str(), static_cast<int>(column.children), 0});
    return fields;
}

namespace {

/** Adds a column of `count` rows, then its children. Returns the index after them. */
size_t add_rows(const std::vector<Column> &columns, size_t at, uint32_t count, std::vector<supply_column_t> &rows) {
    const Column &column = columns.at(at++);
    supply_column_t row = {};
    row.element_count = count;
    row.format = column.format.c_str();
    row.child_format = column.child_format.c_str();
    if (!column.validity.empty()) row.validity = reinterpret_cast<const uint8_t *>(column.validity.data());
    if (!column.offsets.empty()) row.offsets = column.offsets.data();
    row.data = column.values.data();
    row.data_bytes = column.values.size();
    rows.push_back(row);
    uint32_t below = count;
    if (column.children > 0 && !column.offsets.empty()) below = static_cast<uint32_t>(column.offsets.back());
    if (column.format.rfind("+w:", 0) == 0) below = count * static_cast<uint32_t>(std::stoul(column.format.substr(3)));
    for (uint32_t i = 0; i < column.children && at < columns.size(); i++) at = add_rows(columns, at, below, rows);
    return at;
}

} // namespace

std::vector<supply_column_t> rows_of(const std::vector<Column> &columns, uint32_t count) {
    std::vector<supply_column_t> rows;
    for (size_t at = 0; at < columns.size();) at = add_rows(columns, at, count, rows);
    return rows;
}

Column nullable(Column column, uint32_t count, const std::vector<uint32_t> &nulls) {
    column.validity.assign((count + 7) / 8, '\xff');
    for (const uint32_t row : nulls)
        column.validity[row / 8] = static_cast<char>(column.validity[row / 8] & ~(1 << row % 8));
    column.null_count = static_cast<uint32_t>(nulls.size());
    return column;
}

std::vector<Column> nested_columns() {
    return {
        nullable(Column::parent("tokens", "+l", 1, {0, 2, 2, 5}), 3, {1}),
        nullable(Column::int32("item", {1, 0, 3, 4, 5}), 5, {1}),
        nullable(Column::parent("point", "+s", 2), 3, {2}),
        nullable(Column::variable("name", "u", {"a", "", "b"}), 3, {1}),
        Column::int32("x", {7, 8, 9}),
        Column::parent("counts", "+m", 1, {0, 1, 1, 2}),
        Column::parent("entries", "+s", 2),
        Column::variable("key", "u", {"k", "l"}),
        nullable(Column::int32("value", {1, 0}), 2, {1}),
        Column::parent("pairs", "+w:2", 1),
        Column::parent("item", "+l", 1, {0, 1, 2, 3, 3, 4, 6}),
        Column::bits("item", {true, false, true, true, false, true}),
        Column::int32("last", {1, 2, 3}),
    };
}

Result ResultTest::begin(const Handle &handle, const std::vector<Column> &columns, const std::string &name,
                         supply_status_t expected) {
    const std::vector<supply_field_t> fields = fields_of(columns);
    supply_result_t *result = nullptr;
    const supply_status_t status =
        supply_result_open(&result, handle.get(), name.c_str(), fields.data(), static_cast<int>(fields.size()));
    EXPECT_EQ(expected, status) << supply_result_error(result);
    return Result(result);
}

void ResultTest::write(const Result &result, const std::vector<Column> &columns, uint32_t count,
                       supply_status_t expected) {
    const std::vector<supply_column_t> rows = rows_of(columns, count);
    const supply_status_t status = supply_result_write(result.get(), rows.data(), static_cast<int>(rows.size()));
    EXPECT_EQ(expected, status) << supply_result_error(result.get());
}

void ResultTest::seal(Result &result) {
    const supply_status_t status = supply_result_seal(result.get());
    ASSERT_EQ(SUPPLY_OK, status) << supply_result_error(result.get());
    result.release();
}

ResultFile ResultTest::written(const std::vector<Column> &columns, uint32_t count) {
    Handle handle = open();
    Result result = begin(handle, columns);
    write(result, columns, count);
    seal(result);
    return read_result(path());
}

} // namespace supply_test
