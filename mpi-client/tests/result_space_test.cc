// W3: a full file system, or a limit of the process, is an error, and never a signal.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "forked.h"
#include "result_rows.h"
#include "small_file_system.h"

namespace supply_test {
namespace {

using ResultSpaceTest = SmallFileSystemTest;

/** Writes rows of 4096 bytes until a call fails. Returns its status. */
supply_status_t fill(const Result &result) {
    const std::vector<Column> columns = {Column::fixed("id", "c", "x"),
                                         Column::variable("data", "z", {std::string(4096, 'd')})};
    const std::vector<supply_column_t> rows = rows_of(columns, 1);
    supply_status_t status = SUPPLY_OK;
    for (int i = 0; i < 1000 && status == SUPPLY_OK; i++) status = supply_result_write(result.get(), rows.data(), 2);
    return status;
}

Result begin(const Handle &handle) {
    const std::vector<supply_field_t> fields = {{"id", false, "c", "", 0, 0}, {"data", false, "z", "", 0, 0}};
    supply_result_t *result;
    EXPECT_EQ(SUPPLY_OK, supply_result_open(&result, handle.get(), "scores", fields.data(), 2))
        << supply_result_error(result);
    return Result(result);
}

TEST_F(ResultSpaceTest, AFullFileSystemIsAnErrorThatStays) {
    options.results_folder = small.c_str();
    chmod(small.c_str(), 0700);
    Handle handle = open();
    Result result = begin(handle);
    EXPECT_EQ(SUPPLY_ERROR_NO_SPACE, fill(result));
    EXPECT_TRUE(says(supply_result_error(result.get()), {small.c_str(), "mapped.scores.result", "bytes are needed",
                                                         "free", "fewer rows", "SUPPLY_RESULTS_FOLDER"}));
    EXPECT_EQ(SUPPLY_ERROR_NO_SPACE, fill(result));
    EXPECT_EQ(SUPPLY_ERROR_NO_SPACE, supply_result_seal(result.get()));
    const std::string reason = supply_result_error(result.get());
    EXPECT_EQ(SUPPLY_OK, supply_result_abort(result.release(), reason.c_str()));
    const std::string file = read_file(small + "/mapped.scores.result.unsealed");
    EXPECT_STREQ(reason.c_str(), file.data() + offsetof(mapped_file_header, rank_failure));
}

TEST_F(ResultSpaceTest, AFullFileSystemHasNoSpaceForANewOne) {
    options.results_folder = small.c_str();
    chmod(small.c_str(), 0700);
    Handle handle = open();
    std::ofstream(small + "/filler") << std::string(1020 << 10, 'x');
    supply_result_t *opened;
    const supply_field_t field = {"id", false, "c", "", 0, 0};
    EXPECT_EQ(SUPPLY_ERROR_NO_SPACE, supply_result_open(&opened, handle.get(), "scores", &field, 1));
    EXPECT_TRUE(says(supply_result_error(opened), {"65536 bytes are needed"}));
    supply_result_abort(opened, nullptr);
    EXPECT_FALSE(std::filesystem::exists(small + "/mapped.scores.result.unsealed"));
}

class ResultSizeLimitTest : public RankTest {};

TEST_F(ResultSizeLimitTest, IsAnErrorAndNoSignal) {
    const int status = run_forked([&] {
        Handle handle = open();
        Result result = begin(handle);
        const rlimit limit = {200 << 10, 200 << 10};
        setrlimit(RLIMIT_FSIZE, &limit);
        const bool refused = fill(result) == SUPPLY_ERROR_NO_SPACE &&
                             says(supply_result_error(result.get()), {"may write files of 204800", "ulimit -f"});
        return refused ? 0 : 1;
    });
    EXPECT_EQ(0, status);
}

} // namespace
} // namespace supply_test
