// Values in place: a column of views, as a program reads it.
#include <unistd.h>

#include <cstring>

#include "forked.h"
#include "in_place_test.h"
#include "saved_position.h"

namespace supply_test {
namespace {

class ViewsTest : public InPlaceTest {
  protected:
    supply_column_t column(const Handle &handle, const supply_block_t &block, const char *name) {
        supply_column_t column = {};
        const int index = supply_column_index(handle.get(), name);
        EXPECT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, index, &column), handle);
        return column;
    }

    /** How many descriptors of this process are of that file. */
    static int descriptors_of(const std::string &file) {
        int count = 0;
        char target[4096];
        for (int fd = 0; fd < 1024; fd++) {
            const std::string link = "/proc/self/fd/" + std::to_string(fd);
            const ssize_t length = readlink(link.c_str(), target, sizeof target);
            count += length > 0 && file == std::string(target, static_cast<size_t>(length));
        }
        return count;
    }

    /** The values that `receive_all` supplies: in the view, in three windows, and of two files. */
    const std::string second = foreign_contents(600, 'x');
    const std::vector<std::string> values = {
        "",  "twelve bytes",           contents.substr(0, 13), contents.substr(100, 700), second.substr(7, 593),
        "a", contents.substr(3987, 13)};

    supply_column_t receive_all(const Handle &handle, Task &task) {
        const uint32_t first_file = task.add_foreign_file(entry_of(path));
        const uint32_t second_file = task.add_foreign_file(entry_of(folder.write("second.mdb", second)));
        const Column images = Column::views(
            "image", {window_of(first_file, 0, 2000), window_of(second_file, 7, 593), window_of(first_file, 50, 3950)},
            {inline_view(values[0]), inline_view(values[1]), view_of(values[2], 0, 0), view_of(values[3], 2, 50),
             view_of(values[4], 1, 0), inline_view(values[5]), view_of(values[6], 2, 3937)});
        const Column texts = Column::variable("text", "u", values);
        task.write_schema(schema_of({texts, images}));
        task.supply(BlockImage({texts, images}, 7));
        block = next(handle);
        return column(handle, block, "image");
    }

    supply_block_t block = {};
};

TEST_F(ViewsTest, EveryValueIsFoundWhereItIs) {
    auto [handle, task] = attached();
    const supply_column_t images = receive_all(handle, task);
    EXPECT_STREQ("vz", images.format);
    EXPECT_EQ(nullptr, images.offsets);
    EXPECT_EQ(images.data, images.views);
    EXPECT_EQ(7 * sizeof(supply_view_t), images.data_bytes);
    ASSERT_EQ(3u, images.window_count);
    const supply_column_t texts = column(handle, block, "text");
    EXPECT_EQ(nullptr, texts.views);
    for (uint32_t i = 0; i < 7; i++) {
        EXPECT_EQ(values[i], value_at(images, i)) << i;
        EXPECT_EQ(values[i], value_at(texts, i)) << "the same call, for values in the block: " << i;
    }
    const void *data;
    size_t bytes;
    ASSERT_EQ(SUPPLY_OK, supply_value(&images, 3, &data, &bytes));
    EXPECT_EQ(static_cast<const uint8_t *>(images.windows[2].address) + 50, data) << "nothing is copied";
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&images, 7, &data, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(nullptr, 0, &data, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&images, 0, nullptr, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&images, 0, &data, nullptr));
}

TEST_F(ViewsTest, ValuesAreGathered) {
    auto [handle, task] = attached();
    const supply_column_t images = receive_all(handle, task);
    int64_t ends[7] = {};
    ASSERT_EQ(SUPPLY_OK, supply_gather(&images, 0, 7, ends, nullptr, 0));
    std::string all, gathered;
    for (uint32_t i = 0; i < 7; i++) {
        all += values[i];
        EXPECT_EQ(static_cast<int64_t>(all.size()), ends[i]) << i;
    }
    gathered.resize(all.size());
    ASSERT_EQ(SUPPLY_OK, supply_gather(&images, 0, 7, nullptr, gathered.data(), gathered.size()));
    EXPECT_EQ(all, gathered);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_gather(&images, 0, 7, nullptr, gathered.data(), gathered.size() - 1));
    ASSERT_EQ(SUPPLY_OK, supply_gather(&images, 2, 3, ends, gathered.data(), gathered.size()));
    EXPECT_EQ(13 + 700 + 593, ends[2]);
    EXPECT_EQ(values[2] + values[3] + values[4], gathered.substr(0, static_cast<size_t>(ends[2])));
    EXPECT_EQ(SUPPLY_OK, supply_gather(&images, 7, 0, ends, nullptr, 0));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_gather(&images, 7, 1, ends, nullptr, 0));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_gather(&images, 1, UINT32_MAX, ends, nullptr, 0));
}

TEST_F(ViewsTest, OnlyAColumnWithValuesOfAnyLengthIsGathered) {
    auto [handle, task] = attached();
    supply_in_place(task);
    const supply_column_t labels = column(handle, next(handle), "label");
    const void *data;
    size_t bytes;
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_value(&labels, 0, &data, &bytes));
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_gather(&labels, 0, 1, nullptr, nullptr, 0));
}

TEST_F(ViewsTest, ADatumIsReadAsIfItWereInTheBlock) {
    auto [handle, task] = attached();
    supply_in_place(task, 3);
    supply_in_place(task, 2);
    task.end_of_epoch(0);
    supply_datum_t datum;
    const supply_block_t block = next(handle);
    for (uint32_t i : {2u, 0u, 1u}) {
        ASSERT_STATUS(SUPPLY_OK, supply_datum(handle.get(), &block, i, &datum), handle);
        EXPECT_EQ(value(i), std::string(static_cast<const char *>(datum.data), datum.data_bytes));
        EXPECT_EQ(std::to_string(i), std::string(static_cast<const char *>(datum.key), datum.key_bytes));
    }
    release(handle, block);
    for (uint32_t i = 0; i < 2; i++) {
        ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
        EXPECT_EQ(value(i), std::string(static_cast<const char *>(datum.data), datum.data_bytes));
    }
    EXPECT_STATUS(SUPPLY_END_OF_EPOCH, supply_next_datum(handle.get(), &datum), handle);
    supply_statistics_t statistics;
    supply_statistics(handle.get(), &statistics);
    EXPECT_EQ(BlockImage(columns(3), 3).bytes.size() + BlockImage(columns(2), 2).bytes.size() + 5 * value_bytes,
              statistics.bytes);
}

TEST_F(ViewsTest, APositionIsThatOfTheElements) {
    auto [handle, task] = attached();
    supply_in_place(task, 3);
    supply_datum_t datum;
    for (int i = 0; i < 2; i++) ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
    EXPECT_EQ("position-1:0:1:0:2:0000000000000000", saved_position(handle));
}

TEST_F(ViewsTest, AHeldBlockKeepsItsWindowsWhileOthersComeAndGo) {
    auto [handle, task] = attached();
    supply_in_place(task, 1);
    const supply_block_t first = next(handle);
    const supply_column_t held = column(handle, first, "data");
    for (uint32_t round = 0; round < 3; round++) {
        supply_in_place(task, 5);
        const supply_block_t later = next(handle);
        EXPECT_EQ(value(4), value_at(column(handle, later, "data"), 4));
        EXPECT_EQ(value(0), value_at(held, 0));
        release(handle, later);
    }
    release(handle, first);
    supply_in_place(task, 40);
    EXPECT_EQ(value(39), value_at(column(handle, next(handle), "data"), 39)) << "in the slot of the first one";
}

TEST_F(ViewsTest, ViewsThatChangeUnderABlockAreNotFollowed) {
    auto [handle, task] = attached();
    supply_in_place(task, 2);
    const supply_block_t block = next(handle);
    const supply_column_t data = column(handle, block, "data");
    const uint8_t *bytes =
        reinterpret_cast<const uint8_t *>(&task.header()) +
        (static_cast<const uint8_t *>(data.data) - static_cast<const uint8_t *>(supply_mapping(handle.get(), nullptr)));
    view *shared = reinterpret_cast<view *>(const_cast<uint8_t *>(bytes));
    const view good = shared[1];
    const struct {
        int32_t bytes, window, offset;
    } changes[] = {{-1, 0, 0},          {INT32_MIN, 0, 0}, {100, -1, 0},   {100, 1, 0},
                   {100, INT32_MAX, 0}, {100, 0, -1},      {100, 0, 3901}, {INT32_MAX, 0, INT32_MAX}};
    for (const auto &change : changes) {
        shared[1].value_bytes = change.bytes;
        shared[1].window = change.window;
        shared[1].offset = change.offset;
        const void *found;
        size_t found_bytes;
        supply_datum_t datum;
        EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_value(&data, 1, &found, &found_bytes));
        EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_gather(&data, 0, 2, nullptr, nullptr, 0));
        EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_datum(handle.get(), &block, 1, &datum), handle);
        EXPECT_TRUE(says(supply_error(handle.get()), {"views", "changed"}));
    }
    shared[1] = good;
    EXPECT_EQ(value(1), value_at(data, 1));
}

TEST_F(ViewsTest, AForkedChildThatAbandonsTheHandleHasNoDescriptorOfTheFile) {
    auto [handle, task] = attached();
    supply_in_place(task, 1);
    supply_column_t data = column(handle, next(handle), "data");
    EXPECT_EQ(1, descriptors_of(path));
    supply_t *supply = handle.get();
    EXPECT_EQ(0, run_forked([&] {
                  const void *found;
                  size_t bytes;
                  const bool is_read = supply_value(&data, 0, &found, &bytes) == SUPPLY_OK;
                  if (supply_abandon_in_child(supply) != SUPPLY_OK) return 1;
                  return is_read && descriptors_of(path) == 0 && memcmp(found, contents.data(), bytes) == 0 ? 0 : 2;
              }));
    EXPECT_EQ(1, descriptors_of(path));
    handle.reset();
    EXPECT_EQ(0, descriptors_of(path));
}

} // namespace
} // namespace supply_test
