// Blocks in a file (PROTOCOL.md, "Resident files"), as a rank sees them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/file_lock.h"
#include "forked.h"
#include "resident_file_test.h"
#include "saved_position.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

/** Whether a reader keeps a cleaner out. */
bool is_read_locked(const std::string &path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const bool is_locked = supply__file_is_locked(fd, F_WRLCK, READER_LOCK_BYTE);
    close(fd);
    return is_locked;
}

TEST_F(ResidentFileTest, LaterEpochsAreReadFromTheFile) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    const void *addresses[2] = {};
    for (uint32_t epoch = 1; epoch < 10; epoch++) {
        for (const uint32_t k : {epoch % 2, 1 - epoch % 2}) {
            task.supply_from_file(file, image.block(k).notification, epoch);
            const supply_block_t block = next(handle);
            EXPECT_EQ(3 * epoch + (k == epoch % 2 ? 0 : 1), block.sequence);
            EXPECT_EQ(epoch, block.epoch);
            EXPECT_EQ(5 + k, block.partition);
            EXPECT_EQ(counts[k], block.element_count);
            EXPECT_EQ(7u, block.column_count);
            EXPECT_EQ(image.block(k).notification.size, block.bytes);
            expect_datums(handle, block, k == 0 ? 0 : counts[0]);
            if (addresses[k] == nullptr) addresses[k] = block.address;
            EXPECT_EQ(addresses[k], block.address) << "nothing is copied";
            release(handle, block);
        }
        task.end_of_epoch(epoch);
        expect_end_of_epoch(handle, epoch);
    }
    task.end_of_data(9);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    supply_statistics_t statistics;
    supply_statistics(handle.get(), &statistics);
    EXPECT_EQ(20u, statistics.blocks);
    EXPECT_EQ(10 * (image.block(0).notification.size + image.block(1).notification.size), statistics.bytes);
    task.see_end();
}

TEST_F(ResidentFileTest, AnotherRunsFileHasAGenerationAndBlocksOfItsOwn) {
    auto [handle, task] = attached();
    task.header().plan = plan;
    const std::vector<Column> large = columns(0, 100);
    task.write_schema(schema_of(large));
    ResidentFileImage image(task.header(), schema_of(large), 65536, 77);
    image.add(BlockImage(large, 100), 5, 200);
    const uint32_t file = add_file(task, image.seal());
    task.supply_from_file(file, image.block(0).notification, 0);
    const supply_block_t block = next(handle);
    EXPECT_LT(8192u, block.bytes) << "more than a slot of the ring";
    EXPECT_EQ(200u, block.first_element);
    ASSERT_EQ(100u, block.element_count);
    expect_datums(handle, block, 0);
}

TEST_F(ResidentFileTest, ABlockIsHeldUnderSeveralNumbers) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    for (uint32_t epoch : {1, 2}) task.supply_from_file(file, image.block(0).notification, epoch);
    const supply_block_t first = next(handle), second = next(handle);
    EXPECT_EQ(first.address, second.address);
    release(handle, first);
    EXPECT_EQ(4u, task.released());
    EXPECT_STATUS(SUPPLY_ERROR_ARGUMENT, supply_release(handle.get(), &first), handle);
    expect_datums(handle, second, 0);
    EXPECT_EQ("position-1:1:1:5:3:5152535455565758", saved_position(handle));
}

TEST_F(ResidentFileTest, DatumsAreReadOneByOne) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    for (const size_t k : {1, 0}) task.supply_from_file(file, image.block(k).notification, 1);
    task.end_of_epoch(1);
    supply_datum_t datum;
    for (const int32_t number : {3, 4, 0, 1, 2}) {
        ASSERT_STATUS(SUPPLY_OK, supply_next_datum(handle.get(), &datum), handle);
        EXPECT_EQ(number, datum.height);
        EXPECT_EQ(1u, datum.epoch);
    }
    EXPECT_STATUS(SUPPLY_END_OF_EPOCH, supply_next_datum(handle.get(), &datum), handle);
}

TEST_F(ResidentFileTest, TheNextAttemptNeedsOnlyTheMappedFile) {
    Handle handle = open();
    auto task = std::make_unique<Task>(files);
    first_epoch(*task);
    receive_first_epoch(handle);
    ResidentFileImage image = image_of(*task);
    const uint32_t file = add_file(*task, image.seal());
    for (const size_t k : {1, 0}) task->supply_from_file(file, image.block(k).notification, 1);
    const supply_block_t held = next(handle);
    task.reset();
    Task next_attempt(files, 1);
    next_attempt.end_of_epoch(1);
    const supply_block_t block = next(handle);
    EXPECT_EQ(held.sequence + 1, block.sequence);
    expect_datums(handle, block, 0);
    expect_datums(handle, held, counts[0]);
    expect_end_of_epoch(handle, 1);
}

TEST_F(ResidentFileTest, ItsNameMayGoWhileItIsRead) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    task.supply_from_file(file, image.block(1).notification, 1);
    release(handle, next(handle));
    std::filesystem::remove(path);
    task.supply_from_file(file, image.block(0).notification, 1);
    expect_datums(handle, next(handle), 0);
}

TEST_F(ResidentFileTest, ItIsLockedUntilTheRankCloses) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    EXPECT_FALSE(is_read_locked(path));
    task.supply_from_file(file, image.block(0).notification, 1);
    next(handle);
    EXPECT_TRUE(is_read_locked(path));
    supply_t *supply = handle.get();
    EXPECT_EQ(0, run_forked([&] { return supply_abandon_in_child(supply) == SUPPLY_OK ? 0 : 1; }));
    EXPECT_TRUE(is_read_locked(path)) << "the lock is the parent's";
    handle.reset();
    EXPECT_FALSE(is_read_locked(path));
}

TEST_F(ResidentFileTest, ARankOrAFileMayNotKnowItsRank) {
    const std::pair<int32_t, int32_t> ranks[] = {{-1, 3}, {3, -1}, {-1, -1}};
    for (const auto &[of_pair, of_file] : ranks) {
        options.rank = of_pair;
        Supplied supplied(*this, [file = of_file](ResidentFileImage &image) { image.header().rank = file; });
        auto &[handle, task, image, file] = supplied;
        task.supply_from_file(file, image.block(0).notification, 1);
        expect_datums(handle, next(handle), 0);
    }
}

/** How often this process has that file open. */
int open_count(const std::string &path) {
    int count = 0;
    std::error_code gone;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd"))
        count += std::filesystem::read_symlink(entry.path(), gone) == path;
    return count;
}

TEST_F(ResidentFileTest, AWriterThatClosesTheFileNowIsWaitedFor) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    std::atomic<bool> is_received{false};
    std::thread closer([&] {
        wait_until("the rank to open the file", [&] { return open_count(path) == 2 || is_received; });
        close(writer);
    });
    task.supply_from_file(file, image.block(0).notification, 1);
    next(handle);
    is_received = true;
    closer.join();
}

// supply_next() waits for the writer, which closes the file only after the release of an array.
TEST_F(ResidentFileTest, ArraysAreReleasedWhileTheRankWaitsForAWriter) {
    auto [handle, task] = attached();
    first_epoch(task);
    const supply_block_t exported = next(handle);
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &exported, SUPPLY_ALL_COLUMNS, nullptr, &array), handle);
    release(handle, exported);
    release(handle, next(handle));
    expect_end_of_epoch(handle, 0);
    EXPECT_EQ(0U, task.released());
    ResidentFileImage image = image_of(task);
    const uint32_t file = add_file(task, image.seal());
    const int writer = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    task.supply_from_file(file, image.block(0).notification, 1);
    std::thread releaser([&] {
        usleep(100000); /* supply_next() waits by now */
        array.release(&array);
        close(writer);
    });
    const supply_block_t block = next(handle);
    releaser.join();
    EXPECT_EQ(3U, task.released());
    release(handle, block);
}

TEST_F(ResidentFileTest, AnArrowArrayOutlivesTheHandle) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    task.supply_from_file(file, image.block(0).notification, 1);
    const supply_block_t block = next(handle);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handle.get(), &block, SUPPLY_ALL_COLUMNS, &schema, &array), handle);
    schema.release(&schema);
    handle.reset();
    std::filesystem::remove(path);
    ASSERT_EQ(7, array.n_children);
    const ArrowArray &labels = *array.children[1];
    for (uint32_t i = 0; i < counts[0]; i++)
        EXPECT_EQ(numbered_element(i).label, static_cast<const int32_t *>(labels.buffers[1])[i]);
    array.release(&array);
}

/** The errors of the file system, after the task has written the file's entry. */
class ResidentFileErrorTest : public ResidentFileTest {
  protected:
    void expect_refused(const std::function<void()> &change, int error, std::initializer_list<const char *> words) {
        Supplied supplied(*this);
        auto &[handle, task, image, file] = supplied;
        change();
        task.supply_from_file(file, image.block(0).notification, 1);
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_ERROR_SYSTEM, supply_next(handle.get(), &block), handle);
        EXPECT_EQ(error, supply_error_errno(handle.get()));
        EXPECT_TRUE(says(supply_error(handle.get()), words));
        EXPECT_TRUE(says(supply_error(handle.get()), {"pair 0", path.c_str(), "--resident-folder"}));
        EXPECT_EQ(std::string::npos, std::string(supply_error(handle.get())).find("in-place"));
        EXPECT_STATUS(SUPPLY_ERROR_SYSTEM, supply_next(handle.get(), &block), handle) << "it stays";
    }
};

TEST_F(ResidentFileErrorTest, AFileThatIsNotThere) {
    expect_refused([&] { std::filesystem::remove(path); }, ENOENT, {"cannot be opened", "on this node"});
}

TEST_F(ResidentFileErrorTest, AFileThatHasChanged) {
    expect_refused([&] { std::filesystem::resize_file(path, 65536); }, ESTALE, {"has changed since"});
}

TEST_F(ResidentFileErrorTest, AFileThatThePairsGroupMayNotRead) {
    const std::string group = std::to_string(getegid());
    options.group = group.c_str();
    expect_refused([&] { ASSERT_EQ(0, chmod(path.c_str(), 0600)); }, EACCES, {"pair's group", "group="});
}

TEST_F(ResidentFileErrorTest, AFileThatAnotherProcessRemoves) {
    int cleaner = -1;
    expect_refused(
        [&] {
            // A lock for writing needs a descriptor for writing, which a lease would not allow later.
            cleaner = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
            ASSERT_EQ(0, supply__file_lock(cleaner, F_WRLCK, READER_LOCK_BYTE));
        },
        EBUSY, {"open for writing"});
    close(cleaner);
}

TEST_F(ResidentFileErrorTest, AChangeIsFoundAtTheNextNotification) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    task.supply_from_file(file, image.block(0).notification, 1);
    next(handle);
    const struct timespec times[] = {{0, UTIME_OMIT}, {1, 0}}; // as a writer that no lease stops
    ASSERT_EQ(0, utimensat(AT_FDCWD, path.c_str(), times, 0));
    task.end_of_epoch(1);
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_SYSTEM, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {"--resident-folder", "has changed since", "may be wrong"}));
}

} // namespace
} // namespace supply_test
