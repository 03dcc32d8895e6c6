// Results of nested Arrow arrays: with offsets, slices and every layout of lists.
#include "arrow_tree.h"
#include "result_rows.h"

namespace supply_test {
namespace {

using Values = std::vector<std::optional<std::string>>;

class ResultNestedArrowTest : public ResultTest {
  protected:
    Result begin_arrow(const ArrowTree &batch, supply_status_t expected = SUPPLY_OK) {
        supply_result_t *result = nullptr;
        EXPECT_EQ(expected, supply_result_open_arrow(&result, handle.get(), "scores", &batch.schema))
            << supply_result_error(result);
        return Result(result);
    }

    static void write_arrow(const Result &result, const ArrowTree &batch, supply_status_t expected = SUPPLY_OK) {
        EXPECT_EQ(expected, supply_result_write_arrow(result.get(), &batch.schema, &batch.array))
            << supply_result_error(result.get());
    }

    ResultFile written(const ArrowTree &batch) {
        Result result = begin_arrow(batch);
        write_arrow(result, batch);
        seal(result);
        return read_result(path());
    }

    void expect_refused(const ArrowTree &batch, std::initializer_list<const char *> words) {
        Result result = begin_arrow(batch);
        write_arrow(result, batch, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
    }

    Handle handle = open();
    const int32_t numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const uint8_t third_is_null[1] = {0xFB};
};

TEST_F(ResultNestedArrowTest, ListsOfEachLayoutAreWrittenAsSlices) {
    const int32_t ends[] = {0, 1, 3, 3, 6};
    const int64_t large_ends[] = {1, 2, 4, 4, 6};
    for (const int64_t first : {0, 1}) {
        ArrowTree batch("", "+s", 4);
        batch.slice(first, 4 - first);
        batch.add("list", "+l", 4, std::vector<const void *>{nullptr, ends})
            .add("item", "i", 8, std::vector<const void *>{third_is_null, numbers})
            .slice(1, 7);
        batch.add("large", "+L", 4, std::vector<const void *>{third_is_null, large_ends})
            .add("item", "i", 8, std::vector<const void *>{nullptr, numbers})
            .slice(1, 7);
        const ResultFile read = written(batch);
        EXPECT_EQ("+l", read.columns[1].format);
        const Values list = {"[1]", "[null, 3]", "[]", "[4, 5, 6]"}, large = {"[2]", "[3, 4]", std::nullopt, "[5, 6]"};
        EXPECT_EQ(Values(list.begin() + first, list.end()), read.columns[0].values);
        EXPECT_EQ(Values(large.begin() + first, large.end()), read.columns[1].values);
        handle.reset();
        handle = open();
    }
}

TEST_F(ResultNestedArrowTest, StructsHaveTheOffsetsOfTheirFields) {
    const int64_t text_ends[] = {0, 1, 2, 4, 4};
    ArrowTree batch("", "+s", 2);
    batch.slice(1, 2);
    ArrowTree &point = batch.add("point", "+s", 3, std::vector<const void *>{third_is_null});
    point.slice(1, 3);
    point.add("x", "i", 7, std::vector<const void *>{nullptr, numbers}).slice(1, 7);
    point.add("name", "U", 4, std::vector<const void *>{nullptr, text_ends, "abcd"});
    EXPECT_EQ((Values{std::nullopt, "{x: 4, name: }"}), written(batch).columns[0].values);
}

TEST_F(ResultNestedArrowTest, FieldsAreFoundByTheirNames) {
    ArrowTree batch("", "+s", 2), swapped("", "+s", 2);
    ArrowTree &point = batch.add("point", "+s", 2), &other = swapped.add("point", "+s", 2);
    point.add("x", "i", 2, std::vector<const void *>{nullptr, numbers});
    point.add("y", "i", 2, std::vector<const void *>{nullptr, numbers + 2});
    other.add("y", "i", 2, std::vector<const void *>{nullptr, numbers + 4});
    other.add("x", "i", 2, std::vector<const void *>{nullptr, numbers + 6});
    Result result = begin_arrow(batch);
    write_arrow(result, swapped);
    seal(result);
    EXPECT_EQ((Values{"{x: 6, y: 4}", "{x: 7, y: 5}"}), read_result(path()).columns[0].values);
}

TEST_F(ResultNestedArrowTest, MapsAreWrittenWithAnyNames) {
    const int32_t ends[] = {0, 2, 3}, key_ends[] = {0, 1, 2, 3};
    ArrowTree batch("", "+s", 2);
    ArrowTree &entries = batch.add("map", "+m", 2, std::vector<const void *>{nullptr, ends}).add("any", "+s", 3);
    entries.add("k", "u", 3, std::vector<const void *>{nullptr, key_ends, "abc"});
    entries.add("v", "i", 3, std::vector<const void *>{third_is_null, numbers});
    EXPECT_EQ((Values{"[{k: a, v: 0}, {k: b, v: 1}]", "[{k: c, v: null}]"}), written(batch).columns[0].values);
}

TEST_F(ResultNestedArrowTest, ListsOfOneLengthMayHaveNulls) {
    ArrowTree batch("", "+s", 2);
    batch.slice(1, 2);
    batch.add("pairs", "+w:2", 3).add("item", "i", 6, std::vector<const void *>{third_is_null, numbers});
    ArrowTree &matrix = batch.add("matrix", "+w:1", 3);
    matrix.add("item", "+w:2", 3).add("item", "i", 6, std::vector<const void *>{nullptr, numbers}).slice(1, 6);
    const ResultFile read = written(batch);
    EXPECT_EQ((Values{"[null, 3]", "[4, 5]"}), read.columns[0].values);
    EXPECT_EQ((Values{"[0300000004000000]", "[0500000006000000]"}), read.columns[1].values);
}

TEST_F(ResultNestedArrowTest, ListsOfNumbersMayBecomeEitherKind) {
    ArrowTree plain("", "+s", 2), nullable("", "+s", 2);
    plain.add("pairs", "+w:2", 2).add("item", "i", 4, std::vector<const void *>{nullptr, numbers});
    nullable.add("pairs", "+w:2", 2).add("item", "i", 4, std::vector<const void *>{nullptr, numbers}).nullable();
    Result result = begin_arrow(plain);
    write_arrow(result, nullable);
    seal(result);
    EXPECT_EQ(bytes_of<int32_t>({2, 3}), read_result(path()).columns[0].values.at(1));
    handle.reset();
    handle = open();
    result = begin_arrow(nullable);
    write_arrow(result, plain);
    seal(result);
    EXPECT_EQ("[2, 3]", read_result(path()).columns[0].values.at(1));
}

TEST_F(ResultNestedArrowTest, OtherTypesAreWritten) {
    const int64_t times[] = {1, -2};
    ArrowTree batch("", "+s", 2);
    batch.add("half", "e", 2, std::vector<const void *>{nullptr, numbers});
    batch.add("duration", "tDu", 2, std::vector<const void *>{nullptr, times});
    batch.add("time", "ttn", 2, std::vector<const void *>{nullptr, times});
    batch.add("months", "tiM", 2, std::vector<const void *>{nullptr, numbers});
    const ResultFile read = written(batch);
    EXPECT_EQ(2u, read.columns[0].values.at(0)->size());
    EXPECT_EQ(bytes_of<int64_t>({-2}), read.columns[1].values.at(1));
    EXPECT_EQ(bytes_of<int64_t>({1}), read.columns[2].values.at(0));
    EXPECT_EQ(bytes_of<int32_t>({1}), read.columns[3].values.at(1));
}

TEST_F(ResultNestedArrowTest, TextsOfEveryLayoutMayStandInLists) {
    struct View {
        int32_t bytes;
        char value[12];
    } const views[] = {{1, {'a'}}, {2, {'b', 'c'}}, {-1, {}}, {1, {'d'}}};
    const int64_t sizes[] = {0};
    const int32_t ends[] = {1, 3, 4};
    ArrowTree batch("", "+s", 2);
    batch.add("list", "+l", 2, std::vector<const void *>{nullptr, ends})
        .add("item", "vu", 4, std::vector<const void *>{third_is_null, views, nullptr, sizes});
    EXPECT_EQ((Values{"[bc, null]", "[d]"}), written(batch).columns[0].values);
}

TEST_F(ResultNestedArrowTest, AnExportedBlockIsWrittenWholeOrAsASlice) {
    const std::vector<Column> columns = {
        Column::parent("tokens", "+l", 1, {0, 2, 2, 5}),
        Column::int32("item", {1, 2, 3, 4, 5}),
        Column::parent("point", "+s", 2),
        Column::variable("name", "u", {"a", "", "cd"}),
        Column::int32("x", {7, 8, 9}),
        Column::parent("pairs", "+w:2", 1),
        Column::bits("item", {true, false, true, true, false, true}),
    };
    Task task(files);
    task.supply_all(columns, 3);
    supply_block_t block = next(handle);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);
    supply_result_t *opened = nullptr;
    ASSERT_EQ(SUPPLY_OK, supply_result_open_arrow(&opened, handle.get(), "scores", &schema))
        << supply_result_error(opened);
    Result result(opened);
    EXPECT_EQ(SUPPLY_OK, supply_result_write_arrow(opened, &schema, &array)) << supply_result_error(opened);
    array.offset = 2;
    array.length = 1;
    EXPECT_EQ(SUPPLY_OK, supply_result_write_arrow(opened, &schema, &array)) << supply_result_error(opened);
    array.release(&array);
    schema.release(&schema);
    seal(result);
    const ResultFile read = read_result(path());
    EXPECT_EQ((Values{"[1, 2]", "[]", "[3, 4, 5]", "[3, 4, 5]"}), read.columns[0].values);
    EXPECT_EQ((Values{"{name: a, x: 7}", "{name: , x: 8}", "{name: cd, x: 9}", "{name: cd, x: 9}"}),
              read.columns[1].values);
    EXPECT_EQ((Values{"[true, false]", "[true, true]", "[false, true]", "[false, true]"}), read.columns[2].values);
}

TEST_F(ResultNestedArrowTest, ArraysThatAreNotValidAreRefusedByPath) {
    using Offsets = std::vector<int32_t>;
    for (const Offsets &ends : {Offsets{0, 5, 9}, Offsets{0, 3, 2}, Offsets{-1, 0, 1}, Offsets{3, 2, 1},
                                Offsets{0, INT32_MIN, 2}, Offsets{0, 1, INT32_MAX}}) {
        ArrowTree batch("", "+s", 2);
        batch.add("list", "+l", 2, std::vector<const void *>{nullptr, ends.data()})
            .add("item", "+l", 4, std::vector<const void *>{nullptr, numbers})
            .add("item", "i", 8, std::vector<const void *>{nullptr, numbers});
        expect_refused(batch, {"'list"});
    }
    for (const std::vector<int64_t> &ends : {std::vector<int64_t>{0, 5, 9}, std::vector<int64_t>{0, 1, 1LL << 40},
                                             std::vector<int64_t>{-1, 1, 2}, std::vector<int64_t>{9, 9, 9}}) {
        ArrowTree batch("", "+s", 2);
        batch.add("list", "+L", 2, std::vector<const void *>{nullptr, ends.data()})
            .add("item", "i", 8, std::vector<const void *>{nullptr, numbers});
        expect_refused(batch, {"'list"});
    }
    ArrowTree few("", "+s", 2), fields("", "+s", 2), bare("", "+s", 2);
    few.add("pairs", "+w:2", 2).add("item", "u", 3, std::vector<const void *>{nullptr, numbers, ""});
    expect_refused(few, {"'pairs.item'", "no valid Arrow array"});
    fields.add("point", "+s", 2).add("x", "i", 1, std::vector<const void *>{nullptr, numbers});
    expect_refused(fields, {"'point.x'", "no valid Arrow array"});
    bare.add("list", "+l", 2, std::vector<const void *>{nullptr, nullptr})
        .add("item", "i", 8, std::vector<const void *>{nullptr, numbers});
    expect_refused(bare, {"'list'", "no valid Arrow array"});
    bare.child(0).array.n_children = 0;
    expect_refused(bare, {"'list'", "no valid Arrow array"});
}

TEST_F(ResultNestedArrowTest, OtherTypesWithinAreRefusedByPath) {
    const int32_t ends[] = {0, 1, 2};
    ArrowTree good("", "+s", 2), other("", "+s", 2), encoded("", "+s", 2), renamed("", "+s", 2);
    for (ArrowTree *batch : {&good, &other, &encoded, &renamed}) {
        batch->add("list", "+l", 2, std::vector<const void *>{nullptr, ends})
            .add("item", batch == &other ? "I" : "i", 8, std::vector<const void *>{nullptr, numbers});
        batch->add("point", "+s", 2)
            .add(batch == &renamed ? "y" : "x", "i", 8, std::vector<const void *>{nullptr, numbers});
    }
    encoded.child(0).child(0).schema.dictionary = &good.schema;
    Result result = begin_arrow(good);
    const auto expect_not_written = [&](const ArrowTree &batch, std::initializer_list<const char *> words) {
        write_arrow(result, batch, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
    };
    expect_not_written(other, {"'list.item'", "'i'", "'I'", "cast it"});
    expect_not_written(encoded, {"'list.item'", "cast it"});
    expect_not_written(renamed, {"'point.x' is missing"});
    EXPECT_TRUE(says(supply_result_error(begin_arrow(encoded, SUPPLY_ERROR_ARGUMENT).get()), {"'item'", "dictionary"}));
}

TEST_F(ResultNestedArrowTest, NumbersOfAListMayNotBeIndicesOfADictionary) {
    ArrowTree good("", "+s", 2), encoded("", "+s", 2);
    for (ArrowTree *batch : {&good, &encoded}) {
        ArrowTree &point = batch->add("point", "+s", 2);
        point.add("pairs", "+w:2", 2).add("item", "i", 4, std::vector<const void *>{nullptr, numbers});
    }
    encoded.child(0).child(0).child(0).schema.dictionary = &good.schema;
    Result result = begin_arrow(good);
    write_arrow(result, encoded, SUPPLY_ERROR_ARGUMENT);
    EXPECT_TRUE(says(supply_result_error(result.get()), {"'point.pairs'", "of a dictionary", "cast it"}));
    EXPECT_TRUE(says(supply_result_error(begin_arrow(encoded, SUPPLY_ERROR_ARGUMENT).get()), {"'item'", "dictionary"}));
}

TEST_F(ResultNestedArrowTest, NestingHasALimit) {
    ArrowTree batch("", "+s", 1);
    ArrowTree *inner = &batch;
    for (int i = 0; i < 60; i++) inner = &inner->add("deep", "+s", 1);
    inner->add("x", "i", 1, std::vector<const void *>{nullptr, numbers});
    EXPECT_TRUE(says(supply_result_error(begin_arrow(batch, SUPPLY_ERROR_ARGUMENT).get()), {"'deep'", "too deep"}));
}

} // namespace
} // namespace supply_test
