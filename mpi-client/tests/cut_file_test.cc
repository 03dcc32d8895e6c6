// A program that cuts the mapped file is named, and the pair can be closed.
#include <unistd.h>

#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

class CutFileTest : public RankTest, public ::testing::WithParamInterface<off_t> {
  protected:
    void cut() { ASSERT_EQ(0, truncate(files.mapped_file.c_str(), GetParam())); }

    void expect_named(const Handle &handle) {
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
        const std::string bytes = "to " + std::to_string(GetParam()) + " bytes";
        EXPECT_TRUE(says(supply_error(handle.get()), {files.mapped_file.c_str(), "was cut from", bytes.c_str()}));
    }
};

TEST_P(CutFileTest, BetweenTwoCalls) {
    auto [handle, task] = attached();
    const BlockImage image({Column::int32("label", {7, 8, 9})}, 3);
    task.write_schema(schema_of({Column::int32("label", {7, 8, 9})}));
    task.supply(image);
    next(handle);
    task.supply(image);
    cut();
    expect_named(handle);
    expect_named(handle);
}

TEST_P(CutFileTest, WhileTheRankWaits) {
    Handle handle = open();
    auto task = std::make_unique<Task>(files);
    std::thread other([&] {
        usleep(300000); // Then the rank no longer polls the header.
        cut();
        task.reset();
    });
    expect_named(handle);
    other.join();
}

TEST_P(CutFileTest, AtTheEndOfTheData) {
    auto [handle, task] = attached();
    task.write_schema(schema_of({Column::int32("label", {7})}));
    task.end_of_data(0);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    cut();
    EXPECT_EQ(SUPPLY_ERROR_CONTRACT, supply_close(handle.release()));
}

// All of the file, all of the ring, and the end of the ring.
INSTANTIATE_TEST_SUITE_P(Sizes, CutFileTest, ::testing::Values(0, RING_OFFSET, RING_OFFSET + 4096));

} // namespace
} // namespace supply_test
