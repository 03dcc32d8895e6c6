#include "rank.h"

extern "C" {
#include "files/options.h"
#include "files/claimed_file.h"
}

namespace supply_test {

::testing::AssertionResult has_status(const char *, const char *call, const char *, supply_status_t expected,
                                      supply_status_t actual, const supply_t *supply) {
    if (actual == expected) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << call << "\n  is " << supply_status_name(actual) << ", not "
                                         << supply_status_name(expected) << ": " << supply_error(supply);
}

::testing::AssertionResult says(const std::string &text, std::initializer_list<const char *> words) {
    for (const char *word : words)
        if (text.find(word) == std::string::npos)
            return ::testing::AssertionFailure() << "'" << word << "' is missing in: " << text;
    return ::testing::AssertionSuccess();
}

supply_options_t options_of(const PairFiles &files) {
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_file = files.mapped_file.c_str();
    options.request_pipe = files.request_pipe.c_str();
    options.notification_pipe = files.notification_pipe.c_str();
    options.local_rank = 0;
    options.timeout = 60;
    options.ring_bytes = 4 * 8192;
    options.block_bytes = 8192;
    return options;
}

supply_status_t remove_stale(const supply_options_t &options, std::string &error) {
    struct settings settings;
    struct stale_files stale;
    struct failure failure = {};
    supply_status_t status = supply__settings_files(&options, &settings, &failure);
    if (status == SUPPLY_OK) status = supply__stale_remove(&settings.files, &stale, &failure);
    supply__settings_free(&settings);
    error = failure.text;
    return status;
}

RankTest::RankTest()
    : files{folder.file("mapped"), folder.file("request"), folder.file("notification")}, options{options_of(files)} {
    options.rank = 3;
}

Handle RankTest::open(supply_status_t expected) {
    supply_t *supply = nullptr;
    supply_status_t status = supply_open(&supply, &options);
    Handle handle(supply);
    EXPECT_STATUS(expected, status, handle);
    return handle;
}

supply_block_t RankTest::next(const Handle &handle) {
    supply_block_t block = {};
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    return block;
}

void RankTest::release(const Handle &handle, const supply_block_t &block) {
    EXPECT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
}

supply_column_t RankTest::column_of(const Handle &handle, const supply_block_t &block, int index) {
    supply_column_t column = {};
    EXPECT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, index, &column), handle);
    return column;
}

supply_datum_t RankTest::datum_of(const Handle &handle, const supply_block_t &block, uint32_t index) {
    supply_datum_t datum = {};
    EXPECT_STATUS(SUPPLY_OK, supply_datum(handle.get(), &block, index, &datum), handle);
    return datum;
}

void RankTest::expect_end_of_epoch(const Handle &handle, uint32_t epoch) {
    supply_block_t block = {};
    EXPECT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(epoch, block.epoch);
}

void RankTest::expect_violation(const Handle &handle, std::initializer_list<const char *> words) {
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
    const std::string text = supply_error(handle.get());
    EXPECT_TRUE(says(text, words));
    EXPECT_TRUE(says(text, {"pair 0", files.mapped_file.c_str()}));
    EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle) << "it stays";
    EXPECT_EQ(text, supply_error(handle.get()));
}

void RankTest::supply_datums(Task &task, uint64_t first, uint32_t count, uint32_t epoch) {
    std::vector<Element> elements;
    for (uint32_t i = 0; i < count; i++) elements.push_back(numbered_element(first + i));
    task.write_schema(schema_of(datum_columns(elements)));
    task.supply(datum_block(elements), epoch, 0, first);
}

} // namespace supply_test
