// Blocks through the Arrow C Data Interface: what the structures hold, and who holds the block.
#include <cstring>
#include <thread>

#include <sys/syscall.h>
#include <unistd.h>

#include "forked.h"
#include "rank.h"
#include "supply_arrow.h"

/* In a thread that sets this, others get far within a release. */
static thread_local bool writes_slowly;

extern "C" ssize_t write(int fd, const void *bytes, size_t count) {
    if (writes_slowly) usleep(100000);
    return syscall(SYS_write, fd, bytes, count);
}

namespace supply_test {
namespace {

class ArrowTest : public RankTest {
  protected:
    void receive(Task &task, const std::vector<Column> &columns, uint32_t element_count) {
        task.supply_all(columns, element_count);
        ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    }

    /** Receives a block of a Datum and exports it; only the array holds it on. */
    ArrowArray receive_and_export(Task &task, uint64_t number) {
        supply_datums(task, number, 1);
        ArrowArray array = {};
        EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
        EXPECT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &array),
                      handle);
        release(handle, block);
        return array;
    }

    static std::string key(const ArrowArray &array) {
        const auto *offsets = static_cast<const int32_t *>(array.children[0]->buffers[1]);
        const auto *data = static_cast<const char *>(array.children[0]->buffers[2]);
        return std::string(data + offsets[0], data + offsets[1]);
    }

    Handle handle = open();
    supply_block_t block = {};
};

TEST_F(ArrowTest, ABlockIsAStructOfItsColumnsInPlace) {
    Column weight = Column::int32("weight", {5, 6, 7});
    weight.validity = "\x05";
    weight.null_count = 1;
    const std::vector<Column> columns = {weight, Column::bits("flag", {true, false, true}),
                                         Column::variable("text", "u", {"a", "", "cd"}),
                                         Column::list("features", "+w:2", "g", std::string(3 * 2 * 8, 'x'))};
    Task task(files);
    receive(task, columns, 3);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);

    EXPECT_STREQ("+s", schema.format);
    ASSERT_EQ(4, schema.n_children);
    EXPECT_EQ(3, array.length);
    EXPECT_EQ(1, array.n_buffers);
    EXPECT_EQ(nullptr, array.buffers[0]);
    ASSERT_EQ(4, array.n_children);
    const int64_t buffers[] = {2, 2, 3, 1};
    for (size_t i = 0; i < columns.size(); i++) {
        supply_column_t column;
        ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, static_cast<int>(i), &column), handle);
        EXPECT_EQ(columns[i].name, schema.children[i]->name);
        EXPECT_EQ(columns[i].format, schema.children[i]->format);
        EXPECT_EQ(i == 0 ? ARROW_FLAG_NULLABLE : 0, schema.children[i]->flags);
        const ArrowArray &child = *array.children[i];
        EXPECT_EQ(3, child.length);
        EXPECT_EQ(i == 0 ? 1 : 0, child.null_count);
        ASSERT_EQ(buffers[i], child.n_buffers);
        EXPECT_EQ(column.validity, child.buffers[0]);
        if (child.n_buffers == 3) {
            EXPECT_NE(column.offsets, child.buffers[1]) << "the task could change the offsets in the mapped file";
            EXPECT_EQ(0, memcmp(column.offsets, child.buffers[1], 4 * sizeof(int32_t)));
        }
        if (child.n_buffers > 1) {
            EXPECT_EQ(column.data, child.buffers[child.n_buffers - 1]);
        }
    }
    ASSERT_EQ(1, schema.children[3]->n_children);
    EXPECT_STREQ("g", schema.children[3]->children[0]->format);
    ASSERT_EQ(1, array.children[3]->n_children);
    EXPECT_EQ(6, array.children[3]->children[0]->length);
    EXPECT_EQ(0, memcmp(array.children[3]->children[0]->buffers[1], "xxxxxxxx", 8));
    array.release(&array);
    schema.release(&schema);
    EXPECT_EQ(nullptr, array.release);
    EXPECT_EQ(nullptr, schema.release);
    EXPECT_EQ(0u, task.released()) << "the program itself still holds the block";
    release(handle, block);
    EXPECT_EQ(1u, task.released());
}

TEST_F(ArrowTest, OneColumnAlone) {
    Task task(files);
    receive(task, {Column::int32("label", {1, 2}), Column::int32("other", {3, 4}), Column::fixed("unknown", "+l", "")},
            2);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 1, &schema, &array), handle);
    EXPECT_STREQ("other", schema.name);
    EXPECT_STREQ("i", schema.format);
    EXPECT_EQ(0, array.n_children);
    EXPECT_EQ(4, static_cast<const int32_t *>(array.buffers[1])[1]);
    array.release(&array);
    schema.release(&schema);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array),
                  handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"'unknown'", "'+l'"}));
}

TEST_F(ArrowTest, TheTaskGetsTheSpaceWhenNobodyHoldsTheBlock) {
    Task task(files);
    ArrowArray first = receive_and_export(task, 0), second = receive_and_export(task, 1);
    EXPECT_EQ(0u, task.released());
    second.release(&second);
    EXPECT_EQ(0u, task.released()) << "in order";
    supply_position_t position;
    char text[SUPPLY_POSITION_TEXT_BYTES];
    supply_position_save(handle.get(), &position);
    supply_position_to_text(&position, text, sizeof text);
    EXPECT_STREQ("position-1:0:0:0:0:0000000000000000", text) << "what is held is not consumed";
    first.release(&first);
    EXPECT_EQ(2u, task.released());
    supply_position_save(handle.get(), &position);
    supply_position_to_text(&position, text, sizeof text);
    EXPECT_STREQ("position-1:0:1:0:2:0000000000000000", text);
}

TEST_F(ArrowTest, EachArrayOfABlockHoldsIt) {
    Task task(files);
    receive(task, {Column::int32("label", {1, 2}), Column::int32("other", {3, 4})}, 2);
    ArrowArray whole, column;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &whole), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 0, nullptr, &column), handle);
    release(handle, block);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_export_arrow(handle.get(), &block, 0, nullptr, &column), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &block), handle);
    column.release(&column);
    EXPECT_EQ(0u, task.released());

    ArrowArray moved = *whole.children[1];
    whole.children[1]->release = nullptr;
    whole.release(&whole);
    EXPECT_EQ(0u, task.released()) << "a child that was moved out is an array of its own";
    EXPECT_EQ(4, static_cast<const int32_t *>(moved.buffers[1])[1]);
    moved.release(&moved);
    EXPECT_EQ(1u, task.released());
}

TEST_F(ArrowTest, HoardedArraysAreAnErrorAndNoHang) {
    Task task(files);
    std::vector<ArrowArray> arrays;
    for (uint64_t number = 0; number < 4; number++) arrays.push_back(receive_and_export(task, number));
    EXPECT_STATUS(SUPPLY_ERROR_ALL_HELD, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"block 0 is still held", "ring="}));
    std::thread releasing([&arrays] {
        for (ArrowArray &array : arrays) array.release(&array);
    });
    releasing.join();
    task.end_of_data(0);
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    task.see_end();
}

TEST_F(ArrowTest, AnArrayOutlivesItsHandle) {
    Task task(files);
    ArrowArray array = receive_and_export(task, 7);
    const std::string before = key(array);
    handle.reset();
    task.requests();
    EXPECT_TRUE(task.rank_has_left());
    EXPECT_EQ(before, key(array)) << "the mapping stays";
    EXPECT_EQ("7", before);
    array.release(&array);
}

TEST_F(ArrowTest, AtTheEndTheTaskIsNotKeptWaitingForAnArray) {
    Task task(files);
    ArrowArray array = receive_and_export(task, 7);
    task.end_of_data(0);
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    std::thread closing([this] { handle.reset(); });
    task.see_end();
    closing.join();
    EXPECT_EQ("7", key(array));
    array.release(&array);
}

TEST_F(ArrowTest, ArraysAreReleasedByOtherThreadsMeanwhile) {
    constexpr uint64_t kBlocks = 2000;
    Task task(files);
    task.write_schema(schema_of(datum_columns({numbered_element(0)})));
    std::thread supplying([&task] {
        for (uint64_t number = 0; number < kBlocks; number++) supply_datums(task, number, 1);
        task.end_of_data(0);
        task.see_end();
    });
    std::vector<std::thread> releasing;
    uint64_t received = 0;
    supply_status_t status = SUPPLY_OK;
    while (status != SUPPLY_END_OF_DATA) {
        status = supply_next(handle.get(), &block);
        if (status == SUPPLY_ERROR_ALL_HELD) {
            std::this_thread::yield();
            continue;
        }
        if (status != SUPPLY_OK) break;
        ArrowArray array;
        ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &array),
                      handle);
        release(handle, block);
        releasing.emplace_back([array]() mutable { array.release(&array); });
        received++;
    }
    EXPECT_STATUS(SUPPLY_END_OF_DATA, status, handle);
    EXPECT_EQ(kBlocks, received);
    for (std::thread &thread : releasing) thread.join();
    handle.reset();
    supplying.join();
}

// The task fills a slot at once when it is released: what comes there must not count as consumed in place of what was.
TEST_F(ArrowTest, AReleaseByAnotherThreadPassesItsBlockAlone) {
    Task task(files);
    std::vector<ArrowArray> arrays;
    supply_position_t expected, position;
    for (uint64_t number = 0; number < 4; number++) {
        arrays.push_back(receive_and_export(task, number));
        if (number == 0) supply_position_after(handle.get(), &block, 1, &expected);
    }
    std::thread releasing([&arrays] {
        writes_slowly = true;
        arrays[0].release(&arrays[0]);
    });
    task.supply(datum_block({numbered_element(4)}), 1);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    releasing.join();
    ASSERT_STATUS(SUPPLY_OK, supply_position_save(handle.get(), &position), handle);
    EXPECT_EQ(0, memcmp(&expected, &position, sizeof position)) << "it is in epoch 1, and blocks of epoch 0 are held";
    for (size_t i = 1; i < arrays.size(); i++) arrays[i].release(&arrays[i]);
}

TEST_F(ArrowTest, AForkedChildReleasesNothing) {
    Task task(files);
    ArrowArray array = receive_and_export(task, 0);
    EXPECT_EQ(0, run_forked([&] {
                  array.release(&array);
                  return 0;
              }));
    EXPECT_EQ(0u, task.released());
    array.release(&array);
    EXPECT_EQ(1u, task.released());
}

TEST_F(ArrowTest, TheSchemaNeedsNoBlock) {
    ArrowSchema schema;
    EXPECT_STATUS(SUPPLY_ERROR_NO_SCHEMA,
                  supply_export_arrow(handle.get(), nullptr, SUPPLY_ALL_COLUMNS, &schema, nullptr), handle);
    Task task(files);
    task.write_schema(schema_of({Column::int32("label", {1}), Column::variable("text", "u", {"a"})}));
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), nullptr, SUPPLY_ALL_COLUMNS, &schema, nullptr), handle);
    ASSERT_EQ(2, schema.n_children);
    EXPECT_STREQ("text", schema.children[1]->name);
    schema.release(&schema);
}

TEST_F(ArrowTest, AConsumerNeverSeesOffsetsThatChangeLater) {
    Task task(files);
    receive(task, {Column::variable("text", "u", {"a", "", "cd"})}, 3);
    supply_column_t column = column_of(handle, block, 0);
    const size_t at = reinterpret_cast<const char *>(column.offsets) -
                      static_cast<const char *>(supply_mapping(handle.get(), nullptr));
    auto *shared = reinterpret_cast<int32_t *>(reinterpret_cast<char *>(&task.header()) + at);
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 0, nullptr, &array), handle);
    shared[1] = 1 << 30;
    EXPECT_EQ(1, static_cast<const int32_t *>(array.buffers[1])[1]);
    array.release(&array);
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_export_arrow(handle.get(), &block, 0, nullptr, &array), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"pair 0", "offsets", "changed while it was held"}));
    shared[1] = 1;
    shared[3] = 1 << 30;
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_export_arrow(handle.get(), &block, 0, nullptr, &array), handle);
}

TEST_F(ArrowTest, AStreamHasTheBlocksOfAnEpoch) {
    ArrowArrayStream stream;
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(handle.get(), &stream), handle);
    Task task(files);
    supply_datums(task, 0, 2);
    ArrowSchema schema;
    ASSERT_EQ(0, stream.get_schema(&stream, &schema));
    EXPECT_EQ(7, schema.n_children);
    schema.release(&schema);
    ArrowArray array;
    for (uint32_t number = 0; number < 3; number++) {
        if (number > 0) supply_datums(task, 2 * number, 2);
        ASSERT_EQ(0, stream.get_next(&stream, &array));
        EXPECT_EQ(2, array.length);
        EXPECT_EQ(number, task.released());
        array.release(&array);
        EXPECT_EQ(number + 1, task.released());
    }
    task.end_of_epoch(0);
    for (int i = 0; i < 2; i++) {
        ASSERT_EQ(0, stream.get_next(&stream, &array));
        EXPECT_EQ(nullptr, array.release) << "the end stays";
    }
    stream.release(&stream);
    EXPECT_EQ(nullptr, stream.release);
    task.end_of_data(0);
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(handle.get(), &stream), handle);
    ASSERT_EQ(0, stream.get_next(&stream, &array));
    EXPECT_EQ(nullptr, array.release);
    stream.release(&stream);
    EXPECT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    task.see_end();
}

TEST_F(ArrowTest, AStreamWaitsForItsSchemaAndReleasesAnUnreadBlock) {
    ArrowArrayStream stream;
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(handle.get(), &stream), handle);
    std::thread supplying([&] {
        Task task(files);
        supply_datums(task, 0, 1);
    });
    ArrowSchema schema;
    ASSERT_EQ(0, stream.get_schema(&stream, &schema));
    schema.release(&schema);
    supplying.join();
    stream.release(&stream);
    Task task(files, 1);
    supply_datums(task, 1, 1);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(block.sequence, task.released());
}

TEST_F(ArrowTest, AStreamReportsFailures) {
    ArrowArrayStream stream;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(handle.get(), &stream), handle);
    EXPECT_EQ(nullptr, stream.get_last_error(&stream));
    {
        Task task(files);
        task.send_failure("the source is gone");
        EXPECT_EQ(EIO, stream.get_next(&stream, &array));
        EXPECT_STREQ("the source is gone", stream.get_last_error(&stream));
    }
    handle.reset();
    EXPECT_EQ(EINVAL, stream.get_next(&stream, &array));
    EXPECT_TRUE(says(stream.get_last_error(&stream), {"closed"}));
    stream.release(&stream);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_export_stream(nullptr, &stream));
}

TEST_F(ArrowTest, ArgumentsAreChecked) {
    Task task(files);
    receive(task, {Column::int32("label", {1})}, 1);
    ArrowArray array;
    EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_export_arrow(handle.get(), &block, 1, nullptr, &array), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"no column 1 among 1"}));
    const int missing = supply_column_index(handle.get(), "missing");
    EXPECT_STATUS(SUPPLY_ERROR_NO_COLUMN, supply_export_arrow(handle.get(), &block, missing, nullptr, &array), handle);
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_export_arrow(handle.get(), nullptr, 0, nullptr, &array), handle);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_export_arrow(nullptr, &block, 0, nullptr, &array));
    EXPECT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 0, nullptr, nullptr), handle);
}

} // namespace
} // namespace supply_test
