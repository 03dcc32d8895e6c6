#include "exchange_rows.h"

#include <gtest/gtest.h>

#include <cstring>

namespace supply_test {

namespace {

constexpr int list_size = 3;

int16_t small_of(int64_t id) { return static_cast<int16_t>(id * 7); }
bool flag_of(int64_t id) { return id % 3 == 0; }
bool is_null(int64_t id) { return id % 5 == 2; }
int32_t maybe_of(int64_t id) { return static_cast<int32_t>(id * 11); }
int32_t list_of(int64_t id, int k) { return static_cast<int32_t>(id * 13 + k); }
std::string text_of(int64_t id) {
    return is_null(id) ? "" : std::string(static_cast<size_t>(id % 40), 'x') + key_of(id);
}

template <typename T>
std::string bytes_of(const std::vector<T> &values) {
    return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

/* A bit for each row, set if it is not null. */
void set_validity(Column &column, const std::vector<int64_t> &ids) {
    column.validity.assign((ids.size() + 7) / 8, '\0');
    for (size_t i = 0; i < ids.size(); i++) {
        if (is_null(ids[i]))
            column.null_count++;
        else
            column.validity[i / 8] = static_cast<char>(column.validity[i / 8] | 1 << i % 8);
    }
}

bool bit(const void *bits, uint32_t index) { return static_cast<const uint8_t *>(bits)[index / 8] >> index % 8 & 1; }

template <typename T>
T number(const supply_column_t &column, size_t index) {
    T value;
    memcpy(&value, static_cast<const char *>(column.data) + index * sizeof value, sizeof value);
    return value;
}

std::string value(const supply_column_t &column, uint32_t index) {
    const void *data = nullptr;
    size_t bytes = 0;
    EXPECT_EQ(SUPPLY_OK, supply_value(&column, index, &data, &bytes));
    return std::string(static_cast<const char *>(data), bytes);
}

void check_row(const std::vector<supply_column_t> &columns, uint32_t i, int64_t id) {
    const bool maybe_is_valid = columns[3].validity == nullptr || bit(columns[3].validity, i);
    const bool text_is_valid = columns[6].validity == nullptr || bit(columns[6].validity, i);
    ASSERT_EQ(small_of(id), number<int16_t>(columns[1], i)) << id;
    ASSERT_EQ(flag_of(id), bit(columns[2].data, i)) << id;
    ASSERT_EQ(!is_null(id), maybe_is_valid) << id;
    ASSERT_EQ(maybe_of(id), number<int32_t>(columns[3], i)) << id;
    for (int k = 0; k < list_size; k++)
        ASSERT_EQ(list_of(id, k), number<int32_t>(columns[4], size_t{i} * list_size + static_cast<size_t>(k))) << id;
    ASSERT_EQ(key_of(id), value(columns[5], i)) << id;
    ASSERT_EQ(!is_null(id), text_is_valid) << id;
    ASSERT_EQ(text_of(id), value(columns[6], i)) << id;
}

void check_counts(const supply_column_t &column) {
    uint32_t nulls = 0;
    for (uint32_t i = 0; i < column.element_count; i++) nulls += column.validity != nullptr && !bit(column.validity, i);
    EXPECT_EQ(nulls, column.null_count) << column.name;
}

} // namespace

std::string key_of(int64_t id) {
    return "key" + std::string(static_cast<size_t>(id % 8), static_cast<char>('a' + id % 8));
}

std::vector<Column> row_columns(Shape shape, const std::vector<int64_t> &ids) {
    std::vector<Column> columns = {Column::fixed("id", "l", bytes_of(ids))};
    if (shape == Shape::fixed) return columns;
    std::vector<int16_t> smalls;
    std::vector<int32_t> maybes, lists;
    std::vector<bool> flags;
    std::vector<std::string> keys, texts;
    for (const int64_t id : ids) {
        smalls.push_back(small_of(id));
        flags.push_back(flag_of(id));
        maybes.push_back(maybe_of(id));
        for (int k = 0; k < list_size; k++) lists.push_back(list_of(id, k));
        keys.push_back(key_of(id));
        texts.push_back(text_of(id));
    }
    columns.push_back(Column::fixed("small", "s", bytes_of(smalls)));
    columns.push_back(Column::bits("flag", flags));
    columns.push_back(Column::int32("maybe", maybes));
    set_validity(columns.back(), ids);
    columns.push_back(Column::list("list", "+w:3", "i", bytes_of(lists)));
    columns.push_back(Column::variable("key", "z", keys));
    columns.push_back(Column::variable("text", "u", texts));
    set_validity(columns.back(), ids);
    return columns;
}

BlockImage row_block(Shape shape, const std::vector<int64_t> &ids) {
    return BlockImage(row_columns(shape, ids), static_cast<uint32_t>(ids.size()));
}

std::vector<schema_entry> row_schema(Shape shape) { return schema_of(row_columns(shape, {0})); }

std::vector<int64_t> read_rows(supply_t *supply, const supply_block_t &block, Shape shape) {
    std::vector<supply_column_t> columns(static_cast<size_t>(block.column_count));
    for (int i = 0; i < block.column_count; i++) {
        EXPECT_EQ(SUPPLY_OK, supply_column(supply, &block, i, &columns[static_cast<size_t>(i)]))
            << supply_error(supply);
        check_counts(columns[static_cast<size_t>(i)]);
    }
    std::vector<int64_t> ids;
    for (uint32_t i = 0; i < block.element_count; i++) {
        ids.push_back(number<int64_t>(columns[0], i));
        if (shape == Shape::every) check_row(columns, i, ids.back());
    }
    return ids;
}

} // namespace supply_test
