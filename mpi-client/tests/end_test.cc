// After END_OF_DATA the pair stays until the task knows that the rank has everything.
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

class EndTest : public RankTest {
  protected:
    /** A limit that no test can wait for: a test that does fails by ctest's own. */
    EndTest() { options.timeout = 3600; }

    /** Supplies a block, which the rank holds, and the end of data. */
    void take_all(const Handle &handle, Task &task) {
        supply_datums(task, 0, 1);
        task.end_of_data(0);
        supply_block_t block = next(handle);
        ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    }
};

TEST_F(EndTest, ATaskThatDiesBeforeItKnowsHasANextAttempt) {
    Handle handle = open();
    auto first = std::make_unique<Task>(files, 0);
    take_all(handle, *first);
    std::thread closing([&] { handle.reset(); });
    wait_until("the last release", [&] { return first->released() == first->published(); });
    first.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(30)); /* time enough for removing the pair */
    ASSERT_TRUE(std::filesystem::exists(files.mapped_file)) << "the next attempt has nothing to attach to";
    Task(files, 1).see_end();
    closing.join();
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(EndTest, AFailureOfSparkEndsTheWait) {
    auto [handle, task] = attached();
    take_all(handle, task);
    task.send_failure("the task died too often");
    EXPECT_EQ(SUPPLY_ERROR_SPARK, supply_close(handle.release()));
    EXPECT_TRUE(folder.is_empty());
    EXPECT_STREQ("", task.header().rank_failure);
}

TEST_F(EndTest, AnotherWriterEndsTheWait) {
    auto [handle, task] = attached();
    take_all(handle, task);
    std::ofstream(files.notification_pipe) << "text";
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_close(handle.release()));
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(EndTest, TheWaitHasTheTimeLimit) {
    options.timeout = 0.1;
    auto [handle, task] = attached();
    take_all(handle, task);
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, supply_close(handle.release()));
    EXPECT_TRUE(folder.is_empty());
    EXPECT_EQ(task.published(), task.released());
}

TEST_F(EndTest, ACloseThatIsOverKeepsThePair) {
    auto [handle, task] = attached();
    take_all(handle, task);
    EXPECT_EQ(SUPPLY_AGAIN, supply_close_within(handle.get(), 0, nullptr));
    EXPECT_EQ(SUPPLY_AGAIN, supply_close_within(handle.get(), 0.001, nullptr));
    EXPECT_TRUE(std::filesystem::exists(files.mapped_file));
    task.see_end();
    EXPECT_EQ(SUPPLY_OK, supply_close_within(handle.release(), 0, nullptr));
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(EndTest, RepeatedClosesShareTheTimeLimit) {
    options.timeout = 0.1;
    auto [handle, task] = attached();
    take_all(handle, task);
    supply_status_t status = SUPPLY_AGAIN;
    wait_until("the limit",
               [&] { return (status = supply_close_within(handle.get(), 0.001, nullptr)) != SUPPLY_AGAIN; });
    EXPECT_EQ(SUPPLY_ERROR_TIMEOUT, status);
    handle.release();
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(EndTest, ClosingEarlyOrWhatDidNotOpenIsNoFailure) {
    EXPECT_EQ(SUPPLY_OK, supply_close(nullptr));
    EXPECT_EQ(SUPPLY_OK, supply_close(open().release()));
    options.block_bytes = SIZE_MAX;
    EXPECT_EQ(SUPPLY_OK, supply_close(open(SUPPLY_ERROR_CONFIG).release()));
}

TEST_F(EndTest, AbortingReleasesEverythingAndNeitherWaitsNorStops) {
    auto [handle, task] = attached();
    take_all(handle, task);
    EXPECT_EQ(SUPPLY_OK, supply_abort(handle.release(), "the program failed later"));
    EXPECT_TRUE(folder.is_empty());
    EXPECT_EQ(task.published(), task.released());
    EXPECT_STREQ("", task.header().rank_failure);
    for (const request &request : task.requests()) EXPECT_NE(static_cast<uint32_t>(REQUEST_STOP), request.kind);
    EXPECT_TRUE(task.rank_has_left());
}

} // namespace
} // namespace supply_test
