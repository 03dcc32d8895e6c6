// A rank is killed after each step of writing a result. Built with fail points.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "environment.h"
#include "forked.h"
#include "result_rows.h"

extern "C" {
#include "base/file_lock.h"
}

namespace supply_test {
namespace {

class ResultStepsTest : public ResultTest, public ::testing::WithParamInterface<std::string> {};

INSTANTIATE_TEST_SUITE_P(Steps, ResultStepsTest, ::testing::Values("W1", "W2", "W3", "W4"));

TEST_P(ResultStepsTest, OfARankThatIsKilledOnlyASealedResultIsVisible) {
    const std::vector<Column> rows = {Column::fixed("data", "c", std::string(20000, 'd'))};
    const std::string fail_point = folder.write("fail-point", GetParam() + ":kill\n");
    const int status = run_forked([&] {
        EnvironmentVariable environment("SUPPLY_FAIL_POINT", fail_point.c_str());
        Handle handle = open();
        Result result = begin(handle, rows);
        write(result, rows, 20000);
        seal(result);
        return 0;
    });
    ASSERT_TRUE(WIFSIGNALED(status));
    const bool is_sealed = GetParam() == "W4";
    const std::string unsealed = path() + ".unsealed", left = is_sealed ? path() : unsealed;
    EXPECT_EQ(is_sealed, std::filesystem::exists(path()));
    EXPECT_EQ(!is_sealed, std::filesystem::exists(unsealed));
    const int fd = ::open(left.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_FALSE(supply__file_is_locked(fd, F_RDLCK, RANK_LOCK_BYTE)) << "it looks alive";
    close(fd);
    if (is_sealed) {
        EXPECT_EQ(20000u, read_result(path()).header.epoch_elements);
    }

    Handle handle = open();
    EXPECT_FALSE(std::filesystem::exists(left));
    Result result = begin(handle, rows);
    write(result, rows, 20000);
    seal(result);
    EXPECT_EQ(20000u, read_result(path()).header.epoch_elements);
}

} // namespace
} // namespace supply_test
