// O2: supply_open() reserves the mapped file. A full file system is its error, never a SIGBUS later.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "forked.h"
#include "small_file_system.h"

namespace {

// Other tests of this program open pairs in several threads.
std::atomic<off_t> reserved_between_signals; // 0: no signals
std::atomic<off_t> reserved_bytes;

} // namespace

/*
 * Stands for older kernels under an interval timer, which undo the whole call when a signal interrupts it: a range that
 * takes longer than the time between two signals is never reserved. Kernels of today resume.
 */
extern "C" int posix_fallocate(int fd, off_t offset, off_t bytes) {
    if (reserved_between_signals > 0 && bytes > reserved_between_signals) return EINTR;
    if (fallocate(fd, 0, offset, bytes) != 0) return errno;
    reserved_bytes += bytes;
    return 0;
}

namespace supply_test {
namespace {

using NoSpaceTest = SmallFileSystemTest;

TEST_F(NoSpaceTest, SaysWhatIsNeededWhatIsFreeAndWhatToSet) {
    const std::string mapped = small + "/mapped";
    options.mapped_file = mapped.c_str();
    options.block_bytes = 1 << 20;
    options.ring_bytes = 4 << 20;
    Handle handle = open(SUPPLY_ERROR_NO_SPACE);
    EXPECT_TRUE(
        says(supply_error(handle.get()), {mapped.c_str(), "4259840 bytes are needed", "free", "ring=", "block="}));
    EXPECT_TRUE(std::filesystem::is_empty(small)) << "the mapped file is still there";

    options.block_bytes = 64 << 10;
    options.ring_bytes = 512 << 10;
    Handle fits = open();
    options.mapped_file = nullptr;
}

TEST_F(NoSpaceTest, AFileThatDoesNotFitTakesNoSpace) {
    const std::string mapped = small + "/mapped";
    options.mapped_file = mapped.c_str();
    options.block_bytes = 1 << 20;
    // Its first steps would fit.
    options.ring_bytes = 256 << 20;
    ASSERT_EQ(0, mount("supply-test", small.c_str(), "tmpfs", MS_REMOUNT, "size=200m"));
    reserved_bytes = 0;
    Handle handle = open(SUPPLY_ERROR_NO_SPACE);
    EXPECT_EQ(0, reserved_bytes.load());
}

TEST_F(NoSpaceTest, ExactlyEnoughIsEnough) {
    const std::string mapped = small + "/mapped";
    options.mapped_file = mapped.c_str();
    options.block_bytes = 4096;
    options.ring_bytes = 8192;
    ASSERT_EQ(0, mount("supply-test", small.c_str(), "tmpfs", MS_REMOUNT, "size=73728"));
    open();
    options.ring_bytes = 12288;
    Handle larger = open(SUPPLY_ERROR_NO_SPACE);
    EXPECT_TRUE(says(supply_error(larger.get()), {"77824 bytes are needed", "73728 are free"}));
}

TEST_F(NoSpaceTest, EveryPageOfAPairThatOpenedIsThere) {
    const std::string mapped = small + "/mapped";
    options.mapped_file = mapped.c_str();
    options.block_bytes = 64 << 10;
    options.ring_bytes = 896 << 10;
    Handle handle = open();
    size_t bytes;
    const auto *mapping = static_cast<const volatile uint8_t *>(supply_mapping(handle.get(), &bytes));
    std::string rest(1 << 20, 'x');
    FILE *filler = fopen((small + "/filler").c_str(), "w");
    setbuf(filler, nullptr);
    EXPECT_LT(fwrite(rest.data(), 1, rest.size(), filler), rest.size()) << "the file system should be full now";
    fclose(filler);
    PairFiles small_files = files;
    small_files.mapped_file = mapped;
    Task task(small_files);
    std::vector<uint8_t> block(64 << 10, 0xAB);
    for (int slot = 0; slot < 14; slot++) {
        task.write(block, task.next(NOTIFICATION_BLOCK, 1, block.size()));
        task.publish();
    }
    EXPECT_EQ(0xAB, mapping[bytes - 1]);
}

TEST_F(NoSpaceTest, AFileSystemWithoutALimit) {
    const std::string mapped = small + "/mapped";
    options.mapped_file = mapped.c_str();
    ASSERT_EQ(0, mount("supply-test", small.c_str(), "tmpfs", MS_REMOUNT, "size=0"));
    Handle handle = open();
    ASSERT_EQ(0, umount2(small.c_str(), MNT_DETACH));
}

class ReserveTest : public RankTest {};

TEST_F(ReserveTest, SignalsDoNotRestartIt) {
    options.block_bytes = 1 << 20;
    options.ring_bytes = 4 << 20;
    reserved_between_signals = 64 << 10;
    Handle handle = open();
    reserved_between_signals = 0;
    struct stat entry;
    ASSERT_EQ(0, stat(files.mapped_file.c_str(), &entry));
    EXPECT_GE(512 * entry.st_blocks, 4 << 20);
}

class FileSizeLimitTest : public RankTest {};

TEST_F(FileSizeLimitTest, IsAnErrorAndNoSignal) {
    for (const rlim_t bytes : {0, 16384}) {
        const int status = run_forked([&] {
            const rlimit limit = {bytes, bytes};
            setrlimit(RLIMIT_FSIZE, &limit);
            supply_t *supply;
            const bool refused = supply_open(&supply, &options) == SUPPLY_ERROR_NO_SPACE &&
                                 says(supply_error(supply), {files.mapped_file.c_str(), "98304 bytes are needed",
                                                             std::to_string(bytes).c_str(), "ulimit -f", "ring="});
            supply_close(supply);
            return refused ? 0 : 1;
        });
        EXPECT_EQ(0, status) << bytes;
        EXPECT_TRUE(folder.is_empty());
    }
}

} // namespace
} // namespace supply_test
