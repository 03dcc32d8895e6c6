// Golden files: the rank writes its own to the byte, and reads the task's.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "golden.h"

extern "C" {
#include "api/filler.h"
#include "pair/pair.h"
}

namespace supply_test {
namespace {

class GoldenTest : public RankTest {
  protected:
    Handle replay_golden(const std::string &run) {
        return replay(files, read_golden(run + ".mapped"), read_golden(run + ".notifications"));
    }

    /** Reads everything that lies in a pipe of this process. */
    static std::string drain(int fd) {
        char bytes[4096];
        ssize_t got = read(fd, bytes, sizeof bytes);
        return std::string(bytes, got > 0 ? static_cast<size_t>(got) : 0);
    }

    static void expect_datum(const Element &expected, const supply_datum_t &datum) {
        EXPECT_EQ(expected.key, std::string(static_cast<const char *>(datum.key), datum.key_bytes));
        EXPECT_EQ(expected.data, std::string(static_cast<const char *>(datum.data), datum.data_bytes));
        EXPECT_EQ(expected.label, datum.label);
        EXPECT_EQ(expected.channels, datum.channels);
        EXPECT_EQ(expected.height, datum.height);
        EXPECT_EQ(expected.width, datum.width);
        EXPECT_EQ(expected.encoded, datum.encoded);
    }
};

TEST_F(GoldenTest, TheRankWritesItsGoldenFilesToTheByte) {
    struct settings settings = golden_settings(files);
    struct pair pair;
    struct failure failure = {};
    ASSERT_EQ(SUPPLY_OK, supply__pair_open(&pair, &settings, &failure)) << failure.text;
    supply__pair_receive(&pair);
    supply__pair_unhold(&pair, 0);
    supply__pair_publish_released(&pair);
    supply__pair_stop(&pair, "the test gave up");
    const std::string mapped = read_file(files.mapped_file);
    const std::string requests = drain(pair.request_pipe.fd);
    supply__pair_close(&pair);
    expect_golden("rank.mapped", mapped);
    expect_golden("rank.requests", requests);
}

TEST_F(GoldenTest, TheReadersOfARingWriteTheirGoldenFilesToTheByte) {
    const PairFiles second{folder.file("mapped1"), folder.file("request1"), folder.file("notification1")};
    struct settings settings[] = {golden_settings(files), golden_settings(second)};
    settings[0].readers = settings[1].readers = 2;
    settings[1].reader = 1;
    settings[1].rank = 2;
    settings[1].local_rank = 1;
    settings[1].rank_pid = 4243;
    settings[1].generation = 1;
    settings[1].ring_file = {strdup(files.mapped_file.c_str()), strdup("test")};
    struct pair pairs[2];
    struct failure failure = {};
    for (int i = 0; i < 2; i++)
        ASSERT_EQ(SUPPLY_OK, supply__pair_open(&pairs[i], &settings[i], &failure)) << failure.text;
    const std::string mapped[] = {read_file(files.mapped_file), read_file(second.mapped_file)};
    for (struct pair &pair : pairs) supply__pair_close(&pair);
    expect_golden("rank-readers-0.mapped", mapped[0]);
    expect_golden("rank-readers-1.mapped", mapped[1]);
}

TEST_F(GoldenTest, TheTasksGoldenFilesAreRead) {
    const Element expected[] = {
        {"00000005", 7, 1, 2, 2, false, std::string("\0\1\2\3", 4)},
        {"a/b\\\xff", -1, 0, 0, 0, true, ""},
        {"", 0, 3, 1, 1, false, std::string("\xff\x80\0", 3)},
    };
    Handle handle = replay_golden("task");
    supply_block_t block = next(handle);
    EXPECT_EQ(0u, block.sequence);
    EXPECT_EQ(0u, block.epoch);
    EXPECT_EQ(2u, block.partition);
    EXPECT_EQ(5u, block.first_element);
    ASSERT_EQ(3u, block.element_count);
    EXPECT_EQ(7u, block.column_count);
    for (uint32_t i = 0; i < 3; i++) {
        supply_datum_t datum = datum_of(handle, block, i);
        expect_datum(expected[i], datum);
        EXPECT_EQ(0u, datum.epoch);
    }
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    EXPECT_EQ(0u, block.epoch);
    ASSERT_STATUS(SUPPLY_ERROR_SPARK, supply_next(handle.get(), &block), handle);
    EXPECT_STREQ("the test failed", supply_error(handle.get()));

    const auto *header = static_cast<const mapped_file_header *>(supply_mapping(handle.get(), nullptr));
    EXPECT_EQ(4343u, header->task_pid);
    EXPECT_EQ(0u, header->task_attempt);
    EXPECT_EQ(2u, header->published);
}

TEST_F(GoldenTest, TheTasksGoldenFilesWithAWideSchemaAreRead) {
    Handle handle = replay_golden("task-wide");
    std::string name;
    for (int i = 0; i < 50; i++) name += "label";
    supply_block_t block = next(handle);
    EXPECT_EQ(0, supply_column_index(handle.get(), "key"));
    EXPECT_EQ(1, supply_column_index(handle.get(), name.c_str()));
    supply_column_t label = column_of(handle, block, 1);
    EXPECT_EQ(7, static_cast<const int32_t *>(label.data)[0]);
    EXPECT_EQ(-1, static_cast<const int32_t *>(label.data)[1]);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
}

TEST_F(GoldenTest, TheTasksGoldenFilesWithNestedColumnsAreRead) {
    Handle handle = replay_golden("task-nested");
    supply_block_t block = next(handle);
    ASSERT_EQ(3u, block.element_count);
    ASSERT_EQ(3u, block.column_count);
    supply_column_t columns[3];
    for (int i = 0; i < 3; i++) ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &block, i, &columns[i]), handle);
    const auto child = [&](const supply_column_t &of, int number) {
        supply_column_t found = {};
        EXPECT_STATUS(SUPPLY_OK, supply_column_child(handle.get(), &block, &of, number, &found), handle);
        return found;
    };
    const auto numbers = [](const supply_column_t &of) {
        const auto *data = static_cast<const int32_t *>(of.data);
        return std::vector<int32_t>(data, data + of.element_count);
    };
    const auto offsets = [](const supply_column_t &of) {
        return std::vector<int32_t>(of.offsets, of.offsets + of.element_count + 1);
    };
    using Numbers = std::vector<int32_t>;
    EXPECT_EQ((Numbers{0, 3, 3, 3}), offsets(columns[0]));
    EXPECT_EQ(0x03, static_cast<const uint8_t *>(columns[0].validity)[0]);
    const supply_column_t tokens = child(columns[0], 0);
    EXPECT_EQ((Numbers{1, 0, 3}), numbers(tokens));
    EXPECT_EQ(0x05, static_cast<const uint8_t *>(tokens.validity)[0]);
    EXPECT_EQ(0x05, static_cast<const uint8_t *>(columns[1].validity)[0]);
    EXPECT_EQ((Numbers{7, 0, 9}), numbers(child(columns[1], 0)));
    const supply_column_t name = child(columns[1], 1);
    EXPECT_EQ((Numbers{0, 1, 1, 1}), offsets(name));
    EXPECT_EQ("a", std::string(static_cast<const char *>(name.data), 1));
    EXPECT_EQ((Numbers{0, 1, 1, 3}), offsets(columns[2]));
    const supply_column_t entries = child(columns[2], 0);
    EXPECT_EQ("klm", std::string(static_cast<const char *>(child(entries, 0).data), 3));
    const supply_column_t counts = child(entries, 1);
    EXPECT_EQ((Numbers{1, 0, 2}), numbers(counts));
    EXPECT_EQ(0x05, static_cast<const uint8_t *>(counts.validity)[0]);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
}

TEST_F(GoldenTest, TheTasksGoldenFilesWithAnExchangeAreRead) {
    Handle handle = replay_golden("task-exchange");
    struct filler_pair pair;
    ASSERT_EQ(SUPPLY_OK, supply__filler_inspect(handle.get(), &pair));
    EXPECT_EQ(static_cast<uint32_t>(EXCHANGE_ALL), pair.header->exchange);
    EXPECT_EQ(0x5152535455565758u, pair.header->exchange_seed);
    EXPECT_EQ(250000u, pair.header->exchange_fraction);
    supply__filler_claim(handle.get());
    supply_block_t block = next(handle);
    EXPECT_EQ(3u, block.element_count);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
}

TEST_F(GoldenTest, TheTasksGoldenFilesWithValuesInPlaceAreRead) {
    const std::string contents = read_golden("task-in-place.foreign");
    const Element expected[] = {
        {"inline", 1, 1, 2, 6, false, contents.substr(0, 12)},
        {"short", 2, 1, 1, 13, false, contents.substr(16, 13)},
        {"long", 3, 1, 5, 10, false, contents.substr(40, 50)},
        {"none", 4, 0, 0, 0, true, ""},
    };
    std::string mapped = read_golden("task-in-place.mapped");
    const auto &entry = *reinterpret_cast<const foreign_file *>(mapped.data() + FOREIGN_FILES_OFFSET);
    EXPECT_STREQ("/golden/task-in-place.foreign", entry.path);
    EXPECT_EQ(0x2122232425262728u, entry.device);
    EXPECT_EQ(0x3132333435363738u, entry.inode);
    EXPECT_EQ(contents.size(), entry.file_bytes);
    EXPECT_EQ(0x4142434445464748u, entry.modified);
    place_foreign_file(folder, "task-in-place.foreign", contents, mapped);
    Handle handle = replay(files, mapped, read_golden("task-in-place.notifications"));
    supply_block_t block = next(handle);
    EXPECT_EQ(2u, block.partition);
    EXPECT_EQ(5u, block.first_element);
    ASSERT_EQ(4u, block.element_count);
    for (uint32_t i = 0; i < 4; i++) {
        supply_datum_t datum = datum_of(handle, block, i);
        expect_datum(expected[i], datum);
    }
    supply_statistics_t statistics;
    supply_statistics(handle.get(), &statistics);
    EXPECT_EQ(block.bytes + 13 + 50, statistics.bytes);
    ASSERT_STATUS(SUPPLY_OK, supply_release(handle.get(), &block), handle);
    ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
}

TEST_F(GoldenTest, TheTasksGoldenFilesWithAResidentFileAreRead) {
    const Element datums[] = {
        {"00000005", 7, 1, 2, 2, false, std::string("\0\1\2\3", 4)},
        {"a/b\\\xff", -1, 0, 0, 0, true, ""},
        {"", 0, 3, 1, 1, false, std::string("\xff\x80\0", 3)},
    };
    const struct {
        uint32_t partition, count;
        const Element *datums;
    } blocks[] = {{2, 2, datums}, {4, 1, datums + 2}};
    const int orders[][2] = {{0, 1}, {1, 0}, {0, 1}};
    std::string mapped = read_golden("task-resident-file.mapped");
    place_foreign_file(folder, "task-resident-file.resident", read_golden("task-resident-file.resident"), mapped);
    Handle handle = replay(files, mapped, read_golden("task-resident-file.notifications"));
    supply_block_t block;
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        for (const int k : orders[epoch]) {
            ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);
            EXPECT_EQ(epoch, block.epoch);
            EXPECT_EQ(blocks[k].partition, block.partition);
            EXPECT_EQ(0u, block.first_element);
            ASSERT_EQ(blocks[k].count, block.element_count);
            for (uint32_t i = 0; i < block.element_count; i++) {
                supply_datum_t datum = datum_of(handle, block, i);
                expect_datum(blocks[k].datums[i], datum);
            }
        }
        ASSERT_STATUS(SUPPLY_END_OF_EPOCH, supply_next(handle.get(), &block), handle);
    }
    ASSERT_STATUS(SUPPLY_END_OF_DATA, supply_next(handle.get(), &block), handle);
    // Closing would wait for a task that sees the end.
    supply_abort(handle.release(), nullptr);
}

TEST_F(GoldenTest, TheCountsAreRead) {
    supply_counts_t counts;
    Handle handle = replay(files, read_golden("task.mapped"), "");
    ASSERT_STATUS(SUPPLY_OK, supply_counts(handle.get(), &counts), handle);
    EXPECT_EQ(60u, counts.epoch_elements);
    EXPECT_EQ(20u, counts.epoch_steps);
}

} // namespace
} // namespace supply_test
