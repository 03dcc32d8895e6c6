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

/* The values of a row with children, as nested_text() reads them. */
std::string nested_of(int64_t id) {
    std::string tokens, counts;
    for (int64_t k = 0; k < id % 4; k++)
        tokens += (id + k) % 3 == 0 ? "null " : std::to_string(static_cast<int32_t>(id * 10 + k)) + " ";
    for (int64_t k = 0; k < id % 3; k++) {
        counts += "{" + key_of(id + k) + " [";
        for (int64_t j = 0; j < k; j++) counts += std::to_string(static_cast<int32_t>(id + j)) + " ";
        counts += "] } ";
    }
    return (is_null(id) ? "null" : "[" + tokens + "]") + " {" + key_of(id) + " [" +
           (is_null(id) ? "null" : std::to_string(id % 2)) + " 1 ] } [" + counts + "]";
}

/* The last ones are wider than the others. */
constexpr size_t many = 400, wide_from = 202;

std::string name_of_many(size_t k) { return k == 0 ? std::string(1000, 'n') : "column_" + std::to_string(k); }

void add_many(std::vector<Column> &columns, const std::vector<int64_t> &ids) {
    for (size_t k = 0; k < many; k++) {
        std::vector<int32_t> values;
        std::vector<int64_t> wide;
        for (const int64_t id : ids) values.push_back(static_cast<int32_t>(id * 17) + static_cast<int32_t>(k));
        for (const int32_t value : values) wide.push_back(int64_t{value} << 20);
        columns.push_back(k < wide_from ? Column::int32(name_of_many(k), values)
                                        : Column::fixed(name_of_many(k), "l", bytes_of(wide)));
    }
}

void check_many(const std::vector<supply_column_t> &columns, uint32_t row, int64_t id) {
    ASSERT_EQ(many + 1, columns.size());
    for (size_t k = 0; k < many; k++) {
        ASSERT_EQ(name_of_many(k), columns[k + 1].name);
        const int32_t value = static_cast<int32_t>(id * 17) + static_cast<int32_t>(k);
        if (k < wide_from)
            ASSERT_EQ(value, number<int32_t>(columns[k + 1], row));
        else
            ASSERT_EQ(int64_t{value} << 20, number<int64_t>(columns[k + 1], row));
    }
}

/* Columns with children for these rows. */
void add_nested(std::vector<Column> &columns, const std::vector<int64_t> &ids) {
    std::vector<int32_t> token_ends = {0}, tokens, count_ends = {0}, list_ends = {0}, numbers;
    std::vector<std::string> names, keys;
    std::vector<bool> flags;
    std::string token_validity, flag_validity;
    const auto set = [](std::string &bits, size_t index, bool value) {
        if (bits.size() <= index / 8) bits += '\0';
        bits[index / 8] = static_cast<char>(bits[index / 8] | (value ? 1 << index % 8 : 0));
        return value ? 0u : 1u;
    };
    uint32_t token_nulls = 0, flag_nulls = 0;
    for (const int64_t id : ids) {
        for (int64_t k = 0; k < id % 4; k++) {
            token_nulls += set(token_validity, tokens.size(), (id + k) % 3 != 0);
            tokens.push_back(static_cast<int32_t>(id * 10 + k));
        }
        token_ends.push_back(static_cast<int32_t>(tokens.size()));
        names.push_back(key_of(id));
        flag_nulls += set(flag_validity, flags.size(), !is_null(id));
        flags.push_back(id % 2 != 0);
        set(flag_validity, flags.size(), true);
        flags.push_back(true);
        for (int64_t k = 0; k < id % 3; k++) {
            keys.push_back(key_of(id + k));
            for (int64_t j = 0; j < k; j++) numbers.push_back(static_cast<int32_t>(id + j));
            list_ends.push_back(static_cast<int32_t>(numbers.size()));
        }
        count_ends.push_back(static_cast<int32_t>(keys.size()));
    }
    columns.push_back(Column::parent("tokens", "+l", 1, token_ends));
    set_validity(columns.back(), ids);
    columns.push_back(Column::int32("item", tokens));
    columns.back().validity = token_validity.empty() ? std::string() : token_validity;
    columns.back().null_count = token_nulls;
    columns.push_back(Column::parent("point", "+s", 2));
    columns.push_back(Column::variable("name", "u", names));
    columns.push_back(Column::parent("flags", "+w:2", 1));
    columns.push_back(Column::bits("item", flags));
    columns.back().validity = flag_validity;
    columns.back().null_count = flag_nulls;
    columns.push_back(Column::parent("counts", "+m", 1, count_ends));
    columns.push_back(Column::parent("entries", "+s", 2));
    columns.push_back(Column::variable("key", "u", keys));
    columns.push_back(Column::parent("value", "+l", 1, list_ends));
    columns.push_back(Column::int32("item", numbers));
}

supply_column_t child_of(supply_t *supply, const supply_block_t &block, const supply_column_t &column, int index) {
    supply_column_t child = {};
    EXPECT_EQ(SUPPLY_OK, supply_column_child(supply, &block, &column, index, &child)) << supply_error(supply);
    return child;
}

std::string nested_text(supply_t *supply, const supply_block_t &block, const supply_column_t &column, uint32_t row) {
    const std::string format = column.format;
    if (column.validity != nullptr && !bit(column.validity, row)) return "null";
    if (format == "b") return bit(column.data, row) ? "1" : "0";
    if (format == "i") return std::to_string(number<int32_t>(column, row));
    if (format == "u") return value(column, row);
    const bool is_struct = format == "+s";
    std::string text;
    for (int i = 0; is_struct && i < column.child_count; i++)
        text += nested_text(supply, block, child_of(supply, block, column, i), row) + " ";
    if (is_struct) return "{" + text + "}";
    const uint32_t size = format == "+w:2" ? 2 : 0;
    const uint32_t begin = size > 0 ? row * size : static_cast<uint32_t>(column.offsets[row]);
    const uint32_t end = size > 0 ? begin + size : static_cast<uint32_t>(column.offsets[row + 1]);
    const supply_column_t items = child_of(supply, block, column, 0);
    for (uint32_t i = begin; i < end; i++) text += nested_text(supply, block, items, i) + " ";
    return "[" + text + "]";
}

} // namespace

std::string key_of(int64_t id) {
    return "key" + std::string(static_cast<size_t>(id % 8), static_cast<char>('a' + id % 8));
}

std::vector<Column> row_columns(Shape shape, const std::vector<int64_t> &ids) {
    std::vector<Column> columns = {Column::fixed("id", "l", bytes_of(ids))};
    if (shape == Shape::nested) add_nested(columns, ids);
    if (shape == Shape::wide) add_many(columns, ids);
    if (shape != Shape::every) return columns;
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

std::vector<schema_entry> row_schema(Shape shape) { return schema_of(row_columns(shape, {3})); }

std::string row_texts(Shape shape) { return texts_of(row_columns(shape, {3})); }

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
        if (shape == Shape::wide) check_many(columns, i, ids.back());
        if (shape != Shape::nested) continue;
        std::string text;
        for (size_t k = 1; k < columns.size(); k++)
            text += (k > 1 ? " " : "") + nested_text(supply, block, columns[k], i);
        EXPECT_EQ(nested_of(ids.back()), text) << ids.back();
    }
    return ids;
}

} // namespace supply_test
