// R3 for values in place: whatever a task does to windows, views and entries is an error that names the field.
#include <cstring>

#include "in_place_test.h"

namespace supply_test {
namespace {

/** The block has a column `image` of three views, of which the second one is 100 bytes in window 0 of 2. */
struct Violation {
    const char *name;
    void (*commit)(Task &task, BlockImage &image);
    std::initializer_list<const char *> words;
};

class ViewsViolationTest : public InPlaceTest, public ::testing::WithParamInterface<Violation> {
  protected:
    std::vector<Column> columns() const {
        return {Column::views("image", {window_of(1, 0, 1000), window_of(1, 500, 3500)},
                              {inline_view(""), view_of(value(1), 0, 100), view_of(contents.substr(500, 13), 1, 0)})};
    }

    void expect_refused(const Handle &handle, Task &task, const BlockImage &image,
                        std::initializer_list<const char *> words) {
        task.supply(image);
        expect_violation(handle, words);
        EXPECT_TRUE(says(supply_error(handle.get()), {"'image'"}));
    }
};

TEST_P(ViewsViolationTest, IsRefusedByTheFieldsName) {
    auto [handle, task] = attached();
    task.add_foreign_file(entry_of(path));
    task.write_schema(schema_of(columns()));
    BlockImage image(columns(), 3);
    task.supply(image); // a good one before
    next(handle);
    GetParam().commit(task, image);
    expect_refused(handle, task, image, GetParam().words);
}

#define COMMIT(statement)                                                                                              \
    [](Task &task, BlockImage &image) {                                                                                \
        (void)task, (void)image;                                                                                       \
        statement;                                                                                                     \
    }

// clang-format off
const Violation violations[] = {
    {"WindowsOfBrokenSize", COMMIT(image.column(0).offsets_bytes = 47), {"offsets_bytes is 47", "24"}},
    {"WindowsMisaligned", COMMIT(image.column(0).offsets_offset += 8), {"offsets_offset", "64"}},
    {"WindowsInTheHeader", COMMIT(image.column(0).offsets_offset = 64), {"offsets_offset is 64", "192"}},
    {"WindowsOutside", COMMIT(image.column(0).offsets_offset = 8128), {"offsets_offset is 8128"}},
    {"WindowsFarOutside", COMMIT(image.column(0).offsets_bytes = 0xFFFFFFF0 / 24 * 24), {"offsets_offset"}},
    {"ViewsMissing", COMMIT(image.column(0).data_bytes = 0), {"data_bytes is 0", "48"}},
    {"ViewsTooShort", COMMIT(image.column(0).data_bytes = 47), {"data_bytes is 47", "48"}},
    {"ViewsTooLong", COMMIT(image.column(0).data_bytes = 64), {"data_bytes is 64", "48"}},
    {"ViewsOutside", COMMIT(image.column(0).data_offset = 0xFFFFFFC0), {"data_offset"}},
    {"FileZero", COMMIT(image.windows(0)[1].file = 0), {"window.file is 0", "foreign_count"}},
    {"FileWithoutEntry", COMMIT(image.windows(0)[1].file = 2), {"window.file is 2", "foreign_count, 1"}},
    {"FileFarOutside", COMMIT(image.windows(0)[1].file = UINT32_MAX), {"window.file", "foreign_count, 1"}},
    {"NoEntryAnyMore", COMMIT(task.header().foreign_count = 0), {"window.file is 1", "foreign_count, 0"}},
    {"MoreEntriesThanFit", COMMIT(task.header().foreign_count = 5), {"foreign_count is 5", "4"}},
    {"WindowTooLarge", COMMIT(image.windows(0)[0].window_bytes = 0x80000000), {"window_bytes is 2147483648"}},
    {"WindowBeyondItsFile", COMMIT(image.windows(0)[1].window_bytes = 3501), {"window.offset is 500", "3501", "4000"}},
    {"WindowAfterItsFile", COMMIT(image.windows(0)[0].offset = 4001), {"window.offset is 4001", "4000"}},
    {"WindowThatWraps", COMMIT(image.windows(0)[0].offset = UINT64_MAX - 10), {"window.offset is 18446744073709551605"}},
    {"ViewNegative", COMMIT(image.views(0)[1].value_bytes = -1), {"element 1 has -1 bytes"}},
    {"ViewVeryNegative", COMMIT(image.views(0)[0].value_bytes = INT32_MIN), {"element 0 has -2147483648 bytes"}},
    {"ViewOfNoWindow", COMMIT(image.views(0)[1].window = 2), {"of window 2", "2 windows"}},
    {"ViewOfANegativeWindow", COMMIT(image.views(0)[1].window = -1), {"of window -1"}},
    {"ViewBeforeItsWindow", COMMIT(image.views(0)[1].offset = -1), {"at -1 of window 0"}},
    {"ViewBeyondItsWindow", COMMIT(image.views(0)[1].offset = 901), {"100 bytes at 901 of window 0"}},
    {"ViewThatWraps", COMMIT(image.views(0)[2].value_bytes = image.views(0)[2].offset = INT32_MAX), {"element 2"}},
    {"ViewsWithoutWindows", COMMIT(image.column(0).offsets_bytes = 0), {"element 1", "0 windows"}},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(, ViewsViolationTest, ::testing::ValuesIn(violations),
                         [](const auto &info) { return std::string(info.param.name); });

class EntryViolationTest : public ViewsViolationTest {};

TEST_F(EntryViolationTest, AnEntryWithoutAnAbsolutePathOrBytes) {
    const struct {
        void (*spoil)(foreign_file &entry);
    } cases[] = {{[](foreign_file &entry) { memset(entry.path, '/', sizeof entry.path); }},
                 {[](foreign_file &entry) { entry.path[0] = 'd'; }},
                 {[](foreign_file &entry) { entry.path[0] = '\0'; }},
                 {[](foreign_file &entry) { entry.file_bytes = 0; }}};
    for (const auto &wrong : cases) {
        auto [handle, task] = attached();
        foreign_file entry = entry_of(path);
        wrong.spoil(entry);
        task.add_foreign_file(entry);
        task.write_schema(schema_of(columns()));
        expect_refused(handle, task, BlockImage(columns(), 3), {"foreign_file entry", "path"});
    }
}

TEST_F(EntryViolationTest, AnEntryThatChangesLaterIsNotReadAgain) {
    auto [handle, task] = attached();
    supply_in_place(task);
    next(handle);
    memset(&task.entry(1), 0xFF, sizeof(foreign_file));
    supply_in_place(task);
    const supply_block_t block = next(handle);
    supply_datum_t datum = datum_of(handle, block, 0);
    EXPECT_EQ(value(0), std::string(static_cast<const char *>(datum.data), datum.data_bytes));
}

} // namespace
} // namespace supply_test
