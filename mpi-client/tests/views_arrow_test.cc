// Values in place through the Arrow C Data Interface: format "vz", Arrow's BinaryView.
#include <fstream>

#include "in_place_test.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

class ViewsArrowTest : public InPlaceTest {
  protected:
    /** Receives a block of three Datums, and exports all columns; only the array holds it on. */
    ArrowArray receive_and_export(Task &task) {
        supply_in_place(task, 3);
        const supply_block_t block = next(handle);
        ArrowArray array = {};
        EXPECT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &array),
                      handle);
        release(handle, block);
        return array;
    }

    /** The value as a consumer of Arrow finds it. */
    static std::string value_of(const ArrowArray &array, int64_t index) {
        const auto *view = static_cast<const supply_view_t *>(array.buffers[1]) + index;
        if (view->bytes <= VIEW_INLINE_MAX)
            return std::string(reinterpret_cast<const char *>(view->start), static_cast<size_t>(view->bytes));
        const auto *lengths = static_cast<const int64_t *>(array.buffers[array.n_buffers - 1]);
        EXPECT_LE(view->offset + view->bytes, lengths[view->window]);
        const auto *window = static_cast<const char *>(array.buffers[2 + view->window]);
        return std::string(window + view->offset, static_cast<size_t>(view->bytes));
    }

    Handle handle = open();
};

TEST_F(ViewsArrowTest, AColumnOfViewsHasItsWindowsAsBuffers) {
    Task task(files);
    supply_in_place(task, 3);
    const supply_block_t block = next(handle);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, 6, &schema, &array), handle);
    EXPECT_STREQ("vz", schema.format);
    EXPECT_EQ(3, array.length);
    ASSERT_EQ(4, array.n_buffers) << "validity, views, one window, the lengths of the windows";
    EXPECT_EQ(nullptr, array.buffers[0]);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(array.buffers[1]) % 8);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(array.buffers[3]) % 8);
    supply_column_t column = column_of(handle, block, 6);
    EXPECT_NE(column.data, array.buffers[1]) << "the task could change the views in the mapped file";
    const void *first;
    size_t bytes;
    ASSERT_STATUS(SUPPLY_OK, supply_value(&column, 0, &first, &bytes), handle);
    EXPECT_EQ(first, array.buffers[2]) << "the values are not copied, and the window begins with the first one";
    for (int64_t i = 0; i < 3; i++) EXPECT_EQ(value(static_cast<size_t>(i)), value_of(array, i));
    array.release(&array);
    schema.release(&schema);
}

TEST_F(ViewsArrowTest, SeveralColumnsOfViewsStandBesideOffsets) {
    Task task(files);
    const uint32_t file = task.add_foreign_file(entry_of(path));
    const std::vector<Column> columns = {
        Column::variable("text", "u", {"a", "", "cd", "e"}),
        Column::views("none", {}, {inline_view("x"), inline_view(""), inline_view("twelve bytes"), inline_view("y")}),
        Column::variable("other", "z", {"", "f", "", ""}),
        Column::views("long", {window_of(file, 10, 100), window_of(file, 0, 13)},
                      {view_of(contents.substr(10, 100), 0, 0), inline_view("z"), view_of(contents.substr(0, 13), 1, 0),
                       view_of(contents.substr(30, 80), 0, 20)})};
    task.supply_all(columns, 4);
    const supply_block_t block = next(handle);
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, nullptr, &array), handle);
    const ArrowArray &none = *array.children[1], &longer = *array.children[3];
    EXPECT_EQ(3, none.n_buffers);
    EXPECT_EQ(5, longer.n_buffers);
    EXPECT_EQ("twelve bytes", value_of(none, 2));
    EXPECT_EQ("y", value_of(none, 3));
    const std::string expected[] = {contents.substr(10, 100), "z", contents.substr(0, 13), contents.substr(30, 80)};
    for (int64_t i = 0; i < 4; i++) EXPECT_EQ(expected[i], value_of(longer, i)) << i;
    const auto *offsets = static_cast<const int32_t *>(array.children[2]->buffers[1]);
    EXPECT_EQ(1, offsets[2]);
    array.release(&array);
}

TEST_F(ViewsArrowTest, AnArrayOutlivesTheHandleAndTheFile) {
    Task task(files);
    ArrowArray array = receive_and_export(task);
    handle.reset();
    std::filesystem::remove(path);
    for (int64_t i = 0; i < 3; i++) EXPECT_EQ(value(static_cast<size_t>(i)), value_of(*array.children[6], i));
    array.release(&array);
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        EXPECT_EQ(std::string::npos, line.find(path)) << "still mapped: " << line;
}

TEST_F(ViewsArrowTest, AnArrayKeepsItsWindowsWhileTheSlotOfAnotherNumberIsUsed) {
    Task task(files);
    ArrowArray first = receive_and_export(task);
    for (int i = 0; i < 3; i++) {
        ArrowArray later = receive_and_export(task);
        EXPECT_EQ(value(1), value_of(*later.children[6], 1));
        later.release(&later);
    }
    EXPECT_EQ(0u, task.released());
    EXPECT_EQ(value(2), value_of(*first.children[6], 2));
    first.release(&first);
    EXPECT_EQ(4u, task.released());
}

TEST_F(ViewsArrowTest, ViewsThatChangedAreNotExported) {
    Task task(files);
    supply_in_place(task, 3);
    const supply_block_t block = next(handle);
    supply_column_t column = column_of(handle, block, 6);
    auto *mapping = reinterpret_cast<uint8_t *>(&task.header());
    const auto *mine = static_cast<const uint8_t *>(supply_mapping(handle.get(), nullptr));
    reinterpret_cast<view *>(mapping + (static_cast<const uint8_t *>(column.data) - mine))[1].offset = 3901;
    ArrowArray array;
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_export_arrow(handle.get(), &block, 6, nullptr, &array), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"views", "changed"}));
}

} // namespace
} // namespace supply_test
