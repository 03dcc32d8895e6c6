#include "result_rows.h"

namespace supply_test {

std::vector<supply_field_t> fields_of(const std::vector<Column> &columns) {
    std::vector<supply_field_t> fields;
    for (const Column &column : columns)
        fields.push_back({column.name.c_str(), !column.validity.empty(), column.format.c_str(),
                          column.child_format.c_str(), static_cast<int>(column.children), 0});
    return fields;
}

std::vector<supply_column_t> rows_of(const std::vector<Column> &columns, uint32_t count) {
    std::vector<supply_column_t> rows;
    for (const Column &column : columns) {
        supply_column_t row = {};
        row.element_count = count;
        row.format = column.format.c_str();
        row.child_format = column.child_format.c_str();
        if (!column.validity.empty()) row.validity = reinterpret_cast<const uint8_t *>(column.validity.data());
        if (!column.offsets.empty()) row.offsets = column.offsets.data();
        row.data = column.values.data();
        row.data_bytes = column.values.size();
        rows.push_back(row);
    }
    return rows;
}

Column nullable(Column column, uint32_t count, const std::vector<uint32_t> &nulls) {
    column.validity.assign((count + 7) / 8, '\xff');
    for (const uint32_t row : nulls)
        column.validity[row / 8] = static_cast<char>(column.validity[row / 8] & ~(1 << row % 8));
    column.null_count = static_cast<uint32_t>(nulls.size());
    return column;
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
