/** A real pair for one input: libsupply is the rank, and the fuzzer writes the task's side without any check. */
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layout.h"
#include "supply_arrow.h"
#include "supply_datum.h"

namespace supply_fuzz {

/** Reports an error and aborts. The fuzzer then keeps the input. */
[[noreturn]] void found(const char *what);

class FuzzedPair {
  public:
    static constexpr size_t block_bytes = BLOCK_BYTES_UNIT;
    static constexpr uint32_t block_count = BLOCK_COUNT_MIN;
    /** Of foreign file 1, whose entry is in the header. */
    static constexpr size_t foreign_bytes = 4096;
    static constexpr size_t file_bytes = RING_OFFSET + block_count * block_bytes;
    /** Of foreign file 2: zeros, until write_resident() makes it a resident file. */
    static constexpr size_t resident_bytes = file_bytes;

    /** exchanges: the handle may get one. */
    explicit FuzzedPair(bool exchanges = false);
    /** A rank elsewhere. It has no files: mapping() and what writes there are not for it. */
    FuzzedPair(const std::string &connect, const char *key);
    ~FuzzedPair();
    FuzzedPair(const FuzzedPair &) = delete;
    FuzzedPair &operator=(const FuzzedPair &) = delete;

    /** The whole mapped file, writable. */
    uint8_t *mapping() { return mapping_; }
    uint64_t generation = 0;
    mapped_file_header &header() { return *reinterpret_cast<mapped_file_header *>(mapping_); }
    uint8_t *slot(uint64_t sequence) { return mapping_ + RING_OFFSET + sequence % block_count * block_bytes; }

    /** The rank's handle, which an exchange replaces by its own. */
    supply_t *&handle() { return supply_; }

    /** Writes into foreign file 2, as far as the bytes fit, and its entry. */
    void write_resident(size_t offset, const void *bytes, size_t count);

    /** Writes into the mapped file after the ring, where a wide schema lies. */
    static void write_after_ring(size_t offset, const void *bytes, size_t count);

    /** Writes to the notification pipe. Bytes that do not fit are lost. */
    void send(const void *bytes, size_t count);

    /**
     * Receives once, and reads every byte that the rank is given. They must lie within the block or a foreign file.
     * False: the end of the data, or an error.
     */
    bool receive();
    /** Reads every byte of the held blocks, as receive() does. */
    void read_held();
    void release_oldest();

  private:
    void read(const supply_block_t &block);
    void read_values(const supply_block_t &block, const supply_column_t &column);
    void read_array(const supply_block_t &block, const supply_column_t *column, const ArrowSchema &schema,
                    const ArrowArray &array);
    void read_arrow(const supply_block_t &block, int index);
    void read_column(const supply_block_t &block, int index);
    void read_buffers(const supply_block_t &block, const supply_column_t &column);
    void read_field(const supply_field_t &field);
    void check_error();
    bool is_in_resident_file(const supply_block_t &block) const;

    supply_t *supply_ = nullptr;
    int notifications_ = -1;
    uint8_t *mapping_ = nullptr;
    bool resident_is_written_ = false;
    std::vector<supply_block_t> held_;
};

} // namespace supply_fuzz
