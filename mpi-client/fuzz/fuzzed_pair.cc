#include "fuzzed_pair.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

extern "C" {
#include "api/handle.h"
}

namespace supply_fuzz {

namespace {

/** The folder of the pairs of this process. Its destructor removes it. */
class Folder {
  public:
    Folder() {
        const char *parent = getenv("TMPDIR");
        std::string pattern = std::string(parent ? parent : "/dev/shm") + "/supply-fuzz-XXXXXX";
        if (mkdtemp(pattern.data()) == nullptr) found("cannot make a folder");
        path_ = pattern;
        mapped_file = path_ + "/mapped";
        request_pipe = path_ + "/request";
        notification_pipe = path_ + "/notification";
        foreign_file = path_ + "/foreign";
        resident_file = path_ + "/resident";
        for (size_t i = 0; i < FuzzedPair::foreign_bytes; i++) contents += static_cast<char>(i * i / 7);
        std::ofstream(foreign_file, std::ios::binary) << contents;
        clear_resident_file();
    }
    ~Folder() {
        for (const std::string &file : {mapped_file, request_pipe, notification_pipe, foreign_file, resident_file})
            unlink(file.c_str());
        rmdir(path_.c_str());
    }
    void clear_resident_file() const {
        std::ofstream(resident_file, std::ios::binary) << std::string(FuzzedPair::resident_bytes, '\0');
    }

    std::string mapped_file, request_pipe, notification_pipe, foreign_file, resident_file;
    std::string contents; /**< of the foreign file */

  private:
    std::string path_;
};

const Folder &folder() {
    static const Folder folder;
    return folder;
}

volatile uint8_t sink;

bool is_within(const supply_block_t &block, const void *from, size_t count) {
    const auto *begin = static_cast<const uint8_t *>(block.address);
    const auto *bytes = static_cast<const uint8_t *>(from);
    return bytes >= begin && count <= block.bytes && static_cast<size_t>(bytes - begin) <= block.bytes - count;
}

void read_bytes(const supply_block_t &block, const void *from, size_t count, const char *what) {
    if (!is_within(block, from, count)) found(what);
    const auto *bytes = static_cast<const uint8_t *>(from);
    uint8_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = static_cast<uint8_t>(sum + bytes[i]);
    sink = sum;
}

bool is_part_of(const std::string &all, const void *from, size_t count) {
    return count <= all.size() && memmem(all.data(), all.size(), from, count) != nullptr;
}

/* Such bytes are a part of a file that the task has named. A window may also lie in the resident file. */
void read_foreign(const void *from, size_t count, const char *what) {
    if (is_part_of(folder().contents, from, count)) return;
    std::ifstream resident(folder().resident_file, std::ios::binary);
    const std::string all((std::istreambuf_iterator<char>(resident)), std::istreambuf_iterator<char>());
    if (!is_part_of(all, from, count)) found(what);
}

void read_value(const supply_block_t &block, const void *from, size_t count, const char *what) {
    if (is_within(block, from, count))
        read_bytes(block, from, count, what);
    else
        read_foreign(from, count, what);
}

/* The library promises that a window lies in the foreign file. Its bytes alone could stand elsewhere, too. */
bool is_within(const supply_window_t &window, const void *from, size_t count) {
    const auto *begin = static_cast<const uint8_t *>(window.address);
    const auto *bytes = static_cast<const uint8_t *>(from);
    return bytes >= begin && count <= window.bytes && static_cast<size_t>(bytes - begin) <= window.bytes - count;
}

bool is_in_a_window(const supply_column_t &column, const void *from, size_t count) {
    for (uint32_t i = 0; i < column.window_count; i++)
        if (is_within(column.windows[i], from, count)) return true;
    return false;
}

void write_entry(uint8_t *mapping, uint32_t index, const std::string &path) {
    struct stat entry;
    if (stat(path.c_str(), &entry) != 0) found("cannot examine a foreign file");
    auto &to = reinterpret_cast<foreign_file *>(mapping + FOREIGN_FILES_OFFSET)[index];
    path.copy(to.path, sizeof to.path - 1);
    to.device = entry.st_dev;
    to.inode = entry.st_ino;
    to.file_bytes = static_cast<uint64_t>(entry.st_size);
    to.modified =
        static_cast<uint64_t>(entry.st_mtim.tv_sec) * 1000000000 + static_cast<uint64_t>(entry.st_mtim.tv_nsec);
}

} // namespace

void found(const char *what) {
    fprintf(stderr, "found: %s\n", what);
    abort();
}

FuzzedPair::FuzzedPair(bool exchanges) {
    supply_options_t options;
    supply_options_init(&options);
    options.mapped_file = folder().mapped_file.c_str();
    options.request_pipe = folder().request_pipe.c_str();
    options.notification_pipe = folder().notification_pipe.c_str();
    options.block_bytes = block_bytes;
    options.ring_bytes = block_bytes * block_count;
    options.exchange = exchanges;
    if (supply_open(&supply_, &options) != SUPPLY_OK) found(supply_error(supply_));
    notifications_ = open(options.notification_pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    const int file = open(options.mapped_file, O_RDWR | O_CLOEXEC);
    void *address = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (notifications_ < 0 || file < 0 || address == MAP_FAILED) found("cannot open the task's side");
    close(file);
    mapping_ = static_cast<uint8_t *>(address);
    write_entry(mapping_, 0, folder().foreign_file);
    write_entry(mapping_, 1, folder().resident_file);
    header().foreign_count = 2;
    generation = header().generation;
}

FuzzedPair::FuzzedPair(const std::string &connect, const char *key) {
    supply_options_t options;
    supply_options_init(&options);
    options.connect = connect.c_str();
    options.key = key;
    options.rank = 0;
    options.block_bytes = block_bytes;
    options.ring_bytes = block_bytes * block_count;
    if (supply_open(&supply_, &options) != SUPPLY_OK) found(supply_error(supply_));
}

FuzzedPair::~FuzzedPair() {
    if (mapping_ == nullptr) {
        supply_abort(supply_, "the input has ended");
        return;
    }
    __atomic_store_n(&header().end_seen, 1u,
                     __ATOMIC_RELEASE); /* else supply_close() waits until the task has seen the end */
    munmap(mapping_, file_bytes);
    close(notifications_);
    supply_close(supply_);
    if (resident_is_written_) folder().clear_resident_file();
}

/* With a descriptor of its own: the rank refuses a file that is open for writing. */
void FuzzedPair::write_resident(size_t offset, const void *bytes, size_t count) {
    const int file = open(folder().resident_file.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) return; /* the rank's lease keeps writers out */
    resident_is_written_ = true;
    offset = std::min(offset, resident_bytes);
    const ssize_t ignored = pwrite(file, bytes, std::min(count, resident_bytes - offset), static_cast<off_t>(offset));
    (void)ignored;
    close(file);
    write_entry(mapping_, 1, folder().resident_file);
}

bool FuzzedPair::is_in_resident_file(const supply_block_t &block) const {
    const foreign_file_mapping &file = supply_->blocks.foreign_files.files[1];
    const auto *address = static_cast<const uint8_t *>(block.address);
    return file.address != nullptr && address >= file.address + RING_OFFSET &&
           address + block.bytes <= file.address + resident_bytes;
}

void FuzzedPair::send(const void *bytes, size_t count) {
    const ssize_t ignored = write(notifications_, bytes, count);
    (void)ignored;
}

void FuzzedPair::check_error() {
    const char *text = supply_error(supply_);
    if (*text == '\0') found("a failure without a text");
    if (strpbrk(text, "\n\r\t\x1b") != nullptr) found("a text that is not one plain line");
}

/* One by one, and together. */
void FuzzedPair::read_values(const supply_block_t &block, const supply_column_t &column) {
    for (uint32_t i = 0; i < column.window_count; i++)
        read_foreign(column.windows[i].address, column.windows[i].bytes, "a window outside the foreign file");
    std::string all;
    for (uint32_t i = 0; i < column.element_count; i++) {
        const void *data;
        size_t bytes;
        if (supply_value(&column, i, &data, &bytes) != SUPPLY_OK) return;
        if (!is_within(block, data, bytes) && !is_in_a_window(column, data, bytes))
            found("a value outside the block and its windows");
        read_value(block, data, bytes, "a value that is not in the foreign file");
        all.append(static_cast<const char *>(data), bytes);
    }
    std::string gathered(all.size(), '\0');
    if (supply_gather(&column, 0, column.element_count, nullptr, gathered.data(), gathered.size()) != SUPPLY_OK ||
        gathered != all)
        found("gathered values that are not the values");
}

void FuzzedPair::write_after_ring(size_t offset, const void *bytes, size_t count) {
    const int fd = open(folder().mapped_file.c_str(), O_WRONLY | O_CLOEXEC);
    const auto at = static_cast<off_t>(file_bytes + offset);
    if (fd < 0 || pwrite(fd, bytes, count, at) != static_cast<ssize_t>(count)) found("cannot write after the ring");
    close(fd);
}

void FuzzedPair::read_column(const supply_block_t &block, int index) {
    supply_column_t column;
    supply_field_t field;
    if (supply_field(supply_, index, &field) == SUPPLY_OK) read_field(field);
    if (supply_column(supply_, &block, index, &column) != SUPPLY_OK) {
        check_error();
        return;
    }
    if (supply_column_index(supply_, column.name) < 0) found("a column without an index");
    read_buffers(block, column);
}

/* Of a column or a child, and of its children. */
void FuzzedPair::read_buffers(const supply_block_t &block, const supply_column_t &column) {
    if (strlen(column.name) > NAME_BYTES_MAX) found("the name of a column has no zero byte");
    read_bytes(block, column.data, column.data_bytes, "data outside the block");
    if (column.validity != nullptr)
        read_bytes(block, column.validity, (column.element_count + 7u) / 8, "validity outside the block");
    if (column.offsets != nullptr)
        read_bytes(block, column.offsets, (column.element_count + size_t{1}) * sizeof(int32_t),
                   "offsets outside the block");
    if (column.child_count == 0 && (column.offsets != nullptr || column.views != nullptr)) read_values(block, column);
    for (int i = 0; i < column.child_count; i++) {
        supply_column_t child;
        if (supply_column_child(supply_, &block, &column, i, &child) != SUPPLY_OK) {
            check_error();
            continue;
        }
        read_buffers(block, child);
    }
}

/* A field and its children have names and formats. */
void FuzzedPair::read_field(const supply_field_t &field) {
    if (strlen(field.name) > NAME_BYTES_MAX || strlen(field.format) >= sizeof(schema_entry::format) ||
        strlen(field.child_format) >= sizeof(schema_entry::format))
        found("a field has no zero byte");
    for (int i = 0; i < field.child_count; i++) {
        supply_field_t child;
        if (supply_field_child(supply_, &field, i, &child) != SUPPLY_OK) found("a field without its child");
        read_field(child);
    }
}

/* Views are copies, which are not in the block. */
void read_views(const supply_column_t &column, const ArrowArray &array) {
    const auto *views = static_cast<const supply_view_t *>(array.buffers[1]);
    const int64_t windows = array.n_buffers - 3;
    const auto *lengths = static_cast<const int64_t *>(array.buffers[array.n_buffers - 1]);
    for (int64_t i = 0; i < array.length; i++) {
        if (views[i].bytes >= 0 && views[i].bytes <= VIEW_INLINE_MAX) continue;
        if (views[i].bytes < 0 || views[i].window < 0 || views[i].window >= windows || views[i].offset < 0 ||
            int64_t{views[i].offset} + views[i].bytes > lengths[views[i].window])
            found("an exported view outside its window");
        const auto *value = static_cast<const uint8_t *>(array.buffers[2 + views[i].window]) + views[i].offset;
        if (static_cast<uint32_t>(views[i].window) >= column.window_count ||
            !is_within(column.windows[views[i].window], value, static_cast<size_t>(views[i].bytes)))
            found("an exported value outside its window");
        read_foreign(value, static_cast<size_t>(views[i].bytes), "an exported value outside the foreign file");
    }
}

/* That copied offsets never decrease. Returns the last one. */
int64_t read_offsets(const ArrowArray &array) {
    const auto *offsets = static_cast<const int32_t *>(array.buffers[1]); /* a copy, which is not in the block */
    for (int64_t i = 0; i < array.length; i++)
        if (offsets[i] < 0 || offsets[i + 1] < offsets[i]) found("exported offsets that decrease");
    return offsets[array.length];
}

/* Reads every buffer of an exported array and of its children. column: its own; NULL: the numbers of a list. */
void FuzzedPair::read_array(const supply_block_t &block, const supply_column_t *column, const ArrowSchema &schema,
                            const ArrowArray &array) {
    if (schema.n_children != array.n_children) found("an array with other children than its schema");
    if (array.n_buffers > 0 && array.buffers[0] != nullptr)
        read_bytes(block, array.buffers[0], static_cast<size_t>(array.length + 7) / 8, "a bitmap outside the block");
    if (strcmp(schema.format, "vz") == 0) {
        if (column == nullptr) found("exported views of no column");
        read_views(*column, array);
    } else if (strcmp(schema.format, "+l") == 0 || strcmp(schema.format, "+m") == 0) {
        if (read_offsets(array) > array.children[0]->length) found("exported offsets outside the child");
    } else if (array.n_buffers == 3) {
        read_bytes(block, array.buffers[2], static_cast<size_t>(read_offsets(array)),
                   "exported data outside the block");
    } else if (array.n_buffers > 1)
        read_bytes(block, array.buffers[1], static_cast<size_t>(array.length + 7) / 8, "a buffer outside the block");
    for (int i = 0; i < array.n_children; i++) {
        supply_column_t child;
        const bool has_child = column != nullptr && column->child_count > 0;
        if (has_child && supply_column_child(supply_, &block, column, i, &child) != SUPPLY_OK)
            found("an exported child that is none");
        read_array(block, has_child ? &child : nullptr, *schema.children[i], *array.children[i]);
    }
}

/* All columns together, or one. */
void FuzzedPair::read_arrow(const supply_block_t &block, int index) {
    ArrowSchema schema;
    ArrowArray array;
    if (supply_export_arrow(supply_, &block, index, &schema, &array) != SUPPLY_OK) {
        check_error();
        return;
    }
    const bool all = index == SUPPLY_ALL_COLUMNS;
    for (int i = 0; i < (all ? block.column_count : 1); i++) {
        supply_column_t column;
        if (supply_column(supply_, &block, all ? i : index, &column) != SUPPLY_OK)
            found("an exported column that is none");
        read_array(block, &column, all ? *schema.children[i] : schema, all ? *array.children[i] : array);
    }
    array.release(&array);
    schema.release(&schema);
}

void FuzzedPair::read(const supply_block_t &block) {
    size_t mapped_bytes;
    const auto *mapped = static_cast<const uint8_t *>(supply_mapping(supply_, &mapped_bytes));
    const auto *address = static_cast<const uint8_t *>(block.address);
    if ((address < mapped || address + block.bytes > mapped + mapped_bytes) && !is_in_resident_file(block))
        found("a block outside the mapping");
    read_bytes(block, block.address, block.bytes, "a block outside itself");
    for (int i = 0; i < block.column_count; i++) {
        read_column(block, i);
        read_arrow(block, i);
    }
    read_arrow(block, SUPPLY_ALL_COLUMNS);
    for (uint32_t i = 0; i < block.element_count; i++) {
        supply_datum_t datum;
        if (supply_datum(supply_, &block, i, &datum) != SUPPLY_OK) {
            check_error();
            return;
        }
        read_bytes(block, datum.key, datum.key_bytes, "a key outside the block");
        read_value(block, datum.data, datum.data_bytes, "a Datum's data outside the block and its windows");
    }
}

bool FuzzedPair::receive() {
    supply_block_t block;
    supply_column_index(supply_, "key"); /* before the first block, this reads the schema that the task has written */
    const supply_status_t status = supply_try_next(supply_, &block);
    if (status == SUPPLY_OK) {
        read(block);
        held_.push_back(block);
    }
    if (status < 0) check_error();
    return status >= 0 && status != SUPPLY_END_OF_DATA;
}

void FuzzedPair::read_held() {
    for (const supply_block_t &block : held_) read(block);
}

void FuzzedPair::release_oldest() {
    if (held_.empty()) return;
    if (supply_release(supply_, &held_.front()) != SUPPLY_OK) found("cannot release a held block");
    held_.erase(held_.begin());
}

} // namespace supply_fuzz
