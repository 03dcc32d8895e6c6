// R3 for blocks of resident files: whatever the file or the task says wrongly is an error that names the field.
#include <cstring>

#include "base/file_lock.h"
#include "resident_file_test.h"

namespace supply_test {
namespace {

/** Changes the sealed file, or the notification of its second block and the copy of that in the ring. */
struct Violation {
    const char *name;
    void (*commit)(ResidentFileImage &image, notification &notification);
    std::initializer_list<const char *> words;
};

class ResidentFileViolationTest : public ResidentFileTest, public ::testing::WithParamInterface<Violation> {
  protected:
    /** Receives epoch 0, then what the task does with the file. */
    void expect_refused(const Violation &violation) {
        auto [handle, task] = attached();
        first_epoch(task);
        receive_first_epoch(handle);
        ResidentFileImage image = image_of(task);
        image.seal();
        notification notification = task.next_in_file(1, image.block(1).notification, 1);
        violation.commit(image, notification);
        add_file(task, image.bytes());
        task.supply_header(notification);
        expect_violation(handle, violation.words);
    }
};

TEST_P(ResidentFileViolationTest, IsRefusedByTheFieldsName) { expect_refused(GetParam()); }

#define COMMIT(statement)                                                                                              \
    [](ResidentFileImage &image, notification &notification) {                                                         \
        (void)image, (void)notification;                                                                               \
        statement;                                                                                                     \
    }

// clang-format off
const Violation violations[] = {
    {"APairsMagic", COMMIT(memcpy(image.header().magic, MAGIC, 8)), {"mapped.resident", "magic"}},
    {"NoMagic", COMMIT(image.bytes()[0] = 0), {"magic"}},
    {"AnotherVersion", COMMIT(image.header().version = VERSION - 1), {"its version is 1.5, must be 1.6"}},
    {"NotPublished", COMMIT(image.header().version = 0), {"its version is 0.0"}},
    {"AnotherByteOrder", COMMIT(image.header().byte_order = 0x04030201), {"byte_order"}},
    {"AResult", COMMIT(image.header().file_use = FILE_USE_RESULT), {"file_use is 2", "1"}},
    {"NotSealed", COMMIT(image.header().sealed = 0), {"sealed is 0"}},
    {"Aborted", COMMIT(image.header().sealed = SEALED_ABORTED), {"sealed is 2"}},
    {"AnotherPlan", COMMIT(image.header().plan++), {"plan is", "must be that of the pair"}},
    {"AnotherRank", COMMIT(image.header().rank = 4), {"rank is 4", "3"}},
    {"FewerColumns", COMMIT(image.header().schema_columns = 6), {"schema_columns is 6", "7"}},
    {"MoreColumns", COMMIT(image.header().schema_columns = UINT32_MAX), {"schema_columns is 4294967295", "7"}},
    {"AnotherName", COMMIT(image.entry(1).name[0] = 'L'), {"schema_entry 1", "'label'"}},
    {"AnotherFormat", COMMIT(image.entry(6).format[0] = 'u'), {"schema_entry 6", "'data'"}},
    {"OtherFlags", COMMIT(image.entry(0).flags = COLUMN_NULLABLE), {"schema_entry 0"}},
    {"ARingElsewhere", COMMIT(image.header().ring_offset = 65600), {"ring_offset is 65600", "65536"}},
    {"BlocksWithoutBytes", COMMIT(image.header().block_bytes = 0), {"block_bytes is 0", "4096"}},
    {"BlocksOfOddSize", COMMIT(image.header().block_bytes = 8000), {"block_bytes is 8000", "4096"}},
    {"BlocksTooLarge", COMMIT(image.header().block_bytes = (1u << 30) + 4096), {"block_bytes is 1073745920", "1 GiB"}},
    {"NoBlocks", COMMIT(image.header().block_count = 0), {"block_count is 0"}},
    {"FewerBlocks", COMMIT(image.header().block_count = image.header().published = 1), {"file_bytes", "at most 73728"}},
    {"MoreBlocks", COMMIT(image.header().block_count = image.header().published = 3), {"file_bytes", "at least 82048"}},
    {"VeryManyBlocks", COMMIT(image.header().block_count = image.header().published = UINT32_MAX), {"file_bytes"}},
    {"OtherPublished", COMMIT(image.header().published = 3), {"published is 3", "block_count, which is 2"}},
    {"OtherFileBytes", COMMIT(image.header().file_bytes++), {"file_bytes", "the size of the file"}},
    {"OtherBytes", COMMIT(image.bytes() += "x"), {"file_bytes", "the size of the file"}},
    {"CutInTheHeader", COMMIT(image.bytes().resize(65535)), {"the size of the file is 65535", "65536"}},
    {"CutAfterTheHeader", COMMIT(image.bytes().resize(image.header().file_bytes = 65536)), {"file_bytes is 65536"}},
    {"CutInTheLastBlocksHeader", COMMIT(image.bytes().resize(image.header().file_bytes = 73855)), {"file_bytes is 73855"}},
    {"CutInTheLastBlock", COMMIT(image.bytes().resize(image.header().file_bytes = 73856)),
     {"notification.size", "within the file, at most 128"}},
    {"TheCopysGeneration", COMMIT(image.block(1).notification.generation++), {"block_header.notification.generation"}},
    {"TheCopysKind", COMMIT(image.block(1).notification.kind = 2), {"block_header.notification.kind"}},
    {"TheCopysElements", COMMIT(image.block(1).notification.element_count = 3), {"block_header.notification.element_count"}},
    {"TheCopysSequence", COMMIT(image.block(1).notification.sequence = 4), {"block_header.notification.sequence"}},
    {"TheCopysEpoch", COMMIT(image.block(1).notification.epoch = 1), {"block_header.notification.epoch"}},
    {"TheCopysPartition", COMMIT(image.block(1).notification.partition = 5), {"block_header.notification.partition"}},
    {"TheCopysFirst", COMMIT(image.block(1).notification.first_element = 1), {"block_header.notification.first_element"}},
    {"TheCopysOffset", COMMIT(image.block(1).notification.offset = 65536), {"block_header.notification.offset"}},
    {"TheCopysSize", COMMIT(image.block(1).notification.size--), {"block_header.notification.size"}},
    {"TheCopysFile", COMMIT(image.block(1).notification.file = 1), {"block_header.notification.file"}},
    {"TheCopysReserved", COMMIT(image.block(1).notification.reserved = 1), {"block_header.notification.reserved"}},
    {"FewerColumnsInTheBlock", COMMIT(image.block(1).column_count = 6), {"block_header.column_count is 6", "7"}},
    {"ABufferOutside", COMMIT(image.column(1, 6).data_offset = 0x4000), {"'data'", "data_offset is 16384"}},
    {"FileWithoutEntry", COMMIT(notification.file = 2), {"notification.file is 2", "foreign_count, 1"}},
    {"FileFarOutside", COMMIT(notification.file = UINT32_MAX), {"notification.file is 4294967295"}},
    {"OffsetBeforeTheBlocks", COMMIT(notification.offset = 0), {"notification.offset is 0", "65536"}},
    {"OffsetWithinABlock", COMMIT(notification.offset += 64), {"notification.offset is 73792"}},
    {"OffsetAfterTheBlocks", COMMIT(notification.offset += 8192), {"notification.offset is 81920"}},
    {"OffsetFarOutside", COMMIT(notification.offset = UINT64_MAX - 8191), {"notification.offset"}},
    {"OffsetOfAnotherBlock", COMMIT(notification.offset -= 8192), {"block_header.notification.element_count"}},
    {"SizeBelowHeader", COMMIT(notification.size = 127), {"notification.size is 127", "128"}},
    {"SizeAboveBlock", COMMIT(notification.size = 8193), {"notification.size is 8193", "block_bytes, 8192"}},
    {"SizeOutsideTheFile", COMMIT(notification.size = 8192), {"notification.size is 8192", "within the file"}},
    {"NoElements", COMMIT(notification.element_count = 0), {"notification.element_count is 0"}},
    {"AnEndInAFile", COMMIT(notification.kind = NOTIFICATION_END_OF_EPOCH; notification.element_count = 0),
     {"notification.file is 1", "at an end"}},
};
// clang-format on

INSTANTIATE_TEST_SUITE_P(, ResidentFileViolationTest, ::testing::ValuesIn(violations),
                         [](const auto &info) { return std::string(info.param.name); });

class OtherResidentFileViolationTest : public ResidentFileViolationTest {};

TEST_F(OtherResidentFileViolationTest, TheCopyInTheRing) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    notification copy = task.next_in_file(file, image.block(1).notification, 1);
    const notification notification = copy;
    copy.partition++;
    task.write_header(copy);
    task.publish();
    task.notify(notification);
    expect_violation(handle, {"block_header.notification.partition"});
}

TEST_F(OtherResidentFileViolationTest, TheBlockAfterAGoodOne) {
    const struct {
        uint32_t file;
        uint64_t offset, size;
    } cases[] = {{1, UINT64_MAX, 8192}, {1, 81919, UINT64_MAX}, {1, 65537, 1u << 30},
                 {4, 65536, 8192},      {5, 65536, 8192},       {UINT32_MAX, 0, 0}};
    for (const auto &wrong : cases) {
        Supplied supplied(*this);
        auto &[handle, task, image, file] = supplied;
        task.supply_from_file(file, image.block(0).notification, 1);
        next(handle);
        task.supply_from_file(file, image.block(1).notification, 1);
        notification after = task.next_in_file(wrong.file, image.block(0).notification, 1);
        after.offset = wrong.offset;
        after.size = wrong.size;
        task.supply_header(after);
        expect_datums(handle, next(handle), counts[0]); // it may be read ahead, and is not checked yet
        expect_violation(handle, {"notification."});
    }
}

TEST_F(OtherResidentFileViolationTest, ColumnsOfViews) {
    auto [handle, task] = attached();
    const std::vector<Column> columns = {
        Column::views("image", {window_of(1, 0, 100)}, {view_of(std::string(50, '\0'), 0, 0)})};
    task.header().plan = plan;
    task.write_schema(schema_of(columns));
    ResidentFileImage image(task.header(), schema_of(columns), 8192, 77);
    image.add(BlockImage(columns, 1), 0, 0);
    const uint32_t file = add_file(task, image.seal());
    task.supply_from_file(file, image.block(0).notification, 0);
    expect_violation(handle, {"mapped.resident", "'image'", "views"});
}

/* A task of another user could name any file that the rank's user may read. */
TEST_F(OtherResidentFileViolationTest, AFileOfAnotherKindIsNotLocked) {
    auto [handle, task] = attached();
    first_epoch(task);
    receive_first_epoch(handle);
    ResidentFileImage image = image_of(task);
    image.seal();
    image.bytes()[0] = 0;
    const uint32_t file = add_file(task, image.bytes());
    const int fd = ::open(task.entry(file).path, O_RDONLY | O_CLOEXEC);
    task.supply_from_file(file, image.block(1).notification, 1);
    expect_violation(handle, {"magic"});
    EXPECT_FALSE(supply__file_is_locked(fd, F_WRLCK, READER_LOCK_BYTE));
    close(fd);
}

TEST_F(OtherResidentFileViolationTest, AFileThatChangesAfterItsChecks) {
    Supplied supplied(*this);
    auto &[handle, task, image, file] = supplied;
    task.supply_from_file(file, image.block(0).notification, 1);
    next(handle);
    memset(&task.entry(file), 0xFF, sizeof(foreign_file));
    task.header().plan++;
    task.supply_from_file(file, image.block(1).notification, 1);
    expect_datums(handle, next(handle), counts[0]);
}

} // namespace
} // namespace supply_test
