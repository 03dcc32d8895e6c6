// O1 to O4 as the task sees them, and the end of a pair.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "rank.h"

namespace supply_test {
namespace {

class PairTest : public RankTest {};

size_t open_descriptors() {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder) != nullptr) count++;
    closedir(folder);
    return count;
}

std::vector<uint32_t> kinds(const std::vector<request> &requests) {
    std::vector<uint32_t> kinds;
    for (const request &request : requests) kinds.push_back(request.kind);
    return kinds;
}

TEST_F(PairTest, TheHeaderSaysWhatTheContractAsks) {
    auto [handle, task] = attached();
    const mapped_file_header &header = task.header();
    EXPECT_EQ(0, memcmp("SUPPLY\r\n", header.magic, 8));
    EXPECT_EQ(0x00010006u, header.version);
    EXPECT_EQ(0x01020304u, header.byte_order);
    EXPECT_NE(0u, header.generation);
    EXPECT_EQ(65536u + 4 * 8192, header.file_bytes);
    EXPECT_EQ(65536u, header.ring_offset);
    EXPECT_EQ(8192u, header.block_bytes);
    EXPECT_EQ(4u, header.block_count);
    EXPECT_EQ(static_cast<uint32_t>(getpid()), header.rank_pid);
    EXPECT_EQ(3, header.rank);
    EXPECT_EQ(0, header.local_rank);
    EXPECT_EQ(0u, header.released);
    EXPECT_EQ(0u, header.published);

    const std::vector<request> requests = task.requests();
    ASSERT_EQ(1u, requests.size());
    EXPECT_EQ(static_cast<uint32_t>(REQUEST_ATTACH), requests[0].kind);
    EXPECT_EQ(header.generation, requests[0].generation);
    EXPECT_EQ(0u, requests[0].reserved);
}

TEST_F(PairTest, EveryPairHasAGenerationOfItsOwn) {
    uint64_t first;
    {
        auto [handle, task] = attached();
        first = task.header().generation;
    }
    auto [handle, task] = attached();
    EXPECT_NE(first, task.header().generation);
}

TEST_F(PairTest, NothingIsLeft) {
    const size_t before = open_descriptors();
    {
        auto [handle, task] = attached();
        supply_datums(task, 0, 3);
        next(handle);
    }
    {
        Handle refused = (folder.write("notification", ""), open(SUPPLY_ERROR_CONFIG));
    }
    unlink(files.notification_pipe.c_str());
    EXPECT_TRUE(folder.is_empty());
    EXPECT_EQ(before, open_descriptors());
}

TEST_F(PairTest, DescriptorsDoNotPassToOtherPrograms) {
    Handle handle = open();
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0) continue;
        char target[4096] = {};
        if (readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1) < 0) continue;
        if (strncmp(target, folder.path().c_str(), folder.path().size()) == 0) {
            EXPECT_TRUE(flags & FD_CLOEXEC) << target;
        }
    }
}

TEST_F(PairTest, ClosingEarlyTellsSparkThePlace) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 3);
    task.end_of_epoch(0);
    supply_datums(task, 0, 3, 1);
    supply_block_t block = next(handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ((std::vector<uint32_t>{REQUEST_ATTACH}), kinds(task.requests()));
    EXPECT_EQ(0u, task.header().acknowledged) << "the rank has had the end of the epoch, and has not asked for more";
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(2u, task.header().acknowledged) << "although it holds a block of that epoch";
    EXPECT_EQ((std::vector<uint32_t>{REQUEST_RELEASE}), kinds(task.requests()));
    handle.reset();
    EXPECT_STREQ("rank 3 closed its pair before the end of data (epoch 1, sequence 3)", task.header().rank_failure);
    EXPECT_EQ((std::vector<uint32_t>{REQUEST_STOP}), kinds(task.requests()));
    EXPECT_EQ(0u, task.released()) << "what an early end held is not released";
    EXPECT_TRUE(task.rank_has_left());
}

TEST_F(PairTest, ClosingAfterTheEndReleasesEverything) {
    auto [handle, task] = attached();
    supply_datums(task, 0, 3);
    task.end_of_epoch(0);
    task.end_of_data(0);
    supply_block_t block = next(handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(0u, task.released()) << "the first block is held";
    std::thread end([&] { task.see_end(); });
    handle.reset();
    end.join();
    EXPECT_EQ(3u, task.released());
    EXPECT_EQ((std::vector<uint32_t>{REQUEST_ATTACH, REQUEST_RELEASE, REQUEST_RELEASE}), kinds(task.requests()));
    EXPECT_STREQ("", task.header().rank_failure);
}

TEST_F(PairTest, AbortGivesTheReasonInOneLineThatFits) {
    auto [handle, task] = attached();
    task.requests();
    /* 1,022 bytes and one character of two: it does not fit with its end, and must not be cut in two. */
    const std::string reason = "loss\nis\tnot a number" + std::string(1002, '.') + "\u00fc";
    supply_abort(handle.release(), reason.c_str());
    const std::string told = task.header().rank_failure;
    EXPECT_EQ("loss is not a number" + std::string(1002, '.'), told);
    EXPECT_EQ((std::vector<uint32_t>{REQUEST_STOP}), kinds(task.requests()));
    EXPECT_TRUE(folder.is_empty());
}

TEST_F(PairTest, StopArrivesThroughAFullPipe) {
    auto [handle, task] = attached();
    for (uint32_t i = 0; i < 5000; i++) { // a pipe holds 4,096 requests
        supply_datums(task, i, 1);
        supply_block_t block = next(handle);
        ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    }
    handle.reset();
    const std::vector<request> requests = task.requests();
    ASSERT_FALSE(requests.empty());
    EXPECT_EQ(static_cast<uint32_t>(REQUEST_STOP), requests.back().kind);
    EXPECT_EQ(5000u, task.released());
}

TEST_F(PairTest, TheMappingIsTheWholeFileAndOnlyTheTaskWritesBlocks) {
    auto [handle, task] = attached();
    size_t bytes = 0;
    const auto *mapping = static_cast<const uint8_t *>(supply_mapping(handle.get(), &bytes));
    ASSERT_NE(nullptr, mapping);
    EXPECT_EQ(task.header().file_bytes, bytes);
    supply_datums(task, 0, 1);
    supply_block_t block = next(handle);
    EXPECT_EQ(mapping + 65536, block.address);
    EXPECT_EQ(supply_mapping(handle.get(), nullptr), mapping);
    EXPECT_EXIT(
        *static_cast<volatile uint8_t *>(const_cast<void *>(block.address)) = 1, [](int status) { return status != 0; },
        "");
}

TEST_F(PairTest, AHandleThatDidNotOpenRefusesEveryCall) {
    folder.write("mapped", "precious");
    Handle handle = open(SUPPLY_ERROR_CONFIG);
    supply_block_t block = {};
    supply_column_t column;
    supply_datum_t datum;
    supply_statistics_t statistics;
    size_t bytes = 1;
    for (supply_t *supply : {handle.get(), static_cast<supply_t *>(nullptr)}) {
        const supply_status_t refused = supply == nullptr ? SUPPLY_ERROR_ARGUMENT : SUPPLY_ERROR_CONFIG;
        EXPECT_EQ(refused, supply_next(supply, &block));
        EXPECT_EQ(refused, supply_try_next(supply, &block));
        EXPECT_EQ(refused, supply_release(supply, &block));
        EXPECT_EQ(refused, supply_column(supply, &block, 0, &column));
        EXPECT_EQ(refused, supply_datum(supply, &block, 0, &datum));
        EXPECT_EQ(refused, supply_next_datum(supply, &datum));
        EXPECT_EQ(refused, supply_column_index(supply, "key"));
        EXPECT_EQ(-1, supply_fd(supply));
        EXPECT_EQ(nullptr, supply_mapping(supply, &bytes));
        EXPECT_EQ(0u, bytes);
        supply_statistics(supply, &statistics);
        EXPECT_EQ(0u, statistics.blocks);
        EXPECT_STRNE("", supply_error(supply));
    }
    EXPECT_TRUE(says(supply_error(handle.get()), {files.mapped_file.c_str()})) << "the text of the failed open stays";
    supply_abort(handle.release(), "never opened");
    supply_abort(nullptr, nullptr);
    EXPECT_EQ(SUPPLY_ERROR_ARGUMENT, supply_open(nullptr, &options));
}

TEST(NamesTest, EveryStatusHasItsName) {
    EXPECT_STREQ("SUPPLY_OK", supply_status_name(SUPPLY_OK));
    EXPECT_STREQ("SUPPLY_ERROR_ALL_HELD", supply_status_name(SUPPLY_ERROR_ALL_HELD));
    for (int status = SUPPLY_ERROR_ALL_HELD; status <= SUPPLY_AGAIN; status++)
        EXPECT_EQ(0, strncmp("SUPPLY_", supply_status_name(static_cast<supply_status_t>(status)), 7)) << status;
    EXPECT_STREQ("unknown status", supply_status_name(static_cast<supply_status_t>(99)));
    EXPECT_STREQ("1.6", supply_contract_version());
}

} // namespace
} // namespace supply_test
