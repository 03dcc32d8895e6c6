// The rows of a matrix, as supply-server takes them from a pair.
#include <signal.h>

#include <atomic>
#include <thread>

#include "mpirun.h"
#include "process.h"
#include "rank.h"

namespace supply_test {
namespace {

// A task that writes into a published block must not make rows longer than what was copied.
TEST(RowsTest, LengthsThatChangeMeanwhileAreRefused) {
    constexpr int kIndices = 100000;
    TemporaryFolder folder;
    const PairFiles files{folder.file("mapped"), folder.file("request"), folder.file("notification")};
    Process rank(mpirun(1, {SUPPLY_TEST_CHECK_ROWS, files.mapped_file, files.request_pipe, files.notification_pipe}),
                 folder.path());
    Task task(files);
    const std::vector<Column> columns = {Column::variable("indices", "z", {std::string(4 * kIndices, '\0')}),
                                         Column::variable("entries", "z", {std::string(8, '\0')})};
    BlockImage image(columns, 1);
    task.write_schema(schema_of(columns));
    auto *ring = reinterpret_cast<uint8_t *>(&task.header()) + RING_OFFSET;
    auto *end = reinterpret_cast<int32_t *>(ring + image.column(0).offsets_offset) + 1;
    std::atomic<bool> stop{false};
    signal(SIGPIPE, SIG_IGN);
    const notification published = task.next(image);
    task.wait_for_credit();
    task.write(image.bytes, published);
    std::thread changing([&] {
        while (!stop)
            for (const int32_t indices : {1, kIndices}) __atomic_store_n(end, 4 * indices, __ATOMIC_RELAXED);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    task.publish();
    task.notify(published);
    __atomic_store_n(&task.header().end_seen, 1, __ATOMIC_RELEASE);
    try {
        task.end_of_epoch(0);
        task.end_of_data(0);
    } catch (const std::exception &) {
        /* The rank has refused the block already. */
    }
    const Ended ended = rank.wait();
    stop = true;
    changing.join();
    EXPECT_EQ(0, ended.exit_status) << ended.err;
    EXPECT_NE("taken\n", ended.out) << "100000 indices and 1 entry";
}

} // namespace
} // namespace supply_test
