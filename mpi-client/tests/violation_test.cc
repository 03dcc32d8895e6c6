// R3: whatever the task does against the contract is an error that names the field.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "rank.h"

namespace supply_test {
namespace {

struct Violation {
    const char *name;
    /** Does it, before the block is written; the notification's copy in the block then says the same. */
    void (*before)(BlockImage &image, notification &notification);
    /** Does it to the copy alone. */
    void (*copy)(notification &copy);
    std::initializer_list<const char *> words;
};

class ViolationTest : public RankTest, public ::testing::WithParamInterface<Violation> {
  protected:
    static std::vector<Column> columns() {
        Column weight = Column::int32("weight", {1, 2, 3});
        weight.validity = "\x05";
        weight.null_count = 1;
        return {Column::variable("key", "z", {"a", "bc", ""}), Column::int32("label", {7, 8, 9}),
                Column::bits("flag", {true, false, true}), weight};
    }
};

TEST_P(ViolationTest, IsRefusedByTheFieldsName) {
    const Violation &violation = GetParam();
    auto [handle, task] = attached();
    task.write_schema(schema_of(columns()));
    BlockImage image(columns(), 3);
    task.supply(image); // a good one before, so that nothing is 0 by chance
    next(handle);

    notification notification = task.next(image);
    if (violation.before != nullptr) violation.before(image, notification);
    struct notification copy = notification;
    if (violation.copy != nullptr) violation.copy(copy);
    task.write(image.bytes, copy);
    task.publish();
    task.notify(notification);
    expect_violation(handle, violation.words);
    handle.reset();
    EXPECT_TRUE(says(task.header().rank_failure, {"rank 3 failed"})) << "Spark is told";
}

#define BEFORE(statements)                                                                                             \
    [](BlockImage &image, notification &notification) {                                                                \
        (void)image, (void)notification;                                                                               \
        statements;                                                                                                    \
    },                                                                                                                 \
        nullptr
#define COPY(statement) nullptr, [](notification &copy) { statement; }

// clang-format off
const Violation violations[] = {
    {"KindZero", BEFORE(notification.kind = 0), {"notification.kind", "0"}},
    {"KindUnknown", BEFORE(notification.kind = 5), {"notification.kind", "5"}},
    {"KindBelowOptional", BEFORE(notification.kind = 255), {"notification.kind", "255"}},
    {"SequenceTooHigh", BEFORE(notification.sequence = 2), {"notification.sequence is 2", "1"}},
    {"OffsetOfAnotherSlot", BEFORE(notification.offset += 8192), {"notification.offset", "73728"}},
    {"OffsetOutside", BEFORE(notification.offset = UINT64_MAX), {"notification.offset"}},
    {"SizeBelowHeader", BEFORE(notification.size = 127), {"notification.size is 127", "128"}},
    {"SizeBelowColumns", BEFORE(notification.size = 128), {"notification.size is 128", "256"}},
    {"SizeAboveBlock", BEFORE(notification.size = 8193), {"notification.size is 8193", "8192"}},
    {"NoElements", BEFORE(notification.element_count = 0), {"notification.element_count"}},
    {"MoreElements", BEFORE(notification.element_count = 4), {"key", "offsets_bytes"}},
    {"ElementsBeyondAll", BEFORE(notification.element_count = UINT32_MAX), {"key", "offsets_bytes"}},
    {"EndWithElements", BEFORE(notification.kind = NOTIFICATION_END_OF_EPOCH), {"notification.element_count is 3"}},
    {"EndWithColumns", BEFORE(notification.kind = NOTIFICATION_END_OF_DATA; notification.element_count = 0), {"block_header.column_count is 4", "0"}},
    {"CopyOfGeneration", COPY(copy.generation++), {"block_header.notification.generation"}},
    {"CopyOfKind", COPY(copy.kind++), {"block_header.notification.kind"}},
    {"CopyOfElementCount", COPY(copy.element_count++), {"block_header.notification.element_count"}},
    {"CopyOfSequence", COPY(copy.sequence++), {"block_header.notification.sequence"}},
    {"CopyOfEpoch", COPY(copy.epoch++), {"block_header.notification.epoch"}},
    {"CopyOfPartition", COPY(copy.partition++), {"block_header.notification.partition"}},
    {"CopyOfFirstElement", COPY(copy.first_element++), {"block_header.notification.first_element"}},
    {"CopyOfOffset", COPY(copy.offset++), {"block_header.notification.offset"}},
    {"CopyOfSize", COPY(copy.size++), {"block_header.notification.size"}},
    {"CopyOfReserved", COPY(copy.reserved++), {"block_header.notification.reserved"}},
    {"ColumnCount", BEFORE(image.header().column_count = 5), {"block_header.column_count is 5", "4"}},
    {"OffsetsMisaligned", BEFORE(image.column(0).offsets_offset += 4), {"'key'", "offsets_offset", "64"}},
    {"OffsetsInHeader", BEFORE(image.column(0).offsets_offset = 192), {"'key'", "offsets_offset is 192", "256"}},
    {"OffsetsOutside", BEFORE(image.column(0).offsets_offset = 4096), {"'key'", "offsets_offset is 4096"}},
    {"OffsetsMissing", BEFORE(image.column(0).offsets_bytes = 0), {"'key'", "offsets_bytes is 0", "16"}},
    {"OffsetsTooShort", BEFORE(image.column(0).offsets_bytes = 12), {"'key'", "offsets_bytes is 12", "16"}},
    {"OffsetsNegative", BEFORE(image.offsets(0)[0] = -1), {"'key'", "offsets"}},
    {"OffsetsDecrease", BEFORE(image.offsets(0)[1] = 9), {"'key'", "never decrease"}},
    {"OffsetsWrap", BEFORE(image.offsets(0)[3] = INT32_MIN), {"'key'", "never decrease"}},
    {"OffsetsEndEarly", BEFORE(image.offsets(0)[2] = image.offsets(0)[3] = 2), {"'key'", "offsets", "data_bytes"}},
    {"DataOfBytesTooLong", BEFORE(image.column(0).data_bytes = 4), {"'key'", "data_bytes"}},
    {"DataOutside", BEFORE(image.column(1).data_offset = static_cast<uint32_t>(image.bytes.size())), {"'label'", "data_offset"}},
    {"DataFarOutside", BEFORE(image.column(1).data_offset = 0xFFFFFFC0), {"'label'", "data_offset"}},
    {"DataMisaligned", BEFORE(image.column(1).data_offset += 32), {"'label'", "data_offset", "64"}},
    {"DataInHeader", BEFORE(image.column(1).data_offset = 0), {"'label'", "data_offset is 0", "256"}},
    {"DataTooShort", BEFORE(image.column(1).data_bytes = 8), {"'label'", "data_bytes is 8", "12"}},
    {"DataTooLong", BEFORE(image.column(1).data_bytes = 16), {"'label'", "data_bytes is 16", "12"}},
    {"BitsTooLong", BEFORE(image.column(2).data_bytes = 3), {"'flag'", "data_bytes is 3", "1"}},
    {"FixedWithOffsets", BEFORE(image.column(1).offsets_bytes = 16), {"'label'", "offsets_bytes is 16"}},
    {"ValidityTooLong", BEFORE(image.column(3).validity_bytes = 2), {"'weight'", "validity_bytes is 2"}},
    {"ValidityOutside", BEFORE(image.column(3).validity_offset = 8128), {"'weight'", "validity_offset"}},
    {"ValidityMisaligned", BEFORE(image.column(3).validity_offset += 1), {"'weight'", "validity_offset"}},
    {"NullsWithoutValidity", BEFORE(image.column(1).null_count = 1), {"'label'", "null_count is 1"}},
    {"MoreNullsThanElements", BEFORE(image.column(3).null_count = 4), {"'weight'", "null_count is 4"}},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(, ViolationTest, ::testing::ValuesIn(violations),
                         [](const auto &info) { return std::string(info.param.name); });

class OtherViolationTest : public ViolationTest {};

TEST_F(OtherViolationTest, ABlockBeforeTheSchema) {
    auto [handle, task] = attached();
    task.supply(BlockImage(columns(), 3));
    expect_violation(handle, {"schema_columns is 0"});
}

TEST_F(OtherViolationTest, MoreColumnsThanFit) {
    auto [handle, task] = attached();
    task.header().schema_columns = 321;
    task.supply(BlockImage(columns(), 3));
    expect_violation(handle, {"schema_columns is 321", "320"});
}

TEST_F(OtherViolationTest, TextsWithoutAnEnd) {
    for (const char *field : {"name", "format", "child_format"}) {
        auto [handle, task] = attached();
        std::vector<schema_entry> entries = schema_of(columns());
        schema_entry &entry = entries[2];
        if (strcmp(field, "name") == 0)
            memset(entry.name, 'n', sizeof entry.name);
        else if (strcmp(field, "format") == 0)
            memset(entry.format, 'f', sizeof entry.format);
        else
            memset(entry.child_format, 'c', sizeof entry.child_format);
        task.write_schema(entries);
        task.supply(BlockImage(columns(), 3));
        expect_violation(handle, {"schema_entry.", field, "column 2"});
    }
}

// The header's copy lies in memory that the task writes, and gives the task no slot of a held block.
TEST_F(OtherViolationTest, ReleasedThatTheTaskHasWritten) {
    for (uint64_t lie : {UINT64_C(1), UINT64_C(4), UINT64_MAX - 1}) {
        auto [handle, task] = attached();
        task.write_schema(schema_of(columns()));
        const BlockImage image(columns(), 3);
        supply_block_t first = {}, block;
        for (int i = 0; i < 4; i++) {
            task.supply(image);
            ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), i == 0 ? &first : &block), handle);
        }
        supply_column_t key = column_of(handle, first, 0);
        const notification next = task.next(image);
        task.header().released = lie;
        task.write(image.bytes, next);
        task.publish();
        task.notify(next);
        expect_violation(handle, {"published is 5", "released", "4"});
        const void *value;
        size_t bytes;
        EXPECT_STATUS(SUPPLY_OK, supply_value(&key, 1, &value, &bytes), handle);
        EXPECT_EQ("bc", std::string(static_cast<const char *>(value), bytes));
    }
}

TEST_F(OtherViolationTest, PublishedOutsideItsBounds) {
    for (uint64_t published : {0, 5}) { // the block notified is number 0, and 0 + 4 slots are the most
        auto [handle, task] = attached();
        task.write_schema(schema_of(columns()));
        const BlockImage image(columns(), 3);
        const notification notification = task.next(image);
        task.write(image.bytes, notification);
        task.header().published = published;
        task.notify(notification);
        expect_violation(handle, {published == 0 ? "published is 0" : "published is 5"});
    }
}

TEST_F(OtherViolationTest, APartOfANotification) {
    Handle handle = open();
    int pipe = ::open(files.notification_pipe.c_str(), O_WRONLY | O_NONBLOCK);
    ASSERT_EQ(5, write(pipe, "hello", 5));
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
    EXPECT_TRUE(says(supply_error(handle.get()), {files.notification_pipe.c_str(), "5 bytes of 64"}));
    close(pipe);
}

} // namespace
} // namespace supply_test
