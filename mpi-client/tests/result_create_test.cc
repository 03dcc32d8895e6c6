// A program that only writes needs no pair for its results.
#include <filesystem>

#include "result_rows.h"

namespace supply_test {
namespace {

class ResultCreateTest : public ResultTest {
  protected:
    /** Begins a result without a pair. Returns a handle even if that fails. */
    Result create(supply_status_t expected = SUPPLY_OK) {
        const std::vector<supply_field_t> fields = fields_of(columns);
        supply_result_t *result = nullptr;
        const supply_status_t status =
            supply_result_create(&result, &options, "scores", fields.data(), static_cast<int>(fields.size()));
        EXPECT_EQ(expected, status) << supply_result_error(result);
        return Result(result);
    }

    const std::vector<Column> columns = {Column::int32("id", {7, 8, 9})};
};

TEST_F(ResultCreateTest, ItIsThatOfARankWithoutATask) {
    options.rank = 3;
    Result result = create();
    EXPECT_EQ(path(), supply_result_path(result.get()));
    write(result, columns, 3);
    seal(result);
    const ResultFile file = read_result(path());
    EXPECT_EQ(bytes_of(std::vector<int32_t>{8}), file.columns[0].values[1]);
    EXPECT_EQ(3, file.header.rank);
    EXPECT_EQ(options.block_bytes, file.header.block_bytes);
    EXPECT_EQ(0U, file.header.run);
    EXPECT_EQ(0U, file.header.task_pid);
    EXPECT_FALSE(std::filesystem::exists(files.mapped_file));
    EXPECT_FALSE(std::filesystem::exists(files.request_pipe));
}

TEST_F(ResultCreateTest, ItReadsTheConfigFilesOfThePair) {
    const std::string mapped = folder.write("mapped-files.conf", files.mapped_file + " ring=64KiB block=16KiB\n");
    const std::string pipes = folder.write("named-pipes.conf", files.request_pipe + " " + files.notification_pipe);
    supply_options_init(&options);
    options.mapped_files = mapped.c_str();
    options.named_pipes = pipes.c_str();
    options.local_rank = 0;
    Result result = create();
    write(result, columns, 3);
    seal(result);
    EXPECT_EQ(16384U, read_result(path()).header.block_bytes);
    EXPECT_EQ(0, read_result(path()).header.local_rank);
}

TEST_F(ResultCreateTest, ASealedOneStays) {
    Result first = create();
    write(first, columns, 3);
    seal(first);
    const Result second = create(SUPPLY_ERROR_ARGUMENT);
    EXPECT_TRUE(says(supply_result_error(second.get()), {"scores", "is sealed", "earlier run", "supply-clean"}));
    EXPECT_EQ(3U, read_result(path()).columns[0].values.size());
}

TEST_F(ResultCreateTest, OneThatIsBeingWrittenIsInUse) {
    const Result first = create();
    const Result second = create(SUPPLY_ERROR_IN_USE);
    EXPECT_TRUE(says(supply_result_error(second.get()), {"scores", "in use"}));
}

TEST_F(ResultCreateTest, AnAbortedOneIsReplaced) {
    supply_result_abort(create().release(), "the rank has failed");
    Result again = create();
    write(again, columns, 3);
    seal(again);
}

TEST_F(ResultCreateTest, ThePairOfAnotherRunRemovesIt) {
    Result result = create();
    seal(result);
    const Handle handle = open();
    EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(ResultCreateTest, OptionsAreCheckedAsForAPair) {
    options.mapped_file = "relative";
    const Result result = create(SUPPLY_ERROR_CONFIG);
    EXPECT_TRUE(says(supply_result_error(result.get()), {"relative"}));
    EXPECT_EQ(SUPPLY_ERROR_CONFIG, supply_result_seal(result.get()));
}

} // namespace
} // namespace supply_test
