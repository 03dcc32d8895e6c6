// Results of columns within columns: lists, structs and maps by pointer.
#include "result_rows.h"

namespace supply_test {
namespace {

using Values = std::vector<std::optional<std::string>>;

class ResultChildrenTest : public ResultTest {
  protected:
    static void expect_columns(const ResultFile &read) {
        ASSERT_EQ(5u, read.columns.size());
        EXPECT_EQ("+l", read.columns[0].format);
        EXPECT_TRUE(read.columns[0].nullable);
        EXPECT_EQ((Values{"[1, null]", std::nullopt, "[3, 4, 5]"}), read.columns[0].values);
        EXPECT_EQ((Values{"{name: a, x: 7}", "{name: null, x: 8}", std::nullopt}), read.columns[1].values);
        EXPECT_EQ((Values{"[{key: k, value: 1}]", "[]", "[{key: l, value: null}]"}), read.columns[2].values);
        EXPECT_EQ((Values{"[[true], [false]]", "[[true], []]", "[[true], [false, true]]"}), read.columns[3].values);
        EXPECT_EQ(bytes_of<int32_t>({3}), read.columns[4].values.at(2));
    }

    void expect_no_fields(const std::vector<Column> &columns, std::initializer_list<const char *> words) {
        Handle handle = open();
        Result refused = begin(handle, columns, "scores", SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(refused.get()), words));
    }

    /** That these rows are refused, and others are written afterwards. */
    void expect_no_rows(const std::vector<Column> &columns, std::initializer_list<const char *> words) {
        Handle handle = open();
        Result result = begin(handle, nested_columns());
        write(result, columns, 3, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
        write(result, nested_columns(), 3);
        seal(result);
        expect_columns(read_result(path()));
    }
};

TEST_F(ResultChildrenTest, EachIsWritten) { expect_columns(written(nested_columns(), 3)); }

/** Adds a column of a held block and its children. */
void add_columns(supply_t *supply, const supply_block_t &block, const supply_column_t &column,
                 std::vector<supply_column_t> &columns) {
    columns.push_back(column);
    for (int i = 0; i < column.child_count; i++) {
        supply_column_t child;
        ASSERT_EQ(SUPPLY_OK, supply_column_child(supply, &block, &column, i, &child));
        add_columns(supply, block, child, columns);
    }
}

/** The same with fields. */
void add_fields(supply_t *supply, const supply_field_t &field, std::vector<supply_field_t> &fields) {
    fields.push_back(field);
    for (int i = 0; i < field.child_count; i++) {
        supply_field_t child;
        ASSERT_EQ(SUPPLY_OK, supply_field_child(supply, &field, i, &child));
        add_fields(supply, child, fields);
    }
}

TEST_F(ResultChildrenTest, AHeldBlockIsWritten) {
    auto [handle, task] = attached();
    task.supply_all(nested_columns(), 3);
    supply_block_t block = next(handle);
    std::vector<supply_field_t> fields;
    std::vector<supply_column_t> columns;
    for (int i = 0; i < 5; i++) {
        supply_field_t field;
        supply_column_t column;
        ASSERT_STATUS(SUPPLY_OK, supply_field(handle.get(), i, &field), handle);
        ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, i, &column), handle);
        add_fields(handle.get(), field, fields);
        add_columns(handle.get(), block, column, columns);
    }
    supply_result_t *opened = nullptr;
    ASSERT_EQ(SUPPLY_OK,
              supply_result_open(&opened, handle.get(), "scores", fields.data(), static_cast<int>(fields.size())))
        << supply_result_error(opened);
    Result result(opened);
    ASSERT_EQ(SUPPLY_OK, supply_result_write(opened, columns.data(), static_cast<int>(columns.size())))
        << supply_result_error(opened);
    seal(result);
    expect_columns(read_result(path()));
}

TEST_F(ResultChildrenTest, RowsAreCutBetweenBlocks) {
    constexpr int32_t count = 3000;
    std::vector<int32_t> ends = {0}, numbers, inner_ends = {0}, xs;
    std::vector<std::string> names;
    Values lists, points;
    for (int32_t i = 0; i < count; i++) {
        std::string list, inner;
        for (int32_t j = 0; j < i % 7; j++) {
            list += (j > 0 ? ", " : "") + std::to_string(numbers.size());
            numbers.push_back(static_cast<int32_t>(numbers.size()));
        }
        ends.push_back(static_cast<int32_t>(numbers.size()));
        names.push_back(std::string(static_cast<size_t>(i % 5), 'n'));
        xs.push_back(i);
        lists.emplace_back("[" + list + "]");
        points.emplace_back(i % 3 == 0 ? "{names: [" + names.back() + "], x: " + std::to_string(i) + "}"
                                       : "{names: [], x: " + std::to_string(i) + "}");
        inner_ends.push_back(i / 3 + 1);
    }
    std::vector<std::string> thirds;
    for (size_t i = 0; i < names.size(); i += 3) thirds.push_back(names[i]);
    const std::vector<Column> columns = {
        Column::parent("tokens", "+l", 1, ends), Column::int32("item", numbers),
        Column::parent("point", "+s", 2),        Column::parent("names", "+l", 1, inner_ends),
        Column::variable("item", "u", thirds),   Column::int32("x", xs),
    };
    const ResultFile read = written(columns, count);
    EXPECT_GT(read.block_rows.size(), 5u);
    EXPECT_EQ(lists, read.columns[0].values);
    EXPECT_EQ(points, read.columns[1].values);
}

TEST_F(ResultChildrenTest, ListsMayBeEmptyEverywhere) {
    std::vector<Column> columns = {Column::parent("tokens", "+l", 1, {0, 0, 0}), Column::int32("item", {}),
                                   nullable(Column::parent("deep", "+l", 1, {0, 0, 0}), 2, {0, 1}),
                                   Column::parent("item", "+l", 1), Column::variable("item", "u", {})};
    const ResultFile read = written(columns, 2);
    EXPECT_EQ((Values{"[]", "[]"}), read.columns[0].values);
    EXPECT_EQ((Values{std::nullopt, std::nullopt}), read.columns[1].values);
}

TEST_F(ResultChildrenTest, AStructMayHaveOnlyNulls) {
    const ResultFile read = written({Column::parent("point", "+s", 2), nullable(Column::int32("x", {0, 0}), 2, {0, 1}),
                                     nullable(Column::parent("y", "+s", 1), 2, {0, 1}), Column::int32("z", {0, 0})},
                                    2);
    EXPECT_EQ((Values{"{x: null, y: null}", "{x: null, y: null}"}), read.columns[0].values);
}

TEST_F(ResultChildrenTest, AResultMayHaveNoRows) {
    Handle handle = open();
    Result result = begin(handle, nested_columns());
    const std::vector<supply_column_t> none(13);
    EXPECT_EQ(SUPPLY_OK, supply_result_write(result.get(), none.data(), 13)) << supply_result_error(result.get());
    seal(result);
    EXPECT_EQ(5u, read_result(path()).columns.size());
}

TEST_F(ResultChildrenTest, WhatANullHoldsMeansNothing) {
    const ResultFile read = written({nullable(Column::parent("point", "+s", 1), 3, {0, 2}),
                                     Column::parent("list", "+l", 1, {0, 1, 2, 3}), Column::int32("item", {1, 2, 3})},
                                    3);
    EXPECT_EQ((Values{std::nullopt, "{list: [2]}", std::nullopt}), read.columns[0].values);
    // A child that is not nullable may have nulls there.
    Handle handle = open();
    Result result =
        begin(handle, {nullable(Column::parent("point", "+s", 1), 3, {0, 2}), Column::int32("x", {1, 2, 3})}, "other");
    write(result,
          {nullable(Column::parent("point", "+s", 1), 3, {0, 2}), nullable(Column::int32("x", {1, 2, 3}), 3, {2})}, 3);
    write(result,
          {nullable(Column::parent("point", "+s", 1), 3, {0, 2}), nullable(Column::int32("x", {1, 2, 3}), 3, {1})}, 3,
          SUPPLY_ERROR_ARGUMENT);
    EXPECT_TRUE(says(supply_result_error(result.get()), {"'point.x'", "not nullable", "row 1"}));
}

TEST_F(ResultChildrenTest, FieldsWithOtherChildrenAreRefused) {
    const Column x = Column::int32("x", {});
    expect_no_fields({Column::parent("tokens", "+l", 0)}, {"'tokens'", "'+l'", "0 children", "a list has 1"});
    expect_no_fields({Column::parent("tokens", "+l", 2), x, x}, {"'tokens'", "2 children"});
    expect_no_fields({Column::parent("point", "+s", 0)}, {"'point'", "0 children"});
    expect_no_fields({Column::parent("point", "+s", 2), x}, {"'point'", "fewer entries follow"});
    expect_no_fields({Column::parent("map", "+m", 1), x}, {"'map'", "1 children", "keys"});
    expect_no_fields({Column::parent("x", "i", 1), x}, {"'x'", "'i'", "1 children"});
    expect_no_fields({Column::parent("point", "+s", 2), x, x}, {"two columns 'point.x'"});
    expect_no_fields({Column::parent("list", "+l", 1), Column::fixed("item", "vz", "")}, {"'list.item'", "'vz'"});
    std::vector<Column> deep(NESTING_MAX + 1, Column::parent("deep", "+s", 1));
    deep.push_back(x);
    expect_no_fields(deep, {"'deep'", "too deep"});
}

TEST_F(ResultChildrenTest, RowsOfOtherChildrenAreRefusedByPath) {
    std::vector<Column> wrong = nested_columns();
    wrong[0].offsets[2] = 1;
    expect_no_rows(wrong, {"'tokens'", "never decrease"});
    wrong = nested_columns();
    wrong[0].offsets = {};
    expect_no_rows(wrong, {"'tokens'", "no offsets"});
    wrong = nested_columns();
    wrong[10].offsets[0] = -1;
    expect_no_rows(wrong, {"'pairs.item'", "0 or above"});
    wrong = nested_columns();
    wrong[1].values.resize(16);
    expect_no_rows(wrong, {"'tokens.item'", "16 bytes", "needs 20"});
    wrong = nested_columns();
    wrong[7] = nullable(wrong[7], 2, {1});
    expect_no_rows(wrong, {"'counts.entries.key'", "not nullable", "row 1"});
    wrong = nested_columns();
    wrong[4].format = "l";
    expect_no_rows(wrong, {"'point.x'", "'i'", "'l'"});
}

TEST_F(ResultChildrenTest, AChildMustHaveTheRowsOfItsParent) {
    Handle handle = open();
    Result result = begin(handle, nested_columns());
    const std::vector<Column> good = nested_columns();
    const auto expect_refused = [&](size_t index, std::initializer_list<const char *> words) {
        std::vector<supply_column_t> rows = rows_of(good, 3);
        rows[index].element_count--;
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write(result.get(), rows.data(), 13));
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
    };
    expect_refused(1, {"'tokens'", "within its child"});
    expect_refused(4, {"'point.x' has 2 rows", "needs 3"});
    expect_refused(10, {"'pairs.item' has 5 rows", "needs 6"});
    expect_refused(12, {"'last' has 2 rows", "'tokens' has 3"});
    EXPECT_EQ(0u, supply_result_rows(result.get()));
}

TEST_F(ResultChildrenTest, ARowThatIsTooLargeNamesTheChild) {
    Handle handle = open();
    const std::vector<int32_t> many(5000, 1);
    const std::vector<Column> columns = {Column::parent("tokens", "+l", 1, {0, 5000}), Column::int32("item", many)};
    Result result = begin(handle, columns);
    write(result, columns, 1, SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_result_error(result.get()), {"'tokens.item'", "20000 bytes", "block="}));
}

TEST_F(ResultChildrenTest, ChildrenOfListsAndMapsNeedNoNames) {
    const ResultFile read =
        written({Column::parent("map", "+m", 1, {0, 1}), Column::parent("", "+s", 2), Column::int32("", {1}),
                 Column::int32("value", {2}), Column::parent("list", "+l", 1, {0, 1}), Column::int32("", {3})},
                1);
    EXPECT_EQ((Values{"[{key: 1, value: 2}]"}), read.columns[0].values);
    EXPECT_EQ((Values{"[3]"}), read.columns[1].values);
}

} // namespace
} // namespace supply_test
