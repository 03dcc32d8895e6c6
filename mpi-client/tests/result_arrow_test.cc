// Results from Arrow's structures, in the layouts that Arrow libraries use.
#include <cstring>
#include <deque>

#include "result_rows.h"

namespace supply_test {
namespace {

/** A record batch that a test builds by hand. */
class Batch {
  public:
    explicit Batch(int64_t rows) {
        schema.format = "+s";
        array.length = rows;
        array.n_buffers = 1;
        array.buffers = &no_validity;
    }
    Batch(const Batch &) = delete;
    Batch &operator=(const Batch &) = delete;

    /** Adds a column of `rows` rows, in buffers that the test keeps. */
    ArrowArray &add(const char *name, const char *format, std::vector<const void *> buffers, int64_t flags = 0) {
        Child &child = children.emplace_back();
        child.buffers = std::move(buffers);
        child.schema.name = name;
        child.schema.format = format;
        child.schema.flags = flags;
        child.array.length = array.length;
        child.array.null_count = child.buffers[0] == nullptr ? 0 : -1;
        child.array.n_buffers = static_cast<int64_t>(child.buffers.size());
        child.array.buffers = child.buffers.data();
        schemas.push_back(&child.schema);
        arrays.push_back(&child.array);
        schema.n_children = array.n_children = static_cast<int64_t>(schemas.size());
        schema.children = schemas.data();
        array.children = arrays.data();
        return child.array;
    }

    /** A list of numbers. */
    ArrowArray &add_list(const char *name, const char *format, const char *number, int64_t numbers,
                         std::vector<const void *> buffers) {
        ArrowArray &list = add(name, format, {nullptr});
        Child &parent = children.back(), &values = children.emplace_back();
        values.buffers = std::move(buffers);
        values.schema.name = "item";
        values.schema.format = number;
        values.array.length = numbers;
        values.array.null_count = values.buffers[0] == nullptr ? 0 : -1;
        values.array.n_buffers = 2;
        values.array.buffers = values.buffers.data();
        values.parent_schema = &values.schema;
        values.parent_array = &values.array;
        parent.schema.n_children = list.n_children = 1;
        parent.schema.children = &values.parent_schema;
        list.children = &values.parent_array;
        return values.array;
    }

    ArrowSchema schema = {};
    ArrowArray array = {};

  private:
    struct Child {
        ArrowSchema schema = {};
        ArrowArray array = {};
        std::vector<const void *> buffers;
        ArrowSchema *parent_schema = nullptr;
        ArrowArray *parent_array = nullptr;
    };
    const void *no_validity = nullptr;
    std::deque<Child> children;
    std::vector<ArrowSchema *> schemas;
    std::vector<ArrowArray *> arrays;
};

/** A view of Arrow: its value, or where that is. */
struct View {
    int32_t bytes;
    char prefix[4];
    int32_t buffer, offset;
};

View short_view(const std::string &value) {
    View view = {static_cast<int32_t>(value.size()), {}, 0, 0};
    memcpy(view.prefix, value.data(), value.size());
    return view;
}

class ResultArrowTest : public ResultTest {
  protected:
    Result begin_arrow(const ArrowSchema *schema, supply_status_t expected = SUPPLY_OK) {
        supply_result_t *result = nullptr;
        EXPECT_EQ(expected, supply_result_open_arrow(&result, handle.get(), "scores", schema))
            << supply_result_error(result);
        return Result(result);
    }
    static void write_arrow(const Result &result, const Batch &batch, supply_status_t expected = SUPPLY_OK) {
        EXPECT_EQ(expected, supply_result_write_arrow(result.get(), &batch.schema, &batch.array))
            << supply_result_error(result.get());
    }
    ResultFile written(const Batch &batch) {
        Result result = begin_arrow(&batch.schema);
        write_arrow(result, batch);
        seal(result);
        return read_result(path());
    }
    static void expect_refused(const Result &result, const Batch &batch, std::initializer_list<const char *> words) {
        write_arrow(result, batch, SUPPLY_ERROR_ARGUMENT);
        EXPECT_TRUE(says(supply_result_error(result.get()), words));
    }

    Handle handle = open();
    const int32_t ids[4] = {1, 2, 3, 4};
    const uint8_t third_is_null[1] = {0x0B};
};

using Values = std::vector<std::optional<std::string>>;

TEST_F(ResultArrowTest, AnExportedBlockIsWrittenWholeOrAsASlice) {
    Task task(files);
    supply_datums(task, 0, 20);
    supply_block_t block = next(handle);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);
    Result result = begin_arrow(&schema);
    EXPECT_EQ(SUPPLY_OK, supply_result_write_arrow(result.get(), &schema, &array));
    array.offset = 13;
    array.length = 7;
    EXPECT_EQ(SUPPLY_OK, supply_result_write_arrow(result.get(), &schema, &array));
    array.release(&array);
    schema.release(&schema);
    release(handle, block);
    seal(result);
    const ResultFile read = read_result(path());
    ASSERT_EQ(27u, read.header.epoch_elements);
    for (uint64_t i = 0; i < 27; i++) {
        const Element element = numbered_element(i < 20 ? i : i - 20 + 13);
        EXPECT_EQ(element.key, read.columns[0].values.at(i));
        EXPECT_EQ(std::string(1, element.encoded ? '\1' : '\0'), read.columns[5].values.at(i));
        EXPECT_EQ(element.data, read.columns[6].values.at(i));
    }
}

TEST_F(ResultArrowTest, TextsWithLargeOffsetsAndAsViewsBecomeTexts) {
    const int64_t ends[] = {0, 3, 3, 5, 6};
    const std::string data = "onefour!", far = "0123456789a text of more than twelve bytes";
    const View views[] = {short_view("inline"), {32, {'a', ' ', 't', 'e'}, 0, 10}, {-1, {}, 9, 9}, short_view("")};
    const int64_t sizes[] = {static_cast<int64_t>(far.size())};
    for (const int64_t offset : {0, 1}) {
        Batch batch(4 - offset);
        batch.array.offset = offset;
        batch.add("large", "U", {nullptr, ends, data.data()});
        batch.add("large bytes", "Z", {third_is_null, ends, data.data()}, ARROW_FLAG_NULLABLE);
        batch.add("view", "vu", {third_is_null, views, far.data(), sizes}, ARROW_FLAG_NULLABLE);
        batch.add("view bytes", "vz", {third_is_null, views, far.data(), sizes}, ARROW_FLAG_NULLABLE);
        for (int64_t i = 0; i < 4; i++) batch.array.children[i]->length = 4;
        const ResultFile read = written(batch);
        EXPECT_EQ("u", read.columns[0].format);
        EXPECT_EQ("z", read.columns[1].format);
        EXPECT_EQ("u", read.columns[2].format);
        EXPECT_EQ("z", read.columns[3].format);
        const Values large = {"one", "", "fo", "u"}, with_null = {"one", "", std::nullopt, "u"},
                     view = {"inline", "a text of more than twelve bytes", std::nullopt, ""};
        EXPECT_EQ(Values(large.begin() + offset, large.end()), read.columns[0].values);
        EXPECT_EQ(Values(with_null.begin() + offset, with_null.end()), read.columns[1].values);
        EXPECT_EQ(Values(view.begin() + offset, view.end()), read.columns[2].values);
        EXPECT_EQ(view.back(), read.columns[3].values.back());
        handle.reset();
        handle = open();
    }
}

TEST_F(ResultArrowTest, ListsAreWrittenWithTheOffsetsOfTheirNumbers) {
    const float numbers[] = {-1, 0, 1, 2, 3, 4, 5, 6, 7};
    Batch batch(4);
    batch.add_list("vector", "+w:2", "f", 8, {nullptr, numbers}).offset = 1;
    batch.array.children[0]->offset = 1;
    batch.array.children[0]->length = 3;
    batch.array.length = 3;
    const ResultFile read = written(batch);
    EXPECT_EQ((Values{bytes_of<float>({2, 3}), bytes_of<float>({4, 5}), bytes_of<float>({6, 7})}),
              read.columns[0].values);
}

TEST_F(ResultArrowTest, ColumnsAreFoundByTheirNames) {
    const int32_t others[] = {5, 6, 7, 8};
    Batch batch(4), swapped(4);
    batch.add("a", "i", {nullptr, ids});
    batch.add("b", "i", {nullptr, others});
    swapped.add("b", "i", {nullptr, others});
    swapped.add("a", "i", {nullptr, ids});
    Result result = begin_arrow(&batch.schema);
    write_arrow(result, swapped);
    seal(result);
    EXPECT_EQ(bytes_of<int32_t>({5}), read_result(path()).columns[1].values[0]);
}

TEST_F(ResultArrowTest, BatchesThatDoNotFitAreRefusedByColumn) {
    const float numbers[8] = {};
    const uint8_t sixth_is_null[] = {0xDF};
    Batch good(4), missing(4), more(4), other(4), hole(4), null_id(4), encoded(4), short_one(4);
    for (Batch *batch : {&good, &missing, &more, &other, &hole, &null_id, &encoded, &short_one}) {
        if (batch != &missing)
            batch->add("id", batch == &other ? "I" : "i", {batch == &null_id ? third_is_null : nullptr, ids});
        batch->add_list("vector", "+w:2", "f", 8, {batch == &hole ? sixth_is_null : nullptr, numbers});
    }
    more.add("more", "i", {nullptr, ids});
    encoded.schema.children[0]->dictionary = &good.schema;
    short_one.array.children[0]->length = 3;
    Result result = begin_arrow(&good.schema);
    write_arrow(result, good);
    expect_refused(result, missing, {"column 'id' is missing"});
    expect_refused(result, more, {"no column 'more'", "leave it out"});
    expect_refused(result, other, {"column 'id'", "'i'", "'I'", "cast it"});
    expect_refused(result, hole, {"column 'vector'", "list with a null"});
    expect_refused(result, null_id, {"column 'id' is not nullable", "row 2"});
    expect_refused(result, encoded, {"column 'id'", "encoded with a dictionary", "cast it"});
    other.schema.children[0]->format = "n";
    expect_refused(result, other, {"column 'id'", "has only nulls", "cast it"});
    expect_refused(result, short_one, {"column 'id'", "no valid Arrow array"});
    good.schema.format = "i";
    expect_refused(result, good, {"no record batch", "'i'"});
    EXPECT_EQ(4u, supply_result_rows(result.get()));
    seal(result);
}

// The row counts from the beginning of the slice, as in the other messages.
TEST_F(ResultArrowTest, ARowThatIsNullAsAWholeIsNamed) {
    Batch batch(4);
    batch.add("a", "i", {nullptr, ids});
    Result result = begin_arrow(&batch.schema);
    batch.array.buffers[0] = third_is_null;
    batch.array.null_count = -1;
    expect_refused(result, batch, {"row 2 of these is null as a whole", "leave it out"});
    batch.array.offset = 1;
    batch.array.length = 3;
    expect_refused(result, batch, {"row 1 of these is null as a whole"});
    batch.array.length = 1;
    write_arrow(result, batch);
    EXPECT_EQ(1u, supply_result_rows(result.get()));
    seal(result);
}

TEST_F(ResultArrowTest, CodesOfADictionaryAreNoInstants) {
    const int64_t instants[4] = {};
    Batch batch(4);
    batch.add("at", "tsu:UTC", {nullptr, instants});
    Result result = begin_arrow(&batch.schema);
    write_arrow(result, batch);
    batch.schema.children[0]->dictionary = &batch.schema;
    expect_refused(result, batch, {"column 'at'", "encoded with a dictionary"});
}

TEST_F(ResultArrowTest, ViewsAndOffsetsOutsideTheirBuffersAreRefused) {
    const std::string far = "a text of more than twelve bytes";
    const int64_t sizes[] = {static_cast<int64_t>(far.size())}, decreasing[] = {0, 2, 1, 2, 2};
    for (const View &view :
         {View{20, {}, 1, 0}, View{20, {}, -1, 0}, View{20, {}, 0, 20}, View{20, {}, 0, -1}, View{-1, {}, 0, 0}}) {
        const View views[] = {view};
        Batch batch(1);
        batch.add("text", "vu", {nullptr, views, far.data(), sizes});
        expect_refused(begin_arrow(&batch.schema), batch, {"column 'text'", "outside its buffers"});
    }
    Batch batch(4);
    batch.add("text", "U", {nullptr, decreasing, far.data()});
    expect_refused(begin_arrow(&batch.schema), batch, {"column 'text'", "outside its buffers"});
}

// Each would be read outside of its memory.
TEST_F(ResultArrowTest, ArraysWithoutBuffersOrWithWrongLengthsAreRefused) {
    const int64_t large[5] = {}, sizes[1] = {};
    for (const char *format : {"i", "b", "u", "z", "U", "Z", "vu", "vz"}) {
        Batch batch(4);
        ArrowArray &column = batch.add("a", format, {nullptr, large, "", sizes});
        if (strchr("uzUZ", format[0]) != nullptr) column.n_buffers = 3;
        if (strchr("ib", format[0]) != nullptr) column.n_buffers = 2;
        Result result = begin_arrow(&batch.schema);
        const auto refuses = [&](int64_t &number, int64_t wrong) {
            const int64_t right = number;
            number = wrong;
            EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write_arrow(result.get(), &batch.schema, &batch.array))
                << format << ": " << wrong;
            number = right;
        };
        for (ArrowArray *array : {&batch.array, &column})
            for (const int64_t wrong : {INT64_C(-1), INT64_MAX, INT64_MIN}) {
                refuses(array->length, wrong == INT64_MAX && array == &column ? -2 : wrong);
                refuses(array->offset, wrong);
            }
        refuses(column.n_buffers, 1);
        refuses(column.n_buffers, -1);
        const void **const buffers = column.buffers;
        ArrowArray **children = nullptr;
        column.buffers = nullptr;
        expect_refused(result, batch, {"column 'a'"});
        column.buffers = buffers;
        std::swap(buffers[1], batch.array.buffers[0]);
        expect_refused(result, batch, {"column 'a'"});
        std::swap(buffers[1], batch.array.buffers[0]);
        std::swap(batch.array.children, children);
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write_arrow(result.get(), &batch.schema, &batch.array));
        std::swap(batch.array.children, children);
        batch.schema.children[0]->format = nullptr;
        EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_result_write_arrow(result.get(), &batch.schema, &batch.array));
        begin_arrow(&batch.schema, SUPPLY_ERROR_ARGUMENT);
    }
}

// The sizes of the buffers of views are the last buffer, and each view has one of them.
TEST_F(ResultArrowTest, ViewsWithoutTheirBuffersAreRefused) {
    const View views[] = {{20, {}, 0, 0}};
    const int64_t sizes[] = {20}, negative[] = {-20};
    for (const std::vector<const void *> &buffers : std::vector<std::vector<const void *>>{
             {nullptr, views, nullptr, sizes}, {nullptr, views, "", nullptr}, {nullptr, views, "", negative}}) {
        Batch batch(1);
        batch.add("text", "vu", buffers);
        expect_refused(begin_arrow(&batch.schema), batch, {"column 'text'"});
    }
}

TEST_F(ResultArrowTest, SchemasOfOtherTypesAreRefused) {
    Batch batch(4);
    batch.add("nanoseconds", "tsn:", {nullptr, ids});
    EXPECT_TRUE(says(supply_result_error(begin_arrow(&batch.schema, SUPPLY_ERROR_ARGUMENT).get()),
                     {"column 'nanoseconds'", "tsn:", "microseconds"}));
    EXPECT_TRUE(says(supply_result_error(begin_arrow(nullptr, SUPPLY_ERROR_ARGUMENT).get()), {"NULL"}));
    batch.schema.children[0]->dictionary = &batch.schema;
    EXPECT_TRUE(says(supply_result_error(begin_arrow(&batch.schema, SUPPLY_ERROR_ARGUMENT).get()), {"dictionary"}));
}

} // namespace
} // namespace supply_test
