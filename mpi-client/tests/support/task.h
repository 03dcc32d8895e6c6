/**
 * The task's side of a pair, over the real mapped file and pipes. Each step of PROTOCOL.md is a call, so that a test
 * can omit a step or do it wrong. The destructor leaves the pair.
 */
#pragma once

#include <string>
#include <vector>

#include "block_image.h"
#include "layout.h"

namespace supply_test {

struct PairFiles {
    std::string mapped_file, request_pipe, notification_pipe;
};

class Task {
  public:
    /** A1 to A5. Waits some seconds for the rank, then throws. ring: the task of reader 0, for another reader. */
    explicit Task(const PairFiles &files, uint32_t attempt = 0, Task *ring = nullptr);
    ~Task();
    Task(const Task &) = delete;
    Task &operator=(const Task &) = delete;

    mapped_file_header &header() { return *reinterpret_cast<mapped_file_header *>(mapping_); }
    uint64_t published();
    uint64_t released();

    /** A6, unless an earlier attempt has done so. With texts, or more entries than fit, it is a wide schema. */
    void write_schema(const std::vector<schema_entry> &entries, const std::string &texts = "");

    /** The bytes after the ring. */
    void write_after_ring(const std::string &bytes);

    /** Adds an entry. Returns the file's number. */
    uint32_t add_foreign_file(const foreign_file &entry);
    foreign_file &entry(uint32_t number) {
        return reinterpret_cast<foreign_file *>(mapping_ + FOREIGN_FILES_OFFSET)[number - 1];
    }

    /** The next block's notification. */
    notification next(uint32_t kind, uint32_t element_count, size_t size);
    notification next(const BlockImage &block) {
        return next(NOTIFICATION_BLOCK, block.element_count, block.bytes.size());
    }

    void wait_for_credit();                                                          // P1
    void write(const std::vector<uint8_t> &block, const notification &notification); // P2
    void publish();                                                                  // P3
    void notify(const notification &notification);                                   // P4

    /** P1 to P4. */
    void supply(const BlockImage &block, uint32_t epoch = 0, uint32_t partition = 0, uint64_t first_element = 0);
    void supply(const BlockImage &block, const notification &notification);
    /** A6 and P1 to P4: the schema of these columns, and a block of them. */
    void supply_all(const std::vector<Column> &columns, uint32_t element_count) {
        write_schema(schema_of(columns));
        supply(BlockImage(columns, element_count));
    }
    void end_of_epoch(uint32_t epoch);
    /** The next notification of a block in foreign file `file`. `in_file` is the copy there. */
    notification next_in_file(uint32_t file, const notification &in_file, uint32_t epoch);
    /** P1 to P4: a block in a file, of which the slot has the header alone. */
    void supply_from_file(uint32_t file, const notification &in_file, uint32_t epoch) {
        supply_header(next_in_file(file, in_file, epoch));
    }
    void supply_header(const notification &notification);
    void write_header(const notification &notification); // P2
    void end_of_data(uint32_t epoch);
    /** E1 and E2. */
    void see_end();

    void send_failure(const std::string &text);

    /** Requests received since the last call. */
    std::vector<request> requests();
    /** True after the rank has closed its pair and all its requests have been read. */
    bool rank_has_left();

  private:
    void open_mapped_file(const std::string &path);
    uint8_t *slot(uint64_t number) {
        uint8_t *ring = ring_ != nullptr ? ring_->mapping_ : mapping_;
        return ring + header().ring_offset + number % header().block_count * header().block_bytes;
    }
    void end(uint32_t kind, uint32_t epoch);

    int mapped_fd_ = -1, request_fd_ = -1, notification_fd_ = -1;
    uint8_t *mapping_ = nullptr;
    Task *ring_;
    size_t mapping_bytes_ = 0, file_bytes_ = 0;
    uint64_t sequence_ = 0;
};

/** Waits until the condition is true; throws after five minutes: a machine may be busy. */
void wait_until(const char *what, bool (*condition)(void *), void *context);
template <typename Condition>
void wait_until(const char *what, Condition condition) {
    wait_until(what, [](void *context) -> bool { return (*static_cast<Condition *>(context))(); }, &condition);
}

} // namespace supply_test
