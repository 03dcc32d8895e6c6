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
    void (*before)(Task &task, BlockImage &image, notification &notification);
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

    void expect_refused(const Handle &handle, std::initializer_list<const char *> words) {
        supply_block_t block;
        ASSERT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
        const std::string text = supply_error(handle.get());
        EXPECT_TRUE(says(text, words));
        EXPECT_TRUE(says(text, {"pair 0", files.mapped_file.c_str()}));
        EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle) << "it stays";
        EXPECT_EQ(text, supply_error(handle.get()));
    }
};

TEST_P(ViolationTest, IsRefusedByTheFieldsName) {
    const Violation &violation = GetParam();
    Handle handle = open();
    Task task(files);
    task.write_schema(schema_of(columns()));
    BlockImage image(columns(), 3);
    task.supply(image); // a good one before, so that nothing is 0 by chance
    supply_block_t block;
    ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), &block), handle);

    notification notification = task.next(image);
    if (violation.before != nullptr) violation.before(task, image, notification);
    struct notification copy = notification;
    if (violation.copy != nullptr) violation.copy(copy);
    task.write(image.bytes, copy);
    task.publish();
    task.notify(notification);
    expect_refused(handle, violation.words);
    handle.reset();
    EXPECT_TRUE(says(task.header().rank_failure, {"rank 3 failed"})) << "Spark is told";
}

#define BEFORE [](Task &task, BlockImage &image, notification &notification)
#define UNUSED (void)task, (void)image, (void)notification

const Violation violations[] = {{"KindZero", BEFORE{UNUSED;
notification.kind = 0;
} // namespace
, nullptr, {"notification.kind", "0"}
} // namespace supply_test
, {"KindUnknown", BEFORE{UNUSED;
notification.kind = 5;
}
, nullptr, {"notification.kind", "5"}
}
, {"KindBelowOptional", BEFORE{UNUSED;
notification.kind = 255;
}
, nullptr, {"notification.kind", "255"}
}
, {"SequenceTooHigh", BEFORE{UNUSED;
notification.sequence = 2;
}
, nullptr, {"notification.sequence is 2", "1"}
}
, {"OffsetOfAnotherSlot", BEFORE{UNUSED;
notification.offset += 8192;
}
, nullptr, {"notification.offset", "73728"}
}
, {"OffsetOutside", BEFORE{UNUSED;
notification.offset = UINT64_MAX;
}
, nullptr, {"notification.offset"}
}
, {"SizeBelowHeader", BEFORE{UNUSED;
notification.size = 127;
}
, nullptr, {"notification.size is 127", "128"}
}
, {"SizeBelowColumns", BEFORE{UNUSED;
notification.size = 128;
}
, nullptr, {"notification.size is 128", "256"}
}
, {"SizeAboveBlock", BEFORE{UNUSED;
notification.size = 8193;
}
, nullptr, {"notification.size is 8193", "8192"}
}
, {"NoElements", BEFORE{UNUSED;
notification.element_count = 0;
}
, nullptr, {"notification.element_count"}
}
, {"MoreElements", BEFORE{UNUSED;
notification.element_count = 4;
}
, nullptr, {"key", "offsets_bytes"}
}
, {"ElementsBeyondAll", BEFORE{UNUSED;
notification.element_count = UINT32_MAX;
}
, nullptr, {"key", "offsets_bytes"}
}
, {"EndWithElements", BEFORE{UNUSED;
notification.kind = NOTIFICATION_END_OF_EPOCH;
}
, nullptr, {"notification.element_count is 3"}
}
, {"EndWithColumns", BEFORE{UNUSED;
notification.kind = NOTIFICATION_END_OF_DATA;
notification.element_count = 0;
}
, nullptr, {"block_header.column_count is 4", "0"}
}
,
    {"CopyOfGeneration",
     nullptr,
     [](notification &copy) { copy.generation++; },
     {"block_header.notification.generation"}},
    {"CopyOfKind", nullptr, [](notification &copy) { copy.kind++; }, {"block_header.notification.kind"}},
    {"CopyOfElementCount",
     nullptr,
     [](notification &copy) { copy.element_count++; },
     {"block_header.notification.element_count"}},
    {"CopyOfSequence", nullptr, [](notification &copy) { copy.sequence++; }, {"block_header.notification.sequence"}},
    {"CopyOfEpoch", nullptr, [](notification &copy) { copy.epoch++; }, {"block_header.notification.epoch"}},
    {"CopyOfPartition", nullptr, [](notification &copy) { copy.partition++; }, {"block_header.notification.partition"}},
    {"CopyOfFirstElement",
     nullptr,
     [](notification &copy) { copy.first_element++; },
     {"block_header.notification.first_element"}},
    {"CopyOfOffset", nullptr, [](notification &copy) { copy.offset++; }, {"block_header.notification.offset"}},
    {"CopyOfSize", nullptr, [](notification &copy) { copy.size++; }, {"block_header.notification.size"}},
    {"CopyOfReserved", nullptr, [](notification &copy) { copy.reserved++; }, {"block_header.notification.reserved"}},
    {"ColumnCount", BEFORE{UNUSED;
image.header().column_count = 5;
}
, nullptr, {"block_header.column_count is 5", "4"}
}
, {"OffsetsMisaligned", BEFORE{UNUSED;
image.column(0).offsets_offset += 4;
}
, nullptr, {"'key'", "offsets_offset", "64"}
}
, {"OffsetsInHeader", BEFORE{UNUSED;
image.column(0).offsets_offset = 192;
}
, nullptr, {"'key'", "offsets_offset is 192", "256"}
}
, {"OffsetsOutside", BEFORE{UNUSED;
image.column(0).offsets_offset = 4096;
}
, nullptr, {"'key'", "offsets_offset is 4096"}
}
, {"OffsetsMissing", BEFORE{UNUSED;
image.column(0).offsets_bytes = 0;
}
, nullptr, {"'key'", "offsets_bytes is 0", "16"}
}
, {"OffsetsTooShort", BEFORE{UNUSED;
image.column(0).offsets_bytes = 12;
}
, nullptr, {"'key'", "offsets_bytes is 12", "16"}
}
, {"OffsetsNegative", BEFORE{UNUSED;
image.offsets(0)[0] = -1;
}
, nullptr, {"'key'", "offsets"}
}
, {"OffsetsDecrease", BEFORE{UNUSED;
image.offsets(0)[1] = 9;
}
, nullptr, {"'key'", "never decrease"}
}
, {"OffsetsWrap", BEFORE{UNUSED;
image.offsets(0)[3] = INT32_MIN;
}
, nullptr, {"'key'", "never decrease"}
}
, {"OffsetsEndEarly", BEFORE{UNUSED;
image.offsets(0)[2] = image.offsets(0)[3] = 2;
}
, nullptr, {"'key'", "offsets", "data_bytes"}
}
, {"DataOfBytesTooLong", BEFORE{UNUSED;
image.column(0).data_bytes = 4;
}
, nullptr, {"'key'", "data_bytes"}
}
, {"DataOutside", BEFORE{UNUSED;
image.column(1).data_offset = static_cast<uint32_t>(image.bytes.size());
}
, nullptr, {"'label'", "data_offset"}
}
, {"DataFarOutside", BEFORE{UNUSED;
image.column(1).data_offset = 0xFFFFFFC0;
}
, nullptr, {"'label'", "data_offset"}
}
, {"DataMisaligned", BEFORE{UNUSED;
image.column(1).data_offset += 32;
}
, nullptr, {"'label'", "data_offset", "64"}
}
, {"DataInHeader", BEFORE{UNUSED;
image.column(1).data_offset = 0;
}
, nullptr, {"'label'", "data_offset is 0", "256"}
}
, {"DataTooShort", BEFORE{UNUSED;
image.column(1).data_bytes = 8;
}
, nullptr, {"'label'", "data_bytes is 8", "12"}
}
, {"DataTooLong", BEFORE{UNUSED;
image.column(1).data_bytes = 16;
}
, nullptr, {"'label'", "data_bytes is 16", "12"}
}
, {"BitsTooLong", BEFORE{UNUSED;
image.column(2).data_bytes = 3;
}
, nullptr, {"'flag'", "data_bytes is 3", "1"}
}
, {"FixedWithOffsets", BEFORE{UNUSED;
image.column(1).offsets_bytes = 16;
}
, nullptr, {"'label'", "offsets_bytes is 16"}
}
, {"ValidityTooLong", BEFORE{UNUSED;
image.column(3).validity_bytes = 2;
}
, nullptr, {"'weight'", "validity_bytes is 2"}
}
, {"ValidityOutside", BEFORE{UNUSED;
image.column(3).validity_offset = 8128;
}
, nullptr, {"'weight'", "validity_offset"}
}
, {"ValidityMisaligned", BEFORE{UNUSED;
image.column(3).validity_offset += 1;
}
, nullptr, {"'weight'", "validity_offset"}
}
, {"NullsWithoutValidity", BEFORE{UNUSED;
image.column(1).null_count = 1;
}
, nullptr, {"'label'", "null_count is 1"}
}
, {"MoreNullsThanElements", BEFORE{UNUSED;
image.column(3).null_count = 4;
}
, nullptr, {"'weight'", "null_count is 4"}
}
,
}
;

INSTANTIATE_TEST_SUITE_P(, ViolationTest, ::testing::ValuesIn(violations),
                         [](const auto &info) { return std::string(info.param.name); });

class OtherViolationTest : public ViolationTest {};

TEST_F(OtherViolationTest, ABlockBeforeTheSchema) {
    Handle handle = open();
    Task task(files);
    task.supply(BlockImage(columns(), 3));
    expect_refused(handle, {"schema_columns is 0"});
}

TEST_F(OtherViolationTest, MoreColumnsThanFit) {
    Handle handle = open();
    Task task(files);
    task.header().schema_columns = 321;
    task.supply(BlockImage(columns(), 3));
    expect_refused(handle, {"schema_columns is 321", "320"});
}

TEST_F(OtherViolationTest, TextsWithoutAnEnd) {
    for (const char *field : {"name", "format", "child_format"}) {
        Handle handle = open();
        Task task(files);
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
        expect_refused(handle, {"schema_entry.", field, "column 2"});
    }
}

// The header's copy lies in memory that the task writes, and gives the task no slot of a held block.
TEST_F(OtherViolationTest, ReleasedThatTheTaskHasWritten) {
    for (uint64_t lie : {UINT64_C(1), UINT64_C(4), UINT64_MAX - 1}) {
        Handle handle = open();
        Task task(files);
        task.write_schema(schema_of(columns()));
        const BlockImage image(columns(), 3);
        supply_block_t first = {}, block;
        for (int i = 0; i < 4; i++) {
            task.supply(image);
            ASSERT_STATUS(SUPPLY_OK, supply_next(handle.get(), i == 0 ? &first : &block), handle);
        }
        supply_column_t key;
        ASSERT_STATUS(SUPPLY_OK, supply_column(handle.get(), &first, 0, &key), handle);
        const notification next = task.next(image);
        task.header().released = lie;
        task.write(image.bytes, next);
        task.publish();
        task.notify(next);
        expect_refused(handle, {"published is 5", "released", "4"});
        const void *value;
        size_t bytes;
        EXPECT_STATUS(SUPPLY_OK, supply_value(&key, 1, &value, &bytes), handle);
        EXPECT_EQ("bc", std::string(static_cast<const char *>(value), bytes));
    }
}

TEST_F(OtherViolationTest, PublishedOutsideItsBounds) {
    for (uint64_t published : {0, 5}) { // the block notified is number 0, and 0 + 4 slots are the most
        Handle handle = open();
        Task task(files);
        task.write_schema(schema_of(columns()));
        const BlockImage image(columns(), 3);
        const notification notification = task.next(image);
        task.write(image.bytes, notification);
        task.header().published = published;
        task.notify(notification);
        expect_refused(handle, {published == 0 ? "published is 0" : "published is 5"});
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
