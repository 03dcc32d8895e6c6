// supply_wait_schema(): the columns are known before the first block, or why they are not.
#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

class SchemaWaitTest : public RankTest {
  protected:
    supply_block_t block = {};
    const std::vector<Column> columns = {Column::int32("id", {7, 8})};
};

TEST_F(SchemaWaitTest, ItWaitsForATask) {
    Handle handle = open();
    std::thread later([this] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        Task(files).write_schema(schema_of(columns));
    });
    EXPECT_STATUS(SUPPLY_OK, supply_wait_schema(handle.get()), handle);
    later.join();
    EXPECT_EQ(1, supply_column_count(handle.get()));
    EXPECT_EQ(0, supply_column_index(handle.get(), "id"));
    EXPECT_STATUS(SUPPLY_OK, supply_wait_schema(handle.get()), handle) << "now it is known";
}

TEST_F(SchemaWaitTest, ItReceivesNothing) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 2);
    EXPECT_STATUS(SUPPLY_OK, supply_wait_schema(handle.get()), handle);
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(0U, block.sequence);
    EXPECT_EQ(2U, block.element_count);
}

TEST_F(SchemaWaitTest, TheTimeLimitEndsIt) {
    options.timeout = 0.05;
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_wait_schema(handle.get()), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"no Spark task attached", "0.05 s", "columns are not known"}));
    Task task(files);
    task.write_schema(schema_of(columns));
    EXPECT_STATUS(SUPPLY_OK, supply_wait_schema(handle.get()), handle) << "the call may be repeated";
}

TEST_F(SchemaWaitTest, AFailureOfSparkEndsIt) {
    auto [handle, task] = attached();
    task.send_failure("the table is gone");
    EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_wait_schema(handle.get()), handle);
    EXPECT_STREQ("the table is gone", supply_error(handle.get()));
    EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
    EXPECT_STREQ("the table is gone", supply_error(handle.get()));
}

TEST_F(SchemaWaitTest, AFailureThatIsKnownEndsItAtOnce) {
    options.timeout = 3600;
    auto [handle, task] = attached();
    task.send_failure("the table is gone");
    EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
    EXPECT_STATUS(SUPPLY_ERROR_SPARK, supply_wait_schema(handle.get()), handle);
    EXPECT_STREQ("the table is gone", supply_error(handle.get()));
}

TEST_F(SchemaWaitTest, TheProgramInterruptsIt) {
    options.timeout = 3600;
    options.interrupted = [](void *) { return true; };
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_INTERRUPTED, supply_wait_schema(handle.get()), handle);
}

TEST_F(SchemaWaitTest, ALongWaitAsksSeldom) {
    static int asked;
    asked = 0;
    options.timeout = 0.5;
    options.interrupted = [](void *) { return asked++ < 0; };
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_ERROR_TIMEOUT, supply_wait_schema(handle.get()), handle);
    EXPECT_LT(5, asked) << "ten times a second";
    EXPECT_GT(250, asked) << "with a pause of 1 ms it would be 500";
}

TEST_F(SchemaWaitTest, ItNeedsAHandle) { EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_wait_schema(nullptr)); }

} // namespace
} // namespace supply_test
