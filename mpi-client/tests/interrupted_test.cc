// options.interrupted ends every wait, and the handle stays usable.
#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <thread>

#include "rank.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

std::atomic<bool> asked, signaled, ended;

class InterruptedTest : public RankTest {
  protected:
    /** A limit that no test can wait for: a test that does fails by ctest's own. */
    InterruptedTest() {
        options.timeout = 3600;
        options.interrupted_context = &wanted;
        options.interrupted = [](void *context) { return static_cast<std::atomic<bool> *>(context)->load(); };
    }

    std::atomic<bool> wanted{true};
    supply_block_t block = {};
};

TEST_F(InterruptedTest, AWaitForABlockMayBeRepeated) {
    Handle handle = open();
    EXPECT_STATUS(SUPPLY_INTERRUPTED, supply_next(handle.get(), &block), handle);
    supply_datum_t datum;
    EXPECT_STATUS(SUPPLY_INTERRUPTED, supply_next_datum(handle.get(), &datum), handle);
    Task task(files);
    supply_datums(task, 0, 1);
    EXPECT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle) << "it does not wait";
}

TEST_F(InterruptedTest, AWaitIsInterruptedWithoutASignal) {
    wanted = false;
    Handle handle = open();
    std::thread interrupting([&] { wanted = true; });
    EXPECT_STATUS(SUPPLY_INTERRUPTED, supply_next(handle.get(), &block), handle);
    interrupting.join();
}

TEST_F(InterruptedTest, ASignalHandlerInterrupts) {
    struct sigaction action = {}, before;
    action.sa_handler = [](int) { signaled = true; };
    ASSERT_EQ(0, sigaction(SIGUSR1, &action, &before));
    asked = signaled = ended = false;
    options.interrupted = [](void *) {
        asked = true;
        return signaled.load();
    };
    Handle handle = open();
    supply_status_t status = SUPPLY_OK;
    std::thread waiting([&] {
        status = supply_next(handle.get(), &block);
        ended = true;
    });
    // The thread sanitizer of GCC 12 loses a signal that reaches a thread in its first call of libc (SigCtx in its
    // tsan_interceptors_posix.cpp).
    while (!asked && !ended) std::this_thread::yield();
    pthread_kill(waiting.native_handle(), SIGUSR1);
    waiting.join();
    EXPECT_STATUS(SUPPLY_INTERRUPTED, status, handle);
    sigaction(SIGUSR1, &before, nullptr);
}

TEST_F(InterruptedTest, AStreamReturnsEintr) {
    Handle handle = open();
    ArrowArrayStream stream;
    ASSERT_STATUS(SUPPLY_OK, supply_export_stream(handle.get(), &stream), handle);
    ArrowArray array;
    EXPECT_EQ(EINTR, stream.get_next(&stream, &array));
    EXPECT_STREQ("interrupted", stream.get_last_error(&stream));
    stream.release(&stream);
}

TEST_F(InterruptedTest, ClosingKeepsThePairUntilItIsRepeated) {
    auto [handle, task] = attached();
    task.write_schema(schema_of({Column::int32("label", {1})}));
    task.end_of_data(0);
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(SUPPLY_INTERRUPTED, supply_close(handle.get()));
    EXPECT_FALSE(folder.is_empty());
    task.see_end();
    EXPECT_EQ(SUPPLY_OK, supply_close(handle.release()));
    EXPECT_TRUE(folder.is_empty());
}

} // namespace
} // namespace supply_test
