// Several ranks read one ring ("Readers of one ring" of PROTOCOL.md).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <thread>

#include "golden.h"
#include "rank.h"
#include "resident_file.h"
#include "supply_arrow.h"

namespace supply_test {
namespace {

/** The options of one reader, with the strings that they point at. */
struct Reader {
    Reader(const TemporaryFolder &folder, int reader, int readers, const std::string &ring_file)
        : files{folder.file("mapped" + std::to_string(reader)), folder.file("request" + std::to_string(reader)),
                folder.file("notification" + std::to_string(reader))},
          ring(ring_file), options(options_of(files)) {
        options.reader = reader;
        options.readers = readers;
        options.local_rank = reader;
        options.rank = 4 + reader;
        options.ring_file = ring.c_str();
    }
    Reader(const Reader &) = delete;
    Reader &operator=(const Reader &) = delete;

    Handle open(supply_status_t expected = SUPPLY_OK) {
        supply_t *supply = nullptr;
        const supply_status_t status = supply_open(&supply, &options);
        Handle handle(supply);
        EXPECT_STATUS(expected, status, handle);
        return handle;
    }

    PairFiles files;
    std::string ring;
    supply_options_t options;
};

/** A task of the group: each step for each reader, in their order. */
class GroupTask {
  public:
    GroupTask(const std::vector<std::unique_ptr<Reader>> &readers, uint32_t attempt = 0) {
        for (const auto &reader : readers)
            tasks.push_back(std::make_unique<Task>(reader->files, attempt, tasks.empty() ? nullptr : tasks[0].get()));
    }

    void write_schema(const std::vector<schema_entry> &entries, const std::string &texts = "") {
        for (auto &task : tasks) task->write_schema(entries, texts);
    }

    void supply(const BlockImage &block, const notification &notification) {
        for (auto &task : tasks) task->wait_for_credit();
        tasks[0]->write(block.bytes, notification);
        for (auto &task : tasks) task->publish();
        for (auto &task : tasks) task->notify(notification);
    }

    void datums(uint64_t first, uint32_t count) {
        std::vector<Element> elements;
        for (uint32_t i = 0; i < count; i++) elements.push_back(numbered_element(first + i));
        write_schema(schema_of(datum_columns(elements)));
        const BlockImage block = datum_block(elements);
        notification notification = tasks[0]->next(block);
        notification.first_element = first;
        supply(block, notification);
    }

    void end_of_epoch(uint32_t epoch) {
        notification end = tasks[0]->next(NOTIFICATION_END_OF_EPOCH, 0, sizeof(block_header));
        end.epoch = epoch;
        for (auto &task : tasks) task->wait_for_credit();
        tasks[0]->write_header(end);
        for (auto &task : tasks) task->publish();
        for (auto &task : tasks) task->notify(end);
    }

    std::vector<std::unique_ptr<Task>> tasks;
};

class ReadersTest : public RankTest {
  protected:
    void SetUp() override { make(3); }

    void make(int count) {
        readers.clear();
        for (int i = 0; i < count; i++)
            readers.push_back(std::make_unique<Reader>(folder, i, count, folder.file("mapped0")));
    }

    std::vector<Handle> open_all() {
        std::vector<Handle> handles;
        for (auto &reader : readers) handles.push_back(reader->open());
        return handles;
    }

    /** The second one begins to open before the first, and gets its block. */
    void expect_second_before_first() {
        Handle second;
        std::thread early([&] { second = readers[1]->open(); });
        usleep(20000);
        const Handle first = readers[0]->open();
        early.join();
        const Handle third = readers[2]->open();
        GroupTask task(readers);
        task.datums(0, 1);
        EXPECT_EQ(0u, next(second).sequence);
    }

    void expect_refused(Reader &reader, supply_status_t status, std::initializer_list<const char *> words) {
        const Handle handle = reader.open(status);
        EXPECT_TRUE(says(supply_error(handle.get()), words));
        EXPECT_NE(0, access(reader.files.mapped_file.c_str(), F_OK)) << "nothing is left";
    }

    std::vector<std::unique_ptr<Reader>> readers;
};

TEST_F(ReadersTest, EachGetsEveryBlockFromTheOneRing) {
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    task.datums(10, 2);
    task.end_of_epoch(0);
    for (const Handle &handle : handles) {
        const supply_block_t block = next(handle);
        EXPECT_EQ(10u, block.first_element);
        EXPECT_EQ(2u, block.element_count);
        EXPECT_EQ(numbered_element(11).label, datum_of(handle, block, 1).label);
        release(handle, block);
        expect_end_of_epoch(handle, 0);
    }
    struct stat first, second;
    ASSERT_EQ(0, stat(readers[0]->files.mapped_file.c_str(), &first));
    ASSERT_EQ(0, stat(readers[1]->files.mapped_file.c_str(), &second));
    EXPECT_GT(first.st_size, second.st_size);
    EXPECT_EQ(RING_OFFSET, second.st_size);
    EXPECT_EQ(task.tasks[0]->header().generation, task.tasks[2]->header().generation);
    EXPECT_EQ(2u, task.tasks[2]->header().reader);
    EXPECT_EQ(3u, task.tasks[2]->header().readers);
}

TEST_F(ReadersTest, EachReleasesByItself) {
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    for (uint64_t number = 0; number < 3; number++) task.datums(number, 1);
    for (int i = 0; i < 3; i++) release(handles[0], next(handles[0]));
    release(handles[1], next(handles[1]));
    EXPECT_EQ(3u, task.tasks[0]->released());
    EXPECT_EQ(1u, task.tasks[1]->released());
    EXPECT_EQ(0u, task.tasks[2]->released());
    const supply_block_t late = next(handles[2]);
    EXPECT_EQ(numbered_element(0).label, datum_of(handles[2], late, 0).label) << "nobody has written over it";
}

TEST_F(ReadersTest, TheNextAttemptNotifiesEachOfWhatItHasNotReleased) {
    std::vector<Handle> handles = open_all();
    {
        GroupTask first(readers, 0);
        first.datums(0, 1);
        first.datums(1, 1);
        release(handles[1], next(handles[1]));
    }
    GroupTask second(readers, 1);
    second.datums(2, 1);
    for (uint64_t number : {0u, 1u, 2u}) EXPECT_EQ(number, next(handles[0]).first_element);
    for (uint64_t number : {1u, 2u}) EXPECT_EQ(number, next(handles[1]).first_element);
    for (uint64_t number : {0u, 1u, 2u}) EXPECT_EQ(number, next(handles[2]).first_element);
}

TEST_F(ReadersTest, ATaskDiesBetweenTwoStoresOfPublished) {
    std::vector<Handle> handles = open_all();
    for (size_t stored : {1u, 2u}) {
        GroupTask task(readers);
        std::vector<Element> elements = {numbered_element(stored)};
        task.write_schema(schema_of(datum_columns(elements)));
        const BlockImage block = datum_block(elements);
        notification notification = task.tasks[0]->next(block);
        notification.first_element = stored;
        task.tasks[0]->write(block.bytes, notification);
        for (size_t i = 0; i < stored; i++) task.tasks[i]->publish();
    }
    GroupTask task(readers);
    task.datums(3, 1);
    for (const Handle &handle : handles)
        for (uint64_t number : {1u, 2u, 3u}) EXPECT_EQ(number, next(handle).first_element);
}

TEST_F(ReadersTest, AReaderComesAgainBeforeATaskAttaches) {
    std::vector<Handle> handles = open_all();
    for (size_t again : {2u, 1u}) {
        handles[again].reset();
        handles[again] = readers[again]->open();
    }
    GroupTask task(readers);
    task.datums(5, 1);
    for (const Handle &handle : handles) EXPECT_EQ(5u, next(handle).first_element);
}

TEST_F(ReadersTest, AReaderWaitsForTheFirst) { expect_second_before_first(); }

TEST_F(ReadersTest, AReaderJoinsTheNewFirstOneAndNotADeadOne) {
    std::string stale;
    {
        Handle dead = readers[0]->open();
        stale = read_file(readers[0]->files.mapped_file);
    }
    folder.write("mapped0", stale);
    chmod(readers[0]->files.mapped_file.c_str(), 0600);
    expect_second_before_first();
}

TEST_F(ReadersTest, NoFirstReaderComes) {
    readers[1]->options.timeout = 0.05;
    expect_refused(*readers[1], SUPPLY_ERROR_TIMEOUT, {"reader 0", "mapped0", "has not opened it", "SUPPLY_SHARE"});
}

TEST_F(ReadersTest, AReaderCannotJoinWhatIsSuppliedAlready) {
    make(2);
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    handles.pop_back();
    readers[1]->options.timeout = 0.05;
    expect_refused(*readers[1], SUPPLY_ERROR_TIMEOUT, {"supplied already", "start all ranks of the group again"});
}

TEST_F(ReadersTest, ReadersOfAnotherGroupAreRefused) {
    const Handle first = readers[0]->open();
    for (int share : {2, 4}) {
        readers[1]->options.readers = share;
        expect_refused(*readers[1], SUPPLY_ERROR_CONFIG, {"reader 0 of 3", "reader 1 of", "SUPPLY_SHARE"});
    }
    readers[1]->options.readers = 3;
    readers[1]->ring = readers[2]->files.mapped_file;
    readers[1]->options.ring_file = readers[1]->ring.c_str();
    const Handle third = readers[2]->open();
    expect_refused(*readers[1], SUPPLY_ERROR_CONFIG, {"reader 2 of 3"});
}

TEST_F(ReadersTest, ARingOfItsOwnIsNoSharedOne) {
    make(1);
    readers[0]->options.readers = 0;
    const Handle alone = readers[0]->open();
    Reader second(folder, 1, 2, readers[0]->files.mapped_file);
    expect_refused(second, SUPPLY_ERROR_CONFIG, {"reader 0 of 0"});
    second.options.ring_file = nullptr;
    expect_refused(second, SUPPLY_ERROR_CONFIG, {"ring_file"});
}

TEST_F(ReadersTest, AFileThatIsNoRingIsRefused) {
    folder.write("mapped0", std::string(1 << 16, 'x'));
    chmod(readers[0]->files.mapped_file.c_str(), 0600);
    readers[1]->options.timeout = 0.05;
    const Handle handle = readers[1]->open(SUPPLY_ERROR_TIMEOUT);
    EXPECT_TRUE(says(supply_error(handle.get()), {"dead"})) << "nobody holds its lock";
}

TEST_F(ReadersTest, AHeaderThatContradictsItselfIsRefused) {
    const struct {
        size_t offset;
        std::string bytes;
    } damages[] = {
        {offsetof(mapped_file_header, byte_order), std::string(4, '\1')},
        {offsetof(mapped_file_header, block_bytes), std::string(8, '\0')},
        {offsetof(mapped_file_header, block_bytes), std::string(8, '\177')},
        {offsetof(mapped_file_header, block_count), std::string("\1\0\0\0", 4)},
        {offsetof(mapped_file_header, block_count), std::string("\377\377\377\177", 4)},
        {offsetof(mapped_file_header, file_bytes), std::string(8, '\7')},
        {offsetof(mapped_file_header, ring_offset), std::string(8, '\0')},
        {offsetof(mapped_file_header, generation), std::string(8, '\0')},
        {offsetof(mapped_file_header, version), std::string("\1\0\1\0", 4)},
        {offsetof(mapped_file_header, magic), std::string(8, 'x')},
    };
    for (const auto &damage : damages) {
        const Handle first = readers[0]->open();
        const int fd = ::open(readers[0]->files.mapped_file.c_str(), O_RDWR | O_CLOEXEC);
        ASSERT_EQ(static_cast<ssize_t>(damage.bytes.size()),
                  pwrite(fd, damage.bytes.data(), damage.bytes.size(), static_cast<off_t>(damage.offset)));
        close(fd);
        expect_refused(*readers[1], SUPPLY_ERROR_CONTRACT, {"ring of reader 0"});
    }
}

TEST_F(ReadersTest, ACutRingIsAnErrorOfEach) {
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    task.datums(0, 1);
    ASSERT_EQ(0, truncate(readers[0]->files.mapped_file.c_str(), RING_OFFSET));
    for (const Handle &handle : handles) {
        supply_block_t block;
        EXPECT_STATUS(SUPPLY_ERROR_CONTRACT, supply_next(handle.get(), &block), handle);
        EXPECT_TRUE(says(supply_error(handle.get()), {"was cut"}));
    }
}

TEST_F(ReadersTest, AWideSchemaIsInTheFileOfEach) {
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    std::vector<schema_entry> entries = schema_of({});
    for (int i = 0; i < SCHEMA_COLUMNS_MAX + 1; i++) {
        schema_entry entry = {};
        snprintf(entry.name, sizeof entry.name, "c%d", i);
        entry.format[0] = 'i';
        entries.push_back(entry);
    }
    task.write_schema(entries);
    for (const Handle &handle : handles) {
        EXPECT_EQ(SCHEMA_COLUMNS_MAX + 1, supply_column_count(handle.get()));
        EXPECT_EQ(SCHEMA_COLUMNS_MAX, supply_column_index(handle.get(), "c320"));
    }
}

TEST_F(ReadersTest, ARingOutlivesTheRankOfReaderZero) {
    std::vector<Handle> handles = open_all();
    auto task = std::make_unique<GroupTask>(readers);
    task->datums(7, 1);
    handles[0].reset();
    const supply_block_t block = next(handles[2]);
    EXPECT_EQ(numbered_element(7).label, datum_of(handles[2], block, 0).label);
    EXPECT_NE(0, access(readers[0]->files.mapped_file.c_str(), F_OK));
}

TEST_F(ReadersTest, AnArrowArrayOutlivesItsReader) {
    std::vector<Handle> handles = open_all();
    GroupTask task(readers);
    task.datums(7, 3);
    const supply_block_t block = next(handles[1]);
    ArrowSchema schema;
    ArrowArray array;
    ASSERT_STATUS(SUPPLY_OK, supply_export_arrow(handles[1].get(), &block, 1, &schema, &array), handles[1]);
    handles[1].reset();
    EXPECT_EQ(numbered_element(9).label, static_cast<const int32_t *>(array.buffers[1])[2]);
    array.release(&array);
    schema.release(&schema);
}

} // namespace
} // namespace supply_test
