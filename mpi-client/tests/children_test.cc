// Columns within columns: what a rank reads of them, and what it refuses.
#include <cstring>

#include "rank.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

class ChildrenTest : public RankTest {
  protected:
    /* Three elements: a list, a struct of a text and a number, a map, a list of one length of a list. */
    static std::vector<Column> columns() {
        Column tokens = Column::int32("item", {1, 2, 3, 4, 5});
        tokens.validity = "\x1d";
        tokens.null_count = 1;
        return {
            Column::parent("tokens", "+l", 1, {0, 2, 2, 5}),
            tokens,
            Column::parent("point", "+s", 2),
            Column::variable("name", "u", {"a", "", "cd"}),
            Column::int32("x", {7, 8, 9}),
            Column::parent("counts", "+m", 1, {0, 1, 1, 2}),
            Column::parent("entries", "+s", 2),
            Column::variable("key", "u", {"k", "l"}),
            Column::int32("value", {1, 2}),
            Column::parent("pairs", "+w:2", 1),
            Column::parent("item", "+l", 1, {0, 1, 2, 3, 3, 4, 6}),
            Column::int32("item", {1, 2, 3, 4, 5, 6}),
            Column::int32("last", {1, 2, 3}),
        };
    }

    supply_status_t receive(Task &task, const std::vector<Column> &columns, const BlockImage &image) {
        task.write_schema(schema_of(columns));
        task.supply(image);
        return supply_next(handle.get(), &block);
    }

    supply_column_t child(const supply_column_t &of, int number) {
        supply_column_t found = {};
        EXPECT_STATUS(SUPPLY_OK, supply_column_child(handle.get(), &block, &of, number, &found), handle);
        return found;
    }

    static std::vector<int32_t> numbers(const supply_column_t &column) {
        const auto *data = static_cast<const int32_t *>(column.data);
        return {data, data + column.element_count};
    }

    static std::vector<int32_t> offsets(const supply_column_t &column) {
        return {column.offsets, column.offsets + column.element_count + 1};
    }

    /* That the block, or its schema, is refused with these words. */
    void expect_refused(const std::vector<Column> &columns, const BlockImage &image,
                        std::initializer_list<const char *> words) {
        Task task(files);
        ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, receive(task, columns, image), handle);
        EXPECT_TRUE(says(supply_error(handle.get()), words));
    }

    Handle handle = open();
    supply_block_t block = {};
};

TEST_F(ChildrenTest, EachIsReadInPlace) {
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, columns(), BlockImage(columns(), 3)), handle);
    EXPECT_EQ(5, block.column_count);
    EXPECT_EQ(5, supply_column_count(handle.get()));
    EXPECT_EQ(2, supply_column_index(handle.get(), "counts"));
    EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_column_index(handle.get(), "item"));
    supply_column_t column = {};

    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 0, &column), handle);
    EXPECT_STREQ("+l", column.format);
    EXPECT_STREQ("i", column.child_format);
    EXPECT_EQ(1, column.child_count);
    EXPECT_EQ((std::vector<int32_t>{0, 2, 2, 5}), offsets(column));
    const supply_column_t tokens = child(column, 0);
    EXPECT_EQ(column.data, tokens.data);
    EXPECT_EQ(1u, tokens.null_count);
    EXPECT_EQ(0x1d, tokens.validity[0]);
    EXPECT_EQ((std::vector<int32_t>{1, 2, 3, 4, 5}), numbers(tokens));
    const void *data;
    size_t bytes;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&column, 0, &data, &bytes));

    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 1, &column), handle);
    EXPECT_EQ(2, column.child_count);
    EXPECT_EQ((std::vector<int32_t>{7, 8, 9}), numbers(child(column, 1)));
    const supply_column_t name = child(column, 0);
    ASSERT_EQ(SUPPLY_OK, supply_value(&name, 2, &data, &bytes));
    EXPECT_EQ("cd", std::string(static_cast<const char *>(data), bytes));

    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 2, &column), handle);
    EXPECT_EQ((std::vector<int32_t>{1, 2}), numbers(child(child(column, 0), 1)));

    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 3, &column), handle);
    const supply_column_t inner = child(column, 0);
    EXPECT_EQ(6u, inner.element_count);
    EXPECT_EQ((std::vector<int32_t>{0, 1, 2, 3, 3, 4, 6}), offsets(inner));
    EXPECT_EQ(6u, child(inner, 0).element_count);

    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 4, &column), handle);
    EXPECT_EQ((std::vector<int32_t>{1, 2, 3}), numbers(column));
    EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_column_child(handle.get(), &block, &column, 0, &column));
}

TEST_F(ChildrenTest, FieldsHaveTheirNames) {
    Task task(files);
    task.write_schema(schema_of(columns()));
    supply_field_t field = {}, found = {};
    ASSERT_STATUS(SUPPLY_OK, supply_field(handle.get(), 2, &field), handle);
    EXPECT_STREQ("+m", field.format);
    EXPECT_STREQ("+s", field.child_format);
    ASSERT_STATUS(SUPPLY_OK, supply_field_child(handle.get(), &field, 0, &found), handle);
    EXPECT_EQ(2, found.child_count);
    ASSERT_STATUS(SUPPLY_OK, supply_field_child(handle.get(), &found, 1, &field), handle);
    EXPECT_STREQ("value", field.name);
    EXPECT_EQ(SUPPLY_ERROR_NO_COLUMN, supply_field_child(handle.get(), &found, 2, &field));
}

TEST_F(ChildrenTest, ArrowGetsThemAsNestedArrays) {
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, columns(), BlockImage(columns(), 3)), handle);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);
    ASSERT_EQ(5, schema.n_children);
    ASSERT_EQ(5, array.n_children);
    const ArrowSchema &map = *schema.children[2];
    EXPECT_STREQ("+m", map.format);
    EXPECT_STREQ("value", map.children[0]->children[1]->name);
    const ArrowArray &counts = *array.children[2];
    EXPECT_EQ(2, counts.n_buffers);
    EXPECT_EQ(2, static_cast<const int32_t *>(counts.buffers[1])[3]);
    EXPECT_EQ(2, counts.children[0]->length);
    EXPECT_EQ(3, counts.children[0]->children[0]->n_buffers);
    const ArrowArray &pairs = *array.children[3];
    EXPECT_EQ(1, pairs.n_buffers);
    EXPECT_EQ(6, pairs.children[0]->length);
    EXPECT_EQ(6, pairs.children[0]->children[0]->length);
    schema.release(&schema);
    array.release(&array);

    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 0, &schema, &array), handle);
    EXPECT_STREQ("+l", schema.format);
    EXPECT_EQ(1, array.children[0]->null_count);
    schema.release(&schema);
    array.release(&array);
}

TEST_F(ChildrenTest, OffsetsBeyondTheChildAreRefused) {
    BlockImage image(columns(), 3);
    image.offsets(0)[3] = 6;
    expect_refused(columns(), image, {"'item'", "data_bytes"});
}

TEST_F(ChildrenTest, OffsetsOfAChildMustNotDecrease) {
    BlockImage image(columns(), 3);
    image.offsets(10)[2] = 0;
    expect_refused(columns(), image, {"'item'", "never decrease"});
}

TEST_F(ChildrenTest, AParentHasNoData) {
    BlockImage image(columns(), 3);
    image.column(2).data_bytes = 4;
    expect_refused(columns(), image, {"'point'", "data_bytes"});
}

TEST_F(ChildrenTest, AnUnknownParentHidesItsChildren) {
    std::vector<Column> all = columns();
    all[2].format = "+x";
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, all, BlockImage(all, 3)), handle);
    supply_column_t column = {};
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_column(handle.get(), &block, 1, &column));
    ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, 2, &column), handle);
}

TEST_F(ChildrenTest, TheyAreNoColumnsOfADatum) {
    const std::vector<Column> few = {Column::variable("key", "z", {"a"}), Column::int32("label", {1})};
    std::vector<Column> all = few;
    for (int i = 0; i < 5; i++) all.push_back(Column::parent(i == 0 ? "channels" : "deep", "+s", 1));
    all.push_back(Column::int32("x", {1}));
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, all, BlockImage(all, 1)), handle);
    supply_datum_t datum;
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_datum(handle.get(), &block, 0, &datum));
    EXPECT_TRUE(says(supply_error(handle.get()), {"column 'channels' has the format '+s', not 'i'"}));
}

TEST_F(ChildrenTest, AListOfAnUnknownFormatHasNoData) {
    std::vector<Column> all = columns();
    all[1].format = "tdm";
    BlockImage image(all, 3);
    image.column(1).data_offset = 0xFFFFFFC0;
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, all, image), handle);
    supply_column_t column = column_of(handle, block, 0);
    EXPECT_EQ(block.address, column.data);
    EXPECT_EQ(0u, column.data_bytes);
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_column_child(handle.get(), &block, &column, 0, &column));
    EXPECT_TRUE(says(supply_error(handle.get()), {"'item'", "'tdm'"}));
    ArrowArray array;
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_export_arrow(handle.get(), &block, 0, nullptr, &array));
}

class OtherChildrenTest : public ChildrenTest,
                          public ::testing::WithParamInterface<std::tuple<int, size_t, uint32_t>> {};

/* Column `first` of the block has children that its format does not have. */
TEST_P(OtherChildrenTest, TheColumnIsRefusedByName) {
    const auto [column, entry, children] = GetParam();
    std::vector<Column> all = columns();
    all[entry].children = children;
    Task task(files);
    ASSERT_STATUS(SUPPLY_OK, receive(task, all, BlockImage(all, 3)), handle);
    supply_column_t refused = {};
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_column(handle.get(), &block, column, &refused));
}

INSTANTIATE_TEST_SUITE_P(Wrong, OtherChildrenTest,
                         ::testing::Values(std::tuple<int, size_t, uint32_t>(0, 0, 2),
                                           std::tuple<int, size_t, uint32_t>(1, 2, 0),
                                           std::tuple<int, size_t, uint32_t>(2, 5, 2),
                                           std::tuple<int, size_t, uint32_t>(3, 9, 2)));

TEST_F(ChildrenTest, MoreChildrenThanEntriesAreRefused) {
    for (const uint32_t children : {1u, 4000000000u}) {
        std::vector<Column> all = columns();
        all.back().children = children;
        expect_refused(all, BlockImage(all, 3), {"schema_entry.children", "'last'"});
        handle.reset();
        handle = open();
    }
}

TEST_F(ChildrenTest, NestingHasALimit) {
    std::vector<Column> deep(NESTING_MAX + 1, Column::parent("deep", "+s", 1));
    deep.push_back(Column::int32("x", {1}));
    expect_refused(deep, BlockImage(deep, 1), {"too deep"});
}

} // namespace
} // namespace supply_test
