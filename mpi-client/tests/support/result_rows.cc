#include "result_rows.h"

namespace supply_test {

std::vector<supply_field_t> fields_of(const std::vector<Column> &columns) {
    std::vector<supply_field_t> fields;
    for (const Column &column : columns)
        fields.push_back(
            {column.name.c_str(), !column.validity.empty(), column.format.c_str(), column.child_format.c_str()});
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

} // namespace supply_test
